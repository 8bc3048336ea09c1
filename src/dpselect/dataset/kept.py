"""A watch whose answers a ledger keeps: charged before they are drawn, found again by whoever asks the same."""

from __future__ import annotations

import math
import secrets
import time
from typing import TYPE_CHECKING, Any

from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError
from dpselect.privacy.loss import Loss

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.ledger import Ledger
    from dpselect.ledger.filter import RealisedLedgerFilter

#: Answers that are shown at once are in the ledger before they are shown, unless the last entry is younger than this.
SECONDS_BETWEEN_ENTRIES = 60.0
#: A crash costs at most this part of the budget, and a watch has about so many entries at least.
_PARTS = 20


class KeptWatch:
    """The side of a watch that lies in a ledger.

    Where the total takes realised costs and the watch promises no δ, it is charged a stretch at a time and settled at
    what its answers cost. Otherwise all of its budget is charged beforehand and stays charged, and a watch that was
    interrupted after answers were shown cannot go on: asked ``afresh`` or under another key it is paid again.

    Parameters
    ----------
    book : Ledger
        Where it is kept.
    question : dict
        Public: what is watched, and how.
    cost : Loss
        The most that all answers may cost.
    key, afresh
        Tell this watch from the same one before.
    onward : bool
        Whether the questions to come go on after those that were answered, instead of being asked again from the start.
    at_once : bool
        Whether answers are shown before the watch is settled.
    """

    def __init__(
        self,
        book: Ledger,
        question: dict[str, Any],
        *,
        cost: Loss,
        key: str | None = None,
        afresh: bool = False,
        onward: bool = False,
        at_once: bool = False,
    ) -> None:
        from dpselect.ledger.filter import RealisedLedgerFilter
        from dpselect.ledger.minutes import Answers

        self._book = book
        self._at_once = at_once
        self.answers = Answers()
        self.filter: RealisedLedgerFilter | None = None
        self._held: Any = None
        self._spent_before = 0.0
        self._kept_at = time.monotonic()
        # A key nobody can have: the watch is another one, and paid again.
        mark = f"afresh {secrets.token_hex(16)}" if afresh else key
        if book.total.realised and cost.delta == 0:
            self.filter = RealisedLedgerFilter(
                book,
                question=question,
                limit=cost.epsilon,
                stretch=cost.epsilon / _PARTS,
                key=mark,
                minutes=self.answers,
            )
            for content, _ in self.filter.stretches.earlier:
                self.answers.restore(content)
        else:
            self._hold(question, cost, mark)
        self.repeated = self.answers.earlier
        self._next = self.repeated if onward else 0

    def _hold(self, question: dict[str, Any], cost: Loss, key: str | None) -> None:
        """Charge all of it, once."""
        self._held = self._book.reserve(question, cost=cost, key=key)
        if self._held.settled is not None:
            found = self._held.settled.content["answer"]
            if "first" not in found:
                raise InvalidParameter(
                    f"this watch was answered (entry {self._held.number}), with more answers than an entry holds; ask "
                    "‹afresh› or with another ‹key›, and pay again",
                    parameter="afresh",
                )
            self._spent_before = found["spent"]
            self.answers.restore(found)
            self.answers.ended = True
        elif self._at_once and not self._held.made:
            raise InvalidParameter(
                f"this watch was interrupted (entry {self._held.number}) and cannot go on, since its cost is known for "
                "the whole of it alone; ask ‹afresh› or with another ‹key›, and pay again",
                parameter="afresh",
            )

    @property
    def number(self) -> int | None:
        """The entry of its first reservation."""
        return self._held.number if self.filter is None else self.filter.stretches.first

    @property
    def repeating(self) -> bool:
        """Whether the next answer is there already."""
        return self._next < self.repeated

    @property
    def over(self) -> bool:
        """Whether there is nothing more to ask."""
        return self.answers.ended and not self.repeating

    def make_ready(self, vector: SparseVector) -> None:
        """Charge what the next questions can cost, before data is touched."""
        if self.filter is None or self.answers.ended:
            return
        try:
            self.filter.make_ready(vector.watcher)
        except BudgetExhausted:
            if not self.repeated:
                raise

    def repeat(self, name: str | int | None = None) -> bool:
        """The next answer, which is there already."""
        above = self.answers.at(self._next, name)
        self._next += 1
        return above

    def add(self, above: bool, name: str | int | None = None) -> None:
        """An answer that was drawn; where it is shown at once, it is in the ledger when this returns, or soon."""
        from dpselect.ledger.minutes import MOST

        self.answers.add(above, name)
        self._next += 1
        if self.filter is None:
            return
        due = self._at_once and time.monotonic() - self._kept_at > SECONDS_BETWEEN_ENTRIES
        if due or self.answers.fresh >= MOST:
            self.filter.keep()
            self._kept_at = time.monotonic()

    def settle(self, vector: SparseVector, *, ended: bool) -> None:
        """Down to what the answers cost; ``ended`` says that there is nothing more to ask, now or later."""
        from dpselect.ledger.minutes import MOST

        if self.filter is not None and self.filter.stretches.uncertain:
            return  # all that was reserved stays charged; started again, the watch goes on from what the ledger has
        already = self.answers.ended
        self.answers.ended = already or ended
        vector.close()
        if self.filter is not None:
            self.filter.close()
        elif not already:
            count = self.answers.fresh
            content = self.answers.read() if count <= MOST else {"count": count}
            if self._book.settle(self._held, {**content, "spent": vector.spent}).repeated:
                raise LedgerError("another process answered this watch first; ask again to see its answers")

    def spent(self, vector: SparseVector) -> float:
        """What its answers cost, and what a crash left charged, rounded up."""
        if self.filter is None:
            return max(self._spent_before, vector.spent)
        run, spent = vector.open_run, self.filter.spent
        return spent if run is None else min(self.filter.limit, math.nextafter(spent + run.epsilon, math.inf))
