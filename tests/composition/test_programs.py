"""Random programs: filters, sparse vectors, odometers, saves, restores, switches, threads, interruptions in any order.

Whatever the order, the exact loss of what was shown never exceeds what was promised, and never what is stated.
What was shown is written down here, at the noisy thresholds themselves, apart from the books that are tested.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import math
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dpselect.composition import (
    AdvancedFilter,
    Filter,
    Odometer,
    PureFilter,
    RepairedReportingFilter,
    SparseVector,
    ZCDPFilter,
)
from dpselect.composition.costs import pure_price
from dpselect.errors import BudgetExhausted, InvalidData, StateRefused
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Run
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.scan import NoisyThreshold
from dpselect.privacy.conversions import pure_rho
from dpselect.privacy.family import QueryFamily
from dpselect.rounding import in_units

GENERAL = QueryFamily(lower=0, upper=1, sensitivity=0.05)
MONOTONE = QueryFamily(lower=0, upper=1, sensitivity=0.1, monotone=True)
WATCHERS = [
    GaussianAboveThreshold(GENERAL, threshold=0.5, sigma_threshold=0.3, sigma_query=0.4),
    GaussianAboveThreshold(MONOTONE, threshold=0.4, sigma_threshold=0.5, sigma_query=0.3),
    LaplaceAboveThreshold(MONOTONE, threshold=0.5, scale_threshold=1.0, scale_query=2.0),
]
#: The four ways to keep a promise: by the question, by the run with a chance, and by declared prices in two units.
FILTERS: dict[str, Callable[[float], Filter]] = {
    "pure": PureFilter,
    "repaired": lambda budget: RepairedReportingFilter(epsilon=budget, delta=0.05),
    "advanced": lambda budget: AdvancedFilter(epsilon=budget, delta=1e-3),
    "zcdp": ZCDPFilter,
}
CLIPS = [None, 0.3, (0.2, 0.4)]
REFUSED = (BudgetExhausted, StateRefused, InvalidData)
#: How many steps were taken, over all programs of a test.
STEPS = itertools.count()


@functools.lru_cache(maxsize=100_000)
def exact(watcher: Any, below: int, above: int) -> Fraction:
    """The loss of so many answers, from the mechanism."""
    return Fraction(float(np.asarray(watcher.loss(below=below, above=above))))


class Interruption(BaseException):
    """Comes at any line, as Ctrl-C does."""


def at_line(count: int, action: Callable[[], Any], inserted: Callable[[], Any]) -> None:
    """Run ``action`` and, at its ``count``-th line in the composition room, ``inserted``: a handler or an exception.

    Not at the lines of a ``with``: tracing visits them once more on the way out, and an exception raised there would
    leave the lock held. No signal can do that: Python handles signals after calls and at jumps, and between the last
    call of the block and the one that releases the lock there is neither.
    """
    seen = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal seen
        if not frame.f_globals.get("__name__", "").startswith(("dpselect.composition", "dpselect.mechanisms.run")):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            seen += 1
            if seen == count:
                sys.settrace(None)
                inserted()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)


class Programs(RuleBasedStateMachine):
    """One budget, and whoever spends it."""

    @initialize(
        kind=st.sampled_from(["pure", "pure", *FILTERS]),
        budget=st.sampled_from([0.4, 1.0, 3.0]),
        watcher=st.sampled_from(WATCHERS),
        clip=st.sampled_from(CLIPS),
        resample=st.booleans(),
        horizon=st.sampled_from([None, 4]),
        seed=st.integers(0, 10**6),
    )
    def begin(
        self, kind: str, budget: float, watcher: Any, clip: Any, resample: bool, horizon: int | None, seed: int
    ) -> None:
        self.kind, self.budget, self.entropy = kind, budget, SeededEntropy(seed)
        self.filter = FILTERS[kind](budget)
        # Only the pure rule covers a kept threshold; prices that are declared need a horizon.
        horizon = 4 if kind in ("advanced", "zcdp") else horizon
        resample = resample or kind != "pure"
        self.options: dict[str, Any] = {"resample": resample, "horizon": horizon, "entropy": self.entropy}
        self.vectors = [SparseVector(self._fit(watcher), filter=self.filter, clip=clip, **self.options)]
        self.odometer = Odometer()
        self.odometer.follow(self.vectors[0])
        #: Every noisy threshold that was asked, with the mechanism it belongs to and what it answered.
        self.shown: dict[int, tuple[Any, NoisyThreshold, list[int]]] = {}
        self.declared, self.before_restoring = Fraction(0), Fraction(0)
        self.charges: list[float] = []
        self._spy()

    def _fit(self, watcher: Any) -> Any:
        """The repaired filter takes Gaussian runs only."""
        return WATCHERS[0] if self.kind == "repaired" and watcher is WATCHERS[2] else watcher

    def _spy(self) -> None:
        ask, ask_many, draw = NoisyThreshold.ask, NoisyThreshold.ask_many, Run.draw
        #: Which mechanism (clipped) a noisy threshold serves.
        owners: dict[int, Any] = {}

        def drawn(run: Run, *, entropy: Any) -> None:
            draw(run, entropy=entropy)
            owners[id(run._line)] = run._mechanism

        def note(line: NoisyThreshold, answers: list[bool]) -> None:
            _, _, counts = self.shown.setdefault(id(line), (owners[id(line)], line, [0, 0]))
            for answer in answers:
                counts[answer] += 1

        def one(line: NoisyThreshold, value: Any) -> bool:
            answer = ask(line, value)
            if not isinstance(value, np.float64):
                note(line, [answer])
            return answer

        def many(line: NoisyThreshold, values: Any, *, until: Any = "first") -> Any:
            answers = ask_many(line, values, until=until)
            note(line, answers.tolist())
            return answers

        self._undo = [(NoisyThreshold, "ask", ask), (NoisyThreshold, "ask_many", ask_many), (Run, "draw", draw)]
        NoisyThreshold.ask, NoisyThreshold.ask_many = one, many  # type: ignore[method-assign]
        Run.draw = drawn  # type: ignore[method-assign]

    def teardown(self) -> None:
        for owner, name, original in getattr(self, "_undo", []):
            setattr(owner, name, original)

    # What is done.

    @rule(place=st.integers(0, 5), value=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
    def ask(self, place: int, value: float) -> None:
        with contextlib.suppress(*REFUSED):
            self._vector(place).ask(value)

    @rule(place=st.integers(0, 5), value=st.sampled_from([0.0, 1.0]), threshold=st.sampled_from([0.1, 0.5, 0.9]))
    def ask_with_its_own_threshold(self, place: int, value: float, threshold: float) -> None:
        with contextlib.suppress(*REFUSED):
            self._vector(place).ask(value, threshold=threshold)

    @rule(place=st.integers(0, 5), length=st.sampled_from([1, 3, 40, 300]), value=st.sampled_from([0.0, 0.5, 1.0]))
    def ask_many(self, place: int, length: int, value: float) -> None:
        with contextlib.suppress(*REFUSED):
            self._vector(place).ask_many(np.full(length, value))

    @rule(place=st.integers(0, 5))
    def renew(self, place: int) -> None:
        self._vector(place).renew()

    @rule(place=st.integers(0, 5), watcher=st.sampled_from(WATCHERS), clip=st.sampled_from(CLIPS))
    def switch(self, place: int, watcher: Any, clip: Any) -> None:
        self._switch(self._vector(place), watcher, clip)

    def _switch(self, vector: SparseVector, watcher: Any, clip: Any) -> None:
        vector.switch(self._fit(watcher), clip=clip, horizon=4 if self.options["horizon"] else None)

    @rule(place=st.integers(0, 5))
    def close(self, place: int) -> None:
        self._vector(place).close()

    @precondition(lambda self: len(self.vectors) < 4)
    @rule(watcher=st.sampled_from(WATCHERS), clip=st.sampled_from(CLIPS))
    def join(self, watcher: Any, clip: Any) -> None:
        """One more sparse vector under the same budget."""
        self.vectors.append(SparseVector(self._fit(watcher), filter=self.filter, clip=clip, **self.options))
        self.odometer.follow(self.vectors[-1])

    @rule(cost=st.sampled_from([0.01, 0.1, 0.5]))
    def charge(self, cost: float) -> None:
        self._charge(cost)

    def _charge(self, cost: float) -> None:
        try:
            self.filter.charge(cost)
        except REFUSED:
            return
        self.charges.append(cost)
        if self.kind != "zcdp":  # the odometer adds up ε, not ρ
            self.declared += Fraction(cost)
            self.odometer.add(cost)

    @rule(place=st.integers(0, 5), carry_on=st.booleans())
    def save_and_restore(self, place: int, carry_on: bool) -> None:
        """Carry on from the saved state; whoever spent this budget before is gone."""
        vector = self._vector(place)
        try:
            text = vector.save()
        except StateRefused:
            assert len(self.vectors) > 1 or self.filter._saved_by is not None
            return
        if carry_on:
            restored = SparseVector.restore(text, entropy=self.entropy)
            self.vectors, self.filter = [restored], restored.filter
            # What was shown until now is on the old odometer, which is gone with its process.
            self.before_restoring = self._exact_loss()
            self.odometer = Odometer()
            self.odometer.follow(restored)

    @rule(place=st.integers(0, 5), count=st.integers(1, 60), many=st.booleans())
    def interrupted(self, place: int, count: int, many: bool) -> None:
        vector = self._vector(place)

        def stop() -> None:
            raise Interruption

        with contextlib.suppress(Interruption, *REFUSED):
            at_line(count, lambda: vector.ask_many(np.zeros(5)) if many else vector.ask(0.0), stop)

    @rule(
        place=st.integers(0, 5),
        count=st.integers(1, 150),
        other=st.integers(0, 5),
        many=st.booleans(),
        what=st.sampled_from(["ask", "ask above", "renew", "switch", "charge"]),
    )
    def handled(self, place: int, count: int, other: int, many: bool, what: str) -> None:
        """A signal handler does something while a question is being answered."""
        vector, second = self._vector(place), self._vector(other)
        handlers: dict[str, Callable[[], Any]] = {
            "ask": lambda: [second.ask(0.5) for _ in range(3)],
            "ask above": lambda: [second.ask(1.0) for _ in range(2)],
            "renew": second.renew,
            "switch": lambda: self._switch(second, WATCHERS[0], 0.3),
            "charge": lambda: self._charge(0.05),
        }

        def handler() -> None:
            with contextlib.suppress(*REFUSED):
                handlers[what]()

        with contextlib.suppress(*REFUSED):
            at_line(count, lambda: vector.ask_many(np.zeros(5)) if many else vector.ask(0.0), handler)

    @rule(count=st.integers(1, 30), cost=st.sampled_from([0.05, 0.3]))
    def charge_handled(self, count: int, cost: float) -> None:
        """A signal handler charges in the middle of a charge."""
        at_line(count, lambda: self._charge(cost), lambda: self._charge(cost))

    @rule(place=st.integers(0, 5))
    def threads(self, place: int) -> None:
        def work(vector: SparseVector) -> None:
            for _ in range(5):
                with contextlib.suppress(*REFUSED):
                    vector.ask(0.5)

        workers = [threading.Thread(target=work, args=(self._vector(place + more),)) for more in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    @rule(place=st.integers(0, 5))
    def charge_what_it_turned_out_to_cost(self, place: int) -> None:
        with pytest.raises(ValueError, match="known before"):
            self.filter.charge(self._vector(place))

    # What must hold.

    def _vector(self, place: int) -> SparseVector:
        return self.vectors[place % len(self.vectors)]

    def _exact_loss(self) -> Fraction:
        """The losses of what every noisy threshold answered, by their mechanisms; and what was declared."""
        total = self.declared
        for watcher, _, (below, above) in self.shown.values():
            total += exact(watcher, below, above)
        return total

    @invariant()
    def the_promise_holds(self) -> None:
        if not hasattr(self, "filter"):
            return
        next(STEPS)
        shown = self._exact_loss()
        # The mechanism's own losses are rounded up too: allow for that alone.
        room = Fraction(1) + Fraction(1, 10**9)
        open_runs = sum(
            (Fraction(vector.open_run.epsilon) for vector in self.vectors if vector.open_run is not None), Fraction(0)
        )
        if self.kind in ("pure", "repaired"):
            assert shown <= (Fraction(self.filter.spent) + open_runs) * room, "the filter states less than was shown"
        if self.kind == "pure":
            assert shown <= Fraction(self.budget) * room
        if self.kind == "repaired":
            assert self.filter.spent_delta <= self.filter.delta
        else:
            assert self.filter.spent <= self.budget
        if self.kind in ("zcdp", "advanced"):
            self._prices_are_paid()
        since = Fraction(self.odometer.loss.epsilon)
        assert shown - self.before_restoring <= since * room, "the odometer states less than was shown"
        for vector in self.vectors:
            assert vector.remaining >= 0.0
            assert not math.isnan(vector.spent)

    def _prices_are_paid(self) -> None:
        """Every noisy threshold that answered was paid for, at a price that covers what it answered."""
        paid = 0
        for watcher, _, (below, above) in self.shown.values():
            price = pure_price(watcher, self.options["horizon"])
            assert exact(watcher, below, above) <= Fraction(price) * (1 + Fraction(1, 10**9))
            paid += in_units(float(pure_rho(price)) if self.kind == "zcdp" else price)
        paid += sum(map(in_units, self.charges))
        books = self.filter._books
        assert paid <= (books.total if self.kind == "zcdp" else books.epsilons), "a run was not paid for"


def take(steps: int, examples: int) -> int:
    """Run random programs; how many steps were taken."""
    before = next(STEPS)
    run_state_machine_as_test(
        Programs,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return next(STEPS) - before


def test_a_signal_that_raises_never_leaves_the_lock_held() -> None:
    vector = SparseVector(WATCHERS[0], budget=1e6, entropy=SeededEntropy(1))
    raised, delays = 0, np.random.default_rng(1).uniform(1e-6, 3e-5, 3000)

    def interrupt(*_: Any) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in delays:
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                for _ in range(20):
                    vector.ask(0.2)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interruption:
                raised += 1
            with ThreadPoolExecutor(1) as other:
                assert other.submit(vector._lock.acquire, timeout=60).result()
                other.submit(vector._lock.release).result()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised > 1000


def test_no_program_shows_more_than_is_promised_or_stated() -> None:
    assert take(25, 25) >= 300


@pytest.mark.slow
def test_no_program_shows_more_than_is_promised_or_stated_in_depth() -> None:
    assert take(50, 250) >= 5000
