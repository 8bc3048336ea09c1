"""One contract for every engine: the same rows give the same integers, however they lie."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import ibis
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import sqlglot
from sqlglot import exp

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Categories, Question, bounded_query, open_source
from dpselect.tables.answer import candidate_totals
from dpselect.tables.passes import fetched
from dpselect.tables.rows import described_rows

OCTOBER_ON = {
    "day": Calendar("2013-03-25", "2013-12-30"),
    "hour": Calendar("2013-10-26T05:00", "2013-10-30", every="hour"),
    "week": Calendar("2013-10-24", "2013-12-31", every="week"),
    "month": Calendar("2013-01", "2013-10", every="month"),
}


def long_table(rows, *, times="wall clock") -> pa.Table:
    users, moments, values = (list(column) for column in zip(*rows, strict=True))
    if times == "wall clock":
        at = pa.array(moments, pa.timestamp("us"))
    elif times == "instant":
        at = pa.array(moments, pa.timestamp("us", tz="UTC"))
    elif times == "date":
        at = pa.array([moment and moment.date() for moment in moments], pa.date32())
    else:
        at = pa.array([moment and moment.isoformat(sep=" ") for moment in moments], pa.string())
    return pa.table({"user": users, "at": at, "kwh": pa.array(values, pa.float64())})


def ask(**changes) -> Question:
    return Question(**{"user": "user", "time": "at", "value": "kwh", "cap": 10, "grid": 100, "population": 9} | changes)


@pytest.mark.parametrize("every", OCTOBER_ON)
def test_totals_are_those_of_plain_python_for_every_period(opened, every, make_rows, oracle):
    rows = make_rows(1, 400)
    answer = bounded_query(opened(long_table(rows)), ask(), OCTOBER_ON[every])
    assert answer.totals == oracle(rows, ask(), OCTOBER_ON[every])
    assert any(answer.totals)


@pytest.mark.parametrize(
    "changes",
    [
        {"measure": "count", "cap": None, "population": 5},
        {"measure": "sum", "per_user": "mean"},
        {"per_user": "max", "duplicates": "largest"},
        {"cap": "1/3", "grid": 1000},
        {"cap": 0.7, "grid": 2**31 - 1, "per_user": "mean", "duplicates": "largest"},
        {"population": 1},
    ],
    ids=str,
)
def test_every_measure_agrees_with_plain_python(opened, changes, make_rows, oracle):
    rows = make_rows(2, 300)
    question = ask(**changes)
    answer = bounded_query(opened(long_table(rows)), question, OCTOBER_ON["day"])
    assert answer.totals == oracle(rows, question, OCTOBER_ON["day"])


@pytest.mark.parametrize("times", ["instant", "zoned text"])
def test_zoned_times_follow_the_calendar_s_wall_clock_over_both_clock_changes(
    opened, times, make_rows, oracle, record_property
):
    calendar = Calendar("2013-03-30", "2013-10-28", every="hour", timezone="Europe/London")
    rows = [(user, moment and moment.replace(tzinfo=UTC), value) for user, moment, value in make_rows(3, 400)]
    source = opened(long_table(rows, times=times))
    if source.get_backend().name == "sqlite":
        with pytest.raises(SourceError, match="cannot be moved to a time zone on SQLite"):
            bounded_query(source, ask(), calendar)
        record_property("instead", "refused by name")
        return
    assert bounded_query(source, ask(), calendar).totals == oracle(rows, ask(), calendar)


@pytest.mark.parametrize("times", ["text", "date"])
def test_text_and_dates_mean_the_same_days_as_timestamps(opened, times, make_rows):
    rows = make_rows(4, 200)
    plain = bounded_query(opened(long_table(rows)), ask(), OCTOBER_ON["day"])
    other = bounded_query(opened(long_table(rows, times=times)), ask(), OCTOBER_ON["day"])
    assert other.totals == plain.totals


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_order_and_partitions_do_not_matter(engine, ending, make_rows, oracle, tmp_path):
    rows = make_rows(5, 500)
    random.Random(6).shuffle(rows)
    folder = tmp_path / ending
    folder.mkdir()
    for number, part in enumerate((rows[:7], rows[7:8], rows[8:350], rows[350:])):
        path = folder / f"part {number}.{ending}"
        if ending == "parquet":
            pa.parquet.write_table(long_table(part), path)
        else:
            with pa.output_stream(path, compression="gzip" if ending == "csv.gz" else None) as sink:
                pa.csv.write_csv(long_table(part, times="text"), sink)
    whole = oracle(rows, ask(), OCTOBER_ON["day"])
    assert bounded_query(open_source(folder, backend=engine), ask(), OCTOBER_ON["day"]).totals == whole
    listed = [str(path) for path in sorted(folder.iterdir(), reverse=True)]
    assert bounded_query(open_source(listed, backend=engine), ask(), OCTOBER_ON["day"]).totals == whole


def test_numbers_as_text_and_decimals_are_read_alike(opened):
    texts = [
        "1.5",
        " 2.25 ",
        "+3",
        "1e0",
        ".5",
        "7.",
        "1_000",
        "0x1p3",
        "1.5d",
        "nan",
        "Null",
        "",
        None,
        "inf",
        "١",
        "1\n",
    ]
    table = pa.table({"user": [f"u{i}" for i in range(len(texts))], "kind": ["a"] * len(texts), "v": texts})
    question = Question(user="user", category="kind", value="v", cap=100, grid=10_000, population=50)
    answer = bounded_query(opened(table), question, Categories(["a"]))
    assert answer.totals == (150 + 225 + 300 + 100 + 50 + 700,)
    money = pa.table({"user": ["u", "v"], "kind": ["a", "a"], "v": [Decimal("0.145"), Decimal("2.675")]})
    answer = bounded_query(opened(money), question, Categories(["a"]))
    assert answer.totals == (math.floor(0.145 * 100 + 0.5) + math.floor(2.675 * 100 + 0.5),)


def test_times_as_text_are_read_alike(opened):
    texts = [
        *("2013-02-28", "2013-02-28T23:59", " 2013-02-28 23:59:59.999 ", "2012-02-29", "2013-02-29", "2013-02-30"),
        *("2013-13-01", "2013-2-8", "28/02/2013", "2013-02-28 24:00", "20130228", "soon", "", None),
        *("2013-03-01T00:30+01:00", "2013-02-27T23:30:00-0100", "2013-02-28T23:30Z", "2013-02-28 00:00:00.5Z"),
    ]
    table = pa.table({"user": [f"u{i}" for i in range(len(texts))], "at": texts})
    calendar = Calendar("2012-02-29", "2013-03-02", timezone="Etc/UTC")
    question = Question(user="user", time="at", measure="count", population=50)
    source = opened(table)
    if source.get_backend().name != "sqlite":
        answer = bounded_query(source, question, calendar)
        seen = {label: total for label, total in zip(answer.labels, answer.totals, strict=True) if total}
        assert seen == {"2012-02-29": 1, "2013-02-28": 7}
    unzoned = Calendar("2012-02-29", "2013-03-02")
    answer = bounded_query(source, question, unzoned)
    assert answer.totals[unzoned.index(datetime(2013, 2, 28))] == 3


def test_a_written_format_is_followed(opened):
    texts = ["31/01/2013 14h", "01/02/2013 00h", "2013-01-31 14h", "31/02/2013 01h"]
    table = pa.table({"user": list("abcd"), "at": texts})
    question = Question(user="user", time="at", measure="count", population=9, time_format="%d/%m/%Y %Hh")
    hours = Calendar("2013-01-31T14:00", "2013-02-01T00:00", every="hour")
    answer = bounded_query(opened(table), question, hours)
    assert answer.totals == (1, *[0] * 9, 1)


def test_wide_tables_are_turned_long(opened):
    table = pa.table(
        {
            "home": ["a", "b", "b", None],
            "2013-01-01": [1.0, 20.0, 1.0, 5.0],
            "2013-01-02": [None, -3.0, float("nan"), 5.0],
            "2013-02-01": [2.0, 0.25, 0.5, 5.0],
            "remarks": ["x", "y", "z", "z"],
        }
    )
    question = Question(user="home", shape="wide", cap=10, grid=100, population=3)
    source = opened(table)
    days = bounded_query(source, question, Calendar("2013-01-01", "2013-01-03"))
    assert days.totals == (110, 0, 0)
    months = bounded_query(source, question, Calendar("2013-01", "2013-02", every="month"))
    assert months.totals == (110, 28)  # 0.25 is two and a half steps, and goes up


def test_categories_of_text_and_of_numbers(opened):
    table = pa.table({"user": ["a", "a", "b", "c"], "shop": [1, 1, 2, 9], "v": [3, 4, 5, 6]})
    question = Question(user="user", category="shop", value="v", cap=5, grid=5, population=3)
    answer = bounded_query(opened(table), question, Categories([2, 1, 7]))
    assert answer.labels == ("2", "1", "7")
    assert answer.totals == (5, 5, 0)


def test_dates_far_back_and_leap_years_count_their_days_right(opened):
    days = [datetime(year, month, day) for year in (1600, 1900, 2000, 2096) for month, day in ((2, 28), (3, 1))]
    days += [datetime(2000, 2, 29), datetime(2096, 2, 29), datetime(1600, 12, 31)]
    table = pa.table({"user": [str(i) for i in range(len(days))], "at": [f"{day:%Y-%m-%d}" for day in days]})
    calendar = Calendar("1600-01-01", "2100-01-01")
    question = Question(user="user", time="at", measure="count", population=99)
    answer = bounded_query(opened(table), question, calendar)
    assert {i for i, total in enumerate(answer.totals) if total} == {calendar.index(day) for day in days}


#: How each warehouse is told to compare texts by their bytes; nothing where it does so anyway.
BYTES = {
    "postgres": 'COLLATE "C"',
    "mysql": "AS BINARY)",
    "bigquery": "COLLATE(",
    "snowflake": "COLLATE(",
    "databricks": "COLLATE UTF8_BINARY",
    "sqlite": "COLLATE BINARY",
    "trino": "",
    "clickhouse": "",
    "athena": "",
}
KINDS = {"text": "string", "wall": "timestamp", "instant": "timestamp('UTC')", "date": "date"}
READINGS = ibis.table({"user": "string", "number": "int64", **KINDS, "kwh": "float64"}, name="readings")


@pytest.mark.parametrize("dialect", BYTES)
@pytest.mark.parametrize(("every", "time"), [*(("day", time) for time in KINDS), ("hour", "text"), ("month", "text")])
def test_the_question_put_to_warehouses_has_all_that_the_bound_rests_on(dialect, every, time):
    """Written out as SQL only: no such server runs here."""
    calendar = Calendar("2013-01-01", "2013-02-02", every=every, timezone="Europe/London")
    sql = ibis.to_sql(candidate_totals(READINGS, ask(time=time), calendar), dialect=dialect)
    tree = sqlglot.parse_one(sql, read=dialect)
    groups = sorted(len(group.expressions) for group in tree.find_all(exp.Group))
    assert groups == [1, 2]  # per person and slot first, then per slot
    steps = [floor for floor in tree.find_all(exp.Floor) if floor.find(exp.Least) and floor.find(exp.Greatest)]
    assert steps, "readings are cut, then made whole numbers"
    inner = next(group for group in tree.find_all(exp.Group) if len(group.expressions) == 2).parent_select
    assert not inner.find_ancestor(exp.Select).find(exp.Limit)
    cut = [least for least in tree.find_all(exp.Least) if least.find_ancestor(exp.Floor) is None]
    assert any("100" in least.sql() for least in cut), "each person's steps are cut at the grid"
    assert len(list(tree.find_all(exp.Sum))) == 2
    assert BYTES[dialect] in sql


@pytest.mark.parametrize("dialect", ["mssql", "oracle"])
def test_engines_that_pad_text_are_refused_for_text_alone(dialect):
    calendar = Calendar("2013-01-01", "2013-02-02")
    with pytest.raises(SourceError, match="cannot be compared byte by byte"):
        ibis.to_sql(candidate_totals(READINGS, ask(time="date"), calendar), dialect=dialect)
    assert "GROUP BY" in ibis.to_sql(
        candidate_totals(READINGS, ask(user="number", time="date"), calendar), dialect=dialect
    )


def odd_texts(count: int) -> list[str]:
    """Times and numbers, most of them with a sign put in, left out or exchanged."""
    chance, signs, texts = random.Random(7), "0123456789-+:. TZtzeE_/xX\t\n\r٣", []
    fixed = ["2013-02-28", "2012-02-29", "2013-02-29", "2013-02-28 24:00", "2013-02-28T23:59", "2013-2-8 5:1:1.5"]
    fixed += ["nan", "inf", "Infinity", "1e2", "12e150", "1_0", "0x1", "+1", "9" * 121, "1" * 305, "1e-400", "07", ""]
    for _ in range(count):
        moment = datetime(2013, 2, 27) + timedelta(seconds=chance.choice([1, 60, 3600, 86400]) * chance.randint(-9, 99))
        number = chance.choice([chance.uniform(-20, 20), chance.randint(0, 12), round(chance.uniform(0, 12), 3)])
        text = chance.choice([str(moment), f"{moment:%Y-%m-%dT%H:%M}", f"{moment:%Y-%m-%d %H:%M}", str(number), *fixed])
        if chance.random() < 0.6:
            place = chance.randint(0, len(text))
            text = text[:place] + chance.choice(["", *signs]) + text[place + chance.randint(0, 1) :]
        texts.append(text)
    return texts


def test_what_duckdb_reads_at_once_is_what_the_patterns_read():
    """Row by row: Polars has nothing but the patterns."""
    texts = odd_texts(6000)
    table = pa.table({"user": [f"{number:06d}" for number in range(len(texts))], "text": texts})
    for candidates in (Calendar("2013-02-27T05:00", "2013-03-01", every="hour"), Calendar("2012-02-01", "2013-12-31")):
        found = []
        for backend in ("duckdb", "polars"):
            asked = described_rows(open_source(table, backend=backend), ask(time="text", value="text"), candidates)
            found.append(fetched(asked.select("person", "key", "reading"), doing="reading").sort_by("person"))
        for name in ("key", "reading"):
            read, judge = (rows[name].to_pylist() for rows in found)
            assert [three for three in zip(texts, read, judge, strict=True) if three[1] != three[2]] == []
            assert sum(value is not None for value in read) > 500
