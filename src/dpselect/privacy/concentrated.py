"""From a pure or a bounded-range guarantee to Rényi curves and to zCDP (THEORY §11).

A mechanism has range η when, for any two neighbours, the log ratios of *all* outputs lie in some interval of length η.
Pure ε means the interval [−ε, ε], so a range of at most 2ε; many selections have about half of that.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, non_negative, unwrap
from dpselect.privacy.classical import upward
from dpselect.privacy.renyi import orders

#: Covers the three roundings of α·η²/8, and more.
_UP = 1.0 + 2.0**-50


def range_rho(spread: ArrayLike) -> float | FloatArray:
    """ρ = η²/8 of a mechanism with range η = ``spread`` (Cesar and Rogers 2021), rounded up.

    >>> range_rho(0.5)
    0.03125
    """
    array = non_negative("spread", spread)
    found = [upward(Fraction(value) ** 2 / 8) for value in array.ravel().tolist()]
    return unwrap(np.reshape(found, array.shape))


def pure_rho(epsilon: ArrayLike) -> float | FloatArray:
    """ρ = ε²/2 (Bun and Steinke, TCC 2016, Proposition 3.3), rounded up.

    >>> pure_rho(0.5)
    0.125
    """
    return range_rho(2.0 * non_negative("epsilon", epsilon))


def range_renyi(alpha: ArrayLike, spread: ArrayLike) -> float | FloatArray:
    """The largest Rényi divergence of order ``alpha`` that range η = ``spread`` allows: at most α·η²/8, and η.

    The worst pair has two outputs. With K = (e^(αη) − 1)/(e^η − 1) its divergence is
    (α·log(K(α−1)/(α(K−1))) + log((K−1)/(α−1)))/(α−1).

    >>> range_renyi(2.0, 0.1), range_renyi(1000.0, 0.1)
    (0.00249..., 0.09...)
    """
    order, eta = broadcast(alpha=orders(alpha), spread=non_negative("spread", spread))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        simple = np.minimum(order * eta * eta * 0.125 * _UP, eta)
        less = order - 1.0
        high, low, base = (_log_expm1(part * eta) for part in (order, less, np.ones_like(order)))
        # log K = high − base and log(K − 1) = η + low − base: both without cancellation of their own.
        terms = [order * (np.log(less) - np.log(order)), order * (high - eta - low), eta + low - base, -np.log(less)]
        # What cancels among the terms is paid for in full; the simple bound takes over where that is too much.
        sizes = order * (np.abs(np.log(less)) + np.log(order) + np.abs(high) + 2.0 * np.abs(low) + 2.0 * eta + 2.0)
        exact = (sum(terms) + 2.0**-46 * (sizes + np.abs(base))) / less
    return unwrap(np.where(exact > 0, np.fmin(simple, exact), simple))


def pure_renyi(alpha: ArrayLike, epsilon: ArrayLike) -> float | FloatArray:
    """The Rényi divergence of order ``alpha`` of a pure ε mechanism, at most.

    >>> pure_renyi(2.0, 0.1), pure_renyi(1000.0, 0.1)
    (0.0099..., 0.1)
    """
    eps = non_negative("epsilon", epsilon)
    return unwrap(np.minimum(range_renyi(alpha, 2.0 * eps), eps))


def _log_expm1(x: FloatArray) -> FloatArray:
    """log(e^x − 1)."""
    found: FloatArray = x + np.log(-np.expm1(-x))
    return found
