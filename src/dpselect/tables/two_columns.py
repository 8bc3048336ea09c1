"""Date and hour in two columns, made one time."""

from __future__ import annotations

from dpselect.errors import SourceError
from dpselect.tables.bytewise import bytewise
from dpselect.tables.parts import Expression
from dpselect.tables.rows import check_columns
from dpselect.tables.source import Table

#: How a time format goes on once the hour stands behind the date.
HOUR_FORMAT = " %H:%M"
_HOUR = r"^ *([01]?[0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9])?)? *$"


def with_hours(table: Table, *, date: str, hour: str) -> Table:
    """The table with the hour written behind the date, as text, in the date's column.

    >>> import pyarrow
    >>> from dpselect.tables import open_source
    >>> rows = open_source(pyarrow.table({"day": ["2011-01-01", "2011-01-02"], "hr": [0, 17]}))
    >>> with_hours(rows, date="day", hour="hr").to_pyarrow()["day"].to_pylist()
    ['2011-01-01 00:00', '2011-01-02 17:00']
    """
    check_columns(table, [date, hour])
    return table.mutate(**{date: _date(bytewise(table[date])).concat(" ", _hours(bytewise(table[hour])), ":00")})


def _date(column: Expression) -> Expression:
    kind = column.type()
    if kind.is_string():
        return column.strip()
    if kind.is_date():
        return column.cast("string")
    if kind.is_timestamp() and kind.timezone is None:
        return column.date().cast("string")
    raise SourceError(f"the column {column.get_name()!r} must hold dates beside the hours; it holds {kind}: convert it")


def _hours(column: Expression) -> Expression:
    """Two digits; null where there is no hour of a day."""
    import ibis

    kind = column.type()
    if not (kind.is_string() or kind.is_integer()):
        raise SourceError(
            f"the column {column.get_name()!r} must hold hours, from 0 to 23; it holds {kind}: convert it"
        )
    text = column.strip() if kind.is_string() else column.cast("string")
    short = (text.length() == 1) | (text.substr(1, 1) == ":")
    digits = ibis.ifelse(short, ibis.literal("0").concat(text.substr(0, 1)), text.substr(0, 2))
    return ibis.ifelse(text.re_search(_HOUR), digits, ibis.null("string"))
