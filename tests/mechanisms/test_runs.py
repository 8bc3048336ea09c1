"""An open run: it counts what it told, ends when it should, and keeps its noise to itself."""

from __future__ import annotations

import contextlib
import copy
import linecache
import math
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.mechanisms.members import WATCHERS as NAMES
from tests.mechanisms.members import watcher

from dpselect.errors import InvalidParameter, StateRefused
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.run import Run, Verdict
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.scan import NoisyThreshold
from dpselect.privacy.family import QueryFamily

FAMILY = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01)
WATCHERS = [watcher(name, FAMILY, threshold=0.5, scales=(0.005, 0.01)) for name in NAMES]
every_watcher = pytest.mark.parametrize("watcher", WATCHERS, ids=lambda watcher: type(watcher).__name__)


@every_watcher
def test_a_run_costs_nothing_before_its_first_answer(watcher: Any) -> None:
    assert watcher.start().loss.epsilon == 0.0


@every_watcher
def test_the_loss_of_an_open_run_is_that_of_its_transcript_so_far(watcher: Any) -> None:
    run = watcher.start(resample=False)
    seen = [run.loss.epsilon]
    for value, verdict in [(0.1, Verdict.BELOW), (0.2, Verdict.BELOW), (0.9, Verdict.ABOVE), (0.1, Verdict.BELOW)]:
        assert run.ask(value) is verdict
        seen.append(run.loss.epsilon)
    assert seen[1:] == [watcher.loss(below=m, above=k) for m, k in [(1, 0), (2, 0), (2, 1), (3, 1)]]
    assert seen == sorted(seen)


@every_watcher
def test_a_run_ends_at_its_first_top_and_takes_no_more(watcher: Any) -> None:
    run = watcher.start()
    assert run.ask(0.9) is Verdict.ABOVE
    assert not run.open
    loss = run.loss
    for ask in (lambda: run.ask(0.1), lambda: run.ask_many([0.1])):
        with pytest.raises(StateRefused, match="has ended"):
            ask()
    assert run.loss == loss


@every_watcher
def test_a_scan_tells_nothing_of_what_comes_after_the_first_top(watcher: Any) -> None:
    run = watcher.start()
    assert run.ask_many([0.1, 0.2, 0.9, 0.1, 0.9]).tolist() == [False, False, True]
    assert (run.below, run.above, run.open) == (2, 1, False)


@every_watcher
def test_a_run_told_to_go_on_answers_everything_under_one_threshold(watcher: Any) -> None:
    run = watcher.start(resample=False)
    assert run.ask_many([0.1, 0.9, 0.1, 0.9]).tolist() == [False, True, False, True]
    assert (run.below, run.above, run.open) == (2, 2, True)
    run.close()
    with pytest.raises(StateRefused):
        run.ask(0.1)


@every_watcher
def test_a_run_is_not_copied_or_pickled(watcher: Any) -> None:
    run = watcher.start()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StateRefused):
            attempt(run)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@every_watcher
def test_a_forked_child_cannot_use_its_parents_threshold(watcher: Any) -> None:
    run = watcher.start()
    child = os.fork()
    if child == 0:
        try:
            run.ask(0.1)
        except StateRefused:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert run.ask(0.1) is Verdict.BELOW


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("many", [False, True])
def test_a_forked_child_is_refused_before_anything_is_counted(many: bool) -> None:
    """Also where a thread of the parent holds the run at that moment: the child would wait for ever."""
    run = WATCHERS[0].start()
    run.ask(0.1)
    spent = run.spent
    with run._lock:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(StateRefused):
                run.ask_many([0.1]) if many else run.ask(0.1)
            os._exit(7 if run.spent == spent and run.below == 1 else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@every_watcher
def test_threads_lose_no_answer_between_them(watcher: Any) -> None:
    run = watcher.start(resample=False)
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(run.ask, [0.1, 0.9] * 2000))
    assert (run.below, run.above) == (told.count(Verdict.BELOW), told.count(Verdict.ABOVE))
    assert len(told) == 4000


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("value", [0.1, 0.9])
@pytest.mark.parametrize("what", ["stop", "ask", "close"])
def test_whatever_breaks_into_a_question_no_answer_goes_uncounted(value: float, what: str, many: bool) -> None:
    """At every line of the run, once: an exception, a signal handler that asks, one that closes."""
    watcher, line_ask, line_many = WATCHERS[1], NoisyThreshold.ask, NoisyThreshold.ask_many
    at, reached, refused = 0, True, 0
    while reached:
        at, seen = at + 1, 0
        run, shown = watcher.start(resample=False), [0, 0]

        def one(line: NoisyThreshold, number: Any, shown: list[int] = shown) -> bool:
            answer = line_ask(line, number)
            shown[answer] += 1
            return answer

        def several(line: NoisyThreshold, numbers: Any, *, until: Any, shown: list[int] = shown) -> Any:
            answers = line_many(line, numbers, until=until)
            shown[1] += int(answers.sum())
            shown[0] += int((~answers).sum())
            return answers

        def break_in(run: Any = run) -> None:
            if what == "stop":
                raise KeyboardInterrupt
            with contextlib.suppress(StateRefused):
                run.close() if what == "close" else run.ask(0.9)

        def trace(frame: Any, event: str, _: Any, at: int = at) -> Any:
            nonlocal seen
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
            if frame.f_globals.get("__name__") != Run.__module__:
                return None
            # Tracing visits a ``with`` once more on the way out, where no signal can come in.
            if event == "line" and not text.startswith("with "):
                seen += 1
                if seen == at:
                    sys.settrace(None)
                    break_in()
            return trace

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(NoisyThreshold, "ask", one)
            patch.setattr(NoisyThreshold, "ask_many", several)
            sys.settrace(trace)
            try:
                run.ask_many([value, value]) if many else run.ask(value)
            except (KeyboardInterrupt, StateRefused):
                refused += 1
            finally:
                sys.settrace(None)
            reached = seen >= at
            assert run.loss.epsilon >= watcher.loss(*shown), at
            if run.open:
                run.ask(value)
                assert run.loss.epsilon >= watcher.loss(*shown), at
    assert refused > 0


@every_watcher
def test_the_text_of_a_run_shows_counts_only(watcher: Any) -> None:
    run = watcher.start(resample=False)
    run.ask_many([0.1234, 0.9])
    assert repr(run) == "<Run of 1 below and 1 above, open>"


@every_watcher
def test_unknown_ways_to_run_are_refused(watcher: Any) -> None:
    for wrong in ({"resample": "twice"}, {"outside": "ignore"}):
        with pytest.raises(InvalidParameter):
            watcher.start(**wrong)
    with pytest.raises(InvalidParameter):
        watcher.run_many([0.1], times=3, resample="twice")


@every_watcher
def test_many_runs_cost_the_sum_of_their_transcripts(watcher: Any) -> None:
    runs = watcher.run_many([0.1, 0.2, 0.9, 0.1], times=50, entropy=SeededEntropy(3))
    assert runs.noise == "reproducible"
    assert (runs.verdicts == [0, 0, 1, -1]).all()
    assert runs.loss.epsilon == pytest.approx(50 * watcher.loss(below=2, above=1))
    assert runs.loss.epsilon >= 50 * np.float64(watcher.loss(below=2, above=1)) * (1 - 1e-15)


def test_what_costs_more_than_any_double_is_stated_as_infinite() -> None:
    family = QueryFamily(lower=0, upper=1e241, sensitivity=1e241)
    watcher = GaussianAboveThreshold(family, threshold=1e241, sigma_threshold=8.0, sigma_query=3.0)
    assert watcher.run_many([1e241, 0.0], times=3, entropy=SeededEntropy(3)).loss.epsilon == math.inf
    picker = GaussianNoisyMax(family, 8.0)
    assert picker.release_many([0.0, 1e241], times=3, entropy=SeededEntropy(3)).loss.epsilon == math.inf


def test_seeded_runs_repeat_and_say_so() -> None:
    watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.3, sigma_query=0.3)
    first, second = (watcher.start(entropy=SeededEntropy(9), resample=False) for _ in range(2))
    values = np.full(1000, 0.5)
    assert first.ask_many(values).tolist() == second.ask_many(values).tolist()
    assert first.noise == "reproducible"
    assert watcher.start().noise == "private"
