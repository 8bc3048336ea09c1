"""Whole numbers of a unit: rounded up once, added exactly, and shown on the safe side."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidParameter
from dpselect.ledger import Amounts, Total
from dpselect.ledger.amounts import PER_DELTA, PER_EPSILON, promised, shown_down, shown_up, units_up
from dpselect.mechanisms.outcomes import Selection
from dpselect.privacy.loss import Loss

MAKERS = {
    "pure": Total.pure,
    "approximate": lambda limit: Total.approximate(limit, delta=1e-6),
    "zcdp": lambda limit: Total.zcdp(limit, delta=1e-6),
}


@given(value=st.floats(min_value=0.0, max_value=9000.0))
@settings(deadline=None)
def test_costs_are_rounded_up_by_less_than_a_unit(value: float) -> None:
    units = units_up(value, PER_EPSILON)
    assert Fraction(value) <= Fraction(units, PER_EPSILON) < Fraction(value) + Fraction(1, PER_EPSILON)


@given(units=st.integers(min_value=0, max_value=2**63 - 1))
@settings(deadline=None)
def test_what_is_shown_as_spent_is_not_below_and_as_left_not_above(units: int) -> None:
    for per_one in (PER_EPSILON, PER_DELTA):
        assert Fraction(shown_down(units, per_one)) <= Fraction(units, per_one) <= Fraction(shown_up(units, per_one))


@pytest.mark.parametrize("total", [0.1, 0.3, 1.1, 2.0, 9000.0, 1e-12])
def test_a_total_is_the_decimal_number_it_is_written_as(total: float) -> None:
    assert Fraction(promised("total", total, PER_EPSILON), PER_EPSILON) == Fraction(repr(total))
    assert Total.pure(total).limit == total


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e5, 1e-20, "1", None, [1.0]])
def test_a_total_that_is_none_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(InvalidParameter):
        MAKERS[kind](value)


def test_costs_come_in_the_unit_of_the_total_or_as_losses() -> None:
    selection = Selection(index=1, loss=Loss(epsilon=0.5))
    assert Total.pure(1.0).price(selection) == Amounts(epsilon=PER_EPSILON // 2)
    assert Total.zcdp(1.0, delta=1e-6).price(0.125) == Amounts(rho=PER_EPSILON // 8)
    assert Total.zcdp(1.0, delta=1e-6).price(Loss(epsilon=0.5)) == Amounts(rho=PER_EPSILON // 8)
    with pytest.raises(InvalidParameter, match="delta"):
        Total.pure(1.0).price(Loss(epsilon=0.1, delta=1e-9))
    with pytest.raises(InvalidParameter, match="rho"):
        Total.zcdp(1.0, delta=1e-6).price(Loss(epsilon=0.1, delta=1e-9))


def test_a_total_promises_an_epsilon_at_a_delta() -> None:
    assert Total.pure(1.0).epsilon() == 1.0
    assert Total.approximate(1.0, delta=1e-6).epsilon(delta=1e-7) == math.inf
    assert 1.0 < Total.zcdp(0.1, delta=1e-6).epsilon(delta=1e-6) < 10.0


@pytest.mark.parametrize("kind", MAKERS)
def test_its_document_brings_it_back(kind: str) -> None:
    total = MAKERS[kind](0.3)
    assert Total.from_document(json.loads(json.dumps(total.document())), total.amounts) == total
