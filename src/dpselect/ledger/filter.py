"""Filters whose books live in a ledger, for streams: budget is reserved a stretch at a time, and charged in memory.

A stretch is committed before anything is charged to it, so a crash costs what was reserved and never less than what was
answered. Between stretches a charge is a comparison of whole numbers and touches no disk.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

from dpselect.checks import one, positive, refuse
from dpselect.composition.costs import declared, run_cost
from dpselect.composition.declared import ZCDPFilter
from dpselect.composition.filter import Filter, HeldRun, RunTerms, State, Watcher, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.ledger.amounts import NOTHING, PER_EPSILON, Amounts, shown_down, units_up
from dpselect.ledger.answer_log import AnswerLog
from dpselect.ledger.records import Reservation
from dpselect.ledger.store import Ledger
from dpselect.ledger.stretches import Stretches
from dpselect.privacy.loss import Loss

#: The stretch in use and what it was used for.
Books: TypeAlias = tuple[Reservation | None, Amounts]

#: A stretch is this part of the total, unless told otherwise: so much is lost where a process dies.
_PART = 100


class LedgerFilter(Filter):
    """What both kinds share; :func:`filter_on` makes the one that fits a ledger's total.

    Parameters
    ----------
    ledger : Ledger
        Where the books are. Others may use it at the same time.
    question : dict
        Public: what the stream asks, written into the entries.
    stretch : float, optional
        How much is reserved at a time, in the total's unit; a hundredth of the limit by default.
    limit : float, optional
        The most that this stream may spend, before a restart and after it; the total by default.
    key : str, optional
        With ``answers``: tells the stream from the same one before.
    answers : AnswerLog, optional
        The stream's answers, which the end of each stretch keeps: the stream is then found again after a restart.
        Without it a stretch says how many charges it took.
    unseen : bool
        Whether answers are shown only once the ledger has them; a restart then takes up the stretch that a crash left.
    """

    name = "ledger"
    empty: ClassVar[Books] = (None, NOTHING)
    _books: Books

    def __init__(
        self,
        ledger: Ledger,
        *,
        question: dict[str, Any],
        stretch: float | None = None,
        limit: float | None = None,
        key: str | None = None,
        answers: AnswerLog | None = None,
        unseen: bool = False,
    ) -> None:
        super().__init__()
        #: Where the books are.
        self.ledger = ledger
        self._total = ledger.total
        self._limit = None if limit is None else self._total.at_most(limit)
        if stretch is None:
            most = self._total.amounts if self._limit is None else self._limit
            self._part = Amounts(most.epsilon // _PART, most.delta // _PART, most.rho // _PART)
        else:
            self._part = self._total.price(one(positive, "stretch", stretch))
        named = answers is not None
        #: The stream's reservations.
        self.stretches = Stretches(ledger, question, limit=self._limit, key=key, named=named, unseen=unseen)
        self._answers = answers
        #: Charges in the present stretch.
        self._charges = 0
        self._open = True
        #: What is charged outside the stretch, by the last look.
        self._outside = ledger.balance().charged
        if self.stretches.taken_up is not None:
            self._books = self.stretches.taken_up, NOTHING
            self._outside -= self.stretches.taken_up.entry.amounts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error the stretch stays charged where a run is open: nobody knows what that has answered.
        if kind is None or self._held is None:
            self.close()

    @property
    def held(self) -> float:
        """ε or ρ that is charged for the present stretch, whatever was used of it."""
        stretch, _ = self._books
        return 0.0 if stretch is None else self._total.shown(stretch.entry.amounts)

    @property
    def limit(self) -> float:
        """ε or ρ of the total, or of what this stream may spend."""
        return self._total.limit if self._limit is None else self._total.shown(self._limit)

    @property
    def spent(self) -> float:
        """What everybody spent, as far as known here, rounded up; of the stretch, what was used.

        With a limit of its own: what this stream spent, with what a crash left charged.
        """
        if self._limit is None:
            return self._total.spent(self._outside + self._books[1])
        return min(self.limit, self._total.shown(self._limit - self.stretches.room + self._books[1]))

    @property
    def remaining(self) -> float:
        """What is left for everybody, or within the stream's limit, as far as known here, rounded down."""
        return self._total.left(self._total.amounts - self._left(self._outside))

    def _left(self, outside: Amounts) -> Amounts:
        """What is left where so much is charged by others, or within the stream's limit where that is less."""
        used = self._books[1]
        return (self._total.amounts - outside - used).at_most(self.stretches.room - used)

    def fits(self, cost: Any) -> bool:
        """Whether a release of this cost may go ahead; another process may be quicker all the same."""
        price = self._total.price(cost)
        return price <= self._unused or price <= self._left(self._look())

    def charge(self, cost: Any) -> None:
        """Count a release of this cost, before it is shown; raises ``BudgetExhausted`` and counts nothing if it does
        not fit.

        Touches the database where the stretch is used up, and only there.
        """
        known = declared(cost)
        price = self._total.price(known)
        self._check_process()
        with self._lock:
            counted = None
            while counted is None:
                books = self._books
                self._check_open()
                if self._held is not None:
                    raise StateRefused(
                        "an open run holds the rest of this stretch; end the run before charging anything"
                    )
                if not price <= self._unused:
                    self._charge_next_stretch(price, known, drawn=known is not cost and not isinstance(cost, Loss))
                    continue
                after = books[0], books[1] + price
                # In one step: a signal handler that charged in the meantime has changed the books; read them anew.
                if self._books is books and self._held is None: self._books = counted = after  # noqa: E701 # fmt: skip
            self._charges += 1

    def _charge_next_stretch(self, price: Amounts, cost: Any, *, drawn: bool, run: HeldRun | None = None) -> None:
        try:
            self._next_stretch(price, run=run)
        except BudgetExhausted:
            self._look()
            raise self._exhausted(cost, drawn=drawn) from None

    def add_cost(self, books: Books, cost: Any) -> Books:
        """One more cost, taken from the stretch."""
        self._check_books(books)
        return books[0], books[1] + self._total.price(cost)

    def holds(self, books: Books) -> bool:
        """Whether the stretch covers what was used of it."""
        self._check_books(books)
        return books[0] is not None and books[1] <= books[0].entry.amounts

    def _keeps(self, books: object) -> bool:
        if not (isinstance(books, tuple) and len(books) == 2):
            return False
        return isinstance(books[0], Reservation | None) and isinstance(books[1], Amounts)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` promised for everything on this data set."""
        return self._total.epsilon(delta=delta)

    def close(self) -> None:
        """Give back what the stretch has left; nothing can be charged afterwards."""
        self._check_process()
        with self._lock:
            if self._held is not None:
                raise StateRefused("an open run holds the rest of this stretch; end the run before closing")
            self._open = False
            stretch, used = self._books
            if stretch is not None:
                self.stretches.end(stretch, used, self._to_keep())
                self._kept()
                self._outside, self._books = self._outside + used, (None, NOTHING)

    def lose(self) -> None:
        """After a failure that may tell of what was drawn: the stretch stays charged, and nothing goes on under it."""
        with self._lock:
            self._open = False
            stretch, _ = self._books
            if stretch is not None:
                self.stretches.lose(stretch)
                self._books = None, NOTHING

    @property
    def _unused(self) -> Amounts:
        """What is left of the stretch."""
        stretch, used = self._books
        return NOTHING if stretch is None else stretch.entry.amounts - used

    def _look(self) -> Amounts:
        """What is charged now outside the own stretch, by a look at the ledger."""
        stretch, _ = self._books
        charged = self.ledger.balance().charged
        self._outside = charged if stretch is None else charged - stretch.entry.amounts
        return self._outside

    def _check_open(self) -> None:
        if not self._open:
            raise StateRefused("this filter is closed; nothing more can be charged")

    def _next_stretch(self, least: Amounts, *, run: HeldRun | None = None) -> None:
        """End the stretch and reserve another one that has ``least`` in it; raises where that does not fit.

        ``run`` is the open run, if there is one, and ``least`` then covers all of it. Before the ledger is asked the
        old stretch is let go: whatever interrupts this, what was used of it stays charged, for it is settled, or it is
        not and stays charged in full.
        """
        let_go: Books = (None, NOTHING)
        # In one step: what a signal handler charged until here is in what is settled, and what it charges from here on
        # goes to a stretch of its own, which is not overwritten below.
        (old, used), self._books = self._books, let_go
        # An open run takes all that it has cost so far along, and needs as much again as any stretch beyond it.
        wish = least.at_least(self._part) if run is None or old is None else least + self._part
        try:
            if self._held is not run:  # looked at last: a signal handler may have opened one in the meantime
                raise StateRefused("an open run holds the rest of this stretch; end the run first")
            found = self.stretches.exchange(old, used, self._to_keep(), least=least, wish=wish)
        except (BudgetExhausted, StateRefused):
            before = old, used  # nothing was committed
            self._books = before if self._books is let_go else self._books
            raise
        self._kept()
        outside, after = found.entry.sums - found.entry.amounts, (found, NOTHING)
        taken = False
        if self._books is let_go: self._outside, self._books, taken = outside, after, True  # noqa: E701 # fmt: skip
        if not taken:  # the new stretch stays charged in full
            raise StateRefused("another charge came in while budget was being reserved for this one; ask again")

    def _to_keep(self) -> Any:
        """What the end of the stretch says of its answers."""
        return {"charges": self._charges} if self._answers is None else self._answers.read()

    def _kept(self) -> None:
        """The ledger has it now."""
        self._charges = 0
        if self._answers is not None:
            self._answers.kept()

    def _let_in(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        check_watcher(watcher, horizon)
        self._check_process()
        with self._lock:
            self._check_open()
            self._held = held if self._held is None else self._held
            if self._held is not held:
                raise StateRefused("this filter already has an open run; end that one first")
            try:
                self._admit(held, watcher, horizon)
            except BaseException:
                self._held = None if self._held is held else self._held
                raise

    @abstractmethod
    def _admit(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        """Set aside what the run needs to start, in a new stretch where need be."""

    def _state(self) -> State:
        spent = self._outside + self._books[1]
        return {"dataset": self.ledger.dataset, "epsilon": spent.epsilon, "delta": spent.delta, "rho": spent.rho}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Refused: a ledger is opened, not restored."""
        raise StateRefused("the books of this filter live in a ledger, not in a saved state: open the ledger")


class RealisedLedgerFilter(LedgerFilter):
    """Pure or (ε, δ) totals: a run of a sparse vector is charged what its answers cost.

    Examples
    --------
    >>> import tempfile
    >>> from dpselect import GaussianAboveThreshold, QueryFamily, SparseVector
    >>> from dpselect.ledger import Ledger, Total, filter_on
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/homes.ledger", dataset="homes", total=Total.pure(1.0), who="ann")
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
    >>> with filter_on(ledger, question={"verb": "watch"}) as budget:
    ...     svt = SparseVector(watcher, filter=budget)
    ...     print(svt.ask(0.0).value, svt.ask(1.0).value)
    ...     svt.close()
    below above
    >>> ledger.balance().spent >= svt.spent > 0
    True
    >>> ledger.close(); folder.cleanup()
    """

    covers_kept_threshold = True
    takes_open_run = True

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run may spend all that is left, stretch by stretch; nothing is due before it."""
        check_watcher(watcher, horizon)
        left = self._unused
        if not self._first_price(watcher) <= left:
            left = self._left(self._look())
        return RunTerms(allowed=shown_down(left.epsilon, PER_EPSILON), books=self._books)

    def _admit(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        first = self._first_price(watcher)
        if not first <= self._unused:
            # Where not even one question fits the run is refused by its own rule, as in memory.
            with contextlib.suppress(BudgetExhausted):
                self._next_stretch(first, run=held)
        held._allowed = shown_down(self._unused.epsilon, PER_EPSILON)

    def make_ready(self, watcher: Watcher) -> None:
        """Reserve the first stretch now, before data is touched; raises where not even one question fits."""
        check_watcher(watcher)
        with self._lock:
            first = self._first_price(watcher)
            if not first <= self._unused:
                self._next_stretch(first)

    def keep(self) -> None:
        """Have the ledger keep the answers so far, by another stretch with at least as much left in it."""
        self._check_process()
        with self._lock:
            held = self._held
            if self._books[0] is not None or self.stretches.uncertain:
                # As much as before: an open run has worked out how far it may go.
                self._next_stretch(self._unused, run=held)
            if held is not None:
                held._allowed = shown_down(self._unused.epsilon, PER_EPSILON)

    def _set_aside(self, held: HeldRun, epsilon: float) -> bool:
        """Make sure that the open run may come to ``epsilon``, by another stretch where need be."""
        self._check_process()
        with self._lock:
            if self._held is not held or not self._open:
                return False
            needed = self._total.price(epsilon)
            if not needed <= self._unused:
                try:
                    # The new stretch covers all of the run, what it has cost so far included.
                    self._next_stretch(needed, run=held)
                except BudgetExhausted:
                    return False
            held._allowed = shown_down(self._unused.epsilon, PER_EPSILON)
            return True

    def _settle(self, held: HeldRun, epsilon: float) -> None:
        # Who asked for room before each question never settles above it; who did not is charged all the same.
        above = self._held is held and isinstance(epsilon, float | int) and epsilon > held.allowed
        if above and not self._set_aside(held, float(epsilon)):
            raise refuse("epsilon", epsilon, f"at most what the run was allowed, {held.allowed!r}")
        super()._settle(held, epsilon)

    def _first_price(self, watcher: Watcher) -> Amounts:
        """The worst that the first question of a run can cost."""
        table = loss_table(watcher)
        return self._total.price(max(table.loss(1, 0), table.loss(0, 1)))

    def add_run(self, books: Books, epsilon: float) -> Books:
        """One more run, at what it turned out to cost."""
        self._check_books(books)
        return books[0], books[1] + Amounts(epsilon=units_up(run_cost(epsilon), PER_EPSILON))


class DeclaredLedgerFilter(LedgerFilter):
    """zCDP totals: a run of a sparse vector is charged its ρ before it starts, and none of it comes back."""

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run is due at its declared price."""
        check_watcher(watcher, horizon)
        cost = self._cost(watcher, horizon)
        if not self.fits(cost):
            raise self._exhausted(cost)
        return RunTerms(allowed=math.inf, books=self._books)

    def _admit(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        cost = self._cost(watcher, horizon)
        price = self._total.price(cost)
        if not price <= self._unused:
            self._charge_next_stretch(price, cost, drawn=False, run=held)
        books = self.add_cost(self._books, cost)
        # A signal handler that ended this run in the meantime has counted its own: what was worked out here is stale.
        self._books = books if self._held is held else self._books
        held._allowed = math.inf

    def _cost(self, watcher: Watcher, horizon: int | None) -> float:
        return ZCDPFilter(self.limit)._price(watcher, horizon)

    def add_run(self, books: Books, epsilon: float) -> Books:
        """The run was paid for when it started."""
        self._check_books(books)
        return books


def filter_on(ledger: Ledger, *, question: dict[str, Any], stretch: float | None = None) -> LedgerFilter:
    """The filter for a ledger's total; see :class:`LedgerFilter` for the parameters."""
    if not isinstance(ledger, Ledger):
        raise refuse("ledger", ledger, "an open Ledger")
    kind = RealisedLedgerFilter if ledger.total.realised else DeclaredLedgerFilter
    return kind(ledger, question=question, stretch=stretch)
