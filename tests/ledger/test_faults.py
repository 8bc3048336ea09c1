"""Faults: each is refused with one clear line, and nothing is released that the ledger does not carry."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import text

from dpselect.errors import LedgerError
from dpselect.ledger import Ledger, Total
from dpselect.ledger import book as book_module
from dpselect.ledger import chain as chain_module
from dpselect.ledger.database import Database


def touched() -> Any:
    pytest.fail("data was touched")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "homes.ledger"


@pytest.fixture
def on_disk(file: Path) -> Iterator[Ledger]:
    with Ledger.create(file, dataset="homes", total=Total.pure(10.0), patience=1.0) as made:
        yield made


def refused_line(work: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as refused:
        work()
    line = str(refused.value)
    assert "\n" not in line
    assert "INSERT INTO" not in line
    assert "[SQL" not in line
    return line


def in_a_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_a_full_disk_is_refused_before_anything_is_released(file: Path) -> None:
    """The kernel refuses every write beyond a limit, as a full disk does; what came before it stays."""
    done = in_a_child(
        """
        import resource, signal, sys
        from dpselect.errors import LedgerError
        from dpselect.ledger import Ledger, Total
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = Ledger.create(sys.argv[1], dataset="homes", total=Total.pure(10.0), patience=1.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        shown = 0
        try:
            for question in range(10_000):
                ledger.ask({"question": question}, cost=0.001, draw=lambda: "x" * 1000)
                shown += 1
        except LedgerError as problem:
            print(shown, problem)
        """,
        file,
    )
    shown, line = done.stdout.strip().split(" ", 1)
    assert int(shown) > 10, done.stderr
    assert "the ledger cannot be used" in line
    assert "\n" not in line
    with Ledger.open(file) as after:
        assert after.verify().holds
        settled = [entry for entry in after.entries() if entry.kind == "settle"]
        assert len(settled) == int(shown)
        assert after.balance().charged.epsilon >= int(shown) * 10**12
        after.ask({"question": "with room again"}, cost=0.1, draw=lambda: "x")


LITTLE_ROOM = """
    import json, resource, signal, sys
    from pathlib import Path
    from dpselect.errors import LedgerError
    from dpselect.ledger import Ledger, Total
    from dpselect.ledger.history import history

    def how_it_ends(room, length):
        place = Path(sys.argv[1], f"{room} {length}.ledger")
        with Ledger.create(place, dataset="homes", total=Total.pure(10.0), patience=1.0) as ledger:
            question = {"question": 1}
            ledger.reserve(question, cost=1.0)
            log = Path(f"{place}-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (log + room, resource.RLIM_INFINITY))
            try:
                ledger.ask(question, cost=1.0, draw=lambda: "x" * length)
            except LedgerError:
                pass
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            assert ledger.verify().holds
            return history(ledger)[0].state

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    print(json.dumps([
        [how_it_ends(room, length) for length in (1, 6_000)] for room in range(12_000, 36_000, 4_000)
    ]))
"""


def test_whether_an_answer_finds_room_cannot_be_tried_twice_under_one_charge(tmp_path: Path) -> None:
    """Else somebody who fills the disk could ask until a short answer is drawn, and learn of each that it was long."""
    done = in_a_child(LITTLE_ROOM, tmp_path)
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert ["settled", "lost"] in ends, "a room that tells the lengths apart, and each of them is paid"
    assert ["settled"] * 2 in ends
    assert all("reserved" not in kinds or set(kinds) == {"reserved"} for kinds in ends), "open where all answers fail"
    assert ["reserved"] * 2 in ends


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs the superuser")
def test_a_truly_full_file_system_is_refused(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(mount)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine does not let the tests mount a small file system")
    try:
        with Ledger.create(mount / "x.ledger", dataset="homes", total=Total.pure(10.0), patience=1.0) as made:
            (mount / "ballast").write_bytes(b"x" * 100_000)
            shown = []

            def ask_on() -> None:
                for question in range(10_000):
                    shown.append(made.ask({"question": question}, cost=0.001, draw=lambda: "x" * 1000))

            assert "full" in refused_line(ask_on)
            (mount / "ballast").unlink()
            assert made.verify().holds
            assert len(shown) == sum(entry.kind == "settle" for entry in made.entries()) > 0
            made.ask({"question": "with room again"}, cost=0.1, draw=lambda: "x")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_read_only_ledger_is_refused(on_disk: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(target: Any, **options: Any) -> sqlite3.Connection:
        return connect(str(target).replace("mode=rw", "mode=ro"), **options)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", read_only)
    with Ledger.open(file, patience=1.0) as opened:
        assert opened.balance().spent == 0.0, "reading is no harm"
        assert "readonly" in refused_line(lambda: opened.ask({"question": 1}, cost=0.1, draw=touched))


def test_a_folder_that_cannot_be_written_is_refused() -> None:
    assert "cannot open the ledger" in refused_line(
        lambda: Ledger.create("/proc/homes.ledger", dataset="homes", total=Total.pure(1.0))
    )


class TestReplacedFile:
    def test_an_older_copy_put_in_its_place_is_refused_while_it_is_open(self, on_disk: Ledger, file: Path) -> None:
        on_disk.ask({"question": 1}, cost=1.0, draw=lambda: "x")
        on_disk.close()  # which writes everything into the one file
        shutil.copy2(file, file.with_suffix(".old"))
        on_disk.ask({"question": 2}, cost=1.0, draw=lambda: "x")
        file.with_suffix(".old").replace(file)
        line = refused_line(lambda: on_disk.ask({"question": 3}, cost=1.0, draw=touched))
        assert "moved or replaced" in line

    def test_an_older_copy_is_refused_by_its_anchor(self, on_disk: Ledger, file: Path) -> None:
        on_disk.ask({"question": 1}, cost=1.0, draw=lambda: "x")
        on_disk.close()
        shutil.copy2(file, file.with_suffix(".old"))
        on_disk.ask({"question": 2}, cost=1.0, draw=lambda: "x")
        anchor = str(on_disk.balance().anchor)
        on_disk.close()
        file.with_suffix(".old").replace(file)
        assert "older copy" in refused_line(lambda: Ledger.open(file, anchor=anchor))
        with Ledger.open(file) as unaware:
            assert not unaware.verify(anchor=anchor).holds

    def test_every_one_of_several_anchors_is_looked_at(self, on_disk: Ledger, file: Path) -> None:
        """The last of them may be reached by a copy that was written on, without what the first one stands for."""
        on_disk.close()
        shutil.copy2(file, file.with_suffix(".old"))
        on_disk.ask({"question": 1}, cost=1.0, draw=lambda: "x")
        lost = str(on_disk.balance().anchor)
        on_disk.close()
        file.with_suffix(".old").replace(file)
        with Ledger.open(file) as unaware:
            unaware.ask({"question": 2}, cost=1.0, draw=lambda: "x")
            unaware.ask({"question": 3}, cost=1.0, draw=lambda: "x")
            reached = str(unaware.balance().anchor)
        Ledger.open(file, anchor=[reached]).close()
        assert "older copy" in refused_line(lambda: Ledger.open(file, anchor=[lost, reached]))

    def test_older_content_copied_into_the_same_file_is_refused(self, on_disk: Ledger, file: Path) -> None:
        on_disk.ask({"question": 1}, cost=1.0, draw=lambda: "x")
        on_disk.close()
        old = file.read_bytes()
        on_disk.ask({"question": 2}, cost=1.0, draw=lambda: "x")
        on_disk.close()
        file.write_bytes(old)
        assert "older copy" in refused_line(lambda: on_disk.ask({"question": 3}, cost=1.0, draw=touched))

    def test_a_file_that_was_removed_is_not_made_anew(self, on_disk: Ledger, file: Path) -> None:
        file.unlink()
        assert "moved or replaced" in refused_line(lambda: on_disk.ask({"question": 1}, cost=1.0, draw=touched))
        assert not file.exists()

    def test_a_file_replaced_while_the_answer_is_drawn_shows_nothing(self, on_disk: Ledger, file: Path) -> None:
        def draw() -> str:
            shutil.copy2(file, file.with_suffix(".old"))
            file.with_suffix(".old").replace(file)
            return "never shown"

        assert "moved or replaced" in refused_line(lambda: on_disk.ask({"question": 1}, cost=1.0, draw=draw))

    @pytest.mark.parametrize("answer", ["never shown", "/never/shown", None])
    def test_where_the_ledger_has_gone_nobody_learns_whether_the_draw_failed(
        self, on_disk: Ledger, file: Path, answer: str | None
    ) -> None:
        def draw() -> str:
            file.unlink()
            if answer is None:
                raise RuntimeError
            return answer

        with pytest.raises(LedgerError, match="moved or replaced") as refused:
            on_disk.ask({"question": 1}, cost=1.0, draw=draw)
        assert refused.value.__context__ is None


def test_a_clock_set_back_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.ask({"question": 1}, cost=0.25, draw=lambda: "x")

    class LongAgo(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Self:
            return cls(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr(chain_module, "datetime", LongAgo)
    ledger.ask({"question": 2}, cost=0.25, draw=lambda: "x")
    assert [entry.at[:4] for entry in ledger.entries()][-2:] == ["1970", "1970"]
    assert ledger.ask({"question": 1}, cost=0.25, draw=touched).repeated
    assert [entry.number for entry in ledger.entries()] == [1, 2, 3, 4, 5]
    assert ledger.balance().spent == 0.5
    assert ledger.verify().holds


class TestBusy:
    def test_a_lock_that_is_not_given_back_ends_in_an_error(self, on_disk: Ledger, file: Path) -> None:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        line = refused_line(lambda: on_disk.ask({"question": 1}, cost=0.1, draw=touched))
        assert "busy" in line
        assert time.monotonic() - started > 0.9  # it was waited for
        other.execute("ROLLBACK")
        other.close()
        on_disk.ask({"question": 1}, cost=0.1, draw=lambda: "x")

    def test_a_lock_of_a_killed_process_is_gone_with_it(self, on_disk: Ledger, file: Path) -> None:
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
                "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); time.sleep(60)",
                str(file),
            ],
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"locked\n"
        child.kill()
        child.wait()
        child.stdout.close()
        on_disk.ask({"question": 1}, cost=0.1, draw=lambda: "x")


class TestPostgreSQLGone:
    @pytest.fixture
    def url(self, fresh_schema: Callable[[], str]) -> str:
        return fresh_schema()

    def test_a_server_that_is_not_there_is_refused_without_its_password(self) -> None:
        line = refused_line(lambda: Ledger.open("postgresql://ann:secret@127.0.0.1:1/db", patience=0.3))
        assert "secret" not in line
        assert "does not answer" in line

    def test_connections_ended_by_the_server_are_made_again(self, url: str, postgres_server: str) -> None:
        import psycopg

        def end_all() -> None:
            with psycopg.connect(postgres_server, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )

        with Ledger.create(url, dataset="homes", total=Total.pure(1.0), patience=10.0) as made:
            end_all()

            def draw() -> str:
                end_all()
                return "x"

            assert made.ask({"question": 1}, cost=0.25, draw=draw).answer == "x"
            assert made.balance().spent == 0.25
            assert made.verify().holds

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_backend_killed_at_any_statement_charges_once(
        self, url: str, postgres_server: str, monkeypatch: pytest.MonkeyPatch, moment: str
    ) -> None:
        """What was under way is gone or committed, nobody is told which: it is looked up, and done once."""
        import psycopg

        run, seen, at = book_module.run, 0, 0

        def fatal(connection: Any, statement: str, *values: Any) -> Any:
            nonlocal seen
            seen += 1
            found = run(connection, statement, *values) if moment == "after" or seen != at else None
            if seen == at:
                raw = connection.connection.driver_connection
                with psycopg.connect(postgres_server, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", [raw.info.backend_pid])
            return run(connection, statement, *values) if found is None else found

        with Ledger.create(url, dataset="homes", total=Total.pure(1.0), patience=10.0) as made:
            monkeypatch.setattr(book_module, "run", fatal)
            while seen >= at:
                at, seen = at + 1, 0
                assert made.ask({"question": at}, cost=1e-3, draw=lambda: "x").answer == "x"
            assert at > 6
            assert made.balance().charged.epsilon == at * made.total.price(1e-3).epsilon
            assert sum(entry.kind == "settle" for entry in made.entries()) == at
            assert made.verify().holds

    def test_a_database_gone_in_the_middle_releases_nothing(self, url: str) -> None:
        with Ledger.create(url, dataset="homes", total=Total.pure(1.0), patience=0.5) as made:
            database = Database(url)

            def draw() -> str:
                database.write(
                    lambda found, _: found.execute(text("ALTER TABLE dpselect_ledger_entries RENAME TO elsewhere")),
                    lock=1,
                )
                return "never shown"

            refused_line(lambda: made.ask({"question": 1}, cost=0.25, draw=draw))
            database.write(
                lambda found, _: found.execute(text("ALTER TABLE elsewhere RENAME TO dpselect_ledger_entries")), lock=1
            )
            database.close()
            assert made.balance().spent == 0.25, "which was reserved"
            assert made.ask({"question": 1}, cost=0.25, draw=lambda: "now").answer == "now"
            assert made.balance().spent == 0.25

    def test_a_read_only_server_is_refused(self, url: str, postgres_server: str) -> None:
        with Ledger.create(url, dataset="homes", total=Total.pure(1.0)) as made:
            made.ask({"question": 1}, cost=0.25, draw=lambda: "x")
        from sqlalchemy.engine import make_url

        options = make_url(url).query["options"]
        read_only = make_url(url).update_query_dict({"options": f"{options} -cdefault_transaction_read_only=on"})
        with Ledger.open(read_only.render_as_string(hide_password=False), patience=0.5) as opened:
            assert "read-only" in refused_line(lambda: opened.ask({"question": 2}, cost=0.1, draw=touched))


class TestLostCommit:
    """A connection that breaks at COMMIT leaves it open whether the transaction went through: it is looked up."""

    @pytest.fixture
    def broken(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
        """The next transaction is committed, and then reported as lost."""
        once = Database._once
        pending: list[bool] = []

        def break_next() -> None:
            pending.append(True)

        def lossy(self: Database, work: Any, *, writes: bool, lock: int) -> Any:
            found = once(self, work, writes=writes, lock=lock)
            if writes and pending:
                pending.clear()
                from sqlalchemy.exc import OperationalError

                lost = sqlite3.OperationalError("database is locked")
                lost.sqlite_errorcode = sqlite3.SQLITE_BUSY  # type: ignore[attr-defined]
                raise OperationalError("COMMIT", {}, lost, connection_invalidated=True)
            return found

        monkeypatch.setattr(Database, "_once", lossy)
        yield break_next
        assert not pending

    @pytest.mark.parametrize("afresh", [False, True])
    def test_a_reservation_is_made_once(self, ledger: Ledger, broken: Callable[[], None], afresh: bool) -> None:
        broken()
        held = ledger.reserve({"question": 1}, cost=0.25, afresh=afresh)
        assert ledger.balance().spent == 0.25
        broken()
        assert not ledger.settle(held, "x").repeated
        assert ledger.balance().anchor.number == 3
        assert ledger.verify().holds

    def test_a_stretch_is_exchanged_once(self, ledger: Ledger, broken: Callable[[], None]) -> None:
        from dpselect.ledger import filter_on

        with filter_on(ledger, question={"verb": "watch"}, stretch=0.25) as budget:
            broken()
            budget.charge(0.125)
            budget.charge(0.0625)
            broken()
            budget.charge(0.125)
            broken()
        assert ledger.balance().spent == 0.3125
        assert ledger.verify().holds


def test_threads_of_one_process_share_a_ledger(ledger: Ledger) -> None:
    problems: list[BaseException] = []

    def ask(worker: int) -> None:
        try:
            for question in range(10):
                ledger.ask({"worker": worker, "question": question}, cost=0.01, draw=lambda: "x")
                ledger.balance()
        except BaseException as problem:
            problems.append(problem)

    workers = [threading.Thread(target=ask, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems
    assert ledger.balance().anchor.number == 81
    assert ledger.verify().holds
