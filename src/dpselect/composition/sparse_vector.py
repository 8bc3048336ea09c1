"""The sparse vector: questions about a stream, answered ⊥ or ⊤, within a budget that needs no tuning."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.composition.budgeted_run import Transcript
from dpselect.composition.filter import State, forked
from dpselect.composition.paid_runs import PaidRuns
from dpselect.composition.saved_state import SavedVector, signed, verified
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.mechanisms.run import Verdict
from dpselect.mechanisms.values import PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.ownership import process

_FIRST_STRIDE, _LONGEST_STRIDE = 256, 1 << 17


class SparseVector(PaidRuns):
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
            door, plan = self._mode
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
            door, plan = self._mode
            numbers = door.admit(values)
            self._make_room()
            verdicts = np.empty(len(numbers), dtype=np.bool_)
            at, stride = 0, _FIRST_STRIDE
            while at < len(numbers):
                run = self._next_run(started=at > 0)
                if run is None or run.plan is not plan:
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

    def save(self, *, key: bytes | None = None) -> str:
        """The state of the budget as JSON; :mod:`dpselect.composition.saved_state` says what its digest protects.

        Answers given after saving are not in it: save after each answer, before showing it, or :meth:`close` first.
        Refused where other sparse vectors share the filter and are open, or where another one was saved: each saved
        state holds the whole budget, so two of them would be the budget twice.
        """
        return signed(self.state(), key=key)

    @classmethod
    def restore(cls, text: str, *, key: bytes | None = None, entropy: Entropy = SYSTEM_ENTROPY) -> SparseVector:
        """Carry on from a saved state. A run that was open is charged and ended: its noisy threshold is gone."""
        return cls.from_state(verified(text, key=key), entropy=entropy)

    def state(self) -> State:
        """What :meth:`save` writes, unsigned: public numbers, an open run with what it cost so far."""
        self._check_process()
        if self._plan.ration is not None:
            raise StateRefused("a rationed sparse vector cannot be saved; keep its answers in a ledger")
        with self._lock:
            if self._run is not None and not self._run.open:
                self._end()
            self._filter._claim_for_saving(self, None if self._run is None else self._run.held)
            (door, plan), run, done = self._mode, self._run, self._transcript
            record = None if run is None else run.record()
            # An interruption may have kept an answer from being written down as given.
            questions = max(done.questions, 0 if record is None else record.below + record.above)
            saved = SavedVector(
                door, plan.resample, plan.horizon, self._filter, done.ended, questions, self._open, record, self._noise
            )
            return saved.state()

    @classmethod
    def from_state(cls, state: State, *, entropy: Entropy = SYSTEM_ENTROPY) -> SparseVector:
        """The sparse vector that :meth:`state` described, its open run charged and ended; anything else is refused."""
        saved = SavedVector.from_state(state)
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


def _switched() -> StateRefused:
    return StateRefused("the mechanism was switched while this question was on its way; ask it again")


async def _one_by_one(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        yield value
