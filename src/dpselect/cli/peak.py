"""``dpselect peak``: which period or category is largest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dpselect.cli import asking, screen
from dpselect.cli.numbers import Count, Number
from dpselect.cli.options import Again, KnownOptions, RunOptions, Selection
from dpselect.cli.table import CategoryOptions, Data, Periods, Table
from dpselect.errors import InvalidParameter, refuse_given
from dpselect.report.words import percent, with_margin
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset import Dataset, PeakPlan
    from dpselect.dataset.known import Known
    from dpselect.tables import Candidates


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PeakOptions:
    """What is asked.

    Parameters
    ----------
    epsilon
        The most the answer may cost, pure.
    smallest
        Which is smallest, not largest.
    top
        Name so many, in order; each costs an equal part of ε.
    how_much
        Also the values of those named, with their ±, from half of ε.
    mechanism
        How the winner is picked; the one expected to do best if left out. All cost ε.
    plan
        All of this, and the noise, from a plan that was saved.
    anyway
        Ask also where the answer would hardly be better than a guess.
    """

    epsilon: Annotated[Number | None, Parameter(metavar="ε")] = None
    smallest: bool = False
    top: Annotated[Count, Parameter(metavar="K")] = 1
    how_much: bool = False
    mechanism: Selection | None = None
    plan: Annotated[Path | None, Parameter(metavar="FILE.toml")] = None
    anyway: bool = False

    def planned(self, dataset: Dataset, candidates: Candidates, known: Known, *, compare: bool) -> PeakPlan:
        """What asking would cost and how good the answer would be."""
        from dpselect.planning import load_plan

        if self.plan is None and self.epsilon is None:
            raise InvalidParameter(
                "‹epsilon› must be given: the most the answer may cost, such as 0.1",
                parameter="epsilon",
            )
        refuse_given("a peak, where no line is to be reached: say ‹between› or ‹like›, or", expect=known.expect)
        return dataset.plan_peak(
            candidates,
            epsilon=self.epsilon,
            goal="smallest" if self.smallest else "largest",
            top=self.top,
            how_much=self.how_much,
            mechanism=self.mechanism,
            between=known.between,
            like=known.like,
            plan=None if self.plan is None else load_plan(self.plan),
            compare=compare,
        )


def peak(
    data: Data,
    /,
    *,
    asked: PeakOptions = PeakOptions(),
    knowledge: KnownOptions = KnownOptions(),  # noqa: B008
    periods: Periods = Periods(),  # noqa: B008 - frozen
    categories: CategoryOptions = CategoryOptions(),  # noqa: B008
    table: Table = Table(),  # noqa: B008
    again: Again = Again(),  # noqa: B008
    run: RunOptions = RunOptions(),  # noqa: B008
) -> int:
    """Which day (hour, week, month, category) is largest?

    Rows of persons:

      $ dpselect peak readings.parquet --user meter --time at --value kwh
        --cap 50 --population 5564 --from 2013-01-01 --to 2013-12-31 --epsilon 0.1

    A series already added up, for which you vouch:

      $ dpselect peak days.csv --time day --value trips --maximum 6946
        --population 6946 --from 2011-01-01 --to 2011-12-31 --epsilon 0.1

    The five coldest days and what they used, or the busiest weekday:

      $ dpselect peak homes.toml --top 5 --how-much --epsilon 0.5

      $ dpselect peak homes.toml --every weekday --epsilon 0.1

    In Python: dp.Dataset("readings.parquet", user=…, …).peak(epsilon=0.1, start=…, end=…).
    """
    dataset = table.dataset(data, run.entropy, category=categories.category, every=periods.every)
    run.check(inputs=(*dataset.inputs, *categories.inputs, asked.plan, *knowledge.inputs))
    candidates = categories.of(dataset, periods)
    with screen.progress("Trying the mechanisms on simulated data"):
        plan = asked.planned(dataset, candidates, knowledge.known(), compare=run.dry_run)
    code = asking.ask(plan, run, again, anyway=asked.anyway, show=_show)
    if plan.advice and not run.as_json:
        screen.notice(plan.advice)
    return code


def _show(plan: PeakPlan) -> None:
    """What a peak would cost and how good it would be."""
    columns, rows = _compared(plan)
    screen.table(
        f"Dry run: {len(plan.scope.candidates):,} candidates, {plan.scope.measured}",
        columns,
        rows,
        note="Accuracy on a simulated series, as a share of the range. No value was read, nothing was spent.",
    )
    screen.notice(f"{plan.reason} Expected: {plan.expectation}.", style="dim")
    if plan.margin is not None:
        within = plan.scope.facts.with_unit(with_margin(0.0, plan.margin).partition(" ")[2])
        screen.notice(f"How much: each value comes with {within}, which holds 95 times of 100.")
    if plan.weakness is not None:
        screen.notice(plan.weakness)
    if not plan.useful:
        screen.notice("This would hardly be better than a guess.")


def _compared(plan: PeakPlan) -> tuple[list[str], list[list[str]]]:
    """Each mechanism that was tried, as headings and rows of a table."""
    from dpselect.dataset.peak import noise_scale
    from dpselect.mechanisms.catalogue import entry_of
    from dpselect.report.peak_words import noise

    in_unit, rows = ["in the reading's unit"] if plan.unit != 1 else [], []
    for name, one in plan.plans.items():
        scale = sum(noise_scale(one).values())
        found = one.prediction
        rows.append(
            [
                f"→ {name}" if name == plan.mechanism else f"  {name}",
                at_most(plan.shown_cost(name)),
                noise(entry_of(one.mechanism()).noise, scale),
                *(at_most(scale * plan.unit) for _ in in_unit),
                *(() if found is None else (percent(found.shortfall), percent(found.hits or 0.0))),
            ]
        )
    return ["mechanism", "pure ε ≤", "noise", *in_unit, "falls short", "best found"], rows
