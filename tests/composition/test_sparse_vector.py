"""The sparse vector: its law, its stopping, its bookkeeping, and what it refuses."""

from __future__ import annotations

import asyncio
import copy
import gc
import math
import os
import pickle
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.output_law import transcript_probability

from dpselect.composition import (
    AdvancedFilter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    RepairedReportingFilter,
    SparseVector,
    ZCDPFilter,
)
from dpselect.composition.loss_table import LossTable, loss_table
from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter, StateRefused
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold, LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.1, sigma_query=0.1)
SHARP = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
MONOTONE = GaussianAboveThreshold(
    QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True),
    threshold=0.5,
    sigma_threshold=0.1,
    sigma_query=0.1,
)
LAPLACE = LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.05, scale_query=0.05)
EXPONENTIAL = ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.05, scale_query=0.05)


class TestStopping:
    @pytest.mark.parametrize("resample", [True, False])
    @pytest.mark.parametrize("watcher", [WATCHER, MONOTONE, LAPLACE, EXPONENTIAL])
    def test_it_stops_within_the_budget_and_not_a_question_early(self, watcher, resample: bool) -> None:
        svt = SparseVector(watcher, budget=0.2, resample=resample, entropy=SeededEntropy(1))
        values = np.random.default_rng(2).uniform(0, 0.6, 20_000)
        verdicts = svt.ask_many(values)
        if len(verdicts) == len(values):
            assert watcher in (LAPLACE, EXPONENTIAL), "a Gaussian run has no bounded cost for ever"
            return
        assert svt.spent <= 0.2
        run = svt.open_run
        below, above = (0, 0) if run is None else run[:2]
        worst = max(
            float(np.asarray(svt.watcher.loss(below=below + 1, above=above))),
            float(np.asarray(svt.watcher.loss(below=below, above=above + 1))),
        )
        assert sum(Fraction(run.epsilon) for run in svt.runs) + Fraction(worst) > Fraction(0.2)

    def test_after_the_end_every_question_is_refused_and_nothing_is_spent(self) -> None:
        svt = SparseVector(WATCHER, budget=0.05)
        svt.ask_many(np.zeros(100_000))
        spent, questions = svt.spent, svt.questions
        for _ in range(3):
            with pytest.raises(BudgetExhausted) as refused:
                svt.ask(0.1)
            with pytest.raises(BudgetExhausted):
                svt.ask_many([0.1, 0.2])
        assert (svt.spent, svt.questions, svt.can_ask) == (spent, questions, False)
        assert refused.value.budget == 0.05
        assert refused.value.spent >= spent
        assert refused.value.spent + refused.value.next_cost > 0.05

    def test_after_the_end_values_are_not_even_looked_at(self) -> None:
        svt = SparseVector(WATCHER, budget=0.05)
        svt.ask_many(np.zeros(100_000))
        with pytest.raises(BudgetExhausted):
            svt.ask(math.nan)

    def test_the_odometer_is_the_sum_of_the_losses_of_the_runs(self) -> None:
        svt = SparseVector(SHARP, budget=10.0, entropy=SeededEntropy(3))
        svt.ask_many(np.random.default_rng(3).uniform(0.3, 0.6, 200))
        for run in svt.runs:
            assert run.above == 1
            assert run.epsilon == pytest.approx(SHARP.loss(run.below, 1), rel=1e-9)
        total = sum(Fraction(run.epsilon) for run in svt.runs)
        if svt.open_run is not None:
            total += Fraction(svt.open_run.epsilon)
        assert Fraction(svt.spent) >= total
        assert svt.spent == pytest.approx(float(total), rel=1e-15)
        assert svt.spent + svt.remaining == pytest.approx(10.0)

    @pytest.mark.parametrize("resample", [True, False])
    def test_asking_one_by_one_and_all_at_once_stop_at_the_same_point(self, resample: bool) -> None:
        # Values far from the threshold force the answers, so the two ways see the same transcript.
        values = np.where(np.arange(3000) % 40 == 39, 1.0, 0.0)
        together = SparseVector(SHARP, budget=7.0, resample=resample)
        verdicts = together.ask_many(values)
        single = SparseVector(SHARP, budget=7.0, resample=resample)
        answered = 0
        while single.can_ask:
            assert (single.ask(values[answered]) is Verdict.ABOVE) == verdicts[answered]
            answered += 1
        assert answered == len(verdicts) == together.questions < 3000
        assert single.spent == together.spent
        assert single.tops.tolist() == together.tops.tolist() == np.flatnonzero(verdicts).tolist()
        assert single.runs == together.runs


class TestLaw:
    def test_verdicts_follow_the_exact_law(self) -> None:
        values = [0.45, 0.55, 0.4]
        seen: dict[tuple[bool, ...], int] = {}
        entropy = SeededEntropy(11)
        trials = 6000
        for _ in range(trials):
            svt = SparseVector(WATCHER, budget=50.0, resample=False, entropy=entropy)
            answers = tuple(svt.ask(value) is Verdict.ABOVE for value in values)
            seen[answers] = seen.get(answers, 0) + 1
        halved = 0
        for code in range(8):
            answers = tuple(bool(code >> place & 1) for place in range(3))
            verdicts = [Verdict.ABOVE if answer else Verdict.BELOW for answer in answers]
            for scale, wrong in ((0.1, False), (0.05, True)):
                p = transcript_probability(values, verdicts, threshold=0.5, scale_threshold=scale, scale_query=scale)
                error = abs(seen.get(answers, 0) - trials * p) / math.sqrt(trials * p * (1 - p))
                if wrong:
                    halved += error > 6
                else:
                    assert error < 5
        assert halved > 0, "the test must notice halved noise"

    def test_a_new_threshold_is_drawn_after_a_top_only_where_it_should_be(self) -> None:
        # With much threshold noise and little query noise, answers to one value repeat while the threshold is kept.
        watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.2, sigma_query=1e-4)
        kept = SparseVector(watcher, budget=1e9, resample=False, clip=1e-2, entropy=SeededEntropy(5))
        assert len(set(kept.ask_many(np.full(300, 0.5)).tolist())) == 1
        redrawn = SparseVector(watcher, budget=1e9, clip=1e-2, entropy=SeededEntropy(5))
        assert not redrawn.ask_many(np.full(300, 0.5)).all()

    def test_a_threshold_of_its_own_moves_a_question(self) -> None:
        svt = SparseVector(SHARP, budget=50.0, resample=False)
        assert svt.ask(0.1, threshold=0.0) is Verdict.ABOVE
        assert svt.ask(0.1, threshold=0.9) is Verdict.BELOW
        assert svt.ask(0.9, threshold=0.1) is Verdict.ABOVE
        assert svt.open_run is not None
        assert svt.open_run[:2] == (1, 2)


class TestClipping:
    def test_it_cuts_the_range_and_the_cost(self) -> None:
        plain, cut = SparseVector(WATCHER, budget=1.0), SparseVector(WATCHER, budget=1.0, clip=(0.3, 0.1))
        assert (cut.watcher.family.lower, cut.watcher.family.upper) == (0.2, 0.6)
        assert cut.watcher.loss(50, 1) < 0.6 * plain.watcher.loss(50, 1)
        cut.ask(0.0)
        cut.renew()
        assert cut.runs[0].epsilon == pytest.approx(cut.watcher.loss(*cut.runs[0][:2]))

    def test_values_beyond_the_clip_count_as_its_end(self) -> None:
        watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.1, sigma_query=0.1)
        svt = SparseVector(watcher, budget=1e3, clip=1e-9, resample=False, entropy=SeededEntropy(8))
        share = svt.ask_many(np.ones(4000)).mean()
        # All questions look alike at ±1e-9, so the answers are those of a value at the threshold itself.
        other = SparseVector(watcher, budget=1e3, clip=1e-9, resample=False, entropy=SeededEntropy(8))
        assert other.ask_many(np.zeros(4000)).mean() == pytest.approx(share, abs=0.01)

    @pytest.mark.parametrize("clip", [-0.1, math.nan, (0.1, -0.1), (0.1, 0.2, 0.3), 0.0])
    def test_widths_that_leave_no_range_are_refused(self, clip) -> None:
        with pytest.raises(InvalidParameter):
            SparseVector(WATCHER, budget=1.0, clip=clip)


class TestInput:
    @pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf, "1", [1], [1.0, 2.0], True])
    def test_a_budget_must_be_positive_and_finite(self, budget) -> None:
        with pytest.raises(InvalidParameter, match="budget"):
            SparseVector(WATCHER, budget=budget)

    @pytest.mark.parametrize("threshold", [math.nan, math.inf, "a", [0.1], [0.1, 0.2], True])
    def test_a_threshold_of_its_own_must_be_one_number(self, threshold) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        with pytest.raises(InvalidParameter, match="threshold"):
            svt.ask(0.4, threshold=threshold)
        assert (svt.spent, svt.questions) == (0.0, 0)

    @pytest.mark.parametrize(
        "wrong",
        [
            {},
            {"budget": 1.0, "filter": PureFilter(1.0)},
            {"filter": 1.0},
            {"budget": 1.0, "resample": "no"},
            {"budget": 1.0, "horizon": 0},
            {"budget": 1.0, "horizon": [3]},
            {"budget": 1.0, "clip": ([0.1], 0.2)},
            {"budget": 1.0, "outside": "wrap"},
            {"filter": ZCDPFilter(rho=1.0), "resample": False, "horizon": 9},
        ],
    )
    def test_contradictory_settings_are_refused(self, wrong) -> None:
        with pytest.raises(InvalidParameter):
            SparseVector(WATCHER, **wrong)

    @pytest.mark.parametrize("value", [math.nan, math.inf, 1.5, -0.5, None, "0.5", True])
    def test_a_bad_value_spends_nothing_and_is_not_repeated(self, value) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        for attempt in (lambda: svt.ask(value), lambda: svt.ask_many([0.1, value])):
            with pytest.raises(InvalidData) as refused:
                attempt()
            assert "1.5" not in str(refused.value)
            assert "0.5" not in str(refused.value)
        assert (svt.spent, svt.questions, svt.open_run) == (0.0, 0, None)

    def test_a_bad_value_charges_no_filter_that_is_paid_beforehand(self) -> None:
        svt = SparseVector(WATCHER, filter=ZCDPFilter(rho=1.0), horizon=10)
        with pytest.raises(InvalidData):
            svt.ask(math.nan)
        assert svt.filter.spent == 0.0

    def test_values_outside_may_be_clipped_instead(self) -> None:
        svt = SparseVector(SHARP, budget=10.0, outside="clip")
        assert svt.ask_many([-5.0, 7.0]).tolist() == [False, True]

    def test_exact_values_are_taken_exactly(self) -> None:
        svt = SparseVector(SHARP, budget=10.0, clip=0.3)
        assert svt.ask(Fraction(1, 3)) is Verdict.BELOW
        assert svt.ask_many([Fraction(1, 3), Fraction(9, 10)]).tolist() == [False, True]

    def test_it_is_not_copied_or_pickled(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        held = PureFilter(1.0).open_run(WATCHER)
        while svt._run is None:
            svt.ask(0.0)
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            for secret in (svt, svt._run, held):
                with pytest.raises(StateRefused):
                    attempt(secret)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_cannot_spend_the_budget_again(self) -> None:
        svt, begun = SparseVector(WATCHER, budget=1.0), SparseVector(WATCHER, budget=1.0)
        begun.ask(0.0)
        child = os.fork()
        if child == 0:
            refused = 0
            for tested in (svt, begun):
                for attempt in (lambda t=tested: t.ask(0.1), lambda t=tested: t.ask_many([0.1]), tested.save):
                    try:
                        attempt()
                    except StateRefused:
                        refused += 1
            os._exit(0 if refused == 6 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_a_seed_marks_the_answers_as_reproducible(self) -> None:
        assert SparseVector(WATCHER, budget=1.0).noise == "private"
        assert SparseVector(WATCHER, budget=1.0, entropy=SeededEntropy(1)).noise == "reproducible"


class TestRuns:
    def test_switching_charges_the_open_run_and_keeps_the_budget(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        svt.ask_many([0.0, 0.0])
        svt.switch(MONOTONE, clip=0.2)
        assert svt.spent == pytest.approx(WATCHER.loss(2, 0), rel=1e-9)
        svt.ask(0.0)
        assert svt.spent > WATCHER.loss(2, 0)
        assert svt.filter.limit == 1.0

    def test_a_refused_switch_changes_nothing(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        svt.ask(0.0)
        with pytest.raises(InvalidParameter):
            svt.switch(WATCHER, clip=-1.0)
        assert svt.open_run is not None
        assert svt.watcher is WATCHER

    def test_a_horizon_ends_runs_without_a_top(self) -> None:
        svt = SparseVector(SHARP, budget=50.0, horizon=5)
        svt.ask_many(np.zeros(12))
        for _ in range(3):
            svt.ask(0.0)
        assert [run.below for run in svt.runs] == [5, 5, 5]

    def test_a_run_left_over_by_an_interruption_is_ended_before_the_next_question(self) -> None:
        svt = SparseVector(WATCHER, filter=ZCDPFilter(rho=5.0), horizon=30)
        while not svt.open_run:
            svt.ask(0.0)
        ended = len(svt.runs)
        # What an interruption right after the answer leaves behind: a ⊤ counted, the run not yet ended.
        svt._run._answered(1, 1)
        svt.ask(0.0)
        assert svt.runs[ended][:2] == (1, 1)
        assert svt.open_run is None or svt.open_run[:2] == (1, 0)

    def test_closing_charges_and_refuses(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)
        svt.ask(0.0)
        svt.close()
        assert svt.spent == pytest.approx(WATCHER.loss(1, 0), rel=1e-9)
        assert not svt.open
        with pytest.raises(StateRefused):
            svt.ask(0.0)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: RepairedReportingFilter(epsilon=3.0, delta=1e-4),
            lambda: AdvancedFilter(epsilon=3.0, delta=1e-4),
            lambda: RenyiFilter(order=8.0, tau=3.0),
            lambda: ZCDPFilter(rho=0.5),
            lambda: GaussianFilter(mu=1.0),
            lambda: PureFilter(3.0),
        ],
    )
    def test_every_filter_serves_a_sparse_vector_and_ends_it(self, make) -> None:
        watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.05, sigma_query=0.1)
        svt = SparseVector(watcher, filter=make(), horizon=30)
        verdicts = svt.ask_many(np.tile([0.0, 0.0, 0.0, 1.0], 3000))
        assert 4 < len(verdicts) < 12_000
        assert svt.filter.spent <= svt.filter.limit
        while svt.can_ask:
            svt.ask(1.0)
        with pytest.raises(BudgetExhausted):
            svt.ask(1.0)

    def test_two_sparse_vectors_on_one_filter_cannot_both_hold_it(self) -> None:
        shared = PureFilter(1.0)
        first, second = SparseVector(WATCHER, filter=shared), SparseVector(WATCHER, filter=shared)
        first.ask(0.0)
        with pytest.raises(StateRefused):
            second.ask(0.0)
        first.renew()
        second.ask(0.0)
        second.renew()
        assert shared.spent == pytest.approx(2 * WATCHER.loss(1, 0), rel=1e-9)

    def test_threads_do_not_overspend(self) -> None:
        svt = SparseVector(WATCHER, budget=0.3)

        def hammer() -> None:
            try:
                while True:
                    svt.ask(0.05)
            except BudgetExhausted:
                pass

        workers = [threading.Thread(target=hammer) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        answered = sum(run.below + run.above for run in svt.runs) + (sum(svt.open_run[:2]) if svt.open_run else 0)
        assert answered == svt.questions
        assert svt.spent <= 0.3


class TestStream:
    def test_it_follows_an_async_stream_and_takes_nothing_after_the_end(self) -> None:
        taken = 0

        async def stream():
            nonlocal taken
            while True:
                taken += 1
                yield 0.0
                await asyncio.sleep(0)

        async def follow(svt: SparseVector) -> int:
            return len([verdict async for verdict in svt.watch(stream())])

        svt = SparseVector(WATCHER, budget=0.1)
        answered = asyncio.run(follow(svt))
        assert 0 < answered == taken == svt.questions
        assert not svt.can_ask

    def test_of_two_watchers_of_one_budget_the_loser_ends(self) -> None:
        async def stream():
            while True:
                await asyncio.sleep(0)
                yield 0.0

        async def follow(svt: SparseVector) -> int:
            return len([verdict async for verdict in svt.watch(stream())])

        async def both(svt: SparseVector) -> list[int]:
            return await asyncio.gather(follow(svt), follow(svt), follow(svt))

        svt = SparseVector(WATCHER, budget=0.1)
        assert sum(asyncio.run(both(svt))) == svt.questions
        assert not svt.can_ask

    def test_it_ends_where_the_budget_is_closed_while_it_waits(self) -> None:
        svt = SparseVector(WATCHER, budget=1.0)

        async def stream():
            yield 0.0
            svt.close()
            yield 0.0

        async def follow() -> int:
            return len([verdict async for verdict in svt.watch(stream())])

        assert asyncio.run(follow()) == svt.questions == 1

    def test_it_ends_with_the_stream(self) -> None:
        async def follow() -> list[Verdict]:
            return [verdict async for verdict in SparseVector(SHARP, budget=10.0).watch([0.0, 1.0, 0.0])]

        assert asyncio.run(follow()) == [Verdict.BELOW, Verdict.ABOVE, Verdict.BELOW]


class TestLossTable:
    @given(below=st.integers(0, 200), above=st.integers(0, 1))
    @settings(deadline=None, max_examples=30)
    def test_the_table_holds_the_losses(self, below: int, above: int) -> None:
        table = loss_table(MONOTONE)
        assert table.loss(below, above) == pytest.approx(float(np.asarray(MONOTONE.loss(below, above))), rel=1e-9)

    @given(budget=st.floats(0.001, 0.3))
    @settings(deadline=None, max_examples=40)
    def test_reach_is_the_longest_run_that_fits(self, budget: float) -> None:
        reach = loss_table(WATCHER).reach(0, budget=budget)
        while not reach.final and reach.below < 3000:
            reach = loss_table(WATCHER).reach(reach.below + 1, budget=budget)
        if reach.final:
            m = np.arange(max(reach.below, 0), reach.below + 2, dtype=float)
            worst = np.maximum(WATCHER.loss(m + 1, 0), WATCHER.loss(m, 1))
            assert (worst <= budget).tolist() == ([True, False] if reach.below >= 0 else [False])

    def test_beyond_the_table_the_reach_is_found_by_bisection(self) -> None:
        table = LossTable(WATCHER)
        target = int(1e6)
        budget = max(float(np.asarray(WATCHER.loss(target + 1, 0))), float(np.asarray(WATCHER.loss(target, 1))))
        reach = table.reach(5000, budget=budget)
        while not reach.final:
            reach = table.reach(reach.below + 1, budget=budget)
        assert reach.below == pytest.approx(target, abs=2)

    @pytest.mark.parametrize("watcher", [WATCHER, MONOTONE, LAPLACE, EXPONENTIAL])
    def test_losses_grow_with_every_answer(self, watcher) -> None:
        m, k = np.meshgrid(np.arange(12.0), np.arange(12.0))
        losses = np.asarray(watcher.loss(below=m, above=k))
        assert (np.diff(losses, axis=0) > -1e-12).all()
        assert (np.diff(losses, axis=1) > -1e-12).all()

    def test_memory_does_not_grow_with_the_questions(self) -> None:
        svt = SparseVector(WATCHER, budget=10.0)
        svt.ask_many(np.zeros(1000))
        gc.collect()
        before = sys.getsizeof(svt.__dict__) + sum(sys.getsizeof(value) for value in svt.__dict__.values())
        svt.ask_many(np.zeros(100_000))
        after = sys.getsizeof(svt.__dict__) + sum(sys.getsizeof(value) for value in svt.__dict__.values())
        assert after <= before + 1024
