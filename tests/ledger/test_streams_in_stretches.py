"""A stream that pays a stretch at a time is charged before each answer, and no stretch ends twice."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpselect import ExponentialAboveThreshold, GaussianAboveThreshold, QueryFamily, SparseVector
from dpselect.composition.ration import Ration
from dpselect.errors import BudgetExhausted, LedgerError, StateRefused
from dpselect.ledger import Ledger, LedgerFilter, Total, filter_on
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.stretches import Stretches

QUESTION = {"verb": "watch"}
FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
RATIONED = ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.02, scale_query=0.02)
PLAIN = GaussianAboveThreshold(FAMILY, threshold=0.3, sigma_threshold=0.1, sigma_query=0.2)
TENTH = Amounts(epsilon=10**14)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(1.0))


def test_every_answer_of_a_rationed_stream_is_charged_before_it_is_given(ledger: Ledger) -> None:
    with filter_on(ledger, question=QUESTION, stretch=0.06) as budget:
        ration = Ration(questions=60, expected=(20.0,))
        svt = SparseVector(RATIONED, filter=budget, resample=False, ration=ration)
        for value in np.tile([0.0, 1.0, 1.0], 20):
            svt.ask(float(value))
            assert ledger.balance().spent >= svt.spent
        assert len(svt.tops) > 20
        svt.close()
    assert sum(entry.kind == "reserve" for entry in ledger.entries()) > 3
    assert svt.spent <= ledger.balance().spent <= 1.0
    assert ledger.verify().holds


def test_a_stream_asks_for_another_stretch_where_its_run_needs_more(ledger: Ledger) -> None:
    with filter_on(ledger, question=QUESTION, stretch=0.02) as budget:
        held = budget.open_run(PLAIN)
        allowed = held.allowed
        assert allowed < 0.03
        assert held.reach_for(0.2)
        assert held.allowed >= 0.2 > allowed
        assert ledger.balance().spent >= 0.2
        assert not held.reach_for(1.5)
        held.settle(0.01)


def test_a_stretch_that_ended_is_not_ended_again(ledger: Ledger) -> None:
    stream = Stretches(ledger, QUESTION)
    first = stream.exchange(None, NOTHING, None, least=TENTH, wish=TENTH)
    second = stream.exchange(first, TENTH, "one", least=TENTH, wish=TENTH)
    assert ledger.balance().charged == TENTH + TENTH
    with pytest.raises(LedgerError, match="another process"):
        Stretches(ledger, QUESTION).exchange(first, NOTHING, "again", least=TENTH, wish=TENTH)
    assert ledger.balance().charged == TENTH + TENTH
    stream.end(second, NOTHING, "two")
    assert ledger.balance().charged == TENTH
    assert ledger.verify().holds


def test_a_stretch_that_was_lost_takes_its_room_along(ledger: Ledger) -> None:
    stream = Stretches(ledger, QUESTION, limit=TENTH + TENTH)
    first = stream.exchange(None, NOTHING, None, least=TENTH, wish=TENTH)
    stream.lose(first)
    assert stream.room == TENTH
    stream.exchange(None, NOTHING, None, least=TENTH, wish=TENTH)
    with pytest.raises(BudgetExhausted):
        Stretches(ledger, QUESTION, limit=TENTH).exchange(None, NOTHING, None, least=TENTH + TENTH, wish=TENTH + TENTH)


def test_a_stretch_with_less_than_the_least_in_it_is_not_reserved(ledger: Ledger) -> None:
    ledger.reserve({"question": "most of it"}, cost=0.95)
    stream = Stretches(ledger, QUESTION)
    with pytest.raises(BudgetExhausted):
        stream.exchange(None, NOTHING, None, least=TENTH, wish=TENTH)
    assert math.isclose(ledger.balance().spent, 0.95)
    found = stream.exchange(None, NOTHING, None, least=Amounts(epsilon=1), wish=TENTH)
    assert Amounts(epsilon=1) <= found.amounts <= TENTH
    assert ledger.balance().remaining == 0.0


def test_what_a_handler_charges_between_two_stretches_is_in_what_was_spent(tmp_path: Path) -> None:
    """At each line of reserving the next stretch, once, somebody else charges and reserves a stretch for it."""
    at, reached, came_in = 0, True, 0
    while reached:
        at, seen, charged = at + 1, 0, 0.125
        with Ledger.create(tmp_path / f"{at}.ledger", dataset="homes", total=Total.pure(1.0)) as ledger:
            budget = filter_on(ledger, question=QUESTION, stretch=0.125)
            budget.charge(0.125)

            def trace(frame: Any, event: str, _: Any, at: int = at, budget: LedgerFilter = budget) -> Any:
                nonlocal seen, charged, came_in
                if frame.f_code is not LedgerFilter._next_stretch.__code__:
                    return None
                seen += event == "line"
                if event == "line" and seen == at:
                    sys.settrace(None)
                    budget.charge(0.0625)
                    charged += 0.0625
                    came_in += 1
                return trace

            sys.settrace(trace)
            try:
                budget.charge(0.0625)
                charged += 0.0625
            except StateRefused:
                pass
            finally:
                sys.settrace(None)
            reached = seen >= at
            assert charged <= budget.spent, at
            assert charged <= ledger.balance().spent <= 1.0, at
    assert came_in > 8
