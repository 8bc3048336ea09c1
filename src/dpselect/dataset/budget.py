"""What everything asked of a data set may cost together: a limit in memory, or a ledger that keeps it for good."""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from dpselect.checks import one, positive
from dpselect.composition.realised import PureFilter
from dpselect.errors import (
    BudgetExhausted,
    DPSelectWarning,
    InvalidParameter,
    LedgerError,
    SourceError,
    StateRefused,
)
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.ownership import owned_here, process
from dpselect.privacy.loss import Loss
from dpselect.rounding import at_least, at_most, exact_number, no_more_than

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, PrivacyUnit

#: Said of a δ that a total of ε alone cannot pay for.
_NO_DELTA = (
    "{} total is an ε alone and promises no δ; leave ‹delta› out, or use a ledger made with a δ "
    "(dpselect ledger create … --delta)"
)
#: Stands beside every answer that no ledger keeps.
NOBODY_REMEMBERS = "No ledger remembers this answer: add up yourself what is asked, or keep a ledger."


def not_remembered(budget: Budget) -> str:
    """The same where a total in memory adds up: what is left of it.

    >>> not_remembered(Budget(1)).partition(":")[0], not_remembered(Budget(None)) == NOBODY_REMEMBERS
    ('1 of the total of 1 is left while this program runs', True)
    """
    if math.isinf(budget.total):
        return NOBODY_REMEMBERS
    left = f"{at_least(budget.remaining)} of the total of {at_most(budget.total)} is left while this program runs"
    return f"{left}: no ledger remembers this answer beyond that."


class Budget:
    """A limit on the sum of pure ε, for as long as this object lives. What does not fit is refused and costs nothing.

    It is a :class:`~dpselect.composition.realised.PureFilter` with messages for people who ask a data set: checking and
    counting happen there, in one step. A copy is the same budget, and it cannot be pickled.

    >>> budget = Budget(1.0)
    >>> from dpselect.privacy.loss import Loss
    >>> budget.charge(Loss(epsilon=0.75), parameter="epsilon")
    >>> budget.charge(Loss(epsilon=0.5), parameter="epsilon")
    Traceback (most recent call last):
        ...
    dpselect.errors.BudgetExhausted: an answer at ε = 0.5 does not fit: 0.25 of 1 is left; nothing was asked; ...
    >>> budget.spent, budget.remaining
    (0.75, 0.25)
    """

    def __init__(self, total: float | Fraction | None) -> None:
        self.total = math.inf
        if total is not None:
            one(positive, "total", total)
            self.total = no_more_than(total)
        # Without a total the largest double stands in: what was spent is added up all the same.
        self._filter = PureFilter(min(self.total, sys.float_info.max))
        self._process = owned_here(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise StateRefused("a budget is not pickled, since a second one would be spent as well; keep a ledger instead")

    def refuse_children(self) -> None:
        """Refuses in a forked child, before it touches an engine whose threads stayed with its parent."""
        if self._process != process():
            raise StateRefused(
                "this budget belongs to the process that made it; ask there, or keep a ledger, which processes share"
            )

    def charge(self, cost: Loss, *, parameter: str) -> None:
        """Counts an answer that is about to be drawn; a refusal names the ``parameter`` that says its cost."""
        self.refuse_children()
        if cost.delta > 0 and self.total < math.inf:
            raise InvalidParameter(_NO_DELTA.format("this data set's"), parameter="delta")
        try:
            self._filter.charge(cost.epsilon)
        except BudgetExhausted:
            told, spent = f"{at_least(self.remaining)} of {at_most(self.total)} is left", self.spent
            most = self.remaining
            raise _too_little(cost.epsilon, told, parameter, most=most, spent=spent, budget=self.total) from None

    @property
    def spent(self) -> float:
        """What the answers so far cost, rounded up."""
        return self._filter.spent

    @property
    def remaining(self) -> float:
        """What is left; infinite without a limit."""
        return math.inf if math.isinf(self.total) else self._filter.remaining


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Account:
    """What pays for answers, a budget in memory or a ledger, and where their noise comes from.

    Parameters
    ----------
    budget : Budget
        The sum in memory; charged where there is no ledger.
    ledger, total, anchor, unit, old_names
        Those of :func:`open_book`; the ledger is opened when it is first needed.
    entropy : Entropy
        Where noise comes from.
    """

    budget: Budget
    ledger: Any = None
    total: Any = None
    anchor: str | Sequence[str] | None = None
    unit: PrivacyUnit | None = None
    old_names: Sequence[str | None] = ()
    entropy: Entropy = SYSTEM_ENTROPY

    @functools.cached_property
    def book(self) -> Ledger | None:
        """The ledger, opened; None where there is none."""
        if self.ledger is None:
            return None
        return open_book(self.ledger, total=self.total, anchor=self.anchor, unit=self.unit, old_names=self.old_names)

    @property
    def opened(self) -> Ledger | None:
        """The ledger, if it was opened by now."""
        return vars(self).get("book")

    def refuse_children(self) -> None:
        """Refuses in a forked child, which has no share in its parent's budget; processes may share a ledger."""
        if self.ledger is None:
            self.budget.refuse_children()


def open_book(
    place: Any,
    *,
    total: Any = None,
    anchor: str | Sequence[str] | None = None,
    unit: PrivacyUnit | None = None,
    old_names: Sequence[str | None] = (),
) -> Ledger:
    """Open the ledger at ``place``; one that is not there, or does not answer, is refused and never made.

    Parameters
    ----------
    place : path, URL or Ledger
        Where it is.
    total : number, optional
        What the ledger must have been made with.
    anchor : str or several, optional
        Entries it must have; the data set among several is the one that has them.
    unit : PrivacyUnit, optional
        Whose privacy is asked about.
    old_names : sequence of str
        For data-set files that were written without an anchor, and ledgers of several data sets: what the data set may
        be called.
    """
    try:
        from dpselect.ledger import Ledger, Total
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    if isinstance(place, Ledger):
        if unit is not None:
            place.claim(unit)
        if anchor:
            place.require(anchor)
        return place
    wanted = None if total is None else Total.pure(exact_number("total", total))
    known = Ledger.datasets(place)
    name = None
    if not anchor and len(known) > 1:
        name = next((one for one in old_names if one in known), None)
        _refuse_a_name(name, known, place)
    found = Ledger.open(place, dataset=name, anchor=anchor, unit=unit)
    if wanted is not None and found.total != wanted:
        found.close()
        raise InvalidParameter(
            f"‹total› must be left out, or be what was chosen when the ledger was made: {found.total}",
            parameter="total",
        )
    return found


def open_for_curator(place: Any, *, name: str, total: Any, facts: Mapping[str, Any], make: bool) -> Ledger:
    """Open the ledger that a data-set file is to name, and state in it whose privacy is counted.

    ``facts`` are those of the file. With ``make`` and a ``total``, one is made where there verifiably is none: no file,
    or a database that answers and has no ledger.
    """
    try:
        from dpselect.ledger import Ledger, Total
        from dpselect.ledger.database import NoLedger
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    unit, anchor = unit_of(facts), facts.get("anchor")
    try:
        found = open_book(place, total=total, anchor=anchor, old_names=(name,))
    except NoLedger:
        if not make or anchor is not None:
            raise
        return Ledger.create(place, dataset=name, total=Total.pure(exact_number("total", total)), unit=unit)
    try:
        found.state_unit(unit)
    except BaseException:
        found.close()
        raise
    return found


def unit_of(facts: Mapping[str, Any]) -> PrivacyUnit:
    """Whose privacy is counted, by the facts of a data-set file."""
    from dpselect.ledger import PrivacyUnit

    if facts.get("maximum") is not None:
        return PrivacyUnit(user=None, adjacency="declared")
    adjacency = facts.get("adjacency") or "add-remove"
    return PrivacyUnit(user=facts.get("user"), adjacency=adjacency, wide=bool(facts.get("wide")))


def _refuse_a_name(name: str | None, known: Sequence[str], place: Any) -> None:
    """Among several data sets a name alone decides only where both file and ledger are of an earlier version."""
    from dpselect.ledger import Ledger

    told = "write its anchor into the data-set file (dpselect ledger show LEDGER --dataset NAME shows it)"
    if name is not None:
        with Ledger.open(place, dataset=name) as found:
            old = not found.marked
        if old:
            warnings.warn(
                f"the name of the file decides that the data set {name!r} pays; {told}, so that a copy pays the same",
                DPSelectWarning,
                stacklevel=3,
            )
            return
    raise LedgerError(f"the ledger keeps several data sets ({', '.join(map(repr, known))}): {told}")


def refuse_unpayable(book: Ledger, *costs: Loss) -> None:
    """Refuses a watch whose whole budget is not left in the ledger: it would end half-way and leave nothing."""
    balance, total = book.balance(), book.total
    if balance.retired:
        return  # the ledger says so itself
    if total.kind == "pure" and any(cost.delta > 0 for cost in costs):
        raise InvalidParameter(_NO_DELTA.format("the ledger's"), parameter="delta")
    needed = sum((total.price(cost) for cost in costs[1:]), total.price(costs[0]))
    # What is left is rounded down, and may stand a last digit below the number that was typed.
    if balance.remaining < total.shown(needed) * (1.0 - 1e-9):
        raise unpayable(book, math.fsum(cost.epsilon for cost in costs), parameter="budget", parts=len(costs))


def unpayable(book: Ledger, epsilon: float, *, parameter: str, parts: int = 1) -> BudgetExhausted:
    """What to say of an answer that the ledger cannot pay for, and what it could."""
    balance, total = book.balance(), book.total
    most = total.exact(balance.left)
    if total.kind == "zcdp":
        # A pure ε costs ε²/2 of a ρ (THEORY §11); in equal parts, each of them its own square.
        most = Decimal(math.sqrt(2.0 * parts * float(most)) * (1.0 - 1e-12))
    return _too_little(
        epsilon, f"{left_of(book)} is left in the ledger", parameter, most=most, spent=balance.spent, budget=total.limit
    )


def _too_little(
    epsilon: float, left: str, parameter: str, *, most: float | Decimal, spent: float, budget: float
) -> BudgetExhausted:
    fits = f"; ‹{parameter}› {at_least(most)} would fit" if most > 0 else ""
    return BudgetExhausted(
        f"an answer at ε = {at_most(epsilon)} does not fit: {left}; nothing was asked{fits}",
        spent=spent,
        budget=budget,
        next_cost=epsilon,
    )


def left_in_words(book: Ledger, cost: Any, *, at_most: bool = False) -> str:
    """What is left after an answer of this cost, and how many more like it fit; ``at_most``: it may have cost less.

    >>> import tempfile
    >>> from dpselect.ledger import Ledger, Total
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger.create(folder.name + "/homes.ledger", dataset="homes", total=Total.pure(1)) as book:
    ...     _ = book.ask({"verb": "peak"}, cost=Fraction(1, 10), draw=lambda: "monday")
    ...     left_in_words(book, Fraction(1, 10))
    '0.9 of 1 left, 9 more like this'
    >>> folder.cleanup()
    """
    from dpselect.ledger.amounts import PER_DELTA, exact

    balance, total = book.balance(), book.total
    if balance.retired:
        return "nothing left: the data set is retired"
    more = total.price(cost).times_in(balance.left)
    shown = left_of(book)
    if total.kind == "approximate":
        shown += f" (δ: {at_least(exact(balance.left.delta, PER_DELTA))} of {at_least(total.delta)})"
    return f"{shown} left, {'at least ' if at_most and more else ''}{more or 'no'} more like this"


def would_leave(book: Ledger, cost: Any) -> str:
    """What is left now, and what an answer of this cost would leave."""
    balance, total = book.balance(), book.total
    price, unit = total.price(cost), "ρ = " if total.kind == "zcdp" else ""
    if balance.retired or not price <= balance.left:
        return f"{left_of(book)} left, too little for this"
    return f"{left_of(book)} left, {unit}{at_least(total.exact(balance.left - price))} after this"


def left_of(book: Ledger) -> str:
    """How much of the total is left: ``0.9 of 1``."""
    total, left = book.total, at_least(book.total.exact(book.balance().left))
    return f"{'ρ = ' if total.kind == 'zcdp' else ''}{left} of {at_least(total.limit)}"
