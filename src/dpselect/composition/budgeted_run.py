"""A run under a budget: it holds the filter while it is open, and each question is put only if every answer fits.

What runs answered and cost goes into a transcript.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.composition.filter import Filter, HeldRun, Watcher
from dpselect.composition.loss_table import LossTable
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.run import Reach, Run, worst_loss
from dpselect.mechanisms.values import Clipper
from dpselect.noise.entropy import Entropy
from dpselect.rounding import in_units

if TYPE_CHECKING:
    from dpselect.composition.ration import Ration

#: Of two losses of one mechanism the one that is larger by theorem comes out larger, to within this factor.
ROUNDING = 1.0 + 1e-9
_NO_REACH = Reach(below=-1, above=-1, final=True)


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


class RunPlan(NamedTuple):
    """The public side of the runs to come."""

    #: The mechanism, the cut around its threshold, and what happens to values outside.
    door: Clipper
    resample: bool
    horizon: int | None
    #: What runs of this mechanism cost.
    table: LossTable
    #: How the budget is rationed among the ⊤ of a run, where it is.
    ration: Ration | None = None

    @property
    def watcher(self) -> Watcher:
        """The mechanism, with its range clipped."""
        return self.door.clipped

    def reach(self, below: int, above: int, allowed: float) -> Reach:
        """How far a run that holds so many answers can go."""
        if math.isinf(allowed):
            return Reach(below=2**53, above=2**53, final=False)
        if self.resample:
            return self.table.reach(below, budget=allowed)
        return self.table.reach_kept(below, above, allowed)

    def first_reach(self, allowed: float, filter: Filter) -> Reach:
        """How far a new run can go; raises ``BudgetExhausted`` where not even one question fits."""
        reach = self.reach(0, 0, allowed)
        if reach.below < 0 or reach.above < 0:
            raise self.exhausted(0, 0, 0.0, filter)
        return reach

    def check_fits(self, filter: Filter) -> None:
        """Raise ``BudgetExhausted`` where not even one question of a new run fits. Counts nothing."""
        self.first_reach(filter.check_run(self.watcher, horizon=self.horizon).allowed, filter)

    def exhausted(self, below: int, above: int, loss: float, filter: Filter) -> BudgetExhausted:
        """What is raised where the next question of a run with these answers, which cost ``loss``, does not fit."""
        step = math.nextafter(worst_loss(self.table.loss, below, above, 1, 1) - loss, math.inf)
        spent = min(filter.limit, math.nextafter(filter.spent + loss, math.inf) if loss else filter.spent)
        return BudgetExhausted(
            f"the next question could cost {step!r} and does not fit: {spent!r} of {filter.limit!r} is spent; "
            "nothing was spent on it",
            spent=spent,
            budget=filter.limit,
            next_cost=step,
        )


class BudgetedRun(Run):
    """A :class:`~dpselect.mechanisms.run.Run` that a filter pays for (THEORY §4).

    The rule is looked up ahead of the questions, in :class:`~dpselect.composition.loss_table.LossTable`; while the
    run is within its reach a question costs two comparisons of whole numbers. Settling twice settles once.

    Parameters
    ----------
    plan : RunPlan
        Mechanism and rules.
    filter : Filter
        What the run is charged to; nothing happens to it before :meth:`begin`.
    """

    def __init__(self, plan: RunPlan, *, filter: Filter) -> None:
        super().__init__(plan.watcher, resample=plan.resample, horizon=plan.horizon, reach=_NO_REACH)
        self.plan = plan
        #: How many runs ended before this one: the place of its record, given when a sparse vector takes it in.
        self.place = -1
        self._filter = filter
        self.held = HeldRun(filter)
        self._record: RunRecord | None = None

    def begin(self, *, entropy: Entropy) -> None:
        """Take hold of the filter's budget, then draw the noise."""
        self._filter._let_in(self.held, self.plan.watcher, self.plan.horizon)
        self._reach = self.plan.first_reach(self.held.allowed, self._filter)
        self.draw(entropy=entropy)

    def _price(self, below: int, above: int) -> float:
        return self.plan.table.loss(below, above)

    @property
    def spent(self) -> float:
        """ε of what was answered so far; questions that an interruption left without an answer count at their worst."""
        found = worst_loss(self._price, *self._counts)
        # Never cut to what was allowed, which would hide a question put without room; but the losses of two points are
        # rounded up apart, and one may come out above the larger one that was found to fit by that rounding.
        allowed = self.held.allowed
        return allowed if allowed < found <= allowed * ROUNDING else found

    @property
    def open(self) -> bool:
        """Whether the run takes more questions: not after the end of a run, an interruption, or without the filter."""
        return super().open and self._filter._held is self.held

    def ready(self) -> bool:
        """Whether the next question fits, by the last look; :meth:`make_room` looks again."""
        below, above, due, _ = self._counts
        reach = self._reach
        return (
            below <= reach.below
            and above <= reach.above
            and not due
            and not self.done
            and self._filter._held is self.held
        )

    def make_room(self) -> None:
        """Make sure that the next question fits; raises ``BudgetExhausted`` and changes nothing where it does not."""
        below, above, _, _ = self._counts
        reach = self._reach
        if below <= reach.below and above <= reach.above:
            return
        plan = self.plan
        if not reach.final:
            self._reach = reach = plan.reach(below, above, self.held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        if self.held.reach_for(worst_loss(self._price, below, above, 1, 1)):
            self._reach = reach = plan.reach(below, above, self.held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        raise plan.exhausted(below, above, self.spent, self._filter)

    def record(self) -> RunRecord:
        """What was answered so far, and its loss."""
        return RunRecord(self.below, self.above, self.spent)

    def settle(self) -> RunRecord:
        """Take the run out of service, then tell the filter what it cost; again, after an interruption, is safe."""
        self.done = True
        if self._record is None:
            self._record = self.record()
        self.held.settle(self._record.epsilon)
        return self._record
