"""What the classical selections cost: closed forms, computed in rationals and rounded upward.

They are noisy maxima (exponential mechanism, permute-and-flip, Laplace noisy max). Fix the noise of all candidates
but i. Then i wins iff its own noise exceeds a level r, and between neighbours r moves by at most 2Δ (Δ
when the family is monotone: all values move one way, so differences move by at most Δ). If the survival
function of the noise obeys |(log P(Z > r))'| ≤ 1/scale, the probability changes by at most a factor
e^(2Δ/scale). Gumbel, exponential and Laplace noise all have hazard rate at most 1/scale, hence one formula.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, counts, one, positive, refuse, unwrap
from dpselect.privacy.family import QueryFamily


def upward(value: Fraction) -> float:
    """The smallest double at or above an exact rational.

    >>> upward(Fraction(1, 10)), Fraction(upward(Fraction(1, 3))) >= Fraction(1, 3)
    (0.1, True)
    """
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    return math.nextafter(number, math.inf) if Fraction(number) < value else number


def calibrated_scale(name: str, value: Fraction, *, epsilon: float) -> float:
    """A noise scale rounded up to a double, refused where no double can carry it."""
    scale = upward(value)
    if scale == 0.0 or math.isinf(scale):
        raise refuse("epsilon", epsilon, f"such that {name} is a positive double (and the sensitivity must not be 0)")
    return scale


def _largest_gap(family: QueryFamily) -> Fraction:
    """The most a difference of two queries moves between neighbours."""
    return Fraction(family.sensitivity) * (1 if family.monotone else 2)


def bounded_hazard_epsilon(
    family: QueryFamily, *, scale: float, candidates: ArrayLike | None = None
) -> float | FloatArray:
    """ε of a noisy max whose noise has hazard rate at most 1/scale: Gumbel, exponential or Laplace.

    Parameters
    ----------
    family : QueryFamily
        Range, sensitivity Δ and monotonicity of the scores.
    scale : float
        Scale of the noise.
    candidates : int or array of int, optional
        d. The bound is the same for every d ≥ 2 and 0 for a single candidate; without it, d ≥ 2 is taken.

    Returns
    -------
    float or ndarray
        2Δ/scale, or Δ/scale for a monotone family, rounded upward.

    Examples
    --------
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> bounded_hazard_epsilon(counts, scale=4)
    0.25
    >>> bounded_hazard_epsilon(counts, scale=4, candidates=[1, 2, 50]).tolist()
    [0.0, 0.25, 0.25]
    """
    epsilon = upward(_largest_gap(family) / Fraction(one(positive, "scale", scale)))
    if candidates is None:
        return epsilon
    return unwrap(np.where(counts("candidates", candidates, least=1) > 1, epsilon, 0.0))


def bounded_hazard_scale(family: QueryFamily, *, epsilon: float) -> float:
    """The smallest scale with ``bounded_hazard_epsilon(...) <= epsilon``.

    >>> bounded_hazard_scale(QueryFamily(lower=0, upper=1, sensitivity=0.25), epsilon=0.5)
    1.0
    """
    target = Fraction(one(positive, "epsilon", epsilon))
    return calibrated_scale("scale", _largest_gap(family) / target, epsilon=epsilon)


def exponential_epsilon(
    family: QueryFamily, *, scale: float, candidates: ArrayLike | None = None
) -> float | FloatArray:
    """ε of the exponential mechanism over a known number of candidates; tight.

    With weights e^(q/scale), the worst pair has one candidate at ``lower`` and the others at ``upper``, which
    move towards each other by Δ each: ε = s − log(1 + p(e^s − 1)), s = 2Δ/scale and
    p = 1/(1 + (d−1)e^(c/scale)) the chance of the lone one. In a monotone family only the lone one moves:
    s = Δ/scale. It lies below :func:`bounded_hazard_epsilon` by next to nothing when d or c/scale is large.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1)
    >>> exponential_epsilon(family, scale=2), round(exponential_epsilon(family, scale=2, candidates=2), 9)
    (1.0, 0.5)
    """
    simple = bounded_hazard_epsilon(family, scale=scale, candidates=candidates)
    if candidates is None:
        return simple
    others = counts("candidates", candidates, least=1) - 1.0
    gap = float(_largest_gap(family) / Fraction(scale))
    if not math.isfinite(gap) or gap > 700.0:
        return simple
    with np.errstate(over="ignore"):
        chance = 1.0 / (1.0 + np.maximum(others, 1.0) * np.exp(family.width / scale))
    # A dozen roundings and two library functions, each within 2 units in the last place; c/scale loses
    # relative accuracy c/scale · 2^-53 in the exponential, which scales p, and so the correction, by as much.
    saved = np.log1p(chance * math.expm1(gap))
    safe = saved * (1.0 - 2.0**-48 * (1.0 + min(family.width / scale, 2.0**40)))
    tight = (gap - safe) * (1.0 + 2.0**-50) + gap * 2.0**-50
    return unwrap(np.where(others > 0, np.minimum(tight, simple), 0.0))
