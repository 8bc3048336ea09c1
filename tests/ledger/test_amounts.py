"""Whole numbers of a unit: rounded up once, added exactly, and shown on the safe side."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import Dataset, QueryFamily
from dpselect.dataset import WatchRequest
from dpselect.dataset.budget import left_in_words
from dpselect.dataset.kept import KeptWatch
from dpselect.dataset.watch import plan_watch
from dpselect.errors import BudgetExhausted, InvalidParameter
from dpselect.ledger import Amounts, Ledger, Total
from dpselect.ledger.amounts import PER_DELTA, PER_EPSILON, promised, shown_down, shown_up, units_up
from dpselect.mechanisms.selection import Selection
from dpselect.privacy.loss import Loss
from dpselect.rounding import no_more_than

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


@given(digits=st.integers(min_value=1, max_value=15), units=st.integers(min_value=1, max_value=8 * 10**15))
@settings(deadline=None)
def test_what_is_calibrated_to_a_typed_number_is_charged_no_more_than_that_number(digits: int, units: int) -> None:
    typed = Fraction(units // 10 ** (15 - digits), 10**digits)
    if typed:
        for number in (typed, float(typed)):
            as_typed = typed if number is typed else Fraction(repr(number))
            assert Fraction(Total.pure(8.0).price(no_more_than(number)).epsilon, PER_EPSILON) <= as_typed
        assert Total.zcdp(100.0, delta=1e-6).price(Loss(epsilon=no_more_than(typed))).rho <= -(
            -(typed**2) * PER_EPSILON // 2
        )


class TestTenAtOneTenth:
    """Ten questions at 0.1 are answered within a total of 1, and the eleventh is refused: no last digit in the way."""

    TOTALS = (Total.pure(1.0), Total.approximate(1.0, delta=1e-5), Total.zcdp(0.05, delta=1e-6))

    @pytest.fixture(params=TOTALS, ids=str)
    def book(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
        with Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=request.param) as made:
            yield made

    def ten_and_no_more(self, book: Ledger, ask: Callable[[str], object]) -> None:
        for number in range(10):
            ask(str(number))
        assert book.balance().remaining == 0.0
        assert book.balance().spent == book.total.limit
        with pytest.raises(BudgetExhausted):
            ask("one more")
        assert book.verify().holds

    @pytest.mark.parametrize("epsilon", [0.1, Fraction(1, 10)])
    def test_peak(self, book: Ledger, epsilon: float) -> None:
        rows = pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})
        homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=2, ledger=book)
        plan = homes.plan_peak(
            homes.candidates(start="2013-01-01", end="2013-01-03"), epsilon=epsilon, mechanism="permute-and-flip"
        )
        assert plan.ask(anyway=True, key="0").epsilon == 0.1, "and shown as it was typed"
        self.ten_and_no_more(book, lambda key: plan.ask(anyway=True, key=key))

    @pytest.mark.parametrize("book", TOTALS[1:], indirect=True, ids=str)
    def test_a_watch_that_is_charged_as_a_whole(self, book: Ledger) -> None:
        delta = no_more_than(1e-6) if book.total.kind == "approximate" else 0.0
        cost = Loss(epsilon=no_more_than(0.1), delta=delta)
        self.ten_and_no_more(
            book, lambda key: KeptWatch(book, {"verb": "watch"}, cost=cost, key=key, shown_at_once=True)
        )

    def test_a_watch_that_is_charged_what_its_answers_cost_comes_to_no_more(self, book: Ledger) -> None:
        family = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
        plan = plan_watch(family, WatchRequest(threshold=0.5, budget=0.1, noise=(0.05, 0.08)), questions=40)
        for number in range(10):
            watch = plan.start(book=book, key=str(number))
            while watch.can_ask:
                watch.ask(0.9)
            watch.settle(ended=True)
            assert plan.answer(watch).to_dict()["budget"] == 0.1
        assert 0 < book.balance().spent <= book.total.limit

    def test_in_memory(self) -> None:
        rows = pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})
        homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=2, total=1)
        for number in range(11):
            try:
                homes.peak(epsilon=0.1, start="2013-01-01", end="2013-01-03", anyway=True, mechanism="laplace")
            except BudgetExhausted:
                assert number == 10
        assert homes.budget.remaining < 1e-15

    def test_by_hand_a_fraction_is_exact(self, book: Ledger) -> None:
        tenth = Fraction(1, 200) if book.total.kind == "zcdp" else Fraction(1, 10)
        self.ten_and_no_more(book, lambda key: book.ask({"question": 1}, cost=tenth, draw=lambda: "x", key=key))

    def test_by_hand_a_double_is_what_it_is(self, book: Ledger) -> None:
        tenth = 0.005 if book.total.kind == "zcdp" else 0.1
        with pytest.raises(BudgetExhausted):
            self.ten_and_no_more(book, lambda key: book.ask({"question": 1}, cost=tenth, draw=lambda: "x", key=key))
        assert book.balance().anchor.number == 19, "nine of them fitted"


@pytest.mark.parametrize(
    ("total", "cost", "told"),
    [
        (Total.pure(1.0), Loss(epsilon=no_more_than(0.1)), "0.9 of 1 left, 9 more like this"),
        (Total.pure(1.0), Loss(epsilon=0.6), "0.4 of 1 left, no more like this"),
        (
            Total.approximate(1.0, delta=1e-5),
            Loss(epsilon=no_more_than(0.1), delta=no_more_than(5e-6)),
            "0.9 of 1 (δ: 5e-6 of 1e-5) left, 1 more like this",
        ),
        (Total.zcdp(0.05, delta=1e-6), Loss(epsilon=no_more_than(0.1)), "ρ = 0.045 of 0.05 left, 9 more like this"),
    ],
)
def test_what_is_left_is_said_in_one_line(tmp_path: Path, total: Total, cost: Loss, told: str) -> None:
    with Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=total) as book:
        book.ask({"question": 1}, cost=cost, draw=lambda: "x")
        assert left_in_words(book, cost) == told
        assert left_in_words(book, cost, at_most=True) in (told, told.replace("left, ", "left, at least "))
        book.retire()
        assert left_in_words(book, cost) == "nothing left: the data set is retired"
