"""An outage of the ledger: no answer without its charge in the one right place, and no wait beyond the limit."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url
from tests.attacks.conftest import AT_MOST, FACTS, JANUARY, Proxy

import dpselect as dp
from dpselect.errors import LedgerError
from dpselect.ledger import Ledger, Total

ASK = ("--epsilon", 90, "--anyway")


@pytest.fixture
def on_server(describe: Callable[..., Path], through_proxy: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data-set file whose ledger is on a server behind the proxy; most of its budget is spent."""
    monkeypatch.setenv("LEDGER_URL", through_proxy)
    return describe(more=("--ledger", "$LEDGER_URL"))


def refused_in_time(dpselect: Callable[..., Any], *arguments: object) -> str:
    started = time.monotonic()
    ran = dpselect(*arguments)
    assert time.monotonic() - started < AT_MOST
    assert ran.code == 2, ran.out
    assert ran.out == ""
    return str(ran.err)


def balance(place: Path | str) -> tuple[tuple[str, ...], float]:
    """The data sets of a ledger, and what is charged to the only one."""
    with Ledger.open(place, patience=10.0) as ledger:
        assert ledger.verify().holds
        return Ledger.datasets(place), ledger.balance().spent


class TestSecondBudget:
    """The worst: a ledger that is out of reach for a while must not be taken for one that is not there."""

    def test_a_locked_file(self, dpselect: Callable[..., Any], describe: Callable[..., Path]) -> None:
        homes = describe()
        assert dpselect("peak", homes, *ASK).code == 0
        assert dpselect("ledger", "show", homes).code == 0
        gc.collect()  # in this process the first command's connection may still be open
        lock = sqlite3.connect(homes.with_suffix(".ledger"), isolation_level=None)
        lock.execute("PRAGMA locking_mode = EXCLUSIVE")
        lock.execute("BEGIN EXCLUSIVE")
        for verb in (("peak", "--epsilon", 80), ("watch", "--threshold", 25, "--budget", 80)):
            line = refused_in_time(dpselect, verb[0], homes, *verb[1:], "--anyway")
            assert "busy" in line
            assert "nothing was spent" in line or "nothing was released" in line
        lock.close()
        names, spent = balance(homes.with_suffix(".ledger"))
        assert names == ("homes",)
        assert 80 < spent <= 90
        assert dpselect("peak", homes, "--epsilon", 80, "--anyway").code == 3

    def test_a_port_that_refuses(self, dpselect: Callable[..., Any], on_server: Path, proxy: Proxy) -> None:
        assert dpselect("peak", on_server, *ASK).code == 0
        proxy.refuse()
        assert "does not answer" in refused_in_time(dpselect, "peak", on_server, "--epsilon", 80, "--anyway")
        proxy.accept_again()
        names, spent = balance("$LEDGER_URL")
        assert names == ("homes",)
        assert 80 < spent <= 90
        assert dpselect("peak", on_server, "--epsilon", 80, "--anyway").code == 3

    def test_a_schema_that_was_dropped(self, dpselect: Callable[..., Any], on_server: Path, server_url: str) -> None:
        assert dpselect("peak", on_server, *ASK).code == 0
        schema = str(make_url(server_url).query["options"]).partition("=")[2]
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
            connection.execute(f"CREATE SCHEMA {schema}")
            for verb in (("peak", "--epsilon", 80), ("watch", "--threshold", 25, "--budget", 80)):
                line = refused_in_time(dpselect, verb[0], on_server, *verb[1:], "--anyway")
                assert "no ledger in this database" in line
            made = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", [schema]).fetchone()
        assert made == (0,), "looking made nothing"

    def test_a_schema_made_anew_is_another_ledger(
        self, dpselect: Callable[..., Any], on_server: Path, server_url: str
    ) -> None:
        """Even an administrator who makes it anew, under the same name, does not give the file a second budget."""
        assert dpselect("peak", on_server, *ASK).code == 0
        schema = str(make_url(server_url).query["options"]).partition("=")[2]
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
            connection.execute(f"CREATE SCHEMA {schema}")
        Ledger.create(server_url, dataset="homes", total=Total.pure(100)).close()
        assert "another ledger" in refused_in_time(dpselect, "peak", on_server, "--epsilon", 80, "--anyway")


class TestNothingIsMade:
    """A question opens a ledger; only ``ledger create`` and ``describe --write`` make one."""

    @pytest.mark.parametrize("total", [None, 100])
    def test_by_a_question(self, dpselect: Callable[..., Any], readings: Path, place: str, total: int | None) -> None:
        more = () if total is None else ("--total", total)
        asked = ("peak", readings, *FACTS, *JANUARY, *ASK, "--ledger", place, *more)
        assert "ledger create" in refused_in_time(dpselect, *asked)
        facts = {"user": "meter", "time": "at", "value": "kwh", "cap": 50, "population": 20}
        homes = dp.Dataset(readings, **facts, ledger=place, total=total)  # type: ignore[arg-type]
        with pytest.raises(LedgerError, match="ledger create"):
            homes.peak(epsilon=90, start="2013-01-01", end="2013-01-31", anyway=True)
        with pytest.raises(LedgerError, match="ledger create"):
            Ledger.datasets(place)

    def test_by_a_stream(self, dpselect: Callable[..., Any], place: str) -> None:
        stream = ("watch", "--sensitivity", "1/100", "--threshold", "0.5", "--budget", 90, "--anyway")
        ran = dpselect(*stream, "--ledger", place, "--total", 100, stdin="0.1\n")
        assert (ran.code, ran.out) == (2, "")
        assert "ledger create" in ran.err
        assert "nothing was spent" in ran.err

    def test_by_describing_a_file_whose_ledger_is_gone(
        self, dpselect: Callable[..., Any], describe: Callable[..., Path]
    ) -> None:
        homes = describe()
        assert dpselect("peak", homes, *ASK).code == 0
        for file in homes.parent.glob("homes.ledger*"):
            file.unlink()
        for target in (homes, homes.with_name("other.toml")):
            ran = dpselect("describe", homes, "--write", target, "--total", 100)
            assert ran.code == 2, ran.err
        assert not homes.with_suffix(".ledger").exists()

    def test_in_a_file_called_like_a_variable(
        self, dpselect: Callable[..., Any], readings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("LEDGER_URL", raising=False)
        asked = ("describe", readings, *FACTS, *JANUARY, "--write", tmp_path / "homes.toml", "--total", 100)
        ran = dpselect(*asked, "--ledger", "$LEDGER_URL")
        assert ran.code == 2
        assert "not set" in ran.err
        monkeypatch.setenv("LEDGER_URL", place)
        assert dpselect(*asked, "--ledger", "$LEDGER_URL").code == 0
        assert not (tmp_path / "$LEDGER_URL").exists()
        assert 'ledger = "$LEDGER_URL"' in (tmp_path / "homes.toml").read_text()
        assert dpselect("peak", tmp_path / "homes.toml", *ASK).code == 0
        assert balance(place)[1] > 80


class TestFrozen:
    """A server, or a network, that falls silent after the connection was made."""

    @pytest.fixture
    def ledger(self, through_proxy: str) -> Any:
        with Ledger.create(through_proxy, dataset="homes", total=Total.pure(1.0)) as made:
            yield made

    @staticmethod
    def refused(work: Callable[[], object]) -> None:
        started = time.monotonic()
        with pytest.raises(LedgerError, match="patience are over"):
            work()
        assert time.monotonic() - started < AT_MOST

    def test_a_silent_network_before_the_charge(self, ledger: Ledger, proxy: Proxy) -> None:
        proxy.freeze()
        self.refused(lambda: ledger.ask({"question": 1}, cost=0.25, draw=lambda: pytest.fail("data was touched")))
        proxy.thaw()
        assert ledger.ask({"question": 1}, cost=0.25, draw=lambda: "x").answer == "x"
        assert ledger.balance().spent == 0.25, "once, whether or not the silent step got through"
        assert ledger.verify().holds

    def test_a_silent_network_before_the_answer_is_written(self, ledger: Ledger, proxy: Proxy) -> None:
        def draw() -> str:
            proxy.freeze()
            return "never shown"

        self.refused(lambda: ledger.ask({"question": 1}, cost=0.25, draw=draw))
        proxy.thaw()
        assert ledger.balance().spent == 0.25, "which is held"
        ledger.ask({"question": 1}, cost=0.25, draw=lambda: "now")
        assert ledger.balance().spent == 0.25
        assert ledger.verify().holds

    def test_a_silent_network_while_it_is_opened(self, ledger: Ledger, proxy: Proxy, through_proxy: str) -> None:
        proxy.freeze()
        self.refused(lambda: Ledger.open(through_proxy))

    def test_a_command_says_what_may_be_held(
        self, dpselect: Callable[..., Any], on_server: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dpselect.dataset import rows

        read = rows.read

        def freezing(*arguments: Any, **options: Any) -> Any:
            proxy.freeze()
            return read(*arguments, **options)

        monkeypatch.setattr(rows, "read", freezing)
        assert "count ε = 90 as spent" in refused_in_time(dpselect, "peak", on_server, *ASK)
        proxy.thaw()
        monkeypatch.setattr(rows, "read", read)
        assert dpselect("peak", on_server, *ASK).code == 0
        assert 80 < balance("$LEDGER_URL")[1] <= 90

    def test_a_backend_that_is_stopped(self, ledger: Ledger, postgres_server: str) -> None:
        with psycopg.connect(postgres_server, autocommit=True) as other:
            found = other.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
                "AND state = 'idle' ORDER BY backend_start DESC LIMIT 1"
            ).fetchone()
        assert found is not None
        os.kill(found[0], signal.SIGSTOP)
        try:
            self.refused(lambda: ledger.ask({"question": 1}, cost=0.25, draw=lambda: pytest.fail("data was touched")))
        finally:
            os.kill(found[0], signal.SIGCONT)
        assert ledger.ask({"question": 1}, cost=0.25, draw=lambda: "x").answer == "x"
        assert ledger.balance().spent == 0.25

    def test_a_client_that_is_stopped_does_not_keep_the_others_waiting(self, server_url: str) -> None:
        """In the middle of a step it has the lock; the server takes it back after the patience."""
        with (
            Ledger.create(server_url, dataset="homes", total=Total.pure(1.0)) as stopped,
            Ledger.open(server_url, patience=10.0) as other,
        ):

            def stop(connection: Any, _: int) -> None:
                connection.exec_driver_sql("SELECT 1")
                started = time.monotonic()
                other.ask({"question": 1}, cost=0.25, draw=lambda: "x")
                assert time.monotonic() - started < AT_MOST
                connection.exec_driver_sql("SELECT 1")

            with pytest.raises(LedgerError, match="patience are over"):
                stopped._database.write(stop, lock=stopped._book.number)
            assert other.balance().spent == 0.25


class TestLogin:
    @pytest.mark.parametrize("wrong", [{"password": "wrong"}, {"database": "nowhere"}, {"username": "nobody"}])
    def test_what_is_wrong_is_said_at_once(
        self, through_proxy: str, proxy: Proxy, wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DPSELECT_LEDGER_PATIENCE", "30")
        url = make_url(through_proxy)
        started = time.monotonic()
        with pytest.raises(LedgerError, match="cannot log in") as refused:
            Ledger.open(url.set(**wrong).render_as_string(hide_password=False))  # type: ignore[arg-type]
        assert time.monotonic() - started < 5.0
        assert proxy.count <= 2
        assert str(url.password) not in str(refused.value)

    def test_a_server_that_is_away_is_not_asked_thousands_of_times(self, proxy: Proxy, through_proxy: str) -> None:
        proxy._target = 1  # nobody is behind it
        with pytest.raises(LedgerError, match="patience are over"):
            Ledger.open(through_proxy, patience=3.0)
        assert proxy.count < 40
