"""NumPy's names for plain floats: what is written once for arrays of cells also runs on one cell, at a float's price.

An array operation on one number costs as much as on fifty. Overflow gives infinity, as in NumPy.
"""

from __future__ import annotations

import math

from scipy.special import erfcx

from dpselect.numerics.normal import FINE

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_LOG_2 = math.log(2.0)
#: Below this erfc underflows.
_DEEP = -30.0

sqrt = math.sqrt
log1p = math.log1p
floor = math.floor
abs = abs


def exp(x: float) -> float:
    """e^x, infinite beyond the doubles."""
    return math.exp(x) if x < 709.0 else math.inf


def expm1(x: float) -> float:
    """e^x - 1, infinite beyond the doubles."""
    return math.expm1(x) if x < 709.0 else math.inf


def log(x: float) -> float:
    """The logarithm, -∞ at 0 and below."""
    return math.log(x) if x > 0.0 else -math.inf


def maximum(a: float, b: float) -> float:
    """The larger."""
    return a if a > b else b


def minimum(a: float, b: float) -> float:
    """The smaller."""
    return a if a < b else b


def where(condition: bool, a: float, b: float) -> float:
    """One or the other."""
    return a if condition else b


def any(condition: bool) -> bool:
    """Whether the one cell has it."""
    return condition


def nearest_on_lattice(y: float) -> tuple[float, float, float]:
    """The point of the lattice nearest y, with log Φ and φ/Φ there."""
    at = round(y * FINE) / FINE
    return at, *log_cdf_and_hazard(at)


def log_cdf_and_hazard(y: float) -> tuple[float, float]:
    """``(log Φ(y), φ(y)/Φ(y))``.

    >>> log_cdf_and_hazard(0.0)
    (-0.693147180559945..., 0.797884560802865...)
    """
    if y < _DEEP:
        scaled = float(erfcx(-y * _SQRT_HALF))
        return math.log(scaled) - _LOG_2 - 0.5 * y * y, _SQRT_2_OVER_PI / scaled
    bell = _INVERSE_SQRT_2PI * math.exp(-0.5 * y * y)
    tail = 0.5 * math.erfc(y * _SQRT_HALF if y > 0.0 else -y * _SQRT_HALF)
    if y < 0.0:
        return math.log(tail), bell / tail
    return math.log1p(-tail), bell / (1.0 - tail)


def hazard(y: float) -> float:
    """φ(y)/Φ(y)."""
    if y < _DEEP:
        return _SQRT_2_OVER_PI / float(erfcx(-y * _SQRT_HALF))
    return _SQRT_2_OVER_PI * math.exp(-0.5 * y * y) / math.erfc(-y * _SQRT_HALF)
