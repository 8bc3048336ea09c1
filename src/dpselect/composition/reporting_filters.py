"""Filters over realised losses with a δ: the published rule, which does not hold, and its repair (THEORY §4)."""

from __future__ import annotations

import functools
import math
from typing import Self

from dpselect.checks import one, positive, probability, refuse
from dpselect.composition.costs import Declared, in_loss, plain_cost
from dpselect.composition.exact_sum import ExactSum, in_units
from dpselect.composition.filter import Filter, RunTerms, State, Watcher
from dpselect.composition.loss_table import loss_table
from dpselect.composition.run_prices import probabilistic_price
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.privacy.loss import Loss
from dpselect.privacy.silent_run import silent_probability

#: What must be passed to use the published filter.
ACKNOWLEDGEMENT = "not private as claimed"


@functools.lru_cache(maxsize=4096)
def _silent(watcher: GaussianAboveThreshold, questions: int) -> float:
    return silent_probability(
        lower=watcher.family.lower,
        threshold=watcher.threshold,
        sigma_threshold=watcher.sigma_threshold,
        sigma_query=watcher.sigma_query,
        questions=questions,
    )


class _ReportingFilter(Filter):
    """Realised losses add up; δ is what may go wrong."""

    def __init__(self, *, epsilon: float, delta: float) -> None:
        super().__init__()
        self._limit = one(positive, "epsilon", epsilon)
        self._delta = one(probability, "delta", delta)
        self._sum = ExactSum()

    @property
    def limit(self) -> float:
        """ε."""
        return self._limit

    @property
    def delta(self) -> float:
        """δ."""
        return self._delta

    @property
    def spent(self) -> float:
        """The losses so far, rounded up; with probability up to δ they exceed the limit."""
        return self._sum.upward()

    @property
    def remaining(self) -> float:
        """ε minus the losses so far, rounded down, 0 where they exceed it."""
        return self._sum.left(self._limit)

    def _books_after(self, epsilon: float) -> ExactSum:
        return ExactSum(self._sum.units + in_units(epsilon))

    def _keep_books(self, books: ExactSum) -> None:
        self._sum = books


class RepairedReportingFilter(_ReportingFilter):
    """(ε, δ)-probabilistic DP: realised losses up to ε, and δ for the chance that a run overshoots.

    Before each run, with B of ε left, the chance that its loss exceeds B is bounded by the exact tail: j* ⊥ in a row,
    j* the longest run that would fit. Those chances add up to δ at most. Unlike :class:`PureFilter` it never stops in
    the middle of a run. Costs of other releases are pure: the δ of approximate DP does not bound the chance that the
    loss exceeds ε (THEORY §3), which is what this filter adds up.

    Parameters
    ----------
    epsilon, delta : float
        What is promised in all.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.3, sigma_threshold=0.1, sigma_query=0.2)
    >>> budget = RepairedReportingFilter(epsilon=1.0, delta=1e-6)
    >>> budget.open_run(watcher).allowed, 0 < budget.spent_delta < 1e-6
    (inf, True)
    """

    name = "repaired"

    def __init__(self, *, epsilon: float, delta: float) -> None:
        super().__init__(epsilon=epsilon, delta=delta)
        self._deltas = ExactSum()

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, from the stated δ on."""
        return self._limit if plain_cost("delta", delta, most=1.0) >= self._delta else math.inf

    @property
    def spent_delta(self) -> float:
        """The chances charged so far, added and rounded up."""
        return self._deltas.upward()

    def _fits(self, cost: Declared | float) -> bool:
        return self._sum.fits(_pure(cost), limit=self._limit)

    def _count(self, cost: Declared | float) -> None:
        self._sum.add(_pure(cost))

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at the chance that its loss exceeds what is left."""
        if not isinstance(watcher, GaussianAboveThreshold):
            raise refuse("watcher", watcher, "Gaussian for this filter; other runs have a pure cost: use PureFilter")
        # ε(⊥^(j-1)⊤) ≤ B for j up to here; one more question than the longest run of ⊥ before an affordable ⊤.
        longest = loss_table(watcher).longest_before_top(self.remaining)
        affordable = 0 if longest is None else longest + 1
        # A capped run that cannot reach the first unaffordable answer cannot overshoot.
        safe = horizon is not None and horizon < affordable
        chance = 0.0 if safe else _silent(watcher, affordable)
        if not self._deltas.fits(chance, limit=self._delta):
            raise BudgetExhausted(
                f"the next run may overshoot what is left of epsilon with probability {chance!r} and does not fit: "
                f"{self.spent_delta!r} of delta = {self._delta!r} is spent; nothing was spent on it",
                spent=self.spent,
                budget=self._limit,
                next_cost=loss_table(watcher).loss(0, 1),
            )
        return RunTerms(allowed=math.inf, due=chance)

    def _admit_run(self, terms: RunTerms) -> None:
        self._deltas.add(terms.due)

    def _state(self) -> State:
        return {
            "epsilon": self._limit,
            "delta": self._delta,
            "sum": hex(self._sum.units),
            "deltas": hex(self._deltas.units),
        }

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(epsilon=state["epsilon"], delta=state["delta"])
        found._sum = ExactSum(int(state["sum"], 16))
        found._deltas = ExactSum(int(state["deltas"], 16))
        return found


def _pure(cost: Declared | float) -> float:
    if not isinstance(cost, Declared):
        return plain_cost("cost", cost)
    if cost.loss.delta > 0:
        rule = (
            "pure: an approximate-DP delta does not bound the chance that the loss exceeds epsilon; use AdvancedFilter"
        )
        raise refuse("cost", cost.loss, rule)
    return cost.loss.epsilon


class PublishedReportingFilter(_ReportingFilter):
    """Filtered Self-Reporting Composition as printed, **for reproducing figures only**: its (ε, δ) does not hold.

    A run starts while Σ losses + ε_max < ε, ε_max a bound that one run's loss exceeds with probability δ. The proof
    applies that δ once, at the last run; but which run is last depends on that run's own answers, so the chances of all
    runs count. A real instance has δ ≥ .576 against a claimed .00135 (THEORY §4).

    Parameters
    ----------
    epsilon, delta : float
        What the published theorem claims.
    acknowledge : str
        Must be ``"not private as claimed"``.
    run_epsilon : float, optional
        ε_max of every run; by default from the Zhu-Wang bound at δ, as in the paper.

    Examples
    --------
    >>> PublishedReportingFilter(epsilon=1.0, delta=1e-5, acknowledge="yes")
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidParameter: acknowledge must be 'not private as claimed', ...; got 'yes'
    >>> PublishedReportingFilter(epsilon=1.0, delta=1e-5, acknowledge="not private as claimed").limit
    1.0
    """

    name = "published"

    def __init__(self, *, epsilon: float, delta: float, acknowledge: str, run_epsilon: float | None = None) -> None:
        if acknowledge != ACKNOWLEDGEMENT:
            rule = f"{ACKNOWLEDGEMENT!r}, since the published theorem is false; use PureFilter"
            raise refuse("acknowledge", acknowledge, rule)
        super().__init__(epsilon=epsilon, delta=delta)
        self._run_epsilon = None if run_epsilon is None else one(positive, "run_epsilon", run_epsilon)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """Infinite: the published promise does not hold, at no δ below the chances of all runs together."""
        plain_cost("delta", delta, most=1.0)
        return math.inf

    def _fits(self, cost: Declared | float) -> bool:
        # The printed rule, for a round with this (ε_max, δ): strictly below ε.
        loss = in_loss(cost)
        under = math.nextafter(self._limit, 0.0)
        return loss.delta <= self._delta and self._sum.fits(loss.epsilon, limit=under)

    def _count(self, cost: Declared | float) -> None:
        self._sum.add(in_loss(cost).epsilon)

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """The printed rule, with ε_max of one run."""
        largest = self._run_epsilon
        if largest is None:
            largest = probabilistic_price(watcher, self._delta, None)
        if not self.fits(Loss(epsilon=largest, delta=self._delta)):
            raise self._exhausted(largest)
        return RunTerms(allowed=math.inf)

    def _admit_run(self, terms: RunTerms) -> None:
        """Nothing is due before a run."""

    def _state(self) -> State:
        return {
            "epsilon": self._limit,
            "delta": self._delta,
            "acknowledge": ACKNOWLEDGEMENT,
            "run_epsilon": self._run_epsilon,
            "sum": hex(self._sum.units),
        }

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(
            epsilon=state["epsilon"],
            delta=state["delta"],
            acknowledge=state["acknowledge"],
            run_epsilon=state["run_epsilon"],
        )
        found._sum = ExactSum(int(state["sum"], 16))
        return found
