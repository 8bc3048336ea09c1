"""What the paper compares its composition with: Zhu–Wang's bound per run under Whitehouse et al.'s filter.

The paper leaves the δ of the comparison open. Three readings: δ = 1/N for every run, with the tight conversion
(AutoDP's); δ = 1/N in all; and δ = 1/N for every run with the conversion by Markov's inequality that Section 2 prints.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray
from dpselect.privacy.conversions import renyi_to_approximate, renyi_to_probabilistic
from dpselect.privacy.renyi import ORDERS, zhu_wang_renyi_as_published


def run_curve(*, population: int, threshold: float, sigma_threshold: float) -> FloatArray:
    """The Rényi bound of one run as published, at the orders of :data:`~dpselect.privacy.renyi.ORDERS`."""
    curve = zhu_wang_renyi_as_published(
        ORDERS,
        sensitivity=1.0 / population,
        threshold_gap=threshold,
        sigma_threshold=sigma_threshold,
        sigma_query=math.sqrt(3) * sigma_threshold,
    )
    return np.asarray(curve)


def reserve(curve: FloatArray, *, delta: float) -> float:
    """ε_max of one run: probabilistic DP, which the published filter needs."""
    return renyi_to_probabilistic(ORDERS, curve, delta=delta)


def advanced(epsilon: ArrayLike, *, rounds: ArrayLike, delta: float) -> FloatArray:
    """√(2 log(1/δ')·nε²) + nε²/2 (Whitehouse et al.; THEORY §4).

    >>> float(advanced(0.1, rounds=100, delta=1e-5).round(3))
    5.299
    """
    squares = np.asarray(rounds, dtype=np.float64) * np.square(np.asarray(epsilon, dtype=np.float64))
    return np.asarray(np.sqrt(-2.0 * math.log(delta) * squares) + 0.5 * squares)


def per_run_cost(curve: FloatArray, *, rounds: ArrayLike, delta: float) -> FloatArray:
    """δ for every run and δ again for the filter, so that (n + 1)·δ is spent: in the baseline's favour."""
    return advanced(renyi_to_approximate(ORDERS, curve, delta=delta), rounds=rounds, delta=delta)


def printed_cost(curve: FloatArray, *, rounds: ArrayLike, delta: float) -> FloatArray:
    """The same δ with the conversion that the paper prints, τ + log(1/δ)/(α − 1)."""
    return advanced(reserve(curve, delta=delta), rounds=rounds, delta=delta)


def in_all_cost(curve: FloatArray, *, rounds: ArrayLike, delta: float) -> FloatArray:
    """With δ in all: half for the filter, half shared by the runs, whose number is granted in hindsight."""
    counted = np.atleast_1d(np.asarray(rounds, dtype=np.int64))
    each = {int(n): renyi_to_approximate(ORDERS, curve, delta=delta / (2 * max(1, int(n)))) for n in np.unique(counted)}
    epsilon = np.array([each[int(n)] for n in counted.ravel()]).reshape(counted.shape)
    return advanced(epsilon, rounds=counted, delta=delta / 2)


#: The three readings of the paper's baseline.
READINGS: dict[str, Callable[..., FloatArray]] = {
    "per run": per_run_cost,
    "in all": in_all_cost,
    "printed": printed_cost,
}
