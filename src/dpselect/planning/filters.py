"""What each filter can promise at the job's (ε, δ), and how many runs it lets through."""

from __future__ import annotations

import functools
import math

import numpy as np

from dpselect.checks import FloatArray, refuse
from dpselect.composition import (
    AdvancedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    RepairedReportingFilter,
    ZCDPFilter,
)
from dpselect.composition.filter import Watcher
from dpselect.errors import BudgetExhausted
from dpselect.numerics.roots import largest_safe
from dpselect.planning.contender import FilterName
from dpselect.privacy.conversions import pure_renyi, pure_rho, pure_to_gaussian, renyi_to_approximate
from dpselect.privacy.profiles import selection_renyi

#: Orders tried for the Rényi filter, which fixes one beforehand.
_ORDERS = 1.0 + np.geomspace(0.5, 2000.0, 40)


@functools.lru_cache(maxsize=64)
def zcdp_budget(epsilon: float, delta: float) -> float:
    """The largest ρ whose ε at δ is within ``epsilon``."""
    return largest_safe(lambda rho: ZCDPFilter(rho).epsilon(delta=delta), epsilon, start=epsilon, tolerance=1e-6)


@functools.lru_cache(maxsize=64)
def gaussian_budget(epsilon: float, delta: float) -> float:
    """The largest μ whose ε at δ is within ``epsilon``."""
    return largest_safe(lambda mu: GaussianFilter(mu).epsilon(delta=delta), epsilon, start=epsilon, tolerance=1e-6)


@functools.lru_cache(maxsize=64)
def renyi_budgets(epsilon: float, delta: float) -> FloatArray:
    """τ at each order tried; 0 where the conversion alone exceeds ``epsilon``."""
    found = [epsilon - renyi_to_approximate(order, 0.0, delta=delta) for order in _ORDERS]
    # The conversion may have been cut at 0, and the filter rounds it up: ask the filter itself in the end.
    return np.array(
        [_renyi_fit(order, max(tau, 0.0), epsilon, delta) for order, tau in zip(_ORDERS, found, strict=True)]
    )


def _renyi_fit(order: float, tau: float, epsilon: float, delta: float) -> float:
    while tau > 0 and renyi_to_approximate(order, tau, delta=delta) > epsilon:
        tau *= 1.0 - 1e-9
        if tau < 1e-9 * epsilon:
            return 0.0
    return tau


def runs_allowed(
    name: FilterName, run_costs: FloatArray, *, shifts: FloatArray, horizon: FloatArray, epsilon: float, delta: float
) -> FloatArray:
    """How many runs of each setting fit, from the pure cost of one run capped at its horizon.

    ``shifts`` are the μ of the profile bound (THEORY §3), which the Rényi price may use instead.
    """
    if name == "advanced":
        slack = math.sqrt(-2.0 * math.log(delta))
        root = math.sqrt(slack * slack + 2.0 * epsilon) - slack
        return np.floor(np.square(root / run_costs))
    if name == "zcdp":
        return np.asarray(np.floor(zcdp_budget(epsilon, delta) / pure_rho(run_costs)))
    if name == "gaussian":
        each = np.array([pure_to_gaussian(cost) for cost in run_costs.tolist()])
        return np.floor(np.square(gaussian_budget(epsilon, delta) / each))
    if name == "renyi":
        return np.asarray(np.floor(_renyi_shares(run_costs, shifts, horizon, epsilon, delta).max(axis=1)))
    raise refuse("filter", name, "one that is paid before a run starts")


def _renyi_shares(
    run_costs: FloatArray, shifts: FloatArray, horizon: FloatArray, epsilon: float, delta: float
) -> FloatArray:
    pure = np.asarray(pure_renyi(_ORDERS, run_costs[:, None]))
    many = zip(shifts.tolist(), (horizon + 1.0).tolist(), strict=True)
    profile = np.stack([selection_renyi(_ORDERS, shift=shift, outputs=outputs) for shift, outputs in many])
    return np.asarray(renyi_budgets(epsilon, delta) / np.minimum(pure, profile))


def best_order(run_cost: float, *, shift: float, horizon: int, epsilon: float, delta: float) -> float:
    """The Rényi order that lets most runs of one setting through."""
    shares = _renyi_shares(np.array([run_cost]), np.array([shift]), np.array([float(horizon)]), epsilon, delta)
    return float(_ORDERS[int(np.argmax(shares[0]))])


def make_filter(name: FilterName, *, epsilon: float, delta: float, order: float | None = None) -> Filter:
    """The filter that promises (ε, δ).

    >>> make_filter("zcdp", epsilon=1.0, delta=1e-6).epsilon(delta=1e-6) <= 1.0
    True
    """
    if name == "pure":
        return PureFilter(epsilon)
    if name == "repaired":
        return RepairedReportingFilter(epsilon=epsilon, delta=delta)
    if name == "advanced":
        # Runs are paid at their pure cost, so all of δ can go to adding in quadrature.
        return AdvancedFilter(epsilon=epsilon, delta=delta, slack=delta)
    if name == "zcdp":
        return ZCDPFilter(zcdp_budget(epsilon, delta))
    if name == "gaussian":
        return GaussianFilter(gaussian_budget(epsilon, delta))
    if name == "renyi" and order is not None:
        budget = _renyi_fit(order, max(0.0, epsilon - renyi_to_approximate(order, 0.0, delta=delta)), epsilon, delta)
        return RenyiFilter(order=order, tau=budget)
    raise refuse("filter", name, "known, and a Rényi filter has an order")


def count_runs(budget: Filter, watcher: Watcher, *, horizon: int, most: int) -> int:
    """How many runs the filter itself lets through, each at its full price."""
    for number in range(most):
        try:
            held = budget.open_run(watcher, horizon=horizon)
        except BudgetExhausted:
            return number
        held.settle(0.0)
    return most
