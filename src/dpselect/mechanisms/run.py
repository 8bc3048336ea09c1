"""One open run of above threshold: a noisy threshold, its questions, and what they cost so far."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import StateRefused
from dpselect.mechanisms.outcomes import Noise, Verdict
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit, admit_one
from dpselect.noise.entropy import process
from dpselect.noise.rows import VerdictRows
from dpselect.noise.scan import NoisyThreshold, Until
from dpselect.privacy.classical import upward
from dpselect.privacy.loss import RealisedLoss

if TYPE_CHECKING:
    from dpselect.mechanisms.above_threshold import AboveThreshold


class Run:
    """Questions against one noisy threshold, and an odometer.

    With ``until="first"`` the run ends at its first ⊤. With ``until="all"`` it goes on under the same noisy
    threshold, which the loss accounts for. :attr:`loss` is a function of the answers, so it may be published.

    A run holds secret noise: it cannot be copied or pickled, and a forked child cannot use its parent's.

    Examples
    --------
    >>> from dpselect import LaplaceAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> watcher = LaplaceAboveThreshold(family, threshold=50, scale_threshold=1.0, scale_query=2.0)
    >>> run = watcher.start()
    >>> run.ask(3), run.loss
    (<Verdict.BELOW: 'below'>, RealisedLoss(epsilon=0.5, delta=0.0))
    >>> run.ask_many([5, 1, 99, 2]).tolist(), run.open
    ([False, False, True], False)
    >>> run.below, run.above, run.loss
    (3, 1, RealisedLoss(epsilon=2.0, delta=0.0))
    """

    def __init__(
        self,
        mechanism: AboveThreshold,
        *,
        line: NoisyThreshold,
        until: Until,
        outside: OutsidePolicy,
        noise: Noise,
    ) -> None:
        self._mechanism = mechanism
        self._line = line
        self._until = until
        self._outside: OutsidePolicy = outside
        self._below = 0
        self._above = 0
        self._open = True
        # Two threads must not lose a count between them; a forked child must not wait for a lock it copied.
        self._lock = threading.Lock()
        self._process = process()
        #: Whether the noise can be repeated by someone who knows the seed.
        self.noise: Noise = noise

    def __repr__(self) -> str:
        return f"<Run of {self._below} below and {self._above} above, {'open' if self._open else 'ended'}>"

    def __reduce__(self) -> str:
        raise StateRefused("a run holds secret noise and is not copied or pickled; start a new run")

    @property
    def below(self) -> int:
        """How many ⊥ were answered."""
        return self._below

    @property
    def above(self) -> int:
        """How many ⊤ were answered."""
        return self._above

    @property
    def open(self) -> bool:
        """Whether the run takes more questions."""
        return self._open

    @property
    def loss(self) -> RealisedLoss:
        """What the answers so far cost; more for every further answer, nothing before the first."""
        return RealisedLoss(epsilon=float(self._mechanism.loss(below=self._below, above=self._above)))

    def ask(self, value: PrivateValues) -> Verdict:
        """⊥ or ⊤ for one value."""
        number = admit_one(value, family=self._mechanism.family, outside=self._outside)
        self._check_process()
        with self._lock:
            self._check_open()
            if self._line.ask(number):
                self._above += 1
                self._open = self._until == "all"
                return Verdict.ABOVE
            self._below += 1
            return Verdict.BELOW

    def ask_many(self, values: PrivateValues) -> NDArray[np.bool_]:
        """Verdicts in order, ⊤ as ``True``; the array ends with the first ⊤ where the run does."""
        numbers = admit(values, family=self._mechanism.family, outside=self._outside)
        self._check_process()
        with self._lock:
            self._check_open()
            verdicts = self._line.ask_many(numbers, until=self._until)
            above = int(np.count_nonzero(verdicts))
            self._above += above
            self._below += len(verdicts) - above
            self._open = self._until == "all" or above == 0
        return verdicts

    def close(self) -> None:
        """End the run; what was answered stays paid for, and nothing more can be asked."""
        self._open = False

    def _check_process(self) -> None:
        if self._process != process():
            raise StateRefused("this run belongs to the process that started it; a forked child must start its own")

    def _check_open(self) -> None:
        if not self._open:
            raise StateRefused("this run has ended; start a new one, with a new noisy threshold")


@dataclass(frozen=True, eq=False)
class Runs:
    """Many independent runs over the same values (1 ⊤, 0 ⊥, −1 not asked) and what showing all would cost."""

    verdicts: VerdictRows
    loss: RealisedLoss
    noise: Noise = "private"

    @classmethod
    def priced(cls, mechanism: AboveThreshold, verdicts: VerdictRows, *, noise: Noise) -> Runs:
        """With the ex-post losses of all runs, added; runs with the same counts are priced once."""
        answers = np.stack([(verdicts == 0).sum(axis=1), (verdicts == 1).sum(axis=1)], axis=1)
        kinds, repeats = np.unique(answers, axis=0, return_counts=True)
        spent = Fraction(0)
        for (below, above), repeated in zip(kinds.tolist(), repeats.tolist(), strict=True):
            spent += int(repeated) * Fraction(float(mechanism.loss(below=below, above=above)))
        return cls(verdicts=verdicts, loss=RealisedLoss(epsilon=upward(spent)), noise=noise)
