"""What a command may have spent by the time it ends, so that every way out can say it."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.errors import DPSelectError, LedgerError, SourceError


@dataclass(frozen=True)
class Cost:
    """The most a question costs, and whether a ledger holds that much for it."""

    epsilon: float
    ledger: bool

    def __str__(self) -> str:
        from dpselect.report.rounding import at_most

        return f"ε = {at_most(self.epsilon)}"


class _State:
    begun: Cost | None = None


def forget() -> None:
    """At the start of a command nothing is spent."""
    _State.begun = None


def begin(epsilon: float, *, ledger: bool) -> None:
    """From here on the question may be charged, its answer drawn."""
    _State.begun = Cost(epsilon, ledger)


def after_refusal(failure: DPSelectError) -> str:
    """What a refusal cost: nothing, unless a ledger already holds the question's ε.

    >>> forget(); after_refusal(SourceError("no file"))
    '; nothing was spent'
    >>> begin(0.1, ledger=True); after_refusal(SourceError("a broken row"))
    '; no answer was drawn, and the ledger holds its ε = 0.1 until it is asked again'
    >>> forget()
    """
    if "spent" in str(failure) or "was asked" in str(failure):
        return ""
    begun = _State.begun
    if begun is not None and begun.ledger:
        if isinstance(failure, SourceError):
            return f"; no answer was drawn, and the ledger holds its {begun} until it is asked again"
        if isinstance(failure, LedgerError):
            return f"; count {begun} as spent"
    return "; nothing was spent"


def after_interruption(failure: BaseException) -> str:
    """What an interruption cost.

    >>> forget(); after_interruption(KeyboardInterrupt())
    '; nothing was spent'
    >>> begin(0.1, ledger=False); after_interruption(KeyboardInterrupt())
    '; count ε = 0.1 as spent'
    >>> after_interruption(KeyboardInterrupt("interrupted while adding up; no noise was drawn"))
    '; nothing was spent'
    >>> forget()
    """
    begun = _State.begun
    if begun is None:
        return "; nothing was spent"
    if "no noise was drawn" in str(failure):
        return f"; the ledger holds its {begun} until it is asked again" if begun.ledger else "; nothing was spent"
    return f"; count {begun} as spent"
