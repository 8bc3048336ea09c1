"""Advanced composition with adaptively chosen costs."""

from __future__ import annotations

import math
from typing import Self

from dpselect.checks import one, positive, probability, refuse
from dpselect.composition.costs import Declared, in_loss, plain_cost
from dpselect.composition.declared_filters import DeclaredFilter
from dpselect.composition.exact_sum import ExactSum
from dpselect.composition.filter import State, Watcher
from dpselect.composition.run_prices import probabilistic_price, pure_price
from dpselect.privacy.loss import Loss

#: Covers the rounding of a few double-precision operations.
_UP = 1.0 + 1e-14


class AdvancedFilter(DeclaredFilter):
    """(ε, δ) by advanced composition with adaptively chosen costs (Whitehouse, Ramdas, Rogers and Wu, ICML 2023).

    A release goes ahead while √(2·log(1/δ')·Σε_i²) + ½Σε_i² ≤ ε, or Σε_i ≤ ε, and Σδ_i ≤ δ'', that release included.
    (The first bound fails at any time at all with probability at most δ', the second never; so the loss passes ε with
    probability at most δ', whichever of the two let the last release through.) Costs are ε or (ε, δ), known beforehand.
    A Gaussian run without a horizon is charged by the Zhu-Wang bound, as in the paper's baseline.

    Parameters
    ----------
    epsilon, delta : float
        What is promised in all.
    slack : float, optional
        δ', the part of δ that pays for adding in quadrature; the rest, δ'', is for the δ_i. Half by default.
    run_delta : float, optional
        δ_i of one run of a sparse vector without a horizon; a thousandth of δ'' by default.

    Examples
    --------
    >>> budget = AdvancedFilter(epsilon=1.0, delta=1e-5)
    >>> for _ in range(200):
    ...     budget.charge(0.01)
    >>> budget.spent  # adding up would have made this 2.0
    0.708...
    """

    name = "advanced"

    def __init__(
        self, *, epsilon: float, delta: float, slack: float | None = None, run_delta: float | None = None
    ) -> None:
        super().__init__()
        self._limit = one(positive, "epsilon", epsilon)
        self._delta = one(probability, "delta", delta)
        self._slack = 0.5 * self._delta if slack is None else one(probability, "slack", slack)
        if not self._slack <= self._delta:
            raise refuse("slack", slack, f"at most delta = {self._delta!r}")
        # Subtraction may round up; one step down keeps δ' + δ'' ≤ δ.
        self._delta_limit = max(0.0, math.nextafter(self._delta - self._slack, 0.0))
        self._run_delta = 1e-3 * self._delta_limit if run_delta is None else one(probability, "run_delta", run_delta)
        if not self._run_delta <= self._delta_limit:
            raise refuse("run_delta", run_delta, f"at most delta - slack = {self._delta_limit!r}, or no run ever fits")
        self._sum = ExactSum()
        self._squares = ExactSum()
        self._deltas = ExactSum()

    @property
    def limit(self) -> float:
        """ε."""
        return self._limit

    @property
    def spent(self) -> float:
        """√(2·log(1/δ')·Σε_i²) + ½Σε_i², or Σε_i where that is less, rounded up."""
        return min(self._sum.upward(), self._total(self._squares.upward()))

    @property
    def spent_delta(self) -> float:
        """Σδ_i, rounded up."""
        return self._deltas.upward()

    @property
    def remaining(self) -> float:
        """ε minus what was spent; costs do not add up in this filter, so ask :meth:`fits`."""
        spent = self.spent
        return max(0.0, math.nextafter(self._limit - spent, 0.0)) if spent else self._limit

    def _total(self, squares: float) -> float:
        return (math.sqrt(-2.0 * math.log(self._slack) * squares) + 0.5 * squares) * _UP

    def _fits(self, cost: Declared | float) -> bool:
        loss = in_loss(cost)
        if not self._deltas.fits(loss.delta, limit=self._delta_limit):
            return False
        if self._sum.fits(loss.epsilon, limit=self._limit):
            return True
        return self._total(self._squares_with(loss.epsilon)) <= self._limit

    def _squares_with(self, epsilon: float) -> float:
        squares = ExactSum(self._squares.units)
        squares.add(_square_upward(epsilon))
        return squares.upward()

    def _why(self, cost: Declared | float) -> str:
        loss = in_loss(cost)
        if not self._deltas.fits(loss.delta, limit=self._delta_limit):
            return (
                f". Its delta does not fit: {self.spent_delta!r} of delta - slack = {self._delta_limit!r} is spent, "
                f"and {loss.delta!r} more would be due"
            )
        total = self._total(self._squares_with(loss.epsilon))
        return (
            f". With it the costs would come to {total!r} in quadrature (slack = {self._slack!r}), and added up they "
            f"do not fit either: this filter is for many small costs"
        )

    def _count(self, cost: Declared | float) -> None:
        loss = in_loss(cost)
        self._sum.add(loss.epsilon)
        self._squares.add(_square_upward(loss.epsilon))
        self._deltas.add(loss.delta)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, from the promised δ on."""
        return self._limit if plain_cost("delta", delta, most=1.0) >= self._delta else math.inf

    def _price(self, watcher: Watcher, horizon: int | None) -> Loss:
        if horizon is not None:
            return Loss(epsilon=pure_price(watcher, horizon))
        return Loss(epsilon=probabilistic_price(watcher, self._run_delta, None), delta=self._run_delta)

    def _state(self) -> State:
        return {
            "epsilon": self._limit,
            "delta": self._delta,
            "slack": self._slack,
            "run_delta": self._run_delta,
            "sum": hex(self._sum.units),
            "squares": hex(self._squares.units),
            "deltas": hex(self._deltas.units),
        }

    @classmethod
    def _from_state(cls, state: State) -> Self:
        # Where all of δ is slack there is nothing for runs, which is no run_delta that could be asked for.
        run_delta = state["run_delta"] or None
        found = cls(epsilon=state["epsilon"], delta=state["delta"], slack=state["slack"], run_delta=run_delta)
        found._sum = ExactSum(int(state["sum"], 16))
        found._squares = ExactSum(int(state["squares"], 16))
        found._deltas = ExactSum(int(state["deltas"], 16))
        return found


def _square_upward(value: float) -> float:
    square = value * value
    return math.nextafter(square, math.inf) if value else 0.0
