"""What one run of above threshold costs when it must be paid before it starts."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfinv, ndtri

if TYPE_CHECKING:
    from dpselect.composition.filter import Watcher

#: Covers the rounding of a few double-precision operations.
_UP = 1.0 + 1e-14


@functools.lru_cache(maxsize=256)
def pure_price(watcher: Watcher, horizon: int | None) -> float:
    """ε of a run that stops at its first ⊤ or at the horizon. Gaussian runs need the horizon (THEORY §2)."""
    return float(np.asarray(watcher.epsilon(horizon)))


@functools.lru_cache(maxsize=256)
def renyi_price(watcher: Watcher, order: float, horizon: int | None) -> float:
    """τ(α) of a run that stops at its first ⊤."""
    return float(np.asarray(watcher.renyi(order, horizon)))


@functools.lru_cache(maxsize=256)
def probabilistic_price(watcher: Watcher, delta: float, horizon: int | None) -> float:
    """ε that the loss of one run exceeds with probability at most ``delta`` (probabilistic DP, THEORY §3)."""
    return watcher.probabilistic_epsilon(delta, horizon)


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
