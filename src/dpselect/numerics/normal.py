"""The standard normal distribution function Φ, its hazard, and differences of its logarithm.

Every bound of this package is made of log Φ(y + s) - log Φ(y). Taken as a difference of two logarithms it loses
all digits when s is tiny and, far in the lower tail, many digits always. Here it is formed from the hazard
φ(y)/Φ(y) and an integral of a smooth function, so that it keeps its relative accuracy (THEORY §6).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfcx

from dpselect.checks import FloatArray

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_LOG_2 = math.log(2.0)
#: Below this erfc underflows.
_DEEP = -30.0
#: log Φ as computed, here or by SciPy, is off by at most so many units of 2^-53, relatively, and 4·max(y, 0)² more; in
#: the lower tail by at most DEEP_UNITS and, absolutely, DEEP_MORE. φ/Φ is off by at most 24 + 4·min(y², 1600),
#: and by 24 in the lower tail where it is formed from erfcx.
LOG_CDF_UNITS, DEEP_UNITS, DEEP_MORE = 24.0, 8.0, 12.0

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
#: Above this |s|·(|y| + 2 + |s|) the difference is large enough to be taken directly.
SMALL_STEP = 2.3


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


def scaled_tail(distance: FloatArray) -> FloatArray:
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
    scaled = scaled_tail(np.abs(y))
    half_square = 0.5 * y * y
    bell = np.exp(-half_square)
    upper_tail = 0.5 * scaled * bell
    lower = y < 0
    log_cdf = np.log1p(np.where(lower, 0.5 * scaled - 1.0, -upper_tail))
    log_cdf -= np.where(lower, half_square, 0.0)
    hazard = np.where(lower, _SQRT_2_OVER_PI, _INVERSE_SQRT_2PI * bell)
    hazard /= np.where(lower, scaled, 1.0 - upper_tail)
    return log_cdf, hazard


def log_cdf_and_hazard_of_one(y: float) -> tuple[float, float]:
    """``(log Φ(y), φ(y)/Φ(y))`` of a plain float, at a float's price.

    >>> log_cdf_and_hazard_of_one(0.0)
    (-0.693147180559945..., 0.797884560802865...)
    """
    if y < _DEEP:
        scaled = float(erfcx(-y * _SQRT_HALF))
        return math.log(scaled) - _LOG_2 - 0.5 * y * y, _SQRT_2_OVER_PI / scaled
    bell = _INVERSE_SQRT_2PI * math.exp(-0.5 * y * y)
    if y < 0.0:
        tail = 0.5 * math.erfc(-y * _SQRT_HALF)
        return math.log(tail), bell / tail
    tail = 0.5 * math.erfc(y * _SQRT_HALF)
    return math.log1p(-tail), bell / (1.0 - tail)


def deep_rise(y: float, step: float) -> float:
    """log Φ(y + step) - log Φ(y) far in the lower tail: both are nearly squares, subtracted before they are rounded.

    >>> round(deep_rise(-1e8, 1e-8), 9)
    1.0
    """
    scaled = float(erfcx((y + step) * -_SQRT_HALF)) / float(erfcx(y * -_SQRT_HALF))
    return math.log(scaled) - step * (y + 0.5 * step)


def hazard_of_one(y: float) -> float:
    """φ(y)/Φ(y)."""
    if y < _DEEP:
        return _SQRT_2_OVER_PI / float(erfcx(-y * _SQRT_HALF))
    return _SQRT_2_OVER_PI * math.exp(-0.5 * y * y) / math.erfc(-y * _SQRT_HALF)


def _expansion(at: FloatArray) -> list[FloatArray]:
    """log Φ and its derivatives up to the fifth, each divided by its factorial."""
    log_cdf, h = log_cdf_and_hazard(at)
    # h' = -h·(y + h), and so on.
    sway = at + 2.0 * h
    first = -h * (at + h)
    second = -first * sway - h
    third = -second * sway - 2.0 * first * (1.0 + first)
    fourth = -third * sway - 3.0 * second * (1.0 + 2.0 * first)
    return [log_cdf, h, first / 2.0, second / 6.0, third / 24.0, fourth / 120.0]


#: Expansions of log Φ at the points k/FINE, |k| ≤ EDGE·FINE: a step of at most 1/1024 leads anywhere from the nearest
#: one, and what is left off is below 1e-3 of a unit of log Φ for y ≤ 3, and of 4y² units beyond.
FINE, EDGE = 512.0, 16.0
_TABLES = _expansion(np.arange(-EDGE * FINE, EDGE * FINE + 1.0) / FINE)
_TABLE_LOG_CDF, _TABLE_HAZARD = _TABLES[:2]
#: The same of log Φ(y) + y²/2, which hardly bends, at the points -k/FINE, k ≤ _DEPTH·FINE.
_DEPTH = 32.0
_DEEP_TABLES = _expansion(np.arange(-_DEPTH * FINE, 1.0) / FINE)[:5]
_DEEP_TABLES[0] = np.log(0.5 * scaled_tail(np.arange(_DEPTH * FINE, -1.0, -1.0) / FINE))
_DEEP_TABLES[1] = _DEEP_TABLES[1] - np.arange(_DEPTH * FINE, -1.0, -1.0) / FINE
_DEEP_TABLES[2] = _DEEP_TABLES[2] + 0.5
_PLACES = np.arange(20_000)
_MIDDLE = int(EDGE * FINE)


def nearest_on_lattice(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The points of the lattice nearest y, with log Φ and φ/Φ there."""
    at = np.rint(y * FINE)
    np.clip(at, -EDGE * FINE, EDGE * FINE, out=at)
    place = at.astype(np.intp)
    place += _MIDDLE
    return at / FINE, np.take(_TABLE_LOG_CDF, place, mode="clip"), np.take(_TABLE_HAZARD, place, mode="clip")


def lattice_log_cdf(base: Any, step: Any, first: Any, counting: FloatArray) -> FloatArray:
    """log Φ(base + step·(first + counting)) where base and step are on the lattice, within its ends."""
    if isinstance(base, np.ndarray):
        stride = (step * FINE).astype(np.intp)
        start = (base * FINE + first * (step * FINE)).astype(np.intp)
        start += _MIDDLE
        place = _PLACES[: len(counting), None] * stride
        place += start
        return np.asarray(_TABLE_LOG_CDF.take(place, mode="clip"))
    along = int(step * FINE)
    start = int(base * FINE) + int(first) * along + _MIDDLE
    return _TABLE_LOG_CDF[start : start + len(counting) * along : along].copy()


def _expanded(y: FloatArray, tables: list[FloatArray], low: float, high: float) -> FloatArray:
    """The tables' function at y, for arguments from ``low``, the first of the tables, to ``high``."""
    at = y * FINE
    np.rint(at, out=at)
    place = at.astype(np.intp)
    place -= int(low * FINE)
    at *= 1.0 / FINE
    # Without rounding: y and the point next to it are within a factor of two, or the point is 0.
    step = np.subtract(y, at, out=at)
    total = tables[-1].take(place, mode="clip")
    for table in tables[-2::-1]:
        total *= step
        total += table.take(place, mode="clip")
    if not (y.min() >= low and y.max() <= high):
        beyond = ~((y >= low) & (y <= high))
        outside = y[beyond]
        total[beyond] = log_cdf_and_hazard(outside)[0] if tables is _TABLES else _log_scaled(outside)
    return total


def log_cdf_of_many(y: FloatArray) -> FloatArray:
    """log Φ(y), as in :func:`log_cdf_and_hazard`: from the nearest point of the lattice."""
    return _expanded(y, _TABLES, -EDGE, EDGE)


def deep_log_cdf(y: FloatArray) -> FloatArray:
    """log Φ(y) + y²/2 for y ≤ 0, to an absolute 1e-15.

    >>> deep_log_cdf(np.array([-20.0, -50.0])).round(6).tolist()
    [-3.917155, -4.831361]
    """
    return _expanded(y, _DEEP_TABLES, -_DEPTH, 0.0)


def _log_scaled(y: FloatArray) -> FloatArray:
    return np.asarray(np.log(0.5 * scaled_tail(np.abs(y))))


def rough_log_cdf_and_hazard(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same as :func:`log_cdf_and_hazard` to about 1e-5, for what need not be exact: where to look, how far to go.

    >>> log_cdf, hazard = rough_log_cdf_and_hazard(np.array([0.3]))
    >>> round(float(log_cdf[0]), 5), round(float(hazard[0]), 5)
    (-0.48141, 0.61722)
    """
    place = np.clip(np.rint(y * FINE), -EDGE * FINE, EDGE * FINE)
    step = y - place * (1.0 / FINE)
    place = (place + EDGE * FINE).astype(np.intp)
    hazard = np.take(_TABLE_HAZARD, place, mode="clip")
    fall = step * (hazard + y)
    log_cdf = np.take(_TABLE_LOG_CDF, place, mode="clip")
    log_cdf += hazard * step
    hazard *= 1.0 - fall
    beyond = ~(np.abs(y) <= EDGE)
    if beyond.any():
        log_cdf[beyond], hazard[beyond] = log_cdf_and_hazard(y[beyond])
    return log_cdf, hazard


def small_log_cdf_step(y: FloatArray, step: Any, hazard: FloatArray, *, reach: float) -> FloatArray:
    """log Φ(y + step) - log Φ(y) for |step|·(|y| + 2 + |step|) ≤ ``SMALL_STEP``, given the hazard at y.

    Φ(y + s)/Φ(y) = 1 + hazard(y)·∫_0^s exp(-yt - t²/2) dt: nothing cancels. ``reach`` is at least every |s|·(|y| + 2).
    """
    _, nodes, weights = next((rule for rule in _RULES if reach <= rule[0]), _RULES[-1])
    mean = np.zeros_like(y)
    for node, weight in zip(nodes, weights, strict=True):
        part = node * step
        inner = 0.5 * part + y
        inner *= -part
        np.exp(inner, out=inner)
        inner *= weight
        mean += inner
    mean *= hazard
    mean *= step
    return np.asarray(np.log1p(mean, out=mean))


#: The same rules for one cell: nodes in a column, weights with the density's constant.
_COLUMNS = [(limit, nodes[:, None], weights * _INVERSE_SQRT_2PI) for limit, nodes, weights in _RULES]


def small_log_cdf_step_of_few(y: FloatArray, step: float, log_cdf: FloatArray, *, reach: float) -> FloatArray:
    """The same for one step, given log Φ(y), in few calls: the hazard times exp(-yt - t²/2) is φ(y + t)/Φ(y)."""
    for limit, nodes, weights in _COLUMNS:  # noqa: B007 - the last serves what is beyond all
        if reach <= limit:
            break
    inner = y + nodes * step
    inner *= inner
    inner *= -0.5
    inner -= log_cdf
    np.exp(inner, out=inner)
    rise = (weights * step).dot(inner)
    return np.asarray(np.log1p(rise, out=rise))
