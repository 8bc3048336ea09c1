"""The two kinds of filter on a ledger: charged what a run's answers cost, or what it declared beforehand."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from dpselect.checks import refuse
from dpselect.composition.costs import run_cost
from dpselect.composition.declared import ZCDPFilter
from dpselect.composition.filter import HeldRun, RunTerms, Watcher, check_watcher
from dpselect.composition.loss_table import loss_table
from dpselect.errors import BudgetExhausted
from dpselect.ledger.amounts import PER_EPSILON, Amounts, shown_down, units_up
from dpselect.ledger.filter import Books, LedgerFilter
from dpselect.ledger.store import Ledger


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
        """Have the ledger keep the minutes now, by another stretch with at least as much left in it."""
        self._check_process()
        with self._lock:
            held = self._held
            if self._now[0] is not None or self._stretches.uncertain:
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
