"""The real mechanism tried on a made-up series, before any real value is touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray
from dpselect.mechanisms.catalogue import find, of_kind
from dpselect.mechanisms.selection import NoisyMax
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.knowledge import Model, Profile
from dpselect.privacy.family import QueryFamily

_SEED = 2024

#: Where nothing is known of the values.
_NOTHING = Model()

#: The selections by name, best-known first.
SELECTIONS: tuple[str, ...] = tuple(entry.name for entry in of_kind("selection"))


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a selection does on a made-up series: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest.
    """

    shortfall: float
    hits: float


def _series(family: QueryFamily, public: Profile | Model, *, count: int) -> FloatArray:
    """What is known of the values; where nothing is, they move through the part of the range that is supposed."""
    if isinstance(public, Profile):
        return np.asarray(np.clip(np.resize(np.array(public.values), count), family.lower, family.upper))
    return public.candidates(family, count=count)


def expected_accuracy(
    mechanism: NoisyMax, *, candidates: int, times: int = 200, public: Profile | Model = _NOTHING
) -> ExpectedAccuracy:
    """Runs the real mechanism on what is known of the values, with as many candidates.

    >>> from dpselect import GaussianNoisyMax
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.003)
    >>> found = expected_accuracy(picker, candidates=365)
    >>> 0 <= found.shortfall < 0.02, found.hits > 0.3
    (True, True)
    """
    values = _series(mechanism.family, public, count=candidates)
    # A million candidates need fewer repetitions for the same patience.
    number = max(10, min(times, 20_000_000 // candidates))
    chosen = mechanism.release_many(values, times=number, entropy=SeededEntropy(_SEED)).indices
    best = float(values.max())
    return ExpectedAccuracy(
        shortfall=float(np.mean(best - values[chosen])) / mechanism.family.width,
        hits=float(np.mean(values[chosen] == best)),
    )


def blind_accuracy(family: QueryFamily, *, candidates: int, public: Profile | Model = _NOTHING) -> ExpectedAccuracy:
    """What a guess that looks at no data gets on the same series: any candidate, each as likely.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> guess = blind_accuracy(family, candidates=365)
    >>> guess.hits == 1 / 365, guess.shortfall > 0.05
    (True, True)
    """
    values = _series(family, public, count=candidates)
    return ExpectedAccuracy(
        shortfall=float(values.max() - values.mean()) / family.width,
        hits=float(np.mean(values == values.max())),
    )


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A selection at the asked ε and what to expect of it."""

    name: str
    mechanism: Any
    accuracy: ExpectedAccuracy


def try_selections(
    family: QueryFamily,
    *,
    candidates: int,
    epsilon: float,
    names: Iterable[str] = SELECTIONS,
    public: Profile | Model = _NOTHING,
) -> dict[str, Tried]:
    """Every selection with the least noise at the same ε, on the same made-up series.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> tried = try_selections(family, candidates=365, epsilon=0.1)
    >>> min(tried, key=lambda name: tried[name].accuracy.shortfall)
    'permute-and-flip'
    """
    tried = {}
    for name in names:
        made = find(name).mechanism().calibrated(family, candidates=candidates, epsilon=epsilon)
        tried[name] = Tried(
            name=name, mechanism=made, accuracy=expected_accuracy(made, candidates=candidates, public=public)
        )
    return tried


def clearly_better(chosen: str, tried: dict[str, Tried]) -> Tried | None:
    """The best of those tried, where it does clearly better than the chosen one."""
    mine = tried[chosen].accuracy.shortfall
    best = min(tried.values(), key=lambda one: one.accuracy.shortfall)
    # A tenth of a percent of the range is within what 200 simulated runs cannot tell apart.
    if best.name == chosen or best.accuracy.shortfall > 0.8 * mine or mine - best.accuracy.shortfall < 0.001:
        return None
    return best
