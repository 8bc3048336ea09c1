"""Spending a budget in memory twice: by a signal handler that asks in the middle of a question, and by copies."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow
import pytest

import dpselect
import dpselect as dp
from dpselect.dataset.budget import Budget
from dpselect.dataset.whole import WholeVector
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.privacy.loss import Loss

PACKAGE = str(Path(dpselect.__file__).parent)


def handled(call: Callable[[], Any], handler: Callable[[], Any], *, at: int) -> bool:
    """Run ``handler`` before the ``at``-th line of this package that ``call`` executes; False where it ended first.

    Python runs signal handlers between lines (and nowhere inside a line that calls nothing).
    """
    seen, ran = 0, False

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen, ran
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line":
            seen += 1
            if seen == at:
                ran = True
                handler()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return ran


def test_a_handler_that_charges_at_any_line_cannot_pass_the_total() -> None:
    at, ran = 0, True
    while ran:
        at += 1
        budget, granted = Budget(1000.0), []

        def charge(budget: Budget = budget, granted: list[float] = granted) -> None:
            try:
                budget.charge(Loss(epsilon=600.0), parameter="epsilon")
            except BudgetExhausted:
                return
            granted.append(600.0)

        ran = handled(charge, charge, at=at)
        assert sum(granted) <= 1000.0, f"at line {at}"
        assert budget.spent == sum(granted), f"at line {at}"
    assert at > 5


def test_a_timer_that_charges_at_random_cannot_pass_the_total() -> None:
    """The same with real signals: the handler charges whenever it happens to be called."""
    budget, granted = Budget(1.0), [0.0]
    cost = Loss(epsilon=2.0**-16)

    def charge(*_: object) -> None:
        try:
            budget.charge(cost, parameter="epsilon")
        except BudgetExhausted:
            return
        granted.append(cost.epsilon)  # one call: appending cannot be divided

    before = signal.signal(signal.SIGALRM, charge)
    signal.setitimer(signal.ITIMER_REAL, 5e-5, 5e-5)
    try:
        until = time.monotonic() + 20
        while budget.remaining and time.monotonic() < until:
            charge()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert budget.spent == sum(granted) <= 1.0


def test_threads_that_share_a_budget_cannot_pass_it() -> None:
    budget, granted = Budget(1.0), [0] * 8

    def spend(place: int) -> None:
        while True:
            try:
                budget.charge(Loss(epsilon=2.0**-10), parameter="epsilon")
            except BudgetExhausted:
                return
            granted[place] += 1

    threads = [threading.Thread(target=spend, args=(place,)) for place in range(len(granted))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 1024


def test_a_handler_that_asks_at_any_line_gets_no_more_values_than_are_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    watcher = dp.GaussianRelease.calibrated(family, candidates=3, epsilon=1.0, delta=1e-6)
    draws: list[int] = []
    release = dp.GaussianRelease.release
    monkeypatch.setattr(
        dp.GaussianRelease, "release", lambda self, *given, **named: draws.append(1) or release(self, *given, **named)
    )
    at, ran = 0, True
    while ran:
        at += 1
        draws.clear()
        vector = WholeVector(watcher, threshold=0.5, count=3, entropy=SYSTEM_ENTROPY)
        answers: list[Any] = []

        def ask(vector: WholeVector = vector, answers: list[Any] = answers) -> None:
            try:
                answers.append(vector.ask(0.5))
            except BudgetExhausted:
                return

        def often(ask: Callable[[], None] = ask) -> None:
            for _ in range(4):
                ask()

        ran = handled(ask, often, at=at)
        often()
        assert len(answers) == len(draws) == 3, f"at line {at}"
    assert at > 5


def rows() -> Any:
    return pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})


def homes(**facts: Any) -> dp.Dataset:
    given = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 2, "total": 1000}
    return dp.Dataset(rows(), **(given | facts))


QUESTION: dict[str, Any] = {"epsilon": 600, "start": "2013-01-01", "end": "2013-01-03"}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("what", ["budget", "data set"])
def test_a_copy_spends_the_same_budget(copied: Callable[[Any], Any], what: str) -> None:
    first = homes()
    second = copied(first) if what == "data set" else dataclasses.replace(first, budget=copied(first.budget))
    first.peak(**QUESTION)
    with pytest.raises(BudgetExhausted):
        second.peak(**QUESTION)
    assert first.spent == second.spent


def test_a_data_set_is_not_given_a_second_budget_in_place_of_its_own() -> None:
    first = homes()
    first.peak(**QUESTION)
    with pytest.raises(InvalidParameter, match="budget"):
        dataclasses.replace(first, budget=None)
    changed = dataclasses.replace(first, unit="kWh")
    with pytest.raises(BudgetExhausted):
        changed.peak(**QUESTION)


def test_a_budget_is_not_pickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(StateRefused, match="ledger"):
            pickle.dumps(Budget(1.0), protocol)
