"""One real-valued draw, known as well as it has to be, and comparisons that are exact.

A :class:`LazyDraw` is a point on the real line of which only some leading bits (of the uniform behind it)
have been drawn. Two noisy values are compared by the ends of what is known; while the ends overlap, more
bits are drawn. Two different real draws differ at some bit with probability one, so the comparison ends,
and what it says is what infinitely precise noise would have said (THEORY §7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from dpselect.checks import refuse
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import NORMAL, Law, double_above, double_below
from dpselect.precision import working_precision

#: Draws that agree on so many bits do not come from a random source (a chance of 2^-65536).
MOST_BITS = 1 << 16
_INFINITY = float("inf")


class LazyDraw:
    """One draw of a law, known by the first bits of its uniform; more bits are drawn on demand.

    Parameters
    ----------
    law
        What is drawn.
    entropy
        Where the bits come from.
    prefix, length
        The bits already drawn, if any: a whole number below 2^length.

    Examples
    --------
    >>> draw = LazyDraw(NORMAL, prefix=0b11, length=2)     # the upper quarter of the normal law
    >>> lower, upper = draw.bounds()
    >>> round(lower, 6), upper
    (0.67449, inf)
    >>> draw.refine()
    >>> lower < draw.bounds()[1] < float("inf")
    True
    """

    __slots__ = ("_balls", "_known", "entropy", "law")

    def __init__(
        self, law: Law = NORMAL, *, entropy: Entropy = SYSTEM_ENTROPY, prefix: int = 0, length: int = 0
    ) -> None:
        if length < 0 or not 0 <= prefix < 1 << length:
            raise refuse("prefix", prefix, "a whole number, 0 or more and below 2^length")
        self.law = law
        self.entropy = entropy
        # One tuple, replaced at once: an interruption never leaves bits and their number out of step.
        self._known = (prefix, length)
        self._balls: tuple[tuple[int, int], tuple[Any | None, Any | None]] | None = None

    def __repr__(self) -> str:
        # The bits are the secret of a release: they are never shown.
        return f"LazyDraw({self.law.name}, {self.length} bits drawn)"

    @property
    def prefix(self) -> int:
        """The bits drawn so far, as a whole number below 2^length."""
        return self._known[0]

    @property
    def length(self) -> int:
        """How many bits have been drawn."""
        return self._known[1]

    def refine(self, *, bits: int = 64) -> None:
        """Draw ``bits`` more bits."""
        prefix, length = self._known
        if length + bits > MOST_BITS:
            raise refuse("entropy", self.entropy, "a source of independent bits; two draws agreed on all of theirs")
        self._known = (prefix << bits | self.entropy.bits(bits), length + bits)

    def balls(self) -> tuple[Any | None, Any | None]:
        """The ends between which the draw lies, as balls; ``None`` for an infinite end."""
        known = self._known
        if self._balls is None or self._balls[0] != known:
            self._balls = known, self.law.balls(prefix=known[0], length=known[1])
        return self._balls[1]

    def bounds(self) -> tuple[float, float]:
        """Doubles between which the draw lies."""
        lower, upper = self.balls()
        return (
            -_INFINITY if lower is None else double_below(lower),
            _INFINITY if upper is None else double_above(upper),
        )


@dataclass(frozen=True)
class NoisyValue:
    """``value`` + ``scale`` × ``draw``, exactly.

    >>> NoisyValue(Fraction(1, 3), scale=Fraction(2), draw=LazyDraw(NORMAL)).scale
    Fraction(2, 1)
    """

    value: Fraction | int
    scale: Fraction | int
    draw: LazyDraw

    def __repr__(self) -> str:
        return f"NoisyValue(scale={self.scale}, draw={self.draw})"

    def ends(self, *, origin: Fraction | int) -> tuple[Any | None, Any | None]:
        """The ends between which the noisy value less ``origin`` lies, as balls."""
        shift, scale = exact_ball(self.value - origin), exact_ball(self.scale)
        lower, upper = self.draw.balls()
        return (
            None if lower is None else shift + scale * lower,
            None if upper is None else shift + scale * upper,
        )


def exact_ball(number: Fraction | int) -> Any:
    """A rational number as a ball at the working precision."""
    return flint.arb(flint.fmpq(number.numerator, number.denominator))


def largest(candidates: Sequence[NoisyValue]) -> int:
    """The position of the largest of several noisy values, decided exactly.

    Bits are drawn until all but one are known to be smaller. A single candidate needs none.

    >>> low, high = NoisyValue(0, scale=1, draw=LazyDraw()), NoisyValue(10**6, scale=1, draw=LazyDraw())
    >>> largest([low, high])
    1
    """
    if not candidates:
        raise refuse("candidates", candidates, "non-empty")
    remaining = list(range(len(candidates)))
    origin = candidates[0].value
    while len(remaining) > 1:
        with working_precision(max(candidates[i].draw.length for i in remaining) + 80):
            ends = {i: candidates[i].ends(origin=origin) for i in remaining}
            best: Any | None = None
            for lower, _ in ends.values():
                # `<` on balls is true only where it is certain; a missed maximum costs bits, not correctness.
                if lower is not None and (best is None or best < lower):
                    best = lower
            if best is not None:
                remaining = [i for i in remaining if ends[i][1] is None or not ends[i][1] < best]
        if len(remaining) > 1:
            # Only the least known are refined: a threshold that meets many questions stays short.
            shortest = min(candidates[i].draw.length for i in remaining)
            for i in remaining:
                if candidates[i].draw.length == shortest:
                    candidates[i].draw.refine()
    return remaining[0]


def compare(first: NoisyValue, second: NoisyValue, /) -> int:
    """1 where the first noisy value is the larger one, −1 where the second is; exact, and never 0.

    >>> compare(NoisyValue(0, scale=1, draw=LazyDraw()), NoisyValue(10**6, scale=1, draw=LazyDraw()))
    -1
    """
    return 1 if largest((first, second)) == 0 else -1
