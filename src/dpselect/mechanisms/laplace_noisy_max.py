"""Report noisy max with Laplace noise."""

from __future__ import annotations

from typing import ClassVar

from dpselect.mechanisms.noisy_max import BoundedHazardNoisyMax
from dpselect.noise.quantiles import LAPLACE, Law


class LaplaceNoisyMax(BoundedHazardNoisyMax):
    """Add Laplace noise to every score and name the largest.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity Δ of the scores. For a monotone family half the noise gives the same ε.
    scale : float
        Scale b of the noise: ε = 2Δ/b (Δ/b for a monotone family).

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> mechanism = LaplaceNoisyMax(counts, scale=4.0)
    >>> mechanism.epsilon()
    0.25
    >>> mechanism.release([3, 90, 12]).index
    1
    """

    law: ClassVar[Law] = LAPLACE
