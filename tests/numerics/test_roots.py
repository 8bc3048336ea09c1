"""Roots that end on the safe side, and how often the cost is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect import GaussianNoisyMax, QueryFamily
from dpselect.errors import DPSelectError
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
