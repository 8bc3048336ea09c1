"""The one rule: the plain trapezoidal sum, its step chosen from a bound on its error (docs/theory.md §6).

    J(shifts) = E_x[∏_j Φ(slope_j·x + offset_j + shift_j)^count_j],   x ~ N(0, 1)

A *cell* is a list of factors whose fields are floats (one cell) or arrays (many); the same lines serve both. What is
returned as an error is a bound: the theorem's, plus what lies beyond the last nodes (log-concavity), plus the rounding
of inputs, heights and sums. Where it is not small the caller turns to two grids, or to the enclosure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpselect.checks import FloatArray
from dpselect.numerics import plain
from dpselect.numerics.factors import Factor, Spot
from dpselect.numerics.guess import half_width_of_one, reach_of_one
from dpselect.numerics.normal import SMALL_STEP, log_cdf_of_many, scaled_tail, small_log_cdf_step
from dpselect.numerics.pair import LEFT_OFF, Number, total
from dpselect.numerics.strip import EFFORT, Move, Strip, curvature, half_width, strip

#: The window ends where the integrand has fallen by about exp(-DROP).
_DROP = 35.0
#: Half a unit in the last place of 1: the largest relative error of one operation.
_U = 2.0**-53
#: log Φ as computed is off by at most (16 + 4·max(y, 0)²) units, relatively; a shift by at most 6.
_LOG_CDF_UNITS, _SHIFT_UNITS = 16.0, 6.0
#: Below this argument log Φ is nearly a square, and squares are subtracted before they are rounded.
_DEEP = -4.0
_SQRT_HALF = math.sqrt(0.5)
#: The most nodes for one cell, and 0, 1, 2, … for them.
MOST_NODES = 20_000
_COUNTING = np.arange(float(MOST_NODES))
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


class Plan(NamedTuple):
    """Where and how to sum: nodes at ``spot.x + step·(first, …, last)``."""

    spot: Spot
    bend: Number
    move: Move | None
    strip: Strip
    step: Number
    first: Number
    last: Number


class Sums(NamedTuple):
    """The integral and the gain relative to the integrand at the peak, each with a bound on its error."""

    whole: Number
    whole_error: Number
    gain: Number
    gain_error: Number


def _reach(factors: Sequence[Factor], spot: Spot, start: Number, side: float, xp: Any) -> Number:
    """How far on one side the integrand has dropped by about ``_DROP``."""
    if xp is plain:
        return reach_of_one(factors, spot, start, side, _DROP)
    distance = start
    for _ in range(2):
        at = side * distance
        drop, slope = at * (spot.x + 0.5 * at), spot.x + at
        for factor, y, log_cdf in zip(factors, spot.arguments, spot.log_cdfs, strict=True):
            there, hazard = xp.rough(y + factor.slope.high * at)
            drop = drop - factor.count * (there - log_cdf)
            slope = slope - factor.count * factor.slope.high * hazard
        drop = xp.maximum(drop, 1e-3)
        # drop ≈ distance^power locally: Newton's method on logarithms suits flat hills and cliffs alike.
        power = xp.maximum(side * slope * distance / drop, 1.0)
        distance = xp.minimum(distance * xp.exp(xp.log(_DROP / drop) / power), math.sqrt(2.0 * _DROP) + 0.2)
    return distance


def best_move(factors: Sequence[Factor], spot: Spot, xp: Any) -> list[Number]:
    """How hard the gain is to sum, for no translation and for the one that clears each factor's shift."""
    sizes = []
    for cleared in (None, *factors):
        if cleared is None:
            translation = spot.x * 0.0
        else:
            slope = xp.where(cleared.slope.high == 0.0, 1e-300, cleared.slope.high)
            translation = xp.where(cleared.count > 0.0, cleared.shift, math.inf) / slope
        size = xp.abs(translation) * (xp.abs(spot.x) + 1.0 + xp.abs(translation))
        for factor, hazard in zip(factors, spot.hazards, strict=True):
            if factor is not cleared:
                left = xp.abs(factor.shift - factor.slope.high * translation)
                size = size + xp.where(
                    factor.count > 0.0, factor.count * left * (hazard + 0.3 * xp.abs(factor.slope.high)), 0.0
                )
        sizes.append(size)
    return sizes


def move_by(factors: Sequence[Factor], cleared: int) -> Move:
    """The translation that clears the shift of factor ``cleared``; of none if it is -1."""
    if cleared < 0:
        return Move(factors[0].shift * 0.0, [factor.shift for factor in factors])
    translation = factors[cleared].shift / factors[cleared].slope.high
    return Move(
        translation,
        [
            factor.shift * 0.0 if j == cleared else factor.shift - factor.slope.high * translation
            for j, factor in enumerate(factors)
        ],
    )


def plan(factors: Sequence[Factor], spot: Spot, move: Move | None, xp: Any) -> Plan:
    """Strip, step and window."""
    bend = curvature(factors, spot, xp)
    if xp is plain:
        half, lean = half_width_of_one(factors, spot, bend)
    else:
        half, lean = half_width(factors, spot, bend, xp)
    # The majorant peaks a little beside the integrand; a Newton step finds it well enough.
    found = strip(factors, spot, lean / bend, move, half, xp)
    size = _LOG_ROOT_2PI - 0.5 * xp.log(bend)
    effort = EFFORT + found.log_whole - size
    if move is not None:
        gain = 0.0
        for factor, hazard in zip(factors, spot.hazards, strict=True):
            gain = gain + factor.count * factor.shift * hazard
        effort = xp.maximum(effort, EFFORT + found.log_gain - size - xp.log(gain))
    step = 2.0 * math.pi * found.half_width / effort
    # Nine bits are kept, so that nodes, which are multiples, are exact.
    step = step * (1.0 - 2.0**-8)
    cut = step * (2.0**44 + 1.0)
    step = cut - (cut - step)
    start = math.sqrt(2.0 * _DROP) / xp.sqrt(bend)
    first = -xp.floor(_reach(factors, spot, start, -1.0, xp) / step) - 1.0
    last = xp.floor(_reach(factors, spot, start, 1.0, xp) / step) + 1.0
    return Plan(spot, bend, move, found, step, first, last)


def _column(value: Number) -> Number:
    """A cell's number against its row of nodes."""
    return value[:, None] if isinstance(value, np.ndarray) else value


def _log_cdf(y: FloatArray) -> FloatArray:
    return log_ndtr(y) if y.ndim == 1 else log_cdf_of_many(y)


class _Ends(NamedTuple):
    """One factor at the window's ends: the lower argument with L = -log Φ and h there, and the larger |argument|."""

    low: Number
    log_low: Number
    hazard_low: Number
    far: Number
    hazards: tuple[Number, Number]
    #: How far an argument as computed may be from the true one.
    blur: Number
    deep: Number


def _ends(factor: Factor, base: Number, x: Number, ends: tuple[Number, Number], xp: Any) -> _Ends:
    width = xp.maximum(-ends[0], ends[1])
    arguments = [base + factor.slope.high * end for end in ends]
    values = [xp.log_cdf_and_hazard(y) for y in arguments]
    low, far = xp.minimum(*arguments), xp.maximum(*(xp.abs(y) for y in arguments))
    steep = xp.abs(factor.slope.high)
    blur = _U * (2.0 * far + 4.0 * steep * width) + LEFT_OFF * (steep * xp.abs(x) + xp.abs(factor.offset.high))
    deep = (base < _DEEP) & (xp.maximum(*arguments) < -1.0)
    return _Ends(
        low,
        -xp.minimum(values[0][0], values[1][0]),
        xp.maximum(values[0][1], values[1][1]),
        far,
        (values[0][1], values[1][1]),
        blur + factor.slack,
        deep,
    )


def log_cdf_error(low: Number, log_low: Number, xp: Any) -> Number:
    """How far log Φ as computed may be off, at arguments of at least ``low``, where -log Φ is ``log_low``.

    y²·|log Φ(y)| falls beyond y = 1.2 and is never above 0.18 before 0.
    """
    square = xp.where(low > 1.2, low * low * log_low, 0.18)
    return _U * (_LOG_CDF_UNITS * log_low + 4.0 * square)


def sums(factors: Sequence[Factor], planned: Plan, nodes: int, xp: Any) -> Sums:
    """The trapezoidal sums over ``nodes`` nodes from ``planned.first`` on, with their bounds."""
    spot, move, step = planned.spot, planned.move, planned.step
    offsets = _column(step) * (_column(planned.first) + _COUNTING[:nodes])
    ends = (step * planned.first, step * (planned.first + (nodes - 1)))
    width = xp.maximum(-ends[0], ends[1])
    x = _column(spot.x)
    heights = -offsets * (x + 0.5 * offsets)
    exponent: Any = 0.0 if move is None else _column(move.translation) * (x - 0.5 * _column(move.translation) + offsets)
    reaches = width * (xp.abs(spot.x) + width)
    height_error = 8.0 * _U
    exponent_error = 0.0
    growths = [0.0, 0.0]
    if move is not None:
        furthest = xp.abs(spot.x) + width + xp.abs(move.translation)
        growths = [xp.abs(move.translation) * furthest] * 2
        exponent_error = 6.0 * _U * growths[0]
    slopes = [0.0, 0.0]
    settled = width > 0.0
    for j, factor in enumerate(factors):
        base, slope = spot.arguments[j], factor.slope.high
        end = _ends(factor, base, spot.x, ends, xp)
        y = _column(base) + _column(slope) * offsets
        log_cdfs = _log_cdf(y)
        rises = log_cdfs - _column(spot.log_cdfs[j])
        stretch = xp.abs(slope) * width
        squares = stretch * (xp.abs(base) + stretch)
        error = 2.0 * log_cdf_error(end.low, end.log_low, xp) + end.hazard_low * end.blur
        reach = end.log_low
        if xp.any(end.deep):
            deep_rises = _deep_rises(base, slope, offsets, y)
            rises = deep_rises if end.deep is True else np.where(_column(end.deep), deep_rises, rises)
            in_squares = _U * (6.0 * squares + 24.0) + end.blur + stretch * (end.blur + _U * xp.abs(base))
            error = xp.where(end.deep, in_squares, error)
            reach = xp.where(end.deep, squares + 1.0, reach)
        heights += _column(factor.count) * rises
        reaches = reaches + factor.count * reach
        height_error = height_error + factor.count * error
        if move is not None:
            left = move.left[j]
            size = xp.abs(left)
            hazard = end.hazard_low + size
            moved = xp.abs(factor.shift) + xp.abs(slope * move.translation)
            exponent_error = exponent_error + factor.count * hazard * (_SHIFT_UNITS + 2.0) * _U * moved
            if xp.any(left != 0.0):
                small = size * (end.far + 2.0 + size) <= SMALL_STEP
                settled = settled & small
                hazards = np.exp(-0.5 * y * y - log_cdfs)
                hazards *= _INVERSE_SQRT_2PI
                furthest_step = xp.largest(xp.where(small, size * (end.far + 2.0), 0.0))
                steps = small_log_cdf_step(y, _column(xp.where(small, left, 0.0)), hazards, reach=furthest_step)
                exponent = exponent + _column(factor.count) * steps
                depth = xp.minimum(end.low, 0.0)
                rate = xp.minimum(hazard * (hazard + end.far), 1.0)
                exponent_error = exponent_error + factor.count * size * (
                    hazard * (64.0 + 20.0 * depth * depth) * _U + rate * end.blur
                )
                for side in (0, 1):
                    growths[side] = growths[side] + factor.count * size * (end.hazards[side] + size)
                    falling = slope > 0.0 if side == 0 else slope < 0.0
                    slopes[side] = slopes[side] + xp.where(falling, factor.count * size * xp.abs(slope), 0.0)
    height_error = height_error + _U * (len(factors) + 4.0) * reaches
    weights = np.exp(heights)
    whole = step * xp.row_sum(weights)
    rim = [xp.entry(heights, place) for place in (0, 1, -2, -1)]
    outer = [xp.exp(rim[0]), xp.exp(rim[3])]
    ratios = [xp.exp(rim[0] - rim[1]), xp.exp(rim[3] - rim[2])]
    settled = settled & (ratios[0] < 0.99) & (ratios[1] < 0.99) & (height_error < 1e-3)
    power = 2.0 * math.pi * planned.strip.half_width / step
    damped = power + xp.log(1.0 - xp.exp(-power)) - math.log(2.0) - 1e-9 * power
    unit = (nodes + 6.0) * _U
    whole_error = xp.exp(planned.strip.log_whole - damped) + whole * (height_error + unit) * 1.01
    for height, ratio in zip(outer, ratios, strict=True):
        whole_error = whole_error + 1.01 * step * height * ratio / (1.0 - ratio)
    if move is None:
        return Sums(whole, xp.where(settled, whole_error, math.inf), whole * 0.0, whole * 0.0)
    weights *= np.expm1(exponent)
    gain = step * xp.row_sum(weights)
    # The same without signs: where x is translated the gain's integrand may change sign.
    size = step * xp.row_sum(np.abs(weights, out=weights))
    gain_error = xp.exp(planned.strip.log_gain - damped)
    gain_error = gain_error + 1.01 * (whole + xp.abs(gain)) * exponent_error
    gain_error = gain_error + 1.01 * size * (height_error + unit)
    for side in (0, 1):
        extent = xp.abs(move.translation) + slopes[side]
        ratio = ratios[side] * xp.exp(step * extent)
        settled = settled & (ratio < 0.99)
        inner = growths[side] / (1.0 - ratio) + step * extent / ((1.0 - ratio) * (1.0 - ratio))
        gain_error = gain_error + 1.01 * step * outer[side] * xp.exp(growths[side]) * ratio * inner
    return Sums(whole, xp.where(settled, whole_error, math.inf), gain, xp.where(settled, gain_error, math.inf))


def _deep_rises(base: Number, slope: Number, offsets: FloatArray, y: FloatArray) -> FloatArray:
    """log Φ(y) - log Φ(base) far in the lower tail, where both are nearly squares."""
    move = _column(slope) * offsets
    if y.ndim == 1:
        scaled, scaled_base = erfcx(y * -_SQRT_HALF), erfcx(base * -_SQRT_HALF)
    else:
        scaled, scaled_base = scaled_tail(np.abs(y)), _column(scaled_tail(np.abs(base)))
    return np.asarray(np.log(scaled / scaled_base) - move * (_column(base) + 0.5 * move))


def ratio_from(found: Sums, xp: Any) -> tuple[Number, Number]:
    """log(1 + gain/whole) and a bound on its error, infinite where there is none."""
    odds = found.gain / found.whole
    sure = found.whole - found.whole_error
    error = (found.gain_error + xp.abs(odds) * found.whole_error) / xp.maximum(sure, 1e-300)
    settled = (sure > 0.0) & (odds > -0.5) & (error < 0.1)
    value = xp.log1p(xp.where(settled, odds, 0.0))
    # The logarithm's slope between the true odds and these is at most 1/(1 + odds - error).
    error = error / (1.0 + xp.where(settled, odds - error, 0.0)) + 4.0 * _U * xp.abs(value)
    return value, xp.where(settled, error, math.inf)


def shifted(factors: Sequence[Factor]) -> list[Factor]:
    """The factors with their shifts taken; the shifts' own rounding becomes slack of the offsets."""
    moved = []
    for factor in factors:
        high, low = total(factor.offset.high, factor.shift)
        offset = total(high, low + factor.offset.low)
        slack = factor.slack + _SHIFT_UNITS * _U * abs(factor.shift)
        moved.append(factor._replace(offset=offset, shift=factor.shift * 0.0, slack=slack))
    return moved


def height_of(factors: Sequence[Factor], spot: Spot, xp: Any) -> tuple[Number, Number]:
    """Σ count·log Φ(y_j) at a peak, and a bound on its error."""
    height, error = 0.0, 0.0
    for factor, y, log_cdf, hazard in zip(factors, *spot[1:], strict=True):
        size = factor.count * log_cdf
        height = height + size
        scale = xp.abs(factor.slope.high * spot.x) + xp.abs(factor.offset.high)
        blur = 2.0 * _U * xp.abs(y) + LEFT_OFF * scale + factor.slack
        error = error + factor.count * (log_cdf_error(y, -log_cdf, xp) + hazard * blur)
        error = error + _U * (len(factors) + 2.0) * xp.abs(size)
    return height, error
