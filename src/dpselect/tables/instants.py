"""From a time column to a period's number, in arithmetic every engine does alike.

Engines differ in how they read dates from text and in the time zone tables they carry. So a time becomes two
integers, the wall clock's day number and hour; all that follows is comparison and integer arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import product

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar, day_number
from dpselect.tables.parts import Expression, bytewise, converted, engine_of, sqlite_text

# A pattern that only real dates match, leap years included, so that casting what matches cannot fail.
_DATE = (
    r"([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?"
_ZONE = r"(Z|[+-](0[0-9]|1[0-9]):?[0-5][0-9])"
_FIELDS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%I": 2, "%M": 2, "%S": 2, "%p": 2}
_PATTERNS = {"%I": "(0[1-9]|1[0-2])", "%p": "[AaPp][Mm]"}
#: Fields that may have one digit, written %-m; their pattern where they have one.
_SHORT = {"%m": "[1-9]", "%d": "[1-9]", "%H": "[0-9]", "%I": "[1-9]"}
_RULE = "made of %Y %m %d %H %I %M %S %p, each once, and separators (%-m, %-d, %-H, %-I for one digit or two)"


def stamp_of(column: Expression) -> Expression:
    """A time column as it can be read: every value by itself, and no value stops the others.

    SQLite keeps whatever was put into a column declared DATE or TIMESTAMP, so there it is text, for the patterns below.
    DuckDB rounds nanoseconds into the next day; here they are rounded down.
    """
    import ibis

    kind, engine = column.type(), engine_of(column)
    if kind.is_string():
        return bytewise(column)
    if engine == "sqlite" and (kind.is_date() or kind.is_timestamp()):
        return sqlite_text(column)
    if engine == "duckdb" and kind.is_timestamp() and kind.scale is not None and kind.scale > 6:
        rounded = column.cast("timestamp(6)")
        up = rounded.try_cast(kind) > column
        return ibis.ifelse(up, rounded - ibis.interval(microseconds=1), rounded).name(column.get_name())
    return column


def _within_years(column: Expression) -> Expression:
    """Dates and times of the years 1000 to 9999, else null: beyond, and at infinity, engines cannot count days."""
    import ibis

    kind = column.type()
    if kind.is_date():
        first, last = ibis.literal(date(1000, 1, 1)), ibis.literal(date.max)
    elif kind.is_timestamp() and kind.timezone is None:
        first, last = (ibis.literal(moment, "timestamp(6)") for moment in (datetime(1000, 1, 1), datetime.max))
    elif kind.is_timestamp():
        # A day less at the end: the wall clock of a zone may be ahead.
        first, last = (
            ibis.literal(moment.replace(tzinfo=UTC), "timestamp('UTC', 6)")
            for moment in (datetime(1000, 1, 2), datetime(9999, 12, 30))
        )
    else:
        return column
    return ibis.ifelse((column >= first) & (column <= last), column, ibis.null(kind)).name(column.get_name())


def period_index(
    column: Expression, *, calendar: Calendar, time_format: str | None, moment: Expression | None = None
) -> Expression:
    """The number of the period a time falls in; null where the time is missing or cannot be read.

    Numbers below 0 or beyond the last period are times outside the calendar. ``moment`` is from :func:`with_moments`.
    """
    kind = column.type()
    if kind.is_timestamp() and kind.timezone is not None and calendar.timezone is None:
        raise SourceError(
            f"times in column {column.get_name()!r} carry a time zone; give ‹timezone›, e.g. Europe/London"
        )
    if not (kind.is_date() or kind.is_timestamp() or kind.is_string()):
        raise SourceError(
            f"time column {column.get_name()!r} must hold dates, timestamps or text; it holds {kind}: convert it"
        )
    if calendar.timezone is not None and not kind.is_date() and engine_of(column) == "sqlite":
        # It rounds instants to the nearest second, into the next hour, and its parser allows little nesting.
        raise SourceError(
            f"times in column {column.get_name()!r} cannot be moved to a time zone on SQLite; leave the calendar's "
            "timezone out, or copy the table to Parquet or DuckDB"
        )
    first = day_number(calendar.first)
    if calendar.every == "hour":
        return hours_of(column, calendar, time_format, moment) - (first * 24 + calendar.first.hour)
    day = days_of(column, calendar, time_format, moment)
    if calendar.every == "day":
        return day - first
    if calendar.every == "week":
        return (day - first) // 7
    begins = [day_number(calendar.begins(index)) for index in range(len(calendar) + 1)]
    return _choice(day, begins, range(-1, len(calendar) + 1)) + day * 0


def carries_zone(column: Expression) -> Expression:
    """Whether a text is an ISO time with a zone."""
    return converted(column, _DATE + _CLOCK + _ZONE, lambda text: text).notnull()


def _choice(number: Expression, bounds: Sequence[int], values: Sequence[int]) -> Expression:
    """``values[how many bounds lie at or below number]``, found by halving."""
    import ibis

    if not bounds:
        return ibis.literal(values[0], "int64")
    middle = len(bounds) // 2
    below = _choice(number, bounds[:middle], values[: middle + 1])
    above = _choice(number, bounds[middle + 1 :], values[middle + 1 :])
    return ibis.ifelse(number < bounds[middle], below, above)


def days_of(
    column: Expression, calendar: Calendar, time_format: str | None, moment: Expression | None = None
) -> Expression:
    """The day on the wall clock, counted from 1970."""
    column = _within_years(stamp_of(column))
    kind = column.type()
    if kind.is_timestamp() and kind.timezone is not None:
        return hours_of(column, calendar, None) // 24
    if not kind.is_string() or (time_format is None and calendar.timezone is None):
        return dates_of(column, moment).epoch_days()
    if time_format is not None:
        return _in_any(column, time_format, _written_day)
    import ibis

    return ibis.coalesce(dates_of(column, moment).epoch_days(), _zoned_hours(column, calendar) // 24)


def dates_of(column: Expression, moment: Expression | None = None) -> Expression:
    """The date of a date, of a time without a zone, or of an ISO text without one."""
    import ibis

    if not column.type().is_string():
        return column if column.type().is_date() else column.date()
    read = converted(column, f"{_DATE}({_CLOCK})?", _date)
    return read if moment is None else ibis.coalesce(moment.date(), read)


def with_moments(table: Expression, name: str) -> tuple[Expression, Expression | None]:
    """The table with what DuckDB reads of a time given as text, in a column of its own, and that column.

    DuckDB reads other texts too, which the patterns here refuse. Writing what it read is much faster than a pattern,
    and shows that text and moment are one: ``2013-01-31``, or with a time to the minute or the second. All else stays
    null, and is left to the patterns. The steps lie one over the other because DuckDB works out a column once, but
    each mention in a choice anew.
    """
    import ibis

    if engine_of(table) != "duckdb" or not table[name].type().is_string():
        return table, None
    moment, written = (_unused(table, word) for word in ("moment", "written"))
    read = table.mutate(**{moment: bytewise(table[name]).try_cast("timestamp")})
    shown = read.mutate(**{written: read[moment].cast("string")})
    text, written, moment_read = bytewise(shown[name]), shown[written], shown[moment]
    begins = written.startswith(text) | written.startswith(text.replace("T", " "))
    fits = (written == text) | (text.length().isin([10, 16, 19]) & begins)
    # Years of four digits: DuckDB has others, and moments without end.
    usual = (moment_read >= ibis.literal(datetime(1000, 1, 1))) & (moment_read <= ibis.literal(datetime.max))
    known = shown.mutate(**{moment: ibis.ifelse(usual & fits, moment_read, ibis.null("timestamp"))})
    return known, known[moment]


def _unused(table: Expression, word: str) -> str:
    """A name that no column of the table has, in upper or lower case: DuckDB takes both for one."""
    taken = {name.casefold() for name in table.columns}
    while word in taken:
        word += "_"
    return word


def hours_of(
    column: Expression, calendar: Calendar, time_format: str | None, moment: Expression | None = None
) -> Expression:
    """The hour on the wall clock, counted from 1970."""
    import ibis

    column = _within_years(stamp_of(column))
    kind = column.type()
    if kind.is_date():
        return column.epoch_days() * 24
    if kind.is_timestamp():
        if kind.timezone is None:
            return column.date().epoch_days() * 24 + column.hour()
        return _local_hours(column.epoch_seconds(), calendar)
    if time_format is not None:
        return _in_any(column, time_format, lambda text, layout: _written_day(text, layout) * 24 + _hour(text, layout))
    bare = converted(column, _DATE, lambda text: _day(text) * 24)
    timed = converted(column, _DATE + _CLOCK, lambda text: _day(text) * 24 + _digits(text, 11))
    at_once = [] if moment is None else [moment.date().epoch_days() * 24 + moment.hour()]
    plain = ibis.coalesce(*at_once, timed, bare)
    if calendar.timezone is None:
        return plain
    return ibis.coalesce(plain, _zoned_hours(column, calendar))


def _local_hours(seconds: Expression, calendar: Calendar) -> Expression:
    """Hours on the calendar's wall clock, from seconds since 1970 (the division cuts fractions)."""
    return (seconds + _choice(seconds, *calendar.offsets())) // 3600


def _digits(text: Expression, start: int) -> Expression:
    return text.substr(start, 2).cast("int64")


def _date(text: Expression) -> Expression:
    return text.substr(0, 10).cast("date")


def _day(text: Expression) -> Expression:
    return _date(text).epoch_days()


def _zoned_hours(column: Expression, calendar: Calendar) -> Expression:
    """Hours on the calendar's wall clock of ISO times with a zone; null for other texts."""
    return converted(column, _DATE + _CLOCK + _ZONE, lambda text: _local_hours(_utc_minutes(text) * 60, calendar))


def _utc_minutes(text: Expression) -> Expression:
    """Minutes since 1970. Zones shift by whole minutes, so seconds within the minute play no part in the hour."""
    import ibis

    # The last six characters are +hh:mm, or another one and +hhmm.
    zone = ibis.ifelse(text.endswith("Z"), "+00:00", text.right(6))
    colon = zone.substr(3, 1) == ":"
    hours = ibis.ifelse(colon, zone.substr(1, 2), zone.substr(2, 2)).cast("int64")
    west = ibis.ifelse(colon, zone.substr(0, 1), zone.substr(1, 1)) == "-"
    minutes = (hours * 60 + _digits(zone, 4)) * ibis.ifelse(west, -1, 1)
    return (_day(text) * 24 + _digits(text, 11)) * 60 + _digits(text, 14) - minutes


@dataclass(frozen=True)
class _Layout:
    """One way a format is written: the pattern of such texts, and where each field begins and how long it is."""

    pattern: str
    places: dict[str, tuple[int, int]]

    def two_digits(self, text: Expression, field: str) -> Expression:
        """A field as two digits."""
        place, width = self.places[field]
        written = text.substr(place, width)
        return written if width == 2 else _literal("0").concat(written)


def _literal(text: str) -> Expression:
    """A text as an expression."""
    import ibis

    return ibis.literal(text)


def _in_any(column: Expression, time_format: str, convert: Callable[[Expression, _Layout], Expression]) -> Expression:
    """What a text is converted to, in whichever layout of the format it is written; else null."""
    import ibis

    def read(layout: _Layout) -> Expression:
        return converted(column, layout.pattern, lambda text: convert(text, layout))

    found = [read(layout) for layout in _layouts(time_format)]
    return found[0] if len(found) == 1 else ibis.coalesce(*found)


def _written_day(text: Expression, layout: _Layout) -> Expression:
    year = text.substr(layout.places["%Y"][0], 4)
    written = year.concat("-", layout.two_digits(text, "%m"), "-", layout.two_digits(text, "%d"))
    return converted(written, _DATE, _day)


def _hour(text: Expression, layout: _Layout) -> Expression | int:
    import ibis

    if "%H" in layout.places:
        return layout.two_digits(text, "%H").cast("int64")
    if "%I" not in layout.places:
        return 0
    afternoon = text.substr(layout.places["%p"][0], 1).upper() == "P"
    return layout.two_digits(text, "%I").cast("int64") % 12 + ibis.ifelse(afternoon, 12, 0)


def _layouts(time_format: str) -> list[_Layout]:
    """The fixed-width layouts of a format: one, or one for each choice of one digit or two where it leaves that open.

    >>> [layout.places["%Y"] for layout in _layouts("%-d/%-m/%Y")]
    [(6, 4), (5, 4), (5, 4), (4, 4)]
    """
    parts = re.findall(r"%-?.?|[^%]+", time_format.strip())
    fields = [part.replace("-", "") for part in parts if part.startswith("%")]
    for position, part in enumerate(parts):
        if not part.startswith("%"):
            continue
        short = part.startswith("%-")
        known = part.replace("%-", "%") in (_SHORT if short else _FIELDS)
        # Without a separator behind it, nothing would say where such a field ends.
        open_ended = short and parts[position + 1 : position + 2] and re.match(r"[%0-9]", parts[position + 1])
        if not known or open_ended or fields.count(part.replace("-", "")) > 1:
            raise refuse("time_format", time_format, _RULE)
    if not {"%Y", "%m", "%d"} <= set(fields):
        raise refuse("time_format", time_format, "made of at least %Y, %m and %d")
    if ("%I" in fields) != ("%p" in fields) or {"%H", "%I"} <= set(fields):
        raise refuse("time_format", time_format, "made of %H, or of %I and %p together")
    widths = [(2, 1) if part.startswith("%-") else (_FIELDS.get(part, len(part)),) for part in parts]
    return [_layout(parts, chosen) for chosen in product(*widths)]


def _layout(parts: Sequence[str], widths: Sequence[int]) -> _Layout:
    pattern, places, position = "", dict[str, tuple[int, int]](), 0
    for part, width in zip(parts, widths, strict=True):
        field = part.replace("%-", "%")
        if field not in _FIELDS:
            pattern += re.escape(part)
        elif width == 1:
            pattern += _SHORT[field]
        else:
            pattern += _PATTERNS.get(field, f"[0-9]{{{width}}}")
        places[field] = position, width
        position += width
    return _Layout(pattern, places)
