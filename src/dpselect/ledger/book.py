"""The rows of one data set: read with their digests checked, and added to at the end."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from dpselect.errors import LedgerError
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.chain import ROW, START, Anchor, LedgerEntry, digest_of
from dpselect.ledger.database import run
from dpselect.ledger.records import Reservation
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit
from dpselect.ledger.wording import written

#: How many entries are fetched at a time.
PAGE = 1000

#: The columns of an entry after ``dataset``, in the order of :meth:`Entry.row`.
_COLUMNS = ", ".join(f'"{name}"' for name in ROW)
_FROM = "FROM dpselect_ledger_entries WHERE dataset = ?"
#: What every question runs, as plain text: putting statements together takes longer than running them.
_STATEMENTS = {
    "last": (
        # All three columns of an index: with two of them SQLite would rather look at every entry there is.
        f"SELECT {_COLUMNS}, EXISTS (SELECT 1 {_FROM} AND kind = 'retire' AND reservation IS NULL) "
        f"{_FROM} ORDER BY number DESC LIMIT 1"
    ),
    "number": f"SELECT {_COLUMNS} {_FROM} AND number = ?",
    "digest": f"SELECT digest {_FROM} AND number = ?",
    "unit": f"SELECT {_COLUMNS} {_FROM} AND kind = 'unit' AND reservation IS NULL ORDER BY number DESC LIMIT 1",
    "key": f'SELECT {_COLUMNS} {_FROM} AND "key" = ?',
    "end": f"SELECT {_COLUMNS} {_FROM} AND kind = 'settle' AND reservation = ?",
    "insert": f"INSERT INTO dpselect_ledger_entries (dataset, {_COLUMNS}) VALUES (?{', ?' * len(ROW)})",  # noqa: S608 - own names
}
_PAGE = f"SELECT {_COLUMNS} {_FROM} AND number > ? ORDER BY number LIMIT {PAGE}"
_ANCHORED = (
    "SELECT name FROM dpselect_ledger_datasets JOIN dpselect_ledger_entries ON dataset = id "
    "WHERE number = ? AND digest = ?"
)


class Book:
    """The entries of the data set ``name``, which has this ``number`` in the database.

    Every method works inside a transaction of the caller; those that add need it to be the only writer.
    """

    def __init__(self, name: str, number: int, seen: Anchor) -> None:
        self.name = name
        self.number = number
        #: The last entry this object knows to be committed: the chain may grow beyond it and never lose it.
        self.seen = seen

    def head(self, connection: Connection) -> tuple[LedgerEntry, bool]:
        """The last entry, which is the state, and whether the data set is retired."""
        seen = self.seen  # before looking: what is seen by then is in what is found
        row = run(connection, _STATEMENTS["last"], self.number, self.number).fetchone()
        if row is None:
            raise LedgerError("the ledger's entries are gone; nothing was released. Restore the newest backup")
        head = self._checked(row)
        digest: str | None = head.digest
        if head.number > seen.number:
            found = run(connection, _STATEMENTS["digest"], self.number, seen.number).fetchone()
            digest = None if found is None else found[0]
        if head.number < seen.number or digest != seen.digest:
            raise older_copy(seen)
        return head, bool(row[-1])

    def saw(self, entry: LedgerEntry) -> None:
        """Remember an entry that is committed."""
        if entry.number > self.seen.number:
            self.seen = Anchor(entry.number, entry.digest)

    def asked(self, connection: Connection, key: str) -> Reservation | None:
        """The reservation of a key, with its end where it has one."""
        entry = self._one(connection, "key", key)
        return None if entry is None else Reservation(entry, self.settled(connection, entry.number))

    def entry(self, connection: Connection, number: int) -> LedgerEntry | None:
        """An entry by its number."""
        return self._one(connection, "number", number)

    def settled(self, connection: Connection, reservation: int) -> LedgerEntry | None:
        """The end of a reservation."""
        return self._one(connection, "end", reservation)

    def page(self, connection: Connection, after: int) -> list[LedgerEntry]:
        """Some entries in order, as they are: whoever reads them all checks them all."""
        return [LedgerEntry.from_row(row) for row in run(connection, _PAGE, self.number, after).fetchall()]

    def reserve(
        self, connection: Connection, head: LedgerEntry, key: str, amounts: Amounts, who: str, body: str
    ) -> LedgerEntry:
        """Add a reservation after ``head``."""
        number = head.number + 1
        entry = LedgerEntry(
            number=number, kind="reserve", who=who, body=body, reservation=number, key=key, amounts=amounts
        )
        return self._add(connection, head, entry)

    def settle(
        self, connection: Connection, head: LedgerEntry, reserved: LedgerEntry, amounts: Amounts, who: str, body: str
    ) -> LedgerEntry:
        """Add the end of a reservation after ``head``."""
        entry = LedgerEntry(
            number=head.number + 1, kind="settle", who=who, body=body, reservation=reserved.number, amounts=amounts
        )
        return self._add(connection, head, entry, back=reserved.amounts)

    def unit(self, connection: Connection) -> PrivacyUnit | None:
        """Whose privacy is counted, by the last entry that says it; None in a ledger that was made without it."""
        row = run(connection, _STATEMENTS["unit"], self.number).fetchone()
        said = self.entry(connection, 1) if row is None else self._checked(row)
        found = None if said is None else said.content.get("unit")
        return None if found is None else PrivacyUnit.from_document(found)

    def state_unit(self, connection: Connection, head: LedgerEntry, unit: PrivacyUnit, who: str) -> LedgerEntry:
        """Add, after ``head``, whose privacy is counted from now on."""
        body = written("unit", {"unit": unit.document()})
        return self._add(connection, head, LedgerEntry(number=head.number + 1, kind="unit", who=who, body=body))

    def check_anchor(self, connection: Connection, anchor: Anchor) -> None:
        """Refuse a ledger that has not, or no longer, the entry of an anchor."""
        found = run(connection, _STATEMENTS["digest"], self.number, anchor.number).fetchone()
        if found is None or found[0] != anchor.digest:
            raise older_copy(anchor)

    def retire(self, connection: Connection, head: LedgerEntry, who: str, body: str) -> LedgerEntry:
        """Add the end of the data set after ``head``."""
        return self._add(connection, head, LedgerEntry(number=head.number + 1, kind="retire", who=who, body=body))

    def _add(
        self, connection: Connection, head: LedgerEntry, entry: LedgerEntry, *, back: Amounts = NOTHING
    ) -> LedgerEntry:
        """Add an entry after ``head``: the sums after it have its amounts, and no longer those that come back."""
        sealed = entry.after(head.digest, head.sums + entry.amounts - back, self.name)
        run(connection, _STATEMENTS["insert"], self.number, *sealed.row().values())
        return sealed

    def _one(self, connection: Connection, wanted: str, of: str | int) -> LedgerEntry | None:
        row = run(connection, _STATEMENTS[wanted], self.number, of).fetchone()
        return None if row is None else self._checked(row)

    def _checked(self, row: Sequence[Any]) -> LedgerEntry:
        entry = LedgerEntry.from_row(row)
        if digest_of(entry, self.name) != entry.digest:
            raise _altered(entry.number)
        return entry


def make(
    connection: Connection, name: str, total: Total, who: str, unit: PrivacyUnit | None
) -> tuple[Book, LedgerEntry]:
    """A new data set with its first entry."""
    run(connection, "INSERT INTO dpselect_ledger_datasets (name) VALUES (?)", name)
    number = find(connection, name)
    if number is None:
        raise LedgerError("the database did not keep the data set it was given")
    counted = {} if unit is None else {"unit": unit.document()}
    # What tells this data set from one that is made anew under its name, whenever that is.
    mark = secrets.token_hex(16)
    body = written("total", {"dataset": name, "total": total.document(), "mark": mark, **counted})
    entry = LedgerEntry(number=1, kind="create", who=who, body=body, amounts=total.amounts)
    first = entry.after(START, NOTHING, name)
    run(connection, _STATEMENTS["insert"], number, *first.row().values())
    return Book(name, number, Anchor(1, first.digest)), first


def open_book(connection: Connection, name: str | None, anchor: Anchor | None = None) -> tuple[Book, LedgerEntry]:
    """A data set that is there, and its first entry; without a name, that of the ``anchor``, or the only one."""
    known = names(connection)
    wanted = known[0] if name is None and len(known) == 1 else name
    if wanted is None and anchor is not None:
        wanted = _anchored(connection, anchor)
    number = None if wanted is None else find(connection, wanted)
    if wanted is None or number is None:
        shown = ", ".join(map(repr, known)) or "none; make one with its total"
        why = "one must be named" if name is None else f"{name!r} is not among them"
        raise LedgerError(f"the ledger's data sets are: {shown}; {why}")
    book = Book(wanted, number, Anchor(1, ""))
    first = book.entry(connection, 1)
    if first is None or first.kind != "create":
        raise _altered(1)
    book.seen = Anchor(1, first.digest)
    return book, first


def _anchored(connection: Connection, anchor: Anchor) -> str:
    """The data set that reached an anchor."""
    row = run(connection, _ANCHORED, anchor.number, anchor.digest).fetchone()
    if row is None:
        raise older_copy(anchor)
    return str(row[0])


def find(connection: Connection, name: str) -> int | None:
    """The number of a data set."""
    row = run(connection, "SELECT id FROM dpselect_ledger_datasets WHERE name = ?", name).fetchone()
    return None if row is None else int(row[0])


def names(connection: Connection) -> tuple[str, ...]:
    """The names of all data sets."""
    found = run(connection, "SELECT name FROM dpselect_ledger_datasets ORDER BY id")
    return tuple(row[0] for row in found.fetchall())


def older_copy(anchor: Anchor) -> LedgerError:
    """What to say of a ledger that lacks the entry of an anchor."""
    return LedgerError(
        f"the ledger is not the one that reached entry {anchor.number}: it is an older copy or was rewritten, or it is "
        "another ledger; nothing was released. Put the newest file back"
    )


def _altered(number: int) -> LedgerError:
    return LedgerError(
        f"entry {number} of the ledger was altered; nothing was released. Run `dpselect ledger verify` and restore "
        "the newest backup"
    )
