"""Entries, each with the digest of the one before: an alteration anywhere shows, and an anchor shows an old copy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from dpselect.checks import refuse
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit

#: What stands before the first entry.
START = "0" * 64

#: The columns of an entry, but for the number of its data set.
_PLAIN = ("number", "kind", "reservation", "key", "who", "at", "body", "previous", "digest")
ROW = (*_PLAIN, *(f"{of}{name}" for name in ("epsilon", "delta", "rho") for of in ("", "sum_")))

_ANCHOR = re.compile(r"([1-9][0-9]{0,18}):([0-9a-f]{64})")


def _now() -> str:
    """The time by this machine's clock, for people to read."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One row of a ledger: public, and never changed."""

    number: int
    kind: str
    who: str
    body: str
    at: str = field(default_factory=_now)
    reservation: int | None = None
    key: str | None = None
    amounts: Amounts = NOTHING
    sums: Amounts = NOTHING
    previous: str = ""
    digest: str = ""

    def after(self, previous: str, sums: Amounts, dataset: str) -> LedgerEntry:
        """The same in its place: the digest before it, the sums up to it, and its own digest."""
        placed = replace(self, previous=previous, sums=sums)
        return replace(placed, digest=digest_of(placed, dataset))

    @classmethod
    def from_row(cls, values: Sequence[Any]) -> Self:
        """From a row of the database, in the order of :data:`ROW`; what comes after it is left alone."""
        epsilon, sum_epsilon, delta, sum_delta, rho, sum_rho = values[len(_PLAIN) : len(ROW)]
        return cls(
            **dict(zip(_PLAIN, values, strict=False)),
            amounts=Amounts(epsilon, delta, rho),
            sums=Amounts(sum_epsilon, sum_delta, sum_rho),
        )

    def row(self) -> dict[str, Any]:
        """As a row of the database."""
        amounts, sums = self.amounts, self.sums
        counted = amounts.epsilon, sums.epsilon, amounts.delta, sums.delta, amounts.rho, sums.rho
        return dict(zip(ROW, (*(getattr(self, name) for name in _PLAIN), *counted), strict=True))

    @property
    def content(self) -> Any:
        """What stands in it: the question, the answer under ``answer``, the total, or why it was retired."""
        return json.loads(self.body)


def digest_of(entry: LedgerEntry, dataset: str) -> str:
    """SHA-256 over everything in the entry, the digest before it, and the name of its data set."""
    told = {"dataset": dataset, **entry.row()}
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


def anchors(given: Anchor | str | Sequence[Anchor | str] | None) -> list[Anchor]:
    """One anchor or several, or their texts, in the order of their entries."""
    several: Sequence[object] = given if isinstance(given, list | tuple) else [] if given is None else [given]
    found = []
    for one in several:
        read = Anchor.read(one) if isinstance(one, str) else one
        if not isinstance(read, Anchor):
            raise refuse("anchor", one, "one that this ledger gave, or its text")
        found.append(read)
    return sorted(found, key=lambda anchor: anchor.number)


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


def check_chain(entries: Iterable[LedgerEntry], dataset: str, *, anchor: Anchor | None = None) -> Check:
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

    def step(self, entry: LedgerEntry) -> list[str]:
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

    def _account(self, entry: LedgerEntry) -> list[str]:
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

    def _settled(self, entry: LedgerEntry) -> list[str]:
        reserved = self._open.pop(entry.reservation or 0, None)
        if reserved is None:
            return ["settles what was not reserved, or was settled before"]
        self._sums += entry.amounts - reserved
        if entry.amounts.negative or not entry.amounts <= reserved:
            return ["settles more than was reserved"]
        return []
