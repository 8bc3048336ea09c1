"""Where a filter with a fixed budget ends a pass: how many of its questions are answered.

The noise does not depend on the filter, so the answers up to the stop are those of the pass without a budget. Every
function takes verdicts (day, pass) with a new threshold after every ⊤, and gives the number of answered days per pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.paper.watching import below_counts, loss_of
from dpselect.privacy.above_threshold import silent_probability
from dpselect.privacy.conversions import renyi_to_approximate
from dpselect.privacy.renyi import ORDERS

Verdicts = NDArray[np.bool_]
Days = NDArray[np.int64]


def _first(blocked: NDArray[np.bool_]) -> Days:
    """The first blocked day of each pass; all days where none is."""
    return np.where(blocked.any(axis=0), blocked.argmax(axis=0), len(blocked))


def _starts(verdicts: Verdicts) -> NDArray[np.bool_]:
    """Days on which a run begins."""
    starts = np.ones_like(verdicts)
    starts[1:] = verdicts[:-1]
    return starts


@functools.lru_cache(maxsize=8)
def _tables(watch: AboveThreshold, longest: int) -> tuple[FloatArray, FloatArray]:
    """ε(⊥^j⊤) and ε(⊥^j) for j up to ``longest``; several budgets ask for the same."""
    lengths = np.arange(longest + 1)
    return loss_of(watch, lengths, above=1), loss_of(watch, lengths, above=0)


def _losses(watch: AboveThreshold, verdicts: Verdicts) -> tuple[FloatArray, FloatArray]:
    """Per day: what the finished runs had cost before it, and the dearer of its two answers."""
    before, _ = below_counts(verdicts)
    halted, silent = _tables(watch, int(before.max()) + 1)
    paid = np.cumsum(np.where(verdicts, halted[before], 0.0), axis=0)
    closed = np.concatenate([np.zeros((1, verdicts.shape[1])), paid[:-1]])
    return closed, np.maximum(halted[before], silent[before + 1])


def pure_days(watch: AboveThreshold, *, verdicts: Verdicts, budget: float) -> Days:
    """The pure filter: a question is asked only if either answer fits (THEORY §4)."""
    closed, dearer = _losses(watch, verdicts)
    return _first(closed + dearer > budget)


def reserve_days(
    watch: AboveThreshold, *, verdicts: Verdicts, budget: float, reserve: float, rounds: int | None = None
) -> Days:
    """The published rule: a run starts while Σ losses + ε_max < ε, and within ``rounds`` where that is given."""
    closed, _ = _losses(watch, verdicts)
    starts = _starts(verdicts)
    blocked = starts & (closed + reserve >= budget)
    if rounds is not None:
        blocked |= starts & (np.cumsum(starts, axis=0) > rounds)
    return _first(blocked)


def repaired_days(watch: AboveThreshold, *, verdicts: Verdicts, budget: float, delta: float) -> Days:
    """The repaired rule: a run is charged the chance that its loss exceeds what is left (THEORY §4)."""
    closed, _ = _losses(watch, verdicts)
    starts = _starts(verdicts)
    halted, _ = _tables(watch, len(verdicts))
    affordable = np.searchsorted(halted, np.maximum(budget - closed, 0.0), side="right")
    chances = np.ones(len(halted) + 1)
    for count in np.unique(affordable[starts]):
        if count > 0:
            chances[count] = silent_probability(
                lower=watch.family.lower,
                threshold=watch.threshold,
                sigma_threshold=watch.scales[0],
                sigma_query=watch.scales[1],
                questions=int(count),
            )
    # The end of the stream is public: a run that cannot reach the first unaffordable answer cannot overshoot.
    horizon = np.arange(len(verdicts), 0, -1)[:, None]
    charged = np.cumsum(np.where(starts & (horizon >= affordable), chances[affordable], 0.0), axis=0)
    return _first(starts & (charged > delta))


def rounds_days(verdicts: Verdicts, *, rounds: int) -> Days:
    """A number of runs that was fixed before the first."""
    starts = _starts(verdicts)
    return _first(starts & (np.cumsum(starts, axis=0) > rounds))


def most_rounds(cost: Callable[[int], float], *, budget: float, most: int) -> int:
    """The most runs, up to ``most``, whose cost is within the budget; the cost grows with the runs.

    >>> most_rounds(lambda n: 0.1 * n, budget=0.75, most=100)
    7
    """
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


def renyi_rounds(curve: FloatArray, *, budget: float, delta: float, most: int) -> int:
    """The most runs under a Rényi filter whose order was chosen beforehand for this budget and δ."""
    return most_rounds(lambda n: renyi_to_approximate(ORDERS, n * curve, delta=delta), budget=budget, most=most)


def answered(verdicts: Verdicts, *, days: Days) -> Verdicts:
    """The verdicts up to the stop; a question that was not answered counts as ⊥."""
    return np.asarray(verdicts & (np.arange(len(verdicts))[:, None] < days))
