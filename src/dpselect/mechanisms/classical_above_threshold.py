"""Above threshold with Laplace and with exponential noise: closed forms, with or without a horizon.

Exponential noise costs what Laplace noise costs, with half the variance (THEORY §12).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, positive
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.noise.quantiles import EXPONENTIAL, LAPLACE, Law
from dpselect.privacy.classical import (
    TranscriptBound,
    exponential_bound,
    laplace_bound,
    threshold_epsilon,
    threshold_loss,
    threshold_scales,
)
from dpselect.privacy.conversions import pure_renyi
from dpselect.privacy.family import QueryFamily, check_family


@dataclass(frozen=True)
class ClassicalAboveThreshold(AboveThreshold):
    """Noise whose pure cost has a closed form, with or without a horizon: Laplace or exponential.

    A run of any length costs Δ/scale_threshold, and every ⊤ a further 2Δ/scale_query (Δ/scale_query for a monotone
    family). Drawing a new threshold after each ⊤ means starting a new run and paying for its threshold.
    """

    #: The loss of a transcript, from Δ over the scales.
    bound: ClassVar[TranscriptBound]

    _: KW_ONLY
    scale_threshold: float
    scale_query: float

    def loss(self, below: ArrayLike, above: ArrayLike = 0) -> float | FloatArray:
        """Ex-post ε of a transcript with so many ⊥ and ⊤ under one threshold; arrays broadcast."""
        first, second = self.scales
        return threshold_loss(
            type(self).bound, self.family, scale_threshold=first, scale_query=second, below=below, above=above
        )

    def epsilon(self, horizon: int | None = None, *, above: int = 1) -> float:
        """ε of a run that stops after ``above`` ⊤ under one threshold (and after ``horizon`` questions)."""
        first, second = self.scales
        return threshold_epsilon(
            type(self).bound, self.family, scale_threshold=first, scale_query=second, above=above, horizon=horizon
        )

    def renyi(self, alpha: ArrayLike, horizon: int | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` of a run that stops at its first ⊤, from its pure ε."""
        return pure_renyi(alpha, self.epsilon(horizon))

    def probabilistic_epsilon(self, delta: float, horizon: int | None = None) -> float:
        """The pure ε, which no δ makes smaller here."""
        return self.epsilon(horizon)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, threshold: float, epsilon: float, above: int = 1) -> Self:
        """The noise for runs of up to ``above`` ⊤ at ε, split so that verdicts vary least.

        >>> from dpselect import LaplaceAboveThreshold
        >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
        >>> watcher = LaplaceAboveThreshold.calibrated(family, threshold=50, epsilon=0.7, above=3)
        >>> watcher.epsilon(above=3) <= 0.7
        True
        """
        first, second = threshold_scales(check_family(family), epsilon=epsilon, above=above)
        return cls(family, threshold=threshold, scale_threshold=first, scale_query=second)


@dataclass(frozen=True)
class LaplaceAboveThreshold(ClassicalAboveThreshold):
    """⊤ for a value whose noisy version reaches the noisy threshold, ⊥ otherwise.

    Parameters
    ----------
    family : QueryFamily
        Range, sensitivity Δ and monotonicity of the questions.
    threshold : float
        ρ, public.
    scale_threshold, scale_query : float
        Scales b_X and b_Z of the two Laplace noises.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> watcher = LaplaceAboveThreshold(family, threshold=50, scale_threshold=4.0, scale_query=8.0)
    >>> watcher.epsilon(), watcher.epsilon(above=3)
    (0.5, 1.0)
    >>> watcher.loss(below=1000, above=0)
    0.25
    >>> watcher.start().ask(2)
    <Verdict.BELOW: 'below'>
    """

    law: ClassVar[Law] = LAPLACE
    bound: ClassVar[TranscriptBound] = staticmethod(laplace_bound)


@dataclass(frozen=True)
class ExponentialAboveThreshold(ClassicalAboveThreshold):
    """⊤ for a value whose noisy version reaches the noisy threshold, with noise of one side on both.

    The noise is b_X·E on the threshold and b_Z·E' on a question, E and E' exponential of mean 1. Their difference is
    not centred, so the threshold is moved by a public amount (:attr:`level`): a value on the line is ⊤ half of the
    time. ⊤ is taken to be the rare answer; where ⊥ is, watch the negated values against the negated threshold.

    Parameters
    ----------
    family : QueryFamily
        Range, sensitivity Δ and monotonicity of the questions.
    threshold : float
        ρ, public.
    scale_threshold, scale_query : float
        Means b_X and b_Z of the two noises.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> watcher = ExponentialAboveThreshold(family, threshold=50, scale_threshold=4.0, scale_query=8.0)
    >>> watcher.epsilon(), watcher.epsilon(above=3)
    (0.5, 1.0)
    >>> watcher.loss(below=1000, above=0), watcher.loss(below=0, above=2)
    (0.25, 0.25)
    >>> watcher.start().ask(2)
    <Verdict.BELOW: 'below'>
    """

    law: ClassVar[Law] = EXPONENTIAL
    tops_pay_alone: ClassVar[bool] = True
    bound: ClassVar[TranscriptBound] = staticmethod(exponential_bound)

    @classmethod
    def offset(cls, scale_threshold: ArrayLike, scale_query: ArrayLike) -> FloatArray:
        """The median of b_Z·E' − b_X·E.

        P(b_Z·E' ≥ b_X·E + t) = e^(−t/b_Z)·b_Z/(b_X + b_Z) for t ≥ 0, and the mirrored formula for t < 0.
        """
        first, second = broadcast(
            scale_threshold=positive("scale_threshold", scale_threshold),
            scale_query=positive("scale_query", scale_query),
        )
        return median_offset(first, second)


def median_offset(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """The median of second·E' − first·E, E and E' exponential of mean 1; positive scales, not checked."""
    wider = np.maximum(first, second)
    offset = wider * (np.log(2.0) - np.log1p(np.minimum(first, second) / wider))
    return np.asarray(np.where(np.asarray(second) > first, offset, -offset))
