"""The one rule: the plain trapezoidal sum, its step chosen from a bound on its error (docs/theory.md §6).

    J(shifts) = E_x[∏_j Φ(slope_j·x + offset_j + shift_j)^count_j],   x ~ N(0, 1)

A *cell* is a list of factors. Here their fields are arrays over many cells, and here is where and how to sum;
:mod:`dpselect.numerics.sums` adds up, :mod:`dpselect.numerics.alone` does both for one cell of floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpselect.numerics.factors import Factor, Point, Spot
from dpselect.numerics.normal import EDGE, FINE, log_cdf_and_hazard_of_one, rough_log_cdf_and_hazard
from dpselect.numerics.pair import Number
from dpselect.numerics.strip import EFFORT, Move, Strip, curvature, half_width, strip

#: The window ends where the integrand has fallen by about exp(-DROP).
DROP = 35.0
#: Below this argument log Φ is nearly a square, and squares are subtracted before they are rounded.
DEEP = -4.0
#: Steps of fewer points of the lattice lose too much when they are rounded down to it.
COARSE = 8.0
#: Arguments at a peak between which the sum keeps to the lattice: below, squares are better; above, it ends.
LATTICE = (-4.0, 12.0)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_MOST_REACH = math.sqrt(2.0 * DROP) + 0.2


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
        distance = np.minimum(distance * np.exp(np.log(DROP / drop) / power), _MOST_REACH)
    return distance


def reach_of_one(factors: Sequence[Factor], x: float, points: Sequence[Point], start: float, side: float) -> float:
    """:func:`_reach` for one cell of floats."""
    distance = start
    for _ in range(2):
        at = side * distance
        drop, slope = at * (x + 0.5 * at), x + at
        for factor, (y, log_cdf, _) in zip(factors, points, strict=True):
            along = factor.slope.high
            there, here = log_cdf_and_hazard_of_one(y + along * at)
            drop -= factor.count * (there - log_cdf)
            slope -= factor.count * along * here
        if 0.9 * DROP < drop < 1.3 * DROP:
            break
        drop = max(drop, 1e-3)
        power = max(side * slope * distance / drop, 1.0)
        distance = min(distance * math.exp(math.log(DROP / drop) / power), _MOST_REACH)
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
