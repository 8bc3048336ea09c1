"""Losses of one mechanism's runs, computed in blocks and shared, so that no question waits for an integral.

The loss of m ⊥ and k ⊤ under one noisy threshold grows with m and with k, for general and monotone families alike:
adding a ⊥ multiplies the ratio of integrals by E_ν[Φ]/E_μ[Φ], where ν, after the substitution of THEORY §2, lies
above μ in likelihood ratio; for a ⊤ mirror the argument. So what fits at one corner fits everywhere below it, and one
look covers many questions.
"""

from __future__ import annotations

import bisect
import functools
import math
import threading

import numpy as np

from dpselect.checks import FloatArray
from dpselect.composition.filter import Watcher
from dpselect.mechanisms.run import Reach

_FIRST_BLOCK = 64
#: Runs longer than this are looked up by doubling and bisection instead of in a table.
_LONGEST_ROW = 4096
#: Lengths of very long runs that are looked at, for each doubling.
_PER_DOUBLING = 256
#: No run is longer than two to this power.
_LONGEST_DOUBLINGS = 51
#: A run that keeps its threshold looks at most so many times further than it has come.
_GROWTH = 16.0


class LossTable:
    """Ex-post losses of runs of ``watcher``; never below the truth.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.2, sigma_query=0.35)
    >>> table = loss_table(watcher)
    >>> round(table.loss(9, 1), 5)
    0.03014
    >>> table.reach(0, budget=0.04)
    Reach(below=23, above=0, final=True)
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        # Reentrant: an interruption that kept it from being released must not block this thread forever.
        self._lock = threading.RLock()
        #: loss(m, 0) and loss(m, 1), m = 0, 1, …
        self._silent: FloatArray = np.zeros(1)
        self._topped: FloatArray = np.empty(0)
        #: What a question after m ⊥ can bring the run to, at worst.
        self._worst: FloatArray = np.empty(0)
        self._grow(_FIRST_BLOCK)
        self._single = functools.lru_cache(maxsize=4096)(self._single_loss)
        #: (below, above, budget) of a run that keeps its threshold after a ⊤ → how far it can go.
        self.reach_kept = functools.lru_cache(maxsize=4096)(self._find_reach_kept)

    def loss(self, below: int, above: int) -> float:
        """ε of a run with so many ⊥ and ⊤."""
        if above == 0 and below < len(self._silent):
            return float(self._silent[below])
        if above == 1 and below < len(self._topped):
            return float(self._topped[below])
        return self._single(below, above)

    def longest_before_top(self, budget: float) -> int | None:
        """The largest m with loss(m, 1) ≤ ``budget``; None where not even a ⊤ at once fits.

        Beyond the rows it is the largest of the lengths 2^(k/256): at most .3% below, on the safe side, and the same
        lengths serve every budget, since the loss of so long a run takes milliseconds.
        """
        while self._topped[-1] <= budget and len(self._topped) < _LONGEST_ROW:
            self._grow(2 * len(self._topped))
        found = int(np.searchsorted(self._topped, budget, side="right")) - 1
        if found == len(self._topped) - 1:
            lengths = range(int(_PER_DOUBLING * math.log2(len(self._topped))), int(_PER_DOUBLING * _LONGEST_DOUBLINGS))
            fitting = bisect.bisect_right(lengths, budget, key=lambda k: self.loss(_length(k), 1))
            found = max(found, _length(lengths[fitting - 1])) if fitting else found
        return found if found >= 0 else None

    def reach(self, below: int, *, budget: float) -> Reach:
        """How far a run with ``below`` ⊥ that ends at its first ⊤ can go within ``budget``."""
        while True:
            found = int(self._worst.searchsorted(budget, side="right")) - 1
            if found < len(self._worst) - 1:
                return Reach(found, 0, final=True)
            if below <= found:
                return Reach(found, 0, final=False)
            if len(self._worst) >= _LONGEST_ROW:
                break
            self._grow(2 * len(self._worst))
        further = max(2 * (len(self._worst) - 1), 2 * below)
        if self._worst_at(further, 0) <= budget:
            return Reach(further, 0, final=False)
        fitting = range(len(self._worst) - 1, further)
        last = bisect.bisect_right(fitting, budget, key=lambda m: self._worst_at(m, 0)) - 1
        return Reach(fitting[last], 0, final=True)

    def _find_reach_kept(self, below: int, above: int, budget: float) -> Reach:
        """How far a run that keeps its threshold after a ⊤ can go; looks ahead in the direction it went so far.

        Losses of very long runs take a fifth of a second each, so the first look is as far as the budget seems to
        go and one that fits is enough: a run of n questions is looked at about log n times.
        """
        asked = below + above
        share = (below + 1.0) / (asked + 2.0)
        ahead = _GROWTH * (asked + 4.0)
        so_far = self.loss(below, above)
        if so_far > 0:
            ahead = min(ahead, 0.9 * asked * (budget / so_far - 1.0))
        # A power of two, so that runs with other budgets look at the same points and find them computed.
        ahead = 2.0 ** math.floor(math.log2(ahead)) if ahead >= 1.0 else 0.0
        while ahead >= 1.0:
            corner = below + int(ahead * share + 0.5), above + int(ahead * (1.0 - share) + 0.5)
            # Both answers to a question at the corner lie below this point.
            if self.loss(corner[0] + 1, corner[1] + 1) <= budget:
                return Reach(*corner, final=False)
            ahead /= 4.0
        if self._worst_at(below, above) <= budget:
            return Reach(below, above, final=False)
        return Reach(below - 1, above - 1, final=True)

    def _losses(self, below: FloatArray, above: FloatArray) -> FloatArray:
        return np.asarray(self._watcher.loss(below=below, above=above), dtype=np.float64)

    def _single_loss(self, below: int, above: int) -> float:
        return float(np.asarray(self._watcher.loss(below=below, above=above)))

    def _worst_at(self, below: int, above: int) -> float:
        return max(self.loss(below + 1, above), self.loss(below, above + 1))

    def _grow(self, size: int) -> None:
        """Extend the rows to m < ``size``; both in one batch."""
        with self._lock:
            # The row that is replaced last says how far all are: an interruption before it means growing again.
            start = len(self._worst)
            if start >= size:
                return
            m = np.arange(start, size, dtype=np.float64)
            both = self._losses(np.concatenate([m + 1.0, m]), np.repeat([0.0, 1.0], len(m)))
            # The truth grows along the row; the allowance for rounding errors need not, so carry the largest along.
            silent = np.maximum.accumulate(np.concatenate([self._silent[: start + 1], both[: len(m)]]))
            topped = np.maximum.accumulate(np.concatenate([self._topped[:start], both[len(m) :]]))
            # Readers without the lock look at the last of these first.
            self._silent, self._topped = silent, topped
            self._worst = np.maximum(silent[1:], topped)


def _length(k: int) -> int:
    return int(2.0 ** (k / _PER_DOUBLING))


@functools.lru_cache(maxsize=128)
def loss_table(watcher: Watcher) -> LossTable:
    """The table of this mechanism, shared by everything in the process that watches with the same parameters."""
    return LossTable(watcher)
