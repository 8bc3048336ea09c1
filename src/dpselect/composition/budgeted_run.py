"""One run of a sparse vector: a noisy threshold, what was answered, and how much further it may go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.filter import Filter, Watcher
from dpselect.composition.loss_table import Reach, loss_table
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.laplace_above_threshold import LaplaceAboveThreshold
from dpselect.noise.entropy import Entropy
from dpselect.noise.quantiles import LAPLACE, NORMAL
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
    """

    def __init__(self, plan: RunPlan, *, filter: Filter, entropy: Entropy) -> None:
        self._plan = plan
        self._filter = filter
        self._table = loss_table(plan.watcher)
        # Counted before any noise is drawn, and settled whatever happens after.
        self._allowed = filter.open_run(plan.watcher, horizon=plan.horizon).allowed
        self._settled: float | None = None
        self.below = 0
        self.above = 0
        try:
            self._reach = _first_reach(plan, self._allowed, filter)
            self._line = _noisy_threshold(plan.watcher, entropy)
        except BaseException:
            filter.close_run(0.0)
            raise

    @property
    def allowed(self) -> float:
        """The most that the run's realised loss may be."""
        return self._allowed

    @property
    def loss(self) -> float:
        """ε of what was answered so far."""
        # Every answer was let through because a larger loss still fitted, so the limit is a bound as well.
        return min(self._table.loss(self.below, self.above), self._allowed)

    @property
    def over(self) -> bool:
        """Whether the run has ended by its own rules: a ⊤ where the threshold is not kept, or the horizon."""
        return (self._plan.resample and self.above > 0) or self.below + self.above == self._plan.horizon

    def make_room(self) -> None:
        """Make sure that the next question fits; raises ``BudgetExhausted`` and changes nothing where it does not."""
        if self.below <= self._reach.below and self.above <= self._reach.above:
            return
        if not self._reach.final:
            self._reach = _reach(self._plan, self.below, self.above, self._allowed)
            if self.below <= self._reach.below and self.above <= self._reach.above:
                return
        raise _exhausted(self._plan, self.below, self.above, self.loss, self._filter)

    def ask(self, value: float | Fraction) -> bool:
        """One answer; :meth:`make_room` comes first."""
        if self._line.ask(value):
            self.above += 1
            return True
        self.below += 1
        return False

    def ask_stretch(self, values: FloatArray | Sequence[Fraction]) -> NDArray[np.bool_]:
        """Answers to the first of these values, as many as surely fit; :meth:`make_room` comes first."""
        fitting = self._reach.below - self.below + 1
        if self._plan.horizon is not None:
            fitting = min(fitting, self._plan.horizon - self.below - self.above)
        whatever = min(fitting, self._reach.above - self.above + 1)
        if not self._plan.resample and (whatever >= _WORTH_ALL or whatever >= len(values)):
            answers = self._line.ask_many(values[:whatever], until="all")
        else:
            answers = self._line.ask_many(values[:fitting], until="first")
        above = int(np.count_nonzero(answers))
        self.above += above
        self.below += len(answers) - above
        return answers

    def settle(self) -> float:
        """Tell the filter what the run cost; the run must not be asked again."""
        # Only once, also where an interruption made someone try again.
        if self._settled is None:
            loss = self.loss
            self._filter.close_run(loss)
            self._settled = loss
        return self._settled


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


def _noisy_threshold(watcher: Watcher, entropy: Entropy) -> NoisyThreshold:
    if isinstance(watcher, LaplaceAboveThreshold):
        scale_threshold, scale_query, law = watcher.scale_threshold, watcher.scale_query, LAPLACE
    else:
        scale_threshold, scale_query, law = watcher.sigma_threshold, watcher.sigma_query, NORMAL
    return NoisyThreshold(
        watcher.threshold, scale_threshold=scale_threshold, scale_query=scale_query, law=law, entropy=entropy
    )
