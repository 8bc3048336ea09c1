"""Runs one after the other under one filter: the books behind a sparse vector.

Whatever comes in between two lines (an exception, a signal handler that asks, renews, switches or closes), each answer
is in the sums once: a run is kept before it begins, taken out of service before it is charged, and let go last.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import flag, one, positive, refuse
from dpselect.composition.budgeted_run import BudgetedRun, RunPlan, RunRecord, Transcript, check_fits
from dpselect.composition.filter import Filter, Watcher, check_watcher, forked
from dpselect.composition.loss_table import loss_table
from dpselect.composition.ration import Ration, RationedRun
from dpselect.composition.realised import PureFilter
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.mechanism import Noise, noise_of
from dpselect.mechanisms.values import Clip, Clipper, OutsidePolicy
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.ownership import owned_here, process
from dpselect.privacy.loss import RealisedLoss
from dpselect.rounding import in_units, left, round_up


class PaidRuns:
    """What a sparse vector has answered and spent, and the run it is in."""

    def __init__(
        self,
        watcher: Watcher,
        *,
        budget: float | None = None,
        filter: Filter | None = None,
        resample: bool = True,
        clip: Clip | None = None,
        horizon: int | None = None,
        outside: OutsidePolicy = "refuse",
        entropy: Entropy = SYSTEM_ENTROPY,
        ration: Ration | None = None,
    ) -> None:
        self._filter = _payer(budget, filter)
        # One attribute, so that the cut and the price of a question can never be of two mechanisms.
        self._mode = self._planned(
            watcher, clip=clip, outside=outside, resample=resample, horizon=horizon, ration=ration
        )
        self._entropy = entropy
        self._noise: Noise = noise_of(entropy)
        self._lock = threading.RLock()
        self._process = owned_here(self)
        self._open = True
        self._run: BudgetedRun | None = None
        self._transcript = Transcript()
        self._filter._serve(self)

    def _planned(
        self,
        watcher: Watcher,
        *,
        clip: Clip | None,
        outside: OutsidePolicy,
        resample: bool,
        horizon: int | None,
        ration: Ration | None = None,
    ) -> tuple[Clipper, RunPlan]:
        cap = check_watcher(watcher, horizon)
        if not flag("resample", resample) and not self._filter.covers_kept_threshold:
            raise refuse("resample", resample, f"True with {type(self._filter).__name__}, whose runs end at a ⊤")
        if ration is not None:
            _check_ration(ration, watcher, self._filter, resample=resample, horizon=horizon)
        door = Clipper(watcher, clip=clip, outside=outside)
        return door, RunPlan(door.clipped, resample, cap, loss_table(door.clipped), ration)

    @property
    def _door(self) -> Clipper:
        return self._mode[0]

    @property
    def _plan(self) -> RunPlan:
        return self._mode[1]

    @property
    def _uncounted(self) -> BudgetedRun | None:
        """The run that is not among the ended ones yet."""
        run = self._run
        return run if run is not None and run.place == self._transcript.ended_runs else None

    @property
    def filter(self) -> Filter:
        """The rule for stopping."""
        return self._filter

    @property
    def watcher(self) -> Watcher:
        """The mechanism in use, with its range clipped."""
        return self._plan.watcher

    @property
    def noise(self) -> Noise:
        """``private``, or ``reproducible`` where a seed was passed."""
        return self._noise

    @property
    def questions(self) -> int:
        """How many questions were answered."""
        return self._transcript.questions

    @property
    def tops(self) -> NDArray[np.int64]:
        """Which questions were answered ⊤, counted from 0 (after :meth:`restore`, those since then)."""
        return self._transcript.tops

    @property
    def runs(self) -> tuple[RunRecord, ...]:
        """The runs that ended, in order (after :meth:`restore`, those since then and the one it ended)."""
        return self._transcript.runs

    @property
    def open_run(self) -> RunRecord | None:
        """The run that is still answering and what it cost so far, if there is one."""
        run = self._uncounted
        return None if run is None else run.record()

    @property
    def open(self) -> bool:
        """Whether :meth:`close` has not been called."""
        return self._open

    @property
    def spent(self) -> float:
        """The realised loss of everything answered, the open run included: an upper bound that may be shown."""
        with self._lock:
            total, run = self._transcript.ended, self._uncounted
            return round_up(total if run is None else total + in_units(run.spent))

    @property
    def loss(self) -> RealisedLoss:
        """:attr:`spent` as a loss, for an odometer."""
        return RealisedLoss(epsilon=self.spent)

    @property
    def remaining(self) -> float:
        """What is left, in the filter's unit and rounded down, without what an open run has cost so far."""
        with self._lock:
            outside, run = self._filter.remaining, self._uncounted
            return left(outside, in_units(run.spent)) if self._filter.takes_open_run and run is not None else outside

    @property
    def can_ask(self) -> bool:
        """Whether one more question may be asked."""
        if self._process != process():
            return False
        with self._lock:
            try:
                self._make_room()
            except (BudgetExhausted, StateRefused):
                return False
            return True

    def renew(self) -> None:
        """End the open run, charging what it cost; the next question meets a new noisy threshold."""
        with self._lock:
            if self._run is not None:
                self._end()

    def switch(
        self, watcher: Watcher, *, clip: Clip | None = None, resample: bool | None = None, horizon: int | None = None
    ) -> None:
        """Go on with another mechanism under the same budget; an open run is charged and ends."""
        with self._lock:
            kept = self._plan.resample if resample is None else resample
            # Looked at before the run is ended: a refused switch changes nothing.
            mode = self._planned(watcher, clip=clip, outside=self._door.outside, resample=kept, horizon=horizon)
            switched = False
            while not switched:
                self.renew()
                # In one step: a run that a handler started in the meantime belongs to the mechanism before.
                if self._run is None: self._mode, switched = mode, True  # noqa: E701 # fmt: skip

    def close(self) -> None:
        """End the open run, charging what it cost, and refuse all further questions."""
        with self._lock:
            # In this order: an interruption leaves nothing that answers, and closing again finishes.
            self._open = False
            self.renew()

    def _make_room(self) -> None:
        """Raise unless one more question may be asked; spends nothing and looks at no data."""
        run = self._run
        if run is not None:
            if self._open and run.open:
                run.make_room()
                return
            # An interruption came before the run was ended.
            self._end()
        self._check_open()
        check_fits(self._plan, self._filter)

    def _next_run(self, *, started: bool) -> BudgetedRun | None:
        """The run for the next questions; once there are answers to give back, None where nothing more fits."""
        try:
            run = self._run
            if run is not None and not (self._open and run.ready()):
                self._make_room()
            return self._run or self._start()
        except (BudgetExhausted, StateRefused):
            if started:
                return None
            raise

    def _check_open(self) -> None:
        if not self._open:
            raise StateRefused("this sparse vector is closed; nothing more can be asked")

    def _start(self) -> BudgetedRun:
        plan, done = self._mode[1], self._transcript
        paid_by, ration = self._filter, plan.ration
        run = BudgetedRun(plan, filter=paid_by) if ration is None else RationedRun(plan, ration, filter=paid_by)
        # Kept before it begins: whatever interrupts the beginning, there is a run to be ended. In one step with its
        # place, and only where there is none: a handler that came in has its own, or has ended some, or has closed.
        if self._run is None and self._open and self._mode[1] is plan: run.place, self._run = done.ended_runs, run  # noqa: E701 # fmt: skip
        try:
            if self._run is run:
                run.begin(entropy=self._entropy)
            if self._run is not run:
                self._check_open()
                raise StateRefused("a question came in while the run for this one was being opened; ask it again")
        except BaseException:
            run.settle()
            if self._run is run:
                self._end()
            raise
        return run

    def _end(self) -> None:
        """Charge and write down the run. Each step may be interrupted and repeated; the run is let go last."""
        run = self._run
        if run is not None:
            record = run.settle()
            if record != (0, 0, 0.0):
                self._transcript.end_run(record, place=run.place)
            # This very run: a handler that asked in the meantime has ended it and may have left another in its place.
            self._run = None if self._run is run else self._run

    def _check_process(self) -> None:
        if self._process != process():
            raise forked()


def _payer(budget: float | None, filter: Filter | None) -> Filter:
    if filter is None:
        if budget is None:
            raise refuse("budget", budget, "given, or else filter")
        return PureFilter(one(positive, "budget", budget))
    if budget is not None:
        raise refuse("budget", budget, "left out where a filter is given")
    if not isinstance(filter, Filter):
        raise refuse("filter", filter, "a filter, such as PureFilter(epsilon)")
    return filter


def _check_ration(ration: Ration, watcher: Watcher, filter: Filter, *, resample: bool, horizon: int | None) -> None:
    if not isinstance(ration, Ration):
        raise refuse("ration", ration, "a Ration")
    if not watcher.tops_pay_alone:
        raise refuse("watcher", watcher, "an ExponentialAboveThreshold where the budget is rationed")
    if resample or horizon is not None or not filter.takes_open_run:
        raise refuse("ration", ration, "given with resample=False, a pure budget and no horizon")
