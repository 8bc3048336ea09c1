"""Answers that a ledger keeps: charged before they are drawn, found again by whoever asks the same."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from dpselect.composition.sparse_vector import SparseVector
from dpselect.dataset.budget import refuse_unpayable
from dpselect.dataset.whole import WholeVector
from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError, NothingRead
from dpselect.ledger import Answered, Ledger
from dpselect.ledger.answer_log import MOST, MOST_AT_ONCE, AnswerLog, places
from dpselect.ledger.filter import RealisedLedgerFilter
from dpselect.ledger.wording import written
from dpselect.privacy.loss import Loss
from dpselect.rounding import added, at_most

#: Answers that are shown at once are in the ledger before they are shown, unless the last entry is younger than this.
SECONDS_BETWEEN_ENTRIES = 60.0
#: A crash costs at most this part of the budget, and a watch has about so many entries at least.
_PARTS = 20


def names_fit(labels: Sequence[str], worst: dict[str, Any], *, top: int) -> bool:
    """Whether the names of a peak fit the entry of its answer, which is never longer than the ``worst``.

    Decided for every answer there can be, before one is drawn: that a drawn one is refused would tell of it.
    """
    longest = sorted(labels, key=lambda label: len(json.dumps(label)))[-top:]
    for names in (True, False):
        try:
            if names:
                for label in labels:
                    written("answer", label)
            written("answer", {"answer": worst | ({"label": longest[-1], "labels": longest} if names else {})})
        except InvalidParameter:
            continue
        return names
    raise InvalidParameter(
        "the answer may be more than an entry of a ledger holds; give a smaller ‹top›; nothing was spent",
        parameter="top",
    )


def named_together(
    book: Ledger,
    question: dict[str, Any],
    *,
    costs: Sequence[Loss],
    key: str | None,
    draw: Callable[[], list[int]],
    read: Callable[[], Any],
    content: dict[str, Any],
) -> tuple[list[int], Answered]:
    """The places above of a watch about a table, drawn once under one charge, and found from then on.

    ``costs`` are those of the names and, where they are asked for, of the values: where they do not all fit, nothing is
    charged. ``content`` is what the entry says beside the places: how many were answered, what that cost and how they
    were drawn. The places are kept as bits, as long whatever they are, so that no write tells of them.
    """
    if not book.knows(question, key=key):
        refuse_unpayable(book, *costs)
    drawn: list[int] = []
    count = content["count"]

    def answer() -> dict[str, Any]:
        drawn.extend(draw())
        if count > MOST_AT_ONCE:
            return {"count": count, "spent": content["spent"]}
        bits = sum(1 << place for place in drawn)
        return {"first": 0, "ended": True, "bits": f"{bits:0{-(-count // 4)}x}", **content}

    found = book.ask(question, cost=costs[0], draw=answer, key=key, read=read)
    if not found.repeated:
        return drawn, found
    if "first" not in found.answer:
        raise InvalidParameter(
            f"this watch was answered (entry {found.number}), with more answers than an entry holds; ask ‹afresh› "
            "or with another ‹key›, and pay again",
            parameter="afresh",
        )
    return places(found.answer), found


def values_of(
    book: Ledger,
    question: dict[str, Any],
    draw: Callable[[], list[float]],
    *,
    cost: Loss,
    key: str | None,
    read: Callable[[], Any],
) -> list[float]:
    """The values of those named by a watch, who are in the ledger by now: drawn once, and found from then on."""
    found = book.ask({**question, "part": "values"}, cost=cost, draw=lambda: {"amounts": draw()}, key=key, read=read)
    return list(found.answer["amounts"])


def about_values(book: Ledger, cost: Loss | None) -> str:
    """What the ledger has of the values, where asking for them failed."""
    held = book.holding
    if held is None or cost is None:
        return ""
    charged = f"ε = {at_most(cost.epsilon)}"
    return f"; their values are lost and it keeps {charged}" if held.lost else f"; it holds {charged} for their values"


class KeptWatch:
    """The side of a watch that lies in a ledger.

    Where the total takes realised costs and the watch promises no δ, it is charged a stretch at a time and settled at
    what its answers cost. Otherwise all of its budget is charged beforehand and stays charged, and a watch that was
    interrupted after answers were shown cannot go on: asked ``afresh`` or under another key it is paid again. The
    values of those named, where they are asked for, are a question of their own, once all names are there.

    Parameters
    ----------
    book : Ledger
        Where it is kept.
    question, by : dict
        Public: what is watched, and how the answers are drawn, which is no part of the question.
    cost, values : Loss
        The most that all names may cost, and the values, where they are asked for.
    key : str, optional
        Tells this watch from the same one before.
    onward : bool
        Whether the questions to come go on after those that were answered, instead of being asked again from the start.
    shown_at_once : bool
        Whether answers are shown before the watch is settled.
    """

    def __init__(
        self,
        book: Ledger,
        question: dict[str, Any],
        *,
        cost: Loss,
        values: Loss | None = None,
        key: str | None = None,
        onward: bool = False,
        shown_at_once: bool = False,
        by: dict[str, str] | None = None,
    ) -> None:
        self._book = book
        self._shown_at_once = shown_at_once
        self._question, self._cost, self._values, self._key = question, cost, values, key
        self._costs = [cost] if values is None else [cost, values]
        self.answers = AnswerLog(by=by)
        self.filter: RealisedLedgerFilter | None = None
        self._held: Any = None
        #: When the first answer was charged, where that was before now.
        self.since: str | None = None
        self._spent_before = 0.0
        self._spent_when_repeating = 0.0
        self._settled = self._unwritten = False
        self._kept_at = time.monotonic()
        if book.total.realised and cost.delta == 0:
            self.filter = RealisedLedgerFilter(
                book,
                question=question,
                limit=cost.epsilon,
                stretch=cost.epsilon / _PARTS,
                key=key,
                answers=self.answers,
                unseen=not shown_at_once,
            )
            for content, _ in self.filter.stretches.earlier:
                self.answers.restore(content)
            self.since = self.filter.stretches.since
            if self.number is None:
                # It would end half-way and leave nothing.
                refuse_unpayable(book, *self._costs)
        else:
            self._hold()
        self.repeated = self.answers.earlier
        self._next = self.repeated if onward else 0

    def _hold(self) -> None:
        """Charge all of it, once; with the values beside it, only where both fit."""
        if not self._book.knows(self._question, key=self._key):
            refuse_unpayable(self._book, *self._costs)
        self._held = self._book.reserve(self._question, cost=self._cost, key=self._key)
        if self._held.settled is not None:
            found = self._held.settled.content["answer"]
            if "first" not in found:
                raise InvalidParameter(
                    f"this watch was answered (entry {self._held.number}), with more answers than an entry holds; ask "
                    "‹afresh› or with another ‹key›, and pay again",
                    parameter="afresh",
                )
            self._spent_before = found["spent"]
            self.since = self._held.entry.at
            self.answers.restore(found)
            self.answers.ended = True
        elif self._shown_at_once and not self._held.made:
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

    def make_ready(self, vector: SparseVector | WholeVector) -> None:
        """Charge what the next questions can cost, before data is touched."""
        if self.filter is None or self.answers.ended or isinstance(vector, WholeVector):
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
        self.answers.add(above, name)
        self._next += 1
        if self.filter is None:
            return
        due = self._shown_at_once and time.monotonic() - self._kept_at > SECONDS_BETWEEN_ENTRIES
        if due or self.answers.fresh >= MOST:
            self.filter.keep()
            self._kept_at = time.monotonic()

    def settle(self, vector: SparseVector | WholeVector, *, ended: bool) -> None:
        """Down to what the answers cost; ``ended`` says that there is nothing more to ask, now or later."""
        if self.filter is not None and self.filter.stretches.uncertain:
            return  # all that was reserved stays charged; started again, the watch goes on from what the ledger has
        already = self.answers.ended
        self.answers.ended = already or ended
        vector.close()
        if self.filter is not None:
            self.filter.close()
        elif not already:
            count = self.answers.fresh
            content = self.answers.as_bits() if count <= MOST_AT_ONCE else {"count": count}
            try:
                first = not self._book.settle(self._held, {**content, "spent": vector.spent}).repeated
            except BaseException:
                self.answers.ended, self._unwritten = False, True  # the ledger does not have them
                raise
            if not first:
                raise LedgerError("another process answered this watch first; ask again to see its answers")
        self._settled = True

    def values(self, draw: Callable[[], list[float]], *, read: Callable[[], Any]) -> list[float]:
        """The values of those named, who are in the ledger by now: drawn once, and found from then on."""
        if self._values is None:
            return []
        return values_of(self._book, self._question, draw, cost=self._values, key=self._key, read=read)

    def give_up(self, vector: SparseVector | WholeVector, failure: BaseException, *, ended: bool) -> str:
        """Leave the ledger as what was drawn makes it, after a failure, and say what that is.

        An interruption comes from outside and tells nothing of what was drawn: answers that are there are kept, and
        the watch may go on behind them. So may one that failed before its first draw; what was charged for that stays
        charged, since the failure may tell of rows, unless the table could not even be opened. Any other failure may
        tell of the noise: what is charged stays charged, and nothing is drawn again under it.
        """
        if self._settled:
            return self._stands() + about_values(self._book, self._values)
        harmless = self._shown_at_once or isinstance(failure, KeyboardInterrupt) or not vector.spent
        if self.filter is None and not self._shown_at_once and not self.answers.ended:
            if isinstance(failure, NothingRead) and self._held.made:
                self._book.release(self._held.number, reason="the table could not be opened")
                return "no row was read, and its charge was released: nothing was spent"
            if harmless:
                # Nobody has seen an answer, so drawing all of them under this charge is drawing them once.
                return f"no answer was shown, and the ledger holds {self._charged} for it until it is asked again"
            last = self._book.last if self._unwritten else None  # what could not be written, the ledger lost already
            if not (last and last.lost) and self._book.lose(self._held) is not None:
                raise LedgerError("another process answered this watch first; ask again to see its answers") from None
            return (
                f"the answers are lost and the ledger keeps {self._charged}: pay again with --afresh or another --key"
            )
        if self.filter is not None and (not harmless or self.filter.stretches.uncertain):
            most = f"up to ε = {at_most(self.filter.limit)}"
            if not self.filter.stretches.uncertain:
                self.filter.lose()
                most = f"ε = {at_most(self.filter.spent)}"
            return f"the ledger keeps {most} for this watch, answers that are lost included; asked again, it goes on"
        # Of a stretch that an earlier try left nobody here knows why it failed.
        taken_up = self.filter is not None and self.filter.stretches.taken_up is not None
        from_rows = taken_up or not isinstance(failure, KeyboardInterrupt | NothingRead)
        if self.filter is not None and from_rows and not (self._shown_at_once or self.repeated or vector.spent):
            held = f"ε = {at_most(self.filter.held)}"
            return f"no answer was drawn, and the ledger holds {held} for it until it is asked again"
        self.settle(vector, ended=ended)
        return self._stands()

    @property
    def _charged(self) -> str:
        delta = f" up to δ = {at_most(self._cost.delta)}" if self._cost.delta else ""
        return f"ε = {at_most(self._cost.epsilon)}{delta}"

    def _stands(self) -> str:
        count = len(self.answers)
        have = f"the ledger has {count:,} answer{'' if count == 1 else 's'}"
        if self.filter is None:
            return f"{have}, and keeps {self._charged} for them"
        if not count:
            return "nothing was spent"
        return f"{have}, which cost ε = {at_most(self.filter.spent)}; asked again, the watch goes on from there"

    def spent(self, vector: SparseVector | WholeVector) -> float:
        """What its answers cost, and what a crash left charged, rounded up."""
        if not self.repeating:
            return self._now_spent(vector)
        # The same for every answer that is repeated, and there may be many.
        self._spent_when_repeating = self._spent_when_repeating or self._now_spent(vector)
        return self._spent_when_repeating

    def _now_spent(self, vector: SparseVector | WholeVector) -> float:
        if self.filter is None:
            names = max(self._spent_before, vector.spent)
        else:
            run, names = vector.open_run, self.filter.spent
            if run is not None:
                names = min(self.filter.limit, added([(1, names), (1, run.epsilon)]))
        return names
