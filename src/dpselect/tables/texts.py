"""Text that must look a certain way before an engine may convert it."""

from __future__ import annotations

from typing import Any, TypeAlias

#: An Ibis expression; Ibis is imported only when a table is read.
Expression: TypeAlias = Any


def matched(column: Expression, pattern: str) -> Expression:
    """The text without spaces around it where the whole of it matches, else null.

    What matches is chosen so that the conversion after it cannot fail, on engines that look at both arms of a
    choice too. The bar at the end is there because engines disagree about ``$`` before a final line break.
    """
    import ibis

    fits = column.concat("|").re_search(f"^ *({pattern}) *[|]$")
    return ibis.ifelse(fits, column, ibis.null("string")).strip()
