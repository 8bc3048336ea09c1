"""The odometer adds exactly, rounds up once, and takes anything that states its loss."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.composition import Odometer, SparseVector
from dpselect.errors import InvalidParameter, StateRefused
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.selection import Selection
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss
from dpselect.rounding import downward, in_units, left, round_up, upward

DOUBLES = st.floats(min_value=0.0, max_value=1e300, allow_subnormal=True)


@given(values=st.lists(DOUBLES, max_size=40))
@settings(deadline=None, max_examples=200)
def test_sums_are_the_exact_sum_rounded_up(values: list[float]) -> None:
    truth = sum(map(Fraction, values), Fraction(0))
    shown = round_up(sum(map(in_units, values)))
    if math.isfinite(shown):
        assert Fraction(shown) >= truth
        assert shown == 0.0 or Fraction(math.nextafter(shown, 0.0)) < truth


@given(value=DOUBLES, limit=DOUBLES)
@settings(deadline=None, max_examples=200)
def test_what_is_left_is_rounded_down_and_fits(value: float, limit: float) -> None:
    rest = left(limit, in_units(value))
    assert Fraction(rest) <= max(Fraction(0), Fraction(limit) - Fraction(value))
    assert (in_units(value) + in_units(rest) <= in_units(limit)) == (value <= limit)


@given(value=st.one_of(st.fractions(), st.integers().map(lambda power: Fraction(1, 3) * 8 ** (power % 700))))
@settings(deadline=None, max_examples=200)
def test_a_fraction_is_rounded_to_either_side_by_less_than_one_step(value: Fraction) -> None:
    for number in (value, -value):
        down, up = downward(number), upward(number)
        assert down <= number <= up
        assert up == (down if down == number else math.nextafter(down, math.inf))


def test_a_million_additions_do_not_drift() -> None:
    total = 0
    for _ in range(1_000_000):
        total += in_units(0.1)
    assert total == 1_000_000 * Fraction(0.1) * 2**1074
    # Negative control: plain addition is off by more than a thousand roundings.
    plain = 0.0
    for _ in range(1_000_000):
        plain += 0.1
    assert abs(plain - round_up(total)) > 1000 * math.ulp(1e5)


@dataclass
class HomeMade:
    """A user's own mechanism's output."""

    loss: Loss


def test_it_counts_anything_that_states_its_loss() -> None:
    odometer = Odometer()
    odometer.add(0.25)
    odometer.add(np.float64(0.25))
    odometer.add(Loss(epsilon=0.25, delta=1e-6))
    odometer.add(Selection(index=3, loss=Loss(epsilon=0.25)))
    odometer.add(HomeMade(Loss(epsilon=0.5, delta=1e-6)))
    assert odometer.loss == Loss(epsilon=1.5, delta=2e-6)
    assert odometer.releases == 5


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, "1", None, Loss(epsilon=0.1, delta=1.5), HomeMade(None)])
def test_it_refuses_what_it_cannot_count_and_counts_nothing(cost: object) -> None:
    odometer = Odometer()
    with pytest.raises((InvalidParameter, AttributeError)):
        odometer.add(cost)  # type: ignore[arg-type]
    assert odometer.loss == Loss(epsilon=0.0)
    assert odometer.releases == 0


def test_exact_costs_are_rounded_up() -> None:
    odometer = Odometer()
    odometer.add(Fraction(1, 3))  # type: ignore[arg-type]
    assert Fraction(odometer.loss.epsilon) >= Fraction(1, 3)


def test_an_open_run_is_counted_as_it_goes_and_once() -> None:
    family = QueryFamily(lower=0, upper=100, sensitivity=1)
    run = LaplaceAboveThreshold(family, threshold=50, scale_threshold=1.0, scale_query=2.0).start()
    odometer = Odometer()
    odometer.follow(run)
    odometer.add(0.25)
    seen = [odometer.loss.epsilon]
    for value in (0, 0, 100):
        run.ask(value)
        seen.append(odometer.loss.epsilon)
    assert seen == sorted(seen)
    assert seen[0] == 0.25
    assert seen[-1] == run.loss.epsilon + 0.25
    assert odometer.loss.epsilon == odometer.loss.epsilon == seen[-1]


def test_a_sparse_vector_can_be_followed_next_to_other_releases() -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.1, sigma_query=0.1)
    svt = SparseVector(watcher, budget=1.0)
    odometer = Odometer()
    odometer.follow(svt)
    odometer.add(0.125)
    svt.ask_many([0.1, 0.2, 0.9, 0.1])
    assert odometer.loss.epsilon == pytest.approx(svt.spent + 0.125)
    svt.close()
    assert odometer.loss.epsilon >= svt.spent + 0.125


FAMILY = QueryFamily(lower=0, upper=100, sensitivity=1)
LAPLACE = LaplaceAboveThreshold(FAMILY, threshold=50, scale_threshold=1.0, scale_query=2.0)


@dataclass
class Growing:
    """A user's own run; what it says is set by hand."""

    epsilon: float
    open: bool = True

    @property
    def loss(self) -> Loss:
        return Loss(epsilon=self.epsilon)


def test_a_run_that_is_still_open_is_not_added_as_if_it_were_finished() -> None:
    odometer = Odometer()
    watcher = GaussianAboveThreshold(FAMILY, threshold=50, sigma_threshold=10.0, sigma_query=10.0)
    for run in (LAPLACE.start(), SparseVector(watcher, budget=1.0), Growing(0.5)):
        with pytest.raises(InvalidParameter, match="follow"):
            odometer.add(run)
    assert (odometer.loss.epsilon, odometer.releases) == (0.0, 0)
    finished = LAPLACE.start()
    finished.ask(100)
    odometer.add(finished)
    assert odometer.loss == finished.loss


@pytest.mark.parametrize("first", ["follow", "add"])
@pytest.mark.parametrize("again", ["follow", "add"])
@pytest.mark.parametrize("read_between", [True, False])
def test_one_run_is_counted_once(first: str, again: str, read_between: bool) -> None:
    odometer, run = Odometer(), LAPLACE.start()
    if first == "follow":
        odometer.follow(run)
    run.ask(100)
    if first == "add":
        odometer.add(run)
    if read_between:
        assert odometer.loss == run.loss
    with pytest.raises(InvalidParameter, match="once"):
        getattr(odometer, again)(run)
    assert odometer.loss == run.loss
    assert odometer.releases == 1


def test_a_cost_that_was_paid_does_not_come_back() -> None:
    odometer, run = Odometer(), Growing(1.0)
    odometer.follow(run)
    run.epsilon = 2.0
    assert odometer.loss.epsilon == 2.0
    run.epsilon = 0.25
    assert odometer.loss.epsilon == 2.0
    run.open = False
    assert odometer.loss.epsilon == odometer.loss.epsilon == 2.0


def test_a_run_that_became_infinite_is_shown_as_infinite() -> None:
    odometer, run = Odometer(), Growing(1.0)
    odometer.follow(run)
    odometer.add(0.5)
    run.epsilon = math.inf
    assert odometer.loss.epsilon == math.inf
    assert "inf" in repr(odometer)
    run.epsilon, run.open = 1.0, False
    assert odometer.loss.epsilon == math.inf


def test_an_odometer_is_not_copied() -> None:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StateRefused):
            attempt(Odometer())


@pytest.mark.parametrize("read", [False, True])
def test_what_a_handler_adds_in_between_is_never_lost(read: bool) -> None:
    """At every line of adding a cost, or of reading the total, once, another cost is added."""
    at, reached = 0, True
    while reached:
        at, seen, odometer = at + 1, 0, Odometer()
        family = QueryFamily(lower=0, upper=1, sensitivity=0.01)
        run = LaplaceAboveThreshold(family, threshold=0.5, scale_threshold=1.0, scale_query=1.0).start()
        odometer.follow(run)
        run.ask(0.1)
        run.close()

        def trace(frame: Any, event: str, _: Any, at: int = at, odometer: Odometer = odometer) -> Any:
            nonlocal seen
            if not frame.f_code.co_filename.endswith("odometer.py") or "test_" in frame.f_code.co_filename:
                return None
            seen += event == "line"
            if event == "line" and seen == at:
                sys.settrace(None)
                odometer.add(0.25)
            return trace

        sys.settrace(trace)
        try:
            if read:
                _ = odometer.loss
            else:
                odometer.add(0.5)
        finally:
            sys.settrace(None)
        reached = seen >= at
        expected = run.loss.epsilon + (0.0 if read else 0.5) + (0.25 if reached else 0.0)
        assert odometer.loss.epsilon >= expected, at
    assert at > 10
