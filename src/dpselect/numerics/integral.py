"""The one integral behind every bound, batched (THEORY §2).

    J(shifts) = E_x[∏_j Φ(slope_j·x + offset_j + shift_j)^count_j],   x ~ N(0, 1)

:func:`log_ratio` gives log J(shifts) - log J(0) and :func:`log_integral` log J(0), each with an error bound. Cells
are settled by a quick rule where its own checks pass and by :mod:`dpselect.numerics.careful` where they do not.

The quick rule: the trapezoidal rule on a window around the mode, after a change of variable, offset ∝
exp(βτ) - 1, that makes the window symmetric about the mode. The hills are steep on one side and slow on the other,
like a Gumbel density; in τ they are nearly Gaussian, and 41 nodes do what 97 equally spaced ones do in x. J and all
gains share the nodes. A cell is accepted only if every sum agrees with the sum over every other node, and if
nothing is left at the window's ends. Where the shift moves the hill itself, J(shifts) gets a window of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray
from dpselect.numerics.careful import LogEstimate, careful_log_integral, careful_log_ratio
from dpselect.numerics.factors import Factors, modes
from dpselect.numerics.normal import SMALL_STEP, log_cdf_and_hazard, log_cdf_step, small_log_cdf_step
from dpselect.numerics.single import single_log_ratio

_POINTS = 41
_DROP = 38.0
#: Cells per chunk handed to a thread, and per block of nodes whose temporaries fit a core's cache.
_CHUNK = 4096
_BLOCK = 512
#: Up to so many cells are quicker one by one.
_FEW = 12
#: Below this argument log Φ is nearly a square, and squares are subtracted before they are rounded.
_DEEP = -4.0
_EPS = float(np.finfo(np.float64).eps)
_GRID = np.linspace(-1.0, 1.0, _POINTS)


def log_ratio(counts: ArrayLike, slopes: ArrayLike, offsets: ArrayLike, shifts: ArrayLike) -> LogEstimate:
    """log J(shifts) - log J(0) for shifts ≥ 0; the last axis runs over factors, the others broadcast.

    Small values keep their relative accuracy: the error is proportional to the value. For one cell
    :func:`single_cell` is faster.

    >>> estimate = log_ratio([364.0], [1.0], [-5.0], [2 / 6946 / 0.2])
    >>> float(estimate.value)
    0.01078838523643...
    >>> bool(estimate.error < 1e-11 * estimate.value)
    True
    """
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (counts, slopes, offsets, shifts)))
    shape = arrays[0].shape[:-1]
    rows = [array.reshape(-1, array.shape[-1]) for array in arrays]
    if len(rows[0]) <= _FEW:
        cells = [single_cell(*cell) for cell in zip(*(row.tolist() for row in rows), strict=True)]
        return LogEstimate(*(np.reshape([getattr(cell, name) for cell in cells], shape) for name in ("value", "error")))
    value, error = _batch(rows)
    return LogEstimate(value.reshape(shape), error.reshape(shape))


def _batch(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Every cell by the quickest rule that settles it."""
    value, error = _in_chunks(_quick_log_ratio, rows)
    unmoved = ((rows[3] == 0) | (rows[0] == 0)).all(axis=1)
    value[unmoved], error[unmoved] = 0.0, 0.0
    for method in (_two_window_log_ratio, _careful_log_ratio):
        # NaN compares false, so a cell that went wrong in any way is done again with more care.
        unsettled = ~unmoved & ~((error <= 1e-11 * value) & (value > 1e-290) & np.isfinite(value))
        if unsettled.any():
            again = [row[unsettled] for row in rows]
            value[unsettled], error[unsettled] = _in_chunks(method, again)
    return value, error


def single_cell(
    counts: Sequence[float], slopes: Sequence[float], offsets: Sequence[float], shifts: Sequence[float]
) -> LogEstimate:
    """:func:`log_ratio` for one cell of plain floats, without the overhead of arrays where that is possible.

    >>> float(single_cell([364.0], [1.0], [-5.0], [2 / 6946 / 0.2]).value)
    0.01078838523643...
    """
    settled = single_log_ratio(counts, slopes, offsets, shifts)
    if settled is None:
        value, error = _batch([np.array([row]) for row in (counts, slopes, offsets, shifts)])
        settled = float(value[0]), float(error[0])
    return LogEstimate(np.asarray(settled[0]), np.asarray(settled[1]))


def log_integral(counts: ArrayLike, slopes: ArrayLike, offsets: ArrayLike) -> LogEstimate:
    """log J(0) with its absolute error; the last axis runs over factors, the others broadcast.

    One negative count is allowed where |count|·slope² < 1.

    >>> float(log_integral([1.0], [1.0], [0.0]).value)  # E[Φ(x)] = 1/2
    -0.693147180559...
    """
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (counts, slopes, offsets)))
    shape = arrays[0].shape[:-1]
    rows = [array.reshape(-1, array.shape[-1]) for array in arrays]

    value, error = _in_chunks(_careful_log_integral, rows)
    return LogEstimate(value.reshape(shape), error.reshape(shape))


def _careful_log_ratio(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    estimate = careful_log_ratio(Factors(*rows[:3]), rows[3])
    return estimate.value, estimate.error


def _careful_log_integral(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    estimate = careful_log_integral(Factors(*rows))
    return estimate.value, estimate.error


def _in_chunks(
    settle: Callable[[list[FloatArray]], tuple[FloatArray, FloatArray]], rows: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Run over the cells chunk by chunk, on all cores when there are several chunks."""

    def quietly(chunk: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):  # per thread; what goes wrong shows as an infinite or NaN error
            return settle(chunk)

    cells = rows[0].shape[0]
    if cells <= _CHUNK:
        return quietly(rows)
    chunks = [[row[start : start + _CHUNK] for row in rows] for start in range(0, cells, _CHUNK)]
    with ThreadPoolExecutor(max_workers=min(len(chunks), os.cpu_count() or 1)) as pool:
        parts = list(pool.map(quietly, chunks))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _fall(factors: Factors, centre: FloatArray, log_cdf: FloatArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far log f has dropped from the centre at ``centre + at``, and the derivative of the drop."""
    y = factors.slopes * (centre + at)[:, None] + factors.offsets
    there, hazard = log_cdf_and_hazard(y)
    drop = at * (centre + 0.5 * at) - (factors.counts * (there - log_cdf)).sum(axis=1)
    return drop, centre + at - (factors.counts * factors.slopes * hazard).sum(axis=1)


def _window(factors: Factors, centre: FloatArray, log_cdf: FloatArray, hazard: FloatArray) -> list[FloatArray]:
    """Offsets of the window's ends, where log f has dropped by about ``_DROP``."""
    bend = hazard * (hazard + factors.slopes * centre[:, None] + factors.offsets)
    curvature = 1.0 + (factors.counts * np.square(factors.slopes) * np.maximum(bend, 0.0)).sum(axis=1)
    ends = []
    for side in (-1.0, 1.0):
        distance = np.sqrt(2.0 * _DROP / curvature)
        for _ in range(2):
            # drop ≈ distance^power locally: Newton's method on logarithms suits flat hills and cliffs alike.
            drop, slope = _fall(factors, centre, log_cdf, side * distance)
            power = np.maximum(side * slope * distance / drop, 1.0)
            distance = np.minimum(distance * (_DROP / drop) ** (1.0 / power), np.sqrt(2.0 * _DROP) + 0.1)
        ends.append(side * distance)
    return ends


def _relative_change(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sum over all nodes, and a bound on its relative error from the sum over every other node and the ends."""
    fine = values.sum(axis=1)
    coarse = 2.0 * values[:, ::2].sum(axis=1)
    change = np.abs(fine - coarse) / fine
    ends = (values[:, 0] + values[:, -1]) * _POINTS / fine
    # Halving the spacing at least squares the error (geometric convergence). Too coarse a start is not trusted.
    return fine, np.where((change < 1e-6) & (ends < 1e-13), 10.0 * change**2 + ends, np.inf)


def _quick_log_ratio(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The quick rule; its error is infinite or NaN where it did not settle."""
    factors = Factors(*rows[:3])
    centre = modes(factors)
    value, error, _ = _one_window(factors, rows[3], centre, factors.slopes * centre[:, None] + factors.offsets)
    return value, error


def _two_window_log_ratio(rows: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """log J(shifts) and log J(0) each in its own window: for losses that are not small."""
    factors, shifts = Factors(*rows[:3]), rows[3]
    moved = Factors(factors.counts, factors.slopes, factors.offsets + shifts)
    nothing = np.zeros_like(shifts)
    centre = modes(factors)
    base = factors.slopes * centre[:, None] + factors.offsets
    step = modes(moved) - centre
    # One rounding of slope·centre + offset serves both windows: two would tilt the hills against each other.
    moved_base = base + (factors.slopes * step[:, None] + shifts)
    _, error, area = _one_window(factors, nothing, centre, base)
    _, moved_error, moved_area = _one_window(moved, nothing, centre + step, moved_base)
    parts = [-step * (centre + 0.5 * step), np.log(moved_area / area)]
    for j in range(factors.width):
        rise = log_cdf_step(base[:, j], factors.slopes[:, j] * step + shifts[:, j])
        parts.append(factors.counts[:, j] * rise)
    size = np.sum(np.abs(parts), axis=0)
    return np.sum(parts, axis=0), error + moved_error + _EPS * (64.0 + 4.0 * size)


def _one_window(
    factors: Factors, shifts: FloatArray, centre: FloatArray, base: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Per cell: the log ratio, its error, and ∫ f relative to f at the mode; ``base`` = slope·centre + offset.

    With shifts of zero the log ratio is 0 and the error is the relative error of the integral.
    """
    log_cdf, hazard = log_cdf_and_hazard(base)
    left, right = _window(factors, centre, log_cdf, hazard)
    results = np.empty((3, len(factors)))
    # Cells with similar shifts share a block: the smaller the shifts, the fewer points their gains take.
    order = np.argsort((shifts * (np.abs(base) + 2.0)).max(axis=1))
    for start in range(0, len(factors), _BLOCK):
        block = order[start : start + _BLOCK]
        results[:, block] = _trapezoid(
            factors.take(block),
            shifts[block],
            centre[block],
            base[block],
            log_cdf[block],
            hazard[block],
            left[block],
            right[block],
        )
    value, error, area = results
    return value, error, area


def _trapezoid(
    factors: Factors,
    shifts: FloatArray,
    centre: FloatArray,
    base: FloatArray,
    log_cdf: FloatArray,
    hazard: FloatArray,
    left: FloatArray,
    right: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    skew = np.log(right / -left)
    skew = np.where(np.abs(skew) < 1e-5, 1e-5, skew)
    bulge = np.expm1(skew[:, None] * _GRID)
    scale = left / np.expm1(-skew)
    offset = scale[:, None] * bulge
    height = -offset * (centre[:, None] + 0.5 * offset)
    rises = []
    reach = np.zeros(len(factors))
    for j in range(factors.width):
        count, slope, shift = factors.counts[:, j], factors.slopes[:, j], shifts[:, j]
        start, move = base[:, j, None], slope[:, None] * offset
        y = start + move
        here, hazards = log_cdf_and_hazard(y)
        rise = here - log_cdf[:, j, None]
        deep = start[:, 0] < _DEEP
        if deep.any():
            # log Φ(y) is nearly -y²/2: subtract the squares before they are rounded.
            in_tail = deep[:, None] & (y < 0.0)
            shrunk = np.log(hazard[:, j, None] / hazards) - move * (start + 0.5 * move)
            rise = np.where(in_tail, shrunk, rise)
        height += count[:, None] * rise
        reach = np.maximum(reach, shift * (np.maximum(np.abs(y[:, 0]), np.abs(y[:, -1])) + shift))
        tame = np.where(reach <= SMALL_STEP, shift, 0.0)
        rises.append(count[:, None] * small_log_cdf_step(y, tame[:, None], hazards))
    weights = np.exp(height) * (1.0 + bulge)
    whole, whole_error = _relative_change(weights)
    gain, gain_error = np.zeros(len(factors)), np.zeros(len(factors))
    for rise in rises:
        factor = np.expm1(rise)
        part, part_error = _relative_change(weights * factor)
        gain += part
        gain_error = np.where(part > 0, np.maximum(gain_error, part_error), gain_error)
        weights *= 1.0 + factor
    value = np.log1p(gain / whole)
    # Rounding of the heights, a standard deviation from the peak.
    spread = (right - left) / 9.0
    tail = np.where(base < _DEEP, np.abs(base * factors.slopes) * spread[:, None], np.abs(log_cdf))
    size = (factors.counts * tail).sum(axis=1) + np.abs(centre) * spread
    relative = whole_error + gain_error + _EPS * (64.0 + 4.0 * size)
    unmoved = ((shifts == 0) | (factors.counts == 0)).all(axis=1)
    error = np.where(unmoved, relative, np.where(reach <= SMALL_STEP, value * relative, np.inf))
    # dx = scale·skew·exp(skew·τ) dτ
    area = whole * scale * skew * (_GRID[1] - _GRID[0])
    return np.where(unmoved, 0.0, value), error, area
