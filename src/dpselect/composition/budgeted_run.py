"""One run of a sparse vector: a noisy threshold, what was answered, and how much further it may go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.filter import Filter, HeldRun, Watcher
from dpselect.composition.loss_table import LossTable, Reach, loss_table
from dpselect.composition.transcript import RunRecord
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.noise.entropy import Entropy
from dpselect.noise.scan import NoisyThreshold

#: From so many questions on, answering all of them at once beats stopping at each ⊤.
_WORTH_ALL = 64
#: Two losses of one mechanism, one of which is the larger by theorem, are computed in the right order but for this.
_ROUNDING = 1.0 + 1e-9


class RunPlan(NamedTuple):
    """The public side of the runs to come."""

    watcher: Watcher
    resample: bool
    horizon: int | None


class BudgetedRun:
    """Questions against one noisy threshold, each only if every answer to it fits (THEORY §4).

    The rule is looked up ahead of the questions, in :class:`~dpselect.composition.loss_table.LossTable`; while the
    run is within its reach a question costs two comparisons of whole numbers.

    A run can be interrupted at any line and stays safe: questions count at their worst from before the noise is
    looked at until their answers are counted, a run left in between answers no more, and settling twice settles once.

    Parameters
    ----------
    plan : RunPlan
        Mechanism and rules.
    filter : Filter
        What the run is charged to; nothing happens to it before :meth:`open`.
    place : int
        How many runs ended before this one: the place of its record.
    """

    def __init__(self, plan: RunPlan, *, filter: Filter, place: int) -> None:
        self.place = place
        #: ⊥ and ⊤ answered; questions being answered, and how many of those can be ⊤. Replaced together, so that an
        #: answer is either counted or still due at its worst.
        self._counts = 0, 0, 0, 0
        self._plan = plan
        self._filter = filter
        self._table = loss_table(plan.watcher)
        self._held = HeldRun(filter)
        self._reach = Reach(below=-1, above=-1, final=True)
        self._line: NoisyThreshold | None = None
        self._done = False
        self._record: RunRecord | None = None

    def __reduce__(self) -> str:
        raise StateRefused("a run holds secret noise and is not copied or pickled; start a new run")

    def open(self, *, entropy: Entropy) -> None:
        """Take hold of the filter's budget, then draw the noise."""
        self._filter._let_in(self._held, self._plan.watcher, self._plan.horizon)
        self._reach = _first_reach(self._plan, self._held.allowed, self._filter)
        self._line = self._plan.watcher.noisy_threshold(entropy=entropy)

    @property
    def loss(self) -> float:
        """ε of what was answered so far; questions that an interruption left without an answer count at their worst."""
        below, above, due, tops = self._counts
        found = _worst_loss(self._table, below, above, due, tops)
        # Never cut to what was allowed, which would hide a question put without room; but the losses of two points are
        # rounded up apart, and one may come out above the larger one that was found to fit by that rounding.
        allowed = self._held.allowed
        return allowed if allowed < found <= allowed * _ROUNDING else found

    @property
    def held(self) -> HeldRun:
        """The run's hold on the filter."""
        return self._held

    @property
    def below(self) -> int:
        """How many ⊥ were answered."""
        return self._counts[0]

    @property
    def above(self) -> int:
        """How many ⊤ were answered."""
        return self._counts[1]

    @property
    def over(self) -> bool:
        """Whether the run answers no more: a ⊤ where the threshold is not kept, the horizon, or an interruption."""
        return self._done or self._counts[2] > 0 or self._line is None or self._filter._held is not self._held

    def make_room(self) -> None:
        """Make sure that the next question fits; raises ``BudgetExhausted`` and changes nothing where it does not."""
        below, above, _, _ = self._counts
        reach = self._reach
        if below <= reach.below and above <= reach.above:
            return
        if not reach.final:
            self._reach = reach = _reach(self._plan, below, above, self._held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        if self._held.reach_for(_worst_loss(self._table, below, above, 1, 1)):
            self._reach = reach = _reach(self._plan, below, above, self._held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        raise _exhausted(self._plan, below, above, self.loss, self._filter)

    def ask(self, value: float | Fraction) -> bool:
        """One answer; :meth:`make_room` comes first."""
        counts = self._counts
        below, above, _, _ = counts
        line = self._in_service(counts, 1, 1)
        top = line.ask(value)
        self._answered(below, above + 1) if top else self._answered(below + 1, above)
        return top

    def ask_stretch(self, values: FloatArray | Sequence[Fraction]) -> NDArray[np.bool_]:
        """Answers to the first of these values, as many as surely fit; :meth:`make_room` comes first."""
        counts = self._counts
        below, above, _, _ = counts
        fitting = self._reach.below - below + 1
        if self._plan.horizon is not None:
            fitting = min(fitting, self._plan.horizon - below - above)
        whatever = min(fitting, self._reach.above - above + 1)
        if not self._plan.resample and (whatever >= _WORTH_ALL or whatever >= len(values)):
            asked = values[:whatever]
            answers = self._in_service(counts, len(asked), len(asked)).ask_many(asked, until="all")
        else:
            asked = values[:fitting]
            answers = self._in_service(counts, len(asked), 1).ask_many(asked, until="first")
        tops = int(np.count_nonzero(answers))
        self._answered(below + len(answers) - tops, above + tops)
        return answers

    def _in_service(self, counts: tuple[int, int, int, int], questions: int, tops: int) -> NoisyThreshold:
        """The noisy threshold, with so many questions counted at their worst from now on.

        First they are counted, then there is a last look at the room: whatever runs in between (a signal handler, a
        finaliser) and asks this sparse vector itself finds a run that is over and charged for them, and starts another.
        """
        line = self._line
        if line is None or self.over:
            raise StateRefused("this run has ended and answers no more")
        below, above, _, _ = counts
        due = below, above, questions, tops
        # In one step: what came in since the counts were read has changed them.
        if self._counts is counts: self._counts = due  # noqa: E701 # fmt: skip
        if self._counts is not due:
            raise StateRefused("another question came in before this one was put; ask it again")
        reach = self._reach
        if below + questions - 1 > reach.below or above + tops - 1 > reach.above:
            self._counts = below, above, 0, 0
            raise StateRefused("no room was made for this question; it was not asked")
        return line

    def _answered(self, below: int, above: int) -> None:
        if (self._plan.resample and above > 0) or below + above == self._plan.horizon:
            self._done = True
        self._counts = below, above, 0, 0

    def record(self) -> RunRecord:
        """What was answered so far, and its loss."""
        return RunRecord(self.below, self.above, self.loss)

    def settle(self) -> RunRecord:
        """Take the run out of service, then tell the filter what it cost; again, after an interruption, is safe."""
        self._done = True
        if self._record is None:
            self._record = self.record()
        self._held.settle(self._record.epsilon)
        return self._record


def _worst_loss(table: LossTable, below: int, above: int, due: int, tops: int) -> float:
    """The most that so many answers can have cost, with ``due`` more of which up to ``tops`` are ⊤."""
    if due == 0:
        return table.loss(below, above)
    if tops == 1:
        return max(table.loss(below + due, above), table.loss(below + due - 1, above + 1))
    # Losses grow with every answer, so this corner is above all that the questions can have brought.
    return table.loss(below + due, above + tops)


def check_fits(plan: RunPlan, filter: Filter) -> None:
    """Raise ``BudgetExhausted`` where not even one question of a new run fits. Counts nothing."""
    _first_reach(plan, filter.check_run(plan.watcher, horizon=plan.horizon).allowed, filter)


def _first_reach(plan: RunPlan, allowed: float, filter: Filter) -> Reach:
    reach = _reach(plan, 0, 0, allowed)
    if reach.below < 0 or reach.above < 0:
        raise _exhausted(plan, 0, 0, 0.0, filter)
    return reach


def _reach(plan: RunPlan, below: int, above: int, allowed: float) -> Reach:
    if math.isinf(allowed):
        return Reach(below=2**53, above=2**53, final=False)
    table = loss_table(plan.watcher)
    if plan.resample:
        return table.reach(below, budget=allowed)
    return table.reach_kept(below, above, allowed)


def _exhausted(plan: RunPlan, below: int, above: int, loss: float, filter: Filter) -> BudgetExhausted:
    table = loss_table(plan.watcher)
    worst = max(table.loss(below + 1, above), table.loss(below, above + 1))
    step = math.nextafter(worst - loss, math.inf)
    spent = min(filter.limit, math.nextafter(filter.spent + loss, math.inf) if loss else filter.spent)
    return BudgetExhausted(
        f"the next question could cost {step!r} and does not fit: {spent!r} of {filter.limit!r} is spent; "
        "nothing was spent on it",
        spent=spent,
        budget=filter.limit,
        next_cost=step,
    )
