"""Columns under conditions: a value and where it may be used; text that must look a certain way first."""

from __future__ import annotations

from collections.abc import Callable
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


#: Engines that work out every mention of a text anew, and of a choice only the arm that is taken. Others share work.
ONE_ARM = ("mysql", "postgres", "sqlite")


def engine_of(expression: Expression) -> str:
    """What the engine of an expression is called; nothing where the table is only described."""
    try:
        return str(expression.get_backend().name)
    except Exception:  # an unbound table has none; Ibis has changed what it raises
        return ""


def converted(column: Expression, pattern: str, convert: Callable[[Expression], Expression]) -> Expression:
    """What a text without the spaces around it is converted to, where the whole of it matches; else null.

    What matches is chosen so that the conversion cannot fail, on engines that look at both arms of a choice too. The
    bar at the end is there because engines disagree about ``$`` before a final line break.
    """
    import ibis

    fits = column.concat("|").re_search(f"^ *({pattern}) *[|]$")
    if engine_of(column) in ONE_ARM:
        number = convert(column.strip())
        return ibis.ifelse(fits, number, ibis.null(number.type()))
    return convert(ibis.ifelse(fits, column, ibis.null("string")).strip())
