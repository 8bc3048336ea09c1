"""The rule for one cell of plain floats: what :mod:`dpselect.numerics.rule` does for many, at a float's price.

An array operation on one number costs as much as on fifty, so all but the nodes is done with ``math``. The bounds and
allowances are those of :mod:`dpselect.numerics.strip` and :mod:`dpselect.numerics.rule`, line by line and with their
constants (docs/theory.md §6); ``tests/numerics/test_alone.py`` holds the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dpselect.numerics.factors import Factor, Point, peak_of_one
from dpselect.numerics.nodes import MOST_NODES, Part, added_up_alone
from dpselect.numerics.normal import DEEP_MORE, DEEP_UNITS, EDGE, FINE, LOG_CDF_UNITS, SMALL_STEP, deep_rise
from dpselect.numerics.normal import log_cdf_and_hazard_of_one as log_cdf_and_hazard
from dpselect.numerics.pair import LEFT_OFF, U, difference, line
from dpselect.numerics.rule import COARSE, DROP, LATTICE, MOST_REACH, STEP_UNITS, Sums
from dpselect.numerics.strip import (
    DEEP,
    EFFORT,
    LEAST_TANGENT,
    LEFT_UNITS,
    SLACK,
    TINY,
    half_width_of_one,
    unsure_deep_rise,
)
from dpselect.numerics.strip import swelling_of_one as swelling

_ROOT_2PI = math.sqrt(2.0 * math.pi)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_LOG_2 = math.log(2.0)
_UNITS_OF_PULL, _UNITS_OF_LEFT = 8000.0 * U, LEFT_UNITS * U
#: From this count·y² on, squares are subtracted before they are rounded: before, it makes no difference.
_MUCH = 2.0**30


class Site(NamedTuple):
    """A peak: x = ``x`` + ``low``, what the factors are there, and whether the one argument is on the lattice."""

    x: float
    low: float
    points: list[Point]
    on_lattice: bool
    #: About J(shifts)/J(0) - 1, where that is small.
    gain: float


class OnePlan(NamedTuple):
    """Strip, step and window, as in :class:`dpselect.numerics.rule.Plan`."""

    half_width: float
    log_whole: float
    log_gain: float
    away: float
    step: float
    first: float
    last: float
    on_lattice: bool


def site_of(factors: Sequence[Factor]) -> Site:
    """The peak of one cell; on the lattice where the one factor has slope 1."""
    x = peak_of_one(factors)
    if len(factors) == 1 and factors[0].slope == (1.0, 0.0):
        offset, offset_low = factors[0].offset
        y = round((x + offset) * FINE) / FINE
        if LATTICE[0] < y < LATTICE[1]:
            high, low = difference(y, offset)
            log_cdf, h = log_cdf_and_hazard(y)
            gain = factors[0].count * factors[0].shift * h
            return Site(high, low - offset_low, [(y, log_cdf, h)], True, gain)
    points, gain = [], 0.0
    for factor in factors:
        y = line(factor.slope, x, factor.offset).high
        log_cdf, h = log_cdf_and_hazard(y)
        points.append((y, log_cdf, h))
        gain += factor.count * factor.shift * h
    return Site(x, 0.0, points, False, gain)


def best_move(factors: Sequence[Factor], site: Site) -> tuple[float, list[float]]:
    """The translation of x, and the shifts it leaves, that make the gain easiest to sum."""
    if site.on_lattice:
        return factors[0].shift, [0.0]
    weights = [
        factor.count * (point[2] + 0.3 * abs(factor.slope.high))
        for factor, point in zip(factors, site.points, strict=True)
    ]
    shifts = [factor.shift for factor in factors]
    best, least = (0.0, shifts), 0.0
    for weight, shift in zip(weights, shifts, strict=True):
        least += weight * shift
    for number, cleared in enumerate(factors):
        if cleared.slope.high == 0.0:
            continue
        translation = cleared.shift / cleared.slope.high
        distance = abs(translation)
        size = distance * (abs(site.x) + 1.0 + distance)
        if size < least:
            left = [factor.shift - factor.slope.high * translation for factor in factors]
            left[number] = 0.0
            for weight, rest in zip(weights, left, strict=True):
                size += weight * abs(rest)
            if size < least:
                best, least = (translation, left), size
    return best


def _reach(factors: Sequence[Factor], x: float, points: Sequence[Point], start: float, side: float) -> float:
    """How far on one side the integrand has dropped by about ``DROP``, as in :mod:`dpselect.numerics.rule`."""
    distance = start
    for _ in range(2):
        at = side * distance
        drop, slope = at * (x + 0.5 * at), x + at
        for (count, (along, _), _, _, _), (y, log_cdf, _) in zip(factors, points, strict=True):
            there, here = log_cdf_and_hazard(y + along * at)
            drop -= count * (there - log_cdf)
            slope -= count * along * here
        if 0.9 * DROP < drop < 1.3 * DROP:
            break
        drop = max(drop, 1e-3)
        power = max(side * slope * distance / drop, 1.0)
        distance = min(distance * math.exp(math.log(DROP / drop) / power), MOST_REACH)
    return distance


def plan_alone(factors: Sequence[Factor], site: Site, move: tuple[float, list[float]] | None) -> OnePlan:
    """Strip, step and window: see :func:`dpselect.numerics.rule.plan` and :func:`dpselect.numerics.strip.strip`."""
    x, points = site.x, site.points
    bend = 1.0
    for (count, (slope, _), _, _, _), (y, _, h) in zip(factors, points, strict=True):
        if h + y > 0.0:
            bend += count * slope * slope * h * (h + y)
    a, lean = half_width_of_one(factors, x, points, bend)
    # The majorant peaks a little beside the integrand; a Newton step finds it well enough.
    away = lean / bend
    x_there = x + away
    height = 0.5 * a * a - away * (x + 0.5 * away)
    units = len(factors) + 6.0
    units_of_bound, units_of_log = 200.0 + units, 2.0 * LOG_CDF_UNITS + units
    heights, leans = units * (0.5 * a * a + abs(away) * (abs(x) + abs(away))) * U, _UNITS_OF_PULL * abs(x_there)
    lean, rise, rises, brackets = -x_there, 0.0, 0.0, []
    for (count, (slope, _), (offset, _), shift, slack), (base, log_cdf_at_peak, h_at_peak) in zip(
        factors, points, strict=True
    ):
        moves = slope * away
        y = base + moves
        log_cdf, h = log_cdf_and_hazard(y)
        steep = abs(slope)
        b = steep * a
        half = 0.5 * b * b
        bound, rate = swelling(y, log_cdf, h, b)
        pull = (1.0 - rate) * count * h
        # How far all of this may be off, as in strip.
        blur = U * (2.0 * abs(y) + 4.0 * abs(moves)) + slack + LEFT_OFF * (steep * abs(x_there) + abs(offset))
        if y > 0.0:
            off = half * (U * (units_of_bound + 20.0 * y * y) + 10.0 * (1.0 + y) * blur)
            pull_off = pull * (_UNITS_OF_PULL + (31.0 + y) * blur) + count * TINY
        else:
            off = half * (U * units_of_bound + 10.0 * blur)
            pull_off = pull * (_UNITS_OF_PULL + 31.0 / (1.0 - y) * blur) + count * TINY
        if base < DEEP and y < -1.0 and count * base * base > _MUCH:
            climb = deep_rise(base, moves)
            off += unsure_deep_rise(base, moves, blur, units)
        else:
            climb = log_cdf - log_cdf_at_peak
            if climb < 0.0:
                off += U * (2.0 - units_of_log * log_cdf) + 2.0 * h * blur
            else:
                off += U * (2.0 - units_of_log * log_cdf_at_peak) + 2.0 * h_at_peak * blur
        height += count * (bound + climb)
        heights += count * off
        lean += pull * slope
        leans += pull_off * steep
        if move is not None:
            rise += pull * shift
            rises += pull_off * shift + 60.0 * blur
            brackets.append((shift, count, slope, y, h, half))
    bell = _ROOT_2PI * math.exp(0.5 * lean * lean)
    height += heights + leans * (60.0 + leans) + SLACK
    log_whole = log_gain = height + math.log(bell)
    size = _LOG_ROOT_2PI - 0.5 * math.log(bend)
    effort = EFFORT + log_whole - size
    if move is not None:
        translation, left = move
        # ∫|w|·exp(lean·w - w²/2) dw is at most this; the first term of the gain's derivative is τ·(x + ia).
        wide = 2.0 * (1.0 + abs(lean) * bell)
        most = abs(translation) * ((abs(x_there) + a) * bell + wide)
        for rest, (shift, count, slope, y, h, half) in zip(left, brackets, strict=True):
            flat = (h + TINY) * bell + abs(slope) * wide
            part = _UNITS_OF_LEFT * (shift + abs(slope * translation)) * flat
            if rest != 0.0:
                tangent = max((y + slope * lean) / (1.0 + slope * slope), LEAST_TANGENT)
                tilt = lean - slope * tangent
                exponent = tangent * (0.5 * tangent - y) + 0.5 * tilt * tilt
                part += abs(rest) * (min(2.0 * math.exp(exponent), flat) if exponent < 700.0 else flat)
            most += count * math.exp(half) * part
        log_gain = height + rise + rises + math.log(most)
        effort = max(effort, EFFORT + log_gain - size - math.log(site.gain))
    step = 2.0 * math.pi * a / effort
    on_lattice = site.on_lattice and step * FINE >= COARSE
    if on_lattice:
        step = math.floor(step * FINE) / FINE
    else:
        # Nine bits are kept, so that nodes, which are multiples, are exact.
        step *= 1.0 - 2.0**-8
        cut = step * (2.0**44 + 1.0)
        step = cut - (cut - step)
    start = math.sqrt(2.0 * DROP / bend)
    first = -math.floor(_reach(factors, x, points, start, -1.0) / step) - 1.0
    last = math.floor(_reach(factors, x, points, start, 1.0) / step) + 1.0
    if on_lattice:
        y = points[0][0]
        on_lattice = y + step * first >= -EDGE and y + step * last <= EDGE
    return OnePlan(a, log_whole, log_gain, away, step, first, last, on_lattice)


def sums_alone(factors: Sequence[Factor], site: Site, move: tuple[float, list[float]] | None) -> Sums | None:
    """The sums of one cell with their bounds, or ``None``: see :func:`dpselect.numerics.rule.sums`."""
    planned = plan_alone(factors, site, move)
    x, step = site.x, planned.step
    nodes = planned.last - planned.first + 1.0
    if not 2.0 < nodes <= MOST_NODES:
        return None
    before, after = step * planned.first, step * planned.last
    width = max(-before, after)
    far_x = abs(x) + width
    reaches, height_error, exponent_error = width * far_x, 8.0 * U, 0.0
    translation, left = (0.0, None) if move is None else move
    distance = abs(translation)
    growth_before = growth_after = distance * (far_x + distance)
    exponent_error = 6.0 * U * growth_before
    extent_before = extent_after = distance
    parts = []
    for number, ((count, (slope, _), (offset, _), shift, slack), (base, log_cdf, _)) in enumerate(
        zip(factors, site.points, strict=True)
    ):
        steep = abs(slope)
        y_before, y_after = base + slope * before, base + slope * after
        log_before, h_before = log_cdf_and_hazard(y_before)
        log_after, h_after = log_cdf_and_hazard(y_after)
        if y_before < y_after:
            low, high, log_low, h_low = y_before, y_after, -log_before, h_before
        else:
            low, high, log_low, h_low = y_after, y_before, -log_after, h_after
        far = max(-low, high)
        blur = U * (2.0 * far + 4.0 * steep * width) + slack + LEFT_OFF * (steep * abs(x) + abs(offset))
        deep = base < DEEP and high < -1.0
        if deep:
            stretch = steep * width
            squares = stretch * (stretch - base)
            error = U * (6.0 * squares + 24.0) + blur + stretch * (blur - U * base)
            reaches += count * (squares + 1.0)
        else:
            error = 2.0 * log_cdf_error_of_one(low, log_low) + h_low * blur
            reaches += count * log_low
        height_error += count * error
        rest, reach = 0.0, 0.0
        if left is not None:
            rest = left[number]
            loose = _UNITS_OF_LEFT * (shift + steep * distance)
            size = loose + abs(rest)
            h = h_low + size
            exponent_error += count * h * loose
            moved = count * size
            growth_before += moved * (h_before + size)
            growth_after += moved * (h_after + size)
            if slope > 0.0:
                extent_before += moved * steep
            else:
                extent_after += moved * steep
            if rest != 0.0:
                reach = size * (far + 2.0)
                if reach + size * size > SMALL_STEP:
                    return None
                rate = min(h * (h + far), 1.0)
                exponent_error += count * size * (h * (STEP_UNITS + 20.0 * low * low) * U + rate * blur)
        parts.append(Part(count, slope, base, log_cdf, rest, reach, deep))
    # The roundings of heights, and what the peak's own place leaves off.
    height_error += U * (len(factors) + 6.0) * reaches
    if growth_before > 700.0 or growth_after > 700.0:
        return None
    raw = added_up_alone(x, step, planned.first, translation, parts, planned.on_lattice, nodes)
    whole = step * raw.whole
    outer_before, outer_after = step * math.exp(raw.first), step * math.exp(raw.last)
    # Either height may be off.
    ratio_before = math.exp(raw.first - raw.second + 2.0 * height_error)
    ratio_after = math.exp(raw.last - raw.last_but_one + 2.0 * height_error)
    if not (ratio_before < 0.99 and ratio_after < 0.99 and height_error < 1e-3):
        return None
    power = 2.0 * math.pi * planned.half_width / step
    damped = power + math.log1p(-math.exp(-power)) - _LOG_2 - 1e-9 * power
    rounding = 1.01 * (height_error + (nodes + 6.0) * U)
    whole_error = math.exp(planned.log_whole - damped) + whole * rounding
    whole_error += 1.01 * outer_before * ratio_before / (1.0 - ratio_before)
    whole_error += 1.01 * outer_after * ratio_after / (1.0 - ratio_after)
    if move is None:
        return Sums(whole, whole_error, 0.0, 0.0)
    gain = step * raw.gain
    gain_error = math.exp(planned.log_gain - damped) + 1.01 * (whole + abs(gain)) * exponent_error
    gain_error += step * raw.size * rounding
    for outer, ratio, extent, growth in (
        (outer_before, ratio_before, extent_before, growth_before),
        (outer_after, ratio_after, extent_after, growth_after),
    ):
        ratio *= math.exp(step * extent)
        if not ratio < 0.99:
            return None
        inner = growth / (1.0 - ratio) + step * extent / ((1.0 - ratio) * (1.0 - ratio))
        gain_error += 1.01 * outer * math.exp(growth) * ratio * inner
    return Sums(whole, whole_error, gain, gain_error)


def log_cdf_error_of_one(low: float, log_low: float) -> float:
    """See :func:`dpselect.numerics.rule.log_cdf_error`."""
    if low > 1.2:
        return U * (LOG_CDF_UNITS * log_low + 4.0 * low * low * log_low)
    return U * (min(LOG_CDF_UNITS * log_low, DEEP_UNITS * log_low + DEEP_MORE) + 0.72)


def ratio_of_one(found: Sums) -> tuple[float, float]:
    """log(1 + gain/whole) and a bound on its error: see :func:`dpselect.numerics.rule.ratio_from`."""
    odds = found.gain / found.whole
    sure = found.whole - found.whole_error
    if not (sure > 0.0 and odds > -0.5):
        return 0.0, math.inf
    error = (found.gain_error + abs(odds) * found.whole_error) / sure
    if not error < 0.1:
        return 0.0, math.inf
    value = math.log1p(odds)
    # The logarithm's slope between the true odds and these is at most 1/(1 + odds - error).
    return value, error / (1.0 + odds - error) + 4.0 * U * abs(value)


def height_of_one(factors: Sequence[Factor], site: Site) -> tuple[float, float]:
    """Σ count·log Φ(y_j) at a peak, and a bound on its error: see :func:`dpselect.numerics.rule.height_of`."""
    height, error = 0.0, 0.0
    for factor, (y, log_cdf, h) in zip(factors, site.points, strict=True):
        size = factor.count * log_cdf
        height += size
        blur = 2.0 * U * abs(y) + LEFT_OFF * (abs(factor.slope.high * site.x) + abs(factor.offset.high)) + factor.slack
        error += factor.count * (log_cdf_error_of_one(y, -log_cdf) + h * blur)
        error += U * (len(factors) + 2.0) * abs(size)
    return height, error
