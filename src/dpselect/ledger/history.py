"""What was asked, by whom, at what cost: the entries of a ledger as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from dpselect.ledger.chain import Entry
from dpselect.ledger.store import Ledger


@dataclass(frozen=True)
class Asked:
    """One question and what became of it; ``reserved`` where its end is missing, which stays charged at the worst."""

    number: int
    at: str
    who: str
    question: Any
    state: Literal["reserved", "settled"]
    answer: Any
    cost: float
    delta: float

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or CSV."""
        return asdict(self)


def history(ledger: Ledger) -> list[Asked]:
    """All questions in the order in which they were charged.

    >>> import tempfile
    >>> from dpselect.ledger import Total
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger.create(folder.name + "/x.ledger", dataset="homes", total=Total.pure(1.0), who="ann") as ledger:
    ...     _ = ledger.ask({"verb": "peak"}, cost=0.25, draw=lambda: "monday")
    ...     _ = ledger.reserve({"verb": "peak", "month": 2}, cost=0.5)
    ...     [(one.number, one.state, one.answer, one.cost) for one in history(ledger)]
    [(2, 'settled', 'monday', 0.25), (4, 'reserved', None, 0.5)]
    >>> folder.cleanup()
    """
    reserved: dict[int, Entry] = {}
    ended: dict[int, Entry] = {}
    for entry in ledger.entries():
        if entry.kind == "reserve":
            reserved[entry.number] = entry
        elif entry.kind == "settle" and entry.reservation is not None:
            ended[entry.reservation] = entry
    return [_asked(ledger, entry, ended.get(number)) for number, entry in reserved.items()]


def spending(ledger: Ledger) -> Iterator[tuple[str, float]]:
    """When, and what was charged from then on: one point for each entry."""
    for entry in ledger.entries():
        yield entry.at, ledger.total.spent(entry.sums)


def questions_left(ledger: Ledger) -> int | None:
    """How many more questions fit at the average cost of those so far; None where nothing was charged yet."""
    costs = [one.cost for one in history(ledger) if one.cost > 0]
    if not costs:
        return None
    return int(ledger.balance().remaining / (sum(costs) / len(costs)) + 1e-9)


def _asked(ledger: Ledger, reserved: Entry, ended: Entry | None) -> Asked:
    amounts = reserved.amounts if ended is None else ended.amounts
    return Asked(
        number=reserved.number,
        at=reserved.at,
        who=reserved.who,
        question=reserved.content,
        state="reserved" if ended is None else "settled",
        answer=None if ended is None else ended.content.get("answer"),
        cost=ledger.total.shown(amounts),
        delta=ledger.total.spent_delta(amounts),
    )
