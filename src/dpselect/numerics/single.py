"""The quick rule of :mod:`dpselect.numerics.integral` for one cell, in plain floats where arrays would be slow.

An array operation on one number costs as much as on fifty. So the mode and the window are found with :mod:`math`, and
only the nodes are arrays. Gives up (returns ``None``) wherever the batched rules would need care.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpselect.numerics.normal import SMALL_STEP

_POINTS = 49
_DROP = 44.0
_EPS = float(np.finfo(np.float64).eps)
_GRID = np.linspace(-1.0, 1.0, _POINTS)
#: Sums over all nodes, twice every other node, and the ends, in one product.
_SUMS = np.stack([np.ones(_POINTS), 2.0 * (np.arange(_POINTS) % 2 == 0), np.eye(_POINTS)[[0, -1]].sum(axis=0)])
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: Beyond this the upper tail underflows.
_FAR = 35.0
#: Below this argument log Φ is nearly a square, and squares are subtracted before they are rounded.
_DEEP = -4.0
_LOG_2 = math.log(2.0)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = 0.5 * (_NODES[:, None] + 1.0), 0.5 * _WEIGHTS
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(4)
_FEW_NODES, _FEW_WEIGHTS = 0.5 * (_FEW_NODES[:, None] + 1.0), 0.5 * _FEW_WEIGHTS

Factor = tuple[float, float, float]  # count, slope, offset


def _hazard(y: float) -> float:
    if y < _DEEP:
        return _SQRT_2_OVER_PI / float(erfcx(-y * _SQRT_HALF))
    return math.exp(-0.5 * y * y) * _INVERSE_SQRT_2PI / (0.5 * math.erfc(-y * _SQRT_HALF))


def _log_cdf(y: float) -> float:
    if y < _DEEP:
        return math.log(float(erfcx(-y * _SQRT_HALF))) - _LOG_2 - 0.5 * y * y
    tail = 0.5 * math.erfc(abs(y) * _SQRT_HALF)
    return math.log(tail) if y < 0 else math.log1p(-tail)


def _slope_and_curvature(factors: Sequence[Factor], x: float) -> tuple[float, float]:
    slope, curvature = -x, 1.0
    for count, a, u in factors:
        y = a * x + u
        pull = count * a * _hazard(y)
        slope += pull
        curvature += a * pull * (_hazard(y) + y)
    return slope, curvature


def _mode(factors: Sequence[Factor]) -> float | None:
    """The peak, to a hundredth of its width; see :func:`dpselect.numerics.factors.modes` for the idea."""
    start, _ = _slope_and_curvature(factors, 0.0)
    sign = 1.0 if start >= 0 else -1.0
    x, low, high = 0.5, 0.0, math.inf
    for _, a, u in factors:
        if a * sign > 0:
            x = max(x, -u / (a * sign))
    for _ in range(40):
        pull, push, bend_pull, bend_push = 0.0, x, 0.0, 1.0
        for count, slope, u in factors:
            a = slope * sign
            y = a * x + u
            if y > _FAR:
                return None
            hazard = _hazard(y)
            strength = count * abs(a) * hazard
            bend = strength * abs(a) * (hazard + y)
            if a > 0:
                pull += strength
                bend_pull += bend
            else:
                push += strength
                bend_push += bend
        if pull <= 0.0:
            return None
        value = math.log(pull / push)
        if value > 0:
            low = x
        else:
            high = x
        proposal = x + value / (bend_pull / pull + bend_push / push)
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if high < math.inf else 2.0 * x + 1.0
        settled = abs(proposal - x) * math.sqrt(bend_pull + bend_push) < 0.01
        x = proposal
        if settled:
            return sign * x
    return None


def _reach(factors: Sequence[Factor], centre: float, start: float, heights: Sequence[float], side: float) -> float:
    """How far on one side the integrand has dropped by ``_DROP``."""
    distance = start
    for _ in range(3):
        at = side * distance
        drop, slope = at * (centre + 0.5 * at), centre + at
        for (count, a, u), height in zip(factors, heights, strict=True):
            y = a * (centre + at) + u
            if y > _FAR:
                return math.nan
            drop -= count * (_log_cdf(y) - height)
            slope -= count * a * _hazard(y)
        power = max(side * slope * distance / drop, 1.0) if drop > 0 else 2.0
        distance = min(distance * (_DROP / max(drop, 1e-3)) ** (1.0 / power), math.sqrt(2.0 * _DROP) + 0.1)
    return distance


@np.errstate(all="ignore")
def single_log_ratio(
    counts: Sequence[float], slopes: Sequence[float], offsets: Sequence[float], shifts: Sequence[float]
) -> tuple[float, float] | None:
    """``(log J(shifts) - log J(0), error)`` for one cell, or ``None`` where it takes more care.

    >>> value, error = single_log_ratio([364.0], [1.0], [-5.0], [2 / 6946 / 0.2])
    >>> value, error < 1e-13
    (0.01078838523643..., True)
    """
    live = [j for j, count in enumerate(counts) if count > 0]
    if not any(shifts[j] > 0 for j in live):
        return 0.0, 0.0
    factors = [(counts[j], slopes[j], offsets[j]) for j in live]
    if any(u > _FAR for _, _, u in factors):
        return None
    centre = _mode(factors)
    if centre is None:
        return None
    _, curvature = _slope_and_curvature(factors, centre)
    bases = [a * centre + u for _, a, u in factors]
    heights = [_log_cdf(y) for y in bases]
    start = math.sqrt(2.0 * _DROP / curvature)
    left, right = (_reach(factors, centre, start, heights, side) for side in (-1.0, 1.0))
    if not (left > 0 and right > 0):
        return None
    skew = math.log(right / left)
    if abs(skew) < 1e-5:
        skew = 1e-5
    bulge = np.expm1(skew * _GRID)
    offset = (left / -math.expm1(-skew)) * bulge
    height = offset * (-0.5 * offset - centre)
    gains = []
    # Rounding of the heights, a standard deviation from the peak.
    spread = (left + right) / 9.0
    size = abs(centre) * spread
    for (count, a, _), base, log_cdf, j in zip(factors, bases, heights, live, strict=True):
        shift = shifts[j]
        y = a * offset + base
        reach = max(abs(base - a * left), abs(base + a * right))
        if shift * (reach + shift) > SMALL_STEP:
            return None
        if max(base - a * left, base + a * left, base - a * right, base + a * right) < 0.0 and base < _DEEP:
            scaled = erfcx(y * -_SQRT_HALF)
            move = a * offset
            height += count * (np.log(scaled / erfcx(base * -_SQRT_HALF)) - move * (base + 0.5 * move))
            tail = np.log(0.5 * scaled)
            size += count * abs(base * a) * spread
        else:
            here = log_ndtr(y)
            height += count * (here - log_cdf)
            tail = 0.5 * y * y + here
            size += count * abs(log_cdf) + base * base
        if shift > 0:
            nodes, weights = (_FEW_NODES, _FEW_WEIGHTS) if shift * (reach + 2.0) < 0.11 else (_NODES, _WEIGHTS)
            part = shift * nodes
            ratio = weights @ np.exp(-part * (y + 0.5 * part) - tail)
            gains.append(np.expm1(count * np.log1p((shift * _INVERSE_SQRT_2PI) * ratio)))
    weight = np.exp(height)
    weight *= 1.0 + bulge
    whole, error = _sum(weight)
    total = 0.0
    for gain in gains:
        part_sum, part_error = _sum(weight * gain)
        total += part_sum
        error = max(error, part_error)
        if len(gains) > 1:
            weight = weight * (1.0 + gain)
    value = math.log1p(total / whole) if total < 1e300 * whole else math.inf
    error = value * (2.0 * error + _EPS * (64.0 + 4.0 * size))
    return (value, error) if 1e-290 < value < math.inf and error <= 1e-11 * value else None


def _sum(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """The sum, and a bound on its relative error from every other node and from the ends."""
    fine, coarse, ends = (_SUMS @ values).tolist()
    if not 0.0 < fine < math.inf:
        return fine, math.inf
    change, ends = abs(fine - coarse) / fine, ends * _POINTS / fine
    return fine, 10.0 * change * change + ends if change < 1e-6 and ends < 1e-13 else math.inf
