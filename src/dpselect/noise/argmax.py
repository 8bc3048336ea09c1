"""Which value is largest once noise is added: exact, and quicker than adding noise in floating point.

Every candidate gets 16 random bits, which name a cell of the noise with known ends; those in the
uppermost 1/256 get 8 more. A candidate stays only while its upper end reaches the best lower end seen.
Nearly always one is left; if not, the rest is decided by drawing more bits (THEORY §7).

Time that does not tell: every candidate goes through the same passes whatever the values are, and how many
are split a second time depends on the random bits alone. What remains: candidates that are still tied get
more bits, which takes some 0.1 ms longer. With d equal scores the chance is about d/2^23 (one release in ten
at d = 10^6, one in a thousand at d = 10^3); with one clear winner it is next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.noise.draw import LazyDraw, NoisyValue, largest
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.inputs import Exact, Scores, Values, check_scale, scores
from dpselect.noise.quantiles import CELLS, FIRST_TAIL_CELL, NORMAL, Law

_BLOCK = 1 << 15
_INFINITY = float("inf")


def noisy_argmax(values: Values, *, scale: Exact, law: Law = NORMAL, entropy: Entropy = SYSTEM_ENTROPY) -> int:
    """The index of the largest of ``values[i] + scale * draw[i]``, with independent real-valued draws.

    Parameters
    ----------
    values
        One number per candidate: an array of floats or integers, or a list of ints, floats and Fractions.
        All are taken at their exact value.
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


@dataclass
class _Finalists:
    """Candidates that may still win: index, bits drawn so far, upper end of the score."""

    indices: list[int]
    draws: list[LazyDraw]
    uppers: list[float]

    def keep(self, cutoff: float) -> None:
        kept = [k for k, upper in enumerate(self.uppers) if upper > cutoff]
        self.indices = [self.indices[k] for k in kept]
        self.draws = [self.draws[k] for k in kept]
        self.uppers = [self.uppers[k] for k in kept]


def decide(candidates: Scores, *, scale: Exact, law: Law, entropy: Entropy) -> tuple[int, dict[int, LazyDraw]]:
    """The winner, and the draws of those who could not be ruled out at once (for tests of exactness)."""
    scale = check_scale("scale", scale)
    origin = candidates.largest()
    distances = candidates.distances(origin=origin, scale=scale)
    finalists = _Finalists([], [], [])
    best = -_INFINITY
    for start in range(0, len(candidates), _BLOCK):
        stop = min(start + _BLOCK, len(candidates))
        best = _screen(distances(start, stop), start, best, law=law, entropy=entropy, finalists=finalists)
    if len(finalists.indices) > 1:
        finalists.keep(_cutoff(best))
    draws = dict(zip(finalists.indices, finalists.draws, strict=True))
    if len(finalists.indices) == 1:
        return finalists.indices[0], draws
    unit = Fraction(scale)
    noisy = [NoisyValue(candidates.exact(i), scale=unit, draw=draw) for i, draw in draws.items()]
    return finalists.indices[largest(noisy)], draws


def _screen(
    distance: NDArray[np.float64],
    start: int,
    best: float,
    *,
    law: Law,
    entropy: Entropy,
    finalists: _Finalists,
) -> float:
    """Noise one block, add who may still win to the finalists, return the best lower end so far."""
    cells = entropy.words(len(distance), dtype=np.uint16)
    upper = law.cells.upper.take(cells)
    tail = (cells >= FIRST_TAIL_CELL).nonzero()[0]
    # The shift drops the eight leading ones that all cells of the tail share.
    tail_cells = (cells[tail] << 8) | entropy.words(len(tail), dtype=np.uint8)
    upper[tail] = law.tail_cells.upper.take(tail_cells)
    refined: dict[int, LazyDraw] = {}
    for at in tail[tail_cells == CELLS - 1].tolist():
        draw = LazyDraw(law, entropy=entropy, prefix=(1 << 24) - 1, length=24)
        upper[at] = _finite_bounds(draw)[1]
        refined[at] = draw
    upper += distance

    def draw_of(at: int) -> LazyDraw:
        if at in refined:
            return refined[at]
        place = int(np.searchsorted(tail, at))
        if place < len(tail) and tail[place] == at:
            prefix = (FIRST_TAIL_CELL << 8) + int(tail_cells[place])
            return LazyDraw(law, entropy=entropy, prefix=prefix, length=24)
        return LazyDraw(law, entropy=entropy, prefix=int(cells[at]), length=16)

    leader = int(upper.argmax())
    refined[leader] = draw_of(leader)
    best = max(best, float(distance[leader]) + _lower_end(refined[leader]))
    for at in (upper > _cutoff(best)).nonzero()[0].tolist():
        finalists.indices.append(start + at)
        finalists.draws.append(draw_of(at))
        finalists.uppers.append(float(upper[at]))
    return best


def _lower_end(draw: LazyDraw) -> float:
    if draw.length == 16 and (draw.prefix or draw.law.least == 0.0):
        return float(draw.law.cells.lower[draw.prefix])
    if draw.length == 24:
        return float(draw.law.tail_cells.lower[draw.prefix & (CELLS - 1)])
    return _finite_bounds(draw)[0]


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
