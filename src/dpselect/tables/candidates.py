"""All kinds of public candidates under one name, and how many shorter periods one of them holds."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.calendar import Every as Length
from dpselect.tables.cycles import PERIOD, Cycle

Candidates: TypeAlias = Calendar | Cycle | Categories
#: What a candidate may be, where it is told by time.
Every: TypeAlias = Literal["hour", "day", "week", "month", "weekday", "hour-of-day", "month-of-year"]

#: The most shorter periods that a longer one holds or touches: weeks are blocks of seven days from the first date, so
#: a month of 31 days touches up to six of them.
_HELD: dict[tuple[str, str], int] = {
    ("day", "hour"): 24,
    ("week", "hour"): 168,
    ("month", "hour"): 744,
    ("week", "day"): 7,
    ("month", "day"): 31,
    ("month", "week"): 6,
}


def length_of(every: str) -> Length:
    """How long one occurrence is: a weekday is a day.

    >>> length_of("weekday"), length_of("month")
    ('day', 'month')
    """
    return cast(Length, PERIOD.get(every, every))


def most_held(every: str, base: str) -> int:
    """The most periods of length ``base`` that one occurrence holds; 1 where it is no longer than one.

    >>> most_held("month", "day"), most_held("month-of-year", "day"), most_held("hour", "day")
    (31, 31, 1)
    """
    return _HELD.get((length_of(every), base), 1)
