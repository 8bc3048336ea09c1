"""Simulated series with the size and the rough shape of the real ones, for when the data are not at hand.

They keep every figure drawable. What is drawn from them is labelled "simulated" and judges no claim.
"""

from __future__ import annotations

import numpy as np

from dpselect.checks import FloatArray


def bicycle_days() -> FloatArray:
    """731 days of a growing bicycle share: a yearly wave, growth, wet days."""
    rng = np.random.default_rng(2011)
    day = np.arange(731)
    wave = 0.55 - 0.35 * np.cos(2 * np.pi * (day - 15) / 365.25)
    level = wave * (0.62 + 0.38 * day / 730) * (1 - 0.45 * (rng.random(731) < 0.12)) + rng.normal(0, 0.05, 731)
    return _normalised(level)


def meter_days() -> FloatArray:
    """829 days of a smart-meter trial: homes joining for half a year, then winters above summers."""
    rng = np.random.default_rng(2012)
    day = np.arange(829)
    joined = 1 / (1 + np.exp(-(day - 190) / 35))
    season = 0.68 + 0.2 * np.cos(2 * np.pi * (day - 60) / 365.25) + 0.03 * (day % 7 >= 5)
    return _normalised(joined * season + rng.normal(0, 0.02, 829))


def home_days() -> FloatArray:
    """364 days of household load: two cool seasons, and a few hot days far above the rest."""
    rng = np.random.default_rng(2010)
    day = np.arange(364)
    level = 0.36 + 0.06 * np.cos(4 * np.pi * (day - 15) / 365) + rng.normal(0, 0.02, 364)
    hot = rng.choice(np.arange(160, 250), size=9, replace=False)
    level[hot] += np.geomspace(0.06, 0.6, 9)
    return _normalised(level)


def _normalised(level: FloatArray) -> FloatArray:
    floor = np.maximum(level, 0.0)
    return np.asarray(floor / floor.max())
