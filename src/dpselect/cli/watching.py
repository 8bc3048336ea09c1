"""The mechanism ``watch`` uses: given, or with the least noise for a plain expectation, and how it does on trial."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpselect.composition.filter import Watcher
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.noise.entropy import Entropy
    from dpselect.planning.trial import ExpectedWatch
    from dpselect.privacy.family import QueryFamily

#: Without other word one question in so many is expected above.
ONE_ABOVE_IN = 10


@dataclass(frozen=True, kw_only=True)
class Watching:
    """Everything public about a watch, in the queries' own unit.

    Attributes
    ----------
    family : QueryFamily
        Before clipping.
    threshold : float
        ρ.
    budget, delta : float
        What the whole watch promises; δ is 0 but for some plans.
    clip : (float, float), optional
        How far below and above the threshold questions are cut.
    questions, expected_above : int
        How many are expected, and how many of them ⊤.
    resample : bool
        Whether each ⊤ is followed by a new noisy threshold.
    build : callable
        Makes the sparse vector with the given noise source.
    """

    family: QueryFamily
    threshold: float
    budget: float
    delta: float = 0.0
    clip: tuple[float, float] | None
    questions: int
    expected_above: int
    resample: bool
    build: Callable[[Entropy], SparseVector]

    @cached_property
    def watcher(self) -> Watcher:
        """The mechanism in use, its range clipped."""
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        return self.build(SYSTEM_ENTROPY).watcher

    @property
    def noise(self) -> tuple[str, float, float]:
        """The law, and the scales of the noise of the threshold and of a question."""
        from dpselect.mechanisms.catalogue import entry_of

        return entry_of(self.watcher).noise, *self.watcher.scales


def usual_ratio(family: QueryFamily) -> float:
    """σ_Z/σ_X without other word: 1 where monotone accounting makes ⊤ and ⊥ cost alike, else the usual √3."""
    return 1.0 if family.monotone else math.sqrt(3.0)


def usual_noise(
    family: QueryFamily, *, threshold: float, budget: float, questions: int, above: int, resample: bool
) -> GaussianAboveThreshold:
    """The least noise with which the expectation fits the budget; ``family`` as it is after clipping.

    With new thresholds, ``above`` ⊤ evenly spread make as many runs and a last one without ⊤; each may cost an
    equal part of the budget. With one threshold kept, the whole transcript may cost the budget.

    >>> from dpselect.privacy.family import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    >>> watcher = usual_noise(family, threshold=0.5, budget=1.0, questions=365, above=36, resample=True)
    >>> watcher.loss(below=11, above=1) <= 1 / 37, watcher.sigma_query == watcher.sigma_threshold
    (True, True)
    """
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

    ratio = usual_ratio(family)
    if resample:
        return GaussianAboveThreshold.calibrated(
            family,
            threshold=threshold,
            below=math.ceil(questions / above),
            above=1,
            epsilon=budget / (above + 1),
            ratio=ratio,
        )
    return GaussianAboveThreshold.calibrated(
        family, threshold=threshold, below=max(questions - above, 0), above=above, epsilon=budget, ratio=ratio
    )


def simulate(watching: Watching) -> ExpectedWatch:
    """Runs the real thing on a simulated stream that reaches the threshold as often as expected."""
    from dpselect.planning.trial import expected_watch

    return expected_watch(
        watching.build,
        family=watching.family,
        threshold=watching.threshold,
        questions=watching.questions,
        share=min(0.5, watching.expected_above / watching.questions),
    )
