"""Root finding that ends on the safe side."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from dpselect.checks import FloatArray
from dpselect.errors import InvalidParameter

#: How well a jump of the cost is located, and what it must fall to, both in the logarithm.
_JUMP, _NEARLY_NOTHING = 0.01, -20.0


def smallest_safe(
    cost: Callable[[float], float], target: float, *, start: float = 1.0, tolerance: float = 1e-12
) -> float:
    """The smallest x > 0 (to a relative ``tolerance``) with ``cost(x) <= target``, for a falling cost.

    The answer has been evaluated and found at or under the target. Where the cost jumps from infinite
    (it cannot be had) to less than 2e-9 of the target, the jump is found to 1% only.

    >>> x = smallest_safe(lambda x: 1 / x, 0.25)
    >>> 1 / x <= 0.25, round(x, 9)
    (True, 4.0)
    """
    # Some points are met twice: as an end of the bracket, and as the root itself.
    cost = functools.cache(cost)

    def excess(log_x: float) -> float:
        value = cost(math.exp(log_x))
        if math.isinf(value):
            return 700.0
        # The quotient of the two may underflow; their logarithms do not.
        return math.log(value) - math.log(target) if value > 0 else -700.0

    low = high = math.log(start)
    step = 1.0
    while excess(high) > 0:
        low, high, step = high, high + step, step * 2
        if high > 700:
            raise InvalidParameter(f"epsilon must be large enough for some noise to reach it; got {target!r}")
    step = 1.0
    while low == high or excess(low) <= 0:
        low, high, step = low - step, min(high, low), step * 2
        if low < -700:
            raise InvalidParameter(
                f"epsilon must be small enough to need noise; got {target!r}, and no noise that was tried costs more"
            )
    while math.isinf(cost(math.exp(low))) and high - low > _JUMP:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    if math.isinf(cost(math.exp(low))) and excess(high) < _NEARLY_NOTHING:
        return math.exp(high)
    # SciPy's root may lie on either side of the truth: step outward until the cost has been seen to be met.
    answer = math.exp(float(brentq(excess, low, high, xtol=0.25 * tolerance, rtol=8.9e-16)))
    while cost(answer) > target:
        answer *= 1.0 + tolerance
    return answer


def smallest_safe_batch(
    cost: Callable[[FloatArray], FloatArray], target: FloatArray, high: FloatArray, *, steps: int = 80
) -> FloatArray:
    """Elementwise smallest x in [0, high] with ``cost(x) <= target``, for a falling cost that is met at ``high``.

    >>> answer = smallest_safe_batch(lambda x: np.exp(-x), np.array([0.5]), np.array([10.0]))
    >>> bool(np.exp(-answer[0]) <= 0.5)
    True
    """
    low = np.zeros_like(high)
    met_at_zero = cost(low) <= target
    for _ in range(steps):
        middle = 0.5 * (low + high)
        met = cost(middle) <= target
        high = np.where(met, middle, high)
        low = np.where(met, low, middle)
    return np.where(met_at_zero, 0.0, high)
