"""Options that several commands share, as data classes: each field is the option of the same name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Group, Parameter

from dpselect.cli.numbers import read_count, read_counts, read_number, read_widths
from dpselect.errors import InvalidParameter, SourceError, refuse_given
from dpselect.mechanisms.catalogue import by_short_name

if TYPE_CHECKING:
    from dpselect.dataset import Answer, Dataset
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily
    from dpselect.tables import Candidates

Every: TypeAlias = Literal["hour", "day", "week", "month", "weekday", "hour-of-day", "month-of-year"]
_MOST_NAMES = 10_000_000
#: Mechanisms by the short names that the catalogue has for them; a type checker cannot read those.
if TYPE_CHECKING:
    AboveThreshold: TypeAlias = str
    Selection: TypeAlias = str
else:
    AboveThreshold = Literal[tuple(by_short_name("above-threshold", "set"))]
    Selection = Literal[tuple(by_short_name("selection"))]


def _read(reader: Callable[[str], Any], metavar: str) -> Parameter:
    def convert(_type: Any, tokens: Any) -> Any:
        return reader(tokens[0].value)

    return Parameter(converter=convert, n_tokens=1, allow_leading_hyphen=True, metavar=metavar, accepts_keys=False)


#: Numbers are kept exactly as they were typed.
Number: TypeAlias = Annotated[Fraction, _read(read_number, "NUMBER")]
Count: TypeAlias = Annotated[int, _read(read_count, "N")]
Counts: TypeAlias = Annotated[tuple[int, ...], _read(read_counts, "N[,N…]")]
Widths: TypeAlias = Annotated[tuple[Fraction, Fraction], _read(read_widths, "W or BELOW,ABOVE")]


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


_COLUMNS = Group("What the columns mean", sort_key=2)
_PERIODS = Group("The public candidates", sort_key=3)
_PERSON = Group("What one person can change", sort_key=4)
_SERIES = Group("A series already added up over persons", sort_key=5)
_LEDGER = Group("A budget that survives", sort_key=7)
_FAMILY = Group("The family of queries", sort_key=2)


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
        The file (or URL) that keeps the budget: charged before the table is read.
    total
        Make the ledger where there is none: the most all answers may ever cost (ε).
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
    ledger: Annotated[str | None, Parameter(group=_LEDGER)] = None
    total: Annotated[Number | None, Parameter(group=_LEDGER)] = None

    def dataset(self, data: str | tuple[str, ...], run: Run, **more: Any) -> Dataset:
        """The data set these options describe, or a data-set file with these options laid over it."""
        from dpselect.dataset import Dataset
        from dpselect.dataset.file import is_file

        facts = self.given() | {name: value for name, value in more.items() if value is not None}
        if run.entropy is not None:
            facts["entropy"] = run.entropy
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
            if "://" not in place and not set(place) & set("*?[") and not Path(place).exists():
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
class Categories:
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
            lines = Path(self.categories[1:]).read_text(encoding="utf-8").splitlines()
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


AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", help="One JSON object per line, for machines.")]
ReportFile: TypeAlias = Annotated[
    Path | None, Parameter(metavar="FILE.html", help="Also write a page to read offline.")
]
Seed: TypeAlias = Annotated[
    int | None, Parameter(help="Repeatable noise for tests: the answer is then not private.", allow_leading_hyphen=True)
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Run:
    """How a question is asked and where its answer goes.

    Parameters
    ----------
    dry_run
        Show cost, noise and expected accuracy; ask nothing, spend nothing.
    show_sensitive
        Exact counts of rows left out or cut, on stderr: for the curator only.
    """

    dry_run: bool = False
    seed: Seed = None
    report: ReportFile = None
    show_sensitive: bool = False
    as_json: AsJson = False

    @property
    def entropy(self) -> Entropy | None:
        """A seeded source of noise, where a seed was given."""
        from dpselect.noise.entropy import SeededEntropy

        return None if self.seed is None else SeededEntropy(self.seed)

    def check(self, *, inputs: Iterable[str | Path | None]) -> None:
        """Refuses what a dry run would ignore, and a page where none can be written, before anything is asked."""
        from dpselect import files

        if self.dry_run:
            refuse_given(
                "--dry-run, which gives no answer",
                report=self.report,
                show_sensitive=self.show_sensitive or None,
            )
        if self.report is not None:
            files.check(self.report, files.PAGE, inputs=[one for one in inputs if one is not None])
            if self.report.exists() and self.report.stat().st_size:
                raise files.refused_place("report", self.report, "it holds an answer that was paid for")

    def warn_of_a_seed(self) -> None:
        """Says on standard error that a seed was used, where one was."""
        from dpselect.cli import screen
        from dpselect.report.record import NOT_PRIVATE

        if self.seed is not None:
            screen.notice(NOT_PRIVATE, style="bold red")

    def keep(self, answer: Answer) -> None:
        """Writes the page of an answer that was drawn; a failure now is not one of the input."""
        from dpselect.cli import screen
        from dpselect.cli.output import SPENT, NotWritten

        if self.report is None:
            return
        try:
            place = answer.report(self.report)
        except SourceError as failure:
            raise NotWritten(f"{failure}; {SPENT}") from None
        screen.notice(f"Report: {place}", style="green")

    def show_curator(self, answer: Any) -> None:
        """The curator's counts on standard error, the warning first, where they were asked for."""
        from dpselect.cli import screen

        if self.show_sensitive:
            for line in answer.examine().lines():
                screen.notice(line, style="red")


@Parameter(name="*", group=_FAMILY)
@dataclass(frozen=True, kw_only=True)
class Family:
    """What is public about the queries.

    Parameters
    ----------
    sensitivity
        The most one person moves any query (Δ), e.g. 1/6946.
    lower
        Least value of a query; 0 if left out.
    upper
        Largest value of a query; 1 if left out.
    monotone
        One person added moves all queries one way (counts, sums of non-negative parts).
    """

    sensitivity: Number | None = None
    lower: Number | None = None
    upper: Number | None = None
    monotone: bool = False

    def family(self) -> QueryFamily:
        """The family these options describe."""
        from dpselect.privacy.family import QueryFamily

        return QueryFamily(
            lower=self.lower or Fraction(0),  # type: ignore[arg-type]  # fractions are taken, and rounded to the safe side
            upper=Fraction(1) if self.upper is None else self.upper,  # type: ignore[arg-type]
            sensitivity=needed("sensitivity", self.sensitivity),  # type: ignore[arg-type]
            monotone=self.monotone,
        )


def needed(name: str, value: Fraction | None) -> Fraction:
    """An option this way of asking cannot do without."""
    if value is None:
        raise InvalidParameter(f"‹{name}› must be given here", parameter=name)
    return value
