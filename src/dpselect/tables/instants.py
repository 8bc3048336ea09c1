"""From a time column to a period's number, in arithmetic every engine does alike.

Engines differ in how they read dates from text and in the time zone tables they carry. So a time becomes two
integers, the wall clock's day number and hour; all that follows is comparison and integer arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar, day_number
from dpselect.tables.parts import Expression, converted, engine_of

# A pattern that only real dates match, leap years included, so that casting what matches cannot fail.
_DATE = (
    r"([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    r"|([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)"
)
_CLOCK = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?"
_ZONE = r"(Z|[+-](0[0-9]|1[0-9]):?[0-5][0-9])"
_FIELDS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}


def period_index(column: Expression, *, calendar: Calendar, time_format: str | None) -> Expression:
    """The number of the period a time falls in; null where the time is missing or cannot be read.

    Numbers below 0 or beyond the last period are times outside the calendar.
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
        return _hours(column, calendar, time_format) - (first * 24 + calendar.first.hour)
    day = _days(column, calendar, time_format)
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


def _days(column: Expression, calendar: Calendar, time_format: str | None) -> Expression:
    """The day on the wall clock, counted from 1970."""
    import ibis

    kind = column.type()
    if kind.is_date():
        return column.epoch_days()
    if kind.is_timestamp():
        return column.date().epoch_days() if kind.timezone is None else _hours(column, calendar, None) // 24
    if time_format is not None:
        pattern, places = _compiled(time_format)
        return converted(column, pattern, lambda text: _written_day(text, places))
    plain = converted(column, f"{_DATE}({_CLOCK})?", _day)
    if calendar.timezone is None:
        return plain
    return ibis.coalesce(plain, _zoned_hours(column, calendar) // 24)


def _hours(column: Expression, calendar: Calendar, time_format: str | None) -> Expression:
    """The hour on the wall clock, counted from 1970."""
    import ibis

    kind = column.type()
    if kind.is_date():
        return column.epoch_days() * 24
    if kind.is_timestamp():
        if kind.timezone is None:
            return column.date().epoch_days() * 24 + column.hour()
        return _local_hours(column.epoch_seconds(), calendar)
    if time_format is not None:
        pattern, places = _compiled(time_format)

        def hours(text: Expression) -> Expression:
            hour = _digits(text, places["%H"]) if "%H" in places else 0
            return _written_day(text, places) * 24 + hour

        return converted(column, pattern, hours)
    bare = converted(column, _DATE, lambda text: _day(text) * 24)
    timed = converted(column, _DATE + _CLOCK, lambda text: _day(text) * 24 + _digits(text, 11))
    plain = ibis.coalesce(timed, bare)
    if calendar.timezone is None:
        return plain
    return ibis.coalesce(plain, _zoned_hours(column, calendar))


def _local_hours(seconds: Expression, calendar: Calendar) -> Expression:
    """Hours on the calendar's wall clock, from seconds since 1970 (the division cuts fractions)."""
    return (seconds + _choice(seconds, *calendar.offsets())) // 3600


def _digits(text: Expression, start: int) -> Expression:
    return text.substr(start, 2).cast("int64")


def _day(text: Expression) -> Expression:
    return text.substr(0, 10).cast("date").epoch_days()


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


def _written_day(text: Expression, places: dict[str, int]) -> Expression:
    year, month, day = (text.substr(places[part], _FIELDS[part]) for part in ("%Y", "%m", "%d"))
    return converted(year.concat("-", month, "-", day), _DATE, _day)


def _compiled(time_format: str) -> tuple[str, dict[str, int]]:
    """The pattern of a fixed-width format, and where each field begins in the texts that match."""
    pattern, places, position = "", dict[str, int](), 0
    for part in re.findall(r"%.?|[^%]+", time_format.strip()):
        if part.startswith("%") and (part not in _FIELDS or part in places):
            raise refuse("time_format", time_format, "made of %Y %m %d %H %M %S, each once, and separators")
        width = _FIELDS.get(part, len(part))
        pattern += f"[0-9]{{{width}}}" if part in _FIELDS else re.escape(part)
        places[part] = position
        position += width
    if not {"%Y", "%m", "%d"} <= places.keys():
        raise refuse("time_format", time_format, "made of at least %Y, %m and %d")
    return pattern, places
