"""How probable each answer is, computed from the true law of the noise: for planning, audits and tests.

These numbers come from private values and are private themselves. They are double-precision quadratures of
distribution functions and share nothing with the sampler, which works with quantile functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, finite, one, positive, refuse
from dpselect.mechanisms.run import Verdict
from dpselect.noise.quantiles import NORMAL, Law

#: Beyond so many scales on either side every law here has less than 1e-17 left.
_REACH = 40.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def noisy_max_probabilities(values: ArrayLike, *, scale: float, law: Law = NORMAL) -> FloatArray:
    """P(candidate i has the largest noisy value) for every i.

    Parameters
    ----------
    values : array
        The scores.
    scale : float
        What the noise is multiplied by.
    law : Law
        The law of the noise.

    Notes
    -----
    ∫ f(u − a_i)·∏_{j≠i} F(u − a_j) du with a = values/scale, over panels that end at every a_j, where the
    Laplace and exponential densities have their kinks.

    Examples
    --------
    >>> from dpselect.noise.quantiles import GUMBEL
    >>> noisy_max_probabilities([0.0, np.log(3)], scale=1.0, law=GUMBEL).round(12).tolist()
    [0.25, 0.75]
    """
    scores = np.atleast_1d(finite("values", values)) / one(positive, "scale", scale)
    points, weights = _panels(scores, width=1.0)
    place = points[None, :] - scores[:, None]
    log_density, log_cdf = law.log_density(place), law.log_cdf(place)
    # Sums of logarithms, minus the candidate's own: where that is −∞ − (−∞), the density is 0 as well.
    with np.errstate(invalid="ignore"):
        others = np.where(np.isneginf(log_cdf), 0.0, log_cdf)
    never = np.isneginf(log_cdf).sum(axis=0)[None, :] - np.isneginf(log_cdf) > 0
    exponent = log_density + others.sum(axis=0)[None, :] - others
    found: FloatArray = np.where(never, 0.0, np.exp(exponent)) @ weights
    return found


def transcript_probability(
    values: ArrayLike,
    verdicts: Sequence[Verdict],
    *,
    threshold: float,
    scale_threshold: float,
    scale_query: float,
    law: Law = NORMAL,
) -> float:
    """P(these verdicts) for the first ``len(verdicts)`` values, all asked of one noisy threshold.

    Examples
    --------
    >>> cost = dict(threshold=0.0, scale_threshold=1.0, scale_query=1.0)
    >>> round(transcript_probability([0.0, 0.0], [Verdict.BELOW, Verdict.ABOVE], **cost), 12)
    0.166666666667
    """
    asked = np.atleast_1d(finite("values", values))[: len(verdicts)]
    if len(asked) != len(verdicts):
        raise refuse("verdicts", len(verdicts), "no more than there are values")
    ratio = one(positive, "scale_threshold", scale_threshold) / one(positive, "scale_query", scale_query)
    kinks = np.append((asked - threshold) / scale_threshold, 0.0)
    points, weights = _panels(kinks, width=min(1.0, 1.0 / ratio), inner=np.zeros(1))
    exponent = law.log_density(points)
    for value, verdict in zip(asked.tolist(), verdicts, strict=True):
        level = ratio * points + (threshold - value) / scale_query
        exponent = exponent + (law.log_cdf(level) if verdict is Verdict.BELOW else law.log_survival(level))
    return float(np.exp(exponent) @ weights)


def _panels(kinks: FloatArray, *, width: float, inner: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre points and weights; no panel is wider than ``width`` or reaches across a kink."""
    centre = kinks if inner is None else inner
    low, high = float(centre.min()) - _REACH, float(centre.max()) + _REACH
    steps = np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)
    ends = np.unique(np.concatenate([steps, kinks[(kinks > low) & (kinks < high)]]))
    half = 0.5 * np.diff(ends)
    middle = 0.5 * (ends[1:] + ends[:-1])
    points = (middle[:, None] + half[:, None] * _NODES).ravel()
    return points, (half[:, None] * _WEIGHTS).ravel()
