"""The public candidates: a calendar of periods, or a list of categories.

The curator gives them; they are never read off the data (THEORY §8). A candidate without rows has value 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter

Every: TypeAlias = Literal["hour", "day", "week", "month"]

#: More candidates than this in one calendar is taken for a slip of the keyboard.
MOST_CANDIDATES = 10_000_000
_EPOCH = date(1970, 1, 1)


def _moment(name: str, value: object) -> tuple[datetime, Literal["month", "day", "hour"]]:
    """A wall-clock moment and how finely it was written."""
    moment, written = _read_moment(name, value)
    if not 1000 <= moment.year <= 9000:
        raise refuse(name, value, "in the years 1000 to 9000")
    return moment, written


def _read_moment(name: str, value: object) -> tuple[datetime, Literal["month", "day", "hour"]]:
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise refuse(name, value, "a wall-clock time without zone; name the zone in timezone")
        return value, "hour"
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day), "day"
    if isinstance(value, str):
        text = value.strip()
        try:
            if len(text) == 7:
                return datetime.strptime(text, "%Y-%m"), "month"
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                return moment, "day" if len(text) <= 10 else "hour"
        except ValueError:
            pass
    raise refuse(name, value, "a date such as 2013-01-31, or a wall-clock time such as 2013-01-31T14:00")


def day_number(day: date) -> int:
    """Days since 1 January 1970.

    >>> day_number(date(1970, 1, 31))
    30
    """
    return (date(day.year, day.month, day.day) - _EPOCH).days


def _months(moment: datetime) -> int:
    return moment.year * 12 + moment.month - 1


@dataclass(frozen=True)
class Calendar:
    """Every hour, day, week or month from ``start`` to ``end``, both included.

    Parameters
    ----------
    start, end : str or date or datetime
        The first and the last period, named by any moment in them. A date given for an hourly ``end`` means
        that day's last hour. Weeks are blocks of seven days counted from ``start``; months are whole months.
    every : {"day", "hour", "week", "month"}
        The length of a period.
    timezone : str, optional
        The zone whose wall clock the periods follow, e.g. ``"Europe/London"``. Needed when the table's times
        carry a zone; times without one are taken as this wall clock. An hour repeated in autumn is one
        period, an hour skipped in spring a period with value 0.

    Examples
    --------
    >>> Calendar("2013-01-30", "2013-02-01").labels
    ('2013-01-30', '2013-01-31', '2013-02-01')
    >>> Calendar("2012-11", "2013-02", every="month").labels
    ('2012-11', '2012-12', '2013-01', '2013-02')
    >>> len(Calendar("2013-01-01", "2013-01-02", every="hour"))
    48
    """

    start: str | date | datetime
    end: str | date | datetime
    every: Every = field(default="day", kw_only=True)
    timezone: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.every not in get_args(Every):
            raise refuse("every", self.every, "one of hour, day, week, month")
        first, _ = _moment("start", self.start)
        last, written = _moment("end", self.end)
        if written == "month":
            last = (last.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(hours=1)
        elif written == "day":
            last = last.replace(hour=23)
        if last < first:
            raise InvalidParameter(
                f"the calendar is empty: ‹end› must not come before ‹start›; got {self.start} to {self.end}"
            )
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, OSError, TypeError):
                raise refuse("timezone", self.timezone, "a known zone such as Europe/London") from None
        size = self._position(last) - self._position(first) + 1
        if size > MOST_CANDIDATES:
            raise InvalidParameter(
                f"the calendar must have at most {MOST_CANDIDATES:,} periods; got {size:,}: use longer ones"
            )
        object.__setattr__(self, "_size", size)

    def __len__(self) -> int:
        return int(getattr(self, "_size"))  # noqa: B009

    @cached_property
    def first(self) -> datetime:
        """Where the first period begins, on the wall clock."""
        moment, _ = _moment("start", self.start)
        if self.every == "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight.replace(day=1) if self.every == "month" else midnight

    @cached_property
    def past(self) -> datetime:
        """Where the first period after the last one would begin."""
        return self.begins(len(self))

    def begins(self, index: int) -> datetime:
        """Where period ``index`` begins, on the wall clock; ``len(calendar)`` is the one after the last."""
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index <= len(self):
            raise refuse("index", index, f"a whole number from 0 to {len(self)}")
        if self.every == "month":
            years, month = divmod(_months(self.first) + index, 12)
            return datetime(years, month + 1, 1)
        hours = {"hour": 1, "day": 24, "week": 168}[self.every]
        return self.first + timedelta(hours=hours * index)

    def _position(self, moment: datetime) -> int:
        if self.every == "month":
            return _months(moment) - _months(self.first)
        hours = (moment - self.first) // timedelta(hours=1)
        return hours // {"hour": 1, "day": 24, "week": 168}[self.every]

    def index(self, moment: date | datetime) -> int | None:
        """The period that holds a moment, or ``None`` outside the calendar.

        >>> Calendar("2013-01-01", "2013-12-31", every="month").index(date(2013, 3, 9))
        2
        """
        if not isinstance(moment, date):  # a datetime is a date, too
            raise refuse("moment", moment, "a date or a datetime")
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        if moment.tzinfo is not None:
            if self.timezone is None:
                return None
            moment = moment.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)
        position = self._position(moment)
        return position if 0 <= position < len(self) else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each period is called: its day, its first day (weeks), its month, or its hour."""
        pattern = {"hour": "%Y-%m-%d %H:%M", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m"}[self.every]
        return tuple(self.begins(index).strftime(pattern) for index in range(len(self)))

    def offsets(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The zone as plain numbers: where its offset changes (seconds since 1970) and the offsets between.

        With them any engine turns an instant into wall-clock time by comparisons and one addition, whatever
        zone tables the engine itself carries.

        >>> Calendar("2013-01-01", "2013-12-31", timezone="Europe/London").offsets()
        ((1364691600, 1382835600), (0, 3600, 0))
        """
        zone = ZoneInfo(self.timezone or "UTC")

        def offset(instant: datetime) -> int:
            shift = instant.astimezone(zone).utcoffset()
            return int(shift.total_seconds()) if shift else 0

        day = timedelta(days=1)
        here = self.first.replace(tzinfo=UTC) - 2 * day
        last = self.past.replace(tzinfo=UTC) + 2 * day
        changes: list[int] = []
        offsets = [offset(here)]
        while here < last:
            if offset(here + day) != offset(here):
                low, high = here, here + day  # the change lies in (low, high]; zones change on whole seconds
                while high - low > timedelta(seconds=1):
                    middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
                    low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
                changes.append(int(high.timestamp()))
                offsets.append(offset(high))
            here += day
        return tuple(changes), tuple(offsets)


@dataclass(frozen=True)
class Categories:
    """A public list of categories: products, regions, models. Rows in any other category are left out.

    Examples
    --------
    >>> Categories(["north", "south"]).labels
    ('north', 'south')
    """

    names: Iterable[str | int]

    def __post_init__(self) -> None:
        if isinstance(self.names, str):
            raise refuse("names", self.names, "a list of categories, not one text")
        try:
            names = tuple(self.names)
        except TypeError:
            raise refuse("names", self.names, "a list of categories") from None
        if not names:
            raise refuse("names", list(names), "a list with at least one category")
        if any(isinstance(name, bool) or not isinstance(name, str | int) or name == "" for name in names):
            raise refuse("names", list(names), "texts or whole numbers, none of them empty")
        if len({str(name) for name in names}) != len(names):
            raise refuse("names", list(names), "a list without repeats")
        object.__setattr__(self, "names", names)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, in the order given."""
        return tuple(str(name) for name in self.names)
