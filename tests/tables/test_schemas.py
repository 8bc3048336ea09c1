"""No person's row, object or file decides which columns there are, of which type, or how others are read."""

from __future__ import annotations

import io
import json
from fractions import Fraction

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source
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


@pytest.mark.parametrize("name", ["METER", ""])
def test_names_that_engines_take_for_one_are_refused_and_not_repeated(name, tmp_path):
    (tmp_path / "rows.jsonl").write_text(json_lines([{name: "secret"}, *OTHERS]))
    with pytest.raises(SourceError, match="upper and lower case alone") as caught:
        open_source(tmp_path / "rows.jsonl")
    assert "METER" not in str(caught.value)
    assert "secret" not in str(caught.value)


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
