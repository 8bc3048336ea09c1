"""What a command may have spent by the time it ends, so that every way out can say it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpselect.errors import DPSelectError, LedgerError, SourceError

if TYPE_CHECKING:
    from dpselect.dataset.budget import Account
    from dpselect.ledger import Ledger
    from dpselect.privacy.loss import Loss


@dataclass(frozen=True)
class Cost:
    """The most a question costs, and whether a ledger holds that much for it."""

    loss: Loss
    ledger: bool
    #: The ledger, once it is open; without this, it may be.
    book: Callable[[], Ledger | None] | None = None
    #: Without a ledger: whether the budget in memory was charged, which it is before a row is read; None: nobody knows.
    charged: Callable[[], bool] | None = None

    def __str__(self) -> str:
        from dpselect.rounding import at_most

        delta = f" up to δ = {at_most(self.loss.delta)}" if self.loss.delta else ""
        return f"ε = {at_most(self.loss.epsilon)}{delta}"


class _State:
    begun: Cost | None = None


def forget() -> None:
    """At the start of a command nothing is spent."""
    _State.begun = None


def has_begun() -> bool:
    """Whether a question may have been charged."""
    return _State.begun is not None


def begin(
    loss: Loss,
    *,
    ledger: bool,
    book: Callable[[], Ledger | None] | None = None,
    charged: Callable[[], bool] | None = None,
) -> None:
    """From here on the question may be charged, at most this; what it was charged, the ``book`` says."""
    _State.begun = Cost(loss, ledger, book, charged)


def say_left(book: Ledger | None, cost: Loss, *, at_most: bool = False) -> None:
    """One line after an answer: what is left in the ledger, and for how many more like it."""
    from dpselect.cli import screen
    from dpselect.dataset.budget import left_in_words

    if book is None:
        return
    with suppress(LedgerError):  # the answer is out, and stands in the ledger
        screen.notice(f"Ledger: {left_in_words(book, cost, at_most=at_most)}", style="green")


def say_would_be_left(account: Account, cost: Loss) -> None:
    """One line after a dry run: what an answer of this cost would leave in the ledger, where there is one."""
    from dpselect.cli import screen
    from dpselect.dataset.budget import would_leave

    try:
        book = account.book
        if book is not None:
            screen.notice(f"Ledger: {would_leave(book, cost)}", style="green")
    except LedgerError as problem:
        screen.notice(f"Ledger: {problem}", style="red")


def after_refusal(failure: DPSelectError) -> str:
    """What a refusal cost: nothing, unless the question was charged by then. Rows were read after that, so the refusal
    may tell of them.

    >>> from dpselect.privacy.loss import Loss
    >>> forget(); after_refusal(SourceError("no file"))
    '; nothing was spent'
    >>> begin(Loss(epsilon=0.1), ledger=True); after_refusal(SourceError("no such column"))
    '; nothing was spent'
    >>> after_refusal(LedgerError("the disk is full"))
    '; count ε = 0.1 as spent'
    >>> begin(Loss(epsilon=0.1), ledger=True, book=lambda: None)  # not even open
    >>> after_refusal(LedgerError("no such ledger"))
    '; nothing was spent'
    >>> begin(Loss(epsilon=0.1), ledger=False, charged=lambda: True); after_refusal(SourceError("a broken file"))
    '; no answer was drawn, but the refusal may tell of the rows: count ε = 0.1 as spent'
    >>> forget()
    """
    if noted := _noted(failure):
        return noted
    if "spent" in str(failure) or "was asked" in str(failure):
        return ""
    begun = _State.begun
    if begun is None:
        return "; nothing was spent"
    if not begun.ledger:
        charged = begun.charged is not None and begun.charged()
        told = f"; no answer was drawn, but the refusal may tell of the rows: count {begun} as spent"
        return told if charged else "; nothing was spent"
    if begun.book is None:
        return f"; count {begun} as spent" if isinstance(failure, LedgerError) else "; nothing was spent"
    if isinstance(failure, LedgerError) and failure.waited and begun.book() is not None:
        # Its patience is over: another look would wait as long again.
        return f"; count {begun} as spent until the ledger can be looked at"
    return _by_the_ledger(begun, "no answer was drawn, and " if isinstance(failure, SourceError) else "")


def after_interruption(failure: BaseException) -> str:
    """What an interruption cost.

    >>> from dpselect.privacy.loss import Loss
    >>> forget(); after_interruption(KeyboardInterrupt())
    '; nothing was spent'
    >>> begin(Loss(epsilon=0.1), ledger=False); after_interruption(KeyboardInterrupt())
    '; count ε = 0.1 as spent'
    >>> after_interruption(KeyboardInterrupt("interrupted while adding up; no noise was drawn"))
    '; nothing was spent'
    >>> begin(Loss(epsilon=0.1), ledger=False, charged=lambda: False); after_interruption(KeyboardInterrupt())
    '; nothing was spent'
    >>> forget()
    """
    if noted := _noted(failure):
        return noted
    begun = _State.begun
    if begun is None:
        return "; nothing was spent"
    if begun.ledger and begun.book is not None:
        return _by_the_ledger(begun)
    untouched = not begun.ledger and begun.charged is not None and not begun.charged()
    return "; nothing was spent" if untouched or "no noise was drawn" in str(failure) else f"; count {begun} as spent"


def _by_the_ledger(begun: Cost, drawn: str = "") -> str:
    """What the ledger has for the question by now: one that was never opened was not charged."""
    book = None if begun.book is None else begun.book()
    if book is None:
        return "; nothing was spent"
    try:
        last = book.last
    except LedgerError:
        return f"; count {begun} as spent, for the ledger cannot be looked at"
    if last is None:
        return "; nothing was spent"
    if last.lost:
        return f"; the answer is lost and the ledger keeps its {begun}: pay again with --afresh or another --key"
    if last.settled is not None:
        return "; its answer is in the ledger, and asking again costs nothing"
    return f"; {drawn}the ledger holds up to {begun} for it until it is asked again"


def _noted(failure: BaseException) -> str:
    """What a watch said of the ledger when it failed."""
    return "".join(f"; {note}" for note in getattr(failure, "__notes__", ()))
