"""The public grid on which whole releases are made, and what rounding to it does to the sensitivity.

Real-valued noise cannot be written down; doubles near it leak through their low bits. So values are rounded
to multiples of a public power of two, the *step*, and integer noise is added to the multiples. What comes out
is a multiple of the step with nothing hidden below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.privacy.family import QueryFamily

#: The step is at most 2^-16 of the sensitivity and of the noise scale, so the grid is nowhere near visible
#: ...
FINENESS = 16
#: ... unless the range would then need integers that doubles cannot carry, or noise beyond 2^39 steps.
_RANGE_BITS = 53
_SCALE_BITS = 39
_LEAST_EXPONENT = -1000


@dataclass(frozen=True)
class Grid:
    """Multiples of 2**exponent.

    Examples
    --------
    >>> grid = Grid.for_release(QueryFamily(lower=0, upper=1, sensitivity=0.001), scale=0.1)
    >>> grid.exponent, grid.sensitivity(QueryFamily(lower=0, upper=1, sensitivity=0.001))
    (-26, 67109)
    """

    exponent: int

    @classmethod
    def for_release(cls, family: QueryFamily, *, scale: float) -> Grid:
        """The grid for a family and a noise scale: both public, so the grid is."""
        finest = _binary_order(min(scale, family.sensitivity or scale)) - FINENESS
        reach = _binary_order(max(abs(family.lower), abs(family.upper))) + 1
        return cls(max(finest, reach - _RANGE_BITS, _binary_order(scale) - _SCALE_BITS, _LEAST_EXPONENT))

    @property
    def step(self) -> float:
        """The distance between neighbouring points."""
        return math.ldexp(1.0, self.exponent)

    def in_steps(self, number: float) -> Fraction:
        """A number divided by the step, exactly."""
        return Fraction(number) / Fraction(2) ** self.exponent

    def sensitivity(self, family: QueryFamily) -> int:
        """The most one rounded value moves between neighbours, in steps.

        If |x − y| ≤ t then ⌊x + ½⌋ and ⌊y + ½⌋ differ by at most ⌈t⌉; and by no more than the range allows.
        """
        across = self._round(Fraction(family.upper)) - self._round(Fraction(family.lower))
        return min(math.ceil(self.in_steps(family.sensitivity)), across)

    def round(self, values: FloatArray | Sequence[Fraction]) -> NDArray[np.int64]:
        """⌊value/step + ½⌋, exactly.

        Ties go up, not to even: rounding to even would send 0.5 to 0 and 1.5 to 2, twice as far as it should.

        >>> Grid(-1).round(np.array([0.25, 0.75, -0.25, 0.2])).tolist()
        [1, 2, 0, 0]
        """
        if not isinstance(values, np.ndarray):
            return np.array([self._round(value) for value in values], dtype=np.int64)
        scaled = np.ldexp(values, -self.exponent)
        floor = np.floor(scaled)
        return (floor + (scaled - floor >= 0.5)).astype(np.int64)

    def _round(self, value: Fraction) -> int:
        return math.floor(value / Fraction(2) ** self.exponent + Fraction(1, 2))


def _binary_order(number: float) -> int:
    """⌊log2 number⌋."""
    return math.frexp(number)[1] - 1
