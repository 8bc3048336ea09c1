"""Approximate guarantees: the privacy profile of a Gaussian shift, and what it bounds (THEORY §3).

δ_G(ε; μ) = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ) is the exact profile of a Gaussian mechanism whose mean moves by μ
standard deviations. Every output of noisy max, or of a capped run of above threshold, is a half-space-like event
moved by one small shift, so the profile of the selection is at most the number of outputs times δ_G.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr

from dpselect.checks import FloatArray, broadcast, counts, non_negative, probability, unwrap
from dpselect.numerics.roots import smallest_safe_batch

_SQRT_HALF = np.sqrt(0.5)
_NODES, _WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5
#: The relative error of the formulas below stays under this; profiles are rounded up by it.
_ROUNDING = 1e-11


def _mills(x: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.pi / 2) * erfcx(x * _SQRT_HALF))


def _profile(epsilon: FloatArray, shift: FloatArray) -> FloatArray:
    """δ_G rounded up, for ε ≥ 0 and shift > 0."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = epsilon / shift - 0.5 * shift  # -(μ/2 - ε/μ)
        # e^ε·φ(gap + μ) = φ(gap), so δ = φ(gap)·(R(gap) - R(gap + μ)) with R the Mills ratio, R' = xR - 1.
        density = np.exp(-0.5 * gap * gap) / np.sqrt(2 * np.pi)
        fall = np.zeros_like(gap)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            x = gap + node * shift
            fall += weight * (1.0 - x * _mills(x))
        narrow = density * shift * fall
        # Far up the tail 1 - xR cancels; it is below 1/x² there, and stays above a tenth of that.
        far = gap > 1e4
        wide = np.where(
            gap > -5.0,
            density * (_mills(gap) - _mills(gap + shift)),
            ndtr(-gap) - np.exp(epsilon - 0.5 * np.square(gap + shift)) * _mills(gap + shift) / np.sqrt(2 * np.pi),
        )
        result = np.where(shift < 0.5, np.where(far, density * shift, narrow), wide)
    result = np.where(np.isnan(result), 0.0, np.maximum(result, 0.0))
    # What underflows is still positive.
    return np.minimum(result * (1.0 + _ROUNDING) + 1e-300, 1.0)


def gaussian_delta(epsilon: ArrayLike, *, shift: ArrayLike) -> float | FloatArray:
    """δ_G(ε; μ) of a Gaussian mechanism whose mean moves by ``shift`` (μ) standard deviations, rounded up.

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
    return unwrap(np.minimum(n * gaussian_delta(eps, shift=mu), 1.0))


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
    return unwrap(smallest_safe_batch(lambda eps: np.asarray(selection_delta(eps, shift=mu, outputs=n)), target, high))
