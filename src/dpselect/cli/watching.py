"""The mechanism ``watch`` uses: given, or with the least noise for a plain expectation, and how it does on trial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpselect.errors import InvalidParameter

if TYPE_CHECKING:
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
    threshold, budget : float
        ρ and ε.
    clip : (float, float), optional
        How far below and above the threshold questions are cut.
    questions : int
        How many are expected.
    expected_above : int
        How many of them ⊤.
    resample : bool
        Whether each ⊤ is followed by a new noisy threshold.
    """

    family: QueryFamily
    threshold: float
    budget: float
    clip: tuple[float, float] | None
    questions: int
    expected_above: int
    resample: bool

    @property
    def asked_family(self) -> QueryFamily:
        """The family after clipping."""
        if self.clip is None:
            return self.family
        return self.family.near(self.threshold, below=self.clip[0], above=self.clip[1])

    @property
    def ratio(self) -> float:
        """σ_Z/σ_X without other word: 1 where monotone accounting makes ⊤ and ⊥ cost alike, else the usual √3."""
        return 1.0 if self.family.monotone else math.sqrt(3.0)

    def watcher(self, *, sigma_threshold: float | None, sigma_query: float | None) -> GaussianAboveThreshold:
        """The mechanism with the noise given, or the least noise with which the expectation fits the budget.

        With new thresholds, ``expected_above`` ⊤ evenly spread make as many runs and a last one without ⊤; each may
        cost an equal part of the budget. With one threshold kept, the whole transcript may cost the budget.
        """
        from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

        if sigma_threshold is not None:
            return GaussianAboveThreshold(
                self.family,
                threshold=self.threshold,
                sigma_threshold=sigma_threshold,
                sigma_query=self.ratio * sigma_threshold if sigma_query is None else sigma_query,
            )
        if sigma_query is not None:
            raise InvalidParameter("--sigma-query needs --sigma-threshold beside it; give both or neither")
        above = self.expected_above
        if self.resample:
            below, above, epsilon = math.ceil(self.questions / above), 1, self.budget / (above + 1)
        else:
            below, epsilon = max(self.questions - above, 0), self.budget
        found = GaussianAboveThreshold.calibrated(
            self.asked_family,
            threshold=self.threshold,
            below=below,
            above=above,
            epsilon=epsilon,
            ratio=self.ratio,
        )
        return GaussianAboveThreshold(
            self.family,
            threshold=self.threshold,
            sigma_threshold=found.sigma_threshold,
            sigma_query=found.sigma_query,
        )

    def sparse_vector(self, watcher: GaussianAboveThreshold, *, entropy: Entropy) -> SparseVector:
        """The stream of questions under the budget. Values outside the range are cut to it: refusing them would
        say something about the data.
        """
        from dpselect.composition.sparse_vector import SparseVector

        return SparseVector(
            watcher, budget=self.budget, resample=self.resample, clip=self.clip, outside="clip", entropy=entropy
        )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a watch does on simulated series that are above the threshold one time in ten."""

    f1: float
    answered: float
    spent: float


def simulate(watching: Watching, watcher: GaussianAboveThreshold) -> Trial:
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
        vector = watching.sparse_vector(watcher, entropy=SeededEntropy(_SEED + trial))
        verdicts = np.zeros(length, dtype=np.bool_)
        # A budget too small for a first question answers nothing.
        given = vector.ask_many(values) if vector.fits else verdicts[:0]
        verdicts[: len(given)] = given
        both = int((verdicts & truth).sum())
        scores.append(2.0 * both / max(1, int(verdicts.sum()) + int(truth.sum())))
        answered.append(len(given) / length)
        spent.append(vector.spent)
    return Trial(f1=float(np.mean(scores)), answered=float(np.mean(answered)), spent=float(np.mean(spent)))
