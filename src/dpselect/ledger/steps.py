"""What a ledger does to its entries: one short transaction for each step, run alone and committed before it returns."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from dpselect.checks import counts, one, refuse
from dpselect.errors import BudgetExhausted, DPSelectError, InvalidParameter, LedgerError
from dpselect.ledger.amounts import NOTHING, PER_DELTA, Amounts, exact
from dpselect.ledger.book import PAGE, Book
from dpselect.ledger.chain import Anchor, Entry
from dpselect.ledger.database import Database, DatabaseAway
from dpselect.ledger.records import LOST, Answered, Asking, Balance, Reservation, is_released
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit, given_unit
from dpselect.ledger.wording import written

Result = TypeVar("Result")

#: What ends a step and tells nothing of what it was to write; any other failure may come of the answer's length.
FROM_OUTSIDE = (KeyboardInterrupt, DatabaseAway)


@dataclass
class Turn:
    """One step of questions asked together: reservations, draws that wait to be written down, answers that stand."""

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


class Steps:
    """The steps of :class:`~dpselect.ledger.Ledger`, on the entries of one data set."""

    def __init__(
        self, database: Database, book: Book, first: Entry, *, who: str, unit: PrivacyUnit | None = None
    ) -> None:
        self._database = database
        self._book = book
        self._first, self._marked = Anchor(first.number, first.digest), "mark" in first.content
        self._total = Total.from_document(first.content["total"], first.amounts)
        self._who = who
        #: Whose privacy the questions asked here are about, as far as that was said.
        self._unit = unit
        #: Of each thread: the key of what it reserved last, or was about to.
        self._thread = threading.local()

    def close(self) -> None:
        """Let go of the database; what is reserved stays charged."""
        self._database.close()

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self._book.name

    @property
    def read_only(self) -> bool:
        """Whether it can be looked at and not be written."""
        return self._database.read_only

    @property
    def identity(self) -> Anchor:
        """The anchor of the first entry: it names this data set, in this ledger, for good."""
        return self._first

    @property
    def marked(self) -> bool:
        """Whether it was made by a version that writes its anchor into data-set files."""
        return self._marked

    @property
    def total(self) -> Total:
        """What may be charged in all."""
        return self._total

    def balance(self) -> Balance:
        """What is charged and left now."""
        head, retired = self._database.read(self._book.head)
        self._book.saw(head)
        return Balance(self._total, head.sums, Anchor(head.number, head.digest), retired)

    def unit(self) -> PrivacyUnit | None:
        """Whose privacy is counted; None where nothing said it yet."""
        return self._database.read(self._book.unit)

    def state_unit(self, unit: PrivacyUnit) -> None:
        """Say whose privacy is counted, for the curator: it can be corrected until something is charged."""
        given_unit(unit)

        def work(connection: Connection, attempt: int) -> None:
            head, _ = self._book.head(connection)
            stated = self._book.unit(connection)
            if stated is None or (stated != unit and head.sums == NOTHING):
                self._book.state_unit(connection, head, unit, self._who)
            else:
                stated.check(unit)

        self._write(work)

    def claim(self, unit: PrivacyUnit) -> None:
        """Say whose privacy the questions asked here are about; refused where the ledger counts somebody else's."""
        given_unit(unit)
        for known in (self._unit, self.unit()):
            if known is not None:
                known.check(unit)
        self._unit = unit

    def _with_unit(self, connection: Connection, head: Entry) -> Entry:
        """The head to charge after: whose privacy that is about is stated with the first charge, and then stands."""
        if self._unit is None:
            return head
        stated = self._book.unit(connection)
        if stated is None:
            return self._book.state_unit(connection, head, self._unit, self._who)
        stated.check(self._unit)
        return head

    def entries(self) -> Iterator[Entry]:
        """All entries in order, fetched a page at a time."""
        after = 0
        while True:
            page = self._page(after)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].number

    def _page(self, after: int) -> list[Entry]:
        return self._database.read(lambda connection: self._book.page(connection, after))

    @property
    def holding(self) -> Reservation | None:
        """What the ledger holds for the last question, by a look at it; None where that has its answer or nothing."""
        last = self.last
        return last if last is not None and (last.settled is None or last.lost) else None

    @property
    def last(self) -> Reservation | None:
        """The reservation of the last question that was asked here, as it stands now."""
        mark = getattr(self._thread, "mark", None)
        found = None if mark is None else self._database.read(lambda found: self._book.asked(found, mark))
        return None if found is None else Reservation(*found)

    def asked(self, mark: Callable[[int], str]) -> list[Reservation]:
        """The reservations under the keys ``mark(0)``, ``mark(1)`` and so on, up to the first that is not there."""

        def work(connection: Connection) -> list[Reservation]:
            self._book.head(connection)
            found: list[Reservation] = []
            while (one := self._book.asked(connection, mark(len(found)))) is not None:
                found.append(Reservation(*one))
            return found

        return self._database.read(work)

    def _reserve(self, mark: str, amounts: Amounts, body: str, *, new: bool) -> Reservation:
        """Charge a question; one that was asked before, unless it must be ``new``, has its reservation already."""
        self._thread.mark = mark

        def work(connection: Connection, attempt: int) -> Reservation:
            head, retired = self._book.head(connection)
            key, asked = (mark, None) if new and not attempt else self._standing(connection, mark)
            self._thread.mark = key
            if asked is not None:
                found = Reservation(*asked)
                _check_same(amounts, found)
                return found
            self._check_room(head, amounts, retired=retired)
            head = self._with_unit(connection, head)
            return Reservation(self._book.reserve(connection, head, key, amounts, self._who, body), made=True)

        found = self._write(work)
        self._book.saw(found.entry)
        return found

    def _standing(self, connection: Connection, mark: str) -> tuple[str, tuple[Entry, Entry | None] | None]:
        """The key of a question and its reservation; one that was released is as if it had not been asked."""
        asked = self._book.asked(connection, mark)
        while asked is not None and Reservation(*asked).released:
            mark = hashlib.sha256(f"{mark} released".encode()).hexdigest()
            asked = self._book.asked(connection, mark)
        return mark, asked

    def _settle(self, reservation: Reservation, amounts: Amounts, body: str) -> tuple[Entry, bool]:
        """The end of a reservation, and whether it was surely made by this call."""
        check_within(amounts, reservation)

        def work(connection: Connection, attempt: int) -> tuple[Entry, bool]:
            head, _ = self._book.head(connection)
            found = self._book.settled(connection, reservation.number)
            if found is not None:
                return found, False
            return self._book.settle(connection, head, reservation.entry, amounts, self._who, body), True

        settled, mine = self._write(work)
        self._book.saw(settled)
        return settled, mine

    def lose(self, reservation: Reservation) -> Entry | None:
        """Nothing more is drawn under a reservation, and all of it stays charged.

        None where this call made it so. Otherwise somebody who asked the same at the same time came first, and what
        went wrong here is nobody's to see: it would be a second answer under one charge.
        """
        settled, mine = self._settle(reservation, check_reservation(reservation).entry.amounts, LOST)
        return None if mine else settled

    def release(self, number: int, *, reason: str) -> None:
        """Give back a charge whose question failed before any row was added up, on the curator's word.

        The ledger cannot know why a question has no answer. A failure that somebody saw, and that depends on rows, is
        an answer: then leave it charged. What is settled, and the stretches of a stream, which may pay for answers that
        were shown, are refused. The same question can be asked again, and is charged again.

        Parameters
        ----------
        number : int
            The entry of the reservation, as ``ledger history`` shows it.
        reason : str
            Why, for the record.
        """
        number = int(one(counts, "entry", number, least=1))
        if not isinstance(reason, str) or not reason.strip():
            raise refuse("reason", reason, "given: why the charge is released, for the record")
        body = written("reason", {"released": reason})

        def work(connection: Connection, attempt: int) -> None:
            head, _ = self._book.head(connection)
            entry = self._book.entry(connection, number)
            if entry is None or entry.kind != "reserve":
                raise refuse("entry", number, "the entry of a question that is charged and has no answer")
            end = self._book.settled(connection, number)
            if "sitting" in entry.content or (end is not None and not is_released(end)):
                raise refuse(
                    "entry", number, "a question without an answer; a stream, or what has ended, stays charged"
                )
            if end is None:
                self._book.settle(connection, head, entry, NOTHING, self._who, body)

        self._write(work)

    def exchange(
        self,
        ending: tuple[Reservation, Amounts, str] | None,
        *,
        least: Amounts,
        wish: Amounts,
        question: str,
        mark: str,
    ) -> Reservation:
        """End one stretch of a stream at what it used and reserve the next, in one step.

        ``ending`` is the stretch that ends, what it used and its answer. The new one has the ``wish``, or what is left
        where that is less, and ``least`` at least. Where not even that fits, ``BudgetExhausted`` is raised and nothing
        changes.
        """

        def work(connection: Connection, attempt: int) -> Reservation:
            head, retired = self._book.head(connection)
            done = self._book.asked(connection, mark)
            if done is not None:
                if attempt and done[0].body == question:  # the commit of the attempt before went through
                    return Reservation(*done)
                raise taken_over()
            if ending is not None:
                old, used, body = ending
                check_within(used, old)
                if self._book.settled(connection, old.number) is not None:
                    raise taken_over()
                head = self._book.settle(connection, head, old.entry, used, self._who, body)
            amounts = (self._total.amounts - head.sums).at_most(wish)
            self._check_room(head, amounts if least <= amounts else least, retired=retired)
            head = self._with_unit(connection, head)
            return Reservation(self._book.reserve(connection, head, mark, amounts, self._who, question))

        found = self._write(work)
        self._book.saw(found.entry)
        self._thread.mark = mark
        return found

    def end_stretch(self, old: Reservation, used: Amounts, body: str) -> None:
        """End the last stretch of a stream at what it used."""
        settled, mine = self._settle(old, used, body)
        if not mine and (settled.body, settled.amounts) != (body, used):
            raise taken_over()

    def _turn_or_lose(self, before: Turn, priced: Iterable[tuple[str, Amounts, str]]) -> Turn:
        """The next turn; where it cannot be written, what was drawn for it is lost."""
        try:
            return self._turn(before, priced)
        except FROM_OUTSIDE:
            raise
        except BaseException as failure:
            problem = failure
        for held, body in before.drawn:
            if body is not None:
                self.lose(held)
        raise problem

    def _turn(self, before: Turn, priced: Iterable[tuple[str, Amounts, str]]) -> Turn:
        """Write down what was drawn and reserve what comes next, in one transaction."""

        def work(connection: Connection, attempt: int) -> tuple[Turn, Entry]:
            head, retired = self._book.head(connection)
            turn = Turn(problem=before.problem)
            for held, body in before.drawn:
                end = held.settled if body is None else self._book.settled(connection, held.number)
                mine = end is None or (body is not None and attempt > 0 and end.body == body)
                if end is None:
                    head = end = self._book.settle(
                        connection, head, held.entry, held.entry.amounts, self._who, body or ""
                    )
                if end.body == LOST or is_released(end):  # by somebody else in the meantime
                    turn.problem = turn.problem or ended(held.number, end)
                    continue
                turn.answers[held.number] = Answered(end, repeated=not mine)
            for mark, amounts, body in priced if turn.problem is None else []:
                mark, found = self._standing(connection, mark)
                try:
                    if found is not None:
                        _check_same(amounts, Reservation(*found))
                    else:
                        self._check_room(head, amounts, retired=retired)
                except DPSelectError as problem:
                    turn.problem = problem
                    break
                if found is None:
                    head = self._with_unit(connection, head)
                    head = self._book.reserve(connection, head, mark, amounts, self._who, body)
                    found = head, None
                turn.reserved.append(Reservation(*found))
            return turn, head

        turn, head = self._write(work)
        self._book.saw(head)
        return turn

    def retire(self, reason: str = "") -> None:
        """Refuse everything from now on; reservations that are open can still be settled."""
        body = written("reason", {"reason": reason})

        def work(connection: Connection, attempt: int) -> None:
            head, retired = self._book.head(connection)
            if not retired:
                self._book.retire(connection, head, self._who, body)

        self._write(work)

    def _write(self, work: Callable[[Connection, int], Result]) -> Result:
        return self._database.write(work, lock=self._book.number)

    def _check_room(self, head: Entry, amounts: Amounts, *, retired: bool) -> None:
        if retired:
            raise LedgerError(f"the data set {self.dataset!r} is retired and answers no more")
        total = self._total
        if not total.fits(head.sums + amounts):
            cost, charged, most = (
                f"{total.exact(some)}" + (f" with δ = {exact(some.delta, PER_DELTA):g}" if amounts.delta else "")
                for some in (amounts, head.sums, total.amounts)
            )
            raise BudgetExhausted(
                f"the question costs {cost} and does not fit: {charged} of {most} is charged; nothing was spent on it",
                spent=total.spent(head.sums),
                budget=total.limit,
                next_cost=total.shown(amounts),
            )


def check_reservation(reservation: object) -> Reservation:
    """Refuses what is no reservation."""
    if not isinstance(reservation, Reservation):
        raise refuse("reservation", reservation, "what reserve gave back")
    return reservation


def check_within(amounts: Amounts, reservation: Reservation) -> None:
    """Refuses to settle at more than was reserved."""
    if amounts.negative or not amounts <= reservation.entry.amounts:
        raise refuse("cost", amounts, f"at most what was reserved, {reservation.entry.amounts}")


def ended(number: int, end: Entry) -> InvalidParameter:
    """What to say of a question that somebody else ended without an answer."""
    if not is_released(end):
        return lost(number)
    return InvalidParameter(
        f"the charge of this question (entry {number}) was released while it was asked; its answer is not shown, and "
        "nothing was spent. Ask again",
    )


def lost(number: int) -> InvalidParameter:
    """What to say of a question whose answer was lost."""
    return InvalidParameter(
        f"the answer to this question was lost after its charge (entry {number}) and is not drawn again under it; ask "
        "‹afresh› or with another ‹key›, and pay again; nothing was spent now",
        parameter="afresh",
    )


def _check_same(amounts: Amounts, found: Reservation) -> None:
    if found.lost:
        raise lost(found.number)
    if not amounts <= found.entry.amounts:
        raise refuse("cost", amounts, f"what entry {found.number} reserved for the same question, or less")


def taken_over() -> LedgerError:
    """What to say to the one of two at one stream who comes too late."""
    return LedgerError(
        "another process goes on with this stream; what this one answered since its last entry stays charged. Let one "
        "of them run, or give each its own key"
    )
