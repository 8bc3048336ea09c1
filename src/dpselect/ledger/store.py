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

import getpass
import itertools
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection

from dpselect.checks import counts, one, refuse
from dpselect.errors import DPSelectError, LedgerError, NothingRead
from dpselect.ledger.book import Book, find, make, names, open_book
from dpselect.ledger.chain import Anchor, Check, Entry, check_chain
from dpselect.ledger.database import HOW_TO_MAKE_ONE, Database, NoLedger
from dpselect.ledger.records import LOST, Answered, Asking, Reservation, is_released
from dpselect.ledger.schema import newest, upgrade, version_of
from dpselect.ledger.steps import FROM_OUTSIDE, Steps, Turn, check_reservation, check_within, ended
from dpselect.ledger.total import Total
from dpselect.ledger.unit import PrivacyUnit, given_unit
from dpselect.ledger.wording import key_of, label, written

#: The lock under which tables and data sets are made; data sets count from 1.
_MAKING = 0


class Ledger(Steps):
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
        name, by = label("dataset", dataset), _label_of(who)
        if unit is not None:
            given_unit(unit)
        database = Database(place, create=True, patience=patience)

        def begin(connection: Connection, attempt: int) -> tuple[Book, Entry]:
            upgrade(connection)
            if find(connection, name) is None:
                return make(connection, name, total, by, unit)
            if attempt:  # the commit of the attempt before may have gone through
                book, first = open_book(connection, name)
                if Total.from_document(first.content["total"], first.amounts) == total:
                    return book, first
            raise LedgerError(f"the ledger already has a data set {name!r}, and a total is chosen once; open it")

        try:
            book, first = database.write(begin, lock=_MAKING)
        except BaseException:
            database.close()
            raise
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
        by, kept = _label_of(who), _anchors(anchor)
        if unit is not None:
            given_unit(unit)
        database = _opened(place, patience)

        def look(connection: Connection) -> tuple[Book, Entry]:
            book, first = open_book(connection, dataset, kept[-1] if kept else None)
            for reached in kept:
                book.check_anchor(connection, reached)
            stated = None if unit is None else book.unit(connection)
            if unit is not None and stated is not None:
                stated.check(unit)
            return book, first

        try:
            book, first = database.read(look)
            book.seen = kept[-1] if kept else book.seen
            found = cls(database, book, first, who=by, unit=unit)
            found.balance()
        except BaseException:
            database.close()
            raise
        return found

    @staticmethod
    def datasets(place: str | Path, *, patience: float | None = None) -> tuple[str, ...]:
        """The names of the data sets in a ledger."""
        database = _opened(place, patience)
        try:
            return database.read(names)
        finally:
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger of {self.dataset!r}, {self._total}>"

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
        _check_callables(draw, read)  # before anything is charged
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
        if settled.body == LOST or is_released(settled):
            raise ended(reservation.number, settled)
        return Answered(settled, repeated=True)

    def ask_many(self, questions: Iterable[Asking], *, together: int = 32) -> Iterator[Answered]:
        """The answers to many questions in order, with one transaction for every ``together`` of them.

        The charge of some questions is committed in the same step as the answers before them, so a crash leaves at most
        so many charged without an answer, and asking again draws under that charge. The answers before a question that
        does not fit, or whose draw fails and is lost, are given first.

        >>> import tempfile
        >>> from dpselect.ledger import Asking
        >>> folder = tempfile.TemporaryDirectory()
        >>> with Ledger.create(folder.name + "/x.ledger", dataset="homes", total=Total.pure(1.0)) as ledger:
        ...     questions = [Asking(question={"month": month}, cost=0.25, draw=lambda: "monday") for month in (1, 2)]
        ...     [answered.answer for answered in ledger.ask_many(questions)], ledger.balance().remaining
        (['monday', 'monday'], 0.5)
        >>> folder.cleanup()
        """
        together = int(one(counts, "together", together, least=1))
        waiting = map(_asking, questions)
        turn = Turn()
        while True:
            asked = list(itertools.islice(waiting, together)) if turn.problem is None else []
            priced = [
                (key_of(body := written("question", asking.question), asking.key), self._total.price(asking.cost), body)
                for asking in asked
            ]
            # What is written down now is shown below; what is reserved now is drawn then, and written down next time.
            shown = turn.drawn
            turn = self._turn_or_lose(turn, priced) if shown or priced else Turn(problem=turn.problem)
            for held, _ in shown:
                if held.number not in turn.answers:
                    break
                yield turn.answers[held.number]
            for asking, held in zip(asked, turn.reserved, strict=False):
                if held.settled is not None:
                    turn.drawn.append((held, None))
                elif turn.draw(held, asking):
                    settled = self.lose(held)
                    if settled is not None:  # by somebody who asked the same at the same time
                        turn.drawn.append((Reservation(held.entry, settled), None))
                        turn.problem, turn.failed = None, False
                if turn.failed:
                    break
            if not turn.drawn:
                if turn.problem is not None:
                    raise turn.problem
                return

    def reserve(
        self, question: dict[str, Any], *, cost: Any, key: str | None = None, afresh: bool = False
    ) -> Reservation:
        """Charge the most that a question can cost, durably; raises ``BudgetExhausted`` where it does not fit.

        A question that was asked before gives the reservation it has, with its answer where there is one.
        """
        self._thread.mark = None
        body = written("question", question)
        mark = secrets.token_hex(32) if afresh else key_of(body, key)
        return self._reserve(mark, self._total.price(cost), body, new=afresh)

    def knows(self, question: dict[str, Any], *, key: str | None = None) -> bool:
        """Whether the question was asked before, answered or not; one that was released was not."""
        mark = key_of(written("question", question), key)
        return self._database.read(lambda connection: self._standing(connection, mark)[1]) is not None

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
            check_within(amounts, reservation)
            settled, mine = self._settle(reservation, amounts, body)
        except FROM_OUTSIDE:
            raise
        except BaseException as failure:
            problem = failure
        else:
            if settled.body == LOST or is_released(settled):
                raise ended(reservation.number, settled)
            return Answered(settled, repeated=not mine and settled.body != body)
        return self._stands(reservation, problem)

    def require(self, anchor: Anchor | str | Sequence[Anchor | str]) -> None:
        """Refuse to go on where the ledger does not have an entry that it had: it is an older copy, or another one."""
        kept = _anchors(anchor)

        def look(connection: Connection) -> None:
            for reached in kept:
                self._book.check_anchor(connection, reached)

        self._database.read(look)

    def verify(self, *, anchor: Anchor | str | None = None) -> Check:
        """Look at the whole chain, and at an anchor that was kept elsewhere.

        Without an anchor nothing shows that the end was cut off, or that an older copy was put in its place.
        """
        return check_chain(self.entries(), self.dataset, anchor=_anchor(anchor))


def _opened(place: str | Path, patience: float | None) -> Database:
    """A database with a ledger in it, brought to the newest version; one without is never made into one."""
    database = Database(place, patience=patience)
    try:
        version = database.read(version_of)
        if not version:
            raise NoLedger(f"there is no ledger in this database: its tables are not there; {HOW_TO_MAKE_ONE}")
        # Most often there is nothing to do. All versions can be looked at as they are.
        if version > newest() or (version < newest() and not database.read_only):
            database.write(lambda connection, _: upgrade(connection), lock=_MAKING)
    except BaseException:
        database.close()
        raise
    return database


def _anchor(anchor: object) -> Anchor | None:
    if anchor is not None and not isinstance(anchor, str | Anchor):
        raise refuse("anchor", anchor, "one that this ledger gave, or its text")
    return Anchor.read(anchor) if isinstance(anchor, str) else anchor


def _anchors(anchor: Anchor | str | Sequence[Anchor | str] | None) -> list[Anchor]:
    """One anchor or several, in the order of their entries."""
    several = list(anchor) if isinstance(anchor, list | tuple) else [anchor]
    return sorted((one for one in map(_anchor, several) if one is not None), key=lambda one: one.number)


def _asking(asking: object) -> Asking:
    if not isinstance(asking, Asking):
        raise refuse("questions", asking, "made of Asking(question=…, cost=…, draw=…)")
    _check_callables(asking.draw, asking.read)
    return asking


def _check_callables(draw: object, read: object) -> None:
    if not callable(draw):
        raise refuse("draw", draw, "a function that draws the answer")
    if read is not None and not callable(read):
        raise refuse("read", read, "a function that reads the data, or left out")


def _label_of(who: str | None) -> str:
    if who is not None:
        return label("who", who)
    try:
        return label("who", getpass.getuser())
    except (OSError, KeyError, DPSelectError):
        return "unknown"
