"""The sparse vector: questions about a stream, answered ⊥ or ⊤, within a budget that needs no tuning.

Runs follow each other under one filter. Whatever comes in between two lines (an exception, a signal handler that asks,
renews, switches or closes), each answer is in the sums once: a run is kept before it begins, taken out of service
before it is charged, and let go last.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import flag, one, positive, refuse
from dpselect.composition.budgeted_run import BudgetedRun, RunPlan, RunRecord, Transcript
from dpselect.composition.filter import Filter, Watcher, check_watcher, forked
from dpselect.composition.loss_table import loss_table
from dpselect.composition.ration import Ration, RationedRun
from dpselect.composition.realised import PureFilter
from dpselect.composition.saved_state import SavedVector
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.mechanisms.mechanism import Noise, noise_of
from dpselect.mechanisms.run import Verdict
from dpselect.mechanisms.values import Clip, Clipper, OutsidePolicy, PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.ownership import owned_here, process
from dpselect.privacy.loss import RealisedLoss
from dpselect.rounding import in_units, left, round_up

_FIRST_STRIDE, _LONGEST_STRIDE = 256, 1 << 17


class SparseVector:
    """Asks a stream of questions, ⊥ or ⊤, and stops before the budget could be exceeded.

    With the default filter the whole interaction is **pure ε-DP**: each question is asked only if both answers
    to it fit. Nothing has to be fixed beforehand but the budget: not how many questions, not how many ⊤. Questions,
    thresholds and mechanisms may be chosen after seeing the answers.

    Parameters
    ----------
    watcher : GaussianAboveThreshold, LaplaceAboveThreshold or ExponentialAboveThreshold
        The mechanism: threshold, noise, and what the questions promise.
    budget : float, optional
        ε of a :class:`~dpselect.composition.realised.PureFilter`. Give this or ``filter``.
    filter : Filter, optional
        Another rule for stopping.
    resample : bool
        Whether a new noisy threshold is drawn after each ⊤ (the default), or one is kept for all questions.
    clip : float or (float, float), optional
        Cut every question to [ρ - w, ρ + w], or to [ρ - below, ρ + above]. Costs less, and changes only how
        sure the far answers are (THEORY §5).
    horizon : int, optional
        End a run after so many questions even without ⊤; needed by filters that are paid before a run starts.
    outside : {"refuse", "clip"}
        What happens to a value outside the family's range.
    entropy : Entropy
        Where the noise comes from.
    ration : Ration, optional
        With exponential noise and ``resample=False``: every question gets the noise that what is left of the budget
        allows, given how many ⊤ are still to be expected. The budget then lasts for all questions.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
    >>> svt = SparseVector(watcher, budget=1.0, clip=0.3)
    >>> svt.ask(0.1)
    <Verdict.BELOW: 'below'>
    >>> svt.ask_many([0.1, 0.9, 0.1, 0.9]).tolist()
    [False, True, False, True]
    >>> 0 < svt.spent < 0.5, svt.questions, svt.tops.tolist()
    (True, 5, [2, 4])
    """

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
        self._plan = self._planned(
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
    ) -> RunPlan:
        cap = check_watcher(watcher, horizon)
        if not flag("resample", resample) and not self._filter.covers_kept_threshold:
            raise refuse("resample", resample, f"True with {type(self._filter).__name__}, whose runs end at a ⊤")
        if ration is not None:
            _check_ration(ration, watcher, self._filter, resample=resample, horizon=horizon)
        door = Clipper(watcher, clip=clip, outside=outside)
        return RunPlan(door, resample, cap, loss_table(door.clipped), ration)

    def __repr__(self) -> str:
        return f"<SparseVector at {self.spent} after {self.questions} questions, {len(self.tops)} above>"

    def __reduce__(self) -> str:
        raise StateRefused("a sparse vector holds secret noise and a budget and is not copied or pickled; use save()")

    def ask(self, value: PrivateValues, *, threshold: float | None = None) -> Verdict:
        """⊥ or ⊤ for one value.

        Parameters
        ----------
        value
            The private value of the question.
        threshold : float, optional
            A public threshold for this question alone, in place of the watcher's. The distance from it takes the
            place of the distance from ρ and is cut to the same range, so the cost is the same and the run goes on.

        Raises
        ------
        BudgetExhausted
            The question does not fit; nothing was spent on it.
        InvalidData
            The value cannot be used; nothing was spent.
        """
        if self._process != process():
            raise forked()
        with self._lock:
            run = self._run
            if run is None or not self._open or not run.ready():
                self._make_room()
            plan = self._plan
            door = plan.door
            if type(value) is float and threshold is None and door.lower <= value <= door.upper:
                number: float | Fraction = value
            else:
                number = door.admit_one(value, threshold=threshold)
                # Turning it into a number may have run code of the caller's, which may itself have asked.
                self._make_room()
            run = self._run or self._start()
            if run.plan is not plan:
                raise _switched()
            above = run.put(number)
            self._transcript.answer(above)
            if run.done and self._run is run:
                self._end()
            return Verdict.ABOVE if above else Verdict.BELOW

    def ask_many(self, values: PrivateValues) -> NDArray[np.bool_]:
        """Verdicts in order, ⊤ as ``True``: the same law as asking one by one.

        The array is shorter than the values where the budget ended: the rest was not asked. All values are looked
        at before the first question, so a bad one means that nothing was asked. Raises as :meth:`ask` does where
        not even the first question fits.
        """
        self._check_process()
        with self._lock:
            self._make_room()
            plan = self._plan
            numbers = plan.door.admit(values)
            self._make_room()
            verdicts = np.empty(len(numbers), dtype=np.bool_)
            at, stride = 0, _FIRST_STRIDE
            while at < len(numbers):
                try:
                    run = self._run
                    if run is not None and not (self._open and run.ready()):
                        self._make_room()
                    run = self._run or self._start()
                except (BudgetExhausted, StateRefused):
                    if at == 0:
                        raise
                    break
                if run.plan is not plan:
                    break
                answers, tops = run.put_many(numbers[at : at + stride])
                self._transcript.answer_many(answers, tops=tops)
                verdicts[at : at + len(answers)] = answers
                at += len(answers)
                if not run.done:
                    stride = min(2 * stride, _LONGEST_STRIDE)
                    continue
                if self._run is run:
                    self._end()
                stride = _FIRST_STRIDE
            if at == 0:
                raise _switched()
            return verdicts[:at]

    async def watch(self, stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Verdict]:
        """Verdicts for a stream as it comes; ends with the stream, or before a question that does not fit.

        Nothing is taken from the stream once nothing more fits.

        >>> import asyncio
        >>> from dpselect import GaussianAboveThreshold, QueryFamily
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
        >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
        >>> async def follow():
        ...     return [verdict.value async for verdict in SparseVector(watcher, budget=1.0).watch([0.0, 1.0])]
        >>> asyncio.run(follow())
        ['below', 'above']
        """
        source = aiter(stream) if isinstance(stream, AsyncIterable) else _one_by_one(stream)
        while self.can_ask:
            try:
                value = await anext(source)
            except StopAsyncIteration:
                return
            try:
                verdict = self.ask(value)
            except (BudgetExhausted, StateRefused):
                # Someone else took the last of the budget, or closed it, while this one was waiting.
                return
            yield verdict

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
            before = self._plan
            kept = before.resample if resample is None else resample
            # Looked at before the run is ended: a refused switch changes nothing.
            plan = self._planned(watcher, clip=clip, outside=before.door.outside, resample=kept, horizon=horizon)
            switched = False
            while not switched:
                self.renew()
                # In one step: a run that a handler started in the meantime belongs to the mechanism before.
                if self._run is None: self._plan, switched = plan, True  # noqa: E701 # fmt: skip

    def close(self) -> None:
        """End the open run, charging what it cost, and refuse all further questions."""
        with self._lock:
            # In this order: an interruption leaves nothing that answers, and closing again finishes.
            self._open = False
            self.renew()

    def save(self, *, key: bytes | None = None) -> str:
        """The state of the budget as JSON; :mod:`dpselect.composition.saved_state` says what its digest protects.

        Answers given after saving are not in it: save after each answer, before showing it, or :meth:`close` first.
        Refused where other sparse vectors share the filter and are open, or where another one was saved: each saved
        state holds the whole budget, so two of them would be the budget twice.
        """
        self._check_process()
        if self._plan.ration is not None:
            raise StateRefused("a rationed sparse vector cannot be saved; keep its answers in a ledger")
        with self._lock:
            if self._run is not None and not self._run.open:
                self._end()
            self._filter._claim_for_saving(self, None if self._run is None else self._run.held)
            plan, run, done = self._plan, self._run, self._transcript
            record = None if run is None else run.record()
            # An interruption may have kept an answer from being written down as given.
            questions = max(done.questions, 0 if record is None else record.below + record.above)
            return SavedVector(
                door=plan.door,
                resample=plan.resample,
                horizon=plan.horizon,
                filter=self._filter,
                ended=done.ended,
                questions=questions,
                open=self._open,
                run=record,
                noise=self._noise,
            ).written(key=key)

    @classmethod
    def restore(cls, text: str, *, key: bytes | None = None, entropy: Entropy = SYSTEM_ENTROPY) -> SparseVector:
        """Carry on from a saved state. A run that was open is charged and ended: its noisy threshold is gone."""
        saved = SavedVector.read(text, key=key)
        try:
            svt = cls(
                saved.door.watcher,
                filter=saved.filter,
                resample=saved.resample,
                clip=saved.door.clip,
                horizon=saved.horizon,
                outside=saved.door.outside,
                entropy=entropy,
            )
        except InvalidParameter as problem:
            raise StateRefused(f"the saved state is not usable: {problem}") from None
        svt._transcript = Transcript(questions=saved.questions, ended=saved.ended)
        svt._open = saved.open
        svt._noise = "reproducible" if saved.noise != "private" else svt._noise
        if saved.run is not None:
            saved.filter.charge_lost_run(saved.run.epsilon)
            svt._transcript.end_run(saved.run)
        return svt

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
        self._plan.check_fits(self._filter)

    def _check_open(self) -> None:
        if not self._open:
            raise StateRefused("this sparse vector is closed; nothing more can be asked")

    def _start(self) -> BudgetedRun:
        plan, done, paid_by = self._plan, self._transcript, self._filter
        ration = plan.ration
        run = BudgetedRun(plan, filter=paid_by) if ration is None else RationedRun(plan, ration, filter=paid_by)
        # Kept before it begins: whatever interrupts the beginning, there is a run to be ended. In one step with its
        # place, and only where there is none: a handler that came in has its own, or has ended some, or has closed.
        if self._run is None and self._open and self._plan is plan: run.place, self._run = done.ended_runs, run  # noqa: E701 # fmt: skip
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


def _switched() -> StateRefused:
    return StateRefused("the mechanism was switched while this question was on its way; ask it again")


async def _one_by_one(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value
