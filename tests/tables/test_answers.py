"""What an answer carries, what it hides, and what only the curator is told."""

from __future__ import annotations

import math
from datetime import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dpselect.errors import InvalidParameter
from dpselect.tables import Calendar, CuratorReport, Question, bounded_query, open_source, series_query

DAYS = Calendar("2013-01-01", "2013-01-03")


def ask(**changes) -> Question:
    return Question(**{"user": "user", "time": "at", "value": "kwh", "cap": 10, "grid": 100, "population": 4} | changes)


def table(*rows) -> pa.Table:
    users, at, kwh = zip(*rows, strict=True)
    return pa.table({"user": users, "at": pa.array(at, pa.timestamp("us")), "kwh": pa.array(kwh, pa.float64())})


def day(number: int) -> datetime:
    return datetime(2013, 1, number, 12)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("changes", "upper", "delta", "unit"),
    [
        ({"measure": "mean"}, 1, Fraction(1, 4), 10),
        ({"measure": "sum"}, 40, Fraction(10), 1),
        ({"measure": "count", "cap": None}, 4, Fraction(1), 1),
    ],
)
def test_the_family_says_what_the_measure_promises(changes, upper, delta, unit, adjacency):
    question = ask(**changes, adjacency=adjacency)
    family = question.family
    assert (family.lower, family.upper) == (0, upper)
    assert delta <= Fraction(family.sensitivity) <= delta * Fraction(1 + 1e-12)
    assert family.monotone is (adjacency == "add-remove")
    assert question.natural_unit == unit


def test_counts_need_no_breath_for_rounding():
    assert ask(measure="count", cap=None).family.sensitivity == 1.0


def test_the_family_does_not_depend_on_the_data():
    empty = pa.table(
        {"user": pa.array([], pa.string()), "at": pa.array([], pa.date32()), "kwh": pa.array([], pa.float64())}
    )
    answer = bounded_query(empty, ask(), DAYS)
    assert answer.family == ask().family
    assert answer.totals == (0, 0, 0)
    assert answer.labels == DAYS.labels


def test_values_are_the_exact_fractions_written_as_doubles():
    answer = bounded_query(table(("a", day(1), 1.23), ("b", day(1), 4.0), ("b", day(3), 99.0)), ask(), DAYS)
    assert answer.totals == (52, 0, 100)
    assert answer.exact_values == (Fraction(52, 400), Fraction(0), Fraction(1, 4))
    assert answer.values.tolist() == [0.13, 0.0, 0.25]
    assert answer.query_at(2.5) == 0.25


def test_showing_an_answer_shows_no_value():
    answer = bounded_query(table(("a", day(1), 1.23)), ask(), DAYS)
    assert "123" not in repr(answer)
    assert "withheld" in str(answer)


def test_the_curator_is_told_what_was_left_out_and_that_it_is_sensitive():
    rows = table(
        ("a", day(1), 1.0),
        ("a", day(1), 1.0),  # a duplicate
        ("a", day(2), -4.0),  # negative
        ("b", day(1), 12.0),  # above the cap
        (None, day(1), 1.0),  # nobody's
        ("", day(1), 1.0),  # nobody's
        ("b", None, 1.0),  # no time
        ("b", day(9), 1.0),  # outside
        ("b", day(1), None),
        ("b", day(1), math.nan),
        ("b", day(1), math.inf),
        *((f"extra {number}", day(3), 10.0) for number in range(5)),
    )
    report = bounded_query(rows, ask(), DAYS).curator_report
    assert report == CuratorReport(
        rows=16,
        without_user=2,
        without_candidate=1,
        outside_candidates=1,
        without_reading=3,
        used=9,
        negative=1,
        above_cap=1,
        duplicates=1,
        users=7,
        contributions=8,
        contributions_at_cap=6,
        totals_cut=1,
    )
    assert "sensitive: for the curator only" in repr(report)
    assert report.lines()[0] == "sensitive: for the curator only"


def test_more_persons_than_the_population_cut_the_total():
    crowd = table(*((f"user {number}", day(2), 50.0) for number in range(9)))
    answer = bounded_query(crowd, ask(), DAYS)
    assert answer.totals == (0, 400, 0)
    assert answer.values.max() == answer.family.upper == 1.0


def test_a_wide_table_and_its_long_form_give_one_report():
    wide = pa.table({"user": ["a", "b"], "2013-01-01": [1.0, 30.0], "2013-01-02": [None, -1.0]})
    question = Question(user="user", shape="wide", cap=10, grid=100, population=4)
    report = bounded_query(wide, question, DAYS).curator_report
    assert (report.rows, report.used, report.without_reading, report.negative) == (4, 3, 1, 1)


def test_progress_goes_from_nothing_to_all():
    shares: list[float] = []
    bounded_query(table(("a", day(1), 1.0)), ask(), DAYS, progress=shares.append)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    polars = open_source(table(("a", day(1), 1.0)), backend="polars")
    bounded_query(polars, ask(), DAYS, progress=shares.append)
    assert shares[-2:] == [0.0, 1.0]


def test_a_series_is_a_share_of_the_public_maximum_exactly_whatever_the_order():
    numbers = [0.1, 1e16, -1e16, 0.2, 5.0]
    for order in (numbers, numbers[::-1]):
        days = pa.table({"day": ["2013-01-01"] * 5, "trips": order})
        answer = series_query(days, time="day", value="trips", candidates=DAYS, maximum=10, population=10)
        assert answer.exact_values[0] == (Fraction(0.1) + Fraction(0.2) + 5) / 10
        assert answer.exact_values[1:] == (0, 0)


def test_a_series_is_cut_to_its_range():
    days = pa.table({"day": ["2013-01-01", "2013-01-02", "2013-01-03", "1999-01-01", "x"], "n": [50, -5, 7, 1, 1]})
    answer = series_query(days, time="day", value="n", candidates=DAYS, maximum=10, population=10)
    assert answer.values.tolist() == [1.0, 0.0, 0.7]
    assert answer.natural_unit == 10
    assert answer.curator_report.outside_candidates == 1
    assert answer.curator_report.totals_cut == 1


def test_the_curator_declares_what_one_person_can_change():
    days = pa.table({"day": ["2013-01-01"], "n": [5]})

    def declared(**how):
        return series_query(days, time="day", value="n", candidates=DAYS, maximum=100, **how).family

    assert np.isclose(declared(population=50).sensitivity, 1 / 50, rtol=1e-12)
    assert Fraction(declared(population=50).sensitivity) >= Fraction(1, 50)
    assert np.isclose(declared(sensitivity=3).sensitivity, 0.03, rtol=1e-12)
    assert not declared(population=50).monotone
    assert declared(population=50, monotone=True).monotone
    for wrong in ({}, {"population": 5, "sensitivity": 1}, {"population": 0}, {"sensitivity": -1}):
        with pytest.raises(InvalidParameter):
            declared(**wrong)
    with pytest.raises(InvalidParameter, match="a Calendar"):
        series_query(days, time="day", value="n", candidates=["a"], maximum=1, population=1)
    with pytest.raises(InvalidParameter, match="maximum must be positive"):
        series_query(days, time="day", value="n", candidates=DAYS, maximum=0, population=1)


@pytest.mark.parametrize(("kind", "first"), [(pa.float64(), 2**53), (pa.float32(), 2**24)])
def test_people_whose_numbers_may_have_merged_as_floats_are_counted_for_the_curator(kind, first) -> None:
    at = pa.array([day(1)] * 2, pa.timestamp("us"))

    def merged(number: float) -> int:
        users = pa.array([number, 1.0], pa.float64()).cast(kind)
        rows = pa.table({"user": users, "at": at, "kwh": pa.array([1.0, 2.0])})
        answer = bounded_query(open_source(rows), ask(), DAYS)
        assert answer.totals[0] == 30
        return answer.curator_report.merged

    assert [merged(number) for number in (first - 1, first, -first, 1 - first)] == [0, 1, 1, 0]
