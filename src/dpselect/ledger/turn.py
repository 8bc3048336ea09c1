"""Questions that are asked together: what is reserved for them, what was drawn, and what went wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dpselect.ledger.records import Answered, Reservation
from dpselect.ledger.wording import written


@dataclass
class Turn:
    """One step: reservations made, draws under them that wait to be written down, answers that stand."""

    reserved: list[Reservation] = field(default_factory=list)
    #: A reservation and its answer as it will be written; None where the ledger has one.
    drawn: list[tuple[Reservation, str | None]] = field(default_factory=list)
    #: By the number of the reservation.
    answers: dict[int, Answered] = field(default_factory=dict)
    #: What to raise once the answers before it are out.
    problem: BaseException | None = None
    failed: bool = False

    def draw(self, held: Reservation, draw: Callable[[], Any]) -> None:
        """One answer; a failure is kept until the answers before it are out."""
        try:
            self.drawn.append((held, written("answer", {"answer": draw()})))
        except Exception as problem:
            self.problem, self.failed = problem, True
