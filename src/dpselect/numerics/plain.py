"""Φ, its hazard and its growth off the line, for plain floats."""

from __future__ import annotations

import math

from scipy.special import erfcx

from dpselect.numerics.strip import CONCAVE_UP_TO, LOG_2

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: Below this erfc underflows.
_DEEP = -30.0


def log_cdf_and_hazard(y: float) -> tuple[float, float]:
    """``(log Φ(y), φ(y)/Φ(y))``.

    >>> log_cdf_and_hazard(0.0)
    (-0.693147180559945..., 0.797884560802865...)
    """
    if y < _DEEP:
        scaled = float(erfcx(-y * _SQRT_HALF))
        return math.log(scaled) - LOG_2 - 0.5 * y * y, _SQRT_2_OVER_PI / scaled
    bell = _INVERSE_SQRT_2PI * math.exp(-0.5 * y * y)
    if y < 0.0:
        tail = 0.5 * math.erfc(-y * _SQRT_HALF)
        return math.log(tail), bell / tail
    tail = 0.5 * math.erfc(y * _SQRT_HALF)
    return math.log1p(-tail), bell / (1.0 - tail)


def hazard(y: float) -> float:
    """φ(y)/Φ(y)."""
    if y < _DEEP:
        return _SQRT_2_OVER_PI / float(erfcx(-y * _SQRT_HALF))
    return _SQRT_2_OVER_PI * math.exp(-0.5 * y * y) / math.erfc(-y * _SQRT_HALF)


def swelling(y: float, log_cdf: float, hazard: float, b: float) -> tuple[float, float]:
    """``(bound, rate)``: see :func:`dpselect.numerics.strip.swelling`.

    >>> bound, rate = swelling(2.0, *log_cdf_and_hazard(2.0), 0.3)
    >>> round(bound, 6), round(rate, 6), 0.3**2 / 2
    (0.005236, 0.154351, 0.045)
    """
    half = 0.5 * b * b
    if y >= 0.0 and b <= CONCAVE_UP_TO:
        grown = math.expm1(half)
        spread = 2.0 * half * (1.0 + grown) * (1.0 + grown)
        rate = grown * (y * (y + hazard) - 1.0) + spread * hazard * (hazard + y)
        if rate < 0.9:
            sharp = grown * hazard * y + 0.5 * spread * hazard * hazard
            # The tangent must also cover y' < 0, where log Φ ≤ -log 2.
            sharp = max(sharp, half - rate * (LOG_2 + log_cdf))
            if sharp < half:
                return sharp, rate
    return half, 0.0
