"""What one run of above threshold costs when it must be paid before it starts."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import erfinv, ndtri

from dpselect.checks import refuse
from dpselect.composition.filter import Watcher
from dpselect.mechanisms.laplace_above_threshold import LaplaceAboveThreshold
from dpselect.privacy.conversions import renyi_to_probabilistic
from dpselect.privacy.renyi import ORDERS

#: Covers the rounding of a few double-precision operations.
_UP = 1.0 + 1e-14


@functools.lru_cache(maxsize=256)
def pure_price(watcher: Watcher, horizon: int | None) -> float:
    """ε of a run that stops at its first ⊤ or at the horizon. Gaussian runs need the horizon (THEORY §2)."""
    if isinstance(watcher, LaplaceAboveThreshold):
        return watcher.epsilon(above=1)
    if horizon is None:
        raise refuse("horizon", None, "given: the pure cost of a Gaussian run has no bound without one")
    return float(np.asarray(watcher.epsilon(horizon)))


@functools.lru_cache(maxsize=256)
def renyi_price(watcher: Watcher, order: float, horizon: int | None) -> float:
    """τ(α) of a run that stops at its first ⊤."""
    if isinstance(watcher, LaplaceAboveThreshold):
        return _pure_to_renyi(pure_price(watcher, None), order)
    unbounded = float(np.asarray(watcher.renyi(order, horizon)))
    return unbounded if horizon is None else min(unbounded, _pure_to_renyi(pure_price(watcher, horizon), order))


@functools.lru_cache(maxsize=256)
def probabilistic_price(watcher: Watcher, delta: float, horizon: int | None) -> float:
    """ε that the loss of one run exceeds with probability at most ``delta`` (probabilistic DP, THEORY §3)."""
    if isinstance(watcher, LaplaceAboveThreshold):
        return pure_price(watcher, None)
    unbounded = renyi_to_probabilistic(ORDERS, watcher.renyi(ORDERS, horizon), delta=delta)
    return unbounded if horizon is None else min(unbounded, pure_price(watcher, horizon))


def _pure_to_renyi(epsilon: float, order: float) -> float:
    """Pure ε implies ε²/2-zCDP (Bun and Steinke, TCC 2016, Proposition 3.3), and τ(α) never exceeds ε."""
    return min(epsilon, order * pure_to_zcdp(epsilon) * _UP)


def pure_to_zcdp(epsilon: float) -> float:
    """ρ = ε²/2.

    >>> pure_to_zcdp(0.5)
    0.125...
    """
    return 0.5 * epsilon * epsilon * _UP


def pure_to_gaussian(epsilon: float) -> float:
    """μ with 2Φ(μ/2) - 1 = tanh(ε/2): the least μ-GDP implied by pure ε.

    Both trade-off curves pass through (1/(1+e^ε), 1/(1+e^ε)), the kink of the pure one, and the Gaussian one is convex.

    >>> pure_to_gaussian(1.0)
    1.232035...
    """
    if epsilon > 30.0:
        # Φ(-t) ≤ e^(-t²/2)/2, so t = √(2ε) puts Φ(-μ/2) below 1/(1 + e^ε).
        return 2.0 * math.sqrt(2.0 * epsilon) * _UP
    if epsilon < 2.0:
        found = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * epsilon)))
    else:
        found = -2.0 * float(ndtri(1.0 / (1.0 + math.exp(epsilon))))
    # The special functions err by far less than this (checked against mpmath in the tests).
    return found * (1.0 + 1e-12)
