"""A data set's budget on disk: reserve, release, settle.

The worst a question can cost is committed before data is touched. The answer is drawn, and committed together with
what it cost; only then is it shown. So whatever is interrupted, whenever: an answer that got out is in the ledger, at
its cost or at the worst it could have been. And because an answer is shown only once it is committed, and a reservation
takes one answer, a question asked again finds its first answer or carries on with its reservation: never paid twice.
Where drawing or writing fails, the failure is seen and may tell of the noise: the answer is lost, its cost stays
charged, and nothing is drawn again under it. To write that it is lost takes as little room as the shortest answer. So
where not even that can be written, no answer could have been, and that this one was not tells nothing of it: the
reservation stays open.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from dpselect.checks import counts, one, refuse
from dpselect.errors import BudgetExhausted, LedgerError, NothingRead
from dpselect.ledger.amounts import NOTHING, PER_DELTA, Amounts, exact
from dpselect.ledger.book import PAGE, Book, find, make, names, open_book
from dpselect.ledger.chain import Anchor, Check, LedgerEntry, anchors, check_chain
from dpselect.ledger.database import HOW_TO_MAKE_ONE, Database, DatabaseAway, NoLedger
from dpselect.ledger.records import (
    LOST,
    Answered,
    Balance,
    Reservation,
    answered,
    check_reservation,
    check_within,
    is_released,
    lost,
    taken_over,
)
from dpselect.ledger.schema import newest, upgrade, version_of
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit, given_unit
from dpselect.ledger.wording import key_of, label, stretch_key, user_name, written

Result = TypeVar("Result")

#: The lock under which tables and data sets are made; data sets count from 1.
_MAKING = 0
#: What ends a step and tells nothing of what it was to write; any other failure may come of the answer's length.
FROM_OUTSIDE = (KeyboardInterrupt, DatabaseAway)


class Ledger:
    """The budget of one data set in a SQLite file or a PostgreSQL database.

    Made once by :meth:`create`, opened by :meth:`open`. Processes and machines may share it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/homes.ledger", dataset="homes", total=Total.pure(1.0), who="ann")
    >>> first = ledger.ask({"verb": "peak"}, cost=0.75, draw=lambda: {"label": "2013-01-20"})
    >>> ledger.ask({"verb": "peak"}, cost=0.75, draw=lambda: {"label": "2013-02-11"}).answer  # the same question
    {'label': '2013-01-20'}
    >>> ledger.balance().remaining
    0.25
    >>> ledger.ask({"verb": "peak", "month": 2}, cost=0.5, draw=lambda: {"label": "2013-02-11"})
    Traceback (most recent call last):
    ...
    dpselect.errors.BudgetExhausted: the question costs 0.5 and does not fit: 0.75 of 1 is charged; ...
    >>> ledger.verify().holds
    True
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(
        self, database: Database, book: Book, first: LedgerEntry, *, who: str, unit: PrivacyUnit | None = None
    ) -> None:
        self._database = database
        self._book = book
        #: The anchor of the first entry: it names this data set, in this ledger, for good.
        self.identity = Anchor(first.number, first.digest)
        #: Whether it was made by a version that writes its anchor into data-set files.
        self.marked = "mark" in first.content
        self._total = Total.from_document(first.content["total"], first.amounts)
        self._who = who
        #: Whose privacy the questions asked here are about, as far as that was said.
        self._unit = unit
        #: Of each thread: the key of what it reserved last, or was about to.
        self._thread = threading.local()

    @classmethod
    def create(
        cls,
        place: str | Path,
        *,
        dataset: str,
        total: Total,
        who: str | None = None,
        unit: PrivacyUnit | None = None,
        patience: float | None = None,
    ) -> Self:
        """Make a new data set with its total, in a file that is made if need be; nothing else makes one.

        Refused where the data set is there. ``place`` is a file, a URL, or ``$NAME`` of an environment variable that
        holds one; ``who`` is written into the entries, the user's name by default; ``unit`` says whose privacy is
        counted, and is otherwise stated by the first question of a :class:`~dpselect.Dataset`.
        """
        if not isinstance(total, Total):
            raise refuse("total", total, "a Total, such as Total.pure(1.0)")
        name, by = label("dataset", dataset), user_name(who)
        if unit is not None:
            given_unit(unit)
        database = Database(place, create=True, patience=patience)

        def begin(connection: Connection, attempt: int) -> tuple[Book, LedgerEntry]:
            upgrade(connection)
            if find(connection, name) is None:
                return make(connection, name, total, by, unit)
            if attempt:  # the commit of the attempt before may have gone through
                book, first = open_book(connection, name)
                if Total.from_document(first.content["total"], first.amounts) == total:
                    return book, first
            raise LedgerError(f"the ledger already has a data set {name!r}, and a total is chosen once; open it")

        with _closed_on_failure(database):
            book, first = database.write(begin, lock=_MAKING)
        return cls(database, book, first, who=by, unit=unit)

    @classmethod
    def open(
        cls,
        place: str | Path,
        *,
        dataset: str | None = None,
        who: str | None = None,
        anchor: Anchor | str | Sequence[Anchor | str] | None = None,
        unit: PrivacyUnit | None = None,
        patience: float | None = None,
    ) -> Self:
        """Open a data set that is there; nothing is made.

        Parameters
        ----------
        place : path or str
            A file, a URL, or ``$NAME`` of an environment variable that holds one.
        dataset : str, optional
            Its name; without it, the data set of the ``anchor``, or the only one.
        who : str, optional
            Written into the entries; the user's name by default.
        anchor : Anchor, str or several, optional
            Where the ledger had come: one that does not have such an entry is an older copy, and refused.
        unit : PrivacyUnit, optional
            Whose privacy the questions are about; refused where the ledger counts somebody else's.
        patience : float, optional
            Seconds each step waits for the database; 30 by default, or ``DPSELECT_LEDGER_PATIENCE``.

        Raises
        ------
        LedgerError
            Where there is no such ledger or data set, or it cannot be reached. An outage is never taken for an empty
            ledger.
        """
        by, kept = user_name(who), anchors(anchor)
        last = kept[-1] if kept else None
        database = _opened(place, patience)
        with _closed_on_failure(database):
            book, first = database.read(lambda connection: open_book(connection, dataset, last))
            book.seen = last or book.seen
            found = cls(database, book, first, who=by)
            found.require(kept)
            if unit is not None:
                found.claim(unit)
            found.balance()
        return found

    @staticmethod
    def datasets(place: str | Path, *, patience: float | None = None) -> tuple[str, ...]:
        """The names of the data sets in a ledger."""
        database = _opened(place, patience)
        try:
            return database.read(names)
        finally:
            database.close()

    def close(self) -> None:
        """Let go of the database; what is reserved stays charged."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger of {self.dataset!r}, {self._total}>"

    @property
    def dataset(self) -> str:
        """The name of the data set."""
        return self._book.name

    @property
    def total(self) -> Total:
        """What may be charged in all."""
        return self._total

    @property
    def read_only(self) -> bool:
        """Whether it can be looked at and not be written."""
        return self._database.read_only

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

    def entries(self) -> Iterator[LedgerEntry]:
        """All entries in order, fetched a page at a time."""
        after = 0
        while True:
            page = self._database.read(partial(self._book.page, after=after))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].number

    @property
    def holding(self) -> Reservation | None:
        """What the ledger holds for the last question, by a look at it; None where that has its answer or nothing."""
        last = self.last
        return last if last is not None and (last.settled is None or last.lost) else None

    @property
    def last(self) -> Reservation | None:
        """The reservation of the last question that was asked here, as it stands now."""
        mark = getattr(self._thread, "mark", None)
        return None if mark is None else self._database.read(lambda connection: self._book.asked(connection, mark))

    def asked(self, mark: Callable[[int], str]) -> list[Reservation]:
        """The reservations under the keys ``mark(0)``, ``mark(1)`` and so on, up to the first that is not there."""

        def work(connection: Connection) -> list[Reservation]:
            self._book.head(connection)
            found: list[Reservation] = []
            while (one := self._book.asked(connection, mark(len(found)))) is not None:
                found.append(one)
            return found

        return self._database.read(work)

    def ask(
        self,
        question: dict[str, Any],
        *,
        cost: Any,
        draw: Callable[[], Any],
        key: str | None = None,
        afresh: bool = False,
        read: Callable[[], Any] | None = None,
    ) -> Answered:
        """The answer to a question, drawn at most once.

        Parameters
        ----------
        question : dict
            Public: the mechanism and its parameters, which make the question's key.
        cost : float, Loss or anything that has one
            The most that the answer can cost.
        draw : callable
            Touches the data, draws the answer and returns it, as plain text and numbers. Called after the cost is
            charged, and not at all where the answer is there already. Where it fails, or gives what cannot be
            written, the answer is lost: the charge stays, since the failure may tell of the data and the noise, and
            the same question is refused unless it is paid again.
        key : str, optional
            Tells this question from the same one asked before.
        afresh : bool
            Whether the same question is asked once more, and paid once more.
        read : callable, optional
            Reads the data for ``draw`` and draws no noise. Called right before it; where it fails the charge stays,
            since the failure may tell of rows, and the same question asked again carries on under it. Where it raises
            ``NothingRead`` no row was touched, and the charge is released.
        """
        if not callable(draw):  # before anything is charged
            raise refuse("draw", draw, "a function that draws the answer")
        if read is not None and not callable(read):
            raise refuse("read", read, "a function that reads the data, or left out")
        reservation = self.reserve(question, cost=cost, key=key, afresh=afresh)
        if reservation.settled is not None:
            return Answered(reservation.settled, repeated=True)
        if read is not None:
            try:
                read()
            except NothingRead as failure:
                # Only what this call charged: an earlier try may have failed in a way that tells of rows.
                if reservation.made:
                    self.release(reservation.number, reason="the table could not be opened")
                    failure.add_note("no row was read, and its charge was released: nothing was spent")
                raise
        try:
            answer = draw()
        except KeyboardInterrupt:
            raise  # from outside, like a crash: it tells nothing of what was drawn
        except BaseException as failure:
            problem = failure
        else:
            return self.settle(reservation, answer)
        return self._stands(reservation, problem)

    def _stands(self, reservation: Reservation, problem: BaseException) -> Answered:
        """After a draw or a write that failed: its failure, or what somebody who asked the same was quicker to write.

        Called outside the handler: where the ledger has gone, its error alone is seen, whatever the draw came to.
        """
        settled = self.lose(reservation)
        if settled is None:
            raise problem
        return answered(settled, repeated=True)

    def reserve(
        self, question: dict[str, Any], *, cost: Any, key: str | None = None, afresh: bool = False
    ) -> Reservation:
        """Charge the most that a question can cost, durably; raises ``BudgetExhausted`` where it does not fit.

        A question that was asked before gives the reservation it has, with its answer where there is one.
        """
        self._thread.mark = None
        body = written("question", question)
        mark = secrets.token_hex(32) if afresh else key_of(body, key)
        amounts = self._total.price(cost)
        self._thread.mark = mark

        def work(connection: Connection, attempt: int) -> Reservation:
            head, retired = self._book.head(connection)
            key, found = (mark, None) if afresh and not attempt else self._standing(connection, mark)
            self._thread.mark = key
            if found is None:
                return Reservation(self._charge(connection, head, key, amounts, body, retired=retired), made=True)
            if found.lost:
                raise lost(found.number)
            if not amounts <= found.entry.amounts:
                raise refuse("cost", amounts, f"what entry {found.number} reserved for the same question, or less")
            return found

        found = self._write(work)
        self._book.saw(found.entry)
        return found

    def knows(self, question: dict[str, Any], *, key: str | None = None) -> bool:
        """Whether the question was asked before, answered or not; one that was released was not."""
        body = written("question", question)
        marks = key_of(body, key), stretch_key(body, key, 0)
        return self._database.read(
            lambda connection: any(self._standing(connection, mark)[1] is not None for mark in marks)
        )

    def settle(self, reservation: Reservation, answer: Any, *, cost: Any = None) -> Answered:
        """Write down the answer at its cost, which comes before showing it.

        What is returned is the answer that stands: somebody who asked the same question at the same time may have been
        first, and then this one is not shown to anybody. A ``cost`` below what was reserved counts where the total
        takes realised costs (:attr:`Total.realised`) and no δ was reserved: what was promised with one stays. An answer
        that cannot be written is lost: it stays charged, and the reservation takes no other.
        """
        amounts = check_reservation(reservation).entry.amounts
        try:
            body = written("answer", {"answer": answer})
            if cost is not None and self._total.realised and not amounts.delta:
                amounts = self._total.price(cost)
            settled, mine = self._settle(reservation, amounts, body)
        except FROM_OUTSIDE:
            raise
        except BaseException as failure:
            problem = failure
        else:
            return answered(settled, repeated=not mine and settled.body != body)
        return self._stands(reservation, problem)

    def require(self, anchor: Anchor | str | Sequence[Anchor | str]) -> None:
        """Refuse to go on where the ledger does not have an entry that it had: it is an older copy, or another one."""
        kept = anchors(anchor)

        def look(connection: Connection) -> None:
            for reached in kept:
                self._book.check_anchor(connection, reached)

        self._database.read(look)

    def verify(self, *, anchor: Anchor | str | None = None) -> Check:
        """Look at the whole chain, and at an anchor that was kept elsewhere.

        Without an anchor nothing shows that the end was cut off, or that an older copy was put in its place.
        """
        kept = anchors(anchor)
        return check_chain(self.entries(), self.dataset, anchor=kept[-1] if kept else None)

    def _standing(self, connection: Connection, mark: str) -> tuple[str, Reservation | None]:
        """The key of a question and its reservation; one that was released is as if it had not been asked."""
        asked = self._book.asked(connection, mark)
        while asked is not None and asked.released:
            mark = hashlib.sha256(f"{mark} released".encode()).hexdigest()
            asked = self._book.asked(connection, mark)
        return mark, asked

    def _settle(self, reservation: Reservation, amounts: Amounts, body: str) -> tuple[LedgerEntry, bool]:
        """The end of a reservation, and whether it was surely made by this call."""
        check_within(amounts, reservation)

        def work(connection: Connection, attempt: int) -> tuple[LedgerEntry, bool]:
            head, _ = self._book.head(connection)
            found = self._book.settled(connection, reservation.number)
            if found is not None:
                return found, False
            return self._book.settle(connection, head, reservation.entry, amounts, self._who, body), True

        settled, mine = self._write(work)
        self._book.saw(settled)
        return settled, mine

    def lose(self, reservation: Reservation) -> LedgerEntry | None:
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
                if attempt and done.entry.body == question:  # the commit of the attempt before went through
                    return done
                raise taken_over()
            if ending is not None:
                old, used, body = ending
                check_within(used, old)
                if self._book.settled(connection, old.number) is not None:
                    raise taken_over()
                head = self._book.settle(connection, head, old.entry, used, self._who, body)
            amounts = (self._total.amounts - head.sums).at_most(wish)
            if not least <= amounts:
                amounts = least  # which is refused
            return Reservation(self._charge(connection, head, mark, amounts, question, retired=retired))

        found = self._write(work)
        self._book.saw(found.entry)
        self._thread.mark = mark
        return found

    def end_stretch(self, old: Reservation, used: Amounts, body: str) -> None:
        """End the last stretch of a stream at what it used."""
        settled, mine = self._settle(old, used, body)
        if not mine and (settled.body, settled.amounts) != (body, used):
            raise taken_over()

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

    def _charge(
        self, connection: Connection, head: LedgerEntry, mark: str, amounts: Amounts, body: str, *, retired: bool
    ) -> LedgerEntry:
        """Add a reservation after ``head``, where it fits."""
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
        if self._unit is not None:
            # Whose privacy is counted is stated with the first charge, and then stands.
            stated = self._book.unit(connection)
            if stated is None:
                head = self._book.state_unit(connection, head, self._unit, self._who)
            else:
                stated.check(self._unit)
        return self._book.reserve(connection, head, mark, amounts, self._who, body)


def _opened(place: str | Path, patience: float | None) -> Database:
    """A database with a ledger in it, brought to the newest version; one without is never made into one."""
    database = Database(place, patience=patience)
    with _closed_on_failure(database):
        version = database.read(version_of)
        if not version:
            raise NoLedger(f"there is no ledger in this database: its tables are not there; {HOW_TO_MAKE_ONE}")
        # Most often there is nothing to do. All versions can be looked at as they are.
        if version > newest() or (version < newest() and not database.read_only):
            database.write(lambda connection, _: upgrade(connection), lock=_MAKING)
    return database


@contextmanager
def _closed_on_failure(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise
