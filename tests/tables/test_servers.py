"""PostgreSQL and MariaDB as they are met: schemas, views, readers without rights, time zones, servers that fail."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import ibis
import pyarrow as pa
import pytest

from dpselect.errors import SourceError
from dpselect.tables import Calendar, Question, bounded_query, open_source
from dpselect.tables.passes import fetched

DAYS = Calendar("2013-01-01", "2013-01-03")
QUESTION = Question(user="the user", time="at", value="kwh", cap=10, grid=10, population=4)
ROWS = pa.table({"the user": ["a", "b"], "at": ["2013-01-01", "2013-01-02"], "kwh": [1.0, 2.0]})
READER = "READERPASSWORD"


@ibis.udf.scalar.builtin
def pg_sleep(seconds: float) -> str:
    """What PostgreSQL calls waiting."""


@ibis.udf.scalar.builtin
def sleep(seconds: float) -> int:
    """What MariaDB calls waiting."""


@pytest.fixture(scope="module", params=["postgres", "mariadb"])
def place(request):
    """A server with tables, a view and a user who may read one of them."""
    server = request.getfixturevalue(request.param)
    create = request.getfixturevalue("put_into")
    create(server.scheme, server, ROWS, name="half hours")
    create(server.scheme, server, ROWS, name="hidden")
    quote = "`" if server.scheme == "mysql" else '"'
    server.run(f"CREATE VIEW {quote}a view{quote} AS SELECT * FROM {quote}half hours{quote}")  # noqa: S608
    if server.scheme == "postgres":
        server.run(
            f"CREATE ROLE reader LOGIN PASSWORD '{READER}'",
            'GRANT SELECT ON "half hours", "a view" TO reader',
            "CREATE SCHEMA energy",
            'CREATE TABLE energy."in a schema" AS SELECT * FROM "half hours"',
        )
    else:
        server.run(
            f"CREATE USER reader@localhost IDENTIFIED BY '{READER}'",
            "GRANT SELECT ON meters.`half hours` TO reader@localhost",
            "GRANT SELECT ON meters.`a view` TO reader@localhost",
            "CREATE DATABASE energy",
            "CREATE TABLE energy.`in a schema` AS SELECT * FROM `half hours`",
        )
    return server


def ask(url: str, table: str, **options):
    source = open_source(url, table=table, **options)
    try:
        return bounded_query(source, QUESTION, DAYS).totals
    finally:
        source.get_backend().disconnect()


@pytest.mark.parametrize("table", ["half hours", "a view", "energy.in a schema"])
def test_names_with_spaces_views_and_schemas_are_read(place, table):
    assert ask(place.url("meters"), table) == (1, 2, 0)


def test_a_reader_without_other_rights_can_ask(place):
    url = place.url("meters", user="reader", password=READER)
    assert ask(url, "half hours") == (1, 2, 0)
    assert ask(url, "a view") == (1, 2, 0)


def told(act) -> str:
    with pytest.raises(SourceError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    assert READER not in text
    assert "hidden" not in text.replace("'hidden'", "")
    return text


def test_what_a_reader_may_not_read_is_said(place):
    url = place.url("meters", user="reader", password=READER)
    assert "may not read the table" in told(lambda: ask(url, "hidden"))


def test_a_wrong_password_a_missing_database_and_a_missing_table_are_said(place):
    wrong = place.url("meters", password="wrong")  # noqa: S106
    assert "refused the name or the password" in told(lambda: ask(wrong, "half hours"))
    assert "no such database" in told(lambda: ask(place.url("nowhere"), "half hours"))
    assert "has no table 'nothing'" in told(lambda: ask(place.url("meters"), "nothing"))


def test_nobody_answering_is_said_soon(place):
    url = f"{place.scheme}://me:{READER}@127.0.0.1:1/meters"
    started = time.monotonic()
    assert "no server answers there" in told(lambda: ask(url, "half hours"))
    assert time.monotonic() - started < 120  # a server that is waited for says nothing for ever


def test_a_killed_connection_and_a_time_limit_are_told_apart(place):
    for how, said in (("limit", "time limit"), ("kill", "ended the connection")):
        source = open_source(place.url("meters"), table="half hours")
        backend = source.get_backend()
        slow = source.select(s=pg_sleep(20.0)) if place.scheme == "postgres" else source.select(s=sleep(20.0))
        if how == "limit":
            limit = "SET statement_timeout = 300" if place.scheme == "postgres" else "SET max_statement_time = 0.3"
            backend.raw_sql(limit).close()
        else:
            number = backend.con.info.backend_pid if place.scheme == "postgres" else backend.con.thread_id()
            ending = f"SELECT pg_terminate_backend({number})" if place.scheme == "postgres" else f"KILL {number}"
            threading.Timer(0.5, lambda ending=ending: place.run(ending)).start()
        text = told(lambda slow=slow: fetched(slow, doing="asking"))
        with suppress(Exception):
            backend.disconnect()
        assert said in text, (how, text)
        assert "own words" not in text


def test_a_query_that_somebody_ended_is_told_from_a_time_limit(place):
    source = open_source(place.url("meters"), table="half hours")
    backend, over = source.get_backend(), threading.Event()
    slow = source.select(s=pg_sleep(100.0)) if place.scheme == "postgres" else source.select(s=sleep(100.0))
    number = backend.con.info.backend_pid if place.scheme == "postgres" else backend.con.thread_id()
    ending = f"SELECT pg_cancel_backend({number})" if place.scheme == "postgres" else f"KILL QUERY {number}"

    def end_it() -> None:  # again and again: the first may come before the query does
        while not over.wait(0.3):
            place.run(ending)

    other = threading.Thread(target=end_it)
    other.start()
    try:
        assert "somebody ended the query" in told(lambda: fetched(slow, doing="asking"))
    finally:
        over.set()
        other.join()
        backend.disconnect()


def test_the_server_s_own_words_come_only_when_asked_for(place, monkeypatch):
    monkeypatch.setenv("DPSELECT_DEBUG", "1")
    text = told(lambda: ask(place.url("nowhere"), "half hours"))
    assert "in its own words" in text
    assert place.password not in text


def test_instants_follow_the_calendar_s_zone_whatever_the_session_s(place):
    create = {"postgres": "TIMESTAMPTZ", "mysql": "TIMESTAMP"}[place.scheme]
    place.run(
        "DROP TABLE IF EXISTS instants",
        f"CREATE TABLE instants (u VARCHAR(9), at {create}, v DOUBLE PRECISION)",
        "INSERT INTO instants VALUES ('a', '2013-06-30 23:30:00+00', 1)"
        if place.scheme == "postgres"
        else "INSERT INTO instants VALUES ('a', '2013-06-30 23:30:00', 1)",
    )
    question = Question(user="u", time="at", value="v", cap=10, grid=10, population=4)
    calendar = Calendar("2013-06-30", "2013-07-01", timezone="Europe/London")
    source = open_source(place.url("meters"), table="instants")
    if place.scheme == "postgres":
        source.get_backend().raw_sql("SET TIME ZONE 'Asia/Tokyo'").close()
    assert bounded_query(source, question, calendar).totals == (0, 1)
    source.get_backend().disconnect()
