"""A data set: where the rows are, the public facts about them, and the budget."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpselect.dataset.budget import Budget
from dpselect.errors import InvalidParameter, refuse
from dpselect.report.words import family_in_words, shown

if TYPE_CHECKING:
    from dpselect.dataset.line import Line
    from dpselect.dataset.peak import Peak, PeakPlan
    from dpselect.dataset.watch import Watch, WatchPlan
    from dpselect.ledger import Ledger
    from dpselect.noise.entropy import Entropy
    from dpselect.report.guarantee import Neighbours
    from dpselect.report.record import Entry
    from dpselect.tables import BoundedQuery, Candidates, CuratorReport, Question
    from dpselect.tables.calendar import Every

_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


@dataclass(frozen=True, repr=False)
class Dataset:
    """Where the rows are, what is public about them, and what may be spent.

    Nothing is read before a question is asked, and then only what the question needs.

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
        period become one number (``"sum"``, ``"mean"``, ``"max"``).
    cap : number, optional
        The most one person counts for in a period. Needed unless persons are counted.
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
    total : float, optional
        The most all answers together may cost, for as long as this object lives; with ``ledger``, for good.
    ledger : path, URL or Ledger, optional
        Where the budget is kept (docs/ledger.md). One that is not there is made, with ``total``.
    entropy : Entropy, optional
        Where noise comes from: the operating system. With a ``SeededEntropy`` answers are reproducible, not private.

    Examples
    --------
    >>> import pyarrow
    >>> rows = pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})
    >>> homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=2, total=1500)
    >>> answer = homes.peak(epsilon=1000, start="2013-01-01", end="2013-01-03")
    >>> answer.label, homes.spent <= 1000
    ('2013-01-02', True)
    >>> print(answer)
    For which day is the mean of kwh over the population (each person counted up to 10) largest?
      2013-01-02
    ...
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
    per_user: Literal["sum", "mean", "max"] = "sum"
    cap: Fraction | float | str | None = None
    population: int | None = None
    adjacency: Literal["add-remove", "replace"] = "add-remove"
    grid: int | None = None
    maximum: Fraction | float | str | None = None
    sensitivity: Fraction | float | str | None = None
    monotone: bool = False
    table: str | None = None
    backend: str = "duckdb"
    delimiter: str | None = None
    total: float | None = None
    entropy: Entropy | None = None
    ledger: Any = None
    budget: Budget = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget(None if self.ledger is not None else self.total))
        if self.ledger is not None and self.entropy is not None:
            raise InvalidParameter("‹ledger› does not go with seeded noise: such answers are not private; leave it out")
        if self._is_database:
            engine = None if self.backend == "duckdb" else self.backend
            refuse_given("a database URL, which names its engine", backend=engine, delimiter=self.delimiter)
        if self.is_series:
            named = {name: getattr(self, name) for name in ("user", "cap", "category", "grid")}
            refuse_given("‹maximum› (a series already added up over persons)", **named, wide=self.wide or None)
            for name in ("time", "value"):
                if getattr(self, name) is None:
                    raise InvalidParameter(f"‹{name}› must name a column of the series", parameter=name)
            return
        refuse_given("rows of persons", sensitivity=self.sensitivity, monotone=self.monotone or None)
        if self.user is None:
            raise InvalidParameter(
                "‹user› must name the column that says whose row it is (for a series nobody is named in: ‹maximum›)",
                parameter="user",
            )
        if self.population is None:
            raise refuse("population", None, "given: a public upper bound on the number of persons")

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.measured})"

    # What may be asked.

    def peak(
        self,
        *,
        epsilon: Fraction | float,
        start: str | None = None,
        end: str | None = None,
        every: Every = "day",
        categories: Sequence[str] | None = None,
        mechanism: str | None = None,
        anyway: bool = False,
        key: str | None = None,
        afresh: bool = False,
    ) -> Peak:
        """Which period (or category) is largest: one answer, at a pure cost of at most ``epsilon``.

        The mechanism that is expected to do best is used, or the one that is asked for. An answer that would hardly be
        better than a guess is refused and costs nothing, unless asked for ``anyway``. Other parameters are those of
        :meth:`plan_peak` and :meth:`candidates`. With a ledger the same question finds its first answer and costs
        nothing; with another ``key``, or ``afresh``, it is drawn and paid again.
        """
        candidates = self.candidates(start=start, end=end, every=every, categories=categories)
        plan = self.plan_peak(candidates, epsilon=epsilon, mechanism=mechanism)
        return plan.ask(anyway=anyway, key=key, afresh=afresh)

    def plan_peak(
        self, candidates: Candidates, *, epsilon: Fraction | float, mechanism: str | None = None, compare: bool = False
    ) -> PeakPlan:
        """What asking for the peak would cost and how good the answer would be; reads nothing, spends nothing.

        Parameters
        ----------
        candidates : Calendar or Categories
            The public periods or categories, as from :meth:`candidates`.
        epsilon : number
            The most the answer may cost.
        mechanism : {"gaussian", "permute-and-flip", "exponential", "laplace"}, optional
            How the winner is picked; if left out, the one that is expected to do best.
        compare : bool
            Try every mechanism on simulated data, also those that cannot change the advice.
        """
        from dpselect.dataset.peak import plan_peak

        return plan_peak(self, candidates, epsilon=epsilon, mechanism=mechanism, compare=compare)

    def watch(
        self,
        *,
        threshold: Fraction | float,
        budget: Fraction | float,
        start: str,
        end: str,
        every: Every = "day",
        clip: tuple[float, float] | None = None,
        expect: int | None = None,
        noise: tuple[float, float] | None = None,
        keep_threshold: bool = False,
    ) -> Watch:
        """Which periods reach the ``threshold``, asked in order within a pure budget.

        Parameters
        ----------
        threshold, budget : number
            The line, in the readings' unit, and the most all answers may cost.
        start, end, every
            The public periods, both ends included.
        clip : (number, number), optional
            Cut readings to within these distances below and above the line, which costs less.
        expect : int, optional
            How many ⊤ the noise is planned for; one in ten if left out.
        noise : (number, number), optional
            σ of the line and of each question, in the readings' unit; planned if left out.
        keep_threshold : bool
            One noisy line for all questions, not a new one after each ⊤.
        """
        from dpselect.dataset.line import Line

        line = Line(
            threshold=threshold, budget=budget, clip=clip, noise=noise, expect=expect, keep_threshold=keep_threshold
        )
        return self.plan_watch(line, self.candidates(start=start, end=end, every=every)).ask()

    def plan_watch(self, line: Line, candidates: Candidates) -> WatchPlan:
        """What watching the line would cost and how good the answers would be; reads nothing, spends nothing."""
        from dpselect.dataset.watch import plan_watch

        return plan_watch(self, line, candidates)

    def plan(self, *, start: str | None = None, end: str | None = None, every: Every = "day", **asked: Any) -> Any:
        """The plan for :meth:`watch` where a ``threshold`` is given, otherwise for :meth:`peak`; spends nothing.

        >>> import pyarrow
        >>> rows = pyarrow.table({"meter": ["a"], "at": ["2013-01-02"], "kwh": [9.0]})
        >>> homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=5000)
        >>> plan = homes.plan(epsilon=0.1, start="2013-01-01", end="2013-12-31")
        >>> plan.tried["permute-and-flip"].accuracy.hits > plan.tried["gaussian"].accuracy.hits
        True
        """
        from dpselect.dataset.line import Line

        categories = asked.pop("categories", None)
        candidates = self.candidates(start=start, end=end, every=every, categories=categories)
        if "threshold" in asked or "plan" in asked:
            return self.plan_watch(Line(**asked), candidates)
        return self.plan_peak(candidates, compare=True, **asked)

    def describe(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        every: Every = "day",
        categories: Sequence[str] | None = None,
    ) -> CuratorReport:
        """For the curator only: exact counts of the rows that can be used, are left out or cut. Never publish them."""
        return self.read(self.candidates(start=start, end=end, every=every, categories=categories)).curator_report

    @property
    def spent(self) -> float:
        """What the answers so far have cost, rounded up; with a ledger, everybody's."""
        book = self.book
        return self.budget.spent if book is None else book.balance().spent

    @functools.cached_property
    def book(self) -> Ledger | None:
        """The ledger, opened; None where there is none."""
        from dpselect.dataset.book import open_book

        return None if self.ledger is None else open_book(self.ledger, name=self.name, total=self.total)

    # The public side.

    @property
    def is_series(self) -> bool:
        """Whether the rows were already added up over persons."""
        return self.maximum is not None

    @property
    def neighbours(self) -> Neighbours:
        """What the guarantee is about."""
        return "declared" if self.is_series else self.adjacency

    def candidates(
        self,
        *,
        start: str | None = None,
        end: str | None = None,
        every: Every = "day",
        categories: Sequence[str] | None = None,
    ) -> Candidates:
        """The public candidates: periods from ``start`` to ``end``, or a list of categories."""
        from dpselect.tables import Calendar, Categories

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
        return Calendar(start, end, every=every, timezone=self.timezone)

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
            measure=self.measure,
            per_user=self.per_user,
            cap=self.cap,
            adjacency=self.adjacency,
            shape="wide" if self.wide else "long",
            time_format=self.time_format,
            duplicates=self.duplicates,
            **optional,
        )

    def public_side(self, candidates: Candidates) -> BoundedQuery:
        """The answer's labels, family and unit, from an empty table: no data is opened."""
        from dpselect.tables import BoundedQuery

        if self.is_series:
            import pyarrow

            nothing = pyarrow.array([], type=pyarrow.string())
            return self._series(pyarrow.table({self.time: nothing, self.value: nothing}), candidates)
        question = self.question()
        return BoundedQuery(
            labels=candidates.labels,
            family=question.family,
            totals=(0,) * len(candidates),
            step=question.step,
            natural_unit=question.natural_unit,
        )

    # The private side.

    def check(self, candidates: Candidates) -> None:
        """Opens the table for its column names only, and refuses what is missing."""
        from dpselect.tables.rows import check_columns, usable_rows

        table = self._open()
        if self.is_series:
            check_columns(table, [self.time, self.value])
        else:
            usable_rows(table, self.question(), candidates)

    def read(self, candidates: Candidates, *, progress: Callable[[float], None] | None = None) -> BoundedQuery:
        """The private queries, one for each candidate. Not an answer: nothing protects them."""
        from dpselect import tables

        table = self._open()
        if self.is_series:
            return self._series(table, candidates)
        return tables.bounded_query(table, self.question(), candidates, progress=progress)

    def _open(self) -> Any:
        from dpselect.tables import open_source

        between = {"tab": "\t", "\\t": "\t", None: ","}.get(self.delimiter, self.delimiter)
        return open_source(self.source, backend=self.backend, table=self.table, delimiter=between or "")

    def _series(self, source: Any, candidates: Candidates) -> BoundedQuery:
        from dpselect.tables import series_query

        return series_query(
            source,
            time=self.time or "",
            value=self.value or "",
            candidates=candidates,  # type: ignore[arg-type]  # categories are refused there
            maximum=self.maximum or 0,
            population=self.population,
            sensitivity=self.sensitivity,
            monotone=self.monotone,
            time_format=self.time_format,
        )

    # In words.

    @property
    def _is_database(self) -> bool:
        # Files far away (s3://, https://) are files: an engine reads them.
        place = self.source
        return isinstance(place, str) and "://" in place and not place.lower().endswith(_FILE_ENDINGS)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read, as far as they are named: no output may take their place."""
        if not isinstance(self.source, str | Path):
            return ()
        text = str(self.source)
        return (text.partition("://")[2].partition("?")[0] if "://" in text else text,)

    @property
    def name(self) -> str:
        """The data's name for a report: no folders, and never a URL, which may hold a password."""
        if not isinstance(self.source, str | Path):
            return "a table in memory"
        text = str(self.source)
        if "://" in text:
            return f"{text.partition('://')[0]} table {self.table}" if self.table else "a remote file"
        return Path(text).name

    @property
    def measured(self) -> str:
        """What is compared, in words."""
        if self.is_series:
            return str(self.value)
        if self.measure == "count":
            return "the number of persons with a reading"
        cap = "" if self.cap is None else _number(self.cap)
        reading = self.value or "the reading"
        return f"the {self.measure} of {reading} over the population (each person counted up to {cap})"

    def parameters(self, candidates: Candidates) -> tuple[Entry, ...]:
        """The public parameters, for a report."""
        entries = [("Data", self.name), ("Candidates", f"{len(candidates):,}, {in_words(candidates)}")]
        if self.population is not None:
            entries.append(("Population", f"{self.population:,} (public)"))
        if self.cap is not None:
            entries.append(("Cap per person", _number(self.cap)))
        if self.maximum is not None:
            entries.append(("Maximum", f"{_number(self.maximum)} (public)"))
        return (*entries, ("Queries", family_in_words(self.public_side(candidates).family)))


def in_words(candidates: Candidates) -> str:
    """The candidates in a few words."""
    from dpselect.tables import Calendar

    if isinstance(candidates, Calendar):
        return f"each {candidates.every} from {candidates.start} to {candidates.end}"
    return "a public list of categories"


def period_word(candidates: Candidates) -> str:
    """What one candidate is called."""
    from dpselect.tables import Calendar

    return candidates.every if isinstance(candidates, Calendar) else "category"


def refuse_given(here: str, **values: object) -> None:
    """Parameters that mean nothing ``here`` are refused, not ignored.

    >>> refuse_given("rows of persons", monotone=None)
    >>> refuse_given("rows of persons", monotone=True)
    Traceback (most recent call last):
        ...
    dpselect.errors.InvalidParameter: monotone does not go with rows of persons; leave it out
    """
    for name, value in values.items():
        if value is not None:
            raise InvalidParameter(f"‹{name}› does not go with {here}; leave it out", parameter=name)


def _number(value: Any) -> str:
    from dpselect.tables.question import exact_number

    return shown(exact_number("number", value))
