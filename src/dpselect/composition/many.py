"""Many independent sparse vectors at once, each with a budget of its own: for simulations, and the tests of the law.

What one :class:`~dpselect.composition.sparse_vector.SparseVector` does question by question is done here for a whole
matrix, column by column: the same draws, the same rule for stopping, the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, counts, flag, one, positive
from dpselect.composition.budgeted_run import ROUNDING
from dpselect.composition.filter import Watcher, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import InvalidData
from dpselect.mechanisms.mechanism import Noise, noise_of
from dpselect.mechanisms.values import Clip, Clipper, OutsidePolicy, PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.rows import NOT_ASKED, ThresholdRows, VerdictRows, scan_rows
from dpselect.numerics.pair import total as two_sum
from dpselect.rounding import in_units, round_down, round_up

#: Rows at a time, so that a column stays in the cache.
_ROWS = 1 << 14

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SparseVectors:
    """What many sparse vectors answered (1 ⊤, 0 ⊥, −1 not asked: the budget had ended) and what each spent."""

    verdicts: VerdictRows
    spent: FloatArray
    noise: Noise = "private"


def run_sparse_vectors(
    watcher: Watcher,
    values: PrivateValues,
    *,
    budget: float,
    times: int | None = None,
    resample: bool = True,
    clip: Clip | None = None,
    outside: OutsidePolicy = "refuse",
    entropy: Entropy = SYSTEM_ENTROPY,
) -> SparseVectors:
    """Many independent sparse vectors, each with the whole budget: for simulations, doubles only.

    The law is that of ``ask_many`` on a new sparse vector per stream, thousands of times as fast.

    Parameters
    ----------
    values
        One stream, asked ``times`` times; or a matrix with one stream per row.
    budget, resample, clip, outside, entropy
        As for a sparse vector; the filter is the pure one.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily, SparseVector
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
    >>> found = SparseVector.run_many(watcher, [0.1, 0.9, 0.1], budget=1.0, times=2)
    >>> found.verdicts.tolist(), bool((found.spent < 0.2).all())
    ([[0, 1, 0], [0, 1, 0]], True)
    """
    check_watcher(watcher)
    limit, noise = one(positive, "budget", budget), noise_of(entropy)
    door = Clipper(watcher, clip=clip, outside=outside)
    streams = _streams(door, values, times)
    verdicts = np.full(streams.shape, NOT_ASKED, dtype=np.int8)
    spent = np.empty(len(streams))
    answer = _resampled if flag("resample", resample) else _kept
    for start in range(0, len(streams), _ROWS):
        block = slice(start, start + _ROWS)
        spent[block] = answer(door.clipped, streams[block], verdicts[block], limit, entropy)
    return SparseVectors(verdicts, spent, noise)


def _streams(door: Clipper, values: PrivateValues, times: int | None) -> FloatArray:
    """One row per sparse vector, admitted and cut."""
    array = np.asarray(values) if times is None else None
    if array is not None and array.ndim == 2:
        admitted = door.admit(array.ravel())
        shape: tuple[int, ...] = array.shape
    else:
        admitted = door.admit(values)
        shape = int(one(counts, "times", 1 if times is None else times, least=1)), len(admitted)
    if not isinstance(admitted, np.ndarray):
        raise InvalidData("values must be doubles, or integers within ±2**53, to be asked many times at once")
    return admitted.reshape(shape) if array is not None and array.ndim == 2 else np.broadcast_to(admitted, shape)


def _kept(watcher: Watcher, streams: FloatArray, verdicts: VerdictRows, limit: float, entropy: Entropy) -> FloatArray:
    """One noisy threshold per row: answer everything, then keep what the budget reached."""
    found = scan_rows(streams, **watcher.noise_setting, entropy=entropy, until="all")
    questions = streams.shape[1]
    above = np.cumsum(found, axis=1, dtype=np.int64) - found
    below = np.arange(questions) - above
    table = loss_table(watcher)
    last = table.limits_kept(limit, questions=questions, above=int(above.max()))
    asked = np.logical_and.accumulate(below <= last[above], axis=1)
    np.copyto(verdicts, found, where=asked)
    pairs = np.stack([(verdicts == 0).sum(axis=1), (verdicts == 1).sum(axis=1)], axis=1)
    kinds, places = np.unique(pairs, axis=0, return_inverse=True)
    losses = table.losses(kinds[:, 0], kinds[:, 1])
    return _stated(losses, np.full(len(losses), limit))[places.ravel()]


def _resampled(
    watcher: Watcher, streams: FloatArray, verdicts: VerdictRows, limit: float, entropy: Entropy
) -> FloatArray:
    """A new noisy threshold after each ⊤: column by column, for the rows whose next question fits."""
    lines = ThresholdRows(len(streams), **watcher.noise_setting, entropy=entropy)
    table, purses = loss_table(watcher), _Purses(len(streams), limit)
    below = np.zeros(len(streams), dtype=np.int64)
    reach, final = table.reaches(below, purses.left)
    rows = np.arange(len(streams))
    for place in range(streams.shape[1]):
        unsure = rows[(below[rows] > reach[rows]) & ~final[rows]]
        if len(unsure):
            reach[unsure], final[unsure] = table.reaches(below[unsure], purses.left[unsure])
        rows = rows[below[rows] <= reach[rows]]
        if not len(rows):
            break
        above = lines.ask(rows, streams[rows, place])
        verdicts[rows, place] = above
        below[rows] += ~above
        ended = rows[above]
        if len(ended):
            losses = table.losses(below[ended], np.ones(len(ended), dtype=np.int64))
            purses.pay(ended, _stated(losses, purses.left[ended]))
            below[ended] = 0
            reach[ended], final[ended] = table.reaches(below[ended], purses.left[ended])
            lines.redraw(ended)
    return purses.spent(_stated(table.losses(below, np.zeros_like(below)), purses.left))


def _stated(losses: FloatArray, allowed: FloatArray) -> FloatArray:
    """As for one run: never above what was allowed by rounding alone."""
    return np.where((losses > allowed) & (losses <= allowed * ROUNDING), allowed, losses)


class _Purses:
    """What is left in many budgets, exactly: as the sum of two doubles, or as a whole number where that is not enough.

    Subtracting a double from such a sum is exact while the error of the last of three additions is zero (Knuth's
    two-sum), which is looked at each time.
    """

    def __init__(self, rows: int, limit: float) -> None:
        self._limit = in_units(limit)
        self._high, self._low = np.full(rows, limit), np.zeros(rows)
        self._exact: dict[int, int] = {}
        #: The largest doubles that are not above what is left.
        self.left = np.full(rows, limit)

    def pay(self, rows: Counts, losses: FloatArray) -> None:
        high, low = self._high[rows], self._low[rows]
        first, error = two_sum(high, -losses)
        second, rest = two_sum(low, error)
        total, small = two_sum(first, second)
        left = np.where(np.asarray(small) < 0.0, np.nextafter(total, -np.inf), np.asarray(total))
        for at in np.flatnonzero((rest != 0.0) | [row in self._exact for row in rows.tolist()]).tolist():
            row = int(rows[at])
            before = self._exact.get(row, in_units(float(high[at])) + in_units(float(low[at])))
            self._exact[row] = after = before - in_units(float(losses[at]))
            left[at] = round_down(after)
        self._high[rows], self._low[rows], self.left[rows] = total, small, left

    def spent(self, open_runs: FloatArray) -> FloatArray:
        """What was paid, and what the open runs cost so far, rounded up."""
        sums = zip(self._high.tolist(), self._low.tolist(), open_runs.tolist(), strict=True)
        return np.array(
            [
                round_up(self._limit - self._exact.get(row, in_units(high) + in_units(low)) + in_units(loss))
                for row, (high, low, loss) in enumerate(sums)
            ]
        )
