"""One person moves every query by at most Δ under collations that take different texts for one, on every engine.

A negative control shows that the collations here really are such: grouped by the engine's own idea of equal texts, the
spellings fall together.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import duckdb
import pyarrow as pa
import pytest

from dpselect.tables import Calendar, Categories, Question, bounded_query, open_source
from dpselect.tables.failures import engine_failures

DRINKS = Categories(["tea", "TEA", "café", "cafe", "mate", "straße"])
#: Each place: where the table lies, and what follows the type of a text column there.
PLACES = {
    "duckdb nocase": ("duckdb", " COLLATE NOCASE"),
    "duckdb nocase, no accents": ("duckdb", " COLLATE NOCASE.NOACCENT"),
    "sqlite nocase": ("sqlite", " COLLATE NOCASE"),
    "sqlite rtrim": ("sqlite", " COLLATE RTRIM"),
    "postgres icu": ("postgres", " COLLATE ignore_case"),
    "mariadb default": ("mariadb", ""),
    "mariadb unicode": ("mariadb", " COLLATE utf8mb4_unicode_ci"),
    "mariadb latin1": ("mariadb", " CHARACTER SET latin1 COLLATE latin1_swedish_ci"),
    "mariadb binary, padded": ("mariadb", " COLLATE utf8mb4_bin"),
}
#: A pair of texts each place takes for one.
ALIKE = {"sqlite rtrim": ("mate", "mate "), "mariadb binary, padded": ("mate", "mate ")}

NUMBERED = count()


class DuckDBFile:
    """A DuckDB database in a file."""

    def __init__(self, path):
        self.path = path

    def connect(self):
        return duckdb.connect(str(self.path))

    def url(self, database):
        return f"duckdb://{self.path}"


@pytest.fixture(params=PLACES)
def put(request, server, tmp_path, put_into):
    """A function from rows to a table under the collation, and one that counts groups as the engine sees them."""
    engine, collation = PLACES[request.param]
    scheme = {"mariadb": "mysql"}.get(engine, engine)
    if engine == "postgres":
        try:
            server(engine).run(
                "CREATE COLLATION IF NOT EXISTS ignore_case "
                "(provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
            )
        except Exception as failure:
            pytest.skip(f"this PostgreSQL has no ICU collations ({type(failure).__name__})")
    opened = []

    def fill(rows):
        name = f"drinks_{next(NUMBERED)}"
        users, at, drinks, cups = zip(*rows, strict=True)
        arrow = pa.table({"user": users, "at": at, "drink": drinks, "cups": cups})
        place = DuckDBFile(tmp_path / f"{name}.duckdb") if engine == "duckdb" else server(engine)
        put_into(scheme, place, arrow, name=name, text=collation)
        opened.append(open_source(place.url("meters"), table=name))
        return opened[-1]

    fill.alike = ALIKE.get(request.param, ("tea", "TEA"))
    yield fill
    for table in opened:
        table.get_backend().disconnect()


def rows_of(user, *drinks, cups=3.0):
    return [(user, "2013-01-01", drink, cups) for drink in drinks]


OTHERS = [row for number in range(5) for row in rows_of(f"person {number}", "tea", "mate", "café")]
QUESTIONS = {
    "count": Question(user="user", category="drink", measure="count", population=20),
    "mean": Question(user="user", category="drink", value="cups", cap=10, grid=10, population=20),
    "mean of each": Question(
        user="user", category="drink", value="cups", cap=10, grid=10, population=20, per_user="mean"
    ),
}


def check(before, after):
    moves = [Fraction(float(new)) - Fraction(float(old)) for old, new in zip(before.values, after.values, strict=True)]
    assert all(0 <= move <= Fraction(after.family.sensitivity) for move in moves), "one person moved a query too far"


@pytest.mark.parametrize("name", QUESTIONS)
def test_another_spelling_of_one_person_changes_nobody_else_s_part(put, name):
    question = QUESTIONS[name]
    before = bounded_query(put(OTHERS), question, DRINKS)
    spellings = ("TEA", "Tea", "tea ", "mate ", "cafe", "CAFÉ", "strasse", "STRASSE")
    after = bounded_query(put(rows_of("newcomer", *spellings) + OTHERS), question, DRINKS)
    check(before, after)
    rows = rows_of("newcomer", *spellings) + OTHERS
    judge = pa.table({"user": [r[0] for r in rows], "drink": [r[2] for r in rows], "cups": [r[3] for r in rows]})
    assert after.totals == bounded_query(judge, question, DRINKS).totals


def test_persons_who_differ_only_in_spelling_are_two(put):
    """Taken for one, the mean of the two would fall when the second comes: not monotone."""
    question = QUESTIONS["mean of each"]
    first, second = put.alike
    before = bounded_query(put(rows_of(first, "mate", cups=9.0)), question, DRINKS)
    both = rows_of(first, "mate", cups=9.0) + rows_of(second, "mate", cups=1.0)
    after = bounded_query(put(both), question, DRINKS)
    check(before, after)
    assert after.totals[DRINKS.labels.index("mate")] == 10


def test_times_and_readings_as_text_are_read_as_elsewhere(put):
    question = Question(user="user", time="at", value="drink", cap=10, grid=10, population=20)
    rows = [("a", "2013-01-01T05:00", "1E0", 1.0), ("b", "2013-01-01t05:00", "1e0", 1.0), ("c", "2013-01-01", "x", 1.0)]
    days = Calendar("2013-01-01", "2013-01-02")
    assert bounded_query(put(rows), question, days).totals == (1, 0)


def test_the_collations_really_take_different_texts_for_one(put):
    table = put(rows_of("a", *put.alike))
    with engine_failures("grouping"):
        assert table.group_by("drink").agg(rows=table.count()).count().to_pyarrow().as_py() == 1
