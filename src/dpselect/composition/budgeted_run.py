"""A run under a budget: it holds the filter while it is open, and each question is put only if every answer fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.exact_sum import in_units, round_down, round_up
from dpselect.composition.filter import Filter, HeldRun, Watcher
from dpselect.composition.loss_table import LossTable
from dpselect.composition.ration import Ration
from dpselect.composition.transcript import RunRecord
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.run import Reach, Run, worst_loss
from dpselect.noise.entropy import Entropy
from dpselect.noise.inputs import FloatScores
from dpselect.noise.scan import NoisyThreshold
from dpselect.privacy.classical import upward
from dpselect.privacy.family import relative_shift

#: Of two losses of one mechanism the one that is larger by theorem comes out larger, to within this factor.
ROUNDING = 1.0 + 1e-9
_NO_REACH = Reach(below=-1, above=-1, final=True)


class RunPlan(NamedTuple):
    """The public side of the runs to come."""

    watcher: Watcher
    resample: bool
    horizon: int | None
    #: What runs of this mechanism cost.
    table: LossTable
    #: How the budget is rationed among the ⊤ of a run, where it is.
    ration: Ration | None = None


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
        self._reach = _first_reach(self.plan, self.held.allowed, self._filter)
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
            self._reach = reach = _reach(plan, below, above, self.held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        if self.held.reach_for(worst_loss(self._price, below, above, 1, 1)):
            self._reach = reach = _reach(plan, below, above, self.held.allowed)
            if below <= reach.below and above <= reach.above:
                return
        raise _exhausted(plan, below, above, self.spent, self._filter)

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


class RationedRun(BudgetedRun):
    """A run in which each question has a scale of its own; otherwise like any other run under a filter."""

    def __init__(self, plan: RunPlan, ration: Ration, *, filter: Filter) -> None:
        super().__init__(plan, filter=filter)
        self._ration, watcher = ration, plan.watcher
        each = relative_shift(watcher.family.monotone)
        self._delta = Fraction(watcher.family.sensitivity) * each
        self._first = in_units(upward(Fraction(watcher.family.sensitivity) / Fraction(watcher.scales[0])))
        self._purse = 0
        #: What the first 0, 1, … ⊤ cost together; the last of them is the one that may come next.
        self._ladder: tuple[int, ...] = (0,)
        #: The counts that the next question was priced for, and the noisy threshold at that price.
        self._offer: tuple[Any, NoisyThreshold] | None = None
        self._entropy: Entropy | None = None

    def begin(self, *, entropy: Entropy) -> None:
        """Take hold of the filter's budget, draw the noise of the threshold and price the first question."""
        self._purse = in_units(self._filter.remaining)
        self._entropy = entropy
        super().begin(entropy=entropy)
        self._reach = Reach(below=-1, above=-1, final=False)
        self.make_room()

    def _price(self, below: int, above: int) -> float:
        if below + above == 0:
            return 0.0
        rare = above if self._ration.rare == "above" else below
        return round_up(self._first + self._ladder[rare])

    def make_room(self) -> None:
        """Price the next question and make sure that it fits; raises ``BudgetExhausted`` where it does not."""
        counts = self._counts
        below, above, due, _ = counts
        if due:
            raise StateRefused("this run was interrupted and answers no more; start a new one")
        rare = above if self._ration.rare == "above" else below
        paid = self._ladder[rare]
        left = round_down(max(0, self._purse - self._first - paid))
        price = float(self._ration.price(below + above, rare, left=left))
        scale = float(self._delta) / price if price > 0.0 else math.inf
        if not 0.0 < scale < math.inf:
            raise self._over(math.nextafter(0.0, 1.0))
        ladder = (*self._ladder[: rare + 1], paid + in_units(upward(self._delta / Fraction(scale))))
        offer = counts, self._at(scale)
        # In one step: a signal handler that asked in the meantime has its own price in the sums.
        if self._counts is counts: self._ladder, self._offer = ladder, offer  # noqa: E701 # fmt: skip
        worst = worst_loss(self._price, below, above, 1, 1)
        if not self.held.reach_for(worst):
            raise self._over(worst)
        self._reach = Reach(below=below, above=above, final=False)

    def _at(self, scale: float) -> NoisyThreshold:
        """The same noisy threshold, for questions with noise of this scale."""
        watcher, line = self.plan.watcher, self._line
        if line is None or self._entropy is None:
            raise StateRefused("this run has not begun")
        of_line = watcher.scales[0]
        moved = float(watcher.offset(of_line, scale)) + self._ration.lean * scale
        level = watcher.threshold if self._ration.rare == "above" else -watcher.threshold
        return line.rescaled(level + moved, scale_query=scale)

    def put(self, number: float | Fraction) -> bool:
        """One answer, at the price that was set for it."""
        counts, offer = self._counts, self._offer
        below, above, _, _ = counts
        if offer is None or offer[0] is not counts:
            raise StateRefused("no room was made for this question; it was not asked")
        self._in_service(counts, 1, 1)
        found = offer[1].ask(number) if self._ration.rare == "above" else not offer[1].ask(-number)
        self._answered(below + (not found), above + found)
        return found

    def put_many(self, numbers: FloatArray | FloatScores | Sequence[Fraction]) -> tuple[NDArray[np.bool_], int]:
        """The answer to the first: the price of the next depends on it."""
        number: Any = numbers.exact(0) if isinstance(numbers, FloatScores) else numbers[0]
        found = self.put(number if isinstance(number, Fraction) else float(number))
        return np.array([found]), int(found)

    def _over(self, worst: float) -> BudgetExhausted:
        spent = self.spent
        return BudgetExhausted(
            f"the next question could bring this run to {worst!r} and does not fit: {self._filter.spent!r} of "
            f"{self._filter.limit!r} is spent outside it, and {spent!r} in it; nothing was spent on it",
            spent=min(self._filter.limit, self._filter.spent + spent),
            budget=self._filter.limit,
            next_cost=worst,
        )


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
    if plan.resample:
        return plan.table.reach(below, budget=allowed)
    return plan.table.reach_kept(below, above, allowed)


def _exhausted(plan: RunPlan, below: int, above: int, loss: float, filter: Filter) -> BudgetExhausted:
    step = math.nextafter(worst_loss(plan.table.loss, below, above, 1, 1) - loss, math.inf)
    spent = min(filter.limit, math.nextafter(filter.spent + loss, math.inf) if loss else filter.spent)
    return BudgetExhausted(
        f"the next question could cost {step!r} and does not fit: {spent!r} of {filter.limit!r} is spent; "
        "nothing was spent on it",
        spent=spent,
        budget=filter.limit,
        next_cost=step,
    )
