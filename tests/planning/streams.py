"""A dozen kinds of streams, each as a past year and the year after it, in [0, 1] with a public line.

Made up, so that no weight of the planner need ever be chosen on a series that is reported.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

DAYS = 365


def _ripples(generator: np.random.Generator, number: int, *, memory: float = 0.7) -> np.ndarray:
    steps = generator.standard_normal(number) * np.sqrt(1.0 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], steps))


def _season(generator: np.random.Generator) -> np.ndarray:
    days = np.arange(2 * DAYS)
    return 0.4 + 0.15 * np.sin(2 * np.pi * days / DAYS) + 0.05 * _ripples(generator, 2 * DAYS)


def _week(generator: np.random.Generator) -> np.ndarray:
    days = np.arange(2 * DAYS)
    return 0.35 + 0.1 * (days % 7 < 5) + 0.05 * _ripples(generator, 2 * DAYS, memory=0.3)


def _trend(generator: np.random.Generator) -> np.ndarray:
    days = np.arange(2 * DAYS)
    slope = generator.choice([-1.0, 1.0]) * 0.12
    return 0.4 + slope * (days / DAYS - 1.0) + 0.06 * _ripples(generator, 2 * DAYS)


def _walk(generator: np.random.Generator) -> np.ndarray:
    return 0.4 + 0.006 * np.cumsum(generator.standard_normal(2 * DAYS))


def _bursts(generator: np.random.Generator) -> np.ndarray:
    values = 0.05 + 0.02 * np.abs(generator.standard_normal(2 * DAYS))
    for start in np.flatnonzero(generator.random(2 * DAYS) < 0.012):
        values[start : start + generator.integers(1, 6)] += generator.uniform(0.3, 0.8)
    return values


def _epidemics(generator: np.random.Generator) -> np.ndarray:
    days = np.arange(2 * DAYS)
    values = 0.04 + 0.01 * np.abs(generator.standard_normal(2 * DAYS))
    for year in (0, 1):
        peak, height, width = generator.uniform(60, 300), generator.uniform(0.3, 0.8), generator.uniform(10, 25)
        values += height * np.exp(-0.5 * ((days - DAYS * year - peak) / width) ** 2)
    return values


def _heavy(generator: np.random.Generator) -> np.ndarray:
    return 0.03 * (1.0 + generator.pareto(1.5, 2 * DAYS))


def _lognormal(generator: np.random.Generator) -> np.ndarray:
    return 0.15 * np.exp(0.5 * _ripples(generator, 2 * DAYS, memory=0.5))


def _rare(generator: np.random.Generator) -> np.ndarray:
    values = 0.2 + 0.04 * generator.standard_normal(2 * DAYS)
    values[[int(generator.integers(0, DAYS)), int(generator.integers(DAYS, 2 * DAYS))]] = 0.8
    return values


def _always(generator: np.random.Generator) -> np.ndarray:
    return 0.75 + 0.05 * _ripples(generator, 2 * DAYS)


def _shift(generator: np.random.Generator) -> np.ndarray:
    values = 0.35 + 0.06 * _ripples(generator, 2 * DAYS)
    values[DAYS + 60 :] += generator.choice([-0.08, 0.08])
    return values


def _calm(generator: np.random.Generator) -> np.ndarray:
    return 0.4 + 0.08 * generator.standard_normal(2 * DAYS)


#: How each is made, and the share of the past year that reaches its line.
KINDS: dict[str, tuple[Callable[[np.random.Generator], np.ndarray], float]] = {
    "season": (_season, 0.15),
    "weekdays": (_week, 0.1),
    "trend": (_trend, 0.2),
    "random walk": (_walk, 0.25),
    "bursts": (_bursts, 0.0),
    "epidemics": (_epidemics, 0.0),
    "heavy tails": (_heavy, 0.05),
    "skewed": (_lognormal, 0.1),
    "rare, 1 in 365": (_rare, 0.0),
    "always above": (_always, 1.0),
    "shift": (_shift, 0.1),
    "calm": (_calm, 0.1),
}
#: Lines that are not read off a share.
_LINES = {"bursts": 0.25, "epidemics": 0.2, "rare, 1 in 365": 0.5, "always above": 0.5}


def stream(kind: str, *, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The past year, the year after, and the line."""
    make, share = KINDS[kind]
    values = np.clip(make(np.random.default_rng([seed, 77])), 0.0, 1.0)
    past, future = values[:DAYS], values[DAYS:]
    line = _LINES.get(kind) or float(np.quantile(past, 1.0 - share))
    if not (past >= line).any():
        # A year without a single case tells the planner nothing, and the textbook less: the other year comes first.
        past, future = future, past
    return past, future, min(max(line, 0.01), 0.99)
