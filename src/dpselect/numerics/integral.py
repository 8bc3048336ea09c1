"""The one integral behind every bound (THEORY §2), fast and never below the truth.

    J(shifts) = E_x[∏_j Φ(slope_j·x + offset_j + shift_j)^count_j],   x ~ N(0, 1)

:func:`log_ratio` gives log J(shifts) - log J(0) and :func:`log_integral` log J(0), each with a proven bound on its
error: by the trapezoidal rule of :mod:`dpselect.numerics.rule`, and where that would need too many nodes or more digits
than doubles have, by the enclosure. Slopes and offsets may be pairs (:mod:`dpselect.numerics.pair`); ``exact`` names
the exact inputs of a cell for the enclosure.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.errors import DPSelectError
from dpselect.numerics.enclosure import Enclosure, enclose_log_integral, enclose_log_ratio
from dpselect.numerics.factors import Factor
from dpselect.numerics.pair import Pair
from dpselect.numerics.pair import exact as exact_pair
from dpselect.numerics.settle import (
    TOLERANCE,
    many_log_integrals,
    many_log_ratios,
    one_log_integral,
    one_log_ratio,
    picked,
)

#: Exact slopes, offsets and shifts of the cell with a given number, in the order of the factors.
ExactInputs: TypeAlias = Callable[[int], tuple[Sequence[Fraction], Sequence[Fraction], Sequence[Fraction]]]

#: Cells per chunk handed to a thread; with smaller ones threads wait for each other more than they work.
_CHUNK = 25_000
#: Up to so many cells are quicker one by one.
_FEW = 12
#: Below this a shift, or the rounding of one, is no normal double; only the enclosure, which has its own, can tell.
_NORMAL = 2.0**-960
#: Cells with more kinds of factors are rare, and taken one by one.
_KINDS = 4


def upper_end(value: float, error: float) -> float:
    """value + error rounded up, infinite where the value could not be had; the value itself where it is exact."""
    if error == 0.0:
        return value
    top = value + error
    return math.nextafter(top, math.inf) if top < math.inf else math.inf


@dataclass(frozen=True)
class LogEstimate:
    """A logarithm with a bound on its absolute error: the truth is within ``error`` of ``value``, by theorem.

    >>> float(LogEstimate(np.array(0.5), np.array(0.25)).upper)
    0.7500000000000001
    """

    value: FloatArray
    error: FloatArray

    @property
    def upper(self) -> FloatArray:
        """Never below the truth; infinite where the value could not be had."""
        if self.value.ndim == 0:
            return np.asarray(upper_end(float(self.value), float(self.error)))
        top = np.nextafter(self.value + self.error, np.inf)
        return np.where(np.isnan(top), np.inf, np.where(self.error == 0, self.value, top))


def log_ratio(
    counts: ArrayLike,
    slopes: ArrayLike | Pair,
    offsets: ArrayLike | Pair,
    shifts: ArrayLike,
    *,
    exact: ExactInputs | None = None,
    tolerance: float = TOLERANCE,
) -> LogEstimate:
    """log J(shifts) - log J(0) for shifts ≥ 0; the last axis runs over factors, the others broadcast.

    Small values keep their relative accuracy: the error is at most 4.5e-11 of the value, where that is a normal double.
    With a larger ``tolerance`` fewer of many cells are left to the enclosure; the error says how far each may be off.
    For one cell :func:`single_cell` is faster.

    >>> estimate = log_ratio([364.0], [1.0], [-5.0], [2 / 6946 / 0.2])
    >>> float(estimate.value)
    0.01078838523643...
    >>> bool(estimate.error < 1e-11 * estimate.value)
    True
    """
    shape, factors = _columns(counts, slopes, offsets, shifts)
    value, error = _ratios(factors, exact, tolerance)
    return LogEstimate(value.reshape(shape), error.reshape(shape))


def single_cell(
    counts: Sequence[float],
    slopes: Sequence[float | Pair],
    offsets: Sequence[float | Pair],
    shifts: Sequence[float],
    *,
    exact: ExactInputs | None = None,
) -> tuple[float, float]:
    """:func:`log_ratio` for one cell of plain floats, without the overhead of arrays: ``(value, error)``.

    >>> single_cell([364.0], [1.0], [-5.0], [2 / 6946 / 0.2])[0]
    0.01078838523643...
    """
    cell = [
        Factor(count, _as_pair(slope), _as_pair(offset), shift)
        for count, slope, offset, shift in zip(counts, slopes, offsets, shifts, strict=True)
    ]
    return one_cell(cell, exact=exact)


def log_integral(
    counts: ArrayLike, slopes: ArrayLike | Pair, offsets: ArrayLike | Pair, *, exact: ExactInputs | None = None
) -> LogEstimate:
    """log J(0) with its absolute error; the last axis runs over factors, the others broadcast.

    >>> float(log_integral([1.0], [1.0], [0.0]).value)  # E[Φ(x)] = 1/2
    -0.693147180559...
    """
    shape, factors = _columns(counts, slopes, offsets, 0.0)
    live = np.array([factor.count > 0.0 for factor in factors])
    value, error = _by_kind(many_log_integrals, factors, live, np.asarray(live.any(axis=0)))
    settled = (error <= TOLERANCE * np.maximum(1.0, -value)) & (error < math.inf)
    for number in np.flatnonzero(~settled).tolist():
        cell = _cells(picked(factors, np.array([number])))[0]
        value[number], error[number] = _one_integral(cell, number, exact)
    return LogEstimate(value.reshape(shape), error.reshape(shape))


def _as_pair(value: float | Pair) -> Pair:
    return value if isinstance(value, Pair) else Pair(value, 0.0)


def _columns(
    counts: ArrayLike, slopes: ArrayLike | Pair, offsets: ArrayLike | Pair, shifts: ArrayLike
) -> tuple[tuple[int, ...], list[Factor]]:
    """The shape of the cells, and the factors with one array over all cells in each field."""
    parts = [counts]
    for given in (slopes, offsets):
        parts += list(given) if isinstance(given, Pair) else list(exact_pair(np.asarray(given, dtype=np.float64)))
    arrays = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (*parts, shifts)))
    if not (arrays[0] >= 0.0).all():
        raise refuse("counts", counts, "zero or more")
    shape = arrays[0].shape[:-1]
    rows = [np.ascontiguousarray(array.reshape(-1, array.shape[-1]).T) for array in arrays]
    return shape, [
        Factor(count, Pair(slope, slope_low), Pair(offset, offset_low), shift)
        for count, slope, slope_low, offset, offset_low, shift in zip(*rows, strict=True)
    ]


def _cells(factors: list[Factor]) -> list[list[Factor]]:
    """Many cells as lists of floats."""
    columns = [
        zip(
            factor.count.tolist(),
            map(Pair, factor.slope.high.tolist(), factor.slope.low.tolist()),
            map(Pair, factor.offset.high.tolist(), factor.offset.low.tolist()),
            factor.shift.tolist(),
            strict=True,
        )
        for factor in factors
    ]
    return [[Factor(*fields) for fields in cell] for cell in zip(*columns, strict=True)]


def _ratios(factors: list[Factor], exact: ExactInputs | None, tolerance: float) -> tuple[FloatArray, FloatArray]:
    live = np.array([factor.count > 0.0 for factor in factors])
    shifts = np.array([factor.shift for factor in factors])
    moved = np.asarray((live & (shifts > 0.0)).any(axis=0))
    value, error = _by_kind(many_log_ratios, factors, live, moved)
    rough = ((shifts > 0.0) & (shifts < _NORMAL)).any(axis=0)
    # NaN compares false, so a cell that went wrong in any way is done again.
    settled = (error <= tolerance * value) & (value > 1e-290) & (error < math.inf) & ~rough
    waiting = np.flatnonzero(moved & ~settled)
    for number, cell in zip(waiting.tolist(), _cells(picked(factors, waiting)), strict=True):
        value[number], error[number] = one_cell(cell, number, exact)
    return value, error


def _by_kind(
    settle: Callable[[list[Factor]], tuple[FloatArray, FloatArray]],
    factors: list[Factor],
    live: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """The wanted cells, those with the same factors alive together; an infinite error where more is to do."""
    cells = len(wanted)
    value, error = np.zeros(cells), np.where(wanted, math.inf, 0.0)
    if cells <= _FEW or len(factors) > _KINDS:
        return value, error
    kinds = (live * (2 ** np.arange(len(factors)))[:, None]).sum(axis=0)
    for kind in np.unique(kinds[wanted]):
        chosen = np.flatnonzero(wanted & (kinds == kind))
        among = [factor for j, factor in enumerate(factors) if kind & 2**j]
        value[chosen], error[chosen] = _in_chunks(settle, picked(among, chosen))
    return value, error


def _in_chunks(
    settle: Callable[[list[Factor]], tuple[FloatArray, FloatArray]], factors: list[Factor]
) -> tuple[FloatArray, FloatArray]:
    """Chunk by chunk, on all cores when there are several chunks."""
    cells = len(factors[0].count)
    if cells <= _CHUNK:
        return settle(factors)
    chunks = [picked(factors, np.arange(start, min(start + _CHUNK, cells))) for start in range(0, cells, _CHUNK)]
    with ThreadPoolExecutor(max_workers=min(len(chunks), os.cpu_count() or 1)) as pool:
        parts = list(pool.map(settle, chunks))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def one_cell(cell: list[Factor], number: int = 0, exact: ExactInputs | None = None) -> tuple[float, float]:
    """:func:`single_cell` for factors as they stand."""
    moves = [factor.shift for factor in cell if factor.count > 0.0 and factor.shift > 0.0]
    if not moves:
        return 0.0, 0.0
    settled = _attempt(one_log_ratio, cell) if min(moves) >= _NORMAL else None
    if settled is not None:
        return settled
    if _beyond_doubles(cell):
        return 0.0, 5e-308
    slopes, offsets, shifts = _exact_inputs(cell) if exact is None else exact(number)
    counts = [factor.count for factor in cell]
    return _enclosed(lambda: enclose_log_ratio(counts, slopes, offsets, shifts))


def _one_integral(cell: list[Factor], number: int, exact: ExactInputs | None) -> tuple[float, float]:
    if not any(factor.count > 0.0 for factor in cell):
        return 0.0, 0.0
    settled = _attempt(one_log_integral, cell)
    if settled is not None:
        return settled
    slopes, offsets, _ = _exact_inputs(cell) if exact is None else exact(number)
    counts = [factor.count for factor in cell]
    return _enclosed(lambda: enclose_log_integral(counts, slopes, offsets))


def _attempt(
    settle: Callable[[list[Factor]], tuple[float, float] | None], cell: list[Factor]
) -> tuple[float, float] | None:
    """The rule on one cell; ``None`` also where the doubles end."""
    try:
        return settle(cell)
    except (ArithmeticError, ValueError):
        return None


def _beyond_doubles(cell: list[Factor]) -> bool:
    """Whether J(0) is 1 to within 1e-308, and every loss below that.

    1 - J ≤ Σ count·P(z > slope·x + offset) = Σ count·Φ(-offset/√(1 + slope²)), and Φ(-40) < 1e-349.
    """
    return all(
        factor.count == 0.0
        or (factor.count < 1e30 and factor.offset.high > 40.001 * math.hypot(1.0, factor.slope.high))
        for factor in cell
    )


def _exact_inputs(cell: list[Factor]) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """A cell given as doubles (or pairs) is what its numbers say."""
    slopes = [Fraction(factor.slope.high) + Fraction(factor.slope.low) for factor in cell]
    offsets = [Fraction(factor.offset.high) + Fraction(factor.offset.low) for factor in cell]
    return slopes, offsets, [Fraction(factor.shift) for factor in cell]


def _enclosed(enclose: Callable[[], Enclosure]) -> tuple[float, float]:
    """An enclosure as a value with its error; infinite, which is safe, where there is none."""
    try:
        found = enclose()
    except DPSelectError:
        return math.inf, math.inf
    middle = found.midpoint
    if math.isinf(middle):
        return math.inf, math.inf
    return middle, math.nextafter(max(found.upper - middle, middle - found.lower), math.inf)
