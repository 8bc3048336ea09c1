"""A rationed run keeps one noisy threshold and one price per question, whatever comes in between."""

import contextlib
import sys

import numpy as np
import pytest

from dpselect import ExponentialAboveThreshold, QueryFamily
from dpselect.composition import PureFilter, SparseVector, ration
from dpselect.composition.ration import Ration
from dpselect.errors import StateRefused
from dpselect.noise.scan import NoisyThreshold

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=0.05, monotone=True)
WATCHER = ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.2, scale_query=0.2)


def rationed(watcher=WATCHER, *, budget=3.0, questions=10):
    return SparseVector(watcher, budget=budget, resample=False, ration=Ration(questions=questions, expected=(3.0,)))


def test_all_questions_of_a_run_meet_one_noisy_threshold():
    """The threshold's noise is a thousand times as wide as a question's, so it alone decides: all answers are alike.

    With noise of its own for every question, eight answers about the threshold agree once in 128 runs.
    """
    family = QueryFamily(lower=0, upper=1000, sensitivity=1, monotone=True)
    watcher = ExponentialAboveThreshold(family, threshold=500, scale_threshold=100, scale_query=0.1)
    runs = [rationed(watcher, budget=1000.0).ask_many(np.full(8, 500.0)) for _ in range(60)]
    alike = [len(set(answers.tolist())) == 1 for answers in runs]
    assert sum(alike) >= 55
    assert {bool(answers[0]) for answers in runs} == {False, True}


def test_a_question_without_a_price_of_its_own_is_not_put():
    vector = rationed()
    vector.ask(0.1)
    run = vector._run
    run.make_room()
    run.put(0.1)
    spent = vector.spent
    with pytest.raises(StateRefused, match="no room was made"):
        run.put(0.1)
    assert vector.spent == spent


def test_questions_that_come_in_at_any_line_are_all_paid_at_their_own_prices(monkeypatch):
    """At each line of pricing, once, two questions come in that are answered ⊤, as from a signal handler."""
    drawn, ask = [], NoisyThreshold.ask

    def witnessed(self, value):
        above = ask(self, value)
        drawn.append((above, float(self._scale_query)))
        return above

    monkeypatch.setattr(NoisyThreshold, "ask", witnessed)
    at, reached, came_in = 0, True, 0
    while reached:
        at, seen, vector = at + 1, 0, rationed(budget=6.0)
        vector.ask(0.1)
        drawn.clear()
        before = vector.spent

        def trace(frame, event, _, at=at, vector=vector):
            nonlocal seen, came_in
            if frame.f_code.co_filename != ration.__file__:
                return trace if frame.f_code.co_filename.endswith(".py") else None
            seen += event == "line"
            if event == "line" and seen == at:
                sys.settrace(None)
                with contextlib.suppress(StateRefused):
                    came_in += len([vector.ask(1.0) for _ in range(2)])
            return trace

        sys.settrace(trace)
        try:
            with contextlib.suppress(StateRefused):
                vector.ask(1.0)
        finally:
            sys.settrace(None)
        reached = seen >= at
        with contextlib.suppress(StateRefused):
            vector.ask(1.0)
        paid = sum(FAMILY.sensitivity / scale for above, scale in drawn if above)
        assert before + paid <= vector.spent + 1e-12, at
        vector.close()
        assert vector.filter.spent <= 6.0
    assert came_in > 20


def test_a_ration_shares_what_others_have_left():
    budget = PureFilter(2.0)
    budget.charge(1.5)
    vector = SparseVector(WATCHER, filter=budget, resample=False, ration=Ration(questions=30, expected=(5.0,)))
    assert len(vector.ask_many(np.tile([0.0, 1.0, 1.0], 20))) == 60
    assert vector.spent <= 0.5
    vector.close()
    assert budget.spent <= 2.0


def test_an_interrupted_run_has_no_price_for_another_question():
    vector = rationed()
    vector.ask(0.1)
    run = vector._run
    below, above, _, _ = run._counts
    run._counts = below, above, 1, 1
    with pytest.raises(StateRefused, match="interrupted"):
        run.make_room()
