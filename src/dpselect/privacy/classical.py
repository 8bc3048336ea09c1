"""What the classical mechanisms cost: closed forms, computed in rationals and rounded upward.

**Selections** are noisy maxima (exponential mechanism, permute-and-flip, Laplace noisy max). Fix the noise of all
candidates but i. Then i wins iff its own noise exceeds a level r, and between neighbours r moves by at most 2Δ (Δ
when the family is monotone: all values move one way, so differences move by at most Δ). If the survival
function of the noise obeys |(log P(Z > r))'| ≤ 1/scale, the probability changes by at most a factor
e^(2Δ/scale). Gumbel, exponential and Laplace noise all have hazard rate at most 1/scale: one formula.

**Above threshold.** A transcript of ⊥ and ⊤ under one noisy threshold ρ + x has probability
E_x[∏_⊥ F(y_i)·∏_⊤ (1 − F)(y_i)], where y_i = ρ + x − q_i and F is the law of a question's noise. Moving the integration
variable costs what it does to the density of x, and then every factor costs what is left of its own move.

*Laplace.* A move by sΔ, |s| ≤ 1, costs |s|Δ/scale_threshold; every ⊥ factor then costs at most (1 − s)Δ/scale_query
and every ⊤ factor at most (1 + s)Δ/scale_query. This is linear in s on either side of 0, so the best s is −1, 0 or 1.
In a monotone family whose values rise, s ∈ [0, 1] leaves (1 − s)Δ per ⊥ and sΔ per ⊤; when they fall, s ∈ [−1, 0]
leaves |s|Δ per ⊥ and (1 − |s|)Δ per ⊤.

*Exponential* (THEORY §12). The noise has a support of one side, so a ⊥ factor may be 0 at one of two neighbours and
positive at the other: its move must be taken back in full. x → x + Δ stays inside the support and costs
Δ/scale_threshold; no ⊥ factor falls, and a ⊤ factor, 1 − F(y) = min(1, e^(−y/scale_query)), falls by at most
2Δ/scale_query. In a monotone family whose values rise it falls by at most Δ/scale_query; when they fall no move is
needed and again each ⊤ costs Δ/scale_query. Without ⊥ no move is needed either. All are attained.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, counts, one, positive, refuse, unwrap
from dpselect.privacy.family import QueryFamily, relative_shift
from dpselect.rounding import upward


def calibrated_scale(name: str, value: Fraction, *, epsilon: float) -> float:
    """A noise scale rounded up to a double, refused where no double can carry it."""
    scale = upward(value)
    if scale == 0.0 or math.isinf(scale):
        raise refuse("epsilon", epsilon, f"such that {name} is a positive double (and the sensitivity must not be 0)")
    return scale


def _largest_gap(family: QueryFamily) -> Fraction:
    """The most a difference of two queries moves between neighbours."""
    return Fraction(family.sensitivity) * relative_shift(family.monotone)


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
    s = Δ/scale. It is only just below :func:`bounded_hazard_epsilon` when d or c/scale is large.

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
    exact = _largest_gap(family) / Fraction(scale)
    if not 1e-290 < upward(exact) < math.inf:
        return simple  # where doubles end the allowances below do, too
    gap = float(exact)
    if gap > 700.0:
        # e^s is beyond the doubles. With a = c/scale + log(d−1), ε = min(a, s) + log(1 + e^(−a)) − log(1 + e^(−|a−s|)).
        # It rises in a and in s, by at most 1 for 1, and both are within 2^-51 of themselves. Since 2c ≥ 2Δ, a ≥ 350:
        # the first logarithm is far below a unit of a, and so is what the second one loses.
        far = family.width / scale + np.log(np.maximum(others, 1.0))
        bound = np.minimum(far, gap) - np.log1p(np.exp(-np.abs(far - gap)))
        tight = bound + 2.0**-49 * (far + gap)
        return unwrap(np.where(others > 0, np.minimum(tight, simple), 0.0))
    with np.errstate(over="ignore"):
        chance = 1.0 / (1.0 + np.maximum(others, 1.0) * np.exp(family.width / scale))
    # A dozen roundings and two library functions, each within 2 units in the last place; c/scale loses
    # relative accuracy c/scale · 2^-53 in the exponential, which scales p, and so the correction, by as much.
    saved = np.log1p(chance * math.expm1(gap))
    safe = saved * (1.0 - 2.0**-48 * (1.0 + min(family.width / scale, 2.0**40)))
    tight = (gap - safe) * (1.0 + 2.0**-50) + gap * 2.0**-50
    return unwrap(np.where(others > 0, np.minimum(tight, simple), 0.0))


class TranscriptBound(Protocol):
    """The loss of transcripts, elementwise on arrays of doubles or (exactly) of fractions."""

    def __call__(self, threshold_cost: Any, query_cost: Any, below: Any, above: Any, *, monotone: bool) -> Any:
        """From Δ/scale_threshold, Δ/scale_query and the numbers of ⊥ and ⊤."""
        ...


def laplace_bound(threshold_cost: Any, query_cost: Any, below: Any, above: Any, *, monotone: bool) -> Any:
    """The loss with Laplace noise.

    >>> laplace_bound(0.25, 0.125, np.array([1000, 1000, 1]), np.array([0, 2, 2]), monotone=False).tolist()
    [0.25, 0.75, 0.375]
    """
    if monotone:
        rising = np.minimum(below * query_cost, threshold_cost + above * query_cost)
        falling = np.minimum(above * query_cost, threshold_cost + below * query_cost)
        return np.maximum(rising, falling)
    moved = threshold_cost + 2 * np.minimum(below, above) * query_cost
    return np.minimum(moved, (below + above) * query_cost)


def exponential_bound(threshold_cost: Any, query_cost: Any, below: Any, above: Any, *, monotone: bool) -> Any:
    """The loss with exponential noise.

    >>> exponential_bound(0.25, 0.125, np.array([1000, 1000, 0]), np.array([0, 2, 2]), monotone=False).tolist()
    [0.25, 0.75, 0.25]
    """
    each = query_cost if monotone else 2 * query_cost
    return np.where(np.asarray(below) > 0, threshold_cost + above * each, above * query_cost)


def threshold_loss(
    bound: TranscriptBound,
    family: QueryFamily,
    *,
    scale_threshold: float,
    scale_query: float,
    below: ArrayLike,
    above: ArrayLike,
) -> float | FloatArray:
    """Ex-post ε of ``below`` ⊥ and ``above`` ⊤ under one threshold, rounded upward; arrays broadcast.

    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> cost = dict(scale_threshold=4, scale_query=8)
    >>> threshold_loss(laplace_bound, family, **cost, below=1000, above=[0, 1, 2]).tolist()
    [0.25, 0.5, 0.75]
    """
    threshold_cost, query_cost = _costs(family, scale_threshold, scale_query)
    m, k = broadcast(below=counts("below", below), above=counts("above", above))
    # Counts are whole numbers up to 2^53: as Python integers they multiply the fractions exactly.
    whole = [np.array([int(number) for number in counted.flat], dtype=object) for counted in (m, k)]
    exact = bound(threshold_cost, query_cost, *whole, monotone=family.monotone)
    return unwrap(np.array([upward(Fraction(loss)) for loss in exact]).reshape(m.shape))


def threshold_epsilon(
    bound: TranscriptBound,
    family: QueryFamily,
    *,
    scale_threshold: float,
    scale_query: float,
    above: int = 1,
    horizon: int | None = None,
) -> float:
    """ε of a run under one threshold that stops after ``above`` ⊤, and after ``horizon`` questions if given.

    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> threshold_epsilon(laplace_bound, family, scale_threshold=4, scale_query=8)
    0.5
    """
    threshold_cost, query_cost = _costs(family, scale_threshold, scale_query)
    most = int(one(counts, "above", above, least=1))
    if horizon is None:
        return upward(threshold_cost + most * query_cost * relative_shift(family.monotone))
    steps = int(one(counts, "horizon", horizon, least=1))
    # The loss grows with either count, so the longest transcripts cost most. Along m + k = steps the Laplace bound is
    # a tent or two (a minimum of lines) with peaks at k = (steps ± ratio)/2 or steps/2; the exponential one rises up
    # to the last k that leaves a ⊥. Every k looked at is one that can happen.
    ratio = threshold_cost / query_cost if query_cost else Fraction(0)
    peaks = [int((steps + turn) // 2) + side for turn in (-ratio, Fraction(0), ratio) for side in (0, 1)]
    tops = {min(max(peak, 0), most, steps) for peak in (*peaks, steps - 1, steps)}
    k = np.array(sorted(tops), dtype=object)
    return upward(Fraction(max(bound(threshold_cost, query_cost, steps - k, k, monotone=family.monotone))))


def threshold_scales(family: QueryFamily, *, epsilon: float, above: int = 1) -> tuple[float, float]:
    """(scale_threshold, scale_query) with ``threshold_epsilon(..., above=above) <= epsilon``.

    The budget is split so that the variance of (query noise − threshold noise) is least: with w = 2·above (or
    ``above`` for a monotone family) minimise 1/x² + w²/(ε − x)², which gives x = ε/(1 + w^(2/3)).

    Examples
    --------
    >>> threshold_scales(QueryFamily(lower=0, upper=9, sensitivity=1, monotone=True), epsilon=1.0)
    (2.0, 2.0)
    """
    target = Fraction(one(positive, "epsilon", epsilon))
    weight = int(one(counts, "above", above, least=1)) * relative_shift(family.monotone)
    sensitivity = Fraction(family.sensitivity)
    for_threshold = target / (1 + Fraction(weight ** (2.0 / 3.0)))
    scale_threshold = calibrated_scale("scale_threshold", sensitivity / for_threshold, epsilon=epsilon)
    for_queries = target - sensitivity / Fraction(scale_threshold)
    return scale_threshold, calibrated_scale("scale_query", weight * sensitivity / for_queries, epsilon=epsilon)


def _costs(family: QueryFamily, scale_threshold: float, scale_query: float) -> tuple[Fraction, Fraction]:
    """Δ over the two scales, exactly."""
    sensitivity = Fraction(family.sensitivity)
    return (
        sensitivity / Fraction(one(positive, "scale_threshold", scale_threshold)),
        sensitivity / Fraction(one(positive, "scale_query", scale_query)),
    )
