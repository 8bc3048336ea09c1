"""How likely a run of Gaussian above threshold stays silent, at most (THEORY §4)."""

from __future__ import annotations

import math

from dpselect.checks import counts, finite, one, positive
from dpselect.numerics.integral import log_integral


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
    slope = one(positive, "sigma_threshold", sigma_threshold) / noise
    offset = (one(finite, "threshold", threshold) - one(finite, "lower", lower)) / noise
    return min(1.0, math.exp(float(log_integral([number], [slope], [offset]).upper)) * (1.0 + 1e-14))
