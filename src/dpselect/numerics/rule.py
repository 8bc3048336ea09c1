"""The one rule: the plain trapezoidal sum, its step chosen from a bound on its error (docs/theory.md §6).

    J(shifts) = E_x[∏_j Φ(slope_j·x + offset_j + shift_j)^count_j],   x ~ N(0, 1)

A *cell* is a list of factors. Here their fields are arrays over many cells: :func:`plan` says where and how to sum,
:func:`sums` adds up. :mod:`dpselect.numerics.alone` does both for one cell of floats.

What is returned as an error is a bound: the theorem's, plus what lies beyond the last nodes (log-concavity), plus the
rounding of inputs, heights and sums. Where it is not small the caller turns to two grids, or to the enclosure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpselect.numerics.factors import Factor, Spot
from dpselect.numerics.nodes import Block, Part, added_up
from dpselect.numerics.normal import (
    DEEP_MORE,
    DEEP_UNITS,
    EDGE,
    FINE,
    LOG_CDF_UNITS,
    SMALL_STEP,
    log_cdf_and_hazard,
    rough_log_cdf_and_hazard,
)
from dpselect.numerics.pair import LEFT_OFF, Number, U, total
from dpselect.numerics.strip import DEEP, EFFORT, LEFT_UNITS, Move, Strip, curvature, half_width, strip

#: The window ends where the integrand has fallen by about exp(-DROP).
DROP = 35.0
#: Steps of fewer points of the lattice lose too much when they are rounded down to it.
COARSE = 8.0
#: Arguments at a peak between which the sum keeps to the lattice: below, squares are better; above, it ends.
LATTICE = (-4.0, 12.0)
#: A shift is off by at most so many units, relatively.
SHIFT_UNITS = 6.0
#: A small difference of log Φ by at most (80 + 20y²) units, relatively; times the hazard, that falls in y.
STEP_UNITS = 80.0
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
MOST_REACH = math.sqrt(2.0 * DROP) + 0.2


class Plan(NamedTuple):
    """Where and how to sum: nodes at ``spot.x + step·(first, …, last)``."""

    spot: Spot
    bend: Number
    move: Move | None
    strip: Strip
    step: Number
    first: Number
    last: Number
    #: Whether all nodes have their argument on the lattice.
    on_lattice: Number
    #: Of each factor: whether it is deep in its lower tail over the whole window.
    deep: list[Number]


def _reach(factors: Sequence[Factor], spot: Spot, start: Number, side: float) -> Number:
    """How far on one side the integrand has dropped by about ``DROP``."""
    distance = start
    for _ in range(2):
        at = side * distance
        drop, slope = at * (spot.x + 0.5 * at), spot.x + at
        for factor, y, log_cdf in zip(factors, spot.arguments, spot.log_cdfs, strict=True):
            there, hazard = rough_log_cdf_and_hazard(y + factor.slope.high * at)
            drop = drop - factor.count * (there - log_cdf)
            slope = slope - factor.count * factor.slope.high * hazard
        drop = np.maximum(drop, 1e-3)
        # drop ≈ distance^power locally: Newton's method on logarithms suits flat hills and cliffs alike.
        power = np.maximum(side * slope * distance / drop, 1.0)
        distance = np.minimum(distance * np.exp(np.log(DROP / drop) / power), MOST_REACH)
    return distance


def best_move(factors: Sequence[Factor], spot: Spot) -> Move:
    """No translation, or the one that clears a factor's shift: whatever makes the gain easiest to sum."""
    if spot.on_lattice is not False:
        # One kind of factor, with slope 1: little is lost, and no difference of Φ is formed off the lattice.
        return Move(factors[0].shift, [None])
    best = Move(spot.x * 0.0, [factor.shift for factor in factors])
    least: Number = 0.0
    for factor, hazard in zip(factors, spot.hazards, strict=True):
        least = least + factor.count * factor.shift * (hazard + 0.3 * abs(factor.slope.high))
    for cleared in factors:
        translation = cleared.shift / np.where(cleared.slope.high == 0.0, 1e-300, cleared.slope.high)
        distance = abs(translation)
        size = distance * (abs(spot.x) + 1.0 + distance)
        left: list[Number] = []
        for factor, hazard in zip(factors, spot.hazards, strict=True):
            if factor is cleared:
                left.append(factor.shift * 0.0)
                continue
            left.append(factor.shift - factor.slope.high * translation)
            size = size + factor.count * abs(left[-1]) * (hazard + 0.3 * abs(factor.slope.high))
        better = size < least
        least = np.where(better, size, least)
        best = Move(
            np.where(better, translation, best.translation),
            [np.where(better, new, old) for new, old in zip(left, best.left, strict=True)],
        )
    return best


def plan(factors: Sequence[Factor], spot: Spot, move: Move | None) -> Plan:
    """Strip, step and window."""
    bend = curvature(factors, spot)
    half, lean = half_width(factors, spot, bend)
    # The majorant peaks a little beside the integrand; a Newton step finds it well enough.
    found = strip(factors, spot, lean / bend, move, half)
    size = _LOG_ROOT_2PI - 0.5 * np.log(bend)
    effort = EFFORT + found.log_whole - size
    if move is not None:
        gain = 0.0
        for factor, hazard in zip(factors, spot.hazards, strict=True):
            gain = gain + factor.count * factor.shift * hazard
        effort = np.maximum(effort, EFFORT + found.log_gain - size - np.log(gain))
    wanted = 2.0 * math.pi * found.half_width / effort
    # Nine bits are kept, so that nodes, which are multiples, are exact.
    step = wanted * (1.0 - 2.0**-8)
    cut = step * (2.0**44 + 1.0)
    step = cut - (cut - step)
    on_lattice = spot.on_lattice
    if on_lattice is not False:
        along = np.floor(wanted * FINE)
        on_lattice = on_lattice & (along >= COARSE)
        step = np.where(on_lattice, along / FINE, step)
    start = math.sqrt(2.0 * DROP) / np.sqrt(bend)
    first = -np.floor(_reach(factors, spot, start, -1.0) / step) - 1.0
    last = np.floor(_reach(factors, spot, start, 1.0) / step) + 1.0
    deep = []
    for factor, base in zip(factors, spot.arguments, strict=True):
        highest = base + np.maximum(factor.slope.high * (step * first), factor.slope.high * (step * last))
        deep.append((base < DEEP) & (highest < -1.0))
    if on_lattice is not False:
        base = spot.arguments[0]
        on_lattice = on_lattice & (base + step * first > 1.0 - EDGE) & (base + step * last < EDGE - 1.0)
    return Plan(spot, bend, move, found, step, first, last, on_lattice, deep)


class Sums(NamedTuple):
    """The integral and the gain relative to the integrand at the peak, each with a bound on its error."""

    whole: Number
    whole_error: Number
    gain: Number
    gain_error: Number


class _Ends(NamedTuple):
    """One factor at the window's ends: the lower argument with L = -log Φ and h there, and the larger |argument|."""

    low: Number
    log_low: Number
    hazard_low: Number
    far: Number
    hazards: tuple[Number, Number]
    #: How far an argument as computed may be from the true one.
    blur: Number
    high: Number


def _ends(factor: Factor, base: Number, x: Number, ends: tuple[Number, Number]) -> _Ends:
    width = np.maximum(-ends[0], ends[1])
    arguments = [base + factor.slope.high * end for end in ends]
    values = [log_cdf_and_hazard(y) for y in arguments]
    low, far = np.minimum(*arguments), np.maximum(*(abs(y) for y in arguments))
    steep = abs(factor.slope.high)
    blur = U * (2.0 * far + 4.0 * steep * width) + LEFT_OFF * (steep * abs(x) + abs(factor.offset.high))
    return _Ends(
        low,
        -np.minimum(values[0][0], values[1][0]),
        np.maximum(values[0][1], values[1][1]),
        far,
        (values[0][1], values[1][1]),
        blur + factor.slack,
        np.maximum(*arguments),
    )


def log_cdf_error(low: Number, log_low: Number) -> Number:
    """How far log Φ as computed may be off, at arguments of at least ``low``, where -log Φ is ``log_low``.

    y²·|log Φ(y)| falls beyond y = 1.2 and is never above 0.18 before 0.
    """
    square = np.where(low > 1.2, low * low * log_low, 0.18)
    return U * (np.minimum(LOG_CDF_UNITS * log_low, DEEP_UNITS * log_low + DEEP_MORE) + 4.0 * square)


def sums(factors: Sequence[Factor], planned: Plan, nodes: Number, blocks: Sequence[Block]) -> Sums:
    """The trapezoidal sums over ``nodes`` nodes from ``planned.first`` on, with their bounds.

    ``blocks`` are the runs of cells that share a number of nodes. For one cell see :mod:`dpselect.numerics.alone`.
    """
    spot, move, step = planned.spot, planned.move, planned.step
    ends = (step * planned.first, step * (planned.first + (nodes - 1.0)))
    width = np.maximum(-ends[0], ends[1])
    far = abs(spot.x) + width
    reaches = width * far
    height_error, exponent_error = 8.0 * U, 0.0
    growths: list[Number] = [0.0, 0.0]
    slopes: list[Number] = [0.0, 0.0]
    if move is not None:
        growths = [abs(move.translation) * (far + abs(move.translation))] * 2
        exponent_error = 6.0 * U * growths[0]
    settled: Number = True
    if planned.on_lattice is not False:
        base = spot.arguments[0]
        within = (base + ends[0] >= -EDGE) & (base + ends[1] <= EDGE)
        settled = settled & np.where(planned.on_lattice, within, True)
    parts = []
    for j, factor in enumerate(factors):
        base, slope, deep = spot.arguments[j], factor.slope.high, planned.deep[j]
        end = _ends(factor, base, spot.x, ends)
        error = 2.0 * log_cdf_error(end.low, end.log_low) + end.hazard_low * end.blur
        reach = end.log_low
        if deep is not False and np.any(deep):
            stretch = abs(slope) * width
            squares = stretch * (abs(base) + stretch)
            in_squares = U * (6.0 * squares + 24.0) + end.blur + stretch * (end.blur + U * abs(base))
            error = np.where(deep, in_squares, error)
            reach = np.where(deep, squares + 1.0, reach)
            settled = settled & np.where(deep, end.high < 0.0, True)
        reaches = reaches + factor.count * reach
        height_error = height_error + factor.count * error
        left: Number | None = None
        step_reach: Number = 0.0
        if move is not None:
            left = move.left[j]
            loose = LEFT_UNITS * U * (factor.shift + abs(slope * move.translation))
            size = loose if left is None else loose + abs(left)
            hazard = end.hazard_low + size
            exponent_error = exponent_error + factor.count * hazard * loose
            for side, falling in ((0, slope > 0.0), (1, slope < 0.0)):
                growths[side] = growths[side] + factor.count * size * (end.hazards[side] + size)
                slopes[side] = slopes[side] + np.where(falling, factor.count * size * abs(slope), 0.0)
            if left is not None:
                furthest = size * (end.far + 2.0)
                small = furthest + size * size <= SMALL_STEP
                settled = settled & small
                left, step_reach = np.where(small, left, 0.0), np.where(small, furthest, 0.0)
                rate = np.minimum(hazard * (hazard + end.far), 1.0)
                exponent_error = exponent_error + factor.count * size * (
                    hazard * (STEP_UNITS + 20.0 * end.low * end.low) * U + rate * end.blur
                )
        parts.append(Part(factor.count, slope, base, spot.log_cdfs[j], left, step_reach, deep))
    translation = None if move is None else move.translation
    raw = added_up(spot.x, step, planned.first, translation, parts, planned.on_lattice, blocks)
    # The roundings of heights, and what the peak's own place leaves off.
    height_error = height_error + U * (len(factors) + 6.0) * reaches
    whole = step * raw.whole
    outer = [np.exp(raw.first), np.exp(raw.last)]
    # Either height may be off.
    ratios = [np.exp(end - inner + 2.0 * height_error) for end, inner in zip(raw[3::3], raw[4:6], strict=True)]
    settled = settled & (ratios[0] < 0.99) & (ratios[1] < 0.99) & (height_error < 1e-3)
    power = 2.0 * math.pi * planned.strip.half_width / step
    damped = power + np.log(1.0 - np.exp(-power)) - math.log(2.0) - 1e-9 * power
    unit = (nodes + 6.0) * U
    whole_error = np.exp(planned.strip.log_whole - damped) + whole * (height_error + unit) * 1.01
    for height, ratio in zip(outer, ratios, strict=True):
        whole_error = whole_error + 1.01 * step * height * ratio / (1.0 - ratio)
    if move is None:
        return Sums(whole, np.where(settled, whole_error, math.inf), whole * 0.0, whole * 0.0)
    gain = step * raw.gain
    gain_error = np.exp(planned.strip.log_gain - damped)
    gain_error = gain_error + 1.01 * (whole + abs(gain)) * exponent_error
    gain_error = gain_error + 1.01 * step * raw.size * (height_error + unit)
    for side in (0, 1):
        extent = abs(move.translation) + slopes[side]
        ratio = ratios[side] * np.exp(step * extent)
        settled = settled & (ratio < 0.99)
        inner = growths[side] / (1.0 - ratio) + step * extent / ((1.0 - ratio) * (1.0 - ratio))
        gain_error = gain_error + 1.01 * step * outer[side] * np.exp(growths[side]) * ratio * inner
    return Sums(whole, np.where(settled, whole_error, math.inf), gain, np.where(settled, gain_error, math.inf))


def ratio_from(found: Sums) -> tuple[Number, Number]:
    """log(1 + gain/whole) and a bound on its error, infinite where there is none."""
    odds = found.gain / found.whole
    sure = found.whole - found.whole_error
    error = (found.gain_error + abs(odds) * found.whole_error) / np.maximum(sure, 1e-300)
    settled = (sure > 0.0) & (odds > -0.5) & (error < 0.1)
    value = np.log1p(np.where(settled, odds, 0.0))
    # The logarithm's slope between the true odds and these is at most 1/(1 + odds - error).
    error = error / (1.0 + np.where(settled, odds - error, 0.0)) + 4.0 * U * abs(value)
    return value, np.where(settled, error, math.inf)


def shifted(factors: Sequence[Factor]) -> list[Factor]:
    """The factors with their shifts taken; the shifts' own rounding becomes slack of the offsets."""
    moved = []
    for factor in factors:
        high, low = total(factor.offset.high, factor.shift)
        offset = total(high, low + factor.offset.low)
        slack = factor.slack + SHIFT_UNITS * U * abs(factor.shift)
        moved.append(factor._replace(offset=offset, shift=factor.shift * 0.0, slack=slack))
    return moved


def height_of(factors: Sequence[Factor], spot: Spot) -> tuple[Number, Number]:
    """Σ count·log Φ(y_j) at a peak, and a bound on its error."""
    height, error = 0.0, 0.0
    for factor, (y, log_cdf, hazard) in zip(factors, spot.values(), strict=True):
        size = factor.count * log_cdf
        height = height + size
        scale = abs(factor.slope.high * spot.x) + abs(factor.offset.high)
        blur = 2.0 * U * abs(y) + LEFT_OFF * scale + factor.slack
        error = error + factor.count * (log_cdf_error(y, -log_cdf) + hazard * blur)
        error = error + U * (len(factors) + 2.0) * abs(size)
    return height, error
