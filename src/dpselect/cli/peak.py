"""``dpselect peak``: which period or category is largest."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect.cli import options, screen
from dpselect.cli import table_options as given
from dpselect.cli.asking import TableAsked
from dpselect.cli.epsilon import refuse_given
from dpselect.cli.numbers import no_more_than, read_number
from dpselect.cli.picking import NAMES, MechanismName, advice, noise_in_words, percent, scale_of, try_all
from dpselect.cli.watch_output import keep_page, ready_for_report
from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.planning.trial import Tried
    from dpselect.report.record import Report
    from dpselect.tables import BoundedQuery


def peak(
    data: Annotated[str, typer.Argument(help=given.DATA_HELP)],
    epsilon: Annotated[
        Fraction,
        typer.Option("--epsilon", parser=read_number, metavar="ε", help="The most the answer may cost, pure."),
    ],
    mechanism: Annotated[
        MechanismName, typer.Option("--mechanism", help="How the winner is picked; all cost ε.")
    ] = "gaussian",
    user: given.User = None,
    time: given.Time = None,
    value: given.Value = None,
    category: given.Category = None,
    wide: given.Wide = False,
    time_format: given.TimeFormat = None,
    duplicates: given.Duplicates = "keep",
    start: given.From = None,
    end: given.To = None,
    every: given.EveryOption = "day",
    timezone: given.Timezone = None,
    categories: given.CategoryNames = None,
    measure: given.Measure = "mean",
    per_user: given.PerUser = "sum",
    cap: given.Cap = None,
    population: given.Population = None,
    adjacency: given.Adjacency = "add-remove",
    grid: given.Grid = None,
    maximum: given.Maximum = None,
    sensitivity: given.SeriesSensitivity = None,
    monotone: given.SeriesMonotone = False,
    table: given.TableName = None,
    backend: given.Backend = "duckdb",
    delimiter: given.Delimiter = None,
    dry_run: options.DryRun = False,
    seed: options.Seed = None,
    report: options.ReportFile = None,
    show_sensitive: given.ShowSensitive = False,
    as_json: options.AsJson = False,
) -> None:
    """Which day (hour, week, month, category) is largest?

    Rows of persons:

      [dim]$[/dim] dpselect peak readings.parquet --user meter --time at --value kwh
        --cap 50 --population 5564 --from 2013-01-01 --to 2013-12-31 --epsilon 0.1

    A series already added up, for which you vouch:

      [dim]$[/dim] dpselect peak days.csv --time day --value trips --maximum 6946
        --population 6946 --from 2011-01-01 --to 2011-12-31 --epsilon 0.1

    In Python: GaussianNoisyMax.calibrated(…).release(bounded_query(…).values).
    """
    if dry_run:
        refuse_given("--dry-run, which gives no answer", report=report, show_sensitive=show_sensitive or None)
    asked = TableAsked(
        data=data,
        table=table,
        backend=backend,
        delimiter=delimiter,
        user=user,
        time=time,
        value=value,
        category=category,
        wide=wide,
        time_format=time_format,
        duplicates=duplicates,
        start=start,
        end=end,
        every=every,
        timezone=timezone,
        categories=categories,
        measure=measure,
        per_user=per_user,
        cap=cap,
        population=population,
        adjacency=adjacency,
        grid=grid,
        maximum=maximum,
        sensitivity=sensitivity,
        monotone=monotone,
    )
    ready_for_report(report, inputs=asked.inputs)
    public = asked.public_side()
    # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
    names = [name for name in NAMES if dry_run or mechanism == "gaussian" or name != "gaussian"]
    with screen.progress("Trying the mechanisms on simulated data"):
        tried = try_all(public.family, candidates=len(public), epsilon=no_more_than(epsilon), names=names)
    chosen = tried[mechanism]
    if dry_run:
        asked.check()
        _show_plan(asked, public, tried, mechanism, as_json=as_json)
        return

    from dpselect.noise.entropy import SYSTEM_ENTROPY, SeededEntropy
    from dpselect.report.record import NOT_PRIVATE

    entropy = SYSTEM_ENTROPY if seed is None else SeededEntropy(seed)
    answer = asked.read()
    selection = chosen.mechanism.release(answer.values, entropy=entropy, outside="clip")
    label = answer.labels[selection.index]
    hint = advice(mechanism, tried)
    told = _report(asked, answer, chosen, label=label, epsilon=selection.loss.epsilon, noise=selection.noise)
    if as_json:
        screen.emit(
            {
                "answer": label,
                "index": selection.index,
                "epsilon": selection.loss.epsilon,
                "delta": selection.loss.delta,
                "noise": selection.noise,
                "mechanism": mechanism,
                **_scale(chosen),
                "unit": float(answer.natural_unit),
                "candidates": len(answer),
                "expected_shortfall": chosen.accuracy.shortfall,
                "advice": hint,
                **_note(told.guarantee.weakness),
            }
        )
    else:
        from dpselect.report.text import print_report

        print_report(told)
    if selection.noise == "reproducible" and as_json:
        screen.notice(NOT_PRIVATE, style="bold red")
    if hint and not as_json:
        screen.notice(hint)
    if report is not None:
        keep_page(told, report)
    if show_sensitive:
        show_curator(answer)


def show_curator(answer: BoundedQuery) -> None:
    """The curator's counts on standard error, the warning first."""
    for line in answer.curator_report.lines():
        screen.notice(line, style="red")


def _note(weakness: str | None) -> dict[str, str]:
    return {} if weakness is None else {"note": weakness}


def _scale(chosen: Tried) -> dict[str, float]:
    if chosen.name == "gaussian":
        return {"sigma": chosen.mechanism.sigma}
    return {"scale": chosen.mechanism.scale}


def _report(
    asked: TableAsked, answer: BoundedQuery, chosen: Tried, *, label: str, epsilon: float, noise: Any
) -> Report:
    from dpselect.report.guarantee import Guarantee
    from dpselect.report.record import Finding, Report, Spending

    in_unit = ""
    if answer.natural_unit != 1:
        scale = scale_of(chosen.name, chosen.mechanism) * float(answer.natural_unit)
        in_unit = f" ({at_most(scale)} in the unit of {asked.value or 'the reading'})"
    what = "category" if asked.categories is not None else asked.every
    notes = [
        "The answer is the winner after noise: one of the largest, not surely the largest. On simulated data of this "
        f"size it falls {percent(chosen.accuracy.shortfall)} of the range short on average."
    ]
    notes.append(f"Into the running sum of all answers about the same people goes ε = {at_most(epsilon)}.")
    if asked.is_series:
        notes.append("The rows were added up beforehand: the curator vouches for what one person can change.")
    return Report(
        title=f"The {what} with the largest value",
        findings=(
            Finding(
                question=f"For which {what} is {asked.measured} largest?",
                answer=label,
                spending=Spending(spent=(epsilon,), above=(), budget=epsilon),
            ),
        ),
        guarantee=Guarantee(epsilon=epsilon, neighbours=asked.neighbours, noise=noise),
        parameters=(
            *asked.parameters(answer.family, candidates=len(answer)),
            ("Mechanism", f"{chosen.name} noisy max" if chosen.name in ("gaussian", "laplace") else chosen.name),
            ("Noise", noise_in_words(chosen.name, chosen.mechanism) + in_unit),
        ),
        notes=tuple(notes),
        made=datetime.now(UTC).astimezone(),
    )


def _show_plan(
    asked: TableAsked, public: BoundedQuery, tried: dict[MechanismName, Tried], chosen: MechanismName, *, as_json: bool
) -> None:
    """What an answer would cost and how good it would be; nothing was asked."""
    from dpselect.report.guarantee import Guarantee

    costs = {name: float(one.mechanism.epsilon(candidates=len(public))) for name, one in tried.items()}
    weakness, unit = Guarantee(epsilon=costs[chosen]).weakness, float(public.natural_unit)
    hint = advice(chosen, tried)
    if as_json:
        for name, one in tried.items():
            screen.emit(
                {
                    "dry_run": True,
                    "mechanism": name,
                    "chosen": name == chosen,
                    "candidates": len(public),
                    "epsilon": costs[name],
                    **_scale(one),
                    "unit": unit,
                    "expected_shortfall": one.accuracy.shortfall,
                    "expected_hits": one.accuracy.hits,
                    **({"advice": hint} if name == chosen else {}),
                    **_note(weakness),
                }
            )
        return
    rows = [
        [
            f"→ {name}" if name == chosen else f"  {name}",
            at_most(costs[name]),
            noise_in_words(name, one.mechanism),
            *([at_most(scale_of(name, one.mechanism) * unit)] if unit != 1 else []),
            percent(one.accuracy.shortfall),
            percent(one.accuracy.hits),
        ]
        for name, one in tried.items()
    ]
    screen.table(
        f"Dry run: {len(public):,} candidates, {asked.measured}",
        [
            "mechanism",
            "pure ε ≤",
            "noise",
            *(["in the reading's unit"] if unit != 1 else []),
            "falls short",
            "best found",
        ],
        rows,
        note="Accuracy on a simulated series, as a share of the range. No value was read, nothing was spent.",
    )
    for line in (weakness, hint):
        if line is not None:
            screen.notice(line)
