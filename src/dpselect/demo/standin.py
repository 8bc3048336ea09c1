"""A made-up series to try a mechanism on before any real value is touched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from dpselect.checks import FloatArray, counts
from dpselect.mechanisms.outcomes import Selections
from dpselect.mechanisms.values import PrivateValues
from dpselect.noise.entropy import Entropy, SeededEntropy
from dpselect.privacy.family import QueryFamily

_SEED = 2024


@lru_cache(maxsize=4)
def stand_in(family: QueryFamily, *, length: int) -> FloatArray:
    """A seeded series inside the family's range with a yearly wave, a weekly one and weather.

    It hovers around 35% of the range with about ±12% of season, ±3% of week and ±4% of weather, as daily demand
    does under a generous cap. It depends on nothing but its arguments.

    >>> values = stand_in(QueryFamily(lower=0, upper=10, sensitivity=0.1), length=365)
    >>> bool(values.min() > 0), bool(values.max() < 10), len(values)
    (True, True, 365)
    """
    number = int(counts("length", length, least=1))
    random = np.random.default_rng(_SEED)
    day = np.arange(number)
    season = 0.12 * np.cos(2 * np.pi * (day - 15) / 365.25)
    week = 0.03 * np.isin(day % 7, (5, 6))
    weather = np.empty(number)
    state = 0.0
    shocks = random.normal(scale=0.04 * np.sqrt(1 - 0.7**2), size=number)
    for index, shock in enumerate(shocks.tolist()):
        state = 0.7 * state + shock
        weather[index] = state
    shares: FloatArray = np.clip(0.35 + season + week + weather, 0.0, 1.0)
    values = np.clip(family.lower + family.width * shares, family.lower, family.upper)
    values.flags.writeable = False  # shared by all who ask for the same
    return values


class Picker(Protocol):
    """A mechanism that names the largest of several values."""

    @property
    def family(self) -> QueryFamily:
        """Range and sensitivity of the values."""
        ...

    def release_many(self, values: PrivateValues, *, times: int, entropy: Entropy) -> Selections:
        """Many independent selections."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a mechanism does on a stand-in: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest.
    """

    shortfall: float
    hits: float


def expected_accuracy(mechanism: Picker, *, candidates: int, times: int = 200) -> ExpectedAccuracy:
    """Runs the real mechanism on a stand-in with as many candidates.

    >>> from dpselect import GaussianNoisyMax
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.01)
    >>> found = expected_accuracy(picker, candidates=365)
    >>> 0 <= found.shortfall < 0.02, found.hits > 0.3
    (True, True)
    """
    values = stand_in(mechanism.family, length=candidates)
    # A million candidates need fewer repetitions for the same patience.
    number = max(10, min(times, 20_000_000 // candidates))
    chosen = mechanism.release_many(values, times=number, entropy=SeededEntropy(_SEED)).indices
    best = float(values.max())
    return ExpectedAccuracy(
        shortfall=float(np.mean(best - values[chosen])) / mechanism.family.width,
        hits=float(np.mean(values[chosen] == best)),
    )
