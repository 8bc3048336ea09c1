"""Roots that end on the safe side, and how often the cost is asked."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import GaussianAboveThreshold, GaussianNoisyMax, QueryFamily
from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.numerics.roots import smallest_safe


@given(target=st.floats(1e-6, 1e6), start=st.floats(1e-6, 1e6), power=st.floats(0.1, 4.0))
def test_the_answer_meets_the_target_and_hardly_less_does_not(target, start, power):
    answer = smallest_safe(lambda x: x**-power, target, start=start)
    assert answer**-power <= target
    assert (answer * (1 - 1e-9)) ** -power > target


def test_no_point_is_evaluated_twice():
    seen = []

    def cost(x):
        seen.append(x)
        return 1.0 / x

    assert 1.0 / smallest_safe(cost, 0.3, start=50.0) <= 0.3
    assert len(seen) == len(set(seen))


def test_a_peak_narrower_than_doubles_is_refused_at_once():
    """Not after every precision up to the last: calibrating far from such noise would take half a minute."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-12)
    with pytest.raises(DPSelectError, match="too narrow"):
        GaussianNoisyMax(family, sigma=3e-14).certify(candidates=10**12)
    assert GaussianNoisyMax.calibrated(family, epsilon=30, candidates=10**12).epsilon(candidates=10**12) <= 30


def test_a_cost_far_below_the_target_is_no_domain_error():
    """A threshold far above the range: 10⁶ ⊥ cost next to nothing with any noise, and the quotient underflows."""
    family = QueryFamily(lower=0, upper=0.15, sensitivity=1.41e-4)
    with pytest.raises(InvalidParameter, match="no noise that was tried costs more"):
        GaussianAboveThreshold.calibrated(family, threshold=0.562, epsilon=12.85, below=10**6, above=0, ratio=1)


def test_a_subnormal_cost_is_compared():
    assert smallest_safe(lambda x: 5e-324 if x > 1 else 10.0, 5.0, start=3.0) == pytest.approx(1.0)


def test_a_jump_from_infinity_is_found_to_one_percent_in_few_evaluations():
    seen = []

    def cost(x):
        seen.append(x)
        return 1e-200 if x > 0.0123 else math.inf

    assert 0.0123 < smallest_safe(cost, 1.0) < 0.0123 * 1.011
    assert len(seen) < 20


def test_costs_that_diverge_are_still_followed_to_the_target():
    def cost(x):
        return 1.0 / (x - 2.0) if x > 2.0 else math.inf

    answer = smallest_safe(cost, 1e6)
    assert cost(answer) <= 1e6
    assert answer == pytest.approx(2.0 + 1e-6, rel=1e-11)
