"""What was asked, by whom, at what cost: the entries of a ledger as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal

from dpselect.ledger.amounts import NOTHING
from dpselect.ledger.answer_log import places
from dpselect.ledger.chain import LedgerEntry
from dpselect.ledger.records import Reservation
from dpselect.ledger.store import Ledger
from dpselect.ledger.stretches import LOST

#: The present rate is that of so many questions.
_PRESENT = 20


@dataclass(frozen=True)
class HistoryRow:
    """One question and what became of it; ``reserved`` where its end is missing, ``lost`` where its answer is.

    Both stay charged at the worst. One that was ``released`` costs nothing.
    """

    number: int
    at: str
    who: str
    question: Any
    state: Literal["reserved", "settled", "lost", "released"]
    answer: Any
    cost: float
    delta: float

    def as_dict(self) -> dict[str, Any]:
        """As plain values, ready for JSON or CSV."""
        return asdict(self)


def history(ledger: Ledger) -> list[HistoryRow]:
    """All questions in the order in which they were charged.

    A watch that was interrupted before its first answer, and gave back what it held, asked nothing.

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
    reserved: dict[int, LedgerEntry] = {}
    ended: dict[int, LedgerEntry] = {}
    for entry in ledger.entries():
        if entry.kind == "reserve":
            reserved[entry.number] = entry
        elif entry.kind == "settle" and entry.reservation is not None:
            ended[entry.reservation] = entry
    together: dict[Any, list[tuple[LedgerEntry, LedgerEntry | None]]] = {}
    for number, entry in reserved.items():
        # The stretches that one process made of one stream are one question.
        sitting = entry.content.get("sitting", number)
        together.setdefault(sitting, []).append((entry, ended.get(number)))
    return [_asked(ledger, parts) for parts in together.values() if not all(_idle(ended) for _, ended in parts)]


def spending(ledger: Ledger) -> Iterator[tuple[str, float]]:
    """When, and what was charged from then on: one point for each entry."""
    for entry in ledger.entries():
        yield entry.at, ledger.total.spent(entry.sums)


def questions_left(ledger: Ledger) -> int | None:
    """How many more questions fit at the average cost of the last ones; None where nothing was charged yet."""
    cost = usual_cost(ledger)
    return None if cost is None else int(ledger.balance().remaining / cost + 1e-9)


def usual_cost(ledger: Ledger) -> float | None:
    """The average cost of the last questions; None where nothing was charged yet."""
    costs = [one.cost for one in history(ledger) if one.cost > 0][-_PRESENT:]
    return sum(costs) / len(costs) if costs else None


def _idle(ended: LedgerEntry | None) -> bool:
    """Whether a stretch ended without an answer and without a cost."""
    if ended is None or ended.amounts != NOTHING:
        return False
    answer = ended.content.get("answer")
    return isinstance(answer, dict) and answer.get("first") is not None and not answer["count"]


def _asked(ledger: Ledger, parts: list[tuple[LedgerEntry, LedgerEntry | None]]) -> HistoryRow:
    amounts = NOTHING
    for reserved, ended in parts:
        amounts += reserved.amounts if ended is None else ended.amounts
    first = parts[0][0]
    question = {name: value for name, value in first.content.items() if name not in ("stretch", "sitting")}
    answers = [ended.content.get("answer") for _, ended in parts if ended is not None]
    # In stretches, or all at once: told by how many questions and how many ⊤.
    stream = "sitting" in first.content or any(isinstance(one, dict) and "first" in one for one in answers)
    lost = any(Reservation(*part).lost for part in parts) or LOST in answers
    state: Literal["reserved", "settled", "lost"] = (
        "lost" if lost else "settled" if len(answers) == len(parts) else "reserved"
    )
    return HistoryRow(
        number=first.number,
        at=first.at,
        who=first.who,
        question=question,
        state="released" if all(Reservation(*part).released for part in parts) else state,
        answer=_told(answers) if stream else answers[0] if answers else None,
        cost=_as_written(ledger.total.exact(amounts)),
        delta=ledger.total.spent_delta(amounts),
    )


def _as_written(amount: Decimal) -> float:
    """An amount as a double that is written no smaller: 0.3 is 0.3, though the double lies a little below.

    >>> _as_written(Decimal("0.3")), _as_written(Decimal("0.300000000000001"))
    (0.3, 0.300000000000001)
    """
    nearest = float(amount)
    return nearest if Decimal(repr(nearest)) >= amount else math.nextafter(nearest, math.inf)


def _told(answers: list[Any]) -> Any:
    """What the stretches of a stream say together: how many questions and how many ⊤, or how many charges."""
    kept = [one for one in answers if isinstance(one, dict)]
    if any("first" in one for one in kept) or LOST in kept:
        above = sum(len(places(one)) for one in kept if "first" in one)
        return {"questions": sum(one["count"] for one in kept if "first" in one), "above": above}
    return {"charges": sum(one.get("charges", 0) for one in kept)}
