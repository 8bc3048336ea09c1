"""Wide tables: one column per candidate, whatever the columns are called and however many there are."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest

from dpselect.tables import Calendar, Categories, Question, bounded_query, open_source
from dpselect.tables.contributions import candidate_totals

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


def test_a_file_with_thousands_of_columns_names_each_once(tmp_path):
    """Every mention costs: compilers look at each column many times, and took minutes."""
    names = [f"column {number}x" for number in range(2000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["the user", *names]) + "\n" + ",".join(["a", *["1"] * len(names)]) + "\n")
    source = open_source(path)
    sql = ibis.to_sql(candidate_totals(source, QUESTION, Categories(names)))
    assert sql.count(names[7]) == 1
    assert bounded_query(source, QUESTION, Categories(names)).totals == (1,) * len(names)
