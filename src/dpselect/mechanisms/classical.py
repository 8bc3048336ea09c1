"""The classical selections: exponential mechanism, permute-and-flip, Laplace noisy max.

Each is a noisy max whose noise has hazard rate at most 1/scale, which bounds what it costs
(:mod:`dpselect.privacy.classical`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, counts, one
from dpselect.mechanisms.selection import NoisyMax
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, Law
from dpselect.numerics.roots import smallest_safe
from dpselect.privacy.classical import bounded_hazard_epsilon, bounded_hazard_scale, exponential_epsilon
from dpselect.privacy.family import QueryFamily, check_family


@dataclass(frozen=True)
class ClassicalNoisyMax(NoisyMax):
    """A noisy max whose noise has hazard rate at most 1/scale: Gumbel, exponential or Laplace."""

    scale: float

    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ε of one release: the same for every number of candidates above one."""
        return bounded_hazard_epsilon(self.family, scale=self.scale, candidates=candidates)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float, candidates: int | None = None) -> Self:
        """The least noise that costs at most ``epsilon``, whatever the number of candidates.

        >>> from dpselect import PermuteAndFlip
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> PermuteAndFlip.calibrated(family, epsilon=0.1).epsilon() <= 0.1
        True
        """
        if candidates is not None:
            one(counts, "candidates", candidates, least=1)
        return cls(check_family(family), scale=bounded_hazard_scale(family, epsilon=epsilon))


class ExponentialMechanism(ClassicalNoisyMax):
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

    def spread(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """η = 2Δ/scale (Δ/scale for a monotone family): the log ratios of one pair of neighbours lie this close.

        Attained for every number of candidates; the tight ε of few candidates is below it, down to a half.

        >>> from dpselect import QueryFamily
        >>> ExponentialMechanism(QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True), scale=4.0).rho()
        0.0078125
        """
        return bounded_hazard_epsilon(self.family, scale=self.scale, candidates=candidates)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float, candidates: int | None = None) -> Self:
        """The least noise that costs at most ``epsilon``: a little less where ``candidates`` are few and known.

        >>> from dpselect import QueryFamily
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=0.5)
        >>> ExponentialMechanism.calibrated(family, epsilon=1.0).scale
        1.0
        >>> few = ExponentialMechanism.calibrated(family, epsilon=1.0, candidates=5)
        >>> 0.999999 < few.epsilon(candidates=5) <= 1.0, few.scale < 0.9
        (True, True)
        """
        simple = super().calibrated(family, epsilon=epsilon, candidates=candidates)
        if candidates is None or candidates == 1:
            return simple
        # The gap's log ratio log(1 + (d−1)e^(c/scale)) − log(1 + (d−1)e^((c−s)/scale)) falls as the scale grows.
        scale = smallest_safe(
            lambda trial: float(np.asarray(cls(family, scale=trial).epsilon(candidates))), epsilon, start=simple.scale
        )
        return cls(family, scale=min(scale, simple.scale))


class PermuteAndFlip(ClassicalNoisyMax):
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


class LaplaceNoisyMax(ClassicalNoisyMax):
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
