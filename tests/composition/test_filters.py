"""One contract for every filter, and what is special to each."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.composition.members import in_memory, limit_name
from tests.mechanisms.output_law import transcript_probability
from tests.privacy_loss import least_delta

from dpselect.composition import (
    AdvancedFilter,
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    RepairedReportingFilter,
    ZCDPFilter,
)
from dpselect.composition.costs import pure_price, renyi_price
from dpselect.composition.filter import RunTerms
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.run import Verdict
from dpselect.mechanisms.selection import Selection
from dpselect.privacy.conversions import pure_to_gaussian
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.3, sigma_threshold=0.1, sigma_query=0.2)

FILTERS = in_memory()


#: More releases than any filter of limit 1 lets through here.
MANY = 2000
#: One question of it is a coin that one person moves as far as its price says, almost.
COIN = GaussianAboveThreshold(
    QueryFamily(lower=0.475, upper=0.525, sensitivity=0.05), threshold=0.5, sigma_threshold=0.5, sigma_query=1.0
)


def coin(value: float) -> list[float]:
    """Chances of ⊥ and ⊤ for one question about this value."""
    noise = {"threshold": COIN.level, "scale_threshold": 0.5, "scale_query": 1.0}
    return [transcript_probability([value], [verdict], **noise) for verdict in Verdict]


@pytest.fixture(params=FILTERS)
def fresh(request: pytest.FixtureRequest) -> Filter:
    return FILTERS[request.param](1.0)


class TestContract:
    def test_a_fresh_filter_has_spent_nothing(self, fresh: Filter) -> None:
        assert fresh.spent == 0.0
        assert fresh.remaining == fresh.limit == 1.0
        assert fresh.fits(0.0)

    def test_it_charges_what_fits_and_nothing_else(self, fresh: Filter) -> None:
        for _ in range(250):
            before = fresh.spent, fresh.remaining, fresh.state()
            if fresh.fits(0.07):
                fresh.charge(0.07)
                assert fresh.spent > before[0]
                assert fresh.remaining < before[1]
            else:
                with pytest.raises(BudgetExhausted) as refused:
                    fresh.charge(0.07)
                assert (fresh.spent, fresh.remaining, fresh.state()) == before
                assert refused.value.spent == before[0]
                assert refused.value.budget == 1.0
                assert refused.value.next_cost == 0.07
            assert fresh.spent <= fresh.limit
        assert not fresh.fits(0.07)

    @pytest.mark.parametrize("cost", [-0.1, math.nan, math.inf, "0.1", None, True])
    def test_a_cost_that_is_no_cost_is_refused_and_not_counted(self, fresh: Filter, cost: Any) -> None:
        before = fresh.state()
        with pytest.raises(InvalidParameter):
            fresh.charge(cost)
        assert fresh.state() == before

    @pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf])
    def test_a_budget_that_is_not_positive_and_finite_is_refused(self, limit: float) -> None:
        for make in FILTERS.values():
            with pytest.raises(InvalidParameter):
                make(limit)

    def test_the_size_of_its_state_does_not_grow(self, fresh: Filter) -> None:
        fresh.charge(1e-9)
        early = len(json.dumps(fresh.state()))
        for _ in range(5000):
            fresh.charge(1e-9)
        assert len(json.dumps(fresh.state())) <= early + 16

    def found_again(self, fresh: Filter) -> Filter:
        """The same filter after a restart."""
        return type(fresh).from_state(json.loads(json.dumps(fresh.state())))

    def test_a_saved_filter_goes_on_where_it_was(self, fresh: Filter) -> None:
        for _ in range(3):
            fresh.charge(0.05)
        again = self.found_again(fresh)
        assert again.state() == fresh.state()
        assert (again.spent, again.remaining, again.limit) == (fresh.spent, fresh.remaining, fresh.limit)
        assert again.epsilon(delta=1e-3) == fresh.epsilon(delta=1e-3)

    def test_an_open_run_holds_the_budget(self, fresh: Filter) -> None:
        held = fresh.open_run(WATCHER, horizon=50)
        with pytest.raises(StateRefused):
            fresh.charge(0.01)
        with pytest.raises(StateRefused):
            fresh.open_run(WATCHER, horizon=50)
        with pytest.raises(StateRefused, match="open run"):
            fresh.state()
        with pytest.raises(InvalidParameter):
            held.settle(-1.0)
        assert held.open
        held.settle(0.02)
        assert not held.open
        fresh.charge(0.01)

    def test_what_a_handler_charges_while_a_run_is_let_in_stays_charged(self, fresh: Filter) -> None:
        """At every line of letting a run in, once, somebody ends that run and charges something else."""
        at, charged, reached = 0, 0, True

        def handler() -> None:
            nonlocal charged
            if fresh._held is not None:
                fresh._held.settle(0.0)
            fresh.charge(1e-4)
            charged += 1

        while reached:
            at, seen, before = at + 1, 0, (fresh.spent, charged)

            def trace(frame: Any, event: str, _: Any, at: int = at) -> Any:
                nonlocal seen
                if not frame.f_globals.get("__name__", "").startswith(
                    ("dpselect.composition", "dpselect.ledger.filter")
                ):
                    return None
                seen += event == "line"
                if event == "line" and seen == at:
                    sys.settrace(None)
                    handler()
                return trace

            sys.settrace(trace)
            try:
                held = fresh.open_run(WATCHER, horizon=2)
            except StateRefused:
                held = None
            finally:
                sys.settrace(None)
            if held is not None:
                held.settle(0.0)
            assert fresh.spent > before[0] or charged == before[1], at
            reached = seen >= at
        assert charged > 10

    def twin(self, fresh: Filter) -> Filter:
        """Another of the same kind, to charge undisturbed."""
        return FILTERS[fresh.name](1.0)

    def test_what_a_handler_charges_during_a_charge_stays_charged(self, fresh: Filter) -> None:
        """At every line of charging, once, something else is charged, as by a signal handler."""
        at, charged, reached, twin = 0, 0, True, self.twin(fresh)
        while reached and fresh.fits(0.008):
            at, seen = at + 1, 0

            def trace(frame: Any, event: str, _: Any, at: int = at) -> Any:
                nonlocal seen, charged
                if not frame.f_globals.get("__name__", "").startswith(
                    ("dpselect.composition", "dpselect.ledger.filter")
                ):
                    return None
                seen += event == "line"
                if event == "line" and seen == at:
                    sys.settrace(None)
                    fresh.charge(0.004)
                    charged += 1
                return trace

            sys.settrace(trace)
            try:
                fresh.charge(0.004)
                charged += 1
            except StateRefused:
                pass
            finally:
                sys.settrace(None)
            reached = seen >= at
        for _ in range(charged):
            twin.charge(0.004)
        assert charged > 10
        assert fresh.spent >= twin.spent * (1 - 1e-12)

    def test_a_run_is_settled_once_and_by_its_own_hold_alone(self, fresh: Filter) -> None:
        first = fresh.open_run(WATCHER, horizon=50)
        first.settle(0.02)
        spent = fresh.spent
        first.settle(0.02)
        assert fresh.spent == spent
        second = fresh.open_run(WATCHER, horizon=50)
        first.settle(0.0)
        assert second.open
        with pytest.raises(StateRefused):
            fresh.charge(0.01)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_cannot_spend_the_budget_again(self, fresh: Filter) -> None:
        child = os.fork()
        if child == 0:
            refused = 0
            for attempt in (lambda: fresh.charge(0.01), lambda: fresh.open_run(WATCHER, horizon=50), fresh.state):
                try:
                    attempt()
                except StateRefused:
                    refused += 1
            os._exit(0 if refused == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        fresh.charge(0.01)

    def test_a_state_that_cannot_be_is_refused(self, fresh: Filter) -> None:
        fresh.charge(0.01)
        good = fresh.state()
        for name in good:
            for value in (None, -1.0, math.nan, math.inf, "x", "-0x5", [], {}, True, 10**400):
                with pytest.raises(StateRefused):
                    type(fresh).from_state({**good, name: value})
            with pytest.raises(StateRefused):
                type(fresh).from_state({field: value for field, value in good.items() if field != name})
        for wrong in ({**good, "more": 1}, {}, None, 3, [good]):
            with pytest.raises(StateRefused):
                type(fresh).from_state(wrong)  # type: ignore[arg-type]

    def with_limit(self, fresh: Filter) -> tuple[str, Callable[[Any], object]]:
        """What the limit of such a filter is called, and how one is made with another."""
        return limit_name(type(fresh)), FILTERS[fresh.name]

    @pytest.mark.parametrize("limit", [[1.0], [], np.ones(2), "1", None, 1 + 0j])
    def test_a_limit_that_is_not_one_number_is_refused(self, fresh: Filter, limit: Any) -> None:
        name, make = self.with_limit(fresh)
        with pytest.raises(InvalidParameter, match=name):
            make(limit)

    def test_a_refused_run_changes_nothing(self, fresh: Filter) -> None:
        while fresh.fits(0.01):
            fresh.charge(0.01)
        before = fresh.state()
        for _ in range(3):
            try:
                fresh.check_run(WATCHER, horizon=50)
            except BudgetExhausted:
                with pytest.raises(BudgetExhausted):
                    fresh.open_run(WATCHER, horizon=50)
        assert fresh.state() == before

    def test_a_copy_of_a_budget_is_refused(self, fresh: Filter) -> None:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(StateRefused):
                attempt(fresh)

    def test_threads_cannot_charge_more_than_the_limit(self, fresh: Filter) -> None:
        def hammer() -> None:
            for _ in range(400):
                with contextlib.suppress(BudgetExhausted):
                    fresh.charge(0.01)

        workers = [threading.Thread(target=hammer) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert fresh.spent <= fresh.limit

    def test_it_promises_more_epsilon_for_less_delta(self, fresh: Filter) -> None:
        figures = [fresh.epsilon(delta=delta) for delta in (0.0, 1e-9, 1e-5, 1e-2)]
        assert figures == sorted(figures, reverse=True)
        assert math.isfinite(figures[-1])

    def test_its_promise_covers_the_randomised_responses_it_lets_through(self, fresh: Filter) -> None:
        """Each costs .05 and tells exactly that much, so the δ they need together is known."""
        asked = 0
        while fresh.fits(Loss(epsilon=0.05)) and asked < MANY:
            fresh.charge(Loss(epsilon=0.05))
            asked += 1
        assert 0 < asked < MANY
        truth = 1.0 / (1.0 + math.exp(-0.05))
        sides = [truth, 1.0 - truth], [1.0 - truth, truth]
        assert least_delta(*sides, epsilon=fresh.epsilon(delta=1e-5), times=asked) <= 1e-5

    def test_its_promise_covers_the_runs_it_lets_through(self, fresh: Filter) -> None:
        """Runs of one question each, all about the worst pair of neighbours."""
        each, runs = float(COIN.epsilon(horizon=1)), 0
        while runs < MANY:
            try:
                held = fresh.open_run(COIN, horizon=1)
            except BudgetExhausted:
                break
            if held.allowed < each:
                held.settle(0.0)
                break
            held.settle(each)
            runs += 1
            assert fresh.spent <= fresh.limit
        assert 0 < runs < MANY
        assert least_delta(coin(0.525), coin(0.475), epsilon=fresh.epsilon(delta=1e-5), times=runs) <= 1e-5


COVERED = (
    "test_its_promise_covers_the_randomised_responses_it_lets_through",
    "test_its_promise_covers_the_runs_it_lets_through",
)


@pytest.mark.parametrize("claim", COVERED)
@pytest.mark.parametrize("kind", FILTERS)
def test_four_times_the_budget_that_is_promised_fails_the_contract(kind: str, claim: str) -> None:
    honest, generous = FILTERS[kind](1.0), FILTERS[kind](4.0)
    # A class of its own, so that the promise and the limit it states are those of the honest one.
    said = {"epsilon": lambda _, *, delta=0.0: honest.epsilon(delta=delta), "spent": 0.0}
    generous.__class__ = type("Generous", (type(generous),), said)
    with pytest.raises(AssertionError):
        getattr(TestContract(), claim)(generous)


@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_that_says_yes_to_everything_fails_the_contract(kind: str) -> None:
    for claim in (*COVERED, "test_it_charges_what_fits_and_nothing_else"):
        lenient = FILTERS[kind](1.0)
        yes = {
            "holds": lambda _, books: True,
            "check_run": lambda self, watcher, horizon=None: RunTerms(allowed=math.inf, books=self._books),
        }
        lenient.__class__ = type("Lenient", (type(lenient),), yes)
        with pytest.raises(AssertionError):
            getattr(TestContract(), claim)(lenient)


@pytest.mark.parametrize(
    "odd",
    [None, "x", np.ones(2), np.ones(1), object(), math.nan, -0.5, 1j, FAMILY],
    ids=lambda odd: type(odd).__name__,
)
def test_a_filter_s_own_methods_refuse_what_they_cannot_count(fresh: Filter, odd: Any) -> None:
    fresh.charge(0.5)
    before = fresh._books
    for call in (
        lambda: fresh.add_cost(odd, 0.1),
        lambda: fresh.add_cost(before, odd),
        lambda: fresh.add_run(odd, 0.1),
        lambda: fresh.add_run(before, odd),
        lambda: fresh.charge_lost_run(odd),
        lambda: fresh.holds(odd),
        lambda: fresh.check_run(odd),
        lambda: fresh.check_run(WATCHER, horizon="x" if odd is None else odd),
        lambda: fresh.open_run(odd),
        lambda: type(fresh).from_state(odd),
    ):
        with pytest.raises((InvalidParameter, StateRefused)):
            call()
    assert fresh._books == before


@dataclass
class Sums:
    """A filter whose rule is a plain sum, and the exact rule beside it."""

    make: Any
    exact: Any


ADDING = {
    "pure": Sums(lambda: PureFilter(1.0), lambda costs: sum(map(Fraction, costs)) <= 1),
    "zcdp": Sums(lambda: ZCDPFilter(rho=1.0), lambda costs: sum(map(Fraction, costs)) <= 1),
    "renyi": Sums(lambda: RenyiFilter(order=2.0, tau=1.0), lambda costs: sum(map(Fraction, costs)) <= 1),
    "gaussian": Sums(lambda: GaussianFilter(mu=1.0), lambda costs: sum(Fraction(c) ** 2 for c in costs) <= 1),
}


@pytest.mark.parametrize("kind", ADDING)
@given(costs=st.lists(st.floats(min_value=0.0, max_value=1.5), max_size=30))
@settings(deadline=None, max_examples=60)
def test_sums_decide_exactly_as_rational_arithmetic_does(kind: str, costs: list[float]) -> None:
    tested, passed = ADDING[kind].make(), []
    for cost in costs:
        assert tested.fits(cost) == ADDING[kind].exact([*passed, cost])
        if tested.fits(cost):
            tested.charge(cost)
            passed.append(cost)
    assert Fraction(tested.spent) >= (sum(map(Fraction, passed)) if kind != "gaussian" else Fraction(0))
    if kind == "gaussian":
        assert Fraction(tested.spent) ** 2 >= sum(Fraction(c) ** 2 for c in passed)
        assert tested.fits(tested.remaining)
    else:
        assert tested.fits(tested.remaining)
        assert not tested.fits(math.nextafter(tested.remaining, math.inf) + 1e-15)


@given(costs=st.lists(st.floats(min_value=0.0, max_value=0.4), max_size=30))
@settings(deadline=None, max_examples=60)
def test_the_advanced_filter_never_passes_what_the_formula_refuses(costs: list[float]) -> None:
    tested, squares, added = AdvancedFilter(epsilon=1.0, delta=1e-5, slack=4e-6), mpmath.mpf(0), Fraction(0)
    for cost in costs:
        bigger = squares + mpmath.mpf(cost) ** 2
        total = mpmath.sqrt(2 * mpmath.log(1 / mpmath.mpf(4e-6)) * bigger) + bigger / 2
        simple = added + Fraction(cost)
        if tested.fits(cost):
            assert total <= 1 or simple <= 1
            tested.charge(cost)
            squares, added = bigger, simple
            assert tested.spent >= total or Fraction(tested.spent) >= simple
        else:
            assert total > 1 - 1e-12
            assert simple > 1


def test_the_advanced_filter_counts_deltas_too() -> None:
    tested = AdvancedFilter(epsilon=1.0, delta=1e-5)
    tested.charge(Loss(epsilon=0.01, delta=4e-6))
    assert not tested.fits(Loss(epsilon=0.01, delta=4e-6))
    assert tested.fits(0.01)


def test_a_run_delta_that_never_fits_is_refused() -> None:
    for run_delta in (0.5, 1e-5, 6e-6):
        with pytest.raises(InvalidParameter, match="run_delta"):
            AdvancedFilter(epsilon=1.0, delta=1e-5, run_delta=run_delta)
    AdvancedFilter(epsilon=1.0, delta=1e-5, run_delta=4e-6)
    all_slack = AdvancedFilter(epsilon=1.0, delta=1e-5, slack=1e-5)
    assert AdvancedFilter.from_state(all_slack.state()).state() == all_slack.state()


@pytest.mark.parametrize("kind", ["pure", "repaired"])
def test_realised_losses_take_pure_releases_and_no_approximate_delta(kind: str) -> None:
    tested = FILTERS[kind](1.0)
    tested.charge(Loss(epsilon=0.25))
    tested.charge(Selection(index=1, loss=Loss(epsilon=0.25)))
    assert tested.spent == 0.5
    for cost in (Loss(epsilon=0.1, delta=1e-9), Selection(index=1, loss=Loss(epsilon=0.1, delta=1e-9))):
        with pytest.raises(InvalidParameter, match="delta"):
            tested.charge(cost)
    with pytest.raises(BudgetExhausted) as refused:
        tested.charge(Selection(index=1, loss=Loss(epsilon=0.75)))
    assert refused.value.next_cost == 0.75
    assert tested.spent == 0.5


def test_a_cost_is_read_once() -> None:
    class Falling:
        """Says less each time it is asked."""

        epsilon = 0.5

        @property
        def loss(self) -> Loss:
            self.epsilon /= 2
            return Loss(epsilon=self.epsilon)

    tested, cost = PureFilter(0.3), Falling()
    tested.charge(cost)
    # What was compared with the limit is what was counted, and nothing was read after it.
    assert tested.spent == cost.epsilon


def test_an_order_of_one_or_less_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="order"):
        RenyiFilter(order=1.0, tau=1.0)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 1.9, 2.1, 10.0, 29.0, 31.0, 500.0])
def test_pure_loss_as_gaussian_is_rounded_up_and_close(epsilon: float) -> None:
    with mpmath.workdps(400):
        kink = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        found = pure_to_gaussian(epsilon)
        # Φ(-μ/2) at most the kink: the Gaussian curve lies below the pure one.
        assert mpmath.ncdf(-mpmath.mpf(found) / 2) <= kink
        if epsilon <= 30:
            assert mpmath.ncdf(-mpmath.mpf(found * (1 - 1e-10)) / 2) > kink


def test_runs_paid_beforehand_need_a_horizon_unless_their_price_has_none() -> None:
    with pytest.raises(InvalidParameter, match="horizon"):
        ZCDPFilter(rho=1.0).open_run(WATCHER)
    laplace = LaplaceAboveThreshold(FAMILY, threshold=0.3, scale_threshold=0.1, scale_query=0.2)
    zcdp = ZCDPFilter(rho=1.0)
    zcdp.open_run(laplace)
    assert zcdp.spent >= laplace.epsilon() ** 2 / 2
    renyi = RenyiFilter(order=4.0, tau=5.0)
    renyi.open_run(WATCHER)
    assert renyi.spent == renyi_price(WATCHER, 4.0, None) > renyi_price(WATCHER, 4.0, 20)


def test_a_run_costs_a_declared_filter_its_price_whatever_it_answers() -> None:
    gaussian = GaussianFilter(mu=1.0)
    held = gaussian.open_run(WATCHER, horizon=10)
    paid = gaussian.spent
    held.settle(1e-6)
    assert gaussian.spent == paid >= pure_to_gaussian(pure_price(WATCHER, 10))


def test_the_repaired_filter_charges_the_chance_of_overshooting() -> None:
    loose = RepairedReportingFilter(epsilon=1.0, delta=0.5)
    tight = RepairedReportingFilter(epsilon=0.1, delta=0.5)
    for tested in (loose, tight):
        tested.open_run(WATCHER)
    assert 0 < loose.spent_delta < tight.spent_delta < 0.5
    affordable = int(np.sum(np.asarray(WATCHER.loss(np.arange(2000.0), 1)) <= 0.1))
    # Simulated: the chance that the first `affordable` answers to the lowest query are all ⊥.
    random = np.random.default_rng(7)
    threshold = 0.3 + 0.1 * random.standard_normal(4000)
    silent = (0.2 * random.standard_normal((affordable, 4000)) < threshold).all(axis=0).mean()
    assert tight.spent_delta == pytest.approx(silent, abs=0.03)


def test_the_repaired_filter_refuses_laplace_runs_and_says_what_to_use() -> None:
    laplace = LaplaceAboveThreshold(FAMILY, threshold=0.3, scale_threshold=0.1, scale_query=0.2)
    with pytest.raises(InvalidParameter, match="PureFilter"):
        RepairedReportingFilter(epsilon=1.0, delta=0.5).open_run(laplace)


PICKER = GaussianNoisyMax(FAMILY, sigma=0.1)


def test_the_zcdp_filter_lets_four_times_as_many_gaussian_selections_through_as_their_pure_cost_would() -> None:
    pure, ranged = PICKER.epsilon(365) ** 2 / 2, PICKER.rho(365)
    assert 3.9 < pure / ranged < 4.0
    allowed = []
    for cost in (pure, ranged):
        budget, number = ZCDPFilter(rho=0.5), 0
        while budget.fits(cost):
            budget.charge(cost)
            number += 1
        allowed.append(number)
    assert allowed == [16, 66]


def test_the_renyi_filter_takes_the_curve_of_a_selection_at_its_order() -> None:
    budget = RenyiFilter(order=8.0, tau=1.0)
    budget.charge(PICKER.renyi(8.0, 365))
    assert budget.spent == PICKER.renyi(8.0, 365) <= 8.0 * PICKER.rho(365)


def test_a_ranking_is_paid_for_before_it_is_made() -> None:
    budget = ZCDPFilter(rho=0.02)
    budget.charge(PICKER.top_rho(10, 3))
    assert budget.spent == PICKER.top([0.5] * 10, 3).rho


@pytest.mark.parametrize("cost", [0.01, 0.02])
def test_many_small_costs_fit_as_often_as_the_formula_says(cost: float) -> None:
    tested, slack = AdvancedFilter(epsilon=1.0, delta=1e-5), mpmath.mpf(0.5e-5)
    fitted = 0
    while tested.fits(cost):
        tested.charge(cost)
        fitted += 1
        squares = fitted * mpmath.mpf(cost) ** 2
        total = mpmath.sqrt(2 * mpmath.log(1 / slack) * squares) + squares / 2
        assert tested.spent >= min(total, fitted * mpmath.mpf(cost)) - 1e-15
    squares = (fitted + 1) * mpmath.mpf(cost) ** 2
    assert total <= 1 < mpmath.sqrt(2 * mpmath.log(1 / slack) * squares) + squares / 2 + 1e-12
