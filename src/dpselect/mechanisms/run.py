"""One run of above threshold: a noisy threshold, its questions, and what they cost so far."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.errors import StateRefused
from dpselect.mechanisms.mechanism import Noise
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit_one, admit_scores
from dpselect.noise.entropy import Entropy
from dpselect.noise.inputs import FloatScores
from dpselect.noise.rows import VerdictRows
from dpselect.noise.scan import NoisyThreshold
from dpselect.ownership import process
from dpselect.privacy.loss import RealisedLoss
from dpselect.rounding import added

if TYPE_CHECKING:
    from dpselect.mechanisms.above_threshold import AboveThreshold

#: From so many questions on, answering all of them at once beats stopping at each ⊤.
_WORTH_ALL = 64


class Verdict(enum.Enum):
    """The answer to one question of above threshold: ⊥ (``BELOW``) or ⊤ (``ABOVE``)."""

    BELOW = "below"
    ABOVE = "above"


class Reach(NamedTuple):
    """Questions fit while the run holds at most ``below`` ⊥ and ``above`` ⊤ before them.

    ``final`` says that nothing beyond fits; otherwise further questions may, and are looked at when they come.
    """

    below: int
    above: int
    final: bool


#: The reach of a run that no budget limits.
UNLIMITED = Reach(below=2**53, above=2**53, final=True)


class Run:
    """Questions against one noisy threshold, and an odometer.

    With ``resample`` the run ends at its first ⊤, and the next run draws a new threshold. Without it the run goes on
    under the same noisy threshold, which the loss accounts for. :attr:`loss` is a function of the answers, so it may be
    published.

    A run can be interrupted at any line and stays safe: questions count at their worst from before the noise is
    looked at until their answers are counted, and a run left in between answers no more.

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
        resample: bool = True,
        horizon: int | None = None,
        outside: OutsidePolicy = "refuse",
        noise: Noise = "private",
        reach: Reach = UNLIMITED,
    ) -> None:
        self._mechanism = mechanism
        self._resample = resample
        self._horizon = horizon
        self._outside: OutsidePolicy = outside
        #: Whether the noise can be repeated by someone who knows the seed.
        self.noise: Noise = noise
        #: ⊥ and ⊤ answered; questions being answered, and how many of those can be ⊤. Replaced together, so that an
        #: answer is either counted or still due at its worst.
        self._counts = 0, 0, 0, 0
        self._reach = reach
        self._line: NoisyThreshold | None = None
        #: A ⊤ that ends the run, the horizon, or the end that somebody put to it.
        self.done = False
        # Two threads must not lose a count between them; a signal handler must not wait for its own thread.
        self._lock = threading.RLock()
        self._process = process()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.below} below and {self.above} above, {'open' if self.open else 'ended'}>"
        )

    def __reduce__(self) -> str:
        raise StateRefused("a run holds secret noise and is not copied or pickled; start a new run")

    def draw(self, *, entropy: Entropy) -> None:
        """Draw the noise of the threshold; nothing is answered before."""
        self._line = self._mechanism.noisy_threshold(entropy=entropy)

    @property
    def below(self) -> int:
        """How many ⊥ were answered."""
        return self._counts[0]

    @property
    def above(self) -> int:
        """How many ⊤ were answered."""
        return self._counts[1]

    @property
    def open(self) -> bool:
        """Whether the run takes more questions."""
        return not self.done and self._counts[2] == 0 and self._line is not None

    @property
    def spent(self) -> float:
        """ε of the answers so far: more for every further answer, nothing before the first.

        Questions that an interruption left without an answer count at their worst.
        """
        return worst_loss(self._price, *self._counts)

    @property
    def loss(self) -> RealisedLoss:
        """:attr:`spent` as a loss, for an odometer."""
        return RealisedLoss(epsilon=self.spent)

    def _price(self, below: int, above: int) -> float:
        return float(self._mechanism.loss(below=below, above=above))

    def ask(self, value: PrivateValues) -> Verdict:
        """⊥ or ⊤ for one value."""
        number = admit_one(value, family=self._mechanism.family, outside=self._outside)
        self._check_process()
        with self._lock:
            return Verdict.ABOVE if self.put(number) else Verdict.BELOW

    def ask_many(self, values: PrivateValues) -> NDArray[np.bool_]:
        """Verdicts in order, ⊤ as ``True``; the array ends with the first ⊤ where the run does."""
        numbers = admit_scores(values, family=self._mechanism.family, outside=self._outside)
        self._check_process()
        with self._lock:
            return self.put_many(numbers)[0]

    def close(self) -> None:
        """End the run; what was answered stays paid for, and nothing more can be asked."""
        self.done = True

    def put(self, number: float | Fraction) -> bool:
        """One answer, for a number that was admitted; who shares the run between threads holds a lock."""
        counts = self._counts
        below, above, _, _ = counts
        if self._in_service(counts, 1, 1).ask(number):
            self._answered(below, above + 1)
            return True
        self._answered(below + 1, above)
        return False

    def put_many(self, numbers: FloatArray | FloatScores | Sequence[Fraction]) -> tuple[NDArray[np.bool_], int]:
        """Answers to the first of these numbers, as many as surely fit, and how many of them are ⊤."""
        counts = self._counts
        below, above, _, _ = counts
        reach = self._reach
        fitting = reach.below - below + 1
        if self._horizon is not None:
            fitting = min(fitting, self._horizon - below - above)
        whatever = min(fitting, reach.above - above + 1)
        if not self._resample and (whatever >= _WORTH_ALL or whatever >= len(numbers)):
            asked = numbers[: max(1, whatever)]
            answers = self._in_service(counts, len(asked), len(asked)).ask_many(asked, until="all")
            tops = int(np.count_nonzero(answers))
        else:
            asked = numbers[: max(1, fitting)]
            answers = self._in_service(counts, len(asked), 1).ask_many(asked, until="first")
            tops = int(answers[-1])
        self._answered(below + len(answers) - tops, above + tops)
        return answers, tops

    def _in_service(self, counts: tuple[int, int, int, int], questions: int, tops: int) -> NoisyThreshold:
        """The noisy threshold, with so many questions counted at their worst from now on.

        First they are counted, then there is a last look at the room: whatever runs in between (a signal handler, a
        finaliser) and asks itself finds a run that is over and charged for them.
        """
        line = self._line
        below, above, due, _ = counts
        if self.done or due or line is None:
            raise StateRefused("this run has ended and answers no more; start a new one, with a new noisy threshold")
        asked = below, above, questions, tops
        # In one step: what came in since the counts were read has changed them, or has ended the run and charged it.
        if self._counts is counts and not self.done: self._counts = asked  # noqa: E701 # fmt: skip
        if self._counts is not asked:
            raise StateRefused("another question came in before this one was put; ask it again")
        reach = self._reach
        if below + questions - 1 > reach.below or above + tops - 1 > reach.above:
            self._counts = counts
            raise StateRefused("no room was made for this question; it was not asked")
        return line

    def _answered(self, below: int, above: int) -> None:
        if (self._resample and above) or below + above == self._horizon:
            self.done = True
        self._counts = below, above, 0, 0

    def _check_process(self) -> None:
        if self._process != process():
            raise StateRefused("this run belongs to the process that started it; a forked child must start its own")


def worst_loss(loss: Callable[[int, int], float], below: int, above: int, due: int, tops: int) -> float:
    """The most that so many answers can have cost, with ``due`` more of which up to ``tops`` are ⊤."""
    if due == 0:
        return loss(below, above)
    if tops == 1:
        return max(loss(below + due, above), loss(below + due - 1, above + 1))
    # Losses grow with every answer, so this corner is above all that the questions can have brought.
    return loss(below + due, above + tops)


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
        losses = [float(mechanism.loss(below=below, above=above)) for below, above in kinds.tolist()]
        spent = added(zip(repeats.tolist(), losses, strict=True))
        return cls(verdicts=verdicts, loss=RealisedLoss(epsilon=spent), noise=noise)
