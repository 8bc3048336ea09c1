"""``dpselect plan``: which mechanism, how much noise, what to expect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from dpselect import files
from dpselect.cli import screen
from dpselect.cli.numbers import Count, Expected, Number, Range  # noqa: F401 - read in the options that are taken over
from dpselect.cli.options import AsJson, Family, KnownOptions, ReportFile
from dpselect.cli.table import Periods
from dpselect.errors import DPSelectError, InvalidParameter, refuse_given

if TYPE_CHECKING:
    from dpselect.dataset import Dataset
    from dpselect.planning import Model, Profile
    from dpselect.planning.job import Job
    from dpselect.planning.planner import Comparison
    from dpselect.privacy.family import QueryFamily
    from dpselect.report.plan_page import Unit
    from dpselect.tables import BoundedQuery

_PLAN = files.Kind("plan", (".toml", ".json"), (b"",))


def check_place(place: Path, *, inputs: Iterable[str | Path | None]) -> None:
    """Refuses a place for a plan that is an input, or holds something that is no plan."""
    from dpselect.planning.plan import load_plan

    files.check(place, _PLAN, inputs=[one for one in inputs if one is not None])
    if place.exists() and place.stat().st_size:
        try:
            load_plan(place)
        except DPSelectError:
            raise files.refused_place("plan", place, "a file is there that is no plan of dpselect") from None


@Parameter(name="*", group=Group("What is asked", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The job to plan for.

    Parameters
    ----------
    epsilon
        The budget.
    delta
        0 is pure, and what is meant if left out.
    candidates
        Which of D is largest? Those of the data set if left out.
    questions
        Which of N questions reach the threshold? The periods of the data set, or the length of --like, if left out.
    threshold
        The public line; in the readings' unit where a data set is named.
    wanted
        The F1 to reach at the least ε; for the largest, 1 less the shortfall as a part of the range.
    """

    epsilon: Annotated[Number | None, Parameter(name=("--epsilon", "--budget"))] = None
    delta: Number | None = None
    candidates: Count | None = None
    questions: Count | None = None
    threshold: Number | None = None
    wanted: Number | None = None

    def job(
        self, queries: QueryFamily, known: PlanKnownOptions, *, unit: Fraction = Fraction(1), count: int = 0
    ) -> Job:
        """The job these options describe, on the scale of the queries, of which one is ``unit`` in the readings'."""
        from dpselect.planning.job import Job
        from dpselect.planning.knowledge import Profile
        from dpselect.rounding import no_more_than

        if self.candidates is not None and (self.questions is not None or self.threshold is not None):
            raise InvalidParameter(
                "give --candidates (which is largest), or --threshold (which cross it), and not both"
            )
        if self.questions is not None and self.threshold is None:
            raise InvalidParameter("--questions needs --threshold beside it")
        public = known.public_knowledge(unit=unit)
        number = (
            count or self.candidates or self.questions or (len(public.values) if isinstance(public, Profile) else 0)
        )
        if self.threshold is None:
            refuse_given("which is largest; name a --threshold, or", expect=known.expect)
        return Job(
            asked="largest" if self.threshold is None else "crossings",
            family=queries,
            count=number,
            epsilon=None if self.epsilon is None else no_more_than(self.epsilon),
            delta=no_more_than(self.delta or 0),
            threshold=None if self.threshold is None else float(self.threshold / unit),
            share=None if known.expect is None else known.share(questions=number),
            public=public,
            outlook=known.outlook,
            wanted=None if self.wanted is None else float(self.wanted),
            # A table's questions are all there; those that come one by one are not.
            whole=count > 0 and self.threshold is not None,
        )


@Parameter(name="*", group=Group("What is known beforehand (all of it public)", sort_key=3))
@dataclass(frozen=True, kw_only=True)
class PlanKnownOptions(KnownOptions):
    """What is public about the series; where nothing is said, something cautious is supposed.

    Parameters
    ----------
    expect
        How many reach the line: a share, or a number of questions. One in ten is supposed.
    like
        Past values, or another series of the same kind: one number per line, a JSON list, or CSV with --column.
    maximum
        A public number that --like is divided by.
    model
        worst-case, uniform or seasonal, without --like.
    margin
        For the worst case: how near the values come.
    outlook
        Whether the level may change; changing if left out.
    """

    expect: Annotated[Expected | None, Parameter(name=("--expect", "--share"))] = None
    like: Annotated[Path | None, Parameter(name=("--like", "--profile"), metavar="FILE")] = None
    maximum: Number | None = None
    model: Annotated[str | None, Parameter(metavar="KIND")] = None
    margin: Number | None = None
    outlook: Literal["changing", "steady"] = "changing"

    def share(self, *, questions: int) -> float | None:
        """The expected share above the line."""
        from dpselect.dataset.known import Known

        return Known(expect=self.expect).share(questions=questions)

    def public_knowledge(self, *, unit: Fraction) -> Profile | Model:
        """The series, or a model, on the scale of the queries."""
        from dpselect.planning.knowledge import Model, Profile

        if self.like is not None:
            refuse_given("--like", model=self.model, margin=self.margin)
        else:
            refuse_given("a model; name a series with --like, or", maximum=self.maximum)
        found = self.known().public(unit=unit)
        if isinstance(found, Profile):
            divisor = float(self.maximum or 1)
            return Profile(tuple(value / divisor for value in found.values), public=True)
        if self.model is None and self.margin is None:
            return found
        refuse_given("another model than the seasonal one", range=self.between)
        return Model(
            kind=self.model or "seasonal",  # type: ignore[arg-type]  # another word is refused there
            margin=None if self.margin is None else float(self.margin / unit),
        )


@Parameter(name="*", group=Group("Output", sort_key=4))
@dataclass(frozen=True, kw_only=True)
class PlanOutput:
    """What is kept.

    Parameters
    ----------
    way
        Save this one instead of the best.
    only
        Tune these and no others, with commas between.
    save
        Keep the plan.
    plot
        Draw accuracy against budget.
    """

    way: Annotated[str | None, Parameter(name=("--way", "--contender"), metavar="NAME")] = None
    only: Annotated[str | None, Parameter(metavar="NAME[,NAME…]")] = None
    save: Annotated[Path | None, Parameter(metavar="FILE.toml")] = None
    plot: Annotated[Path | None, Parameter(metavar="FILE.svg")] = None
    report: ReportFile = None

    def check(self, *, inputs: Iterable[Path | None]) -> None:
        """Refuses places that must not be written to, before the tuning."""
        read = [one for one in inputs if one is not None]
        if self.save is not None:
            check_place(self.save, inputs=read)
        if self.plot is not None:
            files.check(self.plot, files.DRAWING, inputs=read)
        if self.report is not None:
            files.check(self.report, files.PAGE, inputs=read)


def plan(
    data: Annotated[
        str | None, Parameter(metavar="HOMES.toml", help="A data-set file, of which nothing is read.")
    ] = None,
    /,
    *,
    asked: JobOptions = JobOptions(),
    family: Family = Family(),  # noqa: B008
    known: PlanKnownOptions = PlanKnownOptions(),
    periods: Periods = Periods(),  # noqa: B008
    job: Annotated[Path | None, Parameter(metavar="FILE.toml", help="All of this from a file.")] = None,
    output: PlanOutput = PlanOutput(),
    seed: Annotated[int, Parameter(help="Of the simulations; nothing private is drawn.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Which mechanism, how much noise, what accuracy: every way tuned and ranked, on public knowledge only.

    For a data set, of which only the public facts are looked at; then `watch --plan`, or `peak --plan`:

      $ dpselect plan homes.toml --threshold 12 --budget 1 --expect 10% --save plan.toml

    Which one is largest, and which ones reach a line, without a data set:

      $ dpselect plan --candidates 365 --epsilon 0.1 --sensitivity 1/6946 --monotone

      $ dpselect plan --like 2011.csv --column registered --maximum 6946 --public
        --threshold 0.575 --epsilon 1 --sensitivity 1/6946 --save plan.toml

    In Python: planning.compare(Job(…)); planning.load_plan("plan.toml").mechanism().
    """
    from dpselect.planning.job import load_job
    from dpselect.planning.planner import compare
    from dpselect.report.plan_page import Unit, expectation

    output.check(inputs=(*known.inputs, job, None if data is None else Path(data)))
    unit = Unit()
    if job is not None:
        said = {"sensitivity": family.sensitivity, "like": known.like, "model": known.model, "data": data}
        refuse_given("--job; change the file, or", **asdict(asked), **said, margin=known.margin)
        wanted = load_job(job)
    elif data is not None:
        said = {"sensitivity": family.sensitivity, "lower": family.lower, "upper": family.upper}
        counted = {"candidates": asked.candidates, "questions": asked.questions, "monotone": family.monotone or None}
        refuse_given("a data-set file, which says it", **said, **counted)
        dataset, public = _public_side(data, periods)
        unit = Unit(float(public.natural_unit), dataset.unit or "")
        wanted = asked.job(public.family, known, unit=public.natural_unit, count=len(public))
    else:
        wanted = asked.job(family.family(), known)
    with screen.progress("trying every way") as move:
        chosen_few = None if output.only is None else [name.strip() for name in output.only.split(",")]
        comparison = compare(wanted, ways=chosen_few, seed=seed, on_progress=move)
    chosen = comparison.best if output.way is None else comparison.plan(output.way)
    chosen = replace(chosen, unit=None if data is None else unit.size)
    written: dict[str, Any] = {}
    if output.save is not None:
        written["saved"] = str(chosen.save(output.save))
    written |= _pictures(comparison, output, seed=seed, unit=unit)
    if as_json:
        told = {} if chosen.prediction is None else chosen.prediction.as_expected(wanted.count)
        screen.emit({**comparison.as_document(), "chosen": chosen.name, **told, **written})
        return
    _show(comparison, unit)
    print(f"Expected of {chosen.name}: {expectation(chosen, unit)}.")
    for what, place in written.items():
        screen.notice(f"{what}: {place}", style="green")


def _public_side(data: str, periods: Periods) -> tuple[Dataset, BoundedQuery]:
    from dpselect.dataset import Dataset
    from dpselect.dataset.file import is_file

    if not is_file(data):
        raise InvalidParameter(
            f"a plan is made from a data-set file such as homes.toml, not from rows; got {data!r}: write one with "
            "`dpselect describe`"
        )
    dataset = Dataset.open(data)
    return dataset, dataset.scope(periods.of(dataset)).public


def _pictures(comparison: Comparison, output: PlanOutput, *, seed: int, unit: Unit) -> dict[str, str]:
    plot, report = output.plot, output.report
    if plot is None and report is None:
        return {}
    from dpselect.planning.planner import frontier
    from dpselect.report.page import write_page
    from dpselect.report.plan_page import draw_frontier, plan_report
    from dpselect.report.plots import save as save_plot

    with screen.progress("drawing the frontier") as move:
        found = frontier(comparison.job, seed=seed, on_progress=move)
    written = {}
    if plot is not None:
        written["plot"] = str(save_plot(draw_frontier(found), plot))
    if report is not None:
        written["report"] = str(write_page(plan_report(comparison, frontier=found, unit=unit), report))
    return written


def _show(comparison: Comparison, unit: Unit) -> None:
    from dpselect.report.plan_page import asked_in_words, ways_table

    head, *rows = ways_table(comparison, unit)
    screen.table(
        f"Ways, best first: {asked_in_words(comparison.job, unit)}",
        head,
        rows,
        note="Nothing was spent.",
    )
    print(comparison.advice)
