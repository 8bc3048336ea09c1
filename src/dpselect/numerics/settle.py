"""One cell or many, by the rule: on one grid where the loss is small, on two where the hill moves.

A cell is *settled* when the bound on its error is at most :data:`TOLERANCE` of its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.numerics import many, plain
from dpselect.numerics.factors import Factor, Spot, exchanged, peaks, spot_at
from dpselect.numerics.guess import peak_of_one
from dpselect.numerics.pair import Number, Pair
from dpselect.numerics.rule import (
    MOST_NODES,
    Plan,
    Sums,
    best_move,
    height_of,
    move_by,
    plan,
    ratio_from,
    shifted,
    sums,
)

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


def _spot(factors: list[Factor]) -> Spot:
    return spot_at(factors, peak_of_one(factors), plain)


def _spots(factors: list[Factor]) -> Spot:
    x, settled = peaks(factors, steps=_PEAK_STEPS)
    late = np.flatnonzero(~settled)
    if len(late):
        x[late] = peaks(take(factors, late), steps=_LATE_PEAK_STEPS)[0]
    return spot_at(factors, x, many)


def _nodes(planned: Plan) -> float:
    return float(planned.last - planned.first + 1.0)


def _sums_of_one(factors: list[Factor], planned: Plan) -> Sums | None:
    nodes = _nodes(planned)
    return sums(factors, planned, int(nodes), plain) if 2.0 < nodes <= _MOST else None


def one_log_ratio(factors: list[Factor]) -> tuple[float, float] | None:
    """``(log J(shifts) - log J(0), error)`` for one cell of floats, or ``None`` if the rule does not settle it."""
    factors = _flat([factor for factor in factors if factor.count > 0.0])
    spot = _spot(factors)
    if not math.isfinite(spot.x):
        return None
    value, error = 0.0, math.inf
    if _gain(factors, spot) < _SMALL:
        sizes = best_move(factors, spot, plain)
        move = move_by(factors, min(range(len(sizes)), key=sizes.__getitem__) - 1)
        found = _sums_of_one(factors, plan(factors, spot, move, plain))
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
    fall = 0.5 * (spot_moved.x - spot.x) * (spot_moved.x + spot.x)
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


def _spot_of(spot: Spot, cells: NDArray[np.intp] | NDArray[np.bool_]) -> Spot:
    return Spot(spot.x[cells], *([array[cells] for array in part] for part in spot[1:]))


def _plan_of(planned: Plan, cells: NDArray[np.intp]) -> Plan:
    move = planned.move
    if move is not None:
        move = move._replace(translation=move.translation[cells], left=[array[cells] for array in move.left])
    return Plan(
        _spot_of(planned.spot, cells),
        planned.bend[cells],
        move,
        planned.strip._replace(**{name: value[cells] for name, value in planned.strip._asdict().items()}),
        planned.step[cells],
        planned.first[cells],
        planned.last[cells],
    )


def _sums_of_many(factors: list[Factor], planned: Plan) -> Sums:
    """Block by block, cells that need about as many nodes together; unsettled where they need too many."""
    counts = planned.last - planned.first + 1.0
    result = np.zeros((4, len(counts)))
    result[1] = result[3] = math.inf
    order = np.argsort(counts)
    order = order[(counts[order] > 2.0) & (counts[order] <= _MOST_AMONG_MANY)]
    start = 0
    while start < len(order):
        block = order[start : start + max(8, int(_BLOCK / counts[order[start]]))]
        nodes = int(counts[block[-1]])
        result[:, block] = sums(take(factors, block), _plan_of(planned, block), nodes, many)
        start += len(block)
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
    cells = len(spot.x)
    value, error = np.zeros(cells), np.full(cells, math.inf)
    small = _gain(factors, spot) < _SMALL
    cleared = np.where(small, np.argmin(best_move(factors, spot, many), axis=0) - 1, -2)
    for choice in range(-1, len(factors)):
        chosen = np.flatnonzero(cleared == choice)
        if len(chosen):
            some = take(factors, chosen)
            planned = plan(some, _spot_of(spot, chosen), move_by(some, choice), many)
            value[chosen], error[chosen] = ratio_from(_sums_of_many(some, planned), many)
    again = np.flatnonzero(~((error <= TOLERANCE * value) & (value > 0.0) & (error < math.inf)))
    if len(again):
        some, there = take(factors, again), _spot_of(spot, again)
        moved = shifted(some)
        spot_moved = _spots(moved)
        below = _sums_of_many(some, plan(some, there, None, many))
        above = _sums_of_many(moved, plan(moved, spot_moved, None, many))
        value[again], error[again] = _quotient(some, there, below, moved, spot_moved, above)
    return value, error
