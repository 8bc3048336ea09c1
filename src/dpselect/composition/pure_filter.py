"""The default filter: pure ε for a whole adaptive interaction, paid by what was answered."""

from __future__ import annotations

from typing import Self

from dpselect.checks import one, positive, refuse
from dpselect.composition.costs import Declared, plain_cost
from dpselect.composition.exact_sum import ExactSum, in_units
from dpselect.composition.filter import Filter, RunTerms, State, Watcher


class PureFilter(Filter):
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
    covers_kept_threshold = True

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self._limit = one(positive, "epsilon", epsilon)
        self._sum = ExactSum()

    @property
    def limit(self) -> float:
        """ε."""
        return self._limit

    @property
    def spent(self) -> float:
        """The losses so far, added exactly and rounded up; an open run is not in it."""
        return self._sum.upward()

    @property
    def remaining(self) -> float:
        """What is left outside an open run, rounded down."""
        return self._sum.left(self._limit)

    def _fits(self, cost: Declared | float) -> bool:
        return self._sum.fits(_pure(cost), limit=self._limit)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, at any δ."""
        plain_cost("delta", delta, most=1.0)
        return self._limit

    def _count(self, cost: Declared | float) -> None:
        self._sum.add(_pure(cost))

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run may spend all that is left, question by question."""
        return RunTerms(allowed=self.remaining)

    def _admit_run(self, terms: RunTerms) -> None:
        """Nothing is due before a run."""

    def _books_after(self, epsilon: float) -> ExactSum:
        return ExactSum(self._sum.units + in_units(epsilon))

    def _keep_books(self, books: ExactSum) -> None:
        self._sum = books

    def _state(self) -> State:
        return {"epsilon": self._limit, "sum": hex(self._sum.units)}

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(state["epsilon"])
        found._sum = ExactSum(int(state["sum"], 16))
        return found


def _pure(cost: Declared | float) -> float:
    if not isinstance(cost, Declared):
        return plain_cost("cost", cost)
    if cost.loss.delta > 0:
        raise refuse("cost", cost.loss, "pure, with delta = 0: this filter promises no delta; use AdvancedFilter")
    return cost.loss.epsilon
