"""The reservations of one stream, one after the other: each ends in the same step in which the next begins.

A stream with a name (its question and its key) is found again after a restart. A stretch that was left open by a crash
is ended at all that was reserved, in the step that reserves the next one: whoever still holds it is refused from then
on, so of two processes at one stream the later one goes on. Where answers are shown only once the ledger has them, none
of a stream's first stretch was ever seen while that is open: it is taken up again as if new, and of two processes the
first to end it goes on. A later stretch may pay for answers that are in the ledger already (an open run takes its whole
cost along from stretch to stretch), so it is never taken up.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from dpselect.errors import BudgetExhausted, LedgerError
from dpselect.ledger.amounts import NOTHING, Amounts
from dpselect.ledger.records import Reservation, taken_over
from dpselect.ledger.store import FROM_OUTSIDE, Ledger
from dpselect.ledger.wording import stretch_key, written

#: What stands as the answer of a stretch whose process never said what it had answered.
LOST = {"lost": True}


class Stretches:
    """The stretches of a stream in a ledger.

    Parameters
    ----------
    ledger : Ledger
        Where they are.
    question : dict
        Public: what the stream asks.
    limit : Amounts, optional
        The most that all stretches may come to, those before a restart included.
    named : bool
        Whether the stream is found again by its question and ``key``.
    unseen : bool
        Whether answers are shown only once the ledger has them.
    """

    def __init__(
        self,
        ledger: Ledger,
        question: dict[str, Any],
        *,
        limit: Amounts | None = None,
        key: str | None = None,
        named: bool = False,
        unseen: bool = False,
    ) -> None:
        self._ledger = ledger
        self._question = question
        self._named, self._key = named, key
        self._limit = limit
        #: Tells this process's entries from those of another one at the same stream.
        self._sitting = secrets.token_hex(8)
        #: What was charged for stretches that have ended.
        self.charged = NOTHING
        #: What stands in the stretches that ended before, in order, and what was charged up to each.
        self.earlier: list[tuple[Any, Amounts]] = []
        #: The entry of the first one, and when an earlier process made it.
        self.first: int | None = None
        self.since: str | None = None
        self._place = 0
        #: Whether an interruption left it open what is charged; nothing more is reserved then.
        self.uncertain = False
        self._left_open: Reservation | None = None
        #: The stretch that is taken up again.
        self.taken_up: Reservation | None = None
        self._unseen = unseen
        if self._named:
            self._find()

    @property
    def room(self) -> Amounts:
        """What the stream may still come to, whatever others leave of the total."""
        most = self._ledger.total.amounts if self._limit is None else self._limit
        return most - self.charged - (NOTHING if self._left_open is None else self._left_open.amounts)

    def exchange(
        self, old: Reservation | None, used: Amounts, answer: Any, *, least: Amounts, wish: Amounts
    ) -> Reservation:
        """End one stretch at what it used and reserve the next, with ``least`` in it at least.

        Raises ``BudgetExhausted``, and changes nothing, where that does not fit.
        """
        if self.uncertain:
            raise LedgerError("this stream was interrupted between two stretches; start it again, and it goes on")
        left_open, room = self._left_open, self.room - used
        if not least <= room:
            raise self._exhausted(least, used)
        ending = (old, used, written("answer", {"answer": answer})) if old is not None else None
        if left_open is not None:
            ending = left_open, left_open.entry.amounts, written("answer", {"answer": LOST})
        question = written("question", {**self._question, "stretch": self._place + 1, "sitting": self._sitting})
        # Whatever interrupts this, nobody here knows what is charged: a stream with a name asks the ledger again.
        self.uncertain = self._named
        try:
            found = self._ledger.exchange(
                ending, least=least, wish=wish.at_most(room), question=question, mark=self._mark(self._place)
            )
        except BudgetExhausted:
            self.uncertain = False
            raise
        except FROM_OUTSIDE:
            raise
        except BaseException:
            if self._unseen and old is not None:  # or its answers would be drawn again, until they can be written
                with suppress(LedgerError):
                    self._ledger.lose(old)
            raise
        if ending is not None:
            self.charged += ending[1]
        self._left_open = None
        self._place += 1
        self.first = found.number if self.first is None else self.first
        self.uncertain = False
        return found

    def lose(self, old: Reservation) -> None:
        """End a stretch at all that was reserved, without its answers: nothing more is drawn under it."""
        if self._ledger.lose(old) is not None:
            raise taken_over()
        self.charged += old.entry.amounts

    def end(self, old: Reservation, used: Amounts, answer: Any) -> None:
        """End the last stretch at what it used."""
        self._ledger.end_stretch(old, used, written("answer", {"answer": answer}))
        self.charged += used

    def _mark(self, place: int) -> str:
        if not self._named:
            return secrets.token_hex(32)
        return stretch_key(written("question", self._question), self._key, place)

    def _find(self) -> None:
        """Look up what an earlier process left."""
        for found in self._ledger.asked(self._mark):
            if self._left_open is not None or self.taken_up is not None:
                raise LedgerError("the stream's stretches are out of order; run `dpselect ledger verify`")
            self.first = found.number if self.first is None else self.first
            self.since = self.since or found.entry.at
            self._place += 1
            if found.settled is None and self._unseen and not self.earlier:
                self.taken_up = found
            elif found.settled is None:
                self._left_open = found
            else:
                self.charged += found.amounts
                self.earlier.append((found.settled.content.get("answer", LOST), self.charged))

    def _exhausted(self, least: Amounts, used: Amounts) -> BudgetExhausted:
        total = self._ledger.total
        most = total.amounts if self._limit is None else self._limit
        spent, limit, cost = (total.shown(one) for one in (most - self.room + used, most, least))
        return BudgetExhausted(
            f"the next stretch costs {cost!r} and does not fit: {spent!r} of {limit!r} is charged; nothing was spent "
            "on it",
            spent=spent,
            budget=limit,
            next_cost=cost,
        )
