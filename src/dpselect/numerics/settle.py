"""One cell or many, by the rule: on one grid where the loss is small, on two where the hill moves.

A cell is *settled* when the bound on its error is at most :data:`TOLERANCE` of its value.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.numerics.alone import Site, height_of_one, ratio_of_one, site_of, sums_alone
from dpselect.numerics.alone import best_move as best_move_of_one
from dpselect.numerics.factors import Factor, Spot, exchanged, lattice_spot, peaks, spot_at
from dpselect.numerics.nodes import Block
from dpselect.numerics.pair import Number, U
from dpselect.numerics.rule import LATTICE, Plan, Sums, best_move, height_of, plan, ratio_from, shifted, sums

#: The largest error accepted, relative to a loss; to 1 or the value for the logarithm of an integral. A value may be
#: off by it on either side, so that what is shown as ε is at most 1e-10 above the truth. Long runs with many ⊤ come
#: to 3e-11.
TOLERANCE = 4.5e-11
#: Steeper than this, a lone kind of factor is integrated over its largest z instead of over x.
_STEEP = 1.25
#: Losses that look larger than this are not summed as gains, on one grid.
_SMALL = 3.0
#: The most nodes for one cell among many.
_MOST_AMONG_MANY = 1_000
#: How many numbers a block of nodes holds, so that its temporaries stay in a core's cache.
_BLOCK = 8192
#: Steps towards all peaks together, and then towards the few that are not found yet.
_PEAK_STEPS, _LATE_PEAK_STEPS = 6, 40
#: The share of peaks after which the others are looked for apart.
_MOST_PEAKS = 0.9
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def _flat(factors: list[Factor]) -> list[Factor]:
    """One live kind of steep factor with the variables exchanged; anything else as it is."""
    if len(factors) == 1 and abs(factors[0].slope.high) > _STEEP:
        return [factor for factor in exchanged(factors[0]) if factor.count > 0.0]
    return factors


def _spots(factors: list[Factor]) -> Spot:
    x, settled = peaks(factors, steps=_PEAK_STEPS, enough=_MOST_PEAKS)
    late = np.flatnonzero(~settled)
    if len(late):
        x[late] = peaks(picked(factors, late), steps=_LATE_PEAK_STEPS)[0]
    if len(factors) > 1 or not ((factors[0].slope.high == 1.0) & (factors[0].slope.low == 0.0)).all():
        return spot_at(factors, x)
    y = x + factors[0].offset.high
    spot = lattice_spot(factors[0], x)
    near = (LATTICE[0] < y) & (y < LATTICE[1])
    beside = np.flatnonzero(~near)
    if len(beside):
        other = spot_at(picked(factors, beside), x[beside])
        spot.x[beside], spot.low[beside] = other.x, 0.0
        for part, values in zip(spot[1:4], other[1:4], strict=True):
            part[0][beside] = values[0]
    return spot._replace(on_lattice=near)


@np.errstate(all="ignore")
def one_log_ratio(factors: list[Factor]) -> tuple[float, float] | None:
    """``(log J(shifts) - log J(0), error)`` for one cell of floats, or ``None`` if the rule does not settle it."""
    factors = _flat([factor for factor in factors if factor.count > 0.0])
    site = site_of(factors)
    if not math.isfinite(site.x):
        return None
    value, error = 0.0, math.inf
    if site.gain < _SMALL:
        found = sums_alone(factors, site, best_move_of_one(factors, site))
        if found is not None:
            value, error = ratio_of_one(found)
    if not 0.0 < error <= TOLERANCE * value < math.inf:
        value, error = _two_grids_of_one(factors, site)
    return (value, error) if value > 1e-290 and error <= TOLERANCE * value < math.inf else None


def _two_grids_of_one(factors: list[Factor], site: Site) -> tuple[float, float]:
    moved = shifted(factors)
    site_moved = site_of(moved)
    if not math.isfinite(site_moved.x):
        return 0.0, math.inf
    below, above = sums_alone(factors, site, None), sums_alone(moved, site_moved, None)
    if below is None or above is None:
        return 0.0, math.inf
    ends = (height_of_one(factors, site), height_of_one(moved, site_moved))
    value, error = _quotient(*ends, site, site_moved, math.log(above.whole / below.whole))
    return value, error + _log_error_of_one(below) + _log_error_of_one(above)


def _quotient(
    below: tuple[Number, Number], above: tuple[Number, Number], peak: Spot | Site, moved: Spot | Site, sizes: Number
) -> tuple[Number, Number]:
    """log J(shifts) - log J(0) from the heights at the two peaks, with their errors, and the sums' log ratio."""
    fall = 0.5 * ((moved.x - peak.x) + (moved.low - peak.low)) * (moved.x + peak.x)
    value = (above[0] - below[0]) - fall + sizes
    rounding = 6.0 * U * (abs(below[0]) + abs(above[0]) + abs(fall) + abs(sizes) + 1.0)
    return value, below[1] + above[1] + rounding


def _log_error(found: Sums) -> FloatArray:
    """How far the logarithms of the sums may be off."""
    share = found.whole_error / found.whole
    return np.where(share < 0.5, -np.log1p(-np.minimum(share, 0.5)), math.inf)


def _log_error_of_one(found: Sums) -> float:
    share = found.whole_error / found.whole
    return -math.log1p(-share) if share < 0.5 else math.inf


@np.errstate(all="ignore")
def one_log_integral(factors: list[Factor]) -> tuple[float, float] | None:
    """``(log J(0), error)`` for one cell of floats, or ``None`` if the rule does not settle it."""
    live = [factor for factor in factors if factor.count > 0.0]
    flat = _flat(live)
    site = site_of(flat)
    found = sums_alone(flat, site, None) if math.isfinite(site.x) else None
    if found is None or not found.whole > 0.0:
        return None
    height, error = height_of_one(flat, site)
    parts = [height, -site.x * (0.5 * site.x + site.low), math.log(found.whole), -_LOG_ROOT_2PI]
    if flat is not live:
        parts.append(math.log(live[0].count))
    value = math.fsum(parts)
    error += _log_error_of_one(found) + 6.0 * U * (1.0 + sum(abs(part) for part in parts))
    return (value, error) if error <= TOLERANCE * max(1.0, -value) < math.inf else None


def picked(value: Any, cells: NDArray[np.intp] | NDArray[np.bool_]) -> Any:
    """Some of many cells: of an array its entries, of tuples and lists part by part; what holds for all stays."""
    if isinstance(value, np.ndarray):
        return value[cells]
    if isinstance(value, list):
        return [picked(part, cells) for part in value]
    return type(value)(*(picked(part, cells) for part in value)) if isinstance(value, tuple) else value


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
        result[:, order] = sums(picked(factors, order), picked(planned, order), nodes, blocks)
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
        found = _sums_of_many(flat, plan(flat, spot, None))
        height, rounding = height_of(flat, spot)
        parts = [height, -spot.x * (0.5 * spot.x + spot.low), np.log(found.whole), np.log(multiple) - _LOG_ROOT_2PI]
        value[chosen] = np.sum(parts, axis=0)
        size = np.sum(np.abs(parts), axis=0)
        error[chosen] = rounding + _log_error(found) + 6.0 * U * (1.0 + size)
    return value, error


def _flattened(factors: list[Factor]) -> Iterator[tuple[NDArray[np.intp], list[Factor], FloatArray]]:
    """The cells in groups, steep ones with the variables exchanged: which, their factors, what J is a multiple of."""
    count = factors[0].count
    steep = np.abs(factors[0].slope.high) > _STEEP if len(factors) == 1 else np.zeros(len(count), dtype=bool)
    for chosen, first in ((steep & (count > 1.0), 0), (steep & (count == 1.0), 1)):
        which = np.flatnonzero(chosen)
        if len(which):
            yield which, exchanged(picked(factors, which)[0])[first:], count[which]
    which = np.flatnonzero(~steep)
    if len(which):
        yield which, picked(factors, which), np.ones(len(which))


def _many(factors: list[Factor]) -> tuple[FloatArray, FloatArray]:
    spot = _spots(factors)
    planned = plan(factors, spot, best_move(factors, spot))
    value, error = ratio_from(_sums_of_many(factors, planned))
    again = np.flatnonzero(~((error <= TOLERANCE * value) & (value > 0.0) & (error < math.inf)))
    if len(again):
        second, second_error = _two_grids(picked(factors, again), picked(spot, again))
        # Whichever has the smaller bound; NaN compares false.
        better = second_error < np.where(np.isnan(error[again]), math.inf, error[again])
        value[again], error[again] = np.where(better, (second, second_error), (value[again], error[again]))
    return value, error


def _two_grids(factors: list[Factor], spot: Spot) -> tuple[FloatArray, FloatArray]:
    """Both grids of some cells, planned and summed together."""
    moved = shifted(factors)
    spot_moved = _spots(moved)
    cells = len(spot.x)
    both = _end_to_end(factors, moved)
    found = _sums_of_many(both, plan(both, _end_to_end(spot, spot_moved), None))
    below, above = (Sums(*(part[half] for part in found)) for half in (slice(cells), slice(cells, None)))
    ends = (height_of(factors, spot), height_of(moved, spot_moved))
    value, error = _quotient(*ends, spot, spot_moved, np.log(above.whole / below.whole))
    return value, error + _log_error(below) + _log_error(above)


def _end_to_end(first: Any, second: Any) -> Any:
    """Numbers of some cells and then of others; of tuples and lists, part by part."""
    if isinstance(first, list):
        return list(map(_end_to_end, first, second))
    if isinstance(first, tuple):
        return type(first)(*map(_end_to_end, first, second))
    if isinstance(second, np.ndarray):
        return np.concatenate((np.broadcast_to(first, second.shape), second))
    return first
