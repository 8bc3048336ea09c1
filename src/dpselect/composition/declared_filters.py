"""Filters over costs that are declared before each release: Rényi, zCDP, Gaussian.

For a sparse vector these charge a whole run before it starts, whatever it will answer; the realised loss of the run
does not come back. They cover runs that stop at their first ⊤.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np

from dpselect.checks import one, positive, refuse
from dpselect.composition.costs import Declared, declared, plain_cost
from dpselect.composition.exact_sum import ExactSum, in_units, round_down, round_up
from dpselect.composition.filter import Filter, RunTerms, State, Watcher
from dpselect.composition.run_prices import pure_price, pure_to_gaussian, renyi_price
from dpselect.privacy.concentrated import pure_rho
from dpselect.privacy.conversions import renyi_to_approximate
from dpselect.privacy.profiles import selection_epsilon
from dpselect.privacy.renyi import ORDERS

_UP = 1.0 + 1e-14


class DeclaredFilter(Filter):
    """Admits a run of a sparse vector by charging its declared price; the realised loss does not come back."""

    @abstractmethod
    def _price(self, watcher: Watcher, horizon: int | None) -> Any:
        """The cost of one run in the filter's unit."""

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at its declared price."""
        price = declared(self._price(watcher, horizon))
        if not self._fits(price):
            raise self._exhausted(price)
        return RunTerms(allowed=math.inf, due=price)

    def _admit_run(self, terms: RunTerms) -> None:
        self._count(terms.due)

    def _books_after(self, epsilon: float) -> None:
        """The run was paid for when it started."""

    def _keep_books(self, books: None) -> None:
        """Nothing changes."""


class _SummingFilter(DeclaredFilter):
    """One number, added up to a limit."""

    _unit: str

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = one(positive, self._unit, limit)
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

    @abstractmethod
    def _converted(self, cost: Declared) -> float:
        """What a mechanism's outcome costs in this filter's unit."""

    def _in_unit(self, cost: Declared | float) -> float:
        return self._converted(cost) if isinstance(cost, Declared) else plain_cost(self._unit, cost)

    def _fits(self, cost: Declared | float) -> bool:
        return self._sum.fits(self._in_unit(cost), limit=self._limit)

    def _count(self, cost: Declared | float) -> None:
        self._sum.add(self._in_unit(cost))

    def _state(self) -> State:
        return {"limit": self._limit, "sum": hex(self._sum.units)}

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(state["limit"])
        found._sum = ExactSum(int(state["sum"], 16))
        return found


class ZCDPFilter(_SummingFilter):
    """ρ-zCDP: Σρ_i ≤ ρ, each ρ_i chosen adaptively (THEORY §4). A pure ε costs ε²/2, unless its mechanism says less.

    >>> budget = ZCDPFilter(rho=0.5)
    >>> budget.charge(0.125)
    >>> budget.remaining, round(budget.epsilon(delta=1e-6), 3)
    (0.375, 5.2...)
    """

    name = "zcdp"
    _unit = "rho"

    def __init__(self, rho: float) -> None:
        super().__init__(rho)

    def _converted(self, cost: Declared) -> float:
        return cost.in_rho()

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta``, by the best Rényi order; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return renyi_to_approximate(ORDERS, ORDERS * self._limit * _UP, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return float(pure_rho(pure_price(watcher, horizon)))


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
        self._order = one(positive, "order", order)
        if self._order <= 1.0:
            raise refuse("order", order, "above 1")

    def _converted(self, cost: Declared) -> float:
        return cost.in_tau(self._order)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` from the fixed order; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return renyi_to_approximate(self._order, self._limit, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return renyi_price(watcher, self._order, horizon)

    def _state(self) -> State:
        return {"order": self._order, **super()._state()}

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(order=state["order"], tau=state["limit"])
        found._sum = ExactSum(int(state["sum"], 16))
        return found


class GaussianFilter(DeclaredFilter):
    """μ-Gaussian DP: Σμ_i² ≤ μ² (THEORY §4). Costs are μ_i; squares are taken, added and compared exactly.

    >>> budget = GaussianFilter(mu=1.0)
    >>> budget.charge(0.6)
    >>> budget.fits(0.79), budget.fits(0.81), round(budget.remaining, 6)
    (True, False, 0.8)
    """

    name = "gaussian"

    def __init__(self, mu: float) -> None:
        super().__init__()
        self._limit = one(positive, "mu", mu)
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
        return round_down(math.isqrt(max(0, in_units(self._limit) ** 2 - self._squares)))

    def _fits(self, cost: Declared | float) -> bool:
        return self._squares + self._square(cost) <= in_units(self._limit) ** 2

    def _count(self, cost: Declared | float) -> None:
        self._squares += self._square(cost)

    def _square(self, cost: Declared | float) -> int:
        return in_units(cost.in_mu() if isinstance(cost, Declared) else plain_cost("mu", cost)) ** 2

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` from the Gaussian profile at μ; infinite at δ = 0."""
        if plain_cost("delta", delta, most=1.0) == 0.0:
            return math.inf
        return float(np.asarray(selection_epsilon(delta, shift=self._limit, outputs=1)))

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return pure_to_gaussian(pure_price(watcher, horizon))

    def _state(self) -> State:
        return {"mu": self._limit, "squares": hex(self._squares)}

    @classmethod
    def _from_state(cls, state: State) -> Self:
        found = cls(state["mu"])
        found._squares = ExactSum(int(state["squares"], 16)).units
        return found
