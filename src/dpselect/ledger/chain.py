"""Entries, each with the digest of the one before: an alteration anywhere shows, and an anchor shows an old copy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from dpselect.checks import refuse
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit

#: What stands before the first entry.
START = "0" * 64

_ANCHOR = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a ledger: public, and never changed."""

    number: int
    kind: str
    reservation: int | None
    key: str | None
    amounts: Amounts
    who: str
    at: str
    body: str
    sums: Amounts = NOTHING
    previous: str = ""
    digest: str = ""

    def after(self, previous: str, sums: Amounts, dataset: str) -> Entry:
        """The same in its place: the digest before it, the sums up to it, and its own digest."""
        row = {**self.row(), "previous": previous}
        row["sum_epsilon"], row["sum_delta"], row["sum_rho"] = sums.epsilon, sums.delta, sums.rho
        row["digest"] = _digest(row, dataset)
        return Entry.from_row(row)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a row of the database."""
        return cls(
            row["number"],
            row["kind"],
            row["reservation"],
            row["key"],
            Amounts(row["epsilon"], row["delta"], row["rho"]),
            row["who"],
            row["at"],
            row["body"],
            Amounts(row["sum_epsilon"], row["sum_delta"], row["sum_rho"]),
            row["previous"],
            row["digest"],
        )

    def row(self) -> dict[str, Any]:
        """As a row of the database, in the order of :data:`ROW`."""
        return {
            "number": self.number,
            "kind": self.kind,
            "reservation": self.reservation,
            "key": self.key,
            "who": self.who,
            "at": self.at,
            "body": self.body,
            "previous": self.previous,
            "digest": self.digest,
            "epsilon": self.amounts.epsilon,
            "sum_epsilon": self.sums.epsilon,
            "delta": self.amounts.delta,
            "sum_delta": self.sums.delta,
            "rho": self.amounts.rho,
            "sum_rho": self.sums.rho,
        }

    @property
    def content(self) -> Any:
        """What stands in it: the question, the answer under ``answer``, the total, or why it was retired."""
        return json.loads(self.body)


#: The columns of an entry but its data set's number.
ROW = tuple(Entry(0, "", None, None, NOTHING, "", "", "").row())


def digest_of(entry: Entry, dataset: str) -> str:
    """SHA-256 over everything in the entry, the digest before it, and the name of its data set."""
    return _digest(entry.row(), dataset)


def _digest(row: dict[str, Any], dataset: str) -> str:
    told = {"dataset": dataset, **row}
    del told["digest"]
    return hashlib.sha256(_WRITE(told).encode()).hexdigest()


_WRITE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


@dataclass(frozen=True)
class Anchor:
    """How far a ledger had come, and its digest there: kept elsewhere, it tells an old copy from the newest.

    >>> str(Anchor.read("3:" + "ab" * 32)).startswith("3:abab")
    True
    """

    number: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"

    @classmethod
    def read(cls, text: str) -> Self:
        """From what :func:`str` gave."""
        found = _ANCHOR.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            raise refuse("anchor", text, "a number, a colon and 64 hexadecimal digits, as `ledger verify` prints")
        return cls(int(found[1]), found[2])


@dataclass
class Check:
    """What a look at the whole chain found; no ``problems`` means that it holds."""

    entries: int = 0
    anchor: Anchor | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.problems


def check_chain(entries: Iterable[Entry], dataset: str, *, anchor: Anchor | None = None) -> Check:
    """Look at every entry: its digest, its place, its sums, and whether it may stand there at all."""
    found = Check()
    walk = _Walk(dataset)
    anchored = anchor is None
    for entry in entries:
        found.entries += 1
        found.problems += [f"entry {entry.number}: {problem}" for problem in walk.step(entry)]
        found.anchor = Anchor(entry.number, entry.digest)
        if anchor is not None and entry.number == anchor.number:
            anchored = True
            if entry.digest != anchor.digest:
                found.problems.append(f"entry {entry.number}: not the one of the anchor; the ledger was rewritten")
    if not found.entries:
        found.problems.append("there is no entry, not even the first")
    elif anchor is not None and not anchored:
        found.problems.append(
            f"the ledger ends at entry {walk.number}, before the anchor's {anchor.number}: an old copy, or cut off"
        )
    return found


class _Walk:
    """The state after each entry, worked out anew from the entries alone."""

    def __init__(self, dataset: str) -> None:
        self.number = 0
        self._dataset = dataset
        self._previous = START
        self._sums = Amounts()
        self._total: Total | None = None
        self._unit: PrivacyUnit | None = None
        self._open: dict[int, Amounts] = {}
        self._retired = False

    def step(self, entry: Entry) -> list[str]:
        problems = []
        if entry.number != self.number + 1:
            problems.append(f"expected number {self.number + 1}; entries are missing or out of order")
        if entry.previous != self._previous:
            problems.append("does not follow the entry before it; one of the two was altered, replaced or removed")
        if digest_of(entry, self._dataset) != entry.digest:
            problems.append("does not match its digest; it was altered")
        try:
            problems += self._account(entry)
        except (ValueError, KeyError, TypeError, AttributeError):
            problems.append("cannot be read; it was altered")
        if self._sums != entry.sums:
            problems.append("its sums are not those of the entries up to it")
        if self._total is None or not self._total.fits(self._sums):
            problems.append("more is charged than the total allows")
        # Go on from what is written, so that one alteration is not reported at every entry after it.
        self.number, self._previous, self._sums = entry.number, entry.digest, entry.sums
        return problems

    def _account(self, entry: Entry) -> list[str]:
        if self._retired:
            return ["comes after the data set was retired"] if entry.kind != "settle" else self._settled(entry)
        if entry.kind == "create":
            if self.number:
                return ["makes the ledger a second time"]
            self._total = Total.from_document(entry.content["total"], entry.amounts)
            said = entry.content.get("unit")
            self._unit = None if said is None else PrivacyUnit.from_document(said)
        elif entry.kind == "reserve":
            if entry.amounts.negative or entry.reservation != entry.number:
                return ["is no reservation that could be made"]
            self._sums += entry.amounts
            self._open[entry.number] = entry.amounts
        elif entry.kind == "settle":
            return self._settled(entry)
        elif entry.kind == "unit":
            # Stated anew while nothing is charged; otherwise once, in a ledger that was made without it.
            stated, self._unit = self._unit, PrivacyUnit.from_document(entry.content["unit"])
            if stated is not None and stated != self._unit and self._sums != NOTHING:
                return ["changes whose privacy is counted after something was charged"]
        elif entry.kind == "retire":
            self._retired = True
        else:
            return [f"has the unknown kind {entry.kind!r}"]
        return []

    def _settled(self, entry: Entry) -> list[str]:
        reserved = self._open.pop(entry.reservation or 0, None)
        if reserved is None:
            return ["settles what was not reserved, or was settled before"]
        self._sums += entry.amounts - reserved
        if entry.amounts.negative or not entry.amounts <= reserved:
            return ["settles more than was reserved"]
        return []
