"""The standard normal distribution function Φ, its hazard, and differences of its logarithm.

Every bound of this package is made of log Φ(y + s) - log Φ(y). Taken as a difference of two logarithms it loses
all digits when s is tiny and, far in the lower tail, many digits always. Here it is formed from the hazard
φ(y)/Φ(y) and an integral of a smooth function, so that it keeps its relative accuracy (THEORY §6).
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpselect.checks import FloatArray

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2_OVER_PI = np.sqrt(2.0 / np.pi)
_INVERSE_SQRT_2PI = 1.0 / np.sqrt(2.0 * np.pi)

#: Gauss–Legendre rules on [0, 1] for exp(-syτ - s²τ²/2), with the largest s·(|y| + 2) at which each is good to 3e-17.
_RULES = [
    (limit, 0.5 * (nodes + 1.0), 0.5 * weights)
    for limit, (nodes, weights) in (
        (5e-4, np.polynomial.legendre.leggauss(2)),
        (0.018, np.polynomial.legendre.leggauss(3)),
        (0.11, np.polynomial.legendre.leggauss(4)),
        (0.8, np.polynomial.legendre.leggauss(6)),
        (2.3, np.polynomial.legendre.leggauss(8)),
    )
]
#: Above this |s|·(|y| + |s|) the difference is large enough to be taken directly.
SMALL_STEP = 1.0


#: (1 + 2x)·erfcx(x) as a polynomial in t = (x - 3.25)/(x + 3.25), x ≥ 0: the Chebyshev expansion to degree 22, computed
#: with 50 digits and rewritten in powers of t. Its error, 7e-16, is that of SciPy's erfcx.
_ERFCX = (
    1.2475151132011641,
    -0.1386113336083671,
    -0.027456781190906176,
    0.11350749363586563,
    -0.11897889089301457,
    0.08014898633565008,
    -0.03696058328704808,
    0.01014864689857331,
    -0.00018754537486177027,
    -0.0010751234589103113,
    0.00030504701707126657,
    7.503796553564482e-05,
    -5.416378252710677e-05,
    -4.374213344493493e-06,
    8.601165044071555e-06,
    2.9746297710421244e-07,
    -1.4193630464505873e-06,
    -6.164621413723308e-08,
    2.376147904684917e-07,
    1.6319579669205955e-08,
    -3.457663211810979e-08,
    -2.143589266886864e-09,
    3.0177226693695613e-09,
)
_ERFCX_CENTRE = 3.25 / _SQRT_HALF
#: From so many numbers on, the passes of the polynomial are quicker than SciPy's function.
_MANY = 2048


def _scaled_tail(distance: FloatArray) -> FloatArray:
    """erfcx(distance/√2) for distance ≥ 0."""
    if distance.size < _MANY:
        return np.asarray(erfcx(distance * _SQRT_HALF))
    t = (distance - _ERFCX_CENTRE) / (distance + _ERFCX_CENTRE)
    total = np.full_like(t, _ERFCX[-1])
    for coefficient in _ERFCX[-2::-1]:
        total *= t
        total += coefficient
    return np.asarray(total / (1.0 + distance / _SQRT_HALF))


def log_cdf_and_hazard(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``(log Φ(y), φ(y)/Φ(y))``, each to full relative accuracy (log Φ in absolute terms below -1e3).

    >>> log_cdf, hazard = log_cdf_and_hazard(np.array([0.0, -1e3]))
    >>> float(hazard[0]), round(float(hazard[1]), 6)
    (0.7978845608028654, 1000.001)
    """
    scaled = _scaled_tail(np.abs(y))
    half_square = 0.5 * y * y
    bell = np.exp(-half_square)
    upper_tail = 0.5 * scaled * bell
    lower = y < 0
    log_cdf = np.log1p(np.where(lower, 0.5 * scaled - 1.0, -upper_tail))
    log_cdf -= np.where(lower, half_square, 0.0)
    hazard = np.where(lower, _SQRT_2_OVER_PI, _INVERSE_SQRT_2PI * bell)
    hazard /= np.where(lower, scaled, 1.0 - upper_tail)
    return log_cdf, hazard


def small_log_cdf_step(y: FloatArray, step: FloatArray, hazard: FloatArray) -> FloatArray:
    """log Φ(y + step) - log Φ(y) for step·(|y| + step) ≤ ``SMALL_STEP``, given the hazard at y.

    Φ(y + s)/Φ(y) = 1 + hazard(y)·∫_0^s exp(-yt - t²/2) dt: nothing cancels.
    """
    reach = float(np.max(np.abs(step) * (np.abs(y) + 2.0), initial=0.0))
    _, nodes, weights = next((rule for rule in _RULES if reach <= rule[0]), _RULES[-1])
    mean = np.zeros(np.broadcast_shapes(np.shape(y), np.shape(step)))
    for node, weight in zip(nodes, weights, strict=True):
        part = node * step
        mean += weight * np.exp(-part * (y + 0.5 * part))
    mean *= hazard
    mean *= step
    return np.log1p(mean)


def log_cdf_step(y: FloatArray, step: FloatArray) -> FloatArray:
    """log Φ(y + step) - log Φ(y), relatively accurate for steps of any size and sign.

    >>> float(log_cdf_step(np.array(-30.0), np.array(1e-15)))
    3.0033259...e-14
    """
    y, step = np.broadcast_arrays(y, step)
    base = np.minimum(y, y + step)
    size = np.abs(step)
    small = size * (np.abs(base) + size) <= SMALL_STEP
    # Each branch is evaluated on safe arguments everywhere and kept only where it applies.
    tamed = np.where(small, size, 0.0)
    result = small_log_cdf_step(np.where(small, base, 0.0), tamed, log_cdf_and_hazard(base)[1])
    if not small.all():
        top = base + size
        tails = top <= 0
        below = np.where(tails, base, -1.0)
        above = np.where(tails, top, -1.0)
        both_in_tail = -size * (base + 0.5 * size) + np.log(erfcx(-above * _SQRT_HALF) / erfcx(-below * _SQRT_HALF))
        large = np.where(tails, both_in_tail, log_ndtr(top) - log_ndtr(base))
        result = np.where(small, result, large)
    return np.where(step < 0, -result, result)


def log_tail_step(y: FloatArray, step: FloatArray) -> FloatArray:
    """log(log Φ(y + step) - log Φ(y)) for y ≥ 30 and step > 0, where Φ is 1 to all digits.

    >>> log_tail_step(np.array([100.0]), np.array([0.1])).round(6).tolist()
    [-5005.524254]
    """
    reach = step * (y + step)
    mean = np.zeros(np.broadcast_shapes(y.shape, step.shape))
    for node, weight in zip(*_RULES[-1][1:], strict=True):
        part = np.where(reach <= SMALL_STEP, node * step, 0.0)
        mean += weight * np.exp(-part * (y + 0.5 * part))
    wide = erfcx(y * _SQRT_HALF) - np.exp(-step * (y + 0.5 * step)) * erfcx((y + step) * _SQRT_HALF)
    density = -0.5 * y * y + np.log(_INVERSE_SQRT_2PI)
    logs = np.where(reach <= SMALL_STEP, np.log(step * mean), np.log(np.sqrt(np.pi / 2) * wide))
    return np.asarray(density + logs)


#: Coefficients of dg/dy in powers of y^-2, g(y) = φ(y)/Φ(y) + y, y → -∞ (the asymptotic series of Mills' ratio).
_TAIL_SERIES = (1.0, -6.0, 50.0, -518.0, 6354.0, -89782.0)
_DEEP = -25.0


def log_cdf_bend(y: FloatArray, step: FloatArray) -> FloatArray:
    """log Φ(y + step) - log Φ(y) - step·φ(y)/Φ(y): what is left of the difference without its tangent.

    For small steps the difference and the tangent nearly cancel, which matters when they are multiplied by a count
    of 1e12; the remainder is then integrated: ∫_0^step (step - t)·(log Φ)''(y + t) dt, (log Φ)'' = -h·(h + y) with h
    the hazard. Deep in the lower tail h + y itself cancels, and (log Φ)'' is -1 plus a short series.

    >>> log_cdf_bend(np.array([0.0]), np.array([1e-9])).tolist()
    [-3.183...e-19]
    """
    y, step = np.broadcast_arrays(y, step)
    deep = (np.maximum(y, y + step) < _DEEP) & (np.abs(step) < 0.5 * np.abs(y))
    small = ~deep & (np.abs(step) <= 0.5)
    result = log_cdf_step(y, step) - step * log_cdf_and_hazard(y)[1]
    for chosen, second_derivative in ((small, _second_derivative), (deep, _deep_second_derivative)):
        if chosen.any():
            base, move = y[chosen], step[chosen]
            total = np.zeros_like(base)
            for node, weight in zip(*_RULES[-1][1:], strict=True):
                total += weight * (1.0 - node) * second_derivative(base + node * move)
            result[chosen] = total * move * move
    return result


def _second_derivative(y: FloatArray) -> FloatArray:
    _, hazard = log_cdf_and_hazard(y)
    return -hazard * (hazard + y)


def _deep_second_derivative(y: FloatArray) -> FloatArray:
    inverse_square = 1.0 / (y * y)
    series = np.zeros_like(y)
    for coefficient in reversed(_TAIL_SERIES):
        series = series * inverse_square + coefficient
    return series * inverse_square - 1.0
