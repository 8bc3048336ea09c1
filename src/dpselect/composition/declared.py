"""Filters over costs that are declared before each release: advanced composition, Rényi, zCDP, Gaussian.

For a sparse vector these charge a whole run before it starts, whatever it will answer; the realised loss of the run
does not come back. They cover runs that stop at their first ⊤.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpselect.checks import one, positive, probability, refuse
from dpselect.composition.costs import (
    UP,
    Declared,
    declared,
    in_loss,
    plain_cost,
    probabilistic_price,
    pure_price,
    renyi_price,
    run_cost,
)
from dpselect.composition.filter import Filter, RunTerms, State, Watcher, check_watcher
from dpselect.privacy.conversions import ORDERS, pure_rho, pure_to_gaussian, renyi_to_approximate
from dpselect.privacy.loss import Loss
from dpselect.privacy.profiles import selection_epsilon
from dpselect.rounding import in_units, round_down, round_up


class DeclaredFilter(Filter):
    """Admits a run of a sparse vector by charging its declared price; the realised loss does not come back."""

    _limit: float

    @property
    def limit(self) -> float:
        """The most that may be spent, in the filter's unit."""
        return self._limit

    @abstractmethod
    def _price(self, watcher: Watcher, horizon: int | None) -> Any:
        """The cost of one run in the filter's unit."""

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at its declared price."""
        price = declared(self._price(watcher, check_watcher(watcher, horizon)))
        books = self.add_cost(self._books, price)
        if not self.holds(books):
            raise self._exhausted(price)
        return RunTerms(allowed=math.inf, books=books)

    def add_run(self, books: Any, epsilon: float) -> Any:
        """The run was paid for when it started."""
        run_cost(epsilon)
        self._check_books(books)
        return books


class Summed(NamedTuple):
    """One sum, of what :meth:`SummingFilter._counted` makes of each cost."""

    total: int = 0


class SummingFilter(DeclaredFilter):
    """One number, added up exactly to a limit, in multiples of 2^-1074."""

    empty = Summed()
    saved_sums: ClassVar[Mapping[str, str]] = {"sum": "total"}
    _unit: str

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = one(positive, self._unit, limit)
        self._most = self._counted(self._limit)

    @property
    def spent(self) -> float:
        """What was spent, rounded up."""
        return round_up(self._books.total)

    @property
    def remaining(self) -> float:
        """What is left, rounded down."""
        return round_down(max(0, self._most - self._books.total))

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta``; infinite at δ = 0."""
        return self._at(delta) if plain_cost("delta", delta, most=1.0) > 0.0 else math.inf

    @abstractmethod
    def _at(self, delta: float) -> float:
        """ε at a δ above 0."""

    @abstractmethod
    def _converted(self, cost: Declared) -> float:
        """What a mechanism's outcome costs in this filter's unit."""

    @staticmethod
    def _counted(value: float) -> int:
        """What a cost adds to the sum."""
        return in_units(value)

    def add_cost(self, books: Summed, cost: Declared | float) -> Summed:
        """One more cost; a number is in the filter's own unit."""
        value = self._converted(cost) if isinstance(cost, Declared) else cost
        self._check_books(books)
        return Summed(books.total + self._counted(plain_cost(self._unit, value)))

    def holds(self, books: Summed) -> bool:
        """Whether the sum is within the limit."""
        self._check_books(books)
        return books.total <= self._most


class ZCDPFilter(SummingFilter):
    """ρ-zCDP: Σρ_i ≤ ρ, each ρ_i chosen adaptively (THEORY §4). A pure ε costs ε²/2, unless its mechanism says less.

    >>> budget = ZCDPFilter(rho=0.5)
    >>> budget.charge(0.125)
    >>> budget.remaining, round(budget.epsilon(delta=1e-6), 3)
    (0.375, 5.2...)
    """

    name = "zcdp"
    saved_limits: ClassVar = {"limit": ("rho", "_limit")}
    _unit = "rho"

    def __init__(self, rho: float) -> None:
        super().__init__(rho)

    def _converted(self, cost: Declared) -> float:
        return cost.in_rho()

    def _at(self, delta: float) -> float:
        """By the best Rényi order."""
        return renyi_to_approximate(ORDERS, ORDERS * self._limit * UP, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return float(pure_rho(pure_price(watcher, horizon)))


class RenyiFilter(SummingFilter):
    """(α, τ)-Rényi DP at one order fixed beforehand: Στ_i(α) ≤ τ (THEORY §4).

    >>> budget = RenyiFilter(order=8.0, tau=1.0)
    >>> budget.charge(0.25)
    >>> budget.remaining, round(budget.epsilon(delta=1e-6), 3)
    (0.75, 2.5...)
    """

    name = "renyi"
    saved_limits: ClassVar = {"order": ("order", "_order"), "limit": ("tau", "_limit")}
    _unit = "tau"

    def __init__(self, *, order: float, tau: float) -> None:
        super().__init__(tau)
        self._order = one(positive, "order", order)
        if self._order <= 1.0:
            raise refuse("order", order, "above 1")

    def _converted(self, cost: Declared) -> float:
        return cost.in_tau(self._order)

    def _at(self, delta: float) -> float:
        """From the fixed order."""
        return renyi_to_approximate(self._order, self._limit, delta=delta)

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return renyi_price(watcher, self._order, horizon)


class GaussianFilter(SummingFilter):
    """μ-Gaussian DP: Σμ_i² ≤ μ² (THEORY §4). Costs are μ_i; squares are taken, added and compared exactly.

    >>> budget = GaussianFilter(mu=1.0)
    >>> budget.charge(0.6)
    >>> budget.fits(0.79), budget.fits(0.81), round(budget.remaining, 6)
    (True, False, 0.8)
    """

    name = "gaussian"
    saved_limits: ClassVar = {"mu": ("mu", "_limit")}
    saved_sums: ClassVar = {"squares": "total"}
    _unit = "mu"

    def __init__(self, mu: float) -> None:
        super().__init__(mu)

    @staticmethod
    def _counted(value: float) -> int:
        """The square, in multiples of 2^-2148, where squares of doubles are whole numbers."""
        return in_units(value) ** 2

    @property
    def spent(self) -> float:
        """√Σμ_i², rounded up."""
        total = self._books.total
        root = math.isqrt(total)
        return round_up(root if root * root == total else root + 1)

    @property
    def remaining(self) -> float:
        """The largest μ that still fits, rounded down."""
        return round_down(math.isqrt(max(0, self._most - self._books.total)))

    def _converted(self, cost: Declared) -> float:
        return cost.in_mu()

    def _at(self, delta: float) -> float:
        """From the Gaussian profile at μ."""
        return float(np.asarray(selection_epsilon(delta, shift=self._limit, outputs=1)))

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return pure_to_gaussian(pure_price(watcher, horizon))


class Advanced(NamedTuple):
    """Sums of the ε_i, of their squares rounded up, and of the δ_i, in multiples of 2^-1074."""

    epsilons: int = 0
    squares: int = 0
    deltas: int = 0


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
    empty = Advanced()
    saved_limits: ClassVar = {
        "epsilon": ("epsilon", "_limit"),
        "delta": ("delta", "_delta"),
        "slack": ("slack", "_slack"),
        "run_delta": ("run_delta", "_run_delta"),
    }
    saved_sums: ClassVar = {"sum": "epsilons", "squares": "squares", "deltas": "deltas"}

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

    @property
    def spent(self) -> float:
        """√(2·log(1/δ')·Σε_i²) + ½Σε_i², or Σε_i where that is less, rounded up."""
        books = self._books
        return min(round_up(books.epsilons), self._in_quadrature(books))

    @property
    def spent_delta(self) -> float:
        """Σδ_i, rounded up."""
        return round_up(self._books.deltas)

    @property
    def remaining(self) -> float:
        """ε minus what was spent; costs do not add up in this filter, so ask :meth:`fits`."""
        spent = self.spent
        return max(0.0, math.nextafter(self._limit - spent, 0.0)) if spent else self._limit

    def _in_quadrature(self, books: Advanced) -> float:
        squares = round_up(books.squares)
        return (math.sqrt(-2.0 * math.log(self._slack) * squares) + 0.5 * squares) * UP

    def add_cost(self, books: Advanced, cost: Declared | float) -> Advanced:
        """One more ε or (ε, δ)."""
        loss = in_loss(cost)
        self._check_books(books)
        return Advanced(
            books.epsilons + in_units(loss.epsilon),
            books.squares + in_units(_square_upward(loss.epsilon)),
            books.deltas + in_units(loss.delta),
        )

    def holds(self, books: Advanced) -> bool:
        """Whether either bound on the ε_i is within ε, and the sum of the δ_i within δ''."""
        self._check_books(books)
        if books.deltas > in_units(self._delta_limit):
            return False
        return books.epsilons <= in_units(self._limit) or self._in_quadrature(books) <= self._limit

    def _why(self, cost: Declared | float) -> str:
        books = self.add_cost(self._books, cost)
        if books.deltas > in_units(self._delta_limit):
            return (
                f". Its delta does not fit: {self.spent_delta!r} of delta - slack = {self._delta_limit!r} is spent, "
                f"and {in_loss(cost).delta!r} more would be due"
            )
        return (
            f". With it the costs would come to {self._in_quadrature(books)!r} in quadrature (slack = "
            f"{self._slack!r}), and added up they do not fit either: this filter is for many small costs"
        )

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε, from the promised δ on."""
        return self._limit if plain_cost("delta", delta, most=1.0) >= self._delta else math.inf

    def _price(self, watcher: Watcher, horizon: int | None) -> Loss:
        if horizon is not None:
            return Loss(epsilon=pure_price(watcher, horizon))
        return Loss(epsilon=probabilistic_price(watcher, self._run_delta, None), delta=self._run_delta)

    @classmethod
    def _from_state(cls, state: State) -> Self:
        # Where all of δ is slack there is nothing for runs, which is no run_delta that could be asked for.
        return super()._from_state({**state, "run_delta": state["run_delta"] or None})


def _square_upward(value: float) -> float:
    square = value * value
    return math.nextafter(square, math.inf) if value else 0.0
