"""What a query family promises stays on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpselect.errors import SensitivityClipped
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.release import Grid

ends = st.floats(min_value=-100, max_value=100, allow_nan=False)
widths = st.floats(min_value=1e-9, max_value=50)


@given(lower=ends, width=widths, threshold=ends, below=widths, above=widths)
def test_a_cut_sensitivity_is_never_below_the_true_width(lower, width, threshold, below, above) -> None:
    family = QueryFamily(lower=lower, upper=lower + width, sensitivity=0.999 * width)
    low, high = max(family.lower, threshold - below), min(family.upper, threshold + above)
    if not low < high:
        return
    near = family.near(threshold, below=below, above=above)
    assert (near.lower, near.upper) == (low, high)
    true = min(Fraction(family.sensitivity), Fraction(high) - Fraction(low))
    assert Fraction(near.sensitivity) >= true
    assert near.sensitivity <= math.nextafter(float(true), math.inf)


@pytest.mark.parametrize(("below", "above"), [(0.1, 0.7), (0.2, 0.7), (0.3, 0.6), (0.4, 0.1)])
def test_a_width_that_rounds_down_is_cut_to_the_double_above_it(below: float, above: float) -> None:
    true = Fraction(below) + Fraction(above)
    assert Fraction(below + above) < true, "this width must be one that is rounded down to nearest"
    family = QueryFamily(lower=-1.0, upper=1.0, sensitivity=1.5)
    near = family.near(0.0, below=below, above=above)
    assert (near.lower, near.upper) == (-below, above)
    assert near.sensitivity == math.nextafter(below + above, math.inf)
    assert Fraction(near.sensitivity) > true


def test_a_width_that_rounds_up_is_left_there() -> None:
    assert Fraction(0.3 + 0.1) > Fraction(0.3) + Fraction(0.1)
    family = QueryFamily(lower=-1.0, upper=1.0, sensitivity=1.5)
    assert family.near(0.0, below=0.3, above=0.1).sensitivity == 0.3 + 0.1


@pytest.mark.parametrize(("lower", "upper"), [(-0.1, 0.7), (-0.3, 0.6)])
def test_a_sensitivity_above_the_whole_range_is_cut_to_no_less_than_it(lower: float, upper: float) -> None:
    with pytest.warns(SensitivityClipped):
        family = QueryFamily(lower=lower, upper=upper, sensitivity=5.0)
    assert Fraction(upper - lower) < Fraction(upper) - Fraction(lower) < Fraction(family.sensitivity)
    assert family.near(0.0, below=1.0, above=1.0).sensitivity == family.sensitivity


@pytest.mark.parametrize("sensitivity", [0.001, 0.3, 1 / 3])
def test_a_grid_counts_every_step_that_one_person_can_move_a_value(sensitivity: float) -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=sensitivity)
    grid = Grid.for_release(family, scale=0.1)
    assert grid.in_steps(sensitivity) <= grid.sensitivity(family) < grid.in_steps(sensitivity) + 1
