"""The budget of a data set: what everything asked of it may cost together."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

from dpselect.checks import one, positive
from dpselect.errors import BudgetExhausted, StateRefused


class Budget:
    """A limit on the sum of pure ε, for as long as this object lives. What does not fit is refused and costs nothing.

    >>> budget = Budget(1.0)
    >>> budget.charge(0.75)
    >>> budget.charge(0.5)
    Traceback (most recent call last):
        ...
    dpselect.errors.BudgetExhausted: an answer at ε = 0.5 does not fit: 0.75 of 1 is spent; nothing was asked
    >>> budget.spent, budget.remaining
    (0.75, 0.25)
    """

    def __init__(self, total: float | Fraction | None) -> None:
        from dpselect.composition.exact_sum import ExactSum
        from dpselect.noise.entropy import owned_here
        from dpselect.report.rounding import no_more_than

        self.total = math.inf
        if total is not None:
            one(positive, "total", total)
            self.total = no_more_than(total)
        self._sum = ExactSum()
        # A signal handler may ask while a charge is under way; a forked child has no share in its parent's budget.
        self._lock = threading.RLock()
        self._process = owned_here(self)

    def charge(self, epsilon: float) -> None:
        """Counts an answer that is about to be drawn."""
        from dpselect.noise.entropy import process
        from dpselect.report.rounding import at_most

        if self._process != process():
            raise StateRefused(
                "this budget belongs to the process that made it; ask there, or keep a ledger, which processes share"
            )
        with self._lock:
            if not self._sum.fits(epsilon, limit=self.total):
                raise BudgetExhausted(
                    f"an answer at ε = {at_most(epsilon)} does not fit: {at_most(self._sum.upward())} of "
                    f"{at_most(self.total)} is spent; nothing was asked",
                    spent=self._sum.upward(),
                    budget=self.total,
                    next_cost=epsilon,
                )
            self._sum.add(epsilon)

    @property
    def spent(self) -> float:
        """What the answers so far cost, rounded up."""
        return self._sum.upward()

    @property
    def remaining(self) -> float:
        """What is left; infinite without a limit."""
        return self._sum.left(self.total)
