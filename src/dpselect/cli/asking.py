"""From the options of a command to queries: what is public first, the data only when it is time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.cli import screen
from dpselect.cli.epsilon import refuse_given
from dpselect.cli.numbers import shown
from dpselect.errors import InvalidParameter, SourceError

if TYPE_CHECKING:
    from dpselect.privacy.family import QueryFamily
    from dpselect.report.guarantee import Neighbours
    from dpselect.report.record import Entry
    from dpselect.tables import BoundedQuery, Candidates, Question

_MOST_NAMES = 10_000_000
_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, kw_only=True)
class TableAsked:
    """A table and the public side of what is asked of it.

    Every field is the option of the same name; nothing is opened before :meth:`read` or :meth:`check`.
    """

    data: str
    table: str | None
    backend: str
    delimiter: str | None
    user: str | None
    time: str | None
    value: str | None
    category: str | None
    wide: bool
    time_format: str | None
    duplicates: str
    start: str | None
    end: str | None
    every: str
    timezone: str | None
    categories: str | None
    measure: str
    per_user: str
    cap: Fraction | None
    population: int | None
    adjacency: str
    grid: int | None
    maximum: Fraction | None
    sensitivity: Fraction | None
    monotone: bool

    def __post_init__(self) -> None:
        if self._is_database:
            engine = None if self.backend == "duckdb" else self.backend
            refuse_given("a database URL, which names its engine", backend=engine, delimiter=self.delimiter)
        if self.is_series:
            refuse_given(
                "--maximum (a series already added up over persons)",
                user=self.user,
                cap=self.cap,
                category=self.category,
                categories=self.categories,
                grid=self.grid,
                wide=self.wide or None,
            )
            for name in ("time", "value"):
                if getattr(self, name) is None:
                    raise InvalidParameter(f"--{name} must name a column of the series")
            return
        refuse_given("rows of persons", sensitivity=self.sensitivity, monotone=self.monotone or None)
        if self.user is None:
            raise InvalidParameter(
                "--user must name the column that says whose row it is (for a series nobody is named in: --maximum)"
            )
        if self.population is None:
            raise InvalidParameter("--population must be given: a public upper bound on the number of persons")

    @property
    def _is_database(self) -> bool:
        # Files far away (s3://, https://) are files: an engine reads them.
        return "://" in self.data and not self.data.lower().endswith(_FILE_ENDINGS)

    @property
    def is_series(self) -> bool:
        """Whether the rows were already added up over persons."""
        return self.maximum is not None

    @property
    def neighbours(self) -> Neighbours:
        """What the guarantee is about."""
        if self.is_series:
            return "declared"
        return "replace" if self.adjacency == "replace" else "add-remove"

    def candidates(self) -> Candidates:
        """The public candidates."""
        from dpselect.tables import Calendar, Categories

        calendar = self.start is not None or self.end is not None
        if calendar and self.categories is not None:
            raise InvalidParameter("--categories does not go with --from and --to; leave one of them out")
        if self.categories is not None:
            return Categories(_names(self.categories))
        if self.start is None or self.end is None:
            missing = "--categories" if self.category else "--from and --to"
            raise InvalidParameter(f"{missing} must be given: the candidates are public, never read off the data")
        return Calendar(self.start, self.end, every=self.every, timezone=self.timezone)  # type: ignore[arg-type]

    def question(self) -> Question:
        """The question to rows of persons."""
        from dpselect.tables import Question

        optional: dict[str, Any] = {} if self.grid is None else {"grid": self.grid}
        return Question(
            user=self.user or "",
            population=self.population or 0,
            time=self.time,
            category=self.category,
            value=self.value,
            measure=self.measure,  # type: ignore[arg-type]
            per_user=self.per_user,  # type: ignore[arg-type]
            cap=None if self.cap is None else shown(self.cap),
            adjacency=self.adjacency,  # type: ignore[arg-type]
            shape="wide" if self.wide else "long",
            time_format=self.time_format,
            duplicates=self.duplicates,  # type: ignore[arg-type]
            **optional,
        )

    def public_side(self) -> BoundedQuery:
        """The answer's labels, family and unit, from an empty table: no data is opened."""
        if self.is_series:
            return self._series({self.time: [], self.value: []}, lambda _share: None)
        from dpselect.tables import BoundedQuery

        question, candidates = self.question(), self.candidates()
        return BoundedQuery(
            labels=candidates.labels,
            family=question.family,
            totals=(0,) * len(candidates),
            step=question.step,
            natural_unit=question.natural_unit,
        )

    def check(self) -> None:
        """Opens the table for its column names only, and refuses what is missing."""
        from dpselect.tables.rows import check_columns, usable_rows

        table = self._open()
        if self.is_series:
            check_columns(table, [self.time, self.value])
        else:
            usable_rows(table, self.question(), self.candidates())

    def read(self) -> BoundedQuery:
        """The queries, with a bar while the engine works."""
        from dpselect.tables import bounded_query

        table = self._open()
        with screen.progress("Adding up the table") as move:
            if self.is_series:
                return self._series(table, move)
            return bounded_query(table, self.question(), self.candidates(), progress=move)

    def _open(self) -> Any:
        from dpselect.tables import open_source

        between = {"tab": "\t", "\\t": "\t", None: ","}.get(self.delimiter, self.delimiter)
        return open_source(self.data, backend=self.backend, table=self.table, delimiter=between or "")

    def _series(self, source: Any, move: Callable[[float], None]) -> BoundedQuery:
        from dpselect.tables import series_query

        if isinstance(source, dict):
            import pyarrow

            text = pyarrow.string()
            source = pyarrow.table({name: pyarrow.array([], type=text) for name in source})
        move(0.0)
        return series_query(
            source,
            time=self.time or "",
            value=self.value or "",
            candidates=self.candidates(),  # type: ignore[arg-type]  # --categories was refused
            maximum=self.maximum or 0,
            population=self.population,
            sensitivity=self.sensitivity,
            monotone=self.monotone,
            time_format=self.time_format,
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read, as far as they were named: no output may take their place."""
        database = self.data.partition("://")[2].partition("?")[0] if "://" in self.data else ""
        named = self.categories[1:] if (self.categories or "").startswith("@") and self.categories else ""
        return tuple(place for place in (database or self.data, named) if place)

    @property
    def source_name(self) -> str:
        """The data's name for a report: no folders, and never a URL, which may hold a password."""
        if "://" in self.data:
            return f"{self.data.partition('://')[0]} table {self.table}" if self.table else "a remote file"
        return Path(self.data).name

    @property
    def measured(self) -> str:
        """What is compared, in words."""
        if self.is_series:
            return str(self.value)
        if self.measure == "count":
            return "the number of persons with a reading"
        reading = self.value or "the reading"
        cap = shown(self.cap) if self.cap is not None else ""
        return f"the {self.measure} of {reading} over the population (each person counted up to {cap})"

    def parameters(self, family: QueryFamily, *, candidates: int) -> tuple[Entry, ...]:
        """The public parameters, for a report."""
        from dpselect.cli.epsilon import family_in_words

        entries = [("Data", self.source_name), ("Candidates", f"{candidates:,}, {self._candidates_in_words()}")]
        if self.population is not None:
            entries.append(("Population", f"{self.population:,} (public)"))
        if self.cap is not None:
            entries.append(("Cap per person", shown(self.cap)))
        if self.maximum is not None:
            entries.append(("Maximum", f"{shown(self.maximum)} (public)"))
        return (*entries, ("Queries", family_in_words(family)))

    def _candidates_in_words(self) -> str:
        if self.categories is not None:
            return "a public list of categories"
        return f"each {self.every} from {self.start} to {self.end}"


def _names(written: str) -> list[str]:
    if not written.startswith("@"):
        return [name.strip() for name in written.split(",")]
    try:
        lines = Path(written[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"cannot read the categories in {written[1:]!r}; check the path") from None
    names = [line.strip() for line in lines if line.strip()]
    if len(names) > _MOST_NAMES:
        raise InvalidParameter(f"--categories must name at most {_MOST_NAMES:,}; got {len(names):,}")
    return names
