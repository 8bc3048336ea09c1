"""Questions that are asked together: what is reserved for them, what was drawn, and what went wrong on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpselect.ledger.records import Answered, Asking, Reservation
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

    def draw(self, held: Reservation, one: Asking) -> bool:
        """One answer; a failure is kept until the answers before it are out. Whether a drawn answer may be lost."""
        reading = True
        try:
            if one.read is not None:
                one.read()
            reading = False
            self.drawn.append((held, written("answer", {"answer": one.draw()})))
        except KeyboardInterrupt:
            raise  # from outside, like a crash: it tells nothing of what was drawn
        except BaseException as problem:
            self.problem, self.failed = problem, True
            return not reading
        return False
