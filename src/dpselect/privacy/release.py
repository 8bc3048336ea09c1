"""What releasing every value costs: the public grid it is made on, and discrete Gaussian noise on that grid.

Real-valued noise cannot be written down; doubles near it leak through their low bits. So values are rounded to
multiples of a public power of two, the *step*, and integer noise is added to the multiples. What comes out is a
multiple of the step with nothing hidden below it.

Of discrete Gaussian noise there are two bounds, and the smaller one counts: the profile of
:mod:`dpselect.numerics.discrete_profile`, which is the continuous mechanism's up to a relative 1e-4, and concentrated
differential privacy, ρ = d·n²/(2t²) (Canonne, Kamath and Steinke 2020, Theorem 4), which also covers noise so narrow on
its grid that the first does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, counts, non_negative, one, positive, probability, refuse
from dpselect.numerics.discrete_profile import discrete_gaussian_delta, is_smooth
from dpselect.privacy.classical import upward
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


#: α − 1 for the orders tried; any order gives a true bound, so a grid is enough.
_ORDERS_LESS_ONE: FloatArray = np.geomspace(1e-4, 1e9, 6000)


def gaussian_release_rho(family: QueryFamily, *, sigma: float, candidates: int) -> float:
    """ρ of concentrated differential privacy: the Rényi divergence of order α is at most αρ.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=2**-10)
    >>> gaussian_release_rho(family, sigma=0.125, candidates=128) == 128 * 2**-20 / (2 * 0.125**2)
    True
    """
    scale, shift, coordinates = _in_steps(family, sigma, candidates)
    return upward(Fraction(coordinates * shift**2) / (2 * scale**2))


def gaussian_release_delta(family: QueryFamily, *, sigma: float, candidates: int, epsilon: float) -> float:
    """δ at a given ε, never below the truth.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> gaussian_release_delta(family, sigma=0.1, candidates=365, epsilon=0.7)
    8.1...e-06
    """
    scale, shift, coordinates = _in_steps(family, sigma, candidates)
    level = one(non_negative, "epsilon", epsilon)
    if shift == 0:
        return 0.0
    concentrated = _delta_from_rho(gaussian_release_rho(family, sigma=sigma, candidates=coordinates), level)
    if not is_smooth(scale=scale, coordinates=coordinates):
        return concentrated
    profile = discrete_gaussian_delta(level, scale=scale, shift=shift, coordinates=coordinates)
    return min(profile, concentrated)


def gaussian_release_epsilon(family: QueryFamily, *, sigma: float, candidates: int, delta: float) -> float:
    """The smallest ε (to 1e-12, from above) whose :func:`gaussian_release_delta` is at most ``delta``.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> round(gaussian_release_epsilon(family, sigma=0.1, candidates=365, delta=1e-5), 3)
    0.69
    """
    allowed = one(probability, "delta", delta)
    scale, number = one(positive, "sigma", sigma), int(one(counts, "candidates", candidates, least=1))
    return _search_epsilon(family, scale, number, allowed)


@lru_cache(maxsize=1024)
def _search_epsilon(family: QueryFamily, sigma: float, candidates: int, allowed: float) -> float:
    """The search takes milliseconds and depends on public parameters only, so it is remembered."""

    def fits(epsilon: float) -> bool:
        return gaussian_release_delta(family, sigma=sigma, candidates=candidates, epsilon=epsilon) <= allowed

    return 0.0 if fits(0.0) else _smallest(fits, start=1.0)


def gaussian_release_sigma(family: QueryFamily, *, candidates: int, epsilon: float, delta: float) -> float:
    """The smallest σ (to 1e-12, from above) that releases ``candidates`` values at (ε, δ).

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> round(gaussian_release_sigma(family, candidates=365, epsilon=0.69, delta=1e-5), 3)
    0.1
    """
    level, allowed = one(positive, "epsilon", epsilon), one(probability, "delta", delta)
    if family.sensitivity == 0:
        raise refuse("sensitivity", 0.0, "positive to calibrate noise against")

    def fits(sigma: float) -> bool:
        return gaussian_release_delta(family, sigma=sigma, candidates=candidates, epsilon=level) <= allowed

    return _smallest(fits, start=family.sensitivity)


def _in_steps(family: QueryFamily, sigma: float, candidates: int) -> tuple[Fraction, int, int]:
    """σ and the sensitivity on the grid, and d."""
    scale = one(positive, "sigma", sigma)
    grid = Grid.for_release(family, scale=scale)
    return grid.in_steps(scale), grid.sensitivity(family), int(one(counts, "candidates", candidates, least=1))


def _delta_from_rho(rho: float, epsilon: float) -> float:
    """δ ≤ exp((α−1)(αρ − ε))·(1 − 1/α)^(α−1)/α for every α > 1 (the same paper, Corollary 13)."""
    less_one = _ORDERS_LESS_ONE
    order = 1.0 + less_one
    exponent = less_one * (order * rho - epsilon)
    exponent += less_one * np.log(less_one / order) - np.log(order)
    # Each term is good to a few units in its own last place, and none exceeds the sum of their sizes.
    doubt = (less_one * (order * rho + epsilon) + 20.0 + np.log(order)) * 2.0**-46
    # The exponential's own unit is far within the doubt; what underflows is not nothing.
    return min(1.0, math.nextafter(math.exp(min(0.0, float(np.min(exponent + doubt)))), math.inf))


def _smallest(fits: Callable[[float], bool], *, start: float) -> float:
    """The smallest positive number that fits, found by bisection from above: what is returned fits."""
    high = start
    while not fits(high):
        high *= 2.0
        if math.isinf(high):
            raise refuse("epsilon and delta", (math.inf,), "large enough for some finite noise to meet them")
    low = high / 2.0
    while fits(low):
        high, low = low, low / 2.0
        if low < 1e-300:
            return high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
