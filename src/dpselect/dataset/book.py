"""The ledger of a data set: opened when the first question is asked, made where a total is given and none is there."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.errors import BudgetExhausted, InvalidParameter, LedgerError, SourceError
from dpselect.report.rounding import at_least, at_most

if TYPE_CHECKING:
    from dpselect.ledger import Ledger
    from dpselect.privacy.loss import Loss

#: Said of a δ that a total of ε alone cannot pay for.
NO_DELTA = (
    "{} total is an ε alone and promises no δ; leave ‹delta› out, or use a ledger made with a δ "
    "(dpselect ledger create … --delta)"
)
#: Stands beside every answer that no ledger keeps.
NOBODY_REMEMBERS = "No ledger remembers this answer: add up yourself what is asked, or keep a ledger."


def open_book(place: Any, *, name: str, total: Any, described: str | None = None) -> Ledger:
    """The ledger at ``place``; of several data sets in it the one that was ``described`` so, or is called ``name``."""
    try:
        from dpselect.ledger import Ledger, Total
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    if isinstance(place, Ledger):
        return place
    wanted = None if total is None else Total.pure(exact_total(total))
    missing = "://" not in str(place) and not Path(place).exists()
    try:
        known = () if missing and wanted is not None else Ledger.datasets(place)
    except LedgerError:
        if wanted is None:
            raise
        known = ()
    if wanted is not None and not known:
        return Ledger.create(place, dataset=name, total=wanted)
    found = Ledger.open(place, dataset=next((one for one in (described, name) if one in known), None))
    if wanted is not None and found.total != wanted:
        found.close()
        raise InvalidParameter(
            f"‹total› must be left out, or be what was chosen when the ledger was made: {found.total}",
            parameter="total",
        )
    return found


def refuse_unpayable(book: Ledger, *costs: Loss) -> None:
    """Refuses a watch whose whole budget is not left in the ledger: it would end half-way and leave nothing."""
    balance, total = book.balance(), book.total
    if total.kind == "pure" and any(cost.delta > 0 for cost in costs):
        raise InvalidParameter(NO_DELTA.format("the ledger's"), parameter="delta")
    needed = total.shown(sum((total.price(cost) for cost in costs[1:]), total.price(costs[0])))
    # What is left is rounded down, and may stand a last digit below the number that was typed.
    if balance.remaining < needed * (1.0 - 1e-9):
        left = at_least(balance.remaining)
        raise BudgetExhausted(
            f"this watch may cost up to ε = {at_most(needed)}, and {left} is left in the ledger; nothing was asked; "
            f"give a ‹budget› of at most {left}",
            spent=balance.spent,
            budget=balance.spent + balance.remaining,
            next_cost=needed,
        )


def unpayable(book: Ledger, epsilon: float) -> BudgetExhausted:
    """What to say of an answer that the ledger cannot pay for, and which ε it could."""
    balance, total = book.balance(), book.total
    left = total.exact(balance.left)
    # A pure ε costs ε²/2 of a ρ (THEORY §11).
    most = math.sqrt(2.0 * float(left)) * (1.0 - 1e-12) if total.kind == "zcdp" else left
    unit = "ρ = " if total.kind == "zcdp" else ""
    fits = f"; ‹epsilon› {at_least(most)} would fit" if left > 0 and not balance.retired else ""
    return BudgetExhausted(
        f"an answer at ε = {at_most(epsilon)} does not fit: {unit}{at_least(left)} of {at_least(total.limit)} is left "
        f"in the ledger; nothing was asked{fits}",
        spent=balance.spent,
        budget=balance.spent + balance.remaining,
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
    unit = "ρ = " if total.kind == "zcdp" else ""
    shown = f"{unit}{at_least(total.exact(balance.left))} of {at_least(total.limit)}"
    if total.kind == "approximate":
        shown += f" (δ: {at_least(exact(balance.left.delta, PER_DELTA))} of {at_least(total.delta)})"
    return f"{shown} left, {'at least ' if at_most and more else ''}{more or 'no'} more like this"


def would_leave(book: Ledger, cost: Any) -> str:
    """What is left now, and what an answer of this cost would leave."""
    balance, total = book.balance(), book.total
    unit, left = "ρ = " if total.kind == "zcdp" else "", balance.left
    now = f"{unit}{at_least(total.exact(left))} of {at_least(total.limit)} left"
    if balance.retired or not total.price(cost) <= left:
        return f"{now}, too little for this"
    return f"{now}, {unit}{at_least(total.exact(left - total.price(cost)))} after this"


def exact_total(total: Any) -> Fraction:
    """A total as it is written, also where it stands as text in a data-set file."""
    from dpselect.tables.question import exact_number

    return exact_number("total", total)
