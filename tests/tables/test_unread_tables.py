"""A table of which nothing at all was read is refused to the curator; one good row, or no row, is answered."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Categories, Question, bounded_query, series_query

DAYS = Calendar("2013-01-01", "2013-01-03")
QUESTION = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=4)
FINE = ("a", "2013-01-02", "5")
UNREAD = {
    "decimal commas": (
        [("a", "2013-01-01", "1,5"), ("b", "2013-01-02", "2,5")],
        "no reading in column 'kwh' is a number",
    ),
    "units": ([("a", "2013-01-01", "SECRET kWh")], "no reading in column 'kwh' is a number"),
    "another year": (
        [("a", "2014-01-01", "1"), ("b", "2015-01-01", "2")],
        "lies in the calendar, 2013-01-01 to 2013-01-03",
    ),
    "another format": ([("a", "31/01/2013", "1")], "no time in column 'at' can be read"),
    "zoned text": ([("a", "2013-01-01T10:00Z", "1")], "they carry a time zone; give timezone"),
}


def table(rows) -> pa.Table:
    users, at, kwh = zip(*rows, strict=True)
    return pa.table({"user": users, "at": at, "kwh": pa.array(kwh, pa.string())})


@pytest.mark.parametrize("name", UNREAD)
def test_a_table_of_which_nothing_was_read_is_refused(opened, name):
    rows, said = UNREAD[name]
    with pytest.raises(SourceError) as caught:
        bounded_query(opened(table(rows)), QUESTION, DAYS)
    assert said in str(caught.value)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("name", UNREAD)
def test_one_good_row_is_enough_for_an_answer(opened, name):
    rows = [*UNREAD[name][0], FINE]
    assert bounded_query(opened(table(rows)), QUESTION, DAYS).totals == (0, 5, 0)


@pytest.mark.parametrize("name", UNREAD)
def test_a_series_of_which_nothing_was_read_is_refused(name):
    rows, said = UNREAD[name]
    declared = {"time": "at", "value": "kwh", "candidates": DAYS, "maximum": 10, "population": 10}
    with pytest.raises(SourceError) as caught:
        series_query(table(rows), **declared)
    assert said in str(caught.value)
    assert series_query(table([*rows, FINE]), **declared).values.tolist() == [0.0, 0.5, 0.0]


def test_wide_tables_of_text_without_a_number_are_refused(opened):
    question = Question(user="user", shape="wide", cap=10, grid=10, population=4)
    wide = {"user": ["a", "b"], "2013-01-01": ["1,5", ""], "2013-01-02": ["2,5", None]}
    with pytest.raises(SourceError, match="no reading in the candidates' columns is a number"):
        bounded_query(opened(pa.table(wide)), question, DAYS)
    wide["2013-01-02"] = ["2,5", "3"]
    assert bounded_query(opened(pa.table(wide)), question, DAYS).totals == (0, 3, 0)


def test_categories_of_which_none_is_listed_are_refused(opened):
    question = Question(user="user", category="at", value="kwh", cap=10, grid=10, population=4)
    with pytest.raises(SourceError, match="is of a listed category"):
        bounded_query(opened(table([FINE])), question, Categories(["gas", "oil"]))


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "2013-01-01", None), ("b", "2013-01-01", "")],
        [("a", None, "1"), ("b", "", "1")],
        [("", "2013-01-01", "1"), (None, "2013-01-01", "1")],
        [("a", "2013-01-01", "-5")],
    ],
    ids=["no readings", "no times", "no persons", "negative readings"],
)
def test_what_is_merely_missing_counts_for_nothing(opened, rows):
    assert bounded_query(opened(table(rows)), QUESTION, DAYS).totals == (0, 0, 0)


def test_readable_tables_are_not_looked_at_twice(monkeypatch):
    """The second look is a pass over all rows, for tables of which no row counted."""
    from dpselect.tables import answer

    monkeypatch.setattr(answer, "refuse_unread_table", lambda *_: pytest.fail("looked again"))
    assert bounded_query(table([FINE]), QUESTION, DAYS).totals == (0, 5, 0)


@pytest.mark.parametrize("large", [2.0**53, -(2.0**53)])
def test_persons_whose_numbers_may_have_merged_are_counted_and_told_to_the_curator(opened, large):
    """As pandas reads whole numbers in a column with a gap; 2^53 and 2^53 + 1 are one double."""
    rows = {"user": [large, 1.0, None, math.nan], "at": ["2013-01-02"] * 4, "kwh": [1.0, 5.0, 1.0, 1.0]}
    answer = bounded_query(opened(pa.table(rows)), QUESTION, DAYS)
    assert answer.totals == (0, 6, 0)
    assert (answer.curator_report.merged, answer.curator_report.used) == (1, 2)
    rows["user"][0] /= 2
    assert bounded_query(opened(pa.table(rows)), QUESTION, DAYS).curator_report.merged == 0


def test_whole_numbers_beside_a_gap_count_as_pandas_reads_them():
    """Four persons, of whom doubles make two."""
    pandas = pytest.importorskip("pandas")
    whole = [2**60 + number for number in (0, 1, 2**10, 2**10 + 1)]
    rows = {"user": [*whole, None], "at": ["2013-01-02"] * 5, "kwh": [1.0] * 5}
    frame = pandas.DataFrame(rows)
    assert frame["user"].nunique() == 2
    answer = bounded_query(frame, QUESTION, DAYS)
    assert (answer.curator_report.users, answer.curator_report.merged) == (2, 4)
    exact = pandas.DataFrame(rows | {"user": pandas.array(rows["user"], dtype="Int64")})
    assert bounded_query(exact, QUESTION, DAYS).curator_report.users == 4
