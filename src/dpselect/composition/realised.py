"""Filters over realised losses: pure ε, and (ε, δ) for runs that are never cut off (THEORY §4).

Both add up what was answered. What they look at before a run, and before each question, is what tells them apart.
"""

from __future__ import annotations

import functools
import math
from typing import ClassVar, NamedTuple

from dpselect.checks import one, positive, probability, refuse
from dpselect.composition.costs import Declared, plain_cost, run_cost
from dpselect.composition.filter import Filter, RunTerms, Watcher, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import BudgetExhausted
from dpselect.rounding import in_units, round_down, round_up


@functools.lru_cache(maxsize=4096)
def _silent(watcher: Watcher, questions: int) -> float:
    return watcher.silent_probability(questions)


class Realised(NamedTuple):
    """Sums, in multiples of 2^-1074."""

    losses: int = 0
    chances: int = 0


class RealisedFilter(Filter):
    """Losses add up exactly to ε: declared ones, and those of runs as they turned out."""

    empty = Realised()
    #: Why a cost with a δ is refused.
    _pure_rule: str

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self._limit = one(positive, "epsilon", epsilon)
        self._limit_units = in_units(self._limit)

    @property
    def limit(self) -> float:
        """The most that may be spent, in the filter's unit."""
        return self._limit

    @property
    def spent(self) -> float:
        """The losses so far, added exactly and rounded up; an open run is not in it."""
        return round_up(self._books.losses)

    @property
    def remaining(self) -> float:
        """What is left outside an open run, rounded down; 0 where the losses have reached ε."""
        return round_down(max(0, self._limit_units - self._books.losses))

    def add_cost(self, books: Realised, cost: Declared | float) -> Realised:
        """One more pure ε."""
        if isinstance(cost, Declared):
            if cost.loss.delta > 0:
                raise refuse("cost", cost.loss, self._pure_rule)
            cost = cost.loss.epsilon
        self._check_books(books)
        return Realised(books.losses + in_units(plain_cost("cost", cost)), books.chances)

    def holds(self, books: Realised) -> bool:
        """Whether the losses are within ε."""
        self._check_books(books)
        return books.losses <= self._limit_units

    def add_run(self, books: Realised, epsilon: float) -> Realised:
        """One more run, at what it turned out to cost."""
        self._check_books(books)
        return Realised(books.losses + in_units(run_cost(epsilon)), books.chances)


class PureFilter(RealisedFilter):
    """Pure ε-differential privacy, no δ (THEORY §4).

    Each question is put only if every answer to it keeps the total of realised losses within ε, so no transcript that
    can occur costs more than ε. Nothing is set aside for bad luck, and nothing needs to be known about the number of
    questions. Costs are pure ε; one with δ > 0 is refused, since no pure budget can cover it. The realised loss of a
    run comes in through a sparse vector alone, which has looked at both answers before each question.

    Parameters
    ----------
    epsilon : float
        The most that may be spent, positive.

    Examples
    --------
    >>> budget = PureFilter(epsilon=1.0)
    >>> budget.charge(0.75)
    >>> budget.fits(0.25), budget.fits(0.5), budget.remaining
    (True, False, 0.25)
    >>> budget.charge(0.5)
    Traceback (most recent call last):
    ...
    dpselect.errors.BudgetExhausted: the next release costs 0.5 and does not fit: 0.75 of 1.0 is spent; ...
    """

    name = "pure"
    saved_limits: ClassVar = {"epsilon": ("epsilon", "_limit")}
    saved_sums: ClassVar = {"sum": "losses"}
    covers_kept_threshold = True
    takes_open_run = True
    _pure_rule = "pure, with delta = 0: this filter promises no delta; use AdvancedFilter"

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, at any δ."""
        plain_cost("delta", delta, most=1.0)
        return self._limit

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run may spend all that is left, question by question; nothing is due before it."""
        check_watcher(watcher, horizon)
        return RunTerms(allowed=self.remaining, books=self._books)


class RepairedReportingFilter(RealisedFilter):
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
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.3, sigma_threshold=0.1, sigma_query=0.2)
    >>> budget = RepairedReportingFilter(epsilon=1.0, delta=1e-6)
    >>> budget.open_run(watcher).allowed, 0 < budget.spent_delta < 1e-6
    (inf, True)
    """

    name = "repaired"
    saved_limits: ClassVar = {"epsilon": ("epsilon", "_limit"), "delta": ("delta", "_delta")}
    saved_sums: ClassVar = {"sum": "losses", "deltas": "chances"}
    _pure_rule = (
        "pure: an approximate delta does not bound the chance that the loss exceeds epsilon; use AdvancedFilter"
    )

    def __init__(self, *, epsilon: float, delta: float) -> None:
        super().__init__(epsilon)
        self._delta = one(probability, "delta", delta)

    @property
    def delta(self) -> float:
        """δ."""
        return self._delta

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, from the stated δ on."""
        return self._limit if plain_cost("delta", delta, most=1.0) >= self._delta else math.inf

    @property
    def spent_delta(self) -> float:
        """The chances charged so far, added and rounded up."""
        return round_up(self._books.chances)

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at the chance that its loss exceeds what is left."""
        horizon = check_watcher(watcher, horizon)
        # ε(⊥^(j-1)⊤) ≤ B for j up to here; one more question than the longest run of ⊥ before an affordable ⊤.
        longest = loss_table(watcher).longest_before_top(self.remaining)
        affordable = 0 if longest is None else longest + 1
        # A capped run that cannot reach the first unaffordable answer cannot overshoot. At horizon = affordable it can:
        # its last answer may be one more ⊥, which may cost more than the ⊤ that was looked at.
        chance = _silent(watcher, affordable)
        if horizon is not None and horizon < affordable:
            chance = 0.0
        books = Realised(self._books.losses, self._books.chances + in_units(chance))
        if books.chances > in_units(self._delta):
            raise BudgetExhausted(
                f"the next run may overshoot what is left of epsilon with probability {chance!r} and does not fit: "
                f"{self.spent_delta!r} of delta = {self._delta!r} is spent; nothing was spent on it",
                spent=self.spent,
                budget=self._limit,
                next_cost=loss_table(watcher).loss(0, 1),
            )
        return RunTerms(allowed=math.inf, books=books)
