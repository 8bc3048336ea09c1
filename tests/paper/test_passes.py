"""Simulated passes obey the mechanism's law; their costs and their stops are those of the library's own filters."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from tests.mechanisms.output_law import transcript_probability

from dpselect.composition import RepairedReportingFilter, SparseVector
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold, LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily
from lebensold2024.as_printed import PublishedReportingFilter
from lebensold2024.passes import Passes, f1_scores, run_passes

pytestmark = pytest.mark.slow

VALUES = 0.5 + 0.4 * np.sin(np.arange(60) / 3)


def watch_of(*, monotone: bool = True, sigma: float = 0.1, ratio: float = 1.5) -> GaussianAboveThreshold:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3, monotone=monotone)
    return GaussianAboveThreshold(family, threshold=0.7, sigma_threshold=sigma, sigma_query=ratio * sigma)


def sparse_vector(watch: GaussianAboveThreshold, *, budget: float, seed: int, resample: bool) -> SparseVector:
    return SparseVector(watch, budget=budget, resample=resample, entropy=SeededEntropy(seed))


def answers_of(watch: AboveThreshold, values: ArrayLike, *, passes: int = 40_000, fresh: bool = True) -> np.ndarray:
    generator = np.random.default_rng(1)
    return run_passes([watch], values=np.array(values), passes=passes, fresh=fresh, generator=generator)[0].verdicts


def asked(svt: SparseVector) -> np.ndarray:
    """Answers one by one, so that the noise drawn does not depend on the budget; shorter where that ended."""
    found = []
    for value in VALUES.tolist():
        try:
            found.append(svt.ask(value) is Verdict.ABOVE)
        except BudgetExhausted:
            break
    return np.array(found)


@pytest.mark.parametrize("resample", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_costs_are_those_of_the_sparse_vector(seed: int, resample: bool) -> None:
    watch = watch_of(monotone=bool(seed % 2))
    free = sparse_vector(watch, budget=1e6, seed=seed, resample=resample)
    verdicts = asked(free)
    costs = Passes(watch, verdicts[:, None], fresh=resample).costs()
    assert costs.spent[0] == pytest.approx(free.spent, rel=1e-9)
    # With just the budget said to be needed the same noise gives the same answers; with less it stops early.
    enough = sparse_vector(watch, budget=costs.needed[0] * (1 + 1e-9), seed=seed, resample=resample)
    assert np.array_equal(asked(enough), verdicts)
    short = sparse_vector(watch, budget=costs.needed[0] * (1 - 1e-6), seed=seed, resample=resample)
    assert len(asked(short)) < len(VALUES)


@given(st.lists(st.booleans(), min_size=1, max_size=40))
@settings(deadline=None, max_examples=40)
def test_the_spend_of_the_last_day_is_the_final_cost(answers: list[bool]) -> None:
    verdicts = np.array(answers)[:, None]
    watch = watch_of(monotone=False)
    passes = Passes(watch, verdicts)
    spent, costs = passes.spent(), passes.costs()
    assert spent[-1, 0] == pytest.approx(costs.spent[0], rel=1e-9)
    assert passes.runs()[-1, 0] == sum(answers) + (not answers[-1])
    assert (np.diff(spent[:, 0]) >= -1e-12).all()
    assert costs.needed[0] >= costs.spent[0] * (1 - 1e-12)


@pytest.mark.parametrize("fresh", [True, False])
def test_passes_follow_the_exact_law_of_answers(fresh: bool) -> None:
    watch, values, passes = watch_of(sigma=0.2), np.array([0.6, 0.9, 0.5]), 40_000
    found = answers_of(watch, values, passes=passes, fresh=fresh)
    noise = {"threshold": 0.7, "scale_threshold": 0.2, "scale_query": 0.3}
    quiet = transcript_probability(values, [Verdict.BELOW] * 3, **noise)
    loud = transcript_probability(values, [Verdict.ABOVE] * 3, **noise)
    if fresh:
        loud = math.prod(transcript_probability(values[[day]], [Verdict.ABOVE], **noise) for day in range(3))
    for probability, share in ((quiet, (~found).all(axis=0).mean()), (loud, found.all(axis=0).mean())):
        assert abs(share - probability) < 5 * math.sqrt(probability * (1 - probability) / passes)


def test_a_kept_threshold_does_not_follow_the_law_of_fresh_ones() -> None:
    watch, values, passes = watch_of(sigma=0.2), np.array([0.6, 0.9, 0.5]), 40_000
    kept = answers_of(watch, values, passes=passes, fresh=False)
    noise = {"threshold": 0.7, "scale_threshold": 0.2, "scale_query": 0.3}
    independent = math.prod(transcript_probability(values[[day]], [Verdict.ABOVE], **noise) for day in range(3))
    assert kept.all(axis=0).mean() - independent > 20 * math.sqrt(independent / passes)


def test_clipped_queries_are_compared_clipped() -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3).near(0.7, below=0.05, above=0.05)
    watch = GaussianAboveThreshold(family, threshold=0.7, sigma_threshold=0.2, sigma_query=0.2)
    found = answers_of(watch, [0.0]).mean()
    at_edge = transcript_probability([0.65], [Verdict.ABOVE], threshold=0.7, scale_threshold=0.2, scale_query=0.2)
    assert abs(found - at_edge) < 5 * math.sqrt(at_edge / 40_000)


def test_f1_is_one_for_the_truth_and_zero_for_silence() -> None:
    truth = np.array([True, False, True])
    assert f1_scores(np.stack([truth, ~truth], axis=1), truth=truth).tolist() == [1.0, 0.0]
    assert f1_scores(np.zeros((3, 1), dtype=np.bool_), truth=truth).tolist() == [0.0]
    # What comes after the stop counts as ⊥.
    stopped = np.array([truth, truth]).T
    assert f1_scores(stopped, truth=truth, days=np.array([3, 2])).tolist() == pytest.approx([1.0, 2 / 3])


@pytest.mark.parametrize("mechanism", [LaplaceAboveThreshold, ExponentialAboveThreshold])
def test_classical_noise_follows_the_mechanisms_own_law(mechanism: type[LaplaceAboveThreshold]) -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3)
    watch = mechanism(family, threshold=0.5, scale_threshold=0.1, scale_query=0.2)
    found = answers_of(watch, [0.45])
    share = float(found.mean())
    own = np.mean([watch.start(entropy=SeededEntropy(seed)).ask(0.45) is Verdict.ABOVE for seed in range(4_000)])
    assert abs(share - own) < 5 * math.sqrt(0.25 / 4_000)


def test_a_cap_ends_silent_runs_and_each_is_charged() -> None:
    watch, silent = watch_of(), np.zeros((10, 1), dtype=np.bool_)
    passes = Passes(watch, silent, cap=4)
    spent, rounds = passes.spent(), passes.runs()
    whole, rest = float(watch.loss(4, 0)), float(watch.loss(2, 0))
    assert spent[-1, 0] == pytest.approx(2 * whole + rest)
    assert rounds[:, 0].tolist() == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


WATCH = GaussianAboveThreshold(
    QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3), threshold=0.6, sigma_threshold=0.1, sigma_query=0.1 * 3**0.5
)
VERDICTS = np.random.default_rng(8).random((300, 6)) < 0.2
PASSES = Passes(WATCH, VERDICTS)


def by_filter(budget: PublishedReportingFilter | RepairedReportingFilter, answers: np.ndarray) -> int:
    """Days answered when runs are opened and settled one by one."""
    day = 0
    while day < len(answers):
        try:
            held = budget.open_run(WATCH, horizon=len(answers) - day)
        except BudgetExhausted:
            return day
        below = 0
        while day < len(answers) and not answers[day]:
            below, day = below + 1, day + 1
        halted = day < len(answers)
        day += halted
        held.settle(float(WATCH.loss(below, int(halted))))
    return day


def test_the_published_rule_stops_where_its_filter_does() -> None:
    found = PASSES.reserve_days(budget=0.6, reserve=0.1)
    for place in range(VERDICTS.shape[1]):
        published = PublishedReportingFilter(
            epsilon=0.6, delta=1e-3, acknowledge="not private as claimed", run_epsilon=0.1
        )
        assert found[place] == by_filter(published, VERDICTS[:, place])
    assert found.max() < len(VERDICTS)


def test_the_repaired_rule_stops_where_its_filter_does() -> None:
    found = PASSES.repaired_days(budget=0.9, delta=1e-2)
    for place in range(VERDICTS.shape[1]):
        assert found[place] == by_filter(RepairedReportingFilter(epsilon=0.9, delta=1e-2), VERDICTS[:, place])
    assert 0 < found.min() < len(VERDICTS)


def test_the_pure_rule_asks_only_what_fits_either_way() -> None:
    budget = 0.5
    found = PASSES.pure_days(budget=budget)
    for place, days in enumerate(found.tolist()):
        spent, below = 0.0, 0
        for day in range(days + 1):
            costlier = max(float(WATCH.loss(below, 1)), float(WATCH.loss(below + 1, 0)))
            assert (spent + costlier <= budget) == (day < days)
            if VERDICTS[day, place]:
                spent, below = spent + float(WATCH.loss(below, 1)), 0
            else:
                below += 1


def test_a_number_of_rounds_ends_after_so_many_tops() -> None:
    days = PASSES.rounds_days(rounds=7)
    assert all(VERDICTS[:day, place].sum() == 7 for place, day in enumerate(days.tolist()))
    assert all(VERDICTS[day - 1, place] for place, day in enumerate(days.tolist()))
    assert (PASSES.tops_days(tops=7) == days).all()
    assert (PASSES.tops_days(tops=300) == len(VERDICTS)).all()


@pytest.mark.parametrize("rule", [PASSES.pure_days, partial(PASSES.reserve_days, reserve=0.05)])
def test_more_budget_never_answers_less(rule: object) -> None:
    found = [rule(budget=budget) for budget in (0.1, 0.3, 1.0, math.inf)]  # type: ignore[operator]
    assert all((low <= high).all() for low, high in itertools.pairwise(found))
    assert (found[-1] == len(VERDICTS)).all()
