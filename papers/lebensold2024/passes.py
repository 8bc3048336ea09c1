"""Many passes of above threshold over one stream: their answers, what they cost, and where a filter stops them.

These are simulations on public data with ordinary pseudo-random noise, for many settings at once; a private release
goes through :mod:`dpselect.composition` and its exact noise instead. The costs are the library's own. The noise does
not depend on the filter, so the answers up to a stop are those of the pass without a budget.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.planning.simulation import standard_draws
from dpselect.privacy.above_threshold import silent_probability
from dpselect.privacy.conversions import ORDERS, renyi_to_approximate, renyi_to_probabilistic
from dpselect.privacy.family import QueryFamily
from lebensold2024.as_printed import zhu_wang_renyi_as_published

Verdicts = NDArray[np.bool_]
Days = NDArray[np.int64]


def gaussian(
    family: QueryFamily, *, threshold: float, sigma: float, ratio: float = math.sqrt(3)
) -> GaussianAboveThreshold:
    """The paper's settings, σ_Z = √3·σ_X, or another ratio."""
    return GaussianAboveThreshold(family, threshold=threshold, sigma_threshold=sigma, sigma_query=ratio * sigma)


def run_passes(
    watches: Sequence[AboveThreshold],
    *,
    values: FloatArray,
    passes: int,
    generator: np.random.Generator,
    fresh: bool = True,
    cap: int | None = None,
) -> list[Passes]:
    """So many passes of every watch over the stream. All watches have noise of one law."""
    (law,) = {watch.law for watch in watches}
    settings = [(w.family.lower, w.family.upper, w.level, *w.scales) for w in watches]
    low, high, level, scale_threshold, scale_query = np.array(settings).T[:, :, None]
    shape = (len(watches), passes)
    answers = np.empty((len(values), *shape), dtype=np.bool_)
    line = level + scale_threshold * standard_draws(law, shape, generator)
    length = np.zeros(shape, dtype=np.int64)
    for day, value in enumerate(values.tolist()):
        above = np.clip(value, low, high) + scale_query * standard_draws(law, shape, generator) >= line
        answers[day] = above
        if fresh:
            length = np.where(above, 0, length + 1)
            over = above if cap is None else above | (length >= cap)
            length[over] = 0
            line = np.where(over, level + scale_threshold * standard_draws(law, shape, generator), line)
    return [Passes(watch, answers[:, place], fresh=fresh, cap=cap) for place, watch in enumerate(watches)]


def f1_scores(verdicts: Verdicts, *, truth: Verdicts, days: Days | None = None) -> FloatArray:
    """F1 of each pass against the answers without noise; a question after the first ``days`` counts as ⊥.

    >>> f1_scores(np.array([[True], [False], [True]]), truth=np.array([True, True, False])).tolist()
    [0.5]
    """
    answered = verdicts if days is None else verdicts & (np.arange(len(verdicts))[:, None] < days)
    hits = (answered & truth[:, None]).sum(axis=0)
    return np.asarray(2.0 * hits / np.maximum(answered.sum(axis=0) + truth.sum(), 1))


# --- what they cost --------------------------------------------------------------------------------------------------


class Costs(NamedTuple):
    """What each pass had cost at the end of the stream.

    ``spent`` is the loss, an open run included. ``needed`` is the least budget with which the pure filter (THEORY §4)
    lets the pass reach the end: at every question the losses of the finished runs plus the costlier of the two answers
    must fit.
    """

    spent: FloatArray
    needed: FloatArray


@dataclass(frozen=True, eq=False)
class Passes:
    """Passes (day, pass) of one watch.

    With ``fresh`` a new threshold is drawn after every ⊤, as in the paper, and with a ``cap`` after so many ⊥ too;
    otherwise one serves the whole pass, for any number of ⊤, and only :meth:`costs` and :meth:`tops_days` are meant.
    """

    watch: AboveThreshold
    verdicts: Verdicts
    fresh: bool = True
    cap: int | None = None

    @cached_property
    def _known(self) -> tuple[FloatArray, FloatArray]:
        """ε(⊥^j) and ε(⊥^j⊤) by j, as far as they were asked for; NaN elsewhere."""
        none = np.full(len(self.verdicts) + 2, np.nan)
        return none, none.copy()

    def _loss(self, below: Days, above: int) -> FloatArray:
        """The watch's own losses, each length priced once."""
        known = self._known[above]
        missing = np.unique(below[np.isnan(known[below])])
        if len(missing):
            known[missing] = self.watch.loss(missing, above)
        return known[below]

    @cached_property
    def _below(self) -> tuple[Days, Days, Verdicts]:
        """⊥ that the open run held before each question and after it, and where the cap ended a run."""
        days = np.arange(1, len(self.verdicts) + 1)[:, None]
        after = days - np.maximum.accumulate(np.where(self.verdicts, days, 0), axis=0)
        before = np.concatenate([np.zeros((1, after.shape[1]), dtype=after.dtype), after[:-1]])
        if self.cap is None:
            return before, after, np.zeros_like(self.verdicts)
        return before % self.cap, after % self.cap, (after > 0) & (after % self.cap == 0)

    @cached_property
    def _paid(self) -> FloatArray:
        """The loss of the run that ended on each day."""
        before, _, capped = self._below
        paid = np.zeros(self.verdicts.shape)
        paid[self.verdicts] = self._loss(before[self.verdicts], 1)
        if self.cap is not None:
            paid[capped] = float(self.watch.loss(self.cap, 0))
        return paid

    @cached_property
    def closed(self) -> FloatArray:
        """What the finished runs had cost before each day."""
        return np.asarray(np.cumsum(self._paid, axis=0) - self._paid)

    @cached_property
    def costlier(self) -> FloatArray:
        """The larger cost of the two answers of each day."""
        before = self._below[0]
        return np.maximum(self._loss(before, 1), self._loss(before + 1, 0))

    @cached_property
    def starts(self) -> Verdicts:
        """Days on which a run begins."""
        return np.asarray(self._below[0] == 0)

    def spent(self) -> FloatArray:
        """The loss so far, after every day."""
        return np.asarray(np.cumsum(self._paid, axis=0) + self._loss(self._below[1], 0))

    def runs(self) -> Days:
        """Runs so far, after every day."""
        return np.cumsum(self.starts, axis=0, dtype=np.int64)

    def costs(self) -> Costs:
        """At the end of the stream."""
        if not self.fresh:
            # The loss grows with either count (THEORY §2), so the last question decides how much budget is needed.
            days, above, before = len(self.verdicts), self.verdicts.sum(axis=0), self.verdicts[:-1].sum(axis=0)
            if_above, if_below = self.watch.loss(days - 1 - before, before + 1), self.watch.loss(days - before, before)
            return Costs(np.asarray(self.watch.loss(days - above, above)), np.maximum(if_above, if_below))
        # Within a run the costlier answer grows with its length, so only a run's last question can set ``needed``.
        last = self.verdicts.copy()
        last[-1] = True
        before, open_run = self._below[0][last], self._below[1][-1]
        needed = np.zeros(self.verdicts.shape)
        needed[last] = self.closed[last] + np.maximum(self._loss(before, 1), self._loss(before + 1, 0))
        return Costs(self._paid.sum(axis=0) + self._loss(open_run, 0), needed.max(axis=0))

    # Where a filter stops: the number of answered days per pass.

    def pure_days(self, *, budget: float) -> Days:
        """The pure filter: a question is asked only if either answer fits (THEORY §4)."""
        return _first(self.closed + self.costlier > budget)

    def rounds_days(self, *, rounds: int) -> Days:
        """A number of runs that was fixed before the first."""
        return _first(self.starts & (self.runs() > rounds))

    def tops_days(self, *, tops: int) -> Days:
        """A number of ⊤ that was fixed beforehand: nothing is asked after the last of them."""
        return _first(np.asarray(np.cumsum(self.verdicts, axis=0) - self.verdicts >= tops))

    def reserve_days(self, *, budget: float, reserve: float, rounds: int | None = None) -> Days:
        """The published rule: a run starts while Σ losses + ε_max < ε, and within ``rounds`` where that is given."""
        found = _first(self.starts & (self.closed + reserve >= budget))
        return found if rounds is None else np.minimum(found, self.rounds_days(rounds=rounds))

    def repaired_days(self, *, budget: float, delta: float) -> Days:
        """The repaired rule: a run is charged the chance that its loss exceeds what is left (THEORY §4)."""
        days = len(self.verdicts)
        halted = np.asarray(self.watch.loss(np.arange(days + 1), 1))
        affordable = np.searchsorted(halted, np.maximum(budget - self.closed, 0.0), side="right")
        noise = dict(zip(("sigma_threshold", "sigma_query"), self.watch.scales, strict=True))
        chances = np.ones(len(halted) + 1)
        for count in np.unique(affordable[self.starts]):
            if count > 0:
                chances[count] = silent_probability(
                    lower=self.watch.family.lower, threshold=self.watch.threshold, questions=int(count), **noise
                )
        # The end of the stream is public: a run that cannot reach the first unaffordable answer cannot overshoot.
        horizon = np.arange(days, 0, -1)[:, None]
        charged = np.cumsum(np.where(self.starts & (horizon >= affordable), chances[affordable], 0.0), axis=0)
        return _first(self.starts & (charged > delta))


def _first(blocked: Verdicts) -> Days:
    """The first blocked day of each pass; all days where none is."""
    return np.where(blocked.any(axis=0), blocked.argmax(axis=0), len(blocked))


def most_rounds(cost: Callable[[int], float], *, budget: float, most: int) -> int:
    """The most runs, up to ``most``, whose cost is within the budget; the cost grows with the runs.

    >>> most_rounds(lambda n: 0.1 * n, budget=0.75, most=100)
    7
    """
    return bisect.bisect_right(range(1, most + 1), budget, key=cost)


# --- the paper's baseline: Zhu–Wang's bound per run under Whitehouse et al.'s filter ---------------------------------


def run_curve(watch: AboveThreshold, bound: Callable[..., Any] = zhu_wang_renyi_as_published) -> FloatArray:
    """Zhu and Wang's Rényi bound of one run, as published or numerically, at the usual orders."""
    noise = dict(zip(("sigma_threshold", "sigma_query"), watch.scales, strict=True))
    return np.asarray(bound(ORDERS, sensitivity=watch.family.sensitivity, threshold_gap=watch.threshold, **noise))


def reserve_of(curve: FloatArray, *, delta: float) -> float:
    """ε_max of one run: probabilistic DP, which the published filter needs."""
    return renyi_to_probabilistic(ORDERS, curve, delta=delta)


def advanced(epsilon: ArrayLike, *, rounds: ArrayLike, delta: float) -> FloatArray:
    """√(2 log(1/δ')·nε²) + nε²/2 (Whitehouse et al.; THEORY §4).

    >>> float(advanced(0.1, rounds=100, delta=1e-5).round(3))
    5.299
    """
    squares = np.asarray(rounds, dtype=np.float64) * np.square(np.asarray(epsilon, dtype=np.float64))
    return np.asarray(np.sqrt(-2.0 * math.log(delta) * squares) + 0.5 * squares)


def in_all_cost(curve: FloatArray, *, rounds: Any, delta: float) -> FloatArray:
    """With δ in all: half for the filter, half shared by the runs, whose number is granted in hindsight."""
    counted, places = np.unique(rounds, return_inverse=True)
    each = [renyi_to_approximate(ORDERS, curve, delta=delta / (2 * max(1, int(n)))) for n in counted]
    return advanced(np.array(each)[places].reshape(np.shape(rounds)), rounds=rounds, delta=delta / 2)


#: The paper leaves the δ of the comparison open. Three readings: δ = 1/N for every run, with the tight conversion
#: (AutoDP's), and again for the filter, so that (n + 1)·δ is spent, in the baseline's favour; δ = 1/N in all; and
#: δ = 1/N for every run with the conversion by Markov's inequality that Section 2 prints, τ + log(1/δ)/(α − 1).
READINGS: dict[str, Callable[..., FloatArray]] = {
    "per run": lambda curve, *, rounds, delta: advanced(
        renyi_to_approximate(ORDERS, curve, delta=delta), rounds=rounds, delta=delta
    ),
    "in all": in_all_cost,
    "printed": lambda curve, *, rounds, delta: advanced(reserve_of(curve, delta=delta), rounds=rounds, delta=delta),
}
