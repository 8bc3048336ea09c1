"""Above threshold with Laplace noise and its standard accounting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpselect.mechanisms.above_threshold import ClassicalAboveThreshold
from dpselect.noise.quantiles import LAPLACE, Law
from dpselect.privacy.classical_threshold import TranscriptBound, laplace_bound


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
