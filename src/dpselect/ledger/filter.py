"""Filters whose books live in a ledger, for streams: budget is reserved a stretch at a time, and charged in memory.

A stretch is committed before anything is charged to it, so a crash costs what was reserved and never less than what was
answered. Between stretches a charge is a comparison of whole numbers and touches no disk.
"""

from __future__ import annotations

import contextlib
from typing import Any, Self

from dpselect.checks import one, positive, refuse
from dpselect.composition.declared_filters import DeclaredFilter, ZCDPFilter
from dpselect.composition.filter import Filter, HeldRun, RunTerms, State, Watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.ledger.amounts import NOTHING, PER_EPSILON, Amounts, shown_down, units_up
from dpselect.ledger.records import Reservation
from dpselect.ledger.store import Ledger
from dpselect.ledger.wording import written

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
        How much is reserved at a time, in the total's unit; a hundredth of the total by default.
    """

    name = "ledger"

    def __init__(self, ledger: Ledger, *, question: dict[str, Any], stretch: float | None = None) -> None:
        super().__init__()
        self._ledger = ledger
        self._total = ledger.total
        self._question = written("question", question)
        self._part = _parts(self._total.amounts, _PART)
        if stretch is not None:
            self._part = self._total.price(one(positive, "stretch", stretch))
        #: The stretch in use and what it was used for: replaced together, so that no interruption parts them.
        self._books: tuple[Reservation | None, Amounts] = None, NOTHING
        self._charges = 0
        self._open = True
        #: What is charged outside the stretch, by the last look.
        self._outside = ledger.balance().charged

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error the stretch stays charged where a run is open: nobody knows what that has answered.
        if kind is None or self._held is None:
            self.close()

    @property
    def ledger(self) -> Ledger:
        """Where the books are."""
        return self._ledger

    @property
    def limit(self) -> float:
        """ε or ρ of the total."""
        return self._total.limit

    @property
    def spent(self) -> float:
        """What everybody spent, as far as known here, rounded up; of the stretch, what was used."""
        return self._total.spent(self._outside + self._books[1])

    @property
    def remaining(self) -> float:
        """What is left for everybody, as far as known here, rounded down."""
        return self._total.left(self._outside + self._books[1])

    def fits(self, cost: Any) -> bool:
        """Whether a release of this cost may go ahead; another process may be quicker all the same."""
        return self._fits(cost)

    def _fits(self, cost: Any) -> bool:
        price = self._total.price(cost)
        return price <= self._unused or self._total.fits(self._look() + price)

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
                self._ledger.end_stretch(stretch, used, self._report())
                self._outside, self._books = self._outside + used, (None, NOTHING)

    @property
    def _unused(self) -> Amounts:
        """What is left of the stretch."""
        stretch, used = self._books
        return NOTHING if stretch is None else stretch.entry.amounts - used

    def _look(self) -> Amounts:
        """What is charged now, by a look at the ledger; of the own stretch, what was used."""
        stretch, used = self._books
        charged = self._ledger.balance().charged
        self._outside = charged if stretch is None else charged - stretch.entry.amounts
        return self._outside + used

    def _count(self, cost: Any) -> None:
        price = self._total.price(cost)
        if not self._open:
            raise StateRefused("this filter is closed; nothing more can be charged")
        if not price <= self._unused:
            self._next_stretch(price)
        stretch, used = self._books
        self._books = stretch, used + price
        self._charges += 1

    def _next_stretch(self, least: Amounts) -> None:
        """End the stretch and reserve another one that has ``least`` in it; raises where that does not fit.

        Before the ledger is asked the old stretch is let go. Whatever interrupts this then, what was used of it stays
        charged: it is settled, or it was not and is charged in full.
        """
        old, used = self._books
        self._books = None, NOTHING
        try:
            found = self._ledger.exchange(
                old, used, self._report(), least=least, wish=least.at_least(self._part), question=self._question
            )
        except BudgetExhausted:
            self._books = old, used  # the transaction was not committed
            raise
        self._outside = found.entry.sums - found.entry.amounts
        self._charges = 0
        self._books = found, NOTHING

    def _report(self) -> str:
        return written("answer", {"answer": {"charges": self._charges}})

    def _state(self) -> State:
        spent = self._outside + self._books[1]
        return {"dataset": self._ledger.dataset, "epsilon": spent.epsilon, "delta": spent.delta, "rho": spent.rho}

    @classmethod
    def _from_state(cls, state: State) -> Self:
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

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """A run may spend all that is left, stretch by stretch."""
        left = self._unused
        if not self._first_price(watcher) <= left:
            left = self._total.amounts - self._look()
        return RunTerms(allowed=shown_down(left.epsilon, PER_EPSILON))

    def _let_in(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        self._check_process()
        with self._lock:
            if self._held is not None:
                raise StateRefused("this filter already has an open run; end that one first")
            if not self._open:
                raise StateRefused("this filter is closed; no run can start")
            first = self._first_price(watcher)
            if not first <= self._unused:
                # Where not even one question fits the run is refused by its own rule, as in memory.
                with contextlib.suppress(BudgetExhausted):
                    self._next_stretch(first)
            held._allowed = shown_down(self._unused.epsilon, PER_EPSILON)
            self._held = held

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
                    self._next_stretch(needed)
                except BudgetExhausted:
                    return False
            held._allowed = shown_down(self._unused.epsilon, PER_EPSILON)
            return True

    def _first_price(self, watcher: Watcher) -> Amounts:
        """The worst that the first question of a run can cost."""
        table = loss_table(watcher)
        return self._total.price(max(table.loss(1, 0), table.loss(0, 1)))

    def _admit_run(self, terms: RunTerms) -> None:
        """Nothing is due before a run."""

    def _books_after(self, epsilon: float) -> tuple[Reservation | None, Amounts]:
        stretch, used = self._books
        return stretch, used + Amounts(epsilon=units_up(epsilon, PER_EPSILON))

    def _keep_books(self, books: tuple[Reservation | None, Amounts]) -> None:
        self._books = books
        self._charges += 1


class DeclaredLedgerFilter(LedgerFilter, DeclaredFilter):
    """zCDP totals: a run of a sparse vector is charged its ρ before it starts, and none of it comes back."""

    def _price(self, watcher: Watcher, horizon: int | None) -> float:
        return ZCDPFilter(self.limit)._price(watcher, horizon)


def filter_on(ledger: Ledger, *, question: dict[str, Any], stretch: float | None = None) -> LedgerFilter:
    """The filter for a ledger's total; see :class:`LedgerFilter` for the parameters."""
    if not isinstance(ledger, Ledger):
        raise refuse("ledger", ledger, "an open Ledger")
    kind = RealisedLedgerFilter if ledger.total.realised else DeclaredLedgerFilter
    return kind(ledger, question=question, stretch=stretch)


def _parts(amounts: Amounts, count: int) -> Amounts:
    return Amounts(amounts.epsilon // count, amounts.delta // count, amounts.rho // count)
