"""Columns under conditions: a value and where it may be used; text that must look a certain way first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

#: An Ibis expression; Ibis is imported only when a table is read.
Expression: TypeAlias = Any


@dataclass(frozen=True)
class Part:
    """What a row holds of one thing, and whether it is usable.

    Filtering on ``usable`` is much cheaper for an engine than carrying nulls along, so both forms are kept.
    """

    value: Expression
    usable: Expression

    def or_null(self) -> Expression:
        """The value where it is usable, else null."""
        import ibis

        return ibis.ifelse(self.usable, self.value, ibis.null(self.value.type()))


def matched(column: Expression, pattern: str) -> Expression:
    """The text without spaces around it where the whole of it matches, else null.

    What matches is chosen so that the conversion after it cannot fail, on engines that look at both arms of a
    choice too. The bar at the end is there because engines disagree about ``$`` before a final line break.
    """
    import ibis

    fits = column.concat("|").re_search(f"^ *({pattern}) *[|]$")
    return ibis.ifelse(fits, column, ibis.null("string")).strip()
