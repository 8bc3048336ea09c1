"""The Zhu–Wang Rényi bound of above threshold with Gaussian noise, known before the run (THEORY §3).

It needs a moment, log E_x[Φ(slope·x + offset)^(-power)] for power·slope² < 1, never below the truth.

The same trapezoidal rule; it needs a lower bound on |Φ| off the line (docs/theory.md §6). For b = |slope|·a ≤ 1:

* y ≤ 0: Φ(y + ib) = φ(y + ib)·∫_0^∞ exp(yv - v²/2)·e^(ibv) dv, so |Φ(y + ib)| ≥ Φ(y)·e^(b²/2)·E[cos bV], V distributed
  as that weight; E[V²] ≤ 1 there, so |Φ(y + ib)| ≥ Φ(y)·e^(b²/2)·(1 - b²/2);
* y ≥ 0, yb ≤ π: the real part of Φ(y + ib) is Φ(y) + φ(y)·∫_0^b e^(t²/2)·sin(yt) dt ≥ Φ(y);
* yb > π: the same real part is at least Φ(y)·(1 - h(y)·b·e^(b²/2)), and h(y) < h(π) < 0.003.

So Φ has no zero in the strip, and the integrand there is at most exp(a²/2 + power·lift)·f(x): the bound M is a known
multiple of the integral itself, and the sum is off by a known share.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from dpselect.checks import FloatArray, unwrap
from dpselect.numerics.normal import hazard_of_one
from dpselect.numerics.pair import U
from dpselect.numerics.rule import log_cdf_error
from dpselect.privacy.conversions import orders
from dpselect.privacy.profiles import UP

#: Its square is a normal double.
_LEAST_SQUARED = 1e-150
_DROP = 40.0
_EFFORT = 34.0
#: Beyond so many nodes the moment is left infinite, which is safe.
_MOST = 40_000


def _lift(b: float) -> float:
    """log of Φ(y)/|Φ(y + ib)|, at most, for every y and b ≤ 1, rounded up."""
    end = math.pi / b
    far = math.exp(-0.5 * end * end) / math.sqrt(2.0 * math.pi) / 0.99
    return 1.0001 * max(-0.5 * b * b - math.log1p(-0.5 * b * b), -math.log1p(-far * b * math.exp(0.5 * b * b)))


@np.errstate(all="ignore")
def log_negative_moment(power: float, slope: float, offset: float) -> float:
    """An upper bound on the logarithm; infinite where power·slope² is 1 or more, or the hill is very wide.

    It is at most 1e-9 above the logarithm, or 1e-9 of it where that is larger. Inputs may each be off by a relative
    4e-16 (rounded quotients), which the bound covers.

    >>> log_negative_moment(2.0, -0.5, 0.0)
    2.099701440...
    """
    if not (power > 0.0 and slope != 0.0 and power * slope * slope < 1.0 - 1e-9):
        return math.inf
    strip_width = min(1.0 / abs(slope), 8.0)
    multiple = 0.5 * strip_width * strip_width + power * _lift(min(1.0, abs(slope) * strip_width))
    step = 2.0 * math.pi * strip_width / (_EFFORT + multiple)
    bend = 1.0 - power * slope * slope

    def lean(x: float) -> float:
        return -x - power * slope * hazard_of_one(slope * x + offset)

    # The log integrand is concave: its slope tells where the peak is.
    low, high = -1.0, 1.0
    while lean(low) < 0.0:
        low *= 4.0
    while lean(high) > 0.0:
        high *= 4.0
    while high - low > 0.01 * (1.0 + abs(low)):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if lean(middle) > 0.0 else (low, middle)
    reach = math.sqrt(2.0 * _DROP / bend) + (high - low)
    half = math.ceil(reach / step)
    if not half < _MOST:
        return math.inf
    nodes = 0.5 * (low + high) + step * np.arange(-half, half + 1)
    arguments = slope * nodes + offset
    heights = -0.5 * nodes * nodes - power * log_ndtr(arguments)
    top = float(heights.max())
    weights = np.exp(heights - top)
    # Rounding: of y (inputs included, and the nodes themselves), of log Φ, of the height, of the sum.
    low_argument = float(arguments.min())
    log_low = -float(log_ndtr(low_argument))
    hazard = math.exp(min(-0.5 * low_argument * low_argument + log_low, 700.0)) / math.sqrt(2.0 * math.pi)
    size = abs(slope) * float(np.abs(nodes).max()) + abs(offset)
    furthest = float(np.abs(nodes).max())
    error = power * (float(log_cdf_error(low_argument, log_low)) + hazard * 12.0 * U * size + 8.0 * U * log_low)
    error += 6.0 * U * (furthest * furthest + power * log_low + len(nodes) + 4.0)
    tail = 0.0
    for end, inner in ((0, 1), (-1, -2)):
        # Either height may be off. Beyond the last node the terms fall at least like the last two.
        fall = float(heights[inner] - heights[end]) - 2.0 * error
        tail += float(weights[end]) / math.expm1(min(fall, 700.0)) if fall > 0.01 else math.inf
    total = float(weights.sum()) + 1.01 * tail
    damped = 2.0 * math.pi * strip_width / step
    # The truth T and the sum S: |S - T| ≤ share·T.
    share = 2.0 * math.exp(multiple - damped) * 1.01
    bound = top + math.log(step * total / math.sqrt(2.0 * math.pi)) - math.log1p(-share) + error * 1.01
    return bound + 16.0 * U * (abs(top) + 4.0) if math.isfinite(bound) else math.inf


@functools.lru_cache(maxsize=256)
def _log_moments(sigma_threshold: float, sigma_query: float, gap: float) -> tuple[FloatArray, FloatArray]:
    """γ and log M_γ, M_γ = E_x[Φ(-(σ_X·x + ρ - a)/σ_Z)^(-γ)], for γσ_X² < σ_Z²."""
    slope = sigma_threshold / sigma_query
    limit = 1.0 / max(slope * slope, 1e-300)
    # From just above 1 to just below the limit, dense at both ends.
    share = 0.5 * (1.0 - np.cos(np.linspace(0.0, np.pi, 130)[1:-1]))
    top = min(limit, 1e4)
    gammas = 1.0 + (top - 1.0) * share if top < 50 else np.geomspace(1.0 + 1e-3, top * 0.999, 128)
    if gammas.min() < 2.0 < gammas.max():
        gammas = np.sort(np.append(gammas, 2.0))
    moments = [log_negative_moment(gamma, -slope, -gap / sigma_query) for gamma in gammas.tolist()]
    return gammas, np.array(moments)


def zhu_wang_renyi(
    alpha: ArrayLike,
    *,
    sensitivity: float,
    threshold_gap: float,
    sigma_threshold: float,
    sigma_query: float,
) -> float | FloatArray:
    """The Zhu–Wang Rényi bound of above threshold, with no cap on its length, the moment taken numerically.

    Queries are at least a; ``threshold_gap`` is ρ - a. Every γ with 1 < γ < σ_Z²/σ_X² gives a bound; the best of a
    fine grid is returned. Infinite when σ_Z ≤ σ_X, where no γ is allowed.

    >>> zhu_wang_renyi(20.0, sensitivity=1e-3, threshold_gap=0.5, sigma_threshold=0.2, sigma_query=0.2 * 3**0.5)
    0.198996...
    """
    a = orders(alpha)
    if not sigma_query > sigma_threshold * (1 + 1e-9):
        return unwrap(np.full(a.shape, np.inf))
    gammas, log_moments = _log_moments(sigma_threshold, sigma_query, threshold_gap)
    # Quotients before squares, which could leave the doubles; what would underflow is not nothing.
    first, second = (max(sensitivity / sigma, _LEAST_SQUARED) for sigma in (sigma_threshold, sigma_query))
    grown = a[..., None]
    with np.errstate(over="ignore"):
        bounds = (
            gammas / (gammas - 1.0) * grown * (0.5 * first * first)
            + grown * (2.0 * second * second)
            + np.maximum(log_moments, 0.0) / (gammas * (grown - 1.0))
        )
        return unwrap(bounds.min(axis=-1) * UP)
