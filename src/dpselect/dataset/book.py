"""The ledger of a data set: opened when the first question is asked, made where a total is given and none is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidParameter, LedgerError, SourceError
from dpselect.report.rounding import no_more_than

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

#: Stands beside every answer that no ledger keeps.
NOBODY_REMEMBERS = "No ledger remembers this answer: add up yourself what is asked, or keep a ledger."


def open_book(place: Any, *, name: str, total: Any) -> Ledger:
    """The ledger at ``place``; of several data sets in it the one called ``name``."""
    try:
        from dpselect.ledger import Ledger, Total
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    if isinstance(place, Ledger):
        return place
    wanted = None if total is None else Total.pure(no_more_than(total))
    missing = "://" not in str(place) and not Path(place).exists()
    try:
        known = () if missing and wanted is not None else Ledger.datasets(place)
    except LedgerError:
        if wanted is None:
            raise
        known = ()
    if wanted is not None and not known:
        return Ledger.create(place, dataset=name, total=wanted)
    found = Ledger.open(place, dataset=name if name in known else None)
    if wanted is not None and found.total != wanted:
        found.close()
        raise InvalidParameter(
            f"‹total› must be left out, or be what was chosen when the ledger was made: {found.total}",
            parameter="total",
        )
    return found
