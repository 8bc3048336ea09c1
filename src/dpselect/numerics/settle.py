"""One cell or many, by the rule: on one grid where the loss is small, on two where the hill moves.

A cell is *settled* when the bound on its error is at most :data:`TOLERANCE` of its value.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.numerics import many, plain
from dpselect.numerics.factors import Factor, Spot, exchanged, lattice_spot, peaks, spot_at
from dpselect.numerics.guess import peak_of_one
from dpselect.numerics.nodes import MOST_NODES, Block
from dpselect.numerics.pair import Number, Pair
from dpselect.numerics.rule import Plan, best_move, plan
from dpselect.numerics.strip import Strip
from dpselect.numerics.sums import Sums, height_of, ratio_from, shifted, sums

#: The largest error accepted, relative to a loss; to 1 or the value for the logarithm of an integral. A value may be
#: off by it on either side, so that what is shown as ε is at most 1e-10 above the truth. Long runs with many ⊤ come
#: to 3e-11.
TOLERANCE = 4.5e-11
#: Steeper than this, a lone kind of factor is integrated over its largest z instead of over x.
_STEEP = 1.25
#: Losses that look smaller than this are summed as gains, on one grid.
_SMALL = 0.7
#: The most nodes for one cell alone, and for one among many.
_MOST, _MOST_AMONG_MANY = MOST_NODES, 1_000
#: How many numbers a block of nodes holds, so that its temporaries stay in a core's cache.
_BLOCK = 8192
#: Steps towards all peaks together, and then towards the few that are not found yet.
_PEAK_STEPS, _LATE_PEAK_STEPS = 6, 40
#: The share of peaks after which the others are looked for apart.
_MOST_PEAKS = 0.9
#: Arguments at a peak from which on the sum keeps to the lattice: below, squares are better; above, it ends.
_LATTICE = (-4.0, 12.0)
_U = 2.0**-53
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def _gain(factors: Sequence[Factor], spot: Spot) -> Number:
    """About J(shifts)/J(0) - 1, where that is small."""
    total = 0.0
    for factor, hazard in zip(factors, spot.hazards, strict=True):
        total = total + factor.count * factor.shift * hazard
    return total


def _flat(factors: list[Factor]) -> list[Factor]:
    """One live kind of steep factor with the variables exchanged; anything else as it is."""
    if len(factors) == 1 and abs(factors[0].slope.high) > _STEEP:
        return [factor for factor in exchanged(factors[0], plain) if factor.count > 0.0]
    return factors


def _slope_is_one(factors: list[Factor]) -> bool:
    """Whether there is one kind of factor, with slope 1: the sum may then keep to the lattice of log Φ."""
    if len(factors) != 1:
        return False
    high, low = factors[0].slope
    alike = (high == 1.0) & (low == 0.0)
    return alike if isinstance(alike, bool) else bool(alike.all())


def _spot(factors: list[Factor]) -> Spot:
    x = peak_of_one(factors)
    if _slope_is_one(factors) and _LATTICE[0] < x + factors[0].offset.high < _LATTICE[1]:
        return lattice_spot(factors[0], x, plain)
    return spot_at(factors, x, plain)


def _spots(factors: list[Factor]) -> Spot:
    x, settled = peaks(factors, steps=_PEAK_STEPS, enough=_MOST_PEAKS)
    late = np.flatnonzero(~settled)
    if len(late):
        x[late] = peaks(take(factors, late), steps=_LATE_PEAK_STEPS)[0]
    if not _slope_is_one(factors):
        return spot_at(factors, x, many)
    y = x + factors[0].offset.high
    spot = lattice_spot(factors[0], x, many)
    near = (_LATTICE[0] < y) & (y < _LATTICE[1])
    beside = np.flatnonzero(~near)
    if len(beside):
        other = spot_at(take(factors, beside), x[beside], many)
        spot.x[beside], spot.low[beside] = other.x, 0.0
        for part, values in zip(spot[1:4], other[1:4], strict=True):
            part[0][beside] = values[0]
    return spot._replace(on_lattice=near)


def _sums_of_one(factors: list[Factor], planned: Plan) -> Sums | None:
    nodes = planned.last - planned.first + 1.0
    return sums(factors, planned, nodes, (), plain) if 2.0 < nodes <= _MOST else None


def one_log_ratio(factors: list[Factor]) -> tuple[float, float] | None:
    """``(log J(shifts) - log J(0), error)`` for one cell of floats, or ``None`` if the rule does not settle it."""
    factors = _flat([factor for factor in factors if factor.count > 0.0])
    spot = _spot(factors)
    if not math.isfinite(spot.x):
        return None
    value, error = 0.0, math.inf
    if _gain(factors, spot) < _SMALL:
        found = _sums_of_one(factors, plan(factors, spot, best_move(factors, spot, plain), plain))
        if found is not None:
            value, error = ratio_from(found, plain)
    if not (value > 0.0 and error <= TOLERANCE * value < math.inf):
        value, error = _two_grids_of_one(factors, spot)
    return (value, error) if value > 1e-290 and error <= TOLERANCE * value < math.inf else None


def _two_grids_of_one(factors: list[Factor], spot: Spot) -> tuple[float, float]:
    moved = shifted(factors)
    spot_moved = _spot(moved)
    if not math.isfinite(spot_moved.x):
        return 0.0, math.inf
    below = _sums_of_one(factors, plan(factors, spot, None, plain))
    above = None if below is None else _sums_of_one(moved, plan(moved, spot_moved, None, plain))
    if below is None or above is None:
        return 0.0, math.inf
    return _quotient(factors, spot, below, moved, spot_moved, above)


def _quotient(
    factors: Sequence[Factor], spot: Spot, below: Sums, moved: Sequence[Factor], spot_moved: Spot, above: Sums
) -> tuple[Number, Number]:
    """log J(shifts) - log J(0) from a grid each."""
    xp = many if isinstance(spot.x, np.ndarray) else plain
    low, low_error = height_of(factors, spot, xp)
    high, high_error = height_of(moved, spot_moved, xp)
    fall = 0.5 * ((spot_moved.x - spot.x) + (spot_moved.low - spot.low)) * (spot_moved.x + spot.x)
    sizes = xp.log(above.whole / below.whole)
    value = (high - low) - fall + sizes
    error = low_error + high_error + _relative_error(below) + _relative_error(above)
    return value, error + 6.0 * _U * (xp.abs(low) + xp.abs(high) + xp.abs(fall) + xp.abs(sizes) + 1.0)


def _relative_error(found: Sums) -> Number:
    """How far the logarithm of the sum may be off."""
    share = found.whole_error / found.whole
    if isinstance(share, np.ndarray):
        return np.where(share < 0.5, -np.log1p(-np.minimum(share, 0.5)), math.inf)
    return -math.log1p(-share) if share < 0.5 else math.inf


def one_log_integral(factors: list[Factor]) -> tuple[float, float] | None:
    """``(log J(0), error)`` for one cell of floats, or ``None`` if the rule does not settle it."""
    live = [factor for factor in factors if factor.count > 0.0]
    flat = _flat(live)
    spot = _spot(flat)
    found = _sums_of_one(flat, plan(flat, spot, None, plain)) if math.isfinite(spot.x) else None
    if found is None or not found.whole > 0.0:
        return None
    height, error = height_of(flat, spot, plain)
    parts = [height, -0.5 * spot.x * spot.x, math.log(found.whole), -_LOG_ROOT_2PI]
    if flat is not live:
        parts.append(math.log(live[0].count))
    value = math.fsum(parts)
    error += _relative_error(found) + 6.0 * _U * (1.0 + sum(abs(part) for part in parts))
    return (value, error) if error <= TOLERANCE * max(1.0, -value) < math.inf else None


def take(factors: Sequence[Factor], cells: NDArray[np.intp] | NDArray[np.bool_]) -> list[Factor]:
    """Some of many cells."""
    return [
        Factor(
            factor.count[cells],
            Pair(factor.slope.high[cells], factor.slope.low[cells]),
            Pair(factor.offset.high[cells], factor.offset.low[cells]),
            factor.shift[cells],
            factor.slack[cells] if isinstance(factor.slack, np.ndarray) else factor.slack,
        )
        for factor in factors
    ]


def _spot_of(spot: Spot, cells: NDArray[np.intp]) -> Spot:
    arguments, log_cdfs, hazards = ([array[cells] for array in part] for part in spot[1:4])
    if spot.on_lattice is False:
        return Spot(spot.x[cells], arguments, log_cdfs, hazards)
    return Spot(spot.x[cells], arguments, log_cdfs, hazards, spot.low[cells], spot.on_lattice[cells])


def _plan_of(planned: Plan, cells: NDArray[np.intp]) -> Plan:
    move = planned.move
    if move is not None:
        move = move._replace(
            translation=move.translation[cells], left=[left if left is None else left[cells] for left in move.left]
        )
    return Plan(
        _spot_of(planned.spot, cells),
        planned.bend[cells],
        move,
        Strip(*(array[cells] for array in planned.strip)),
        planned.step[cells],
        planned.first[cells],
        planned.last[cells],
        planned.on_lattice if planned.on_lattice is False else planned.on_lattice[cells],
        [array[cells] for array in planned.deep],
    )


def _in_blocks(planned: Plan, counts: FloatArray) -> tuple[NDArray[np.intp], list[Block], FloatArray]:
    """Cells in an order in which those that are alike, and need about as many nodes, come together."""
    kinds = np.zeros(len(counts))
    flags = [*planned.deep, *(() if planned.on_lattice is False else (planned.on_lattice,))]
    if planned.move is not None:
        flags += [left != 0.0 for left in planned.move.left if left is not None]
    for flag in flags:
        kinds *= 2.0
        kinds += flag
    keys = kinds * (2.0 * _MOST_AMONG_MANY) + counts
    keys[~((counts > 2.0) & (counts <= _MOST_AMONG_MANY))] = math.inf
    order = np.argsort(keys)
    ranks = keys[order].tolist()
    size = bisect_left(ranks, math.inf)
    blocks, nodes, start = [], np.empty(size), 0
    while start < size:
        least = ranks[start] % (2.0 * _MOST_AMONG_MANY)
        stop = min(start + max(8, int(_BLOCK / least)), size)
        stop = bisect_right(ranks, ranks[start] + 4.0 + 0.25 * least, start, stop)
        number = int(ranks[stop - 1] % (2.0 * _MOST_AMONG_MANY))
        blocks.append(Block(start, stop, number))
        nodes[start:stop] = number
        start = stop
    return order[:size], blocks, nodes


def _sums_of_many(factors: list[Factor], planned: Plan) -> Sums:
    """Block by block; unsettled where a cell needs too many nodes."""
    result = np.zeros((4, len(planned.step)))
    result[1] = result[3] = math.inf
    order, blocks, nodes = _in_blocks(planned, planned.last - planned.first + 1.0)
    if len(order):
        result[:, order] = sums(take(factors, order), _plan_of(planned, order), nodes, blocks, many)
    return Sums(*result)


@np.errstate(all="ignore")
def many_log_ratios(factors: list[Factor]) -> tuple[FloatArray, FloatArray]:
    """``(log J(shifts) - log J(0), error)`` for cells whose counts are all positive; errors may be infinite or NaN."""
    cells = len(factors[0].count)
    value, error = np.zeros(cells), np.full(cells, math.inf)
    for chosen, flat, _ in _flattened(factors):
        value[chosen], error[chosen] = _many(flat)
    return value, error


@np.errstate(all="ignore")
def many_log_integrals(factors: list[Factor]) -> tuple[FloatArray, FloatArray]:
    """``(log J(0), error)`` for cells whose counts are all positive; errors may be infinite or NaN."""
    cells = len(factors[0].count)
    value, error = np.zeros(cells), np.full(cells, math.inf)
    for chosen, flat, multiple in _flattened(factors):
        spot = _spots(flat)
        found = _sums_of_many(flat, plan(flat, spot, None, many))
        height, rounding = height_of(flat, spot, many)
        parts = [height, -0.5 * spot.x * spot.x, np.log(found.whole), np.log(multiple) - _LOG_ROOT_2PI]
        value[chosen] = np.sum(parts, axis=0)
        size = np.sum(np.abs(parts), axis=0)
        error[chosen] = rounding + _relative_error(found) + 6.0 * _U * (1.0 + size)
    return value, error


def _flattened(factors: list[Factor]) -> Iterator[tuple[NDArray[np.intp], list[Factor], FloatArray]]:
    """The cells in groups, steep ones with the variables exchanged: which, their factors, what J is a multiple of."""
    count = factors[0].count
    steep = np.abs(factors[0].slope.high) > _STEEP if len(factors) == 1 else np.zeros(len(count), dtype=bool)
    for chosen, first in ((steep & (count > 1.0), 0), (steep & (count == 1.0), 1)):
        which = np.flatnonzero(chosen)
        if len(which):
            yield which, exchanged(take(factors, which)[0], many)[first:], count[which]
    which = np.flatnonzero(~steep)
    if len(which):
        yield which, take(factors, which), np.ones(len(which))


def _many(factors: list[Factor]) -> tuple[FloatArray, FloatArray]:
    spot = _spots(factors)
    planned = plan(factors, spot, best_move(factors, spot, many), many)
    value, error = ratio_from(_sums_of_many(factors, planned), many)
    again = np.flatnonzero(~((error <= TOLERANCE * value) & (value > 0.0) & (error < math.inf)))
    if len(again):
        value[again], error[again] = _two_grids(take(factors, again), _spot_of(spot, again))
    return value, error


def _two_grids(factors: list[Factor], spot: Spot) -> tuple[FloatArray, FloatArray]:
    """Both grids of some cells, planned and summed together."""
    moved = shifted(factors)
    spot_moved = _spots(moved)
    cells = len(spot.x)
    both = [Factor(*map(_end_to_end, before, after)) for before, after in zip(factors, moved, strict=True)]
    there = Spot(*map(_end_to_end, spot, spot_moved))
    found = _sums_of_many(both, plan(both, there, None, many))
    below, above = (Sums(*(part[half] for part in found)) for half in (slice(cells), slice(cells, None)))
    return _quotient(factors, spot, below, moved, spot_moved, above)


def _end_to_end(first: Any, second: Any) -> Any:
    """Numbers of some cells and then of others; of pairs and lists, part by part."""
    if isinstance(first, Pair):
        return Pair(*map(_end_to_end, first, second))
    if isinstance(first, list):
        return list(map(_end_to_end, first, second))
    if isinstance(second, np.ndarray):
        return np.concatenate((np.broadcast_to(first, second.shape), second))
    return first
