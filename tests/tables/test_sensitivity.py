"""What one row may do to a total, number by number; what lies at an edge of a calendar, a cycle or a series."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from dpselect.errors import InvalidParameter
from dpselect.tables import Calendar, Categories, Cycle, Question, bounded_query, open_source, series_query
from dpselect.tables.answer import BoundedQuery
from dpselect.tables.question import written_sensitivity

DAYS = Calendar("2013-01-01", "2013-01-03")
NOON = datetime(2013, 1, 2, 12)
every_engine = pytest.mark.parametrize("engine", ["duckdb", "polars"])


def totals(engine: str, rows: list[tuple[Any, Any, Any]], **changes: Any) -> tuple[int, ...]:
    """Totals in hundredths of a cap of 10, for each of three days."""
    users, at, kwh = zip(*rows, strict=True)
    table = pa.table({"user": users, "at": at, "kwh": kwh})
    asked = {"user": "user", "time": "at", "value": "kwh", "cap": 10, "grid": 100, "population": 40} | changes
    candidates = asked.pop("candidates", DAYS)
    return bounded_query(open_source(table, backend=engine), Question(**asked), candidates).totals


@every_engine
@pytest.mark.parametrize(
    ("reading", "steps"),
    [(-5.0, 0), (-0.001, 0), (0.0, 0), (0.04, 0), (0.05, 1), (0.149, 1), (9.96, 100), (10.0, 100), (1e299, 100)],
)
def test_a_reading_is_cut_and_rounded_half_up(engine: str, reading: float, steps: int) -> None:
    assert totals(engine, [("a", NOON, reading)]) == (0, steps, 0)


@every_engine
@pytest.mark.parametrize("reading", [math.inf, -math.inf, math.nan, 1e300])
def test_a_reading_without_end_counts_for_nothing(engine: str, reading: float) -> None:
    assert totals(engine, [("a", NOON, reading), ("b", NOON, 3.0)]) == (0, 30, 0)


@every_engine
def test_a_negative_reading_takes_nothing_from_a_person_s_others(engine: str) -> None:
    assert totals(engine, [("a", NOON, -5.0), ("a", NOON, 7.0)]) == (0, 70, 0)
    assert totals(engine, [("a", NOON, 9.0), ("a", NOON, 9.0)]) == (0, 100, 0)


@every_engine
def test_a_person_s_mean_is_rounded_half_up(engine: str) -> None:
    assert totals(engine, [("a", NOON, 0.1), ("a", NOON, 0.2)], per_user="mean") == (0, 2, 0)
    assert totals(engine, [("a", NOON, 0.1), ("a", NOON, 0.1), ("a", NOON, 0.2)], per_user="mean") == (0, 1, 0)


@every_engine
def test_a_person_s_mean_is_cut_reading_by_reading(engine: str) -> None:
    """One reading far beyond the cap counts as the cap, and not for all of the others."""
    assert totals(engine, [("a", NOON, 30.0), ("a", NOON, 0.0)], per_user="mean") == (0, 50, 0)


@every_engine
def test_of_rows_at_one_time_the_largest_counts_where_that_was_asked(engine: str) -> None:
    rows = [("a", NOON, 2.0), ("a", NOON, 3.0), ("a", NOON + timedelta(hours=1), 1.0)]
    assert totals(engine, rows, duplicates="largest") == (0, 40, 0)
    assert totals(engine, rows) == (0, 60, 0)


@every_engine
def test_zero_and_minus_zero_are_one_person(engine: str) -> None:
    assert totals(engine, [(0.0, NOON, 9.0), (-0.0, NOON, 9.0)]) == (0, 100, 0)


@every_engine
def test_a_number_longer_than_any_finite_one_counts_for_nothing(engine: str) -> None:
    rows = [("a", NOON, "9" * 400), ("b", NOON, "3"), ("c", NOON, "0." + "0" * 300 + "1")]
    assert totals(engine, rows) == (0, 30, 0)


def test_a_population_whose_sums_may_overflow_is_refused() -> None:
    asked = {"user": "u", "time": "t", "value": "v", "cap": 10}
    assert Question(**asked, population=2**62 // 10**6, grid=10**6).most_steps <= 2**62
    for population, grid in ((2**62 // 10**6 + 1, 10**6), (2**62, 2)):
        with pytest.raises(InvalidParameter, match="population"):
            Question(**asked, population=population, grid=grid)


@pytest.mark.parametrize("step", [Fraction(1, 2**10), Fraction(3, 2**10), Fraction(1, 3), Fraction(1, 2**60)])
def test_the_sensitivity_covers_two_roundings_to_doubles(step: Fraction) -> None:
    """Of neighbours that lie one step apart, and of the worst of a few thousand places up to the end."""
    upper = 2**20 * step if step.denominator <= 2**10 else Fraction(2**60) * step
    stated = written_sensitivity(step, step=step, upper=upper)
    most = int(upper / step)
    for place in [*range(1, 2000), *range(most - 2000, most + 1)]:
        moved = Fraction(float(place * step)) - Fraction(float((place - 1) * step))
        assert moved <= stated
    if step in (Fraction(1, 3), Fraction(1, 2**60)):
        assert stated > step


def test_the_sensitivity_of_a_series_says_nothing_of_its_values() -> None:
    families = set()
    for value in ("0.5", "0.1", "3", "0.333333"):
        days = pa.table({"day": ["2013-01-01"], "n": [float(value)]})
        found = series_query(days, time="day", value="n", candidates=DAYS, maximum=8, population=16)
        families.add(found.family)
        assert Fraction(found.family.sensitivity) > Fraction(1, 16)
    assert len(families) == 1


def test_where_the_sensitivity_is_the_range_values_are_cut_to_it() -> None:
    """Beyond the range one person would move a value by its rounding more than Δ, which has no room for that."""
    question = Question(user="u", time="t", value="v", cap="0.1", grid=7, population=1, measure="sum")
    assert question.family.sensitivity == question.family.width
    found = BoundedQuery(labels=("a", "b"), family=question.family, totals=(7, 3), step=question.step, uncut=(50, 3))
    assert list(found.uncut_values) == found.values.tolist()
    assert max(found.uncut_values) <= question.family.upper


def test_a_calendar_ends_with_its_last_moment() -> None:
    hours = Calendar("2013-01-01", "2013-01-02", every="hour")
    assert len(hours) == 48
    assert hours.labels[-1] == "2013-01-02 23:00"
    for every, size in (("day", 2), ("week", 1), ("month", 1)):
        calendar = Calendar("2013-01-01", "2013-01-02", every=every)
        assert len(calendar) == size
        assert calendar.index(calendar.past) is None
        assert calendar.index(calendar.past - timedelta(seconds=1)) == size - 1
        assert calendar.index(calendar.first - timedelta(seconds=1)) is None
        assert calendar.index(calendar.first) == 0
    months = Calendar("2013-01-15", "2013-03-02", every="month")
    assert [months.begins(index).day for index in range(4)] == [1, 1, 1, 1]
    assert [months.index(date(2013, month, 1)) for month in (1, 2, 3, 4)] == [0, 1, 2, None]


def test_a_change_of_the_clock_is_found_to_the_second() -> None:
    changes, offsets = Calendar("2013-01-01", "2013-12-31", timezone="Europe/London").offsets()
    for change, before, after in zip(changes, offsets, offsets[1:], strict=False):
        for seconds, expected in ((-1, before), (0, after)):
            moment = datetime.fromtimestamp(change + seconds, UTC).astimezone(ZoneInfo("Europe/London"))
            assert moment.utcoffset() == timedelta(seconds=expected)


def test_no_category_stands_twice() -> None:
    for names in (["tea", "tea"], ["1", 1]):
        with pytest.raises(InvalidParameter, match="without repeats"):
            Categories(names)


@every_engine
@pytest.mark.parametrize("days", [range(1, 9), range(3, 17)])
def test_a_cycle_holds_the_days_of_its_calendar_and_no_others(engine: str, days: range) -> None:
    """One reading on every day from before the first to after the last, each on the weekday Python says."""
    start, end = date(2013, 1, days[0]), date(2013, 1, days[-1])
    week = Cycle(str(start), str(end), every="weekday")
    rows = [(f"p{day}", datetime(2013, 1, 1) + timedelta(days=day - 1), 1.0) for day in range(1, 25)]
    rows += [("early", datetime(2012, 12, 31), 1.0)]
    expected, number = [0] * 7, [0] * 7
    for day in days:
        expected[date(2013, 1, day).weekday()] += 10
        number[date(2013, 1, day).weekday()] += 1
    assert totals(engine, rows, candidates=week) == tuple(expected)
    assert week.occurrences == tuple(number)


def test_the_value_of_a_weekday_is_the_mean_of_its_days() -> None:
    days = [date(2013, 1, 1) + timedelta(days=day) for day in range(14)]
    table = pa.table({"day": [str(day) for day in days], "n": [10.0] * 14})
    week = Cycle("2013-01-01", "2013-01-14", every="weekday")
    found = series_query(table, time="day", value="n", candidates=week, maximum=20, population=100)
    assert found.values.tolist() == [0.5] * 7


@every_engine
@pytest.mark.parametrize("every", ["day", "hour", "week", "month"])
def test_rows_before_and_after_the_calendar_belong_to_nobody(engine: str, every: Any) -> None:
    calendar = Calendar("2013-02-04", "2013-03-03", every=every)
    first, past = calendar.first, calendar.past
    moments = [first - timedelta(hours=1), first, past - timedelta(hours=1), past, past + timedelta(days=40)]
    rows = [(f"p{place}", moment, 1.0) for place, moment in enumerate(moments)]
    found = totals(engine, rows, candidates=calendar)
    expected = [0] * len(calendar)
    expected[0] += 10
    expected[-1] += 10
    assert found == tuple(expected)


@every_engine
def test_the_curator_is_told_of_rows_before_and_after_the_calendar(engine: str) -> None:
    """The totals leave out the day after the last in any case; these counts must, too."""
    rows = {"u": ["a", "b", "c"], "t": ["2013-01-01", "2013-01-03", "2013-01-04"], "v": [1.0, 1.0, 1.0]}
    question = Question(user="u", time="t", value="v", cap=10, grid=100, population=4)
    calendar = Calendar("2013-01-02", "2013-01-03")
    found = bounded_query(open_source(pa.table(rows), backend=engine), question, calendar)
    assert (found.curator_report.outside_candidates, found.curator_report.used) == (2, 1)


@every_engine
def test_a_week_is_seven_days_from_the_first_date(engine: str) -> None:
    weeks = Calendar("2013-01-02", "2013-01-15", every="week")
    rows = [(f"p{day}", datetime(2013, 1, day), 1.0) for day in (1, 2, 8, 9, 15, 16)]
    assert totals(engine, rows, candidates=weeks) == (20, 20)


@every_engine
def test_zones_east_and_west_and_both_halves_of_a_day_are_told_apart(engine: str) -> None:
    london = Calendar("2013-01-02", "2013-01-03", every="day", timezone="Europe/London")
    rows = [("a", "2013-01-01T23:30:00-02:00", 1.0), ("b", "2013-01-04T01:30:00+02:00", 2.0)]
    assert totals(engine, rows, candidates=london) == (10, 20)
    hours = Calendar("2013-01-02", "2013-01-02", every="hour")
    rows = [("a", "02/01/2013 03:10 PM", 1.0), ("b", "02/01/2013 12:10 AM", 2.0), ("c", "02/01/2013 12:10 PM", 3.0)]
    found = totals(engine, rows, candidates=hours, time_format="%d/%m/%Y %I:%M %p")
    assert {place: total for place, total in enumerate(found) if total} == {15: 10, 0: 20, 12: 30}


@every_engine
def test_the_column_of_persons_is_no_candidate_whatever_it_is_called(engine: str) -> None:
    table = pa.table({"2013-01-01": ["1", "2"], "2013-01-02": [1.0, 2.0], "2013-01-03": [3.0, 4.0]})
    question = Question(user="2013-01-01", shape="wide", cap=10, grid=100, population=4)
    assert bounded_query(open_source(table, backend=engine), question, DAYS).totals == (0, 30, 70)
