"""From one kind of guarantee to another: pure and bounded range, Rényi, zCDP, Gaussian, and (ε, δ).

A mechanism has range η when, for any two neighbours, the log ratios of *all* outputs lie in some interval of length η
(THEORY §11). Pure ε means the interval [−ε, ε], so a range of at most 2ε; many selections have about half of that.

(ε, δ) comes in two senses, kept apart (THEORY §3). *Probabilistic* DP bounds the chance that the privacy loss exceeds
ε; filters and odometers that stop on the realised loss need it. *Approximate* DP is weaker and its conversion tighter;
using it where the other is needed is wrong.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfinv, ndtri

from dpselect.checks import FloatArray, broadcast, non_negative, numbers, one, probability, refuse, unwrap
from dpselect.rounding import upward

#: Orders over which conversions to (ε, δ) search.
ORDERS: FloatArray = 1.0 + np.geomspace(1e-3, 1e6, 721)
#: Covers the three roundings of α·η²/8, and more.
_UP = 1.0 + 2.0**-50


def orders(alpha: ArrayLike) -> FloatArray:
    """Rényi orders: above 1 and finite."""
    array = numbers("alpha", alpha)
    if not ((array > 1) & np.isfinite(array)).all():
        raise refuse("alpha", alpha, "above 1 and finite")
    return array


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
    (α·log(K(α−1)/(α(K−1))) + log((K−1)/(α−1)))/(α−1). The result is at most 1e-8 above it for α ≥ 1.001, and less than
    1e-11 where (α−1)η is above 1e-3.

    >>> range_renyi(2.0, 0.1), range_renyi(1000.0, 0.1)
    (0.00249..., 0.09...)
    """
    order, eta = broadcast(alpha=orders(alpha), spread=non_negative("spread", spread))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        # What underflows is not nothing.
        simple = np.minimum(np.nextafter(order * (0.125 * _UP) * eta * eta, np.inf), eta)
        less = order - 1.0
        # With μ = log((K − 1)/(α − 1)) the divergence times α − 1 is μ − α·log w, w = 1 + (e^μ − 1)/(1 + (α − 1)e^μ).
        parts = [eta, _log_mean_exp(less * eta), _log_mean_exp(eta)]
        log_mean = parts[0] + parts[1] - parts[2]
        step = -np.expm1(-log_mean) / (np.exp(-log_mean) + less)
        drop = order * np.log1p(step)
        # μ is off by 12 units of its parts, and enters times (α − 1)·step; the rest is off by 8 of each term.
        off = 12.0 * less * step * sum(parts) + 8.0 * (log_mean + drop)
        exact = (log_mean - drop + 2.0**-53 * off) / less * _UP
    return unwrap(np.where(exact > 0, np.fmin(simple, exact), simple))


def pure_renyi(alpha: ArrayLike, epsilon: ArrayLike) -> float | FloatArray:
    """The Rényi divergence of order ``alpha`` of a pure ε mechanism, at most.

    >>> pure_renyi(2.0, 0.1), pure_renyi(1000.0, 0.1)
    (0.0099..., 0.1)
    """
    eps = non_negative("epsilon", epsilon)
    return unwrap(np.minimum(range_renyi(alpha, 2.0 * eps), eps))


#: log(sinh(x/2)/(x/2)) in powers of x², from the second on.
_LOG_SINHC = (1 / 24, -1 / 2880, 1 / 181440, -1 / 9676800, 1 / 479001600)


def _log_mean_exp(x: FloatArray) -> FloatArray:
    """log((e^x − 1)/x), the logarithm of the mean of e^t over [0, x], to eight units of its own."""
    square = x * x
    series = np.zeros_like(x)
    for coefficient in _LOG_SINHC[::-1]:
        series = (series + coefficient) * square
    direct: FloatArray = x + np.log(-np.expm1(-x) / x)
    return np.where(x < 0.2, 0.5 * x + series, direct)


def pure_to_gaussian(epsilon: float) -> float:
    """μ with 2Φ(μ/2) - 1 = tanh(ε/2): the least μ-GDP implied by pure ε.

    Both trade-off curves pass through (1/(1+e^ε), 1/(1+e^ε)), the kink of the pure one, and the Gaussian one is convex.

    >>> pure_to_gaussian(1.0)
    1.232035...
    """
    if epsilon > 30.0:
        # Φ(-t) ≤ e^(-t²/2)/2, so t = √(2ε) puts Φ(-μ/2) below 1/(1 + e^ε).
        return 2.0 * math.sqrt(2.0 * epsilon) * (1.0 + 1e-14)
    if epsilon < 1e-290:
        # √(π/2)·ε in the limit, and doubling rounds nothing.
        return 2.0 * epsilon
    if epsilon < 2.0:
        found = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * epsilon)))
    else:
        found = -2.0 * float(ndtri(1.0 / (1.0 + math.exp(epsilon))))
    # The special functions err by far less than this (checked against mpmath in the tests).
    return found * (1.0 + 1e-12)


def renyi_to_probabilistic(alpha: ArrayLike, renyi: ArrayLike, *, delta: float) -> float:
    """ε of (ε, δ)-**probabilistic** DP: min over α of τ(α) + log(1/δ)/(α - 1) (Markov).

    >>> renyi_to_probabilistic([2.0, 10.0], [0.1, 0.5], delta=1e-5)
    1.779213...
    """
    order, values = _curve(alpha, renyi)
    log_delta = math.log(one(probability, "delta", delta))
    # Five roundings of a sum of positive terms, and more: a logarithm has two units.
    return float(np.min(values - log_delta / (order - 1.0))) * (1.0 + 2.0**-49)


def renyi_to_approximate(alpha: ArrayLike, renyi: ArrayLike, *, delta: float) -> float:
    """ε of (ε, δ)-**approximate** DP: min over α of τ + log((α-1)/α) - (log δ + log α)/(α - 1).

    Balle, Barthe, Gaboardi, Hsu and Sato, AISTATS 2020, Theorem 21. Not for filters over realised losses.

    >>> renyi_to_approximate([2.0, 10.0], [0.1, 0.5], delta=1e-5)
    1.4180106...
    """
    order, values = _curve(alpha, renyi)
    log_delta = math.log(one(probability, "delta", delta))
    less, log_order = order - 1.0, np.log(order)
    log_less = np.log(less)
    found = values + (log_less - log_order) - (log_delta + log_order) / less
    # The terms may cancel, so the roundings (at most eight each) are those of their sizes.
    sizes = values + np.abs(log_less) + log_order + (log_order - log_delta) / less
    return max(0.0, float(np.min(found + 2.0**-49 * sizes)))


def _curve(alpha: ArrayLike, renyi: ArrayLike) -> list[FloatArray]:
    order, values = orders(alpha), numbers("renyi", renyi)
    non_negative("renyi", np.where(np.isinf(values) & (values > 0), 0.0, values))
    return broadcast(alpha=order, renyi=values)
