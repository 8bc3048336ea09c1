"""Every way in, and one line for every way that is barred."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from dpselect.errors import DPSelectError, InvalidParameter, SourceError
from dpselect.tables import Calendar, Categories, Question, bounded_query, open_source, series_query
from dpselect.tables.rows import usable_rows

ROWS = {"user": ["a", "b", "b"], "at": ["2013-01-01", "2013-01-01", "2013-01-02"], "kwh": [1.0, 2.5, 30.0]}
QUESTION = Question(user="user", time="at", value="kwh", cap=10, grid=10, population=4)
DAYS = Calendar("2013-01-01", "2013-01-03")
TOTALS = (4, 10, 0)  # 1.0 -> 1, 2.5 -> 3 (half a step up), 30 -> the cap


@pytest.fixture
def csv_file(tmp_path):
    path = tmp_path / "readings.csv"
    pa.csv.write_csv(pa.table(ROWS), path)
    return path


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, lambda rows: pd.DataFrame(rows).astype({"user": "category"})],
)
def test_objects_in_memory_are_opened(make, backend):
    assert bounded_query(open_source(make(ROWS), backend=backend), QUESTION, DAYS).totals == TOTALS


def test_frames_with_nanoseconds_and_zones_are_opened():
    frame = pd.DataFrame(ROWS)
    frame["at"] = pd.to_datetime(frame["at"]).dt.tz_localize("Europe/London")
    london = Calendar("2013-01-01", "2013-01-03", timezone="Europe/London")
    assert bounded_query(frame, QUESTION, london).totals == TOTALS


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_files_patterns_folders_and_compressed_files_are_opened(csv_file, backend):
    packed = csv_file.parent / "packed" / "readings.csv.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(csv_file.read_bytes()))
    for data in (csv_file, str(csv_file), str(csv_file.parent / "*.csv"), packed, [csv_file]):
        assert bounded_query(open_source(data, backend=backend), QUESTION, DAYS).totals == TOTALS


def test_a_table_of_ibis_is_taken_as_it_is(csv_file):
    table = open_source(csv_file)
    assert open_source(table) is table
    assert isinstance(table, ibis.Table)


def test_databases_are_opened_by_url(tmp_path):
    path = tmp_path / "readings.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE readings ("user" TEXT, "at" DATE, kwh DECIMAL(9, 3))')
        connection.execute("INSERT INTO readings VALUES ('a', '2013-01-01', 1), ('b', '2013-01-01', 2.5)")
        connection.execute("INSERT INTO readings VALUES ('b', '2013-01-02', 30)")
    assert bounded_query(open_source(f"duckdb://{path}", table="readings"), QUESTION, DAYS).totals == TOTALS
    with pytest.raises(SourceError, match="no table 'reading'"):
        open_source(f"duckdb://{path}", table="reading")
    with pytest.raises(SourceError, match="needs the name of a table"):
        open_source(f"duckdb://{path}")
    with pytest.raises(SourceError, match="no database file"):
        open_source(f"duckdb://{path}2", table="readings")
    assert not (tmp_path / "readings.duckdb2").exists()


def test_sqlite_speaks_the_same_integers(tmp_path):
    import sqlite3

    path = tmp_path / "readings.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE readings (user TEXT, at TEXT, kwh REAL)")
        connection.executemany("INSERT INTO readings VALUES (?, ?, ?)", list(zip(*ROWS.values(), strict=True)))
    connection.close()
    assert bounded_query(open_source(f"sqlite://{path}", table="readings"), QUESTION, DAYS).totals == TOTALS


@pytest.mark.parametrize(
    ("url", "engine"),
    [("postgres://me:SECRET@host/db", "postgres"), ("postgresql://host/db", "postgres"), ("mysql://host/db", "mysql")],
)
def test_a_database_without_its_driver_says_what_to_install(url, engine):
    """Where the driver is there, the server is not."""
    with pytest.raises(SourceError) as caught:
        open_source(url, table="readings")
    said = one_line(caught.value)
    assert f"not installed: ibis-framework[{engine}]" in said or "no server answers there" in said
    assert "SECRET" not in said
    assert "None" not in said


def without_driver(failure: ImportError, monkeypatch) -> str:
    """What is said where the import of MySQL's driver fails, wrapped as Ibis wraps it."""

    def connect(*_, **__):
        try:
            raise failure
        except ImportError as cause:
            raise ImportError("Failed to import the mysql backend due to missing dependencies.\n") from cause

    monkeypatch.setattr("ibis.connect", connect)
    with pytest.raises(SourceError) as caught:
        open_source("mysql://me:SECRET@host/db", table="readings")
    assert "SECRET" not in str(caught.value)
    return one_line(caught.value)


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (ModuleNotFoundError("No module named 'MySQLdb'", name="MySQLdb"), "not installed"),
        (ImportError("libmariadb.so.3: cannot open shared object file"), "damaged or not installed"),
    ],
)
def test_a_driver_that_cannot_be_imported_is_named(failure, state, monkeypatch):
    said = without_driver(failure, monkeypatch)
    assert said.endswith(f"needs a package that is {state}: ibis-framework[mysql]")
    assert "memory" not in said


@pytest.mark.parametrize(
    "words", ["libmariadb.so.3: failed to map segment from shared object", "x.so: Cannot allocate memory"]
)
def test_a_driver_that_finds_no_memory_says_so(words, monkeypatch):
    said = without_driver(ImportError(words), monkeypatch)
    assert "failed: out of memory" in said
    assert "installed" not in said


def one_line(error: DPSelectError) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    assert len(text) < 220
    return text


def ask(**changes) -> Question:
    return Question(**{"user": "user", "time": "at", "value": "kwh", "cap": 10, "population": 4} | changes)


@pytest.mark.parametrize(
    ("act", "kind", "says"),
    [
        (lambda f: open_source("nowhere/*.csv"), SourceError, "no file matches"),
        (lambda f: open_source(f, backend="excel"), InvalidParameter, "backend must be one of duckdb, polars, spark"),
        (lambda f: open_source(3.5), SourceError, "cannot open a float"),
        (lambda f: open_source("oracle9://x", table="t"), SourceError, "no engine of Ibis"),
        (lambda f: open_source(f, table="t"), InvalidParameter, "table must be left out"),
        (lambda f: bounded_query(f, ask(user="meter"), DAYS), SourceError, "no column 'meter' among its 3"),
        (lambda f: bounded_query(f, ask(time="user"), DAYS), SourceError, "no time in column 'user' can be read"),
        (lambda f: bounded_query(f, ask(time_format="%d.%m.%Y"), DAYS), SourceError, "or give time_format"),
        (lambda f: bounded_query(f, ask(time_format="%j"), DAYS), InvalidParameter, "made of %Y %m %d"),
        (lambda f: bounded_query(f, ask(), Categories(["a"])), InvalidParameter, "needs a Calendar"),
        (lambda f: bounded_query(f, ask(), ["2013-01-01"]), InvalidParameter, "a Calendar or Categories"),
        (lambda f: bounded_query(f, ask(time=None, category="at"), DAYS), InvalidParameter, "needs Categories"),
        (
            lambda f: bounded_query(f, Question(user="user", shape="wide", cap=1, population=2), DAYS),
            SourceError,
            "no column of the wide table",
        ),
        (lambda f: ask(cap=0), InvalidParameter, "cap must be positive; got 0"),
        (lambda f: ask(cap=-2.5), InvalidParameter, "cap must be positive; got -2.5"),
        (lambda f: ask(cap=float("nan")), InvalidParameter, "cap must be a finite number"),
        (lambda f: ask(cap=3.141592653589793e-20), InvalidParameter, "fewer digits"),
        (lambda f: ask(population=0), InvalidParameter, "population must be a whole number from 1"),
        (lambda f: ask(population=2.5), InvalidParameter, "population must be a whole number from 1"),
        (lambda f: ask(grid=2**31), InvalidParameter, "grid must be a whole number"),
        (lambda f: ask(measure="median"), InvalidParameter, "measure must be one of mean, sum, count"),
        (lambda f: ask(measure="count"), InvalidParameter, "cap must be left out"),
        (lambda f: ask(value=None), InvalidParameter, "value must be the name of the column"),
        (lambda f: ask(category="x"), InvalidParameter, "give either time or category"),
        (lambda f: Calendar("2013-02-01", "2013-01-01"), InvalidParameter, "the calendar is empty"),
        (lambda f: Calendar("2013-02-30", "2013-03-01"), InvalidParameter, "start must be a date"),
        (lambda f: Calendar("2013-01-01", "2013-03-01", every="year"), InvalidParameter, "every must be one of"),
        (lambda f: Calendar("2013-01-01", "2013-03-01", timezone="Mars"), InvalidParameter, "a known zone"),
        (lambda f: Calendar("1000-01-01", "9000-01-01", every="hour"), InvalidParameter, "at most 10,000,000"),
        (lambda f: Categories([]), InvalidParameter, "at least one category"),
        (lambda f: Categories(["a", "a"]), InvalidParameter, "without repeats"),
        (lambda f: Categories("abc"), InvalidParameter, "not one text"),
    ],
)
def test_bad_input_gets_one_line_that_says_what_to_change(act, kind, says, csv_file):
    with pytest.raises(kind) as caught:
        act(csv_file)
    assert says in one_line(caught.value)


def test_files_that_cannot_be_read_get_one_line(tmp_path):
    cases = {
        "broken.parquet": b"not parquet",
        "broken.csv.gz": b"not gzip",
        "empty.csv": b"",
        "strange.xlsx": b"PK",
        "binary.csv": b"\xff\xfe\x00secret",
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        for backend in ("duckdb", "polars"):
            with pytest.raises(SourceError) as caught:
                bounded_query(open_source(tmp_path / name, backend=backend), QUESTION, DAYS)
            assert "secret" not in one_line(caught.value)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_a_file_without_a_header_does_not_give_its_first_row_away(tmp_path, backend):
    path = tmp_path / "headless.csv"
    for row in ("SECRET,2013-01-01,5", "SECRET;2013-01-01;5", "SECRET,SECRET,5", "SECRET"):
        path.write_text(f"{row}\n")
        with pytest.raises(SourceError) as caught:
            bounded_query(open_source(path, backend=backend), QUESTION, DAYS)
        assert "SECRET" not in one_line(caught.value)
        assert "2013" not in str(caught.value)
    path.write_text("SECRET,2013-01-01,5\n")
    with pytest.raises(SourceError, match="first line of a CSV file must name the columns"):
        series_query(open_source(path), time="at", value="kwh", candidates=DAYS, maximum=9, population=9)


def test_names_of_columns_are_told_where_they_are_a_schema(tmp_path):
    pa.parquet.write_table(pa.table(ROWS), tmp_path / "readings.parquet")
    for source in (tmp_path / "readings.parquet", pd.DataFrame(ROWS)):
        with pytest.raises(SourceError, match="no column 'meter'; it has user, at, kwh"):
            bounded_query(source, ask(user="meter"), DAYS)


def test_a_wrong_separator_is_guessed_at_without_a_word_of_the_file(tmp_path):
    path = tmp_path / "semicolons.csv"
    path.write_text("user;at;kwh\nSECRET;2013-01-01;1\n")
    with pytest.raises(SourceError, match="the separator looks wrong: give delimiter") as caught:
        bounded_query(path, QUESTION, DAYS)
    assert "kwh" not in one_line(caught.value)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_no_row_decides_whether_a_file_opens(tmp_path, backend, ending):
    """A dry run opens a table, and what it says must not depend on rows."""
    path = tmp_path / f"readings.{ending}"
    for rows in (b"\xff\xfe,2013-01-01,5\n", b"a,b,c,d,e\n", b'"a\n', b""):
        content = b"\xef\xbb\xbfuser,at,kwh\r\n" + rows
        path.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
        table = open_source(path, backend=backend)
        assert tuple(usable_rows(table, QUESTION, DAYS).columns) == ("person", "stamp", "slot", "reading")


def test_files_with_different_headers_are_refused(tmp_path):
    (tmp_path / "1.csv").write_text("user,at,kwh\na,2013-01-01,1\n")
    (tmp_path / "2.csv").write_text("at,user,kwh\n2013-01-01,a,1\n")
    with pytest.raises(SourceError, match="give them one header"):
        open_source(tmp_path)


def test_zoned_times_need_a_calendar_with_a_zone():
    table = pa.table({"user": ["a"], "at": [datetime(2013, 1, 1, tzinfo=UTC)], "kwh": [1.0]})
    with pytest.raises(SourceError, match="give timezone"):
        bounded_query(table, QUESTION, DAYS)


def test_a_column_of_another_kind_is_refused_by_name():
    with pytest.raises(SourceError, match="time column 'at' must hold dates"):
        bounded_query(pa.table({"user": ["a"], "at": [20130101], "kwh": [1.0]}), QUESTION, DAYS)
    with pytest.raises(SourceError, match="value column 'kwh' must hold numbers"):
        bounded_query(pa.table({"user": ["a"], "at": ["2013-01-01"], "kwh": [True]}), QUESTION, DAYS)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_a_row_with_too_many_fields_is_refused_and_not_repeated(tmp_path, backend):
    path = tmp_path / "ragged.csv"
    path.write_text("user,at,kwh\nalice,2013-01-01,1\n" + "secret,2013-01-01,1,9,9,9\n" * 3)
    with pytest.raises(SourceError) as caught:
        bounded_query(open_source(path, backend=backend), QUESTION, DAYS)
    assert "secret" not in one_line(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_rows_cannot_change_how_other_rows_are_read(tmp_path, backend):
    """Separators, headers and types are not guessed from rows, which would give one person power over all."""
    path = tmp_path / "readings.csv"
    odd = ";;;|;;|,2013-01-01,3\n" * 40 + '"quoted, ""name""",2013-01-02,4\n' + "user,at,kwh\n"
    path.write_text("user,at,kwh\na,2013-01-01,1\n" + odd + "007,2013-01-03,2.0\n7,2013-01-03,2\n")
    answer = bounded_query(open_source(path, backend=backend), QUESTION, DAYS)
    assert answer.totals == (1 + 10, 4, 4)


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_another_separator_is_named_by_the_curator(tmp_path, backend):
    path = tmp_path / "readings.csv"
    path.write_text("user;at;kwh\na;2013-01-01;1\n")
    source = open_source(path, backend=backend, delimiter=";")
    assert bounded_query(source, QUESTION, DAYS).totals == (1, 0, 0)


def test_importing_the_room_does_not_import_ibis():
    code = "import sys, dpselect.tables; sys.exit('ibis' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
