"""The tables of a ledger, and the numbered steps that made them what they are.

Everything about spending stands in ``entries``: rows are only ever added, each carries the sums after it and the digest
of the one before it, so the last row of a data set is its whole state, and there is no second copy that could differ.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, text

from dpselect.errors import LedgerError

#: Columns of ``dpselect_ledger_entries``:
#:
#: * ``number``: 1, 2, 3, … without gaps: two writers can never both have the next one;
#: * ``kind``: create, unit, reserve, settle or retire;
#: * ``reservation``: the number of the reservation it is about, its own for a reservation;
#: * ``key``: of the question: asked again, it finds the first answer;
#: * ``at``: when, for people to read; nothing depends on it;
#: * ``body``: the public question or answer, as JSON.
#:
#: Version 1, in words that no later version changes. In SQLite entries lie in the order of their numbers (WITHOUT
#: ROWID), and each costs one page less.
_FIRST = (
    "CREATE TABLE dpselect_ledger_schema (version INTEGER NOT NULL PRIMARY KEY)",
    "CREATE TABLE dpselect_ledger_datasets (id {serial} PRIMARY KEY, name VARCHAR(200) NOT NULL UNIQUE)",
    """
CREATE TABLE dpselect_ledger_entries (
    dataset INTEGER NOT NULL REFERENCES dpselect_ledger_datasets (id), number BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL, reservation BIGINT, "key" VARCHAR(64),
    epsilon BIGINT NOT NULL, delta BIGINT NOT NULL, rho BIGINT NOT NULL,
    sum_epsilon BIGINT NOT NULL, sum_delta BIGINT NOT NULL, sum_rho BIGINT NOT NULL,
    who VARCHAR(200) NOT NULL, at VARCHAR(40) NOT NULL, body TEXT NOT NULL,
    previous VARCHAR(64) NOT NULL, digest VARCHAR(64) NOT NULL,
    PRIMARY KEY (dataset, number), UNIQUE (dataset, kind, reservation)
) {without_rowid}
""",
    'CREATE INDEX dpselect_ledger_keys ON dpselect_ledger_entries (dataset, "key")',
)

_SQLITE_GUARD = """
CREATE TRIGGER dpselect_ledger_no_{deed} BEFORE {deed} ON dpselect_ledger_entries
BEGIN SELECT RAISE(ABORT, 'entries of a ledger are only added, never changed'); END
"""
_POSTGRESQL_GUARD = (
    """
CREATE OR REPLACE FUNCTION dpselect_ledger_guard() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'entries of a ledger are only added, never changed'; END $$
""",
    """
CREATE TRIGGER dpselect_ledger_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON dpselect_ledger_entries
FOR EACH STATEMENT EXECUTE FUNCTION dpselect_ledger_guard()
""",
)


def _tables(connection: Connection) -> None:
    sqlite = connection.dialect.name == "sqlite"
    for statement in _FIRST:
        # Not by text(), to which a colon would mean something.
        connection.exec_driver_sql(
            statement.format(
                serial="INTEGER NOT NULL" if sqlite else "SERIAL NOT NULL",
                without_rowid="WITHOUT ROWID" if sqlite else "",
            )
        )


def _guard(connection: Connection) -> None:
    """Keeps a slip of the hand from changing an entry; whoever means to can still drop the trigger."""
    if connection.dialect.name == "sqlite":
        for deed in ("UPDATE", "DELETE"):
            connection.execute(text(_SQLITE_GUARD.format(deed=deed)))
    else:
        for statement in _POSTGRESQL_GUARD:
            connection.execute(text(statement))


def _one_per_key(connection: Connection) -> None:
    """A key has one reservation, and is found without a look at all the others."""
    connection.execute(
        text('CREATE UNIQUE INDEX dpselect_ledger_questions ON dpselect_ledger_entries (dataset, "key")')
    )
    connection.execute(text("DROP INDEX dpselect_ledger_keys"))


def _units(_: Connection) -> None:
    """Entries may say whose privacy is counted (kind ``unit``): an older dpselect would not heed them."""


#: Step n brings version n - 1 to version n. A step that was published is never edited; a new one is added.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_tables, _guard, _one_per_key, _units)


def version_of(connection: Connection) -> int:
    """The version of the tables in this database; 0 where there are none."""
    if not inspect(connection).has_table("dpselect_ledger_schema"):
        return 0
    return connection.execute(text("SELECT version FROM dpselect_ledger_schema")).scalar() or 0


def newest() -> int:
    """The version that this dpselect writes."""
    return len(MIGRATIONS)


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest version; one that is newer still is refused. Needs the lock of a writer."""
    found = version_of(connection)
    if found > newest():
        raise LedgerError(
            f"this ledger has version {found} and this dpselect knows versions up to {newest()}; use a newer dpselect"
        )
    if found == newest():
        return
    for step in MIGRATIONS[found:]:
        step(connection)
    connection.execute(text("DELETE FROM dpselect_ledger_schema"))
    connection.execute(text("INSERT INTO dpselect_ledger_schema (version) VALUES (:version)"), {"version": newest()})
