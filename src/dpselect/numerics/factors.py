"""The integrand: a Gaussian weight times powers of Φ, for many parameter sets ("cells") at once.

    f(x) = exp(-x²/2) · ∏_j Φ(slope_j·x + offset_j)^count_j

It is log-concave (for counts ≥ 0; also for one negative count with |count|·slope² < 1): one mode, one hill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.numerics.normal import log_cdf_and_hazard

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Factors:
    """Powers of Φ, arrays of shape (cells, factors)."""

    counts: FloatArray
    slopes: FloatArray
    offsets: FloatArray

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    @property
    def width(self) -> int:
        """How many factors each cell has."""
        return int(self.counts.shape[1])

    def take(self, cells: NDArray[np.bool_] | NDArray[np.intp]) -> Factors:
        """The chosen cells."""
        return Factors(self.counts[cells], self.slopes[cells], self.offsets[cells])


def modes(factors: Factors, *, steps: int = 60) -> FloatArray:
    """Where each cell's integrand peaks, to about a twentieth of the peak's width, or far less. Counts must be ≥ 0.

    With x ≥ 0 (mirrored where needed) the peak solves pull(x) = x + push(x), pull falling and push rising. The
    logarithm of both sides is nearly linear even where the hazards fall like exp(-y²/2), so Newton's method on it
    needs a handful of steps; a bracket guards it.
    """
    counts, slopes, offsets = factors.counts, factors.slopes, factors.offsets
    cells = len(factors)
    _, hazards = log_cdf_and_hazard(offsets)
    # No factor pulls: the peak is at 0, exactly.
    direction = np.where(np.sum(counts * slopes * hazards, axis=1) < 0, -1.0, 1.0)
    slopes = slopes * direction[:, None]
    pulls = (slopes > 0) & (counts > 0)
    pushes = (slopes < 0) & (counts > 0)
    with np.errstate(divide="ignore"):
        log_strength = np.log(counts * np.abs(slopes))
    edge = np.max(np.where(pulls, -offsets / np.where(pulls, slopes, 1.0), 0.0), axis=1, initial=0.0)
    low = np.zeros(cells)
    high = np.full(cells, np.inf)
    x = np.maximum(edge, 0.5)
    active = np.flatnonzero(pulls.any(axis=1))
    result = np.zeros(cells)
    for _ in range(steps):
        if not active.size:
            break
        here = x[active]
        a, u = slopes[active], offsets[active]
        y = a * here[:, None] + u
        _, hazard = log_cdf_and_hazard(y)
        # Beyond y = 30 the hazard is the density, and would underflow before its logarithm.
        log_hazard = np.where(y > 30.0, -0.5 * y * y - _LOG_SQRT_2PI, np.log(np.maximum(hazard, 1e-300)))
        log_terms = log_strength[active] + log_hazard
        pull_terms = np.where(pulls[active], log_terms, -np.inf)
        push_terms = np.where(pushes[active], np.exp(np.minimum(log_terms, 700.0)), 0.0)
        log_pull = np.logaddexp.reduce(pull_terms, axis=1)
        push = here + push_terms.sum(axis=1)
        share = np.exp(pull_terms - log_pull[:, None])
        bend = np.abs(a) * (hazard + y)  # -d log(hazard)/dx along each factor, up to sign
        value = log_pull - np.log(push)
        slope = -(share * bend).sum(axis=1) - (1.0 + (push_terms * bend).sum(axis=1)) / push
        rising = value > 0
        low[active] = np.where(rising, here, low[active])
        high[active] = np.where(rising, high[active], here)
        step = -value / slope
        proposal = here + step
        lows, highs = low[active], high[active]
        fallback = np.where(np.isfinite(highs), 0.5 * (lows + highs), 2.0 * here + 1.0)
        inside = (proposal > lows) & (proposal < highs)
        proposal = np.where(inside, proposal, fallback)
        # The peak's width is at most 1/√curvature, curvature = 1 + Σ count·slope²·hazard·(hazard + y).
        curvature = 1.0 + (np.where(counts[active] > 0, np.exp(np.minimum(log_terms, 700.0)), 0.0) * bend).sum(axis=1)
        settled = np.abs(proposal - here) * np.sqrt(curvature) < 0.05
        x[active] = proposal
        result[active] = proposal
        active = active[~settled]
    return result * direction
