"""What a sparse vector answered: counts, the places of its ⊤, and the exact sum of what its runs cost."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.composition.exact_sum import ExactSum


class RunRecord(NamedTuple):
    """What one run answered and cost: public, like the answers."""

    below: int
    above: int
    epsilon: float


class Transcript:
    """The public side of an interaction: a few numbers per run and one per ⊤, whatever the number of questions.

    Examples
    --------
    >>> transcript = Transcript()
    >>> transcript.answer(False)
    >>> transcript.answer_many(np.array([False, True]))
    >>> transcript.end_run(RunRecord(below=2, above=1, epsilon=0.25))
    >>> transcript.questions, transcript.tops.tolist(), transcript.ended.upward()
    (3, [2], 0.25)
    """

    def __init__(self, *, questions: int = 0, ended: ExactSum | None = None) -> None:
        self.questions = questions
        self.ended = ExactSum() if ended is None else ended
        self._tops = array("q")
        self._below, self._above, self._epsilon = array("q"), array("q"), array("d")

    @property
    def tops(self) -> NDArray[np.int64]:
        """Which questions were answered ⊤, counted from 0."""
        return np.array(self._tops, dtype=np.int64)

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs that ended, in order."""
        return tuple(RunRecord(*record) for record in zip(self._below, self._above, self._epsilon, strict=True))

    def answer(self, above: bool) -> None:
        """Write down one answer."""
        if above:
            self._tops.append(self.questions)
        self.questions += 1

    def answer_many(self, above: NDArray[np.bool_]) -> None:
        """Write down answers in order."""
        self._tops.extend((np.flatnonzero(above) + self.questions).tolist())
        self.questions += len(above)

    def end_run(self, run: RunRecord) -> None:
        """Write down a run that ended."""
        self.ended.add(run.epsilon)
        self._below.append(run.below)
        self._above.append(run.above)
        self._epsilon.append(run.epsilon)
