"""Wide tables: one column per candidate, whatever the columns are called and however many there are."""

from __future__ import annotations

import gzip

import ibis
import pyarrow as pa
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Categories, Question, bounded_query, csv_files, open_source
from dpselect.tables.answer import candidate_totals
from dpselect.tables.failures import engine_failures

QUESTION = Question(user="the user", shape="wide", cap=10, grid=10, population=9)
ODD = ['a"b', "c'd", "e;--", "f, g", " h", "COLUMNS(*)", "é", "cell", "person", "stamp"]


def test_columns_may_be_called_anything(engine):
    table = pa.table(
        {"the user": ["a", "b", None], **{name: [1.0, 2.0, 9.0] for name in ODD}, "other": ["x", "y", "z"]}
    )
    answer = bounded_query(open_source(table, backend=engine), QUESTION, Categories(ODD))
    assert answer.totals == (3,) * len(ODD)


@pytest.mark.parametrize("text", [True, False])
def test_columns_of_one_period_are_added_up(engine, text):
    cells = {"2013-01-01": [1.0, 20.0], "2013-01-02": [2.0, None], "2013-02-01": [3.0, 4.0], "2014-01-01": [5.0, 5.0]}
    if text:
        cells = {name: [None if value is None else str(value) for value in values] for name, values in cells.items()}
    table = pa.table({"the user": ["a", "b"], **cells})
    months = Calendar("2013-01", "2013-03", every="month")
    assert bounded_query(open_source(table, backend=engine), QUESTION, months).totals == (13, 7, 0)


def test_columns_of_different_kinds_are_read_each_in_its_way(engine):
    table = pa.table({"the user": ["a"], "x": ["1.5"], "y": [2.0], "z": pa.array([3], pa.int32())})
    assert bounded_query(open_source(table, backend=engine), QUESTION, Categories(["x", "y", "z"])).totals == (2, 2, 3)


def test_a_table_that_was_filtered_first_stays_so():
    table = open_source(pa.table({"the user": ["a", "b"], "x": [1.0, 2.0]}))
    assert bounded_query(table.filter(table["x"] > 1.5), QUESTION, Categories(["x"])).totals == (2,)


HEADER = b'the user,x,"2013-01-01",note,2013-01-02\n'
LINES = {
    "plain": b"a,1,2,n,3\nb,20,-1,n,x\n,5,5,n,5\n",
    "quoted": b'"a\nb",1,"2",n," 3 "\n\n"a, ""c""",1e1,2.5,"",\n',
    "twice": b"a,1,2,n,3\na,1,2,n,3\n",
    "none": b"",
}
BROKEN = {
    "too many": b"a,1,2,n,3\nSECRET,1,2,n,3,4\n",
    "too few": b"a,1,2,n,3\nSECRET,1\n",
    "open quote": b'a,1,2,n,3\nSECRET,1,2,n,"3\n',
    "no text": b"a,1,2,n,3\nSECRET\xff,1,2,n,3\n",
}


@pytest.fixture
def very_wide(monkeypatch):
    """Every file counts as very wide, and is turned long by Python."""
    monkeypatch.setattr(csv_files, "_WIDEST", 1)


@pytest.mark.parametrize(("name", "ending"), [*((name, "csv") for name in LINES), ("quoted", "csv.gz")])
def test_very_wide_files_are_read_like_others(name, ending, tmp_path, very_wide):
    path = tmp_path / f"wide.{ending}"
    path.write_bytes(gzip.compress(HEADER + LINES[name]) if ending == "csv.gz" else HEADER + LINES[name])
    (tmp_path / f"more.{ending}").write_bytes(
        gzip.compress(HEADER + b"z,1,1,n,1\n") if ending == "csv.gz" else HEADER + b"z,1,1,n,1\n"
    )
    days, both = Calendar("2013-01-01", "2013-01-03"), [path, tmp_path / f"more.{ending}"]
    for candidates in (days, Categories(["2013-01-02", "x"]), Calendar("2013-01", "2013-02", every="month")):
        for place in (path, both):
            found, judge = (
                bounded_query(open_source(place, backend=backend), QUESTION, candidates)
                for backend in ("duckdb", "polars")
            )
            assert found.totals == judge.totals
        assert found.curator_report == judge.curator_report


@pytest.mark.parametrize("name", BROKEN)
def test_very_wide_files_that_are_broken_are_refused_by_the_line(name, tmp_path, very_wide):
    path = tmp_path / "wide.csv"
    path.write_bytes(HEADER + BROKEN[name])
    table = open_source(path)
    for _ in range(2):
        with pytest.raises(SourceError, match=r"line 3 of 'wide\.csv'") as caught:
            bounded_query(table, QUESTION, Calendar("2013-01-01", "2013-01-03"))
        assert "SECRET" not in str(caught.value)


def test_a_very_wide_file_can_be_asked_anything_else(tmp_path, very_wide):
    path = tmp_path / "wide.csv"
    path.write_bytes(HEADER + LINES["plain"])
    table = open_source(path)
    with engine_failures("counting"):
        assert table.count().to_pyarrow().as_py() == 3
    asked = Question(user="the user", time="2013-01-02", value="x", cap=10, grid=10, population=9)
    with pytest.raises(SourceError, match="no time in column '2013-01-02' can be read"):
        bounded_query(open_source(path), asked, Calendar("2013-01-01", "2013-01-03"))
    few = table.filter(table["x"] == "1")
    assert bounded_query(few, QUESTION, Calendar("2013-01-01", "2013-01-03")).totals == (2, 3, 0)


def test_a_file_with_thousands_of_columns_names_each_once(tmp_path):
    """Every mention costs: compilers look at each column many times, and took minutes."""
    names = [f"column {number}x" for number in range(2000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["the user", *names]) + "\n" + ",".join(["a", *["1"] * len(names)]) + "\n")
    source = open_source(path)
    sql = ibis.to_sql(candidate_totals(source, QUESTION, Categories(names)))
    assert sql.count(names[7]) == 1
    assert bounded_query(source, QUESTION, Categories(names)).totals == (1,) * len(names)
