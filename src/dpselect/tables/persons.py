"""Whose row it is."""

from __future__ import annotations

from dpselect.tables.parts import Expression, Part


def person_of(column: Expression) -> Part:
    """Who a row belongs to: an empty text and NaN name nobody."""
    kind = column.type()
    if kind.is_string():
        return Part(column, column != "")
    if kind.is_floating():
        # Whole numbers that became floats merge from here on (two people's would be one), so they name nobody: the
        # curator's report counts them. Adding 0.0 makes one person of 0.0 and -0.0.
        merging = 2.0**24 if kind.is_float32() else 2.0**11 if kind.is_float16() else 2.0**53
        return Part(column + 0.0, (column > -merging) & (column < merging))
    return Part(column, column.notnull())
