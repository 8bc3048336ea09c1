"""The chain: whatever is altered, removed, added or rolled back shows."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Executable, inspect, text
from sqlalchemy import column as column_named
from sqlalchemy import table as table_named

from dpselect.errors import InvalidParameter, LedgerError
from dpselect.ledger import Anchor, Ledger, Total
from dpselect.ledger import schema as schema_module
from dpselect.ledger.chain import check_chain, digest_of
from dpselect.ledger.database import Database
from dpselect.ledger.schema import MIGRATIONS

COLUMNS: dict[str, Any] = {
    "kind": "retire",
    "reservation": 77,
    "key": "0" * 64,
    "epsilon": 1,
    "delta": 1,
    "rho": 1,
    "sum_epsilon": 1,
    "sum_delta": 1,
    "sum_rho": 1,
    "who": "eve",
    "at": "1999-01-01T00:00:00+00:00",
    "body": "{}",
    "previous": "f" * 64,
    "digest": "f" * 64,
}


def by_hand(place: str, statement: str | Executable) -> None:
    """What somebody with the database's own tools can do, the guard taken away first."""
    database = Database(place)

    def work(connection: Connection, _: int) -> None:
        if database.dialect == "sqlite":
            for deed in ("UPDATE", "DELETE"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS dpselect_ledger_no_{deed}"))
        else:
            connection.execute(text("DROP TRIGGER IF EXISTS dpselect_ledger_guard ON dpselect_ledger_entries"))
        connection.execute(text(statement) if isinstance(statement, str) else statement)

    database.write(work, lock=1)
    database.close()


def write_version_1(place: str) -> None:
    """A ledger as version 1 made it, by the database's own means."""
    written = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
    database = Database(place, create=True)
    sqlite = database.dialect == "sqlite"
    written = written.replace("{serial}", "INTEGER NOT NULL" if sqlite else "SERIAL NOT NULL")
    written = written.replace("{without_rowid}", "WITHOUT ROWID" if sqlite else "")

    def work(connection: Connection, _: int) -> None:
        for statement in written.partition("\n")[2].split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)

    database.write(work, lock=1)
    database.close()


def tables(place: str) -> Any:
    """The tables of a database: columns, keys and indexes."""
    database = Database(place)

    def look(connection: Connection) -> Any:
        found = inspect(connection)
        return {
            name: (
                [(column["name"], str(column["type"]), column["nullable"]) for column in found.get_columns(name)],
                found.get_pk_constraint(name)["constrained_columns"],
                sorted(tuple(one["column_names"]) for one in found.get_unique_constraints(name)),
                sorted((one["name"], one["unique"]) for one in found.get_indexes(name)),
            )
            for name in sorted(found.get_table_names())
        }

    try:
        return database.read(look)
    finally:
        database.close()


@pytest.fixture
def three(ledger: Ledger) -> Ledger:
    """Three questions: entries 2 to 7."""
    for question in range(3):
        ledger.ask({"question": question}, cost=0.1, draw=lambda: "x")
    return ledger


def test_a_chain_that_was_left_alone_holds(three: Ledger) -> None:
    found = three.verify()
    assert (found.holds, found.entries) == (True, 7)
    assert found.anchor == three.balance().anchor
    assert three.verify(anchor=str(found.anchor)).holds


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("number", [1, 4, 7])
def test_an_altered_entry_is_found(three: Ledger, place: str, column: str, number: int) -> None:
    entries = table_named("dpselect_ledger_entries", column_named("number"), column_named(column))
    by_hand(place, entries.update().where(entries.c.number == number).values({column: COLUMNS[column]}))
    found = three.verify()
    assert not found.holds
    assert any(problem.startswith(f"entry {number}:") for problem in found.problems)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_missing_entry_is_found(three: Ledger, place: str, number: int) -> None:
    by_hand(place, text("DELETE FROM dpselect_ledger_entries WHERE number = :number").bindparams(number=number))
    assert any("missing" in problem for problem in three.verify().problems)


def test_an_end_that_was_cut_off_is_found_by_its_anchor_alone(three: Ledger, place: str) -> None:
    anchor = three.verify().anchor
    by_hand(place, "DELETE FROM dpselect_ledger_entries WHERE number > 5")
    assert three.verify().holds, "which is why anchors are kept elsewhere"
    found = three.verify(anchor=anchor)
    assert "old copy, or cut off" in found.problems[0]
    with pytest.raises(LedgerError, match="older copy"):
        three.reserve({"question": "more"}, cost=0.1)
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open(place, anchor=anchor)


def test_a_chain_written_anew_is_found_by_its_anchor_alone(three: Ledger) -> None:
    entries, forged = list(three.entries()), []
    before, anchor = "0" * 64, three.verify().anchor
    for entry in entries:
        forged.append(replace(entry, who="eve").after(before, entry.sums, "homes"))
        before = forged[-1].digest
    assert check_chain(forged, "homes").holds
    assert "rewritten" in check_chain(forged, "homes", anchor=anchor).problems[0]


def test_entries_of_another_data_set_do_not_pass(three: Ledger) -> None:
    assert not check_chain(three.entries(), "bikes").holds


def test_an_edited_last_entry_stops_everything(three: Ledger, place: str) -> None:
    by_hand(place, "UPDATE dpselect_ledger_entries SET sum_epsilon = 0 WHERE number = 7")
    for attempt in (
        lambda: three.ask({"question": "more"}, cost=0.1, draw=lambda: pytest.fail("data was touched")),
        three.balance,
        lambda: Ledger.open(place),
    ):
        with pytest.raises(LedgerError, match="entry 7 of the ledger was altered") as refused:
            attempt()
        assert "\n" not in str(refused.value)


def test_an_edited_answer_is_not_repeated(three: Ledger, place: str) -> None:
    by_hand(place, """UPDATE dpselect_ledger_entries SET body = '{"answer":"y"}' WHERE number = 3""")
    with pytest.raises(LedgerError, match="entry 3 of the ledger was altered"):
        three.ask({"question": 0}, cost=0.1, draw=lambda: pytest.fail("data was touched"))


@pytest.mark.parametrize(
    "deed", ["UPDATE dpselect_ledger_entries SET who = 'eve'", "DELETE FROM dpselect_ledger_entries"]
)
def test_a_slip_of_the_hand_changes_nothing(three: Ledger, place: str, deed: str) -> None:
    database = Database(place)
    with pytest.raises(LedgerError, match="only added, never changed"):
        database.write(lambda connection, _: connection.execute(text(deed)), lock=1)
    database.close()
    assert three.verify().holds


def test_every_column_is_in_the_digest(three: Ledger) -> None:
    """What a new column would need."""
    columns = three._database.read(lambda connection: inspect(connection).get_columns("dpselect_ledger_entries"))
    assert set(COLUMNS) | {"dataset", "number"} == {column["name"] for column in columns}
    entry = next(three.entries())
    assert digest_of(entry, "homes") == entry.digest != digest_of(entry, "home")


@pytest.mark.parametrize("text", ["", "3", "3:abc", "x:" + "a" * 64, "0:" + "a" * 64, "3:" + "A" * 64, None])
def test_an_anchor_that_is_none_is_refused(text: Any) -> None:
    with pytest.raises(InvalidParameter, match="anchor"):
        Anchor.read(text)


class TestVersions:
    def test_a_ledger_of_version_1_is_upgraded_and_verifies(self, place: str) -> None:
        """The file is as that version wrote it: neither its tables nor its digests may ever mean anything else."""
        write_version_1(place)
        anchor = "6:6f424eb8366ca328924dd39546ee5c55e4337457bd3a0458855d27d908101b6c"
        with Ledger.open(place, anchor=anchor) as opened:
            assert opened.verify(anchor=anchor).holds
            assert opened.balance().spent == 0.875
            drawn: list[int] = []
            repeated = opened.ask({"verb": "peak", "month": 1}, cost=0.5, draw=lambda: drawn.append(1))
            assert drawn == []
            assert repeated.answer == {"label": "2013-01-20"}
            assert opened.ask({"verb": "peak", "month": 2}, cost=0.25, draw=lambda: "x").number == 6
            assert opened.verify(anchor=anchor).holds
        database = Database(place)
        assert database.read(schema_module.version_of) == len(MIGRATIONS)
        with pytest.raises(LedgerError, match="only added"):
            database.write(lambda found, _: found.execute(text("DELETE FROM dpselect_ledger_entries")), lock=1)
        database.close()

    def test_version_1_is_still_made_as_it_was(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as older:
            older.setattr(schema_module, "MIGRATIONS", MIGRATIONS[:1])
            Ledger.create(place, dataset="homes", total=Total.pure(1.0)).close()
            made = tables(place)
        for table in ("entries", "datasets", "schema"):
            by_hand(place, f"DROP TABLE dpselect_ledger_{table}")
        write_version_1(place)
        assert tables(place) == made

    def test_a_new_ledger_and_an_upgraded_one_are_alike(self, place: str) -> None:
        Ledger.create(place, dataset="homes", total=Total.pure(1.0)).close()
        made = tables(place)
        for table in ("entries", "datasets", "schema"):
            by_hand(place, f"DROP TABLE dpselect_ledger_{table}")
        write_version_1(place)
        Ledger.open(place).close()
        assert tables(place) == made

    def test_a_file_half_way_between_versions_is_left_as_it_was(
        self, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_version_1(place)

        def fail(_: Connection) -> None:
            raise RuntimeError

        with monkeypatch.context() as broken:
            broken.setattr(schema_module, "MIGRATIONS", (*MIGRATIONS, fail))
            with pytest.raises(RuntimeError):
                Ledger.open(place)
        with Ledger.open(place) as opened:
            assert opened.verify().holds

    def test_many_who_open_an_old_ledger_at_once_upgrade_it_once(self, place: str) -> None:
        write_version_1(place)
        started, problems = threading.Barrier(8), list[BaseException]()

        def use(worker: int) -> None:
            try:
                started.wait()
                with Ledger.open(place) as opened:
                    opened.ask({"worker": worker}, cost=1e-6, draw=lambda: "x")
            except BaseException as problem:
                problems.append(problem)

        workers = [threading.Thread(target=use, args=(worker,)) for worker in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not problems
        with Ledger.open(place) as opened:
            assert opened.verify().holds
            assert sum(entry.content == {"answer": "x"} for entry in opened.entries()) == 8

    def test_a_newer_ledger_is_refused(self, ledger: Ledger, place: str) -> None:
        by_hand(place, "UPDATE dpselect_ledger_schema SET version = 99")
        with pytest.raises(LedgerError, match=r"version 99 .* use a newer dpselect"):
            Ledger.open(place)

    def test_what_is_no_ledger_is_refused(self, tmp_path: Path) -> None:
        stranger = tmp_path / "notes.txt"
        stranger.write_text("not a database, but long enough to look at " * 100)
        stranger.chmod(0o600)
        with pytest.raises(LedgerError, match="not a database"):
            Ledger.open(stranger)
        assert stranger.read_text().startswith("not a database")


def test_a_backup_by_the_databases_own_means_verifies(tmp_path: Path) -> None:
    import sqlite3

    with Ledger.create(tmp_path / "a.ledger", dataset="homes", total=Total.pure(1.0)) as made:
        made.ask({"question": 1}, cost=0.25, draw=lambda: "x")
        source, target = sqlite3.connect(tmp_path / "a.ledger"), sqlite3.connect(tmp_path / "b.ledger")
        source.backup(target)
        source.close()
        target.close()
        (tmp_path / "b.ledger").chmod(0o600)
        with Ledger.open(tmp_path / "b.ledger", anchor=made.balance().anchor) as copy:
            assert copy.verify().holds
