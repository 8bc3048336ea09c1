"""Whatever line is interrupted, no answer goes uncharged and the budget holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interruptions import interrupted as interrupted_within

import dpselect.composition
import dpselect.mechanisms.run
from dpselect.composition import PureFilter, SparseVector
from dpselect.composition.budgeted_run import BudgetedRun
from dpselect.composition.loss_table import LossTable, loss_table
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.privacy.family import QueryFamily

#: Where an interruption is tried: all that keeps count of what was asked.
PLACES = (str(Path(dpselect.composition.__file__).parent), dpselect.mechanisms.run.__file__)
FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
OTHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.03, sigma_query=0.03)
BUDGET = 20.0
interrupted = functools.partial(interrupted_within, within=PLACES)


class Witness:
    """Asks, and keeps what was delivered, apart from the sparse vector's own books.

    A stretch of answers belongs to one run while the run object, and so its noisy threshold, is the same.
    """

    def __init__(self, svt: SparseVector) -> None:
        self.svt = svt
        self.runs: list[list[Any]] = []

    def ask(self, value: float) -> None:
        svt = self.svt
        started: list[BudgetedRun] = []
        before = svt._run if svt._run is not None and svt._run.open else None
        original = svt._start
        svt._start = lambda: started.append(original()) or started[-1]  # type: ignore[method-assign,func-returns-value]
        try:
            above = svt.ask(value) is Verdict.ABOVE
        finally:
            del svt._start  # type: ignore[method-assign]
        run = started[-1] if started else before
        assert run is not None
        if not self.runs or self.runs[-1][0] is not run:
            self.runs.append([run, 0, 0])
        self.runs[-1][2 if above else 1] += 1

    @property
    def truth(self) -> float:
        return sum(float(np.asarray(run.plan.watcher.loss(below=m, above=k))) for run, m, k in self.runs)


ACTIONS: dict[str, Callable[[SparseVector], Any]] = {
    "ask below": lambda svt: svt.ask(0.1),
    "ask above": lambda svt: svt.ask(0.9),
    "ask many": lambda svt: svt.ask_many([0.1, 0.9, 0.1, 0.9]),
    "renew": lambda svt: svt.renew(),
    "switch": lambda svt: svt.switch(OTHER, clip=0.3),
    "close": lambda svt: svt.close(),
    "save": lambda svt: svt.save(),
}


def check_books(svt: SparseVector, truth: float) -> None:
    run = svt.open_run
    recorded = sum(record.epsilon for record in svt.runs) + (0.0 if run is None else run.epsilon)
    assert svt.spent == pytest.approx(recorded, rel=1e-12)
    assert truth <= svt.spent * (1 + 1e-9)
    assert svt.spent <= svt.filter.spent + (0.0 if run is None else run.epsilon) + 1e-12
    assert svt.filter.spent <= svt.filter.limit
    assert len(set(svt.tops.tolist())) == len(svt.tops)


@pytest.mark.parametrize("resample", [True, False])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("warm", [0, 2])
def test_an_interruption_at_any_line_leaves_no_answer_uncharged(action: str, resample: bool, warm: int) -> None:
    at = 0
    while True:
        at += 1
        svt = SparseVector(WATCHER, budget=BUDGET, resample=resample)
        witness = Witness(svt)
        for _ in range(warm):
            witness.ask(0.1)
        spent = svt.spent
        hit = interrupted(lambda svt=svt: ACTIONS[action](svt), at=at, by=(KeyboardInterrupt, MemoryError)[at % 2])
        assert svt.spent >= spent, at
        if not hit:
            break
        check_books(svt, witness.truth)
        try:
            for value in (0.1, 0.1, 0.9, 0.1):
                witness.ask(value)
        except StateRefused:
            assert action == "close"
            assert not svt.open
        check_books(svt, witness.truth)
        assert SparseVector.restore(svt.save()).spent == pytest.approx(svt.spent, rel=1e-12)
        svt.close()
        check_books(svt, witness.truth)
        assert svt.open_run is None
        assert svt.filter.spent == svt.spent <= BUDGET
        svt.filter.charge(1e-3)  # nothing holds the filter any more
    assert at > 3


def test_interrupting_on_and_on_cannot_pass_the_budget() -> None:
    svt = SparseVector(WATCHER, budget=2.0)
    witness, random = Witness(svt), np.random.default_rng(5)
    for _ in range(400):
        interrupted(svt.renew, at=int(random.integers(1, 30)), by=KeyboardInterrupt)
        interrupted(lambda: svt.can_ask, at=int(random.integers(1, 30)), by=KeyboardInterrupt)
        try:
            witness.ask(0.1)
        except BudgetExhausted:
            break
    else:
        raise AssertionError("the budget never ended")
    svt.close()
    check_books(svt, witness.truth)
    assert svt.spent <= 2.0


def test_an_interrupted_question_is_charged_at_its_worst_and_its_threshold_is_given_up() -> None:
    svt = SparseVector(WATCHER, budget=BUDGET)
    svt.ask(0.1)
    run = svt._run
    assert run is not None

    class Broken:
        def ask(self, value: float) -> bool:
            raise MemoryError

    run._line = Broken()  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        svt.ask(0.1)
    assert svt.spent >= max(loss_table(WATCHER).loss(m, k) for m, k in ((2, 0), (1, 1)))
    svt.ask(0.1)
    assert svt._run is not run
    assert len(svt.runs) >= 1


def test_a_table_interrupted_while_it_grows_grows_again() -> None:
    whole = LossTable(WATCHER)
    whole._grow(256)
    at = 0
    while True:
        at += 1
        table = LossTable(WATCHER)
        hit = interrupted(lambda table=table: table._grow(256), at=at, by=KeyboardInterrupt)
        table._grow(256)
        assert table._worst.tolist() == whole._worst.tolist()
        assert len(table._silent) == len(table._topped) + 1 == 257
        if not hit:
            break
    assert at > 5


def test_a_settled_run_refuses_to_answer() -> None:
    filter = PureFilter(5.0)
    svt = SparseVector(WATCHER, filter=filter)
    svt.ask(0.1)
    run = svt._run
    assert run is not None
    svt.renew()
    spent = filter.spent
    for ask in (lambda: run.put(0.1), lambda: run.put_many(np.array([0.1, 0.2]))):
        with pytest.raises(StateRefused, match="ended"):
            ask()
    assert filter.spent == spent


def test_the_harness_notices_an_unsafe_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: letting the run go before it is charged loses its cost."""

    def careless(self: SparseVector) -> None:
        run = self._run
        self._run = None
        if run is not None and run.place >= 0:
            record = run.settle()
            self._transcript.end_run(record, place=run.place)

    monkeypatch.setattr(SparseVector, "_end", careless)
    lost = 0
    for at in range(1, 30):
        svt = SparseVector(WATCHER, budget=BUDGET)
        witness = Witness(svt)
        witness.ask(0.1)
        interrupted(svt.renew, at=at, by=KeyboardInterrupt)
        lost += witness.truth > svt.spent * (1 + 1e-9)
    assert lost > 0


def test_settling_again_after_an_interruption_counts_once() -> None:
    at, hit = 0, True
    while hit:
        at += 1
        budget = PureFilter(1.0)
        held = budget.open_run(WATCHER)
        hit = interrupted(lambda held=held: held.settle(0.25), at=at, by=KeyboardInterrupt)
        held.settle(0.25)
        assert budget.spent == 0.25, at
        assert not held.open
    assert at > 5
