"""One row that an engine cannot read: it is left out, and no other row or exit code depends on it."""

from __future__ import annotations

import decimal
import sqlite3
import uuid
from contextlib import closing
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source, series_query

DAYS = Calendar("2013-01-01", "2013-01-03")
#: Everybody else: five persons with a reading of 5 on each day.
OTHERS = [(name, f"2013-01-0{day}", 5) for name in "abcde" for day in (1, 2, 3)]


def ask(**changes) -> Question:
    return Question(**{"user": "user", "time": "at", "value": "kwh", "cap": 10, "grid": 10, "population": 9} | changes)


def check_neighbours(more, fewer) -> None:
    """One person more moves every query up, by Δ at most."""
    assert fewer.totals == (25, 25, 25)
    for new, old in zip(more.values, fewer.values, strict=True):
        assert 0 <= Fraction(float(new)) - Fraction(float(old)) <= Fraction(fewer.family.sensitivity)


IDS = {
    "bytes": b"z",
    "no bytes": b"",
    "bytes that are no text": b"\xff",
    "integer": 7,
    "integer beyond 64 bits": 2**70,
    "float": 7.5,
    "minus zero": -0.0,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "decimal of 60 digits": decimal.Decimal("1" * 60),
    "decimal NaN": decimal.Decimal("sNaN"),
    "UUID": uuid.UUID(int=7),
    "date": date(2013, 1, 1),
    "datetime": datetime(2013, 1, 1),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "NumPy": np.float32(1.5),
    "list": [1, "a"],
    "set": {1},
    "object": object(),
    "boolean": True,
    "blank": " ",
    "empty": "",
    "lone surrogate": "\ud800",
    "NUL": "\0",
    "None": None,
}


@pytest.mark.parametrize("column", ["user", "at", "kwh"])
@pytest.mark.parametrize("odd", IDS.values(), ids=IDS)
def test_an_object_of_any_type_changes_nobody_elses_row(odd, column) -> None:
    """One `bytes` made the column binary, in which rows without an id were one more person: 2Δ."""
    nobody = [("", f"2013-01-0{day}", 10) for day in (1, 2, 3)] + [(None, "2013-01-01", 10)]
    one = {"user": "z", "at": "2013-01-02", "kwh": 1} | {column: odd}

    def frame(rows) -> pd.DataFrame:
        return pd.DataFrame(rows, columns=["user", "at", "kwh"], dtype=object)

    def polar(rows) -> pl.DataFrame:
        columns = zip(*rows, strict=True)
        return pl.DataFrame(
            [pl.Series(name, list(column), dtype=pl.Object) for name, column in zip(one, columns, strict=True)]
        )

    for make in (frame, polar):
        more, fewer = (make([*OTHERS, *nobody, *extra]) for extra in ([tuple(one.values())], []))
        assert open_source(more).schema() == open_source(fewer).schema()
        check_neighbours(bounded_query(more, ask(), DAYS), bounded_query(fewer, ask(), DAYS))


KINDS = {
    "binary": (pa.binary(), [b"a", b"b", b"c", b"d", b"e"], [b""], [b"\xff", b"z"]),
    "string": (pa.string(), [*"abcde"], [""], ["z", " ", "\0"]),
    "large string": (pa.large_string(), [*"abcde"], [""], ["z"]),
    "categorical": (pa.dictionary(pa.int8(), pa.string()), [*"abcde"], [""], ["z"]),
    "double": (pa.float64(), [1.0, 2.0, 3.0, 4.0, 5.0], [float("nan"), float("inf")], [-0.0, 2.0**60]),
    "single": (pa.float32(), [1.0, 2.0, 3.0, 4.0, 5.0], [float("nan")], [0.0, 2.0**30]),
    "integer": (pa.int64(), [1, 2, 3, 4, 5], [], [0, -(2**63)]),
    "unsigned": (pa.uint64(), [1, 2, 3, 4, 5], [], [2**64 - 1]),
    "decimal": (pa.decimal128(38, 2), [*map(decimal.Decimal, range(1, 6))], [], [decimal.Decimal("0.01")]),
    "date": (pa.date32(), [date(2000, 1, day) for day in range(1, 6)], [], [date.max]),
    "timestamp": (pa.timestamp("us"), [datetime(2000, 1, day) for day in range(1, 6)], [], [datetime.max]),
}


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("route", ["memory", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_is_a_person_is_told_by_the_row_alone(kind, route, backend, tmp_path) -> None:
    """For every type of a column: null and what is blank name nobody, beside whoever comes in addition."""
    arrow, persons, blank, newcomers = KINDS[kind]

    def answer(*extra):
        users = [*np.repeat(np.array(persons, dtype=object), 3), *blank, None, *extra]
        at = ["2013-01-01", "2013-01-02", "2013-01-03"] * 5 + ["2013-01-02"] * (len(users) - 15)
        rows = pa.table({"user": pa.array(users, arrow), "at": at, "kwh": [5.0] * len(users)})
        if route == "memory":
            return bounded_query(open_source(rows, backend=backend), ask(), DAYS)
        pq.write_table(rows, tmp_path / "rows.parquet")
        return bounded_query(open_source(tmp_path / "rows.parquet", backend=backend), ask(), DAYS)

    fewer = answer()
    for one in newcomers:
        check_neighbours(answer(one, one), fewer)


def test_a_nested_column_names_nobody_and_is_refused_by_its_type() -> None:
    for users in ([], [[1, 2]]):
        rows = pa.table({"user": pa.array(users, pa.list_(pa.int64())), "at": ["2013-01-01"] * len(users)})
        with pytest.raises(SourceError, match="must name persons by text, numbers, bytes or dates"):
            bounded_query(rows, ask(value=None, cap=None, grid=1, measure="count"), DAYS)


def sqlite_answers(folder, declared: str, odd: tuple, *, question: Question | None = None, others=OTHERS):
    found = []
    for name, rows in (("more", [*others, odd]), ("fewer", others)):
        with closing(sqlite3.connect(folder / name)) as connection:
            connection.execute(f"CREATE TABLE t ({declared})")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
            connection.commit()
        table = open_source(f"sqlite://{folder / name}", table="t")
        found.append(bounded_query(table, question or ask(), DAYS))
        assert found[-1].curator_report.rows == len(rows)
        series = {"time": "at", "value": "kwh", "candidates": DAYS, "maximum": 100, "population": 10}
        assert series_query(table, **series).values[0] == pytest.approx(0.25, abs=0.1)
        table.get_backend().disconnect()
    return found


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "DATETIME", "TEXT", "TIMESTAMPTZ", ""])
@pytest.mark.parametrize(
    "odd",
    ["", "13.01.2013", 20130113, 2456293.5, "10000-01-01", b"\xff", b"2013-01-02", "2013-01-02T24:00", "infinity"],
)
def test_sqlite_reads_every_date_by_itself(kind, odd, tmp_path) -> None:
    """One such value stopped every question; dates alone in a TIMESTAMP column lost the first day."""
    check_neighbours(*sqlite_answers(tmp_path, f"user TEXT, at {kind}, kwh REAL", ("z", odd, 1)))


@pytest.mark.parametrize(
    ("column", "kind"),
    [(0, "TEXT"), (0, "BLOB"), (0, "VARCHAR(9)"), (0, "INTEGER"), (1, "TEXT"), (1, "VARCHAR(9)")]
    + [(2, kind) for kind in ("TEXT", "INTEGER", "REAL", "DECIMAL(9, 2)")],
)
@pytest.mark.parametrize("odd", [b"\xff\xfe", "", "x", b"", 2**62, 9e999, -9e999, "1e400"])
def test_sqlite_reads_every_value_by_itself(kind, odd, column, tmp_path) -> None:
    """A column holds whatever was put into it: bytes that are no text stopped every question."""
    kinds, row = ["TEXT", "TEXT", "REAL"], ["z", "2013-01-02", 1]
    kinds[column], row[column] = kind, odd
    others = [(ord(user), *rest) for user, *rest in OTHERS] if kind == "INTEGER" and column == 0 else OTHERS
    others = [(user.encode(), *rest) for user, *rest in OTHERS] if kind == "BLOB" else others
    check_neighbours(*sqlite_answers(tmp_path, "user {}, at {}, kwh {}".format(*kinds), tuple(row), others=others))


def test_sqlite_counts_no_text_in_a_column_of_numbers(tmp_path) -> None:
    """Neither as a reading of 0, nor as a person."""
    question = ask(measure="count", cap=None, grid=1)
    more, fewer = sqlite_answers(tmp_path, "user TEXT, at DATE, kwh REAL", ("z", "2013-01-02", "x"), question=question)
    assert more.totals == fewer.totals == (5, 5, 5)
    with closing(sqlite3.connect(tmp_path / "numbers")) as connection:
        connection.execute("CREATE TABLE t (user INTEGER, at DATE, kwh REAL)")
        rows = [(1, "2013-01-02", 5), ("", "2013-01-02", 5), ("x", "2013-01-02", 5), (b"", "2013-01-02", 5)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    table = open_source(f"sqlite://{tmp_path}/numbers", table="t")
    assert bounded_query(table, ask(), DAYS).totals == (0, 5, 0)
    table.get_backend().disconnect()


BAD_TEXT = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("column", ["user", "at", "kwh", "remark"])
@pytest.mark.parametrize("route", ["memory", "parquet"])
def test_a_text_that_is_not_utf_8_is_left_out(route, column, backend, tmp_path) -> None:
    def answer(one: dict | None):
        rows = [dict(zip(("user", "at", "kwh"), map(str, row), strict=True)) | {"remark": "r"} for row in OTHERS]
        table = pa.Table.from_pylist(rows)
        if one is not None:
            parts = [BAD_TEXT if name == column else pa.array([one[name]]) for name in table.column_names]
            table = pa.concat_tables([table, pa.Table.from_arrays(parts, names=table.column_names)])
        if route == "memory":
            return bounded_query(open_source(table, backend=backend), ask(), DAYS)
        pq.write_table(table, tmp_path / "rows.parquet")
        opened = open_source(tmp_path / "rows.parquet", backend=backend, columns=("user", "at", "kwh"))
        return bounded_query(opened, ask(), DAYS)

    check_neighbours(answer({"user": "z", "at": "2013-01-02", "kwh": "1", "remark": "r"}), answer(None))


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("route", ["memory", "parquet"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("odd", [-(2**63), 2**63 - 1, 1 - 2**63, -(2**62)])
@pytest.mark.parametrize("every", ["day", "hour", "month"])
def test_a_time_beyond_the_calendar_of_an_engine_is_left_out(every, odd, unit, route, backend, tmp_path) -> None:
    if unit == "s" and route == "parquet":
        pytest.skip("Parquet has no seconds")
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    calendar = Calendar("2013-01-01", "2013-01-03", every=every)

    def answer(*extra):
        at = pa.array([*[1_356_998_400 * second] * 5, *extra], pa.int64()).cast(pa.timestamp(unit), safe=False)
        rows = pa.table({"user": [*map(str, range(len(at)))], "at": at, "kwh": [5.0] * len(at)})
        if route == "parquet":
            pq.write_table(rows, tmp_path / "rows.parquet")
        place = tmp_path / "rows.parquet" if route == "parquet" else rows
        found = bounded_query(open_source(place, backend=backend), ask(), calendar)
        assert found.curator_report.used == 5
        return found.totals

    assert answer(odd) == answer() == (25, *[0] * (len(calendar) - 1))


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("route", ["memory", "parquet"])
@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_the_last_nanosecond_of_a_day_is_in_that_day(backend, route, zone, tmp_path) -> None:
    """DuckDB rounded it into the next one; so three engines gave three answers."""
    texts = ["2012-12-31T23:59:59.999999999", "2013-01-01T23:59:59.999999999", "2013-01-03T23:59:59.999999999"]
    at = pa.array(np.array(texts, dtype="datetime64[ns]")).cast(pa.timestamp("ns", tz=zone))
    rows = pa.table({"user": [*"abc"], "at": at, "kwh": [1.0, 2.0, 4.0]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    place = tmp_path / "rows.parquet" if route == "parquet" else rows
    days = Calendar("2013-01-01", "2013-01-03", timezone=zone)
    assert bounded_query(open_source(place, backend=backend), ask(), days).totals == (2, 0, 4)
    hours = Calendar("2013-01-01", "2013-01-03", every="hour", timezone=zone)
    found = bounded_query(open_source(place, backend=backend), ask(), hours).totals
    assert {hour: total for hour, total in enumerate(found) if total} == {23: 2, 71: 4}


def test_nanoseconds_before_1970_are_rounded_down() -> None:
    at = pa.array(np.array(["1969-12-30T23:59:59.999999999"], dtype="datetime64[ns]"))
    rows = pa.table({"user": ["a"], "at": at, "kwh": [1.0]})
    days = Calendar("1969-12-30", "1969-12-31")
    assert bounded_query(rows, ask(), days).totals == (1, 0)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_one_infinity_does_not_decide_whether_the_nan_of_others_count(backend, kind, tmp_path) -> None:
    """The statistics of a Parquet file leave NaN out; by them DuckDB dropped the comparison that NaN fails."""

    def answer(value: float):
        readings = pa.array([5.0] * 15 + [float("nan")] * 40 + [value], kind)
        users = [user for user, _, _ in OTHERS] + [f"nan {number}" for number in range(40)] + ["z"]
        at = [at for _, at, _ in OTHERS] + ["2013-01-02"] * 41
        pq.write_table(pa.table({"user": users, "at": at, "kwh": readings}), tmp_path / "rows.parquet")
        return bounded_query(open_source(tmp_path / "rows.parquet", backend=backend), ask(), DAYS).totals

    assert [answer(value) for value in (float("inf"), 1.0, float("nan"))] == [(25, 25, 25), (25, 26, 25), (25, 25, 25)]


@pytest.mark.parametrize("every", ["day", "hour", "month"])
@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        *(("date", at) for at in ("infinity", "-infinity", "294277-01-01", "5874897-12-31", "4713-01-01 BC")),
        *(("timestamp", at) for at in ("infinity", "-infinity", "294276-12-31", "4713-01-01 BC")),
        *(("timestamptz", at) for at in ("infinity", "-infinity", "294276-12-31", "4713-01-02 BC")),
    ],
)
def test_postgres_leaves_out_a_time_without_end(kind, odd, every, postgres) -> None:
    """One such time stopped every question."""
    postgres.run(
        f'DROP TABLE IF EXISTS odd; CREATE TABLE odd ("user" text, at {kind}, kwh float8)',
        "INSERT INTO odd VALUES ('a', '2013-01-01', 5), ('b', '2013-01-01', 5)",
    )
    zone = "UTC" if kind == "timestamptz" else None
    calendar = Calendar("2013-01-01", "2013-01-03", every=every, timezone=zone)
    found = []
    for statement in ("SELECT 1", f"INSERT INTO odd VALUES ('z', '{odd}', 1)"):  # noqa: S608
        postgres.run(statement)
        table = open_source(postgres.url("meters"), table="odd")
        answer = bounded_query(table, ask(), calendar)
        assert answer.curator_report.used == 2
        found.append(answer.totals)
        table.get_backend().disconnect()
    assert found[0] == found[1] == (10, *[0] * (len(calendar) - 1))


@pytest.mark.parametrize("kind", ["numeric", "float8", "text"])
@pytest.mark.parametrize(
    ("odd", "added"),
    [
        ("1e400", 0),
        ("1e308", 0),
        ("-1e400", 0),
        ("1e-400", 0),
        ("1e200", 10),
        ("NaN", 0),
        ("Infinity", 0),
        ("-Infinity", 0),
    ],
)
def test_postgres_reads_every_number_by_itself(odd, added, kind, postgres) -> None:
    """A numeric beyond the doubles stopped every question, and NaN and infinity counted as the cap."""
    if kind == "float8" and "400" in odd:
        pytest.skip("no double")
    for who in ("value", "person"):
        name = {"value": "kwh", "person": '"user"'}[who]
        columns = {'"user"': "text", "at": "text", "kwh": "float8"} | {name: kind}
        row = (odd, 5) if who == "person" else ("2", odd)
        postgres.run(
            f"DROP TABLE IF EXISTS odd; CREATE TABLE odd ({', '.join(' '.join(one) for one in columns.items())})",
            "INSERT INTO odd VALUES ('1', '2013-01-02', 5)",
            f"INSERT INTO odd VALUES ('{row[0]}', '2013-01-02', '{row[1]}')",  # noqa: S608
        )
        table = open_source(postgres.url("meters"), table="odd")
        (_, total, _) = bounded_query(table, ask(), DAYS).totals
        assert total == 5 + added if who == "value" else total in (5, 10)
        series_query(table, time="at", value="kwh", candidates=DAYS, maximum=100, population=10)
        table.get_backend().disconnect()
