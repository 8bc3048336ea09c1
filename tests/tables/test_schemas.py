"""No person's row, object or file decides which columns there are, of which type, or how others are read."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tables.test_routes import write_sheets

from dpselect.errors import InvalidParameter, SourceError
from dpselect.tables import Calendar, Categories, Question, bounded_query, frames, open_source
from dpselect.tables.parquet_files import refuse_other_schemas_elsewhere
from dpselect.tables.whole_files import from_stream

DAYS = Calendar("2013-01-01", "2013-01-03")
NAMES = ["2013-01-01", "2013-01-02", "2013-01-03"]
WIDE = Question(user="meter", shape="wide", cap=10, grid=10, population=9)
OTHERS = [{"meter": name, **dict.fromkeys(NAMES, 5.0)} for name in "abcde"]
NEWCOMERS = [
    {"meter": "z", NAMES[0]: 1.0},
    {NAMES[2]: 1, "meter": "z", "2013-01-04": "x"},
    {"meter": 7, NAMES[0]: "text", NAMES[1]: {"a": [1]}, NAMES[2]: True},
    {"other": 1},
    {},
]


def json_lines(objects) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def check_both(with_newcomer, without) -> None:
    more, fewer = (bounded_query(source, WIDE, DAYS) for source in (with_newcomer, without))
    assert fewer.totals == (25, 25, 25)
    for old, new in zip(fewer.values, more.values, strict=True):
        assert 0 <= Fraction(float(new)) - Fraction(float(old)) <= Fraction(fewer.family.sensitivity)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("newcomer", NEWCOMERS)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_an_object_of_other_names_leaves_the_columns_of_others(newcomer, place, backend, tmp_path):
    more = [*OTHERS[:place], newcomer, *OTHERS[place:]]
    for name, objects in (("more", more), ("fewer", OTHERS)):
        (tmp_path / f"{name}.jsonl").write_text(json_lines(objects))
    check_both(*(open_source(tmp_path / f"{name}.jsonl", backend=backend) for name in ("more", "fewer")))
    check_both(*(from_stream(io.BytesIO(json_lines(objects).encode())) for objects in (more, [*OTHERS])))


@pytest.mark.parametrize("newcomer", NEWCOMERS)
@pytest.mark.parametrize("name", ["0.jsonl", "z.jsonl"])
def test_a_file_of_other_names_leaves_the_columns_of_others(newcomer, name, tmp_path):
    for folder in ("more", "fewer"):
        (tmp_path / folder).mkdir()
        for number, one in enumerate(OTHERS):
            (tmp_path / folder / f"a{number}.jsonl").write_text(json_lines([one]))
    (tmp_path / "more" / name).write_text(json_lines([newcomer]))
    check_both(open_source(tmp_path / "more"), open_source(tmp_path / "fewer"))


READINGS = Question(user="meter", time="at", value="kwh", cap=10, grid=10, population=9)
LINES = [{"meter": name, "at": "2013-01-02", "kwh": 5} for name in "abcde"]
ODD_LINES = [
    b'{"METER": "z", "At": "x", "kwh": 1}',
    b'{"": 1}',
    b'{"meter": "\\ud800", "at": "2013-01-02", "kwh": 1}',
    b'{"\\ud800": 1}',
    b'{"meter": "\xff", "at": "2013-01-02", "kwh": 1}',
    b"[1, 2]",
    b"not JSON",
    b"[" * 100_000,
    b'{"meter": {"a": [1]}, "at": "2013-01-02", "kwh": NaN}',
    b'{"insulin": 1}',
]


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("line", ODD_LINES)
def test_an_odd_line_is_left_out_and_nothing_else(line, backend, tmp_path):
    """Keys that differ in case, texts that are none, and lines that are no objects stopped every question."""
    (tmp_path / "rows.jsonl").write_bytes(json_lines(LINES).encode() + line + b"\n")
    for columns in (None, ("meter", "at", "kwh")):
        table = open_source(tmp_path / "rows.jsonl", backend=backend, columns=columns)
        assert bounded_query(table, READINGS, DAYS).totals == (0, 25, 0)


STATED = ("meter", "at", "insulin")


def excel_file(folder, rows):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed; run make setup")
    write_sheets(folder / "rows.xlsx", {"rows": rows})
    return folder / "rows.xlsx"


def test_stated_columns_of_json_lines_do_not_depend_on_any_row(tmp_path):
    """`--value insulin` ended otherwise where one person's object had that name."""
    found = []
    for name, more in (("fewer", []), ("more", [{"insulin": 1}])):
        (tmp_path / f"{name}.jsonl").write_text(json_lines([*LINES, *more]))
        found.append(open_source(tmp_path / f"{name}.jsonl", columns=STATED).schema())
        found.append(
            open_source(from_stream(io.BytesIO((tmp_path / f"{name}.jsonl").read_bytes())), columns=STATED).schema()
        )
    assert [schema == found[0] for schema in found] == [True] * 4
    assert found[0].names == STATED


def test_opening_reads_no_row(tmp_path, monkeypatch):
    """A file that cannot be read beyond its names opens; what is wrong with its rows is found when they are needed."""
    (tmp_path / "rows.jsonl").write_text("")
    assert open_source(tmp_path / "rows.jsonl", columns=STATED).columns == STATED
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.writestr("rows.csv", 'meter,at,kwh\na,2013-01-01,"1\n')
    assert open_source(tmp_path / "rows.zip").columns == ("meter", "at", "kwh")
    assert open_source(from_stream(io.BytesIO(b'meter,at,kwh\na,"'))).columns == ("meter", "at", "kwh")
    looked = []
    monkeypatch.setattr(frames, "text_of", looked.append)
    objects = pd.DataFrame({"meter": pd.Series([object()], dtype=object), "kwh": [1.0]})
    polar = pl.DataFrame({"meter": pl.Series([object()], dtype=pl.Object), "kwh": [1.0]})
    for frame in (objects, polar, polar.lazy()):
        assert [str(kind) for kind in open_source(frame).schema().types] == ["string", "float64"]
    assert looked == []


@pytest.mark.parametrize("row", [("z", "2013-01-02", 1, "note"), ("", "", "", "", "far"), ("z", "x")])
def test_a_cell_beside_the_named_columns_of_a_sheet_changes_nothing(row, tmp_path):
    """One such cell made the header one of empty names, and the file was refused."""
    rows = [("meter", "at", "kwh"), *(tuple(map(str, line.values())) for line in LINES), tuple(map(str, row))]
    assert open_source(excel_file(tmp_path, rows)).columns == ("meter", "at", "kwh")
    assert bounded_query(excel_file(tmp_path, rows), READINGS, DAYS).totals[1] - 25 in (0, 1)


@pytest.mark.parametrize("columns", ["meter", [], ["a", "A"], ["a", ""], [1], 7])
def test_stated_columns_are_names_that_engines_keep_apart(columns):
    with pytest.raises(InvalidParameter, match="columns must be a list of names"):
        open_source(pa.table({"a": [1]}), columns=columns)


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_wide_lines_are_read_under_the_names_of_the_periods(every, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json_lines(OTHERS))
    answer = bounded_query(tmp_path / "rows.jsonl", WIDE, Calendar("2013-01-01", "2013-01-03", every=every))
    assert answer.totals == ((25, 25, 25) if every == "day" else (50,))


LONG = {"meter": ["a"], "at": ["2013-01-01"], "kwh": [2.0]}
DIFFERENT = {
    "whole numbers": {**LONG, "kwh": [1]},
    "text": {**LONG, "kwh": ["1"]},
    "shorter": {**LONG, "kwh": pa.array([1.0], pa.float32())},
    "a column less": {"meter": ["z"], "at": ["2013-01-01"]},
    "a column more": {**LONG, "note": ["secret"]},
    "another case": {"METER": ["z"], "at": ["2013-01-01"], "kwh": [1.0]},
    "nothing": {**LONG, "kwh": [None]},
}


def parquet_folder(folder, name, columns):
    for number in range(3):
        pq.write_table(pa.table(LONG), folder / f"a{number}.parquet")
    pq.write_table(pa.table(columns), folder / name)
    return folder


@pytest.mark.parametrize("backend", ["duckdb", "polars", "datafusion"])
@pytest.mark.parametrize("name", ["0.parquet", "z.parquet"])
@pytest.mark.parametrize("columns", DIFFERENT.values(), ids=DIFFERENT)
def test_parquet_files_of_different_schemas_are_refused(columns, name, backend, tmp_path):
    """DuckDB took the first file's schema: its whole numbers rounded everybody's readings."""
    parquet_folder(tmp_path, name, columns)
    with pytest.raises(SourceError, match="write them with one schema") as caught:
        open_source(tmp_path, backend=backend)
    assert not any(word in str(caught.value) for word in ("secret", "note", "METER", name))


@pytest.mark.parametrize("name", ["0.parquet", "z.parquet"])
@pytest.mark.parametrize("columns", DIFFERENT.values(), ids=DIFFERENT)
def test_parquet_files_elsewhere_are_held_to_one_schema(columns, name, tmp_path):
    parquet_folder(tmp_path, name, columns)
    with pytest.raises(SourceError, match="write them with one schema"):
        refuse_other_schemas_elsewhere(duckdb.connect(), [f"{tmp_path}/*.parquet"])
    refuse_other_schemas_elsewhere(duckdb.connect(), [f"{tmp_path}/a*.parquet", f"{tmp_path}/a0.parquet"])


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("columns", [{"kwh": [5.0], "at": ["2013-01-02"], "meter": ["z"]}, pa.table(LONG)[:0]])
def test_parquet_files_of_one_schema_are_read_in_any_order(columns, backend, tmp_path):
    question = Question(user="meter", time="at", value="kwh", cap=10, grid=10, population=9)
    answer = bounded_query(open_source(parquet_folder(tmp_path, "0.parquet", columns), backend=backend), question, DAYS)
    assert answer.totals == (6, 5 if isinstance(columns, dict) else 0, 0)


LIST = Categories(["5", "6", "x"])
VISITS = Question(user="visitor", category="page", measure="count", population=51)
PAGES = [(f"p{number}", 5 if number < 40 else 6) for number in range(50)]
SHAPES = {
    "no types": "CREATE TABLE {name} (visitor, page)",
    "one type": "CREATE TABLE {name} (visitor TEXT, page)",
    "view": "CREATE TABLE raw (visitor TEXT, page); "
    "CREATE VIEW {name} AS SELECT visitor || '' AS visitor, coalesce(page, '') AS page FROM raw",
}


def sqlite_file(path, shape, rows, name="t"):
    connection = sqlite3.connect(path)
    connection.executescript(SHAPES[shape].format(name=f'"{name}"'))
    into = "raw" if shape == "view" else name
    connection.executemany(f'INSERT INTO "{into}" VALUES (?, ?)', rows)  # noqa: S608
    connection.commit()
    connection.close()
    return f"sqlite://{path}"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("row", [("z", "x"), ("z", 5), ("z", 5.5), (7, b"x"), (b"z", "6"), ("z", None)])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ["t", "a; b", "main.t"])
def test_no_row_gives_a_column_of_sqlite_its_type(shape, row, first, name, tmp_path):
    """The first row gave it: one text among whole numbers, and nobody else was counted."""
    named = name.removeprefix("main.")
    more = sqlite_file(tmp_path / "more", shape, [row, *PAGES] if first else [*PAGES, row], named)
    fewer = sqlite_file(tmp_path / "fewer", shape, PAGES, named)
    new, old = (bounded_query(open_source(url, table=name), VISITS, LIST).totals for url in (more, fewer))
    assert old == (40, 10, 0)
    assert sum(abs(now - then) for now, then in zip(new, old, strict=True)) <= 1
    assert all(now >= then for now, then in zip(new, old, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_sqlite_without_rows_or_types_is_read_like_any_other(shape, tmp_path):
    source = open_source(sqlite_file(tmp_path / "none", shape, []), table="t")
    assert {str(kind) for kind in source.schema().values()} == {"string"}
    assert bounded_query(source, VISITS, LIST).totals == (0, 0, 0)


def test_readings_without_a_declared_type_are_read_one_by_one(tmp_path):
    question = Question(user="meter", time="at", value="kwh", cap=10, grid=10, population=9)
    for number, first in enumerate([1, 1.0, "1", "1.0"]):
        with sqlite3.connect(tmp_path / f"{number}") as connection:
            connection.execute("CREATE TABLE t (meter, at, kwh)")
            rows = [("z", "2013-01-02", first), ("a", "2013-01-01", 2.5), ("b", "2013-01-01", 4), ("c", "x", "y")]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.close()
        assert bounded_query(open_source(f"sqlite://{tmp_path}/{number}", table="t"), question, DAYS).totals == (
            7,
            1,
            0,
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_ibis_with_types_from_its_first_row_is_refused(shape, tmp_path):
    sqlite_file(tmp_path / "t", shape, PAGES)
    connection = ibis.sqlite.connect(tmp_path / "t")
    table = connection.table("t")
    with pytest.raises(SourceError, match="has no declared type"):
        bounded_query(table.filter(table["visitor"] != "z"), VISITS, LIST)
    connection.disconnect()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_query_with_types_from_its_first_row_is_refused(shape, tmp_path):
    sqlite_file(tmp_path / "t", shape, PAGES)
    connection = ibis.sqlite.connect(tmp_path / "t")
    asked = connection.sql("SELECT visitor, page FROM t")
    for table in (asked, asked.filter(asked["page"] == asked["page"])):
        with pytest.raises(SourceError, match="types of its first row"):
            bounded_query(table, VISITS, LIST)
    connection.disconnect()


WALL, ZONED = datetime(2013, 1, 2, 0, 30), datetime(2013, 1, 2, 0, 30, tzinfo=timezone(timedelta(hours=9)))
IN_ZONE = Calendar("2013-01-01", "2013-01-03", timezone="Asia/Tokyo")


def frame(times):
    count = len(times)
    return pd.DataFrame(
        {"meter": [*map(str, range(count))], "at": pd.Series(times, dtype=object), "kwh": [5.0] * count}
    )


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("others", [[WALL] * 5, [ZONED] * 5, [date(2013, 1, 2)] * 5])
@pytest.mark.parametrize(
    "one", [WALL, ZONED, date(2013, 1, 2), pd.Timestamp(WALL), pd.Timestamp(ZONED), np.datetime64(WALL)]
)
@pytest.mark.parametrize("first", [True, False])
def test_each_time_is_read_by_itself_whatever_stands_beside_it(others, one, first, backend):
    """Arrow reads all as it reads the first; a refusal of mixed columns told that one person's is of another kind."""
    times = [None, one, *others, pd.NaT] if first else [*others, None, one]
    assert bounded_query(open_source(frame(times), backend=backend), READINGS, IN_ZONE).totals == (0, 30, 0)
