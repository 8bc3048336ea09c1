"""Many small independent problems at once: the same exact draws and comparisons, row by row.

What one noisy maximum or one noisy threshold does (:mod:`dpselect.noise.argmax`,
:mod:`dpselect.noise.scan`) is done here for a whole matrix in one pass: 16 random bits per entry name a
cell with proven ends, and rows that the ends do not decide, a few in ten thousand, are finished one by
one with more bits. For simulations, and for the tests of the law.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.noise.draw import LazyDraw, NoisyValue, compare, largest
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.inputs import Exact, exact_scale, exactly, huge_distances, nearest_double
from dpselect.noise.quantiles import NORMAL, Law
from dpselect.noise.scan import Until

#: One row of verdicts per run: 1 for ⊤, 0 for ⊥, −1 for a question that was never asked.
VerdictRows: TypeAlias = NDArray[np.int8]

NOT_ASKED = -1

#: Entries per block, so that temporaries stay in the cache.
_BLOCK = 1 << 17


def noisy_argmax_rows(
    values: FloatArray, *, scale: Exact, law: Law = NORMAL, entropy: Entropy = SYSTEM_ENTROPY
) -> NDArray[np.int64]:
    """For every row of ``values``, the index of the largest ``values[r, i] + scale * draw[r, i]``; exact.

    Parameters
    ----------
    values : ndarray of shape (rows, candidates)
        Finite doubles, taken at their exact value. ``np.broadcast_to`` repeats one row at no cost.
    scale : float, int or Fraction
        What the noise is multiplied by.
    law : Law
        The law of the noise.
    entropy : Entropy
        Where the random bits come from.

    Examples
    --------
    >>> noisy_argmax_rows(np.array([[0.0, 99.0], [99.0, 0.0]]), scale=1.0).tolist()
    [1, 0]
    """
    unit = exact_scale("scale", scale)
    rows, candidates = values.shape
    winners = np.empty(rows, dtype=np.int64)
    step = max(1, _BLOCK // candidates)
    for start in range(0, rows, step):
        block = values[start : start + step]
        cells = _cells(block.shape, entropy)
        distance = _distances(block, block.max(axis=1, keepdims=True), unit)
        lower = distance + law.cells.lower[cells]
        upper = distance + law.cells.upper[cells]
        leader = lower.argmax(axis=1)
        best = lower[np.arange(len(block)), leader]
        in_doubt = upper >= (best - _doubt(best))[:, None]
        winners[start : start + step] = leader
        for row in np.flatnonzero((in_doubt.sum(axis=1) != 1) | ~np.isfinite(best)):
            remaining = np.flatnonzero(in_doubt[row])
            noisy = [_noisy(Fraction(float(block[row, i])), unit, law, int(cells[row, i]), entropy) for i in remaining]
            winners[start + row] = remaining[largest(noisy)]
    return winners


def scan_rows(
    values: FloatArray,
    *,
    threshold: Exact,
    scale_threshold: Exact,
    scale_query: Exact,
    law: Law = NORMAL,
    entropy: Entropy = SYSTEM_ENTROPY,
    until: Until = "first",
) -> VerdictRows:
    """Every row of ``values`` as a run of its own against a noisy threshold of its own; exact.

    Parameters
    ----------
    values : ndarray of shape (runs, questions)
        Finite doubles, taken at their exact value.
    threshold, scale_threshold, scale_query, law, entropy
        As for :class:`~dpselect.noise.scan.NoisyThreshold`.
    until : {"first", "all"}
        Whether a run ends at its first ⊤ or answers everything.

    Returns
    -------
    ndarray of int8, shape (runs, questions)
        1 for ⊤, 0 for ⊥, −1 for what was not asked.

    Examples
    --------
    >>> runs = np.array([[0.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    >>> scan_rows(runs, threshold=5.0, scale_threshold=0.1, scale_query=0.1).tolist()
    [[0, 1, -1], [0, 0, 0]]
    """
    level, unit = exactly("threshold", threshold), exact_scale("scale_query", scale_query)
    threshold_unit = exact_scale("scale_threshold", scale_threshold)
    origin = nearest_double(level, clip=True)
    ratio = nearest_double(threshold_unit / unit, clip=True)
    offset = nearest_double((level - Fraction(origin)) / unit)
    verdicts = np.empty(values.shape, dtype=np.int8)
    step = max(1, _BLOCK // values.shape[1])
    for start in range(0, len(values), step):
        block = values[start : start + step]
        own = _cells((len(block), 1), entropy)
        least, most = offset + ratio * law.cells.lower[own], offset + ratio * law.cells.upper[own]
        cells = _cells(block.shape, entropy)
        distance = _distances(block, origin, unit)
        # Infinite ends stay undecided: no comparison with them is ever certain.
        with np.errstate(invalid="ignore"):
            above: NDArray[np.bool_] = distance + law.cells.lower.take(cells) > most + _doubt(most)
            surely_below = distance + law.cells.upper.take(cells) < least - _doubt(least)
        #: Thresholds that had to be looked at more closely.
        lines: dict[int, NoisyValue] = {}
        for row, place in np.argwhere(~(above | surely_below)).tolist():
            if row not in lines:
                lines[row] = _noisy(level, threshold_unit, law, int(own[row, 0]), entropy)
            question = _noisy(Fraction(float(block[row, place])), unit, law, int(cells[row, place]), entropy)
            above[row, place] = compare(question, lines[row]) > 0
        verdicts[start : start + step] = above
    if until == "first":
        answered_above = verdicts == 1
        verdicts[np.cumsum(answered_above, axis=1) - answered_above > 0] = NOT_ASKED
    return verdicts


def _cells(shape: tuple[int, ...], entropy: Entropy) -> NDArray[np.uint16]:
    words: NDArray[np.uint16] = entropy.words(math.prod(shape), dtype=np.uint16)
    return words.reshape(shape)


def _distances(values: FloatArray, origin: FloatArray | float, unit: Fraction) -> FloatArray:
    """(values − origin)/unit, each within 2^-51 of itself: a subtraction, a division, a rounded unit."""
    with np.errstate(over="ignore"):
        found: FloatArray = (values - origin) / float(unit)
    return found if np.isfinite(found).all() else huge_distances(values, zero=origin, unit=float(unit))


def _doubt(score: FloatArray) -> FloatArray:
    """How far two scores near this one may be off together; as in :mod:`dpselect.noise.argmax`."""
    return np.nan_to_num(2.0**-44 * (np.abs(score) + 1024.0), posinf=0.0)


def _noisy(value: Fraction, scale: Fraction, law: Law, cell: int, entropy: Entropy) -> NoisyValue:
    return NoisyValue(value, scale=scale, draw=LazyDraw(law, entropy=entropy, prefix=cell, length=16))
