"""From Rényi curves to (ε, δ), in the two senses of δ, kept apart (THEORY §3).

*Probabilistic* DP bounds the chance that the privacy loss exceeds ε; filters and odometers that stop on the realised
loss need it. *Approximate* DP is weaker and its conversion tighter; using it where the other is needed is wrong.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, non_negative, numbers, one, probability, refuse

#: Covers the five roundings of τ + log(1/δ)/(α - 1), a sum of positive terms, and more: a logarithm has two units.
_UP = 1.0 + 2.0**-49


def _curve(alpha: ArrayLike, renyi: ArrayLike) -> list[FloatArray]:
    orders = numbers("alpha", alpha)
    if not ((orders > 1) & np.isfinite(orders)).all():
        raise refuse("alpha", alpha, "above 1 and finite")
    values = numbers("renyi", renyi)
    non_negative("renyi", np.where(np.isinf(values) & (values > 0), 0.0, values))
    return broadcast(alpha=orders, renyi=values)


def renyi_to_probabilistic(alpha: ArrayLike, renyi: ArrayLike, *, delta: float) -> float:
    """ε of (ε, δ)-**probabilistic** DP: min over α of τ(α) + log(1/δ)/(α - 1) (Markov).

    >>> renyi_to_probabilistic([2.0, 10.0], [0.1, 0.5], delta=1e-5)
    1.779213...
    """
    orders, values = _curve(alpha, renyi)
    log_delta = math.log(one(probability, "delta", delta))
    return float(np.min(values - log_delta / (orders - 1.0))) * _UP


def renyi_to_approximate(alpha: ArrayLike, renyi: ArrayLike, *, delta: float) -> float:
    """ε of (ε, δ)-**approximate** DP: min over α of τ + log((α-1)/α) - (log δ + log α)/(α - 1).

    Balle, Barthe, Gaboardi, Hsu and Sato, AISTATS 2020, Theorem 21. Not for filters over realised losses.

    >>> renyi_to_approximate([2.0, 10.0], [0.1, 0.5], delta=1e-5)
    1.4180106...
    """
    orders, values = _curve(alpha, renyi)
    log_delta = math.log(one(probability, "delta", delta))
    less, log_order = orders - 1.0, np.log(orders)
    log_less = np.log(less)
    found = values + (log_less - log_order) - (log_delta + log_order) / less
    # The terms may cancel, so the roundings (at most eight each) are those of their sizes.
    sizes = values + np.abs(log_less) + log_order + (log_order - log_delta) / less
    return max(0.0, float(np.min(found + 2.0**-49 * sizes)))
