"""What is printed and does not hold: it fails where we say it does, and it cannot be used by mistake.

The published filter passes the contract of all filters but for its promise: it counts as it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.composition import test_attacks, test_filters, test_soundness
from tests.composition.conftest import ForcedEntropy
from tests.composition.test_filters import FAMILY
from tests.composition.test_filters import (
    test_a_filter_s_own_methods_refuse_what_they_cannot_count as test_its_methods_refuse_what_they_cannot_count,  # noqa: F401
)

from dpselect.composition import Filter, SparseVector
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.mechanisms.classical import LaplaceNoisyMax
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.privacy.conversions import ORDERS, renyi_to_approximate, renyi_to_probabilistic
from dpselect.privacy.zhu_wang import log_negative_moment
from lebensold2024.as_printed import ACKNOWLEDGEMENT, PublishedReportingFilter, zhu_wang_renyi_as_published

pytestmark = pytest.mark.slow


def published(epsilon: Any = 1.0, *, delta: float = 1e-5, run_epsilon: float | None = None) -> PublishedReportingFilter:
    return PublishedReportingFilter(epsilon=epsilon, delta=delta, acknowledge=ACKNOWLEDGEMENT, run_epsilon=run_epsilon)


@pytest.fixture
def fresh() -> Filter:
    return published()


class TestContract(test_filters.TestContract):
    def with_limit(self, fresh: Filter) -> tuple[str, Callable[[Any], object]]:
        return "epsilon", published

    @pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf])
    def test_a_budget_that_is_not_positive_and_finite_is_refused(self, limit: float) -> None:
        with pytest.raises(InvalidParameter):
            published(limit)

    def test_a_state_that_cannot_be_is_refused(self, fresh: Filter) -> None:
        fresh.charge(0.01)
        good = fresh.state()
        for name in good:
            # Not None: a run_epsilon may be that.
            for value in (-1.0, math.nan, math.inf, "x", "-0x5", [], {}, True, 10**400):
                with pytest.raises(StateRefused):
                    type(fresh).from_state({**good, name: value})
            with pytest.raises(StateRefused):
                type(fresh).from_state({field: value for field, value in good.items() if field != name})
        for wrong in ({**good, "more": 1}, {}, None, 3, [good]):
            with pytest.raises(StateRefused):
                type(fresh).from_state(wrong)  # type: ignore[arg-type]

    def test_it_promises_more_epsilon_for_less_delta(self, fresh: Filter) -> None:
        """It promises nothing, at any δ."""
        assert [fresh.epsilon(delta=delta) for delta in (0.0, 1e-9, 1e-5, 1e-2)] == [math.inf] * 4


def test_it_refuses_without_the_acknowledgement() -> None:
    with pytest.raises(TypeError):
        PublishedReportingFilter(epsilon=1.0, delta=1e-5)  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter, match="not private as claimed"):
        PublishedReportingFilter(epsilon=1.0, delta=1e-5, acknowledge="I know")


@pytest.mark.parametrize("what", test_attacks.AFTER_THE_FACT)
def test_it_does_not_take_what_answers_turned_out_to_cost(what: str) -> None:
    tested, cost = published(50.0), test_attacks.AFTER_THE_FACT[what]()
    for attempt in (tested.charge, tested.fits):
        with pytest.raises(InvalidParameter, match=r"known before the release.*SparseVector.*Odometer"):
            attempt(cost)
    assert tested.spent == 0.0


def test_it_takes_a_pure_selection() -> None:
    tested = published(50.0)
    tested.charge(LaplaceNoisyMax(FAMILY, scale=0.1).release([0.1, 0.9]))
    assert tested.spent > 0


def test_it_serves_a_sparse_vector_and_ends_it() -> None:
    watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.05, sigma_query=0.1)
    svt = SparseVector(watcher, filter=published(3.0, delta=1e-4), horizon=30)
    assert 4 < len(svt.ask_many(np.tile([0.0, 0.0, 0.0, 1.0], 3000))) < 12_000
    assert svt.filter.spent <= svt.filter.limit
    while svt.can_ask:
        svt.ask(1.0)
    with pytest.raises(BudgetExhausted):
        svt.ask(1.0)


def test_a_sparse_vector_under_it_is_not_saved() -> None:
    with pytest.raises(StateRefused, match="only the filters of this package"):
        SparseVector(test_filters.WATCHER, filter=published()).state()


def test_it_breaks_its_promise_on_the_counter_example() -> None:
    watcher, claimed = test_soundness.COUNTER_EXAMPLE, test_soundness.CLAIMED_DELTA
    # One run is (ε(⊤), Φ(-3))-pDP: only a ⊥ costs more, and Φ(-3) bounds its probability.
    reserve = float(watcher.loss(below=0, above=1))
    budget = published(delta=claimed, run_epsilon=reserve)
    svt = SparseVector(watcher, filter=budget, entropy=ForcedEntropy([True] * 2000))
    runs = test_soundness.runs_until_exhausted(svt)
    assert runs in (757, 758)
    assert test_soundness.true_delta(runs, epsilon=1.0) > 0.5 > 100 * claimed


def test_the_closed_form_undercovers_its_moment() -> None:
    """THEORY §3: at r = 0 the printed log M_2 is log(1 + 2√3π) = 2.475, the moment's logarithm 2.562."""
    moment = log_negative_moment(2.0, -1 / math.sqrt(3), 0.0)
    assert round(moment, 3) == 2.562
    assert round(math.log(1 + 2 * math.sqrt(3) * math.pi), 3) == 2.475
    setting = {"sensitivity": 0.0, "threshold_gap": 0.0, "sigma_threshold": 1.0, "sigma_query": math.sqrt(3)}
    assert zhu_wang_renyi_as_published(2.0, **setting) < moment / 2


def test_the_two_conversions_of_the_closed_form_are_not_interchangeable() -> None:
    """UCI, σ_X = .09: .0239 (probabilistic) against .0205 (approximate)."""
    setting = {"sensitivity": 1 / 6946, "threshold_gap": 0.575, "sigma_threshold": 0.09}
    curve = zhu_wang_renyi_as_published(ORDERS, sigma_query=0.09 * math.sqrt(3), **setting)
    probabilistic = renyi_to_probabilistic(ORDERS, curve, delta=1 / 6946)
    approximate = renyi_to_approximate(ORDERS, curve, delta=1 / 6946)
    assert (round(probabilistic, 4), round(approximate, 4)) == (0.0239, 0.0205)
