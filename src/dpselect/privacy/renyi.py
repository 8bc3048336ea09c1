"""Rényi bounds known before the run (THEORY §3)."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, counts, numbers, one, refuse, unwrap
from dpselect.numerics.moment import log_negative_moment

#: Orders over which conversions to (ε, δ) search.
ORDERS: FloatArray = 1.0 + np.geomspace(1e-3, 1e6, 721)


#: Covers 32 roundings. The formulas below have at most a dozen each, products and sums of positive terms, the rounding
#: of μ (four) included.
_UP = 1.0 + 2.0**-48
#: Its square is a normal double.
_LEAST_SQUARED = 1e-150


def orders(alpha: ArrayLike) -> FloatArray:
    """Rényi orders: above 1 and finite."""
    array = numbers("alpha", alpha)
    if not ((array > 1) & np.isfinite(array)).all():
        raise refuse("alpha", alpha, "above 1 and finite")
    return array


def selection_renyi(alpha: ArrayLike, *, shift: float, outputs: float) -> float | FloatArray:
    """α·μ²/2 + log(n)/(α - 1): a selection among n outputs, each moved by ``shift`` (μ) standard deviations.

    >>> selection_renyi(11.0, shift=0.1, outputs=2)
    0.124314...
    """
    a = orders(alpha)
    n = one(counts, "outputs", outputs, least=1)
    return unwrap((a * shift * shift / 2.0 + math.log(n) / (a - 1.0)) * _UP)


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
    bounds = (
        gammas / (gammas - 1.0) * grown * (0.5 * first * first)
        + grown * (2.0 * second * second)
        + np.maximum(log_moments, 0.0) / (gammas * (grown - 1.0))
    )
    return unwrap(bounds.min(axis=-1) * _UP)


def zhu_wang_renyi_as_published(
    alpha: ArrayLike, *, sensitivity: float, threshold_gap: float, sigma_threshold: float, sigma_query: float
) -> float | FloatArray:
    """The closed form as printed (γ = 2, σ_Z ≥ √3·σ_X), **for reproducing figures only**.

    Its third term under-covers the moment when (ρ - a)/σ_X ≤ 0.3, so it is not always a bound (THEORY §3).
    """
    a = orders(alpha)
    if sigma_query < math.sqrt(3.0) * sigma_threshold * (1 - 1e-12):
        raise refuse("sigma_query", sigma_query, f"at least √3·sigma_threshold = {math.sqrt(3) * sigma_threshold!r}")
    square, r = sensitivity * sensitivity, threshold_gap / sigma_threshold
    log_moment = np.logaddexp(0.0, math.log(2 * math.sqrt(3) * math.pi * (1 + 9 * r * r)) + r * r)
    return unwrap(a * square / sigma_threshold**2 + 2.0 * a * square / sigma_query**2 + log_moment / (2.0 * (a - 1.0)))
