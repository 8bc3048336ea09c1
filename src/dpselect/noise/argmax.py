"""Which value is largest once noise is added: exact, and quicker than adding noise in floating point.

Every candidate gets 16 random bits, which name a cell of the noise with known ends; those in the
uppermost 1/256 get 8 more. A candidate stays only while its upper end reaches the best lower end seen.
Nearly always one is left; if not, the rest is decided by drawing more bits (THEORY §7).

A handful of candidates goes the same way in plain Python: a call on an array costs as much as several candidates.

Time that does not tell: every candidate goes through the same passes whatever the values are, and how many
are split a second time depends on the random bits alone. What remains: candidates that are still tied get
more bits, which takes some 0.1 ms longer. With d equal scores the chance is about d/2^23 (one release in ten
at d = 10^6, one in a thousand at d = 10^3); with one clear winner it is next to nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import InvalidData
from dpselect.noise.draw import LazyDraw, NoisyValue, largest
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.inputs import CHANGED, Exact, Scores, Values, check_scale, scores
from dpselect.noise.quantiles import CELLS, FIRST_TAIL_CELL, NORMAL, Law

_BLOCK = 1 << 15
#: Up to so many candidates plain Python is quicker than arrays.
_FEW = 20
_WORD, _BYTE = np.dtype(np.uint16), np.dtype(np.uint8)
#: NumPy takes up arrays without dimensions quicker than it takes up numbers.
_EIGHT, _FIRST_OF_TAIL = np.array(8, dtype=_WORD), np.array(FIRST_TAIL_CELL, dtype=_WORD)
_INFINITY = float("inf")


def noisy_argmax(values: Values, *, scale: Exact, law: Law = NORMAL, entropy: Entropy = SYSTEM_ENTROPY) -> int:
    """The index of the largest of ``values[i] + scale * draw[i]``, with independent real-valued draws.

    Parameters
    ----------
    values
        One number per candidate: an array of floats or integers, or a list of ints, floats and Fractions.
        All are taken at their exact value. Doubles that were checked before come as ``FloatScores``.
    scale
        What the noise is multiplied by (σ for the normal law); also taken at its exact value.
    law
        The law of the noise.
    entropy
        Where the random bits come from.

    Returns
    -------
    int
        The winning index. No rounding takes part in the choice.

    Examples
    --------
    >>> noisy_argmax([0.0, 100.0, 1.0], scale=1.0)
    1
    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noisy_argmax(np.zeros(1000), scale=1.0, entropy=SeededEntropy(1)) in range(1000)
    True
    """
    chosen, _ = decide(scores(values), scale=scale, law=law, entropy=entropy)
    return chosen


def decide(candidates: Scores, *, scale: Exact, law: Law, entropy: Entropy) -> tuple[int, dict[int, LazyDraw]]:
    """The winner, and every draw of which more is known than its first bits (for tests of exactness)."""
    scale = check_scale("scale", scale)
    origin = candidates.largest()
    number = len(candidates)
    if number <= _FEW:
        block: _Noised = _Few(candidates.few_distances(origin=origin, scale=scale), law=law, entropy=entropy)
        best = block.best()
        left = block.reaching(_cutoff(best))
        if len(left) == 1:
            return left[0], block.draws
        finalists = [(at, block.upper_end(at), block.draw(at)) for at in left]
    else:
        distances = candidates.distances(origin=origin, scale=scale)
        finalists, best = [], -_INFINITY
        for start in range(0, number, _BLOCK):
            block = _Many(distances(start, min(start + _BLOCK, number)), law=law, entropy=entropy)
            found = block.best()
            if math.isnan(found):
                raise InvalidData(CHANGED)
            best = max(best, found)
            left = block.reaching(_cutoff(best))
            if number <= _BLOCK and len(left) == 1:
                return left[0], block.draws
            # Draws, not blocks, are kept: a block is as large as its part of the values.
            finalists += [(start + at, block.upper_end(at), block.draw(at)) for at in left]
    cutoff = _cutoff(best)
    draws = {index: draw for index, upper, draw in finalists if upper > cutoff}
    indices = list(draws)
    if len(indices) == 1:
        return indices[0], draws
    unit = Fraction(scale)
    noisy = [NoisyValue(candidates.exact(i), scale=unit, draw=draw) for i, draw in draws.items()]
    return indices[largest(noisy)], draws


class _Noised(ABC):
    """Candidates that have their first bits: 16 each, 24 in the uppermost cells."""

    def __init__(self, *, law: Law, entropy: Entropy) -> None:
        self._law = law
        self._entropy = entropy
        #: The draws that were looked at one by one.
        self.draws: dict[int, LazyDraw] = {}

    @abstractmethod
    def known(self, at: int) -> tuple[int, int]:
        """The bits a candidate was given, and how many."""

    @abstractmethod
    def upper_end(self, at: int) -> float:
        """What a candidate's score cannot exceed."""

    @abstractmethod
    def best(self) -> float:
        """The lower end of the score whose upper end is the largest."""

    @abstractmethod
    def reaching(self, cutoff: float) -> list[int]:
        """Those whose upper end is above the cutoff."""

    def draw(self, at: int) -> LazyDraw:
        """A candidate's draw, to be refined; always the same one."""
        if at not in self.draws:
            prefix, length = self.known(at)
            self.draws[at] = LazyDraw(self._law, entropy=self._entropy, prefix=prefix, length=length)
        return self.draws[at]

    def _lower_end_of_noise(self, at: int) -> float:
        if at not in self.draws:
            prefix, length = self.known(at)
            if length == 24:
                return self._law.tail_cells.lower.item(prefix & (CELLS - 1))
            if prefix or self._law.least == 0.0:
                return self._law.cells.lower.item(prefix)
        return _finite_bounds(self.draw(at))[0]


class _Few(_Noised):
    """A handful of candidates, in lists."""

    def __init__(self, distance: list[float], *, law: Law, entropy: Entropy) -> None:
        super().__init__(law=law, entropy=entropy)
        self._distance = distance
        words = entropy.words(len(distance), dtype=_WORD)
        ends: list[float] = law.cells.upper.take(words).tolist()
        self._cells: list[int] = words.tolist()
        self._tail: dict[int, int] = {}
        self._upper = [end + away for end, away in zip(ends, distance, strict=True)]
        if max(self._cells) >= FIRST_TAIL_CELL:
            self._split_the_tail()

    def _split_the_tail(self) -> None:
        ends = self._law.tail_cells.upper
        tail = [at for at, cell in enumerate(self._cells) if cell >= FIRST_TAIL_CELL]
        for at, more in zip(tail, self._entropy.words(len(tail), dtype=_BYTE).tolist(), strict=True):
            self._tail[at] = prefix = self._cells[at] << 8 | more
            end = ends.item(prefix & (CELLS - 1))
            self._upper[at] = (end if end < _INFINITY else _finite_bounds(self.draw(at))[1]) + self._distance[at]

    def known(self, at: int) -> tuple[int, int]:
        return (self._tail[at], 24) if at in self._tail else (self._cells[at], 16)

    def upper_end(self, at: int) -> float:
        return self._upper[at]

    def best(self) -> float:
        leader = self._upper.index(max(self._upper))
        return self._distance[leader] + self._lower_end_of_noise(leader)

    def reaching(self, cutoff: float) -> list[int]:
        return [at for at, upper in enumerate(self._upper) if upper > cutoff]


class _Many(_Noised):
    """A block of candidates, in arrays."""

    def __init__(self, distance: NDArray[np.float64], *, law: Law, entropy: Entropy) -> None:
        super().__init__(law=law, entropy=entropy)
        self._distance = distance
        # One draw, with bytes to spare for four times the tail there will be on average.
        number = len(distance)
        words = entropy.words(number + (number >> 7) + 8, dtype=_WORD)
        self._cells: NDArray[np.uint16] = words[:number]
        self._upper = upper = law.cells.upper.take(self._cells)
        self._tail = tail = (self._cells >= _FIRST_OF_TAIL).nonzero()[0]
        if len(tail):
            # The shift drops the eight leading ones that all cells of the tail share.
            more = words[number:].view(_BYTE)[: len(tail)]
            if len(more) < len(tail):
                more = entropy.words(len(tail), dtype=_BYTE)
            self._tail_cells = (self._cells[tail] << _EIGHT) | more
            ends = law.tail_cells.upper.take(self._tail_cells)
            upper[tail] = ends
            if ends.item(ends.argmax()) == _INFINITY:
                for at in tail[self._tail_cells == CELLS - 1].tolist():
                    upper[at] = _finite_bounds(self.draw(at))[1]
        upper += distance

    def known(self, at: int) -> tuple[int, int]:
        cell: int = self._cells.item(at)
        if cell < FIRST_TAIL_CELL:
            return cell, 16
        return (FIRST_TAIL_CELL << 8) + self._tail_cells.item(self._tail.searchsorted(at)), 24

    def upper_end(self, at: int) -> float:
        return self._upper.item(at)

    def best(self) -> float:
        leader = int(self._upper.argmax())
        return self._distance.item(leader) + self._lower_end_of_noise(leader)

    def reaching(self, cutoff: float) -> list[int]:
        found: list[int] = (self._upper > cutoff).nonzero()[0].tolist()
        return found


def _finite_bounds(draw: LazyDraw) -> tuple[float, float]:
    while True:
        lower, upper = draw.bounds()
        if lower > -_INFINITY and upper < _INFINITY:
            return lower, upper
        draw.refine()


def _cutoff(best: float) -> float:
    """Who does not reach this cannot win against a lower end of ``best``, rounding errors included.

    A score is distance + end, with |end| < 2^16 (ends beyond that need more bits than may be drawn). The
    distance is off by at most 2^-50 of itself, the sum by 2^-53 of itself, so for scores up to twice
    (|best| + 2^16) both sides together are off by less than 2^-46 (|best| + 2^16); a score below that
    loses by half its size.
    """
    return best - 2.0**-46 * (abs(best) + 65536.0)
