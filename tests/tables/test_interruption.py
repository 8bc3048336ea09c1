"""A person who ends a pass over a table is told so, whatever the engine made of the signal."""

import os
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source, passes
from dpselect.tables.failures import Interrupted, engine_failures


def test_duckdb_tells_of_a_signal_in_an_error_of_its_own() -> None:
    with pytest.raises(Interrupted, match="interrupted while adding up"), engine_failures("adding up"):
        raise RuntimeError("Query interrupted")


def test_other_errors_are_no_interruption() -> None:
    with pytest.raises(SourceError, match="failed"), engine_failures("adding up"):
        raise RuntimeError("something else")


def test_an_interruption_within_a_function_that_sqlite_calls_is_one(tmp_path, monkeypatch):
    """It calls Python for each row, and tells of whatever that raises as of a failure of the function."""
    place = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(place)) as base:
        base.execute("CREATE TABLE readings (meter TEXT, at TEXT, kwh TEXT)")
        base.executemany("INSERT INTO readings VALUES (?, '2013-01-01', '1')", ((f"m{n}",) for n in range(300_000)))
        base.commit()
    question = Question(user="meter", time="at", value="kwh", cap=1, population=9)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer, run = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)), passes._run

    def run_with_timer(*given):
        timer.start()
        return run(*given)

    monkeypatch.setattr(passes, "_run", run_with_timer)
    try:
        source = open_source(f"sqlite://{place}", table="readings")
        with pytest.raises(KeyboardInterrupt, match="no noise was drawn"):
            bounded_query(source, question, Calendar("2013-01-01", "2013-01-02"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    source.get_backend().disconnect()
