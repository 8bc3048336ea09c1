"""A failure says whether it came before the first row: only then is it no answer about rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source

DAYS = Calendar("2013-01-01", "2013-01-03")
ROWS = pa.table({"user": ["a"], "at": ["2013-01-01"], "kwh": [1.0]})


def ask(**changes) -> Question:
    return Question(**{"user": "user", "time": "at", "value": "kwh", "cap": 10, "grid": 10, "population": 9} | changes)


def failure(source, **changes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        bounded_query(source() if callable(source) else source, ask(**changes), DAYS)
    return caught.value


def test_what_depends_on_public_facts_alone_says_that_no_row_was_read(postgres, put_into):
    put_into("postgres", postgres, ROWS, name="failing")
    postgres.run("CREATE ROLE nobody_here LOGIN PASSWORD 'x'")
    url = postgres.url("meters")
    assert failure(ROWS, value="kw").before_rows
    assert failure(lambda: open_source(url, table="missing")).before_rows
    assert failure(lambda: open_source(url.replace("meters", "missing"), table="failing")).before_rows
    gone = open_source(url, table="failing")
    postgres.run("ALTER TABLE failing RENAME TO gone")
    assert failure(gone).before_rows
    assert "check the names" in str(failure(gone))
    gone.get_backend().disconnect()


def test_what_may_depend_on_rows_does_not(tmp_path):
    (tmp_path / "rows.csv").write_text("user,at,kwh\na,2013-01-01,1\nb,2013-01-01\n")
    assert not failure(tmp_path / "rows.csv").before_rows
    assert not failure(ROWS.set_column(1, "at", pa.array(["x"]))).before_rows
    assert not SourceError("anything else").before_rows
