"""Options that several commands share, as data classes: each field is the option of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Group, Parameter

from dpselect import files
from dpselect.cli import screen
from dpselect.cli.numbers import Expected, Number, Range
from dpselect.cli.table import LEDGER
from dpselect.errors import InvalidParameter, SourceError, refuse_given
from dpselect.mechanisms.catalogue import by_short_name

if TYPE_CHECKING:
    from dpselect.dataset import Answer
    from dpselect.dataset.known import Known
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily

#: Mechanisms by the short names that the catalogue has for them; a type checker cannot read those.
if TYPE_CHECKING:
    AboveThreshold: TypeAlias = str
    Selection: TypeAlias = str
else:
    AboveThreshold = Literal[tuple(by_short_name("above-threshold", "set"))]
    Selection = Literal[tuple(by_short_name("selection"))]

AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", help="One JSON object per line, for machines.")]
ReportFile: TypeAlias = Annotated[
    Path | None, Parameter(metavar="FILE.html", help="Also write a page to read offline.")
]
Seed: TypeAlias = Annotated[
    int | None, Parameter(help="Repeatable noise for tests: the answer is then not private.", allow_leading_hyphen=True)
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
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
        from dpselect.report.record import NOT_PRIVATE

        if self.seed is not None:
            screen.notice(NOT_PRIVATE, style="bold red")

    def keep(self, answer: Answer, *, verb: str) -> None:
        """Writes the page of an answer that was drawn; a failure now is not one of the input."""
        from dpselect.cli.failures import NotWritten, lost

        if self.report is None:
            return
        try:
            place = answer.report(self.report)
        except SourceError as failure:
            raise NotWritten(f"{failure}; {lost(verb)}") from None
        screen.notice(f"Report: {place}", style="green")

    def show_curator(self, answer: Any) -> None:
        """The curator's counts on standard error, the warning first, where they were asked for."""
        if self.show_sensitive:
            for line in answer.examine().lines():
                screen.notice(line, style="red")


@Parameter(name="*", group=LEDGER)
@dataclass(frozen=True, kw_only=True)
class Again:
    """The same question asked again.

    Parameters
    ----------
    key
        With --ledger: tells it from the same question asked before.
    afresh
        With --ledger: draw the same question again, and pay again.
    """

    key: str | None = None
    afresh: bool = False


@Parameter(name="*", group=Group("What is known beforehand (all of it public)", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class KnownOptions:
    """What is public about the series; where nothing is said, something cautious is supposed.

    Parameters
    ----------
    expect
        How many reach the line: a share, or a number of periods. One in ten is supposed.
    between
        Between which values the series is expected to lie, in the readings' unit.
    like
        Another series of the same kind: one number per line, a JSON list, or CSV with --column.
    public
        I declare that anyone may see the series of --like.
    column
        Column of --like.
    """

    expect: Expected | None = None
    between: Annotated[Range | None, Parameter(name="--range")] = None
    like: Annotated[Path | None, Parameter(metavar="FILE")] = None
    public: bool = False
    column: str | None = None

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The file that is read."""
        return () if self.like is None else (self.like,)

    def known(self) -> Known:
        """The same for a data set."""
        from dpselect.dataset.known import Known
        from dpselect.planning import read_profile

        if self.like is None:
            refuse_given("a series that was not named; name one with --like, or", public=self.public or None)
            refuse_given("a series that was not named; name one with --like, or", column=self.column)
            return Known(expect=self.expect, between=self.between)
        series = read_profile(self.like, public=self.public, column=self.column)
        return Known(expect=self.expect, between=self.between, like=series)


@Parameter(name="*", group=Group("The family of queries", sort_key=2))
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
