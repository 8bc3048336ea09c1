"""δ(ε) of the discrete Gaussian mechanism over d coordinates, bounded from above in ball arithmetic.

Let K have d independent coordinates P(k) ∝ exp(−k²/2t²) on the integers, and let every coordinate be shifted
by at most n steps. Claim, with δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) the profile of real Gaussian
noise at μ = n√d/t and y = max(0, ε/μ − μ/2):

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
from fractions import Fraction

from flint import arb, ctx, fmpq

from dpselect.precision import working_precision

#: Where 2π²t²/d − log d is at least this, η < 2^-80.
_SMOOTH = 60.0


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
