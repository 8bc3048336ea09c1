"""All kinds of public candidates: periods, those that come back (weekdays, hours of the day, months), categories."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Literal, TypeAlias, cast, get_args

from dpselect.checks import refuse
from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.calendar import Every as Length
from dpselect.tables.parts import Expression

CycleName: TypeAlias = Literal["weekday", "hour-of-day", "month-of-year"]

_LABELS = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "hour-of-day": tuple(f"{hour:02d}:00" for hour in range(24)),
    "month-of-year": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}
#: What each of them is made of.
PERIOD: dict[str, Literal["day", "hour", "month"]] = {
    "weekday": "day",
    "hour-of-day": "hour",
    "month-of-year": "month",
}


@dataclass(frozen=True)
class Cycle:
    """Every weekday, hour of the day or month of the year, over the days from ``start`` to ``end``, both included.

    Examples
    --------
    >>> week = Cycle("2013-01-01", "2013-12-31", every="weekday")
    >>> week.labels[:2], week.index(date(2013, 1, 1)), week.index(date(2014, 1, 1))
    (('Monday', 'Tuesday'), 1, None)
    """

    start: str | date | datetime
    end: str | date | datetime
    every: CycleName = field(kw_only=True)
    timezone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.every not in get_args(CycleName):
            raise refuse("every", self.every, "one of " + ", ".join(get_args(CycleName)))
        len(self.calendar)

    @cached_property
    def calendar(self) -> Calendar:
        """The periods that are gathered."""
        return Calendar(self.start, self.end, every=PERIOD[self.every], timezone=self.timezone)

    @cached_property
    def _first(self) -> int:
        """Where in the cycle the first period lies."""
        moment = self.calendar.first
        return {"weekday": moment.weekday(), "hour-of-day": moment.hour, "month-of-year": moment.month - 1}[self.every]

    @property
    def labels(self) -> tuple[str, ...]:
        """What each part of the cycle is called."""
        return _LABELS[self.every]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def occurrences(self) -> tuple[int, ...]:
        """How often each part of the cycle comes within the days; public.

        >>> Cycle("2013-01-01", "2013-01-08", every="weekday").occurrences
        (1, 2, 1, 1, 1, 1, 1)
        """
        whole, rest = divmod(len(self.calendar), len(self))
        return tuple(whole + ((part - self._first) % len(self) < rest) for part in range(len(self)))

    def index(self, moment: date | datetime) -> int | None:
        """The part of the cycle that holds a moment, or ``None`` outside the days."""
        place = self.calendar.index(moment)
        return None if place is None else (place + self._first) % len(self)

    def of_period(self, period: Expression) -> Expression:
        """The part of the cycle for a period's number; -1 outside the days, null stays null."""
        import ibis

        inside = period.between(0, len(self.calendar) - 1)
        # Adding a whole cycle keeps the remainder positive on every engine.
        part = (period + self._first + len(self)) % len(self)
        return ibis.cases((inside, part), (period.notnull(), -1))


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
