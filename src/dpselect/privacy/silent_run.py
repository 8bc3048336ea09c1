"""How likely a run of Gaussian above threshold stays silent, at most (THEORY §4)."""

from __future__ import annotations

import math
from fractions import Fraction

from dpselect.checks import counts, finite, one, positive
from dpselect.numerics.integral import log_integral
from dpselect.numerics.pair import Pair, difference, exact, quotient


def silent_probability(
    *, lower: float, threshold: float, sigma_threshold: float, sigma_query: float, questions: int
) -> float:
    """The most that the first ``questions`` answers are all ⊥ with: E_x[Φ((σ_X·x + ρ - a)/σ_Z)^n], rounded up.

    Queries are at least ``lower`` (a), and the lowest ones are the likeliest to stay below.

    >>> round(silent_probability(lower=3, threshold=0, sigma_threshold=0.5, sigma_query=0.75**0.5, questions=1), 8)
    0.0013499
    """
    number = one(counts, "questions", questions)
    if number == 0.0:
        return 1.0
    noise = one(positive, "sigma_query", sigma_query)
    spread = one(positive, "sigma_threshold", sigma_threshold)
    line, low = one(finite, "threshold", threshold), one(finite, "lower", lower)
    slope, offset = quotient(exact(spread), noise), quotient(difference(line, low), noise)

    def exact_inputs(_: int) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
        scale = Fraction(noise)
        return [Fraction(spread) / scale], [(Fraction(line) - Fraction(low)) / scale], [Fraction(0)]

    chance = log_integral(
        [number], Pair([slope.high], [slope.low]), Pair([offset.high], [offset.low]), exact=exact_inputs
    )
    # The exponential is within a unit in its last place; next to 0 that is all of it.
    return min(1.0, math.nextafter(math.exp(float(chance.upper)) * (1.0 + 2.0**-51), math.inf))
