"""The options of a watch on a ledger that was started before, or is to be started once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cyclopts import Group, Parameter

from dpselect.cli import screen
from dpselect.errors import InvalidParameter, refuse_given

if TYPE_CHECKING:
    from dpselect.cli.options import Run, Table
    from dpselect.ledger import Ledger

#: The data set of a ledger that is made for questions on standard input.
_STANDARD_INPUT = "standard input"


@Parameter(name="*", group=Group("A budget that survives", sort_key=7))
@dataclass(frozen=True, kw_only=True)
class Again:
    """With a ledger: which watch this is, and where it goes on.

    Parameters
    ----------
    key
        With --ledger: tells it from the same question asked before.
    afresh
        With --ledger: draw the same question again, and pay again.
    onward
        With --ledger, on standard input: the input goes on after the answers the ledger has, instead of starting again.
    """

    key: str | None = None
    afresh: bool = False
    onward: bool = False

    @contextmanager
    def book(self, table: Table, run: Run) -> Iterator[Ledger | None]:
        """The ledger for questions on standard input, where one is named."""
        from dpselect.dataset.book import open_book

        if table.ledger is None:
            refuse_given("questions without a ledger", total=table.total)
            yield None
            return
        if run.seed is not None:
            raise InvalidParameter("‹ledger› does not go with seeded noise: such answers are not private; leave it out")
        found = open_book(table.ledger, name=_STANDARD_INPUT, total=table.total)
        try:
            yield found
        finally:
            found.close()

    def tell(self, repeated: int) -> None:
        """Where a watch that was started before takes up."""
        answers = f"{repeated:,} answer{'s are' if repeated > 1 else ' is'} in the ledger already"
        screen.notice(
            f"{answers}: the input goes on with question {repeated + 1:,}"
            if self.onward
            else f"{answers} and repeated for the first lines, at no cost (--onward if the input goes on instead)",
            style="dim",
        )
