"""Where the rows are, what is public about them and which candidates are compared, as options."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Group, Parameter

from dpselect.cli.numbers import Count, Number
from dpselect.errors import InvalidParameter, SourceError
from dpselect.files import is_there, plain_file

if TYPE_CHECKING:
    from dpselect.dataset import Dataset
    from dpselect.noise.entropy import Entropy
    from dpselect.tables import Candidates

Every: TypeAlias = Literal["hour", "day", "week", "month", "weekday", "hour-of-day", "month-of-year"]
_MOST_NAMES = 10_000_000

_COLUMNS = Group("What the columns mean", sort_key=2)
_PERIODS = Group("The public candidates", sort_key=3)
_PERSON = Group("What one person can change", sort_key=4)
_SERIES = Group("A series already added up over persons", sort_key=5)
LEDGER = Group("A budget kept in a ledger", sort_key=7)


def _data(_type: Any, tokens: Any) -> str | tuple[str, ...]:
    places = tuple(str(token.value) for token in tokens)
    for text in places:
        if text.startswith("-") and text != "-":
            raise ValueError(f"No such option: {text}")
    return places if len(places) > 1 else places[0]


#: One place, or several files that a shell made of a pattern.
Data: TypeAlias = Annotated[
    str | tuple[str, ...],
    Parameter(
        converter=_data,
        n_tokens=-1,
        allow_leading_hyphen=True,
        metavar="TABLE",
        help="A data-set file (homes.toml); or CSV, Excel, JSON lines or Parquet: a file, several, a folder or a "
        "pattern; a database URL (duckdb://, sqlite://, postgres://) with --table; - for a table on standard input.",
    ),
]


def places(data: str | tuple[str, ...]) -> tuple[str, ...]:
    """Each place that was named."""
    return (data,) if isinstance(data, str) else data


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Table:
    """Where the rows are and what is public about them.

    Parameters
    ----------
    table
        The table, for a database URL.
    backend
        The engine for files: duckdb, polars, spark, or another of Ibis.
    delimiter
        Between the fields of a CSV file: ';' or tab; a comma (.tsv: tab) if left out.
    decimal
        Before the decimals of readings that are text: ',' or '.', which is used if left out.
    unit
        What the readings are measured in, e.g. kWh.
    user
        Column that says whose row it is.
    time
        Column with the time.
    hour
        Column with the hour, where --time holds only the date.
    value
        Column with the reading.
    wide
        One row per person, one column per period or category.
    time_format
        Such as '%d/%m/%Y %H:%M' or '%-m/%-d/%Y %-I:%M %p'; ISO 8601 if left out.
    duplicates
        Rows of one person at one time: all count, or the largest.
    timezone
        Zone of the periods, e.g. Europe/London.
    measure
        What is compared, over all persons; the mean if left out.
    per_user
        One person's readings in a period become one number; their sum if left out.
    cap
        Most that one person counts for in a period.
    cap_every
        The period of --cap (or --maximum): as it was given with, if left out. A longer one takes several caps.
    population
        Public upper bound on the number of persons.
    adjacency
        What a neighbouring dataset is.
    grid
        Steps in the cap.
    maximum
        Public maximum of the series; instead of --user and --cap.
    sensitivity
        You vouch: no person moves a value by more than this (or give --population: maximum/N).
    monotone
        You vouch: adding a person never lowers a value.
    ledger
        The file, URL or $VARIABLE of the ledger that keeps the budget: charged before the table is read.
    total
        The most all answers may ever cost (ε): describe makes a ledger with it, others check it.
    anchor
        An entry that the ledger must have, as ledger verify prints it: an older copy is refused.
    """

    table: str | None = None
    backend: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    unit: str | None = None
    user: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    time: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    hour: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    value: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    wide: Annotated[bool, Parameter(group=_COLUMNS)] = False
    time_format: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    duplicates: Annotated[Literal["keep", "largest"] | None, Parameter(group=_COLUMNS)] = None
    timezone: Annotated[str | None, Parameter(group=_PERIODS)] = None
    measure: Annotated[Literal["mean", "sum", "count"] | None, Parameter(group=_PERSON)] = None
    per_user: Annotated[Literal["sum", "mean", "max"] | None, Parameter(group=_PERSON)] = None
    cap: Annotated[Number | None, Parameter(group=_PERSON)] = None
    cap_every: Annotated[Literal["hour", "day", "week", "month"] | None, Parameter(group=_PERSON)] = None
    population: Annotated[Count | None, Parameter(group=_PERSON)] = None
    adjacency: Annotated[Literal["add-remove", "replace"] | None, Parameter(group=_PERSON)] = None
    grid: Annotated[Count | None, Parameter(group=_PERSON)] = None
    maximum: Annotated[Number | None, Parameter(group=_SERIES)] = None
    sensitivity: Annotated[Number | None, Parameter(group=_SERIES)] = None
    monotone: Annotated[bool, Parameter(group=_SERIES)] = False
    ledger: Annotated[str | None, Parameter(group=LEDGER)] = None
    total: Annotated[Number | None, Parameter(group=LEDGER)] = None
    anchor: Annotated[str | None, Parameter(group=LEDGER)] = None

    def dataset(self, data: str | tuple[str, ...], entropy: Entropy | None, **more: Any) -> Dataset:
        """The data set these options describe, or a data-set file with these options laid over it."""
        from dpselect.dataset import Dataset
        from dpselect.dataset.file import is_file

        facts = self.given() | {name: value for name, value in more.items() if value is not None}
        if entropy is not None:
            facts["entropy"] = entropy
        if isinstance(data, tuple) and any(map(is_file, data)):
            raise InvalidParameter(
                "a data-set file is named alone, since it says where the rows are; leave the others out"
            )
        if is_file(data):
            return Dataset.open(data, **facts)  # type: ignore[arg-type]
        if data == "-":
            return Dataset(standard_input(self.delimiter), **facts)
        for place in places(data):
            # Before facts that may be wrong because the name is.
            if "://" not in place and not set(place) & set("*?[") and not is_there(place):
                raise SourceError(f"no file matches {place!r}; check the path")
        return Dataset(data, **facts)

    def given(self) -> dict[str, Any]:
        """What was typed."""
        return {name: value for name, value in asdict(self).items() if value is not None and value is not False}


def standard_input(delimiter: str | None) -> Any:
    """The table that comes through standard input, held in memory."""
    from dpselect.tables.whole_files import from_stream

    if sys.stdin.isatty():
        raise SourceError("no table comes through standard input; name a file, or send one: … | dpselect … -")
    return from_stream(sys.stdin.buffer, delimiter={"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter))


@Parameter(name="*", group=_PERIODS)
@dataclass(frozen=True, kw_only=True)
class Periods:
    """The public periods.

    Parameters
    ----------
    start
        First period, e.g. 2013-01-01.
    end
        Last period, included.
    every
        How long a period is, or what comes back: weekday, hour-of-day, month-of-year; a day if left out.
    """

    start: Annotated[str | None, Parameter(name="--from")] = None
    end: Annotated[str | None, Parameter(name="--to")] = None
    every: Every | None = None

    def of(self, dataset: Dataset) -> Candidates:
        """The periods as candidates."""
        return dataset.candidates(start=self.start, end=self.end, every=self.every)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CategoryOptions:
    """Categories to compare, instead of periods.

    Parameters
    ----------
    category
        Column with the category, instead of a time.
    categories
        The public list, A,B,…, or @FILE with one name per line.
    """

    category: Annotated[str | None, Parameter(group=_COLUMNS)] = None
    categories: Annotated[str | None, Parameter(group=_PERIODS, metavar="A,B,…")] = None

    def of(self, dataset: Dataset, periods: Periods) -> Candidates:
        """The categories as candidates, or the periods where none are named."""
        return dataset.candidates(start=periods.start, end=periods.end, every=periods.every, categories=self.listed())

    def listed(self) -> list[str] | None:
        """The public names."""
        if self.categories is None:
            return None
        if not self.categories.startswith("@"):
            return [name.strip() for name in self.categories.split(",")]
        try:
            lines = plain_file(self.categories[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise SourceError(f"cannot read the categories in {self.categories[1:]!r}; check the path") from None
        names = [line.strip() for line in lines if line.strip()]
        if len(names) > _MOST_NAMES:
            raise InvalidParameter(f"‹categories› must name at most {_MOST_NAMES:,}; got {len(names):,}")
        return names

    @property
    def inputs(self) -> tuple[str, ...]:
        """The file the names are read from."""
        return (self.categories[1:],) if self.categories and self.categories.startswith("@") else ()
