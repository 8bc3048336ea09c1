"""``dpselect watch``: when is a line crossed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from dpselect.cli import asking, screen
from dpselect.cli.failures import DONE, say
from dpselect.cli.numbers import Number, Widths
from dpselect.cli.options import AboveThreshold, Again, KnownOptions, RunOptions
from dpselect.cli.plan import check_place
from dpselect.cli.stream import StreamOptions, answer_stream
from dpselect.cli.table import Data, Periods, Table, places
from dpselect.errors import InvalidParameter, refuse_given
from dpselect.report.words import percent, plural
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset import WatchPlan, WatchRequest


@Parameter(name="*", group=Group("The line, the budget and the noise (in the readings' unit)", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """What is watched for.

    Parameters
    ----------
    threshold
        The public line.
    budget
        The most all answers may cost (ε).
    plan
        All of this from a plan instead.
    save_plan
        Keep the plan, for --plan later; with --dry-run nothing is asked.
    delta
        δ of the guarantee; 0 is pure, and what is meant if left out.
    mechanism
        Whose noise; the one expected to do best if left out.
    how_much
        Also the values of those above, with their ±, from half of the budget.
    anyway
        Ask also where the answers would hardly be better than a guess.
    clip
        Gaussian noise by hand: cut questions to within this distance of the line.
    sigma_threshold
        Gaussian noise by hand: of the line (σ_X).
    sigma_query
        Gaussian noise by hand: of each question (σ_Z); σ_X·√3 if left out (σ_X for a monotone family).
    resample
        Gaussian noise by hand: a new noisy line after each one above, or (--no-resample) one for all.
    """

    threshold: Number | None = None
    budget: Number | None = None
    plan: Annotated[Path | None, Parameter(metavar="PLAN.toml")] = None
    save_plan: Annotated[Path | None, Parameter(metavar="PLAN.toml")] = None
    delta: Number | None = None
    mechanism: AboveThreshold | None = None
    how_much: bool = False
    anyway: bool = False
    clip: Widths | None = None
    sigma_threshold: Number | None = None
    sigma_query: Number | None = None
    resample: Annotated[bool | None, Parameter(negative="--no-resample")] = None

    def keep(self, plan: WatchPlan) -> None:
        """Keeps the plan, where that is asked for."""
        if self.save_plan is not None:
            screen.notice(f"Plan: {plan.save(self.save_plan)}", style="green")

    def request(self, knowledge: KnownOptions) -> WatchRequest:
        """What these options ask."""
        from dpselect.dataset import WatchRequest
        from dpselect.planning import load_plan

        if self.sigma_query is not None and self.sigma_threshold is None:
            raise InvalidParameter("--sigma-query needs --sigma-threshold beside it; give both or neither")
        known = knowledge.known()
        return WatchRequest(
            threshold=self.threshold,
            budget=self.budget,
            clip=self.clip,
            noise=None if self.sigma_threshold is None else (self.sigma_threshold, self.sigma_query),
            delta=self.delta or 0,
            mechanism=self.mechanism,
            expect=known.expect,
            between=known.between,
            like=known.like,
            resample=self.resample,
            how_much=self.how_much,
            plan=None if self.plan is None else load_plan(self.plan),
        )


def watch(
    data: Data = "-",
    /,
    *,
    options: WatchOptions = WatchOptions(),
    knowledge: KnownOptions = KnownOptions(),  # noqa: B008
    stream: StreamOptions = StreamOptions(),  # noqa: B008
    periods: Periods = Periods(),  # noqa: B008
    table: Table = Table(),  # noqa: B008
    again: Again = Again(),  # noqa: B008
    run: RunOptions = RunOptions(),  # noqa: B008
) -> int:
    """On which days (hours, …) is the line crossed? Asked in order, within a budget.

    Rows of persons:

      $ dpselect watch readings.parquet --user meter --time at --value kwh
        --cap 50 --population 5564 --from 2013-01-01 --to 2013-12-31
        --threshold 14 --clip 3 --budget 1

    Or question by question, in a pipe; JSON lines out, exit code 3 when the budget ends:

      $ producer | dpselect watch --sensitivity 1/6946 --threshold 0.575
        --budget 1

    In Python: dp.Dataset("readings.parquet", user=…, …).watch(threshold=14, budget=1, start=…, end=…),
    and SparseVector(GaussianAboveThreshold(…), budget).ask(value).
    """
    from dpselect.dataset.watch import plan_watch

    inputs: tuple[str | Path, ...] = (*places(data), *knowledge.inputs)
    run.check(inputs=(*inputs, options.plan))
    if options.save_plan is not None:
        check_place(options.save_plan, inputs=inputs)
    request = options.request(knowledge)
    # Persons, or a series: a table. Otherwise what comes is one question a line.
    rows = (table.user is not None and table.sensitivity is None) or table.maximum is not None
    if data == "-" and not rows:
        stream.refuse(table, periods, run)
        plan = stream.plan(request, table)
        options.keep(plan)
        if plan.caution is not None:
            say(plan.caution, as_json=run.as_json, kind="warning")
        if run.dry_run:
            asking.show_plan(plan, _show, as_json=run.as_json)
            return DONE
        plan.insist(anyway=options.anyway)
        return answer_stream(plan, table, stream, again, run)
    refuse_given("a table, whose periods say which they are", onward=stream.onward or None)
    dataset = table.dataset(data, run.entropy, every=periods.every)
    with screen.progress("Trying the mechanisms on simulated data") as move:
        scope = dataset.scope(periods.of(dataset))
        plan = plan_watch(scope.public.family, request, questions=len(scope.candidates), scope=scope, progress=move)
    options.keep(plan)
    return asking.ask(plan, run, again, anyway=options.anyway, show=_show)


def _show(plan: WatchPlan) -> None:
    """What a watch would cost and how good it would be."""
    note = "No value was read, nothing was spent. F1 compares with the answers without noise; 1 is perfect."
    screen.entries("Dry run", _costs_and_accuracy(plan), note=note)


def _costs_and_accuracy(plan: WatchPlan) -> list[tuple[str, str]]:
    said = ("Cost, none above", f"Cost, 1 above in {plan.gap:,}")
    rows = [*plan.asked_entries(), ("Mechanism", plan.reason), *plan.noise_entries()]
    delta = f", δ = {at_most(plan.settings.delta)}" if plan.settings.delta else ""
    half = ", half of ε for values" if plan.asked.how_much else ""
    rows.append(("Budget", f"ε = {at_most(plan.budget)}{delta}{half}"))
    if plan.weakness is not None:
        rows.append(("Note", plan.weakness))
    rows += [(name, f"ε = {at_most(cost)}") for name, cost in zip(said, plan.costs.values(), strict=False)]
    rows += plan.expected_entries()
    if (found := plan.expected) is not None:
        answered = percent(found.answered / plan.settings.count)
        rows.append(("Answered", f"{answered} of the {plural(plan.period)}, for ε = {at_most(found.spent)}"))
    grounds = "the plan says so" if plan.asked.plan is not None else plan.asked.known.in_words(period=plan.period)
    rows.append(("Rests on", grounds))
    if not plan.useful:
        rows.append(("Advice", "Hardly better than a guess: refused, unless insisted on."))
    return rows
