"""What a sparse vector answered: counts, the places of its ⊤, and the exact sum of what its runs cost."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.composition.exact_sum import in_units


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
    >>> transcript.answer_many(np.array([False, True]), tops=1)
    >>> transcript.end_run(RunRecord(below=2, above=1, epsilon=0.25))
    >>> transcript.questions, transcript.tops.tolist(), transcript.ended == in_units(0.25)
    (3, [2], True)
    """

    def __init__(self, *, questions: int = 0, ended: int = 0) -> None:
        self.questions = questions
        self._tops = array("q")
        #: Three doubles per run (counts stay below 2^53), written in one step.
        self._records = array("d")
        #: How many runs ended. Read and compared by others in one step, so an attribute and no property.
        self.ended_runs = 0
        #: How many of the records are in the sum, and the sum: replaced together.
        self._summed = 0, ended

    @property
    def tops(self) -> NDArray[np.int64]:
        """Which questions were answered ⊤, counted from 0."""
        return np.array(self._tops, dtype=np.int64)

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs that ended, in order."""
        records = iter(self._records[: 3 * self.ended_runs])
        return tuple(
            RunRecord(int(below), int(above), epsilon)
            for below, above, epsilon in zip(records, records, records, strict=True)
        )

    @property
    def ended(self) -> int:
        """What the runs that ended cost, in multiples of 2^-1074."""
        count, total = self._summed
        now = self.ended_runs
        if count < now:
            total += sum(map(in_units, self._records[3 * count + 2 : 3 * now : 3]))
            self._summed = now, total
        return total

    def answer(self, above: bool) -> None:
        """Write down one answer."""
        place = self.questions
        self.questions = place + 1
        if above:
            self._tops.append(place)

    def answer_many(self, above: NDArray[np.bool_], *, tops: int) -> None:
        """Write down answers in order, ``tops`` of them ⊤."""
        place = self.questions
        self.questions = place + len(above)
        if tops == 0:
            return
        if tops == 1 and above[-1]:  # the usual end of a run, without a search
            self._tops.append(place + len(above) - 1)
            return
        self._tops.frombytes((np.flatnonzero(above) + place).astype(np.int64).tobytes())

    def end_run(self, run: RunRecord, *, place: int | None = None) -> None:
        """Write down a run that ended; with its ``place``, twice is as good as once."""
        at = self.ended_runs if place is None else place
        self._records[3 * at : 3 * at + 3] = array("d", run)
        # In one step: whoever came in between has written this very run down, and perhaps others after it.
        if self.ended_runs == at: self.ended_runs = at + 1  # noqa: E701 # fmt: skip
