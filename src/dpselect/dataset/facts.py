"""Where the rows of a data set are, and what is public about them: columns, cap, population. Nothing is read here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.files import from_url
from dpselect.report.rounding import at_most
from dpselect.report.words import shown

if TYPE_CHECKING:
    from dpselect.report.guarantee import Neighbours
    from dpselect.report.record import Entry
    from dpselect.tables import BoundedQuery, Calendar, Candidates, Cycle, Question
    from dpselect.tables.candidates import Every

_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
#: What decides how rows are read and whom the promise is about, beside where they are; unit and engine do not.
_READING = (
    *("user", "time", "hour", "value", "category", "wide", "time_format", "timezone", "duplicates", "measure"),
    *("per_user", "population", "adjacency", "grid", "monotone", "table", "delimiter", "decimal"),
)
_AMOUNTS = ("cap", "maximum", "sensitivity")
_GATHERED = {"sum": "sum", "mean": "mean", "max": "largest"}
_LENGTHS = ("hour", "day", "week", "month")


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
        if self._is_database:
            engine = None if self.backend == "duckdb" else self.backend
            refuse_given("a database URL, which names its engine", backend=engine, delimiter=self.delimiter)
        for name in _AMOUNTS:
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
        from dpselect.tables import Calendar, Categories, Cycle
        from dpselect.tables.candidates import CycleName

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

    def times_cap(self, candidates: Candidates) -> int:
        """How many times the cap (or the maximum) one person can count for in a candidate; public.

        The engine cuts what one person counts for to so many caps, whatever the rows hold: Δ follows from the cut, and
        a number that is too large or too small costs accuracy, never privacy. Of a series the curator vouches for one
        period, and as many together can move by as many times that.
        """
        from dpselect.tables import Categories, Cycle
        from dpselect.tables.candidates import length_of, most_held

        if isinstance(candidates, Categories):
            return 1
        held = most_held(candidates.every, self.cap_length)
        if self.is_series:
            shorter = length_of(candidates.every)
            if most_held(self.cap_length, shorter) > 1:
                # What a person gives to one hour and takes from another does not show in the day.
                raise InvalidParameter(
                    f"what one person can change was stated for a {self.cap_length} and says nothing about one "
                    f"{shorter}: give ‹maximum› (and ‹sensitivity› or ‹population›) for it, with ‹cap_every› {shorter}",
                    parameter="every",
                )
            self._refuse_cut_weeks(candidates)
            return held  # a cycle's value is the mean over its occurrences
        if self._per_user(candidates) != "sum":
            return 1  # the mean or the largest of some readings is no larger than one of them
        return held * max(candidates.occurrences) if isinstance(candidates, Cycle) else held

    def _refuse_cut_weeks(self, candidates: Calendar | Cycle) -> None:
        """What a person gives to one part of a week and takes from another does not show in the week."""
        from dpselect.tables.candidates import length_of

        if self.cap_length != "week":
            return
        if length_of(candidates.every) == "month":
            raise InvalidParameter(
                "what one person can change was stated for a week, and a month cuts weeks: state ‹maximum› (and "
                "‹sensitivity› or ‹population›) for a day or a month, with ‹cap_every›",
                parameter="every",
            )
        if self.start is not None and not whole_weeks_apart(self.start, candidates.start):
            raise InvalidParameter(
                f"what one person can change was stated for weeks counted from {self.start}: ‹start› must be a whole "
                "number of weeks from it",
                parameter="start",
            )

    def needs_hours(self, candidates: Candidates) -> bool:
        """Whether hours are told apart, by the time alone."""
        from dpselect.tables import Categories
        from dpselect.tables.candidates import length_of

        return self.hour is None and not isinstance(candidates, Categories) and length_of(candidates.every) == "hour"

    def cautions(self, candidates: Candidates) -> tuple[str, ...]:
        """What to keep in mind of every answer about these candidates, whatever the rows hold."""
        return ("Times without an hour count as 00:00.",) if self.needs_hours(candidates) else ()

    def cap_in_words(self, candidates: Candidates) -> str:
        """The cap (or the maximum) of one candidate, and how it comes about."""
        from dpselect.tables import Categories
        from dpselect.tables.candidates import length_of, most_held

        times, stated = self.times_cap(candidates), _exact(self.maximum if self.is_series else self.cap)
        whole = self.with_unit(shown(times * stated))
        if times > 1:
            return f"{whole}: {times:,} times {self.with_unit(shown(stated))}, that of a {self.cap_length}"
        if isinstance(candidates, Categories) or most_held(self.cap_length, length_of(candidates.every)) == 1:
            return whole
        return f"{whole}, that of a whole {self.cap_length}"

    def parts_of_cap(self, candidates: Candidates) -> int:
        """How many candidates the period of the cap holds: 24 hours where it was stated for a day; 1 if no longer."""
        from dpselect.tables import Categories
        from dpselect.tables.candidates import length_of, most_held

        if self.cap is None or isinstance(candidates, Categories):
            return 1
        return most_held(self.cap_length, length_of(candidates.every))

    def long_cap(self, candidates: Candidates) -> str | None:
        """What to say of a cap stated for a longer period, which one candidate takes whole: a safe bound, and dear."""
        from dpselect.tables import Categories
        from dpselect.tables.candidates import length_of

        parts = self.parts_of_cap(candidates)
        if parts == 1 or isinstance(candidates, Categories):
            return None
        short, stated = length_of(candidates.every), _exact(self.cap)
        # One may well hold a few times an equal part.
        such = f"{float(stated) * 2.4 / parts:.2g}"
        return (
            f"the cap of {self.with_unit(shown(stated))} is for a {self.cap_length}, and one {short} takes it whole, "
            f"with up to {parts} times the noise needed; for one {short} give such as ‹cap› {such} ‹cap_every› {short}"
        )

    @property
    def cap_length(self) -> str:
        """The period the cap (or the maximum) is meant for."""
        from dpselect.tables.candidates import length_of

        return self.cap_every or length_of(self.every)

    def _per_user(self, candidates: Candidates) -> Literal["sum", "mean", "max"]:
        from dpselect.tables import Cycle

        return self.per_user or ("mean" if isinstance(candidates, Cycle) else "sum")

    def question(self, candidates: Candidates) -> Question:
        """The question to rows of persons."""
        from dpselect.tables import Question

        optional: dict[str, Any] = {} if self.grid is None else {"grid": self.grid}
        return Question(
            user=self.user or "",
            population=self.population or 0,
            time=self.time,
            category=self.category,
            value=self.value,
            measure=self.measure,
            per_user=self._per_user(candidates),
            cap=None if self.cap is None else self.times_cap(candidates) * _exact(self.cap),
            adjacency=self.adjacency,
            shape="wide" if self.wide else "long",
            time_format=self.whole_format,
            duplicates=self.duplicates,
            decimal=self.decimal,
            **optional,
        )

    @property
    def whole_format(self) -> str | None:
        """How times are written once date and hour stand together."""
        if self.hour is None or self.time_format is None:
            return self.time_format
        from dpselect.tables.rows import HOUR_FORMAT

        return self.time_format + HOUR_FORMAT

    def public_side(self, candidates: Candidates) -> BoundedQuery:
        """The answer's labels, family and unit, from an empty table: no data is opened."""
        from dpselect.tables import BoundedQuery

        if self.is_series:
            import pyarrow

            nothing = pyarrow.array([], type=pyarrow.string())
            return self.series(pyarrow.table({self.place: nothing, self.value: nothing}), candidates)
        question = self.question(candidates)
        return BoundedQuery(
            labels=candidates.labels,
            family=question.family,
            totals=(0,) * len(candidates),
            step=question.step,
            natural_unit=question.natural_unit,
        )

    def series(self, source: Any, candidates: Candidates) -> BoundedQuery:
        """The queries of a series already added up."""
        from dpselect.tables import series_query

        times = self.times_cap(candidates)
        return series_query(
            source,
            time=self.place,
            value=self.value or "",
            candidates=candidates,
            maximum=times * _exact(self.maximum),
            population=self.population,
            sensitivity=None if self.sensitivity is None else times * _exact(self.sensitivity),
            monotone=self.monotone,
            time_format=self.whole_format,
            decimal=self.decimal,
        )

    @property
    def _places(self) -> tuple[str, ...]:
        """Where the rows are, as far as that is said by name."""
        several = self.source if isinstance(self.source, list | tuple) else [self.source]
        return tuple(str(place) for place in several if isinstance(place, str | Path))

    @property
    def _is_database(self) -> bool:
        # Files far away (s3://, https://) are files: an engine reads them.
        place = self.source
        return isinstance(place, str) and "://" in place and not place.lower().endswith(_FILE_ENDINGS)

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

    def named(self, candidates: Candidates | None) -> dict[str, str]:
        """What is compared and how it is read, for the question as a ledger keeps it."""
        return {"measured": self.measured(candidates), "reading": self.reading(candidates)}

    def asked_about(self, candidates: Candidates) -> dict[str, Any]:
        """Which rows and which candidates a question is about, as plain values for a record."""
        from dpselect.tables import Categories

        if isinstance(candidates, Categories):
            return {"data": self.name, "category": self.category, "unit": self.unit}
        first, last = (str(moment) for moment in (candidates.start, candidates.end))
        return {"data": self.name, "from": first, "to": last, "every": candidates.every, "unit": self.unit}

    def measured(self, candidates: Candidates | None) -> str:
        """What is compared, in words."""
        if self.is_series:
            return str(self.value)
        if self.measure == "count":
            return "the number of persons with a reading"
        times = 1 if candidates is None else self.times_cap(candidates)
        cap = "" if self.cap is None else self.with_unit(shown(times * _exact(self.cap)))
        reading = self.value or "the reading"
        return f"the {self.measure} of {reading} over the population (each person counted up to {cap})"

    def with_unit(self, number: str) -> str:
        """A number with the readings' unit behind it, where that is known."""
        return number if self.unit is None else f"{number} {self.unit}"

    def reading(self, candidates: Candidates | None) -> str:
        """A digest of every public fact that decides what the rows mean and whom the promise is about.

        A question to the same file under other facts is another question; what is typed as it is supposed anyway makes
        no other. A digest, since a fact may look like a place.
        """
        kept = {name: str(getattr(self, name)) for name in _READING}
        kept |= {name: shown(_exact(given)) for name in _AMOUNTS if (given := getattr(self, name)) is not None}
        if candidates is not None and not self.is_series:
            kept |= {"per_user": self._per_user(candidates), "grid": str(self.question(candidates).grid)}
        if self.delimiter in (None, "tab", "\\t"):
            kept["delimiter"] = "\t" if self.delimiter or self.name.endswith(".tsv") else ","
        return hashlib.sha256(json.dumps([self.name, kept], sort_keys=True).encode()).hexdigest()

    def parameters(self, candidates: Candidates) -> tuple[Entry, ...]:
        """The public parameters, for a report."""
        entries = [("Data", self.name), ("Candidates", f"{len(candidates):,}, {self._in_words(candidates)}")]
        if self.population is not None:
            entries.append(("Population", f"at most {self.population:,} persons (public)"))
        if self.cap is not None:
            entries.append(("Cap per person", self.cap_in_words(candidates)))
        if self.maximum is not None:
            entries.append(("Maximum", f"{self.cap_in_words(candidates)} (public)"))
        public = self.public_side(candidates)
        moved = self.with_unit(at_most(public.family.sensitivity * float(public.natural_unit)))
        way = ", all of them up or all of them down" if public.family.monotone else ""
        return (*entries, ("One person", f"changes each value by at most {moved}{way}"))

    def _in_words(self, candidates: Candidates) -> str:
        """The candidates in a few words."""
        from dpselect.tables import Calendar, Categories

        if isinstance(candidates, Categories):
            return "a public list of categories"
        if isinstance(candidates, Calendar):
            return f"each {candidates.every} from {candidates.labels[0]} to {candidates.labels[-1]}"
        days = candidates.calendar.labels
        over = f"each {period_word(candidates)} over {days[0]} to {days[-1]}"
        if self.is_series:
            return f"{over}, by the mean of all its values (a missing one counts as 0)"
        return f"{over}, by each person's {_GATHERED[self._per_user(candidates)]} of the readings there are"


def period_word(candidates: Candidates) -> str:
    """What one candidate is called."""
    from dpselect.tables import Calendar, Cycle

    return candidates.every.replace("-", " ") if isinstance(candidates, Calendar | Cycle) else "category"


def whole_weeks_apart(one: str | date, other: str | date) -> bool:
    """Whether weeks counted from two dates are the same weeks.

    >>> whole_weeks_apart("2013-01-01", "2013-01-15"), whole_weeks_apart("2013-01-01", "2013-01-04")
    (True, False)
    """
    from dpselect.tables import Calendar

    first, second = (Calendar(day, day).first for day in (one, other))
    return (second - first).days % 7 == 0


def _exact(value: Any) -> Fraction:
    from dpselect.tables.question import exact_number

    return exact_number("number", value)
