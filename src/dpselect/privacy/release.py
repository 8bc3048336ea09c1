"""What releasing every value costs: the public grid it is made on, and discrete Gaussian noise on that grid.

Real-valued noise cannot be written down; doubles near it leak through their low bits. So values are rounded to
multiples of a public power of two, the *step*, and integer noise is added to the multiples. What comes out is a
multiple of the step with nothing hidden below it.

Of discrete Gaussian noise there are two bounds, and the smaller one counts: :func:`discrete_gaussian_delta`, which is
the continuous mechanism's profile up to a relative 1e-4, and concentrated differential privacy, ρ = d·n²/(2t²)
(Canonne, Kamath and Steinke 2020, Theorem 4), which also covers noise so narrow on its grid that the first does not
apply.

**The profile.** Let K have d independent coordinates P(k) ∝ exp(−k²/2t²) on the integers, and let every coordinate be
shifted by at most n steps. Claim, with δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) the profile of real Gaussian noise
at μ = n√d/t and y = max(0, ε/μ − μ/2):

    δ(ε) ≤ (1 + η)·(δ_G(ε; μ) + φ(y)/(t√d)),      η ≤ (1 + 2Σ_{j≥1} exp(−2π²t²j²/d))^(d−1) − 1.

1. *All coordinates shifted by n is worst.* The law of one coordinate is log-concave, so the most powerful
   tests between it and a shifted copy are half-lines, and a larger shift makes each of them more powerful. A
   smaller shift is therefore a post-processing of a larger one (Blackwell), coordinate by coordinate.
2. *Only the sum S of the coordinates matters*: the log ratio is linear in S. Its law is
   P(S = s) = e^(−s²/2dt²)·C_s/Z^d with C_s the Gaussian sum over integer points of the plane Σk = s. By
   Poisson summation C_s ≤ (1 + η)(2πt²)^((d−1)/2)/√d, where η sums exp(−2π²t²|w|²) over the projections w ≠ 0
   of integer points orthogonally to (1, …, 1); those with last coordinate 0 represent all, and for them |w|²
   ≥ |k|²/d. Also Z ≥ √(2π)·t. Together P(S = s) ≤ (1 + η) times the normal density of variance dt² at s.
3. *A sum of a unimodal function over the integers is at most its integral plus its maximum.* The summand is
   that density times (1 − e^(ε−L(s)))₊, L linear: log-concave where positive, so unimodal; its integral is
   δ_G and it never exceeds the density at the place where it starts, φ(y)/(t√d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from dpselect.checks import FloatArray, counts, non_negative, one, positive, probability, refuse
from dpselect.numerics.roots import smallest_safe
from dpselect.precision import working_precision
from dpselect.privacy.family import QueryFamily
from dpselect.rounding import upward

#: The step is at most 2^-16 of the sensitivity and of the noise scale, so the grid is nowhere near visible
#: ...
FINENESS = 16
#: ... unless the range would then need integers that doubles cannot carry, or noise beyond 2^39 steps.
_RANGE_BITS = 53
_SCALE_BITS = 39
_LEAST_EXPONENT = -1000
#: Where 2π²t²/d − log d is at least this, η < 2^-80.
_SMOOTH = 60.0


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

    def delta(epsilon: float) -> float:
        return gaussian_release_delta(family, sigma=sigma, candidates=candidates, epsilon=epsilon)

    return 0.0 if delta(0.0) <= allowed else smallest_safe(delta, allowed)


def gaussian_release_sigma(family: QueryFamily, *, candidates: int, epsilon: float, delta: float) -> float:
    """The smallest σ (to 1e-12, from above) that releases ``candidates`` values at (ε, δ).

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> round(gaussian_release_sigma(family, candidates=365, epsilon=0.69, delta=1e-5), 3)
    0.1
    """
    level, allowed = one(positive, "epsilon", epsilon), one(probability, "delta", delta)
    if family.sensitivity == 0:
        raise refuse("sensitivity", 0.0, "positive to calibrate noise against")

    def delta_at(sigma: float) -> float:
        return gaussian_release_delta(family, sigma=sigma, candidates=candidates, epsilon=level)

    return smallest_safe(delta_at, allowed, start=family.sensitivity)


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


def is_smooth(*, scale: Fraction, coordinates: int) -> bool:
    """Whether the bound applies: the noise is wide enough (in steps) for its number of coordinates.

    >>> is_smooth(scale=Fraction(65536), coordinates=10**6), is_smooth(scale=Fraction(1), coordinates=10)
    (True, False)
    """
    return 19.7 * float(scale) ** 2 / coordinates - math.log(coordinates) >= _SMOOTH


def discrete_gaussian_delta(epsilon: float, *, scale: Fraction, shift: int, coordinates: int) -> float:
    """An upper bound on δ(ε), within a relative 1e-4 or so of the truth for scales of thousands of steps.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0.
    scale : Fraction
        t, in steps; wide enough for :func:`is_smooth`.
    shift : int
        n, in steps.
    coordinates : int
        d.

    Examples
    --------
    >>> discrete_gaussian_delta(1.0, scale=Fraction(2**16), shift=2**16, coordinates=1)
    0.1269...
    """
    if shift == 0:
        return 0.0
    with working_precision():
        for precision in (128, 256, 512, 1024, 4096):
            ctx.prec = precision
            t = arb(fmpq(scale.numerator, scale.denominator))
            root = arb(coordinates).sqrt()
            mu = shift * root / t
            e = arb(epsilon)
            tail = _normal_cdf(mu / 2 - e / mu)
            profile = tail - e.exp() * _normal_cdf(-mu / 2 - e / mu)
            start = (e / mu - mu / 2).max(arb(0))
            density = (-start * start / 2).exp() / (2 * arb.pi()).sqrt()
            bound = (profile + density / (t * root)) * (1 + arb(2) ** -80)
            # Cancellation in the profile shows as a wide ball; more bits cure it.
            if float(bound.rel_accuracy_bits()) >= 60:
                break
        return min(1.0, math.nextafter(float(bound.upper()), math.inf))


def _normal_cdf(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2
