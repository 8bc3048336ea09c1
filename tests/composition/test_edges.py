"""At the edge of a budget: one unit more does not fit, and every rounding is upward."""

from __future__ import annotations

import contextlib
import math
import os
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.composition.members import in_memory

from dpselect import GaussianAboveThreshold, QueryFamily
from dpselect.composition import AdvancedFilter, GaussianFilter, PureFilter, SparseVector
from dpselect.composition.filter import HeldRun
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.values import Clipper
from dpselect.privacy.loss import Loss

SMALLEST = math.ulp(0.0)
WATCHER = GaussianAboveThreshold(
    QueryFamily(lower=0, upper=1, sensitivity=1e-3), threshold=0.5, sigma_threshold=0.2, sigma_query=0.35
)
#: So little noise that 0 is ⊥ but for a chance below 1e-60: a run that was asked about it stays open.
CLEAR = GaussianAboveThreshold(
    QueryFamily(lower=0, upper=1, sensitivity=1e-4), threshold=0.5, sigma_threshold=0.02, sigma_query=0.02
)


@pytest.mark.parametrize("kind", [name for name in in_memory() if name != "published"])
def test_nothing_fits_beyond_the_limit_not_even_the_smallest_double(kind: str) -> None:
    tested = in_memory()[kind](1.0)
    tested.charge(1.0)
    assert tested.spent == tested.limit
    assert not tested.fits(SMALLEST)
    assert tested.fits(0.0)


@given(delta=st.floats(1e-12, 0.9), share=st.floats(0.01, 0.99))
def test_the_slack_and_the_deltas_come_to_no_more_than_delta(delta: float, share: float) -> None:
    tested = AdvancedFilter(epsilon=1.0, delta=delta, slack=share * delta)
    room = Fraction(delta) - Fraction(share * delta)
    nearest = float(room)
    beyond = nearest if Fraction(nearest) > room else math.nextafter(nearest, 1.0)
    assert not tested.fits(Loss(epsilon=1e-6, delta=beyond))
    assert tested.fits(Loss(epsilon=1e-6, delta=0.99 * nearest))


@pytest.mark.parametrize("cost", [Fraction(1, 3), Decimal("0.1000000000000000000000001"), Fraction(1, 10)])
def test_a_cost_that_is_no_double_is_counted_in_full(cost: Any) -> None:
    tested = PureFilter(1.0)
    tested.charge(cost)
    assert Fraction(tested.spent) >= Fraction(cost)


@given(costs=st.lists(st.floats(1e-9, 0.3), min_size=1, max_size=8))
def test_what_a_gaussian_filter_says_it_spent_is_no_less_than_the_root(costs: list[float]) -> None:
    tested = GaussianFilter(mu=1.0)
    for cost in costs:
        tested.charge(cost)
    assert Fraction(tested.spent) ** 2 >= sum(Fraction(cost) ** 2 for cost in costs)


def test_the_smallest_mu_beside_another_is_seen() -> None:
    tested = GaussianFilter(mu=1.0)
    tested.charge(0.5)
    tested.charge(SMALLEST)
    assert tested.spent > 0.5


@given(costs=st.lists(st.floats(1e-9, 0.1), min_size=1, max_size=8))
def test_squares_in_quadrature_are_never_below_the_exact_ones(costs: list[float]) -> None:
    tested = AdvancedFilter(epsilon=9.0, delta=1e-5)
    for cost in costs:
        tested.charge(cost)
    units = Fraction(1, 2**1074)
    assert tested._books.squares * units >= sum(Fraction(cost) ** 2 for cost in costs)


def test_exact_values_are_cut_around_the_threshold_like_doubles() -> None:
    door = Clipper(WATCHER, clip=(0.25, 0.125), outside="refuse")
    for given_ in ([0.0, 0.5, 1.0], [Fraction(0), Fraction(1, 2), Fraction(1)], [0, Fraction(1, 2), 1]):
        assert [float(value) for value in door.admit(given_)] == [0.25, 0.5, 0.625]


def test_a_run_beyond_what_it_was_allowed_says_so() -> None:
    """By more than two losses can be rounded apart; a hundredth more would be a question put without room."""
    svt = SparseVector(CLEAR, budget=1.0)
    svt.ask(0.0)
    run = svt._run
    assert run is not None
    truth = run.spent
    assert truth == pytest.approx(float(CLEAR.loss(below=1, above=0)), rel=1e-9)
    for allowed in (truth * (1 - 1e-6), truth * 0.995):
        run.held._allowed = allowed
        assert run.spent >= truth


def test_a_run_without_a_horizon_costs_the_advanced_filter_a_delta() -> None:
    """Its price is exceeded with a probability of ``run_delta``, so that is counted with every run."""
    watcher = GaussianAboveThreshold(
        QueryFamily(lower=0, upper=1, sensitivity=1e-4), threshold=0.5, sigma_threshold=0.1, sigma_query=0.2
    )
    tested = AdvancedFilter(epsilon=50.0, delta=1e-5, run_delta=2e-6)
    for runs in (1, 2):
        tested.open_run(watcher).settle(0.0)
        assert Fraction(tested.spent_delta) == runs * Fraction(2e-6)
    with pytest.raises(BudgetExhausted):
        tested.open_run(watcher)


def test_settling_a_run_that_was_not_let_in_leaves_no_trace() -> None:
    """As where a run could not begin; what is worked out then must not stand for what is charged later."""
    budget = PureFilter(1.0)
    held = HeldRun(budget)
    held.settle(0.125)
    budget.charge(0.25)
    budget._let_in(held, WATCHER, None)
    held.settle(0.5)
    assert budget.spent == 0.75


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused_before_anything_is_counted() -> None:
    svt = SparseVector(CLEAR, budget=1.0)
    svt.ask(0.0)
    spent = svt.spent
    child = os.fork()
    if child == 0:
        for attempt in (lambda: svt.ask(0.0), lambda: svt.ask_many([0.0])):
            with contextlib.suppress(StateRefused):
                attempt()
        os._exit(7 if svt.spent == spent and svt.questions == 1 else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_closed_sparse_vector_says_so_whatever_is_asked_of_it() -> None:
    svt = SparseVector(WATCHER, budget=1.0)
    svt.close()
    assert not svt.can_ask
    for attempt in (lambda: svt.ask(0.1), lambda: svt.ask_many([0.1])):
        with pytest.raises(StateRefused, match="closed"):
            attempt()
