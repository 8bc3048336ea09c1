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
from dpselect.composition.loss_table import Reach, loss_table
from dpselect.composition.transcript import RunRecord
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.noise.entropy import Entropy
from dpselect.noise.scan import NoisyThreshold

#: From so many questions on, answering all of them at once beats stopping at each ⊤.
_WORTH_ALL = 64


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
        self.below = 0
        self.above = 0
        self._plan = plan
        self._filter = filter
        self._table = loss_table(plan.watcher)
        self._held = HeldRun(filter)
        self._reach = Reach(below=-1, above=-1, final=True)
        self._line: NoisyThreshold | None = None
        #: How many questions are being answered; above 0 between questions only after an interruption.
        self._unanswered = 0
        self._retired = False
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
        loss = self._table.loss
        unanswered = self._unanswered
        # Losses grow with every answer, so this corner is above all that the questions could have brought.
        tops = min(unanswered, 1) if self._plan.resample else unanswered
        worst = loss(self.below + unanswered, self.above + tops)
        # Every answer was let through because a larger loss still fitted, so the limit is a bound as well.
        return min(worst, self._held.allowed)

    @property
    def over(self) -> bool:
        """Whether the run answers no more: a ⊤ where the threshold is not kept, the horizon, or an interruption."""
        return (
            (self._plan.resample and self.above > 0)
            or self.below + self.above == self._plan.horizon
            or self._retired
            or self._unanswered > 0
            or self._line is None
            or not self._held.open
        )

    def make_room(self) -> None:
        """Make sure that the next question fits; raises ``BudgetExhausted`` and changes nothing where it does not."""
        if self.below <= self._reach.below and self.above <= self._reach.above:
            return
        if not self._reach.final:
            self._reach = _reach(self._plan, self.below, self.above, self._held.allowed)
            if self.below <= self._reach.below and self.above <= self._reach.above:
                return
        raise _exhausted(self._plan, self.below, self.above, self.loss, self._filter)

    def ask(self, value: float | Fraction) -> bool:
        """One answer; :meth:`make_room` comes first."""
        line = self._in_service(1)
        above = line.ask(value)
        if above:
            self.above += 1
        else:
            self.below += 1
        self._unanswered = 0
        return above

    def ask_stretch(self, values: FloatArray | Sequence[Fraction]) -> NDArray[np.bool_]:
        """Answers to the first of these values, as many as surely fit; :meth:`make_room` comes first."""
        fitting = self._reach.below - self.below + 1
        if self._plan.horizon is not None:
            fitting = min(fitting, self._plan.horizon - self.below - self.above)
        whatever = min(fitting, self._reach.above - self.above + 1)
        if not self._plan.resample and (whatever >= _WORTH_ALL or whatever >= len(values)):
            asked = values[:whatever]
            answers = self._in_service(len(asked)).ask_many(asked, until="all")
        else:
            asked = values[:fitting]
            answers = self._in_service(len(asked)).ask_many(asked, until="first")
        above = int(np.count_nonzero(answers))
        self.above += above
        self.below += len(answers) - above
        self._unanswered = 0
        return answers

    def _in_service(self, questions: int) -> NoisyThreshold:
        """The noisy threshold, with so many questions counted at their worst from now on."""
        line = self._line
        if line is None or self.over:
            raise StateRefused("this run has ended and answers no more")
        self._unanswered = questions
        return line

    def settle(self) -> RunRecord:
        """Take the run out of service, then tell the filter what it cost; again, after an interruption, is safe."""
        self._retired = True
        if self._record is None:
            self._record = RunRecord(self.below, self.above, self.loss)
        self._held.settle(self._record.epsilon)
        return self._record


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
