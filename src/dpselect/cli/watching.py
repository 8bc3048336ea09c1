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
    from dpselect.privacy.family import QueryFamily

#: Without other word one question in so many is expected above.
ONE_ABOVE_IN = 10
_TRIALS, _LONGEST_TRIAL, _SEED = 20, 2000, 2024


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


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a watch does on simulated series that are above the threshold one time in ten."""

    f1: float
    answered: float
    spent: float


def simulate(watching: Watching) -> Trial:
    """Runs the real thing on a stand-in: mean F1 against the noiseless answer, share answered and ε spent."""
    import numpy as np

    from dpselect.demo.standin import stand_in
    from dpselect.noise.entropy import SeededEntropy

    length = min(watching.questions, _LONGEST_TRIAL)
    values = stand_in(watching.family, length=length)
    # Moved so that the threshold is crossed as often as expected, whatever the threshold.
    share = min(0.5, watching.expected_above / watching.questions)
    values = values - np.quantile(values, 1 - share) + watching.threshold
    values = np.clip(values, watching.family.lower, watching.family.upper)
    truth = values >= watching.threshold
    scores, answered, spent = [], [], []
    for trial in range(_TRIALS):
        vector = watching.build(SeededEntropy(_SEED + trial))
        verdicts = np.zeros(length, dtype=np.bool_)
        # A budget too small for a first question answers nothing.
        given = vector.ask_many(values) if vector.fits else verdicts[:0]
        verdicts[: len(given)] = given
        both = int((verdicts & truth).sum())
        scores.append(2.0 * both / max(1, int(verdicts.sum()) + int(truth.sum())))
        answered.append(len(given) / length)
        spent.append(vector.spent)
    return Trial(f1=float(np.mean(scores)), answered=float(np.mean(answered)), spent=float(np.mean(spent)))
