"""From a time column to a period's number, in arithmetic every engine does alike.

Engines differ in how they read dates from text and in the time zone tables they carry. So a time becomes two
integers, the wall clock's day number and hour; all that follows is comparison and integer arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar, day_number

#: An Ibis expression; Ibis is imported only when a table is read.
Expression: TypeAlias = Any

_ISO = (
    r"\A *[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?)?"
)
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})"
_FIELDS = {
    "%Y": (4, "[0-9]{4}"),
    "%m": (2, "(0[1-9]|1[0-2])"),
    "%d": (2, "(0[1-9]|[12][0-9]|3[01])"),
    "%H": (2, "([01][0-9]|2[0-3])"),
    "%M": (2, "[0-5][0-9]"),
    "%S": (2, "[0-5][0-9]"),
}


def period_index(column: Expression, *, calendar: Calendar, time_format: str | None) -> Expression:
    """The number of the period a time falls in; null where the time is missing or cannot be read.

    Numbers below 0 or beyond the last period are times outside the calendar.
    """
    day, hour = _wall_clock(column, calendar=calendar, time_format=time_format)
    first = day_number(calendar.first)
    if calendar.every == "hour":
        return (day - first) * 24 + hour - calendar.first.hour
    if calendar.every == "day":
        return day - first
    if calendar.every == "week":
        return (day - first) // 7
    begins = [day_number(calendar.begins(index)) for index in range(len(calendar) + 1)]
    return _steps(day, begins, range(-1, len(calendar) + 1))


def _steps(number: Expression, bounds: Sequence[int], values: Sequence[int]) -> Expression:
    """``values[how many bounds lie at or below number]``, found by halving; null for null."""
    import ibis

    if not bounds:
        return number * 0 + values[0]
    middle = len(bounds) // 2
    below = _steps(number, bounds[:middle], values[: middle + 1])
    above = _steps(number, bounds[middle + 1 :], values[middle + 1 :])
    return ibis.ifelse(number < bounds[middle], below, above)


def _wall_clock(
    column: Expression, *, calendar: Calendar, time_format: str | None
) -> tuple[Expression, Expression]:
    kind = column.type()
    if kind.is_date():
        return column.epoch_days(), 0
    if kind.is_timestamp():
        if kind.timezone is None:
            return column.date().epoch_days(), column.hour()
        if calendar.timezone is None:
            raise SourceError(
                f"times in column {column.get_name()!r} carry a time zone; give the calendar one, "
                "e.g. timezone='Europe/London'"
            )
        return _local(column.epoch_seconds(), calendar)
    if kind.is_string():
        return _read(column, time_format) if time_format else _read_iso(column, calendar)
    raise SourceError(
        f"time column {column.get_name()!r} must hold dates, timestamps or text; it holds {kind}: convert it"
    )


def _local(seconds: Expression, calendar: Calendar) -> tuple[Expression, Expression]:
    """Day and hour on the calendar's wall clock, from seconds since 1970 (the division cuts fractions)."""
    changes, offsets = calendar.offsets()
    hours = (seconds + _steps(seconds, changes, offsets)) // 3600
    return hours // 24, hours - (hours // 24) * 24


def _digits(text: Expression, start: int, length: int = 2) -> Expression:
    return text.substr(start, length).cast("int64")


def _matching(column: Expression, pattern: str) -> Expression:
    """The text without spaces around it where it matches, else null, so that nothing after it can fail."""
    import ibis

    return ibis.ifelse(column.re_search(pattern), column, ibis.null("string")).strip()


def _day_of(year: Expression, month: Expression, day: Expression) -> Expression:
    """The day number of a date in the Gregorian calendar; null for 30 February and its like."""
    import ibis

    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    length = ibis.ifelse(
        month == 2, ibis.ifelse(leap, 29, 28), ibis.ifelse(month.isin([4, 6, 9, 11]), 30, 31)
    )
    # Years that begin on 1 March put the leap day last, so that months have regular lengths before it.
    shifted_year = ibis.ifelse(month <= 2, year - 1, year)
    months = (month + 9) % 12
    number = (
        shifted_year * 365
        + shifted_year // 4
        - shifted_year // 100
        + shifted_year // 400
        + (months * 306 + 5) // 10
        + day
        - 1
        - 719468
    )
    return ibis.ifelse(day <= length, number, ibis.null("int64"))


def _read_iso(column: Expression, calendar: Calendar) -> tuple[Expression, Expression]:
    import ibis

    plain = _matching(column, _ISO + r" *\z")
    day = _day_of(_digits(plain, 0, 4), _digits(plain, 5), _digits(plain, 8))
    hour = ibis.ifelse(plain.length() > 10, _digits(_timed(plain), 11), 0)
    if calendar.timezone is None:
        return day, hour
    zoned = _matching(column, _ISO + _ZONE + r" *\z")
    zoned_day, zoned_hour = _local(_instant(zoned), calendar)
    return ibis.coalesce(day, zoned_day), ibis.ifelse(day.isnull(), zoned_hour, hour)


def _timed(text: Expression) -> Expression:
    """The text with a time of day, midnight where it has none: engines may look at both arms of a choice."""
    import ibis

    return ibis.ifelse(text.length() > 10, text, text.concat("T00:00"))


def _instant(text: Expression) -> Expression:
    """Seconds since 1970 of an ISO time with a zone (seconds within the minute play no part in the hour)."""
    import ibis

    day = _day_of(_digits(text, 0, 4), _digits(text, 5), _digits(text, 8))
    utc = text.endswith("Z")
    bare = text.replace("Z", "+0000").replace(":", "")
    shift = bare.right(4).cast("int64")
    minutes = (shift // 100) * 60 + shift % 100
    # Only what follows the date is looked at for a minus sign: the date itself is full of them.
    west = text.substr(10, 80).contains("-")
    offset = ibis.ifelse(utc, 0, ibis.ifelse(west, -minutes, minutes))
    clock = ibis.ifelse(text.re_search(r"\A.{10}[T ]"), text.substr(11, 5), "00:00")
    clock = ibis.ifelse(text.isnull(), ibis.null("string"), clock)
    return day * 86400 + _digits(clock, 0) * 3600 + _digits(clock, 3) * 60 - offset * 60


def _read(column: Expression, time_format: str) -> tuple[Expression, Expression]:
    pattern, places = _compiled(time_format)
    text = _matching(column, pattern)
    day = _day_of(_digits(text, places["%Y"], 4), _digits(text, places["%m"]), _digits(text, places["%d"]))
    return day, _digits(text, places["%H"]) if "%H" in places else 0


def _compiled(time_format: str) -> tuple[str, dict[str, int]]:
    """The pattern of a fixed-width format and where each field begins."""
    pattern, places, position = [r"\A *"], dict[str, int](), 0
    for part in re.findall(r"%.?|[^%]+", time_format):
        width, field = _FIELDS.get(part, (len(part), re.escape(part)))
        if part.startswith("%") and (part not in _FIELDS or part in places):
            raise refuse("time_format", time_format, "made of %Y %m %d %H %M %S, each once, and separators")
        places[part] = position
        pattern.append(field)
        position += width
    if not {"%Y", "%m", "%d"} <= places.keys():
        raise refuse("time_format", time_format, "made of at least %Y, %m and %d")
    return "".join([*pattern, r" *\z"]), places
