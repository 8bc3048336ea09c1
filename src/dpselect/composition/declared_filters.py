"""Filters over costs that are declared before each release: advanced composition, Rényi, zCDP, Gaussian.

For a sparse vector these charge a whole run before it starts, whatever it will answer; the realised loss of the run
does not come back. They cover runs that stop at their first ⊤.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from dpselect.checks import positive, probability, refuse
from dpselect.composition.exact_sum import ExactSum, in_units, round_down, round_up
from dpselect.composition.filter import Filter, RunTerms, State, Watcher
from dpselect.composition.odometer import Costed, plain_cost, stated_loss
from dpselect.composition.run_prices import (
    probabilistic_price,
    pure_price,
    pure_to_gaussian,
    pure_to_zcdp,
    renyi_price,
)
from dpselect.privacy.conversions import renyi_to_approximate
from dpselect.privacy.loss import Loss
from dpselect.privacy.profiles import selection_epsilon
from dpselect.privacy.renyi import ORDERS

_UP = 1.0 + 1e-14


class _DeclaredFilter(Filter):
    """Admits a run by charging its declared price."""

    @abstractmethod
    def _price(self, watcher: Watcher, horizon: int | None) -> Any:
        """The cost of one run in the filter's unit."""

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at its declared price."""
        price = self._price(watcher, horizon)
        if not self.fits(price):
            raise self._exhausted(price)
        return RunTerms(allowed=math.inf, due=price)

    def _admit_run(self, terms: RunTerms) -> None:
        self._count(terms.due)

    def _settle_run(self, epsilon: float) -> None:
        """The run was paid for when it started."""


class _SummingFilter(_DeclaredFilter):
    """One number, added up to a limit."""

    _unit: str

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = float(positive(self._unit, limit))
        self._sum = ExactSum()

    @property
    def limit(self) -> float:
        """The most that may be spent."""
        return self._limit

    @property
    def spent(self) -> float:
        """What was spent, rounded up."""
        return self._sum.upward()

    @property
    def remaining(self) -> float:
        """What is left, rounded down."""
        return self._sum.left(self._limit)

    def fits(self, cost: float) -> bool:
        """Whether a release of this cost may go ahead."""
        return self._sum.fits(plain_cost(self._unit, cost), limit=self._limit)

    def _count(self, cost: float) -> None:
        self._sum.add(plain_cost(self._unit, cost))

    def state(self) -> State:
        """The limit and the exact sum."""
        return {"limit": self._limit, "sum": hex(self._sum.units)}

    @classmethod
    def from_state(cls, state: State) -> _SummingFilter:
        """The filter that was saved."""
        found = cls(state["limit"])
        found._sum = ExactSum(int(state["sum"], 16))
        return found


class ZCDPFilter(_SummingFilter):
    """ρ-zCDP: Σρ_i ≤ ρ, each ρ_i chosen adaptively (THEORY §4). A capped run of pure ε costs ε²/2.

    >>> budget = ZCDPFilter(rho=0.5)
    >>> budget.charge(0.125)
    >>> budget.remaining, round(budget.epsilon(delta=1e-6), 3)
    (0.375, 5.2...)
    """

    name = "zcdp"
    _unit = "rho"

    def __init__(self, rho: float) -> None:
        super().__init__(rho)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta``, by the best Rényi order; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return renyi_to_approximate(ORDERS, ORDERS * self._limit * _UP, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return pure_to_zcdp(pure_price(watcher, horizon))


class RenyiFilter(_SummingFilter):
    """(α, τ)-Rényi DP at one order fixed beforehand: Στ_i(α) ≤ τ (THEORY §4).

    >>> budget = RenyiFilter(order=8.0, tau=1.0)
    >>> budget.charge(0.25)
    >>> budget.remaining, round(budget.epsilon(delta=1e-6), 3)
    (0.75, 2.5...)
    """

    name = "renyi"
    _unit = "tau"

    def __init__(self, *, order: float, tau: float) -> None:
        super().__init__(tau)
        self._order = float(positive("order", order))
        if self._order <= 1.0:
            raise refuse("order", order, "above 1")

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` from the fixed order; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return renyi_to_approximate(self._order, self._limit, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return renyi_price(watcher, self._order, horizon)

    def state(self) -> State:
        """The order, the limit and the exact sum."""
        return {"order": self._order, **super().state()}

    @classmethod
    def from_state(cls, state: State) -> RenyiFilter:
        """The filter that was saved."""
        found = cls(order=state["order"], tau=state["limit"])
        found._sum = ExactSum(int(state["sum"], 16))
        return found


class GaussianFilter(_DeclaredFilter):
    """μ-Gaussian DP: Σμ_i² ≤ μ² (THEORY §4). Costs are μ_i; squares are taken, added and compared exactly.

    >>> budget = GaussianFilter(mu=1.0)
    >>> budget.charge(0.6)
    >>> budget.fits(0.79), budget.fits(0.81), round(budget.remaining, 6)
    (True, False, 0.8)
    """

    name = "gaussian"

    def __init__(self, mu: float) -> None:
        super().__init__()
        self._limit = float(positive("mu", mu))
        # Squares of multiples of 2^-1074 are multiples of 2^-2148: a whole number of those.
        self._squares = 0

    @property
    def limit(self) -> float:
        """μ."""
        return self._limit

    @property
    def spent(self) -> float:
        """√Σμ_i², rounded up."""
        root = math.isqrt(self._squares)
        return round_up(root if root * root == self._squares else root + 1)

    @property
    def remaining(self) -> float:
        """The largest μ that still fits, rounded down."""
        return round_down(math.isqrt(in_units(self._limit) ** 2 - self._squares))

    def fits(self, cost: float) -> bool:
        """Whether a μ of this size may go ahead."""
        return self._squares + in_units(plain_cost("mu", cost)) ** 2 <= in_units(self._limit) ** 2

    def _count(self, cost: float) -> None:
        self._squares += in_units(plain_cost("mu", cost)) ** 2

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` from the Gaussian profile at μ; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return float(np.asarray(selection_epsilon(delta, shift=self._limit, outputs=1)))

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return pure_to_gaussian(pure_price(watcher, horizon))

    def state(self) -> State:
        """The limit and the exact sum of squares."""
        return {"mu": self._limit, "squares": hex(self._squares)}

    @classmethod
    def from_state(cls, state: State) -> GaussianFilter:
        """The filter that was saved."""
        found = cls(state["mu"])
        found._squares = ExactSum(int(state["squares"], 16)).units
        return found


class AdvancedFilter(_DeclaredFilter):
    """(ε, δ) by advanced composition with adaptively chosen costs (Whitehouse, Ramdas, Rogers and Wu, ICML 2023).

    A release goes ahead while √(2·log(1/δ')·Σε_i²) + ½Σε_i² ≤ ε and Σδ_i ≤ δ'', that release included. Costs are ε or
    (ε, δ). A Gaussian run without a horizon is charged by the Zhu-Wang bound, as in the paper's baseline.

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
        self._limit = float(positive("epsilon", epsilon))
        self._delta = float(probability("delta", delta))
        self._slack = 0.5 * self._delta if slack is None else float(probability("slack", slack))
        if not self._slack <= self._delta:
            raise refuse("slack", slack, f"at most delta = {self._delta!r}")
        # Subtraction may round up; one step down keeps δ' + δ'' ≤ δ.
        self._delta_limit = max(0.0, math.nextafter(self._delta - self._slack, 0.0))
        self._run_delta = 1e-3 * self._delta_limit if run_delta is None else float(probability("run_delta", run_delta))
        self._squares = ExactSum()
        self._deltas = ExactSum()

    @property
    def limit(self) -> float:
        """ε."""
        return self._limit

    @property
    def spent(self) -> float:
        """√(2·log(1/δ')·Σε_i²) + ½Σε_i², rounded up."""
        return self._total(self._squares.upward())

    @property
    def spent_delta(self) -> float:
        """Σδ_i, rounded up."""
        return self._deltas.upward()

    @property
    def remaining(self) -> float:
        """ε minus what was spent; costs do not add up in this filter, so ask :meth:`fits`."""
        return max(0.0, self._limit - self.spent)

    def _total(self, squares: float) -> float:
        return (math.sqrt(-2.0 * math.log(self._slack) * squares) + 0.5 * squares) * _UP

    def fits(self, cost: Costed | Loss | float) -> bool:
        """Whether a release of this ε or (ε, δ) may go ahead."""
        loss = stated_loss(cost)
        if not self._deltas.fits(loss.delta, limit=self._delta_limit):
            return False
        squares = ExactSum(self._squares.units)
        squares.add(_square_upward(loss.epsilon))
        return self._total(squares.upward()) <= self._limit

    def _count(self, cost: Costed | Loss | float) -> None:
        loss = stated_loss(cost)
        self._squares.add(_square_upward(loss.epsilon))
        self._deltas.add(loss.delta)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, from the promised δ on."""
        return self._limit if plain_cost("delta", delta, most=1.0) >= self._delta else math.inf

    def _price(self, watcher: Watcher, horizon: int | None) -> Loss:
        if horizon is not None:
            return Loss(epsilon=pure_price(watcher, horizon))
        return Loss(epsilon=probabilistic_price(watcher, self._run_delta, None), delta=self._run_delta)

    def state(self) -> State:
        """The limits and the exact sums."""
        return {
            "epsilon": self._limit,
            "delta": self._delta,
            "slack": self._slack,
            "run_delta": self._run_delta,
            "squares": hex(self._squares.units),
            "deltas": hex(self._deltas.units),
        }

    @classmethod
    def from_state(cls, state: State) -> AdvancedFilter:
        """The filter that was saved."""
        found = cls(epsilon=state["epsilon"], delta=state["delta"], slack=state["slack"], run_delta=state["run_delta"])
        found._squares = ExactSum(int(state["squares"], 16))
        found._deltas = ExactSum(int(state["deltas"], 16))
        return found


def _square_upward(value: float) -> float:
    square = value * value
    return math.nextafter(square, math.inf) if value else 0.0
