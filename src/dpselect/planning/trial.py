"""The real mechanism tried on a made-up series, before any real value is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray
from dpselect.composition.sparse_vector import SparseVector
from dpselect.mechanisms.catalogue import find, of_kind
from dpselect.mechanisms.selection import NoisyMax
from dpselect.noise.entropy import Entropy, SeededEntropy
from dpselect.planning.knowledge import Model
from dpselect.planning.simulation import f1_scores
from dpselect.privacy.family import QueryFamily

_SEED = 2024
#: Streams longer than this are tried by a stretch of them, so many times.
_LONGEST, _TIMES = 2000, 20

#: The selections by name, best-known first.
SELECTIONS: tuple[str, ...] = tuple(entry.name for entry in of_kind("selection"))


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a selection does on a made-up series: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest.
    """

    shortfall: float
    hits: float


def _series(family: QueryFamily, *, count: int) -> FloatArray:
    """The seasonal model, squeezed into a third of the range.

    A cap is chosen to cut few people, so it is well above their mean, and means over people move by a part of it only.
    A series that filled the range would make every mechanism look better than it will be.
    """
    return family.lower + (Model().candidates(family, count=count) - family.lower) / 3.0


def expected_accuracy(mechanism: NoisyMax, *, candidates: int, times: int = 200) -> ExpectedAccuracy:
    """Runs the real mechanism on the seasonal model, in a third of the range, with as many candidates.

    >>> from dpselect import GaussianNoisyMax
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.01)
    >>> found = expected_accuracy(picker, candidates=365)
    >>> 0 <= found.shortfall < 0.02, found.hits > 0.3
    (True, True)
    """
    values = _series(mechanism.family, count=candidates)
    # A million candidates need fewer repetitions for the same patience.
    number = max(10, min(times, 20_000_000 // candidates))
    chosen = mechanism.release_many(values, times=number, entropy=SeededEntropy(_SEED)).indices
    best = float(values.max())
    return ExpectedAccuracy(
        shortfall=float(np.mean(best - values[chosen])) / mechanism.family.width,
        hits=float(np.mean(values[chosen] == best)),
    )


def blind_accuracy(family: QueryFamily, *, candidates: int) -> ExpectedAccuracy:
    """What a guess that looks at no data gets on the same series: any candidate, each as likely.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> guess = blind_accuracy(family, candidates=365)
    >>> guess.hits == 1 / 365, guess.shortfall > 0.05
    (True, True)
    """
    values = _series(family, count=candidates)
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
    family: QueryFamily, *, candidates: int, epsilon: float, names: Iterable[str] = SELECTIONS
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
        tried[name] = Tried(name=name, mechanism=made, accuracy=expected_accuracy(made, candidates=candidates))
    return tried


def clearly_better(chosen: str, tried: dict[str, Tried]) -> Tried | None:
    """The best of those tried, where it does clearly better than the chosen one."""
    mine = tried[chosen].accuracy.shortfall
    best = min(tried.values(), key=lambda one: one.accuracy.shortfall)
    # A tenth of a percent of the range is within what 200 simulated runs cannot tell apart.
    if best.name == chosen or best.accuracy.shortfall > 0.8 * mine or mine - best.accuracy.shortfall < 0.001:
        return None
    return best


@dataclass(frozen=True, kw_only=True)
class ExpectedWatch:
    """How a sparse vector does on a made-up stream: mean F1, share of questions answered, and ε spent."""

    f1: float
    answered: float
    spent: float


def expected_watch(
    build: Callable[[Entropy], SparseVector], *, family: QueryFamily, threshold: float, questions: int, share: float
) -> ExpectedWatch:
    """Runs the real sparse vector on the seasonal model, of which a ``share`` reaches the threshold.

    >>> from dpselect import ExponentialAboveThreshold
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    >>> watcher = ExponentialAboveThreshold.calibrated(family, threshold=0.6, epsilon=1.0, above=40)
    >>> def build(entropy): return SparseVector(watcher, budget=1.0, resample=False, entropy=entropy)
    >>> expected_watch(build, family=family, threshold=0.6, questions=365, share=0.1).f1 > 0.9
    True
    """
    values = Model().stream(family, count=min(questions, _LONGEST), threshold=threshold, share=share)
    truth = values >= threshold
    scores, answered, spent = [], [], []
    for trial in range(_TIMES):
        vector = build(SeededEntropy(_SEED + trial))
        # A budget too small for a first question answers nothing.
        given = vector.ask_many(values) if vector.fits else np.zeros(0, dtype=np.bool_)
        hits, claimed = np.count_nonzero(given & truth[: len(given)]), np.count_nonzero(given)
        scores.append(f1_scores(np.array(hits), claimed=np.array(claimed), true=float(truth.sum())))
        answered.append(len(given) / len(values))
        spent.append(vector.spent)
    return ExpectedWatch(f1=float(np.mean(scores)), answered=float(np.mean(answered)), spent=float(np.mean(spent)))
