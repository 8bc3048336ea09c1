"""A user's DuckDB connection is left as it was found."""

from __future__ import annotations

import ibis
import pytest

from dpselect.tables import Calendar, Question, bounded_query

SETTINGS = ("enable_progress_bar", "enable_progress_bar_print", "TimeZone", "threads")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # between Ibis and DuckDB
@pytest.mark.parametrize("bar", [True, False])
def test_settings_and_tables_are_what_they_were(bar: bool) -> None:
    connection = ibis.duckdb.connect()
    connection.con.execute(f"SET enable_progress_bar = {str(bar).lower()}")
    connection.con.execute("CREATE TABLE readings AS SELECT 'a' AS meter, DATE '2013-01-02' AS at, 9.0 AS kwh")

    def state() -> tuple[object, ...]:
        settings = [connection.con.execute(f"SELECT current_setting('{name}')").fetchone() for name in SETTINGS]
        return (*settings, connection.con.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall())

    before, told = state(), []
    question = Question(user="meter", time="at", value="kwh", cap=10, population=1)
    answer = bounded_query(
        connection.table("readings"), question, Calendar("2013-01-01", "2013-01-03"), progress=told.append
    )
    assert answer.values.tolist() == [0.0, 0.9, 0.0]
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert state() == before
