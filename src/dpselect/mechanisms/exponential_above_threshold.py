"""Above threshold with exponential noise: what Laplace noise costs, with half the variance (THEORY §12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, positive
from dpselect.mechanisms.above_threshold import ClassicalAboveThreshold
from dpselect.noise.quantiles import EXPONENTIAL, Law
from dpselect.privacy.classical_threshold import TranscriptBound, exponential_bound


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
        wider = np.maximum(first, second)
        offset = wider * (np.log(2.0) - np.log1p(np.minimum(first, second) / wider))
        return np.asarray(np.where(second > first, offset, -offset))
