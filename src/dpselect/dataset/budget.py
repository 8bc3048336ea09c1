"""The budget of a data set: what everything asked of it may cost together."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

from dpselect.checks import one, positive
from dpselect.dataset.book import NO_DELTA
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused


class Budget:
    """A limit on the sum of pure ε, for as long as this object lives. What does not fit is refused and costs nothing.

    >>> budget = Budget(1.0)
    >>> budget.charge(0.75)
    >>> budget.charge(0.5)
    Traceback (most recent call last):
        ...
    dpselect.errors.BudgetExhausted: an answer at ε = 0.5 does not fit: 0.25 of 1 is left; nothing was asked; ...
    >>> budget.spent, budget.remaining
    (0.75, 0.25)
    """

    def __init__(self, total: float | Fraction | None) -> None:
        from dpselect.noise.entropy import owned_here
        from dpselect.report.rounding import no_more_than

        self.total = math.inf
        if total is not None:
            one(positive, "total", total)
            self.total = no_more_than(total)
        #: What was charged, in multiples of 2^-1074.
        self._units = 0
        # A signal handler may ask while a charge is under way; a forked child has no share in its parent's budget.
        self._lock = threading.RLock()
        self._process = owned_here(self)

    def refuse_children(self) -> None:
        """Refuses in a forked child, before it touches an engine whose threads stayed with its parent."""
        from dpselect.noise.entropy import process

        if self._process != process():
            raise StateRefused(
                "this budget belongs to the process that made it; ask there, or keep a ledger, which processes share"
            )

    def charge(self, epsilon: float, delta: float = 0.0) -> None:
        """Counts an answer that is about to be drawn."""
        from dpselect.composition.exact_sum import in_units
        from dpselect.report.rounding import at_least, at_most

        self.refuse_children()
        if delta > 0 and self.total < math.inf:
            raise InvalidParameter(NO_DELTA.format("this data set's"), parameter="delta")
        with self._lock:
            after = self._units + in_units(epsilon)
            if after > in_units(self.total):
                fits = f"; ‹epsilon› {at_least(self.remaining)} would fit" if self.remaining > 0 else ""
                raise BudgetExhausted(
                    f"an answer at ε = {at_most(epsilon)} does not fit: {at_least(self.remaining)} of "
                    f"{at_most(self.total)} is left; nothing was asked{fits}",
                    spent=self.spent,
                    budget=self.total,
                    next_cost=epsilon,
                )
            self._units = after

    @property
    def spent(self) -> float:
        """What the answers so far cost, rounded up."""
        from dpselect.composition.exact_sum import round_up

        return round_up(self._units)

    @property
    def remaining(self) -> float:
        """What is left; infinite without a limit."""
        from dpselect.composition.exact_sum import left

        return left(self.total, self._units)
