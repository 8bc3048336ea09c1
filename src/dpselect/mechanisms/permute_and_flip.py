"""Permute-and-flip, sampled exactly as a noisy max with exponential noise."""

from __future__ import annotations

from typing import ClassVar

from dpselect.mechanisms.noisy_max import BoundedHazardNoisyMax
from dpselect.noise.quantiles import EXPONENTIAL, Law


class PermuteAndFlip(BoundedHazardNoisyMax):
    """Visit candidates in random order, take each with probability exp((score_i − best)/scale).

    The largest of score_i + scale·Exponential_i has exactly this law (Ding, Kifer, Steinke and others
    2021), so the choice needs comparisons only. At equal ε its expected score is never below the
    exponential mechanism's (McKenna and Sheldon 2020).

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity Δ of the scores. For a monotone family half the noise gives the same ε.
    scale : float
        Mean of the noise: ε = 2Δ/scale (Δ/scale for a monotone family).

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> mechanism = PermuteAndFlip(counts, scale=4.0)
    >>> mechanism.epsilon()
    0.25
    >>> mechanism.release([3, 90, 12]).index
    1
    """

    law: ClassVar[Law] = EXPONENTIAL
