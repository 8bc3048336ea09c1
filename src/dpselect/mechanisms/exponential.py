"""The exponential mechanism, sampled exactly as a noisy max with Gumbel noise."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, unwrap
from dpselect.mechanisms.noisy_max import BoundedHazardNoisyMax
from dpselect.noise.quantiles import GUMBEL, Law
from dpselect.privacy.classical import bounded_hazard_epsilon, exponential_epsilon
from dpselect.privacy.concentrated import range_renyi, range_rho


class ExponentialMechanism(BoundedHazardNoisyMax):
    """Choose candidate i with probability proportional to exp(score_i / scale).

    The largest of score_i + scale·Gumbel_i has exactly this law, so the choice needs comparisons only and no
    exponential is ever rounded.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity Δ of the scores. For a monotone family half the noise gives the same ε.
    scale : float
        Δ-to-ε exchange rate: ε = 2Δ/scale (Δ/scale for a monotone family), less for few candidates.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> mechanism = ExponentialMechanism(counts, scale=4.0)
    >>> mechanism.epsilon()
    0.25
    >>> mechanism.release([3, 90, 12]).index
    1
    """

    law: ClassVar[Law] = GUMBEL

    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ε of one release; tight.

        Without ``candidates`` the bound that holds for any number of them.
        """
        return exponential_epsilon(self.family, scale=self.scale, candidates=candidates)

    def rho(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ρ of zCDP of one release: η²/8, a quarter of what pure η would give.

        The log ratios of one pair of neighbours differ by at most η = 2Δ/scale (Δ/scale for a monotone family),
        attained for every number of candidates. The tight ε of few candidates is below η, down to its half: it
        has no place here.

        >>> from dpselect import QueryFamily
        >>> ExponentialMechanism(QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True), scale=4.0).rho()
        0.0078125
        """
        return range_rho(self._spread(candidates))

    def renyi(self, alpha: ArrayLike, candidates: ArrayLike | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most; the best bound from its range and its ε."""
        return unwrap(np.minimum(range_renyi(alpha, self._spread(candidates)), self.epsilon(candidates)))

    def _spread(self, candidates: ArrayLike | None) -> float | FloatArray:
        return bounded_hazard_epsilon(self.family, scale=self.scale, candidates=candidates)
