"""Approximate guarantees: the privacy profile of a Gaussian shift, and what it bounds (THEORY §3).

δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) is the exact profile of a Gaussian mechanism whose mean moves by μ
standard deviations. Every output of noisy max, or of a capped run of above threshold, is a half-space-like event
moved by one small shift, so the profile of the selection is at most the number of outputs times δ_G; and its Rényi
divergence at most α·μ²/2 + log(outputs)/(α - 1).
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr

from dpselect.checks import FloatArray, broadcast, counts, non_negative, one, probability, unwrap
from dpselect.numerics.roots import smallest_safe_batch
from dpselect.privacy.conversions import orders

_SQRT_HALF = np.sqrt(0.5)
_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5
_U = 2.0**-53
#: Covers 32 roundings. The Rényi formulas have at most a dozen each, products and sums of positive terms, the rounding
#: of μ (four) included.
UP = 1.0 + 2.0**-48


def _mills(x: FloatArray) -> FloatArray:
    """R(x) = (1 - Φ(x))/φ(x)."""
    return np.asarray(np.sqrt(np.pi / 2) * erfcx(x * _SQRT_HALF))


def _profile(epsilon: FloatArray, shift: FloatArray) -> FloatArray:
    """δ_G rounded up, for ε ≥ 0 and shift > 0, each off by at most 4 units in the last place.

    Roundings, in units u = 2^-53 and relative to the result, with g = ε/μ - μ/2:

    * g is off by at most 8u·(ε/μ + μ/2), ε's and μ's own errors included. δ = ∫_0^∞ φ(g + s)(1 - e^(-μs)) ds, so
      -∂(log δ)/∂g = g + E[s], and by likelihood ratio E[s] is largest as μ → 0: at most R/(1 - gR) ≤ max(g, 0) + 2.
      In μ itself the logarithm changes by at most ∂(log δ)/∂(log μ) ≤ 1: 4u.
    * exp(-g²/2) is off by (g² + 2)u, erfcx by 4u; 1 - xR, which is at least 1/(x² + 3), by 8u(x² + 3), x ≤ g + 1/2; a
      difference of Mills ratios half apart or more by 40u(g² + 4); twelve nodes leave off less than 1e-30.

    All of it is doubled below. What underflows is below 1e-300, which is added.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        reach = epsilon / shift
        gap = reach - 0.5 * shift  # -(μ/2 - ε/μ)
        # e^ε·φ(gap + μ) = φ(gap), so δ = φ(gap)·(R(gap) - R(gap + μ)) with R the Mills ratio, R' = xR - 1.
        density = np.exp(-0.5 * gap * gap) / np.sqrt(2 * np.pi)
        fall = np.zeros_like(gap)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            x = gap + node * shift
            fall += weight * (1.0 - x * _mills(x))
        far = density * _mills(gap + shift)
        wide = np.where(gap > -5.0, density * _mills(gap) - far, ndtr(-gap) - far)
        result = np.where(shift < 0.5, density * shift * fall, wide)
        tail = np.maximum(gap, 0.0)
        units = 2.0 * (8.0 * (tail + 2.0) * (reach + 0.5 * shift) + 44.0 * (gap * gap + 4.0))
        result = result * (1.0 + _U * np.minimum(units, 2.0**60)) + 1e-300
    # Beyond all doubles, ε/μ is infinite and δ below 1e-300.
    return np.minimum(np.where(np.isnan(result), np.where(gap > 0.0, 1e-300, 1.0), np.maximum(result, 1e-300)), 1.0)


@np.errstate(over="ignore", under="ignore")
def total_shift(*moves: tuple[float, ArrayLike]) -> FloatArray:
    """μ = √Σ(move/σ)², from each move and the σ of its noise: never 0 where something moves, however small or far.

    Quotients are taken first, since squares of what is given may leave the doubles. Three roundings.

    >>> float(total_shift((3e-200, 1.0), (4e-200, 1.0))), float(total_shift((0.0, 1.0)))
    (5e-200, 0.0)
    """
    found = reduce(np.hypot, (move / np.asarray(sigma) for move, sigma in moves))
    return np.maximum(found, np.finfo(np.float64).tiny) if any(move > 0 for move, _ in moves) else found * 0.0


def gaussian_delta(epsilon: ArrayLike, *, shift: ArrayLike) -> float | FloatArray:
    """δ_G(ε; μ) of a Gaussian mechanism whose mean moves by ``shift`` (μ) standard deviations, rounded up.

    Above the truth by at most 1e-10 + 2e-15·(g + 2)·μ, relatively, g = max(ε/μ - μ/2, 0): ε and μ may themselves be off
    by four units, which decides it at large μ. What is below 1e-300 is given as 1e-300.

    >>> gaussian_delta(1.0, shift=1.0)
    0.12693673...
    """
    eps, mu = broadcast(epsilon=non_negative("epsilon", epsilon), shift=non_negative("shift", shift))
    return unwrap(np.where(mu > 0, _profile(eps, np.where(mu > 0, mu, 1.0)), 0.0))


def selection_delta(epsilon: ArrayLike, *, shift: ArrayLike, outputs: ArrayLike) -> float | FloatArray:
    """An upper bound on the profile of a selection with ``outputs`` possible answers."""
    eps, mu, n = broadcast(
        epsilon=non_negative("epsilon", epsilon),
        shift=non_negative("shift", shift),
        outputs=counts("outputs", outputs, least=1),
    )
    # One rounding more.
    return unwrap(np.minimum(np.nextafter(n * gaussian_delta(eps, shift=mu), np.inf), 1.0) * (mu > 0.0))


@np.errstate(over="ignore")
def selection_epsilon(delta: ArrayLike, *, shift: ArrayLike, outputs: ArrayLike = 1) -> float | FloatArray:
    """The smallest ε at which :func:`selection_delta` is at most ``delta``; with one output, the exact Gaussian one.

    >>> selection_epsilon(1e-5, shift=0.02, outputs=365)
    0.087...
    """
    target, mu, n = broadcast(
        delta=probability("delta", delta),
        shift=non_negative("shift", shift),
        outputs=counts("outputs", outputs, least=1),
    )
    # Mills: δ_G(ε; μ) ≤ Φ(-(ε/μ - μ/2)) ≤ exp(-(ε/μ - μ/2)²/2), met at this ε.
    high = mu * (0.5 * mu + np.sqrt(2.0 * (np.log(n) - np.log(target)) + 1.0))
    high = np.where(mu > 0, high, 0.0)
    # Beyond the doubles no ε is enough.
    endless = np.isinf(high)
    mu, high = np.where(endless, 1.0, mu), np.where(endless, 1.0, high)
    found = smallest_safe_batch(lambda eps: np.asarray(selection_delta(eps, shift=mu, outputs=n)), target, high)
    return unwrap(np.where(endless, np.inf, found))


def selection_renyi(alpha: ArrayLike, *, shift: float, outputs: float) -> float | FloatArray:
    """α·μ²/2 + log(n)/(α - 1): a selection among n outputs, each moved by ``shift`` (μ) standard deviations.

    >>> selection_renyi(11.0, shift=0.1, outputs=2)
    0.124314...
    """
    a = orders(alpha)
    n = one(counts, "outputs", outputs, least=1)
    return unwrap((a * shift * shift / 2.0 + math.log(n) / (a - 1.0)) * UP)
