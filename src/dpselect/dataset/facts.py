"""Where the rows of a data set are, and what is public about them: columns, cap, population. Nothing is read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.files import from_url
from dpselect.report.guarantee import Neighbours
from dpselect.tables import Calendar, Candidates, Categories, Cycle
from dpselect.tables.candidates import CycleName, Every, length_of
from dpselect.tables.rows import HOUR_FORMAT

_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
#: What decides how rows are read and whom the promise is about, beside where they are; unit and engine do not.
READING = (
    *("user", "time", "hour", "value", "category", "wide", "time_format", "timezone", "duplicates", "measure"),
    *("per_user", "population", "adjacency", "grid", "monotone", "table", "delimiter", "decimal"),
)
AMOUNTS = ("cap", "maximum", "sensitivity")
_LENGTHS = ("hour", "day", "week", "month")


class FactChanges(TypedDict, total=False):
    """Facts to take instead of those of a data set or its file: the parameters of :class:`Facts`."""

    source: Any
    user: str | None
    time: str | None
    value: str | None
    category: str | None
    wide: bool
    time_format: str | None
    timezone: str | None
    duplicates: Literal["keep", "largest"]
    measure: Literal["mean", "sum", "count"]
    per_user: Literal["sum", "mean", "max"] | None
    cap: Fraction | float | None
    cap_every: Literal["hour", "day", "week", "month"] | None
    population: int | None
    adjacency: Literal["add-remove", "replace"]
    grid: int | None
    maximum: Fraction | float | None
    sensitivity: Fraction | float | None
    monotone: bool
    table: str | None
    backend: str
    delimiter: str | None
    decimal: Literal[".", ","]
    hour: str | None
    unit: str | None
    start: str | None
    end: str | None
    every: Every
    categories: Sequence[str] | None


@dataclass(frozen=True, repr=False)
class Facts:
    """Where the rows are and what is public about them.

    Parameters
    ----------
    source : path, URL, data frame, Arrow or Ibis table
        A CSV or Parquet file or a pattern of them; a database URL with ``table``; or an object in memory.
    user, time, value, category : str, optional
        Columns: whose row it is, when, the reading; ``category`` instead of ``time`` to compare categories.
    wide : bool
        One row per person and one column per period or category, instead of one row per reading.
    time_format, timezone : str, optional
        How times are written (``"%d/%m/%Y %H:%M"``; ISO 8601 if left out) and the zone of the periods.
    duplicates : {"keep", "largest"}
        Rows of one person at one time: all count, or the largest.
    measure, per_user : str
        What is compared over all persons (``"mean"``, ``"sum"``, ``"count"``), and how one person's readings in a
        period become one number (``"sum"``, ``"mean"``, ``"max"``; if left out their sum, and over the days of a week,
        the hours of a day or the months of a year their mean).
    cap : number, optional
        The most one person counts for in a period. Needed unless persons are counted.
    cap_every : {"hour", "day", "week", "month"}, optional
        The period ``cap`` (or ``maximum``) is meant for; ``every`` if left out. Asked about longer periods, a person
        counts for as many times the cap as one of them can hold: a daily cap 31 times in a month.
    population : int, optional
        A public upper bound on the number of persons.
    adjacency : {"add-remove", "replace"}
        What a neighbouring data set is.
    grid : int, optional
        Steps in the cap.
    maximum, sensitivity, monotone
        For a series already added up over persons, for which the curator vouches: its public maximum instead of
        ``user`` and ``cap``; the most one person moves a value (or ``population``); whether adding a person never
        lowers one.
    table, backend, delimiter : str, optional
        The table of a database, the engine for files, what stands between the fields of a CSV file.
    decimal : {".", ","}
        What stands before the decimals of readings that are text.
    hour : str, optional
        The column with the hour, where ``time`` holds only the date.
    unit : str, optional
        What the readings are measured in, for people: ``"kWh"``.
    start, end, every, categories : optional
        The public candidates of questions that do not name their own.
    """

    source: Any
    _: KW_ONLY
    user: str | None = None
    time: str | None = None
    value: str | None = None
    category: str | None = None
    wide: bool = False
    time_format: str | None = None
    timezone: str | None = None
    duplicates: Literal["keep", "largest"] = "keep"
    measure: Literal["mean", "sum", "count"] = "mean"
    per_user: Literal["sum", "mean", "max"] | None = None
    cap: Fraction | float | None = None
    cap_every: Literal["hour", "day", "week", "month"] | None = None
    population: int | None = None
    adjacency: Literal["add-remove", "replace"] = "add-remove"
    grid: int | None = None
    maximum: Fraction | float | None = None
    sensitivity: Fraction | float | None = None
    monotone: bool = False
    table: str | None = None
    backend: str = "duckdb"
    delimiter: str | None = None
    decimal: Literal[".", ","] = "."
    hour: str | None = None
    unit: str | None = None
    start: str | None = None
    end: str | None = None
    every: Every = "day"
    categories: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", from_url(self.source))
        place = self.source
        # Files far away (s3://, https://) are files: an engine reads them.
        if isinstance(place, str) and "://" in place and not place.lower().endswith(_FILE_ENDINGS):
            engine = None if self.backend == "duckdb" else self.backend
            refuse_given("a database URL, which names its engine", backend=engine, delimiter=self.delimiter)
        for name in AMOUNTS:
            if isinstance(getattr(self, name), str):
                raise refuse(name, getattr(self, name), "a number such as 50 or Fraction(25, 2), not a text")
        known = isinstance(self.cap_every, str) and self.cap_every in _LENGTHS
        if self.cap_every is not None and not known:
            raise refuse("cap_every", self.cap_every, "one of " + ", ".join(_LENGTHS))
        if self.hour is not None and self.time is None:
            raise InvalidParameter("‹hour› needs ‹time›, the column with the date", parameter="hour")
        if self.is_series:
            named = {name: getattr(self, name) for name in ("user", "cap", "grid")}
            refuse_given("‹maximum› (a series already added up over persons)", **named, wide=self.wide or None)
            if (self.time is None) == (self.category is None):
                raise InvalidParameter("‹time› must name a column of the series, or ‹category›", parameter="time")
            if self.value is None:
                raise InvalidParameter("‹value› must name a column of the series", parameter="value")
            return
        refuse_given("rows of persons", sensitivity=self.sensitivity, monotone=self.monotone or None)
        if self.user is None:
            raise InvalidParameter(
                "‹user› must name the column that says whose row it is (for a series nobody is named in: ‹maximum›)",
                parameter="user",
            )
        if self.population is None:
            raise refuse("population", None, "given: a public upper bound on the number of persons")

    @property
    def is_series(self) -> bool:
        """Whether the rows were already added up over persons."""
        return self.maximum is not None

    @property
    def place(self) -> str:
        """The column that says which candidate a row belongs to."""
        return self.time or self.category or ""

    @property
    def neighbours(self) -> Neighbours:
        """What the guarantee is about."""
        return "declared" if self.is_series else self.adjacency

    def candidates(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        every: Every | None = None,
        categories: Sequence[str] | None = None,
    ) -> Candidates:
        """The public candidates: periods from ``start`` to ``end``, or a list of categories; the data set's own if
        left out."""
        if categories is None and (start is None or end is None):
            start, end = start or self.start, end or self.end
            categories = self.categories if start is None and end is None else None
        calendar = start is not None or end is not None
        if calendar and categories is not None:
            raise InvalidParameter("‹categories› does not go with ‹start› and ‹end›; leave one of them out")
        if categories is not None:
            if self.time is not None:
                raise InvalidParameter("‹time› needs ‹start› and ‹end›; name a ‹category› column for ‹categories›")
            return Categories(list(categories))
        if start is None or end is None:
            missing = "‹categories›" if self.category else "‹start› and ‹end›"
            raise InvalidParameter(f"{missing} must be given: the candidates are public, never read off the data")
        if self.category is not None:
            raise InvalidParameter("‹category› needs ‹categories›, and takes no ‹start› and ‹end›")
        wanted = every or self.every
        if wanted in get_args(CycleName):
            return Cycle(start, end, every=wanted, timezone=self.timezone)  # type: ignore[arg-type]
        return Calendar(start, end, every=wanted, timezone=self.timezone)  # type: ignore[arg-type]

    @property
    def cap_length(self) -> str:
        """The period the cap (or the maximum) is meant for."""
        return self.cap_every or length_of(self.every)

    @property
    def whole_format(self) -> str | None:
        """How times are written once date and hour stand together."""
        if self.hour is None or self.time_format is None:
            return self.time_format
        return self.time_format + HOUR_FORMAT

    @property
    def _places(self) -> tuple[str, ...]:
        """Where the rows are, as far as that is said by name."""
        several = self.source if isinstance(self.source, list | tuple) else [self.source]
        return tuple(str(place) for place in several if isinstance(place, str | Path))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read, as far as they are named: no output may take their place."""
        return tuple(place.partition("://")[2].partition("?")[0] if "://" in place else place for place in self._places)

    @property
    def name(self) -> str:
        """The data's name for a report: no folders, and never a URL, which may hold a password."""
        if not self._places:
            return "a table in memory"
        first, *others = self._places
        if "://" in first:
            return f"{first.partition('://')[0]} table {self.table}" if self.table else "a remote file"
        return Path(first).name + (f" and {len(others):,} more" if others else "")

    def with_unit(self, number: str) -> str:
        """A number with the readings' unit behind it, where that is known."""
        return number if self.unit is None else f"{number} {self.unit}"


def whole_weeks_apart(one: str | date, other: str | date) -> bool:
    """Whether weeks counted from two dates are the same weeks.

    >>> whole_weeks_apart("2013-01-01", "2013-01-15"), whole_weeks_apart("2013-01-01", "2013-01-04")
    (True, False)
    """
    first, second = (Calendar(day, day).first for day in (one, other))
    return (second - first).days % 7 == 0
