"""What a ledger hands out: a reservation, an answer that stands, a balance. Plain and public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter, LedgerError
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.chain import Anchor, LedgerEntry
from dpselect.ledger.total import Total

#: What stands at the end of a reservation whose answer was lost; no answer is written like this.
LOST = '{"lost":true}'
#: How the end of a reservation begins that was given back, because no row had been added up.
_RELEASED = '{"released":'


@dataclass(frozen=True)
class Reservation:
    """So much is charged for a question; ``settled`` is its end, where it has one."""

    entry: LedgerEntry
    settled: LedgerEntry | None = None
    #: Whether it was surely made by this call, and nobody else can have it.
    made: bool = False

    @property
    def number(self) -> int:
        """The number of its entry."""
        return self.entry.number

    @property
    def lost(self) -> bool:
        """Whether its answer was lost after noise may have been drawn: it stays charged, and nothing is drawn again."""
        return self.settled is not None and self.settled.body == LOST

    @property
    def released(self) -> bool:
        """Whether it was given back before any row was added up: nothing is charged, and it takes no answer."""
        return self.settled is not None and is_released(self.settled)

    @property
    def amounts(self) -> Amounts:
        """What is charged for it now."""
        return self.entry.amounts if self.settled is None else self.settled.amounts


def is_released(end: LedgerEntry) -> bool:
    """Whether the end of a reservation gives it back."""
    return end.body.startswith(_RELEASED)


@dataclass(frozen=True)
class Answered:
    """An answer that stands in the ledger and may be shown."""

    entry: LedgerEntry
    #: Whether it was there already, and cost nothing this time.
    repeated: bool

    @property
    def answer(self) -> Any:
        """The answer."""
        return self.entry.content["answer"]

    @property
    def number(self) -> int:
        """The number of the question's entry."""
        return self.entry.reservation or 0

    @property
    def amounts(self) -> Amounts:
        """What it cost."""
        return self.entry.amounts


@dataclass(frozen=True)
class Balance:
    """Where a data set stands: public."""

    total: Total
    charged: Amounts
    anchor: Anchor
    retired: bool

    @property
    def spent(self) -> float:
        """ε or ρ that is charged, open reservations included, rounded up."""
        return self.total.spent(self.charged)

    @property
    def remaining(self) -> float:
        """ε or ρ that is left, rounded down; nothing where the data set is retired."""
        return 0.0 if self.retired else self.total.left(self.charged)

    @property
    def left(self) -> Amounts:
        """The same to the last unit, δ included."""
        return NOTHING if self.retired else self.total.amounts - self.charged


def check_reservation(reservation: object) -> Reservation:
    """Refuses what is no reservation."""
    if not isinstance(reservation, Reservation):
        raise refuse("reservation", reservation, "what reserve gave back")
    return reservation


def check_within(amounts: Amounts, reservation: Reservation) -> None:
    """Refuses to settle at more than was reserved."""
    if amounts.negative or not amounts <= reservation.entry.amounts:
        raise refuse("cost", amounts, f"at most what was reserved, {reservation.entry.amounts}")


def answered(end: LedgerEntry, *, repeated: bool) -> Answered:
    """The answer at the end of a reservation; refused where somebody else ended it without one."""
    if is_released(end):
        raise InvalidParameter(
            f"the charge of this question (entry {end.reservation}) was released while it was asked; its answer is not "
            "shown, and nothing was spent. Ask again",
        )
    if end.body == LOST:
        raise lost(end.reservation)
    return Answered(end, repeated=repeated)


def lost(number: int | None) -> InvalidParameter:
    """What to say of a question whose answer was lost."""
    return InvalidParameter(
        f"the answer to this question was lost after its charge (entry {number}) and is not drawn again under it; ask "
        "‹afresh› or with another ‹key›, and pay again; nothing was spent now",
        parameter="afresh",
    )


def taken_over() -> LedgerError:
    """What to say to the one of two at one stream who comes too late."""
    return LedgerError(
        "another process goes on with this stream; what this one answered since its last entry stays charged. Let one "
        "of them run, or give each its own key"
    )
