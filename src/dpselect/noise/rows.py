"""Many small independent problems at once: the same exact draws and comparisons, row by row.

What one noisy maximum or one noisy threshold does (:mod:`dpselect.noise.argmax`,
:mod:`dpselect.noise.scan`) is done here for a whole matrix in one pass: 16 random bits per entry name a
cell with proven ends, and rows that the ends do not decide, a few in ten thousand, are finished one by
one with more bits. For simulations, and for the tests of the law.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

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
    values: FloatArray, *, entropy: Entropy = SYSTEM_ENTROPY, until: Until = "first", **setting: Any
) -> VerdictRows:
    """Every row of ``values`` as a run of its own against a noisy threshold of its own; exact.

    Parameters
    ----------
    values : ndarray of shape (runs, questions)
        Finite doubles, taken at their exact value.
    until : {"first", "all"}
        Whether a run ends at its first ⊤ or answers everything.
    threshold, scale_threshold, scale_query, law, entropy
        As for :class:`~dpselect.noise.scan.NoisyThreshold`.

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
    verdicts = np.empty(values.shape, dtype=np.int8)
    step = max(1, _BLOCK // values.shape[1])
    for start in range(0, len(values), step):
        block = values[start : start + step]
        lines = ThresholdRows(len(block), entropy=entropy, **setting)
        verdicts[start : start + step] = lines.ask(np.arange(len(block)), block)
    if until == "first":
        answered_above = verdicts == 1
        verdicts[np.cumsum(answered_above, axis=1) - answered_above > 0] = NOT_ASKED
    return verdicts


class ThresholdRows:
    """Noisy thresholds, one per row, each kept until it is drawn anew; asked for many rows at a time; exact.

    Parameters
    ----------
    rows : int
        How many.
    threshold, scale_threshold, scale_query, law, entropy
        As for :class:`~dpselect.noise.scan.NoisyThreshold`.

    Examples
    --------
    >>> lines = ThresholdRows(3, threshold=5.0, scale_threshold=0.1, scale_query=0.1)
    >>> lines.ask(np.array([0, 2]), np.array([0.0, 9.0])).tolist()
    [False, True]
    """

    def __init__(
        self,
        rows: int,
        *,
        threshold: Exact,
        scale_threshold: Exact,
        scale_query: Exact,
        law: Law = NORMAL,
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        self._level, self._unit = exactly("threshold", threshold), exact_scale("scale_query", scale_query)
        self._threshold_unit = exact_scale("scale_threshold", scale_threshold)
        self._law, self._entropy = law, entropy
        self._origin = nearest_double(self._level, clip=True)
        self._ratio = nearest_double(self._threshold_unit / self._unit, clip=True)
        self._offset = nearest_double((self._level - Fraction(self._origin)) / self._unit)
        self._own = np.empty(rows, dtype=np.uint16)
        #: Scores below the first are ⊥ for certain, scores above the second ⊤.
        self._least, self._most = np.empty(rows), np.empty(rows)
        #: Thresholds that had to be looked at more closely.
        self._lines: dict[int, NoisyValue] = {}
        self.redraw(np.arange(rows))

    def redraw(self, rows: NDArray[np.int64]) -> None:
        """New noise for the thresholds of these rows."""
        own: NDArray[np.uint16] = self._entropy.words(len(rows), dtype=np.uint16)
        least = self._offset + self._ratio * self._law.cells.lower[own]
        most = self._offset + self._ratio * self._law.cells.upper[own]
        self._own[rows], self._least[rows], self._most[rows] = own, least - _doubt(least), most + _doubt(most)
        for row in rows.tolist() if self._lines else ():
            self._lines.pop(row, None)

    def ask(self, rows: NDArray[np.int64], values: FloatArray) -> NDArray[np.bool_]:
        """Whether each row's noisy value, or each of several along a second axis, reaches the row's noisy threshold."""
        cells = _cells(values.shape, self._entropy)
        distance = _distances(values, self._origin, self._unit)
        least, most = self._least[rows], self._most[rows]
        if values.ndim == 2:
            least, most = least[:, None], most[:, None]
        # Infinite ends stay undecided: no comparison with them is ever certain.
        with np.errstate(invalid="ignore"):
            above: NDArray[np.bool_] = distance + self._law.cells.lower.take(cells) > most
            surely_below = distance + self._law.cells.upper.take(cells) < least
        for place in zip(*(~(above | surely_below)).nonzero(), strict=True):
            row = int(rows[place[0]])
            if row not in self._lines:
                self._lines[row] = self._noisy(self._level, self._threshold_unit, int(self._own[row]))
            question = self._noisy(Fraction(float(values[place])), self._unit, int(cells[place]))
            above[place] = compare(question, self._lines[row]) > 0
        return above

    def _noisy(self, value: Fraction, scale: Fraction, cell: int) -> NoisyValue:
        return _noisy(value, scale, self._law, cell, self._entropy)


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
