"""``dpselect plan``: which mechanism, how much noise, what to expect."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpselect.cli import options, screen
from dpselect.cli.epsilon import needed, refuse_given
from dpselect.cli.numbers import no_more_than, read_count, read_number
from dpselect.cli.plan_places import check_places
from dpselect.errors import InvalidParameter

if TYPE_CHECKING:
    from dpselect.planning.job import Job
    from dpselect.planning.planner import Comparison

_ASKED, _KNOWN, _OUTPUT = "What is asked", "What is public", "Output"


def plan(
    sensitivity: Annotated[
        Fraction | None,
        typer.Option("--sensitivity", parser=read_number, metavar="Δ", help="The most one person moves any query."),
    ] = None,
    epsilon: Annotated[
        Fraction | None,
        typer.Option("--epsilon", parser=read_number, metavar="ε", help="The budget.", rich_help_panel=_ASKED),
    ] = None,
    delta: Annotated[
        Fraction, typer.Option("--delta", parser=read_number, metavar="δ", help="0 is pure.", rich_help_panel=_ASKED)
    ] = Fraction(0),
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates", parser=read_count, metavar="D", help="Which of D is largest?", rich_help_panel=_ASKED
        ),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            "--questions",
            parser=read_count,
            metavar="N",
            help="Which of N questions reach the threshold? The length of the profile if left out.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    threshold: Annotated[
        Fraction | None,
        typer.Option("--threshold", parser=read_number, metavar="ρ", help="The public line.", rich_help_panel=_ASKED),
    ] = None,
    share: Annotated[
        Fraction | None,
        typer.Option(
            "--share",
            parser=read_number,
            metavar="S",
            help="Expected share of questions at or above it.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    wanted: Annotated[
        Fraction | None,
        typer.Option(
            "--wanted",
            parser=read_number,
            metavar="F1",
            help="The F1, or accuracy, to reach at the least ε.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    lower: options.Lower = Fraction(0),
    upper: options.Upper = Fraction(1),
    monotone: options.Monotone = False,
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="FILE",
            help="Past values: one number per line, a JSON list, or a CSV file with --column.",
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public", help="I declare that anyone may see the profile.", rich_help_panel=_KNOWN),
    ] = False,
    column: Annotated[
        str | None, typer.Option("--column", help="Column of the profile.", rich_help_panel=_KNOWN)
    ] = None,
    maximum: Annotated[
        Fraction | None,
        typer.Option(
            "--maximum",
            parser=read_number,
            metavar="M",
            help="A public number that the profile is divided by.",
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="KIND",
            help="worst-case, uniform or seasonal, without a profile.",
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    margin: Annotated[
        Fraction | None,
        typer.Option(
            "--margin",
            parser=read_number,
            metavar="W",
            help="For the worst case: how near the values come.",
            rich_help_panel=_KNOWN,
        ),
    ] = None,
    outlook: Annotated[str, typer.Option("--outlook", help="changing or steady.", rich_help_panel=_KNOWN)] = "changing",
    job: Annotated[
        Path | None, typer.Option("--job", metavar="FILE.toml", help="All of the above from a file.")
    ] = None,
    contender: Annotated[
        str | None,
        typer.Option("--contender", metavar="NAME", help="Save this one instead of the best.", rich_help_panel=_OUTPUT),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="NAME[,NAME…]", help="Tune these and no others.", rich_help_panel=_OUTPUT),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.toml", help="Keep the plan.", rich_help_panel=_OUTPUT)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.svg", help="Draw accuracy against budget.", rich_help_panel=_OUTPUT),
    ] = None,
    report: options.ReportFile = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the simulations; nothing private is drawn.")] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Which mechanism, how much noise, what accuracy: every contender tuned and ranked, on public knowledge only.

      [dim]$[/dim] dpselect plan --candidates 365 --epsilon 0.1 --sensitivity 1/6946 --monotone

      [dim]$[/dim] dpselect plan --profile 2011.csv --column registered --maximum 6946 --public
        --threshold 0.575 --epsilon 1 --sensitivity 1/6946 --monotone --save plan.toml

    In Python: planning.compare(Job(…)); planning.load_plan("plan.toml").mechanism().
    """
    from dpselect.planning.job import load_job
    from dpselect.planning.planner import compare

    check_places(save=save, plot=plot, report=report, inputs=[one for one in (profile, job) if one is not None])
    if job is not None:
        refuse_given(
            "--job; change the file, or",
            sensitivity=sensitivity,
            epsilon=epsilon,
            candidates=candidates,
            questions=questions,
            threshold=threshold,
            share=share,
            wanted=wanted,
            profile=profile,
            model=model,
            margin=margin,
        )
        asked = load_job(job)
    else:
        asked = _job(
            sensitivity=needed("sensitivity", sensitivity),
            epsilon=epsilon,
            delta=delta,
            candidates=candidates,
            questions=questions,
            threshold=threshold,
            share=share,
            wanted=wanted,
            lower=lower,
            upper=upper,
            monotone=monotone,
            known=_known(profile, public=public, column=column, maximum=maximum, model=model, margin=margin),
            outlook=outlook,
        )
    with screen.progress("tuning every contender") as move:
        chosen_few = None if only is None else [name.strip() for name in only.split(",")]
        comparison = compare(asked, contenders=chosen_few, seed=seed, on_progress=move)
    chosen = comparison.best if contender is None else comparison.plan(contender)
    written: dict[str, Any] = {}
    if save is not None:
        written["saved"] = str(chosen.save(save))
    written |= _pictures(comparison, plot=plot, report=report, seed=seed)
    if as_json:
        screen.emit({**comparison.as_document(), "chosen": chosen.contender, **written})
        return
    _show(comparison)
    for what, place in written.items():
        screen.notice(f"{what}: {place}", style="green")


def _known(
    profile: Path | None,
    *,
    public: bool,
    column: str | None,
    maximum: Fraction | None,
    model: str | None,
    margin: Fraction | None,
) -> Any:
    from dpselect.planning.knowledge import Model, read_profile

    if profile is not None:
        refuse_given("a profile", model=model, margin=margin)
        divisor = None if maximum is None else float(maximum)
        return read_profile(profile, public=public, column=column, maximum=divisor)
    refuse_given("a model; name a --profile, or", public=public or None, column=column, maximum=maximum)
    return Model(
        kind=model or "seasonal",  # type: ignore[arg-type]  # another word is refused there
        margin=None if margin is None else float(margin),
    )


def _job(
    *,
    sensitivity: Fraction,
    epsilon: Fraction | None,
    delta: Fraction,
    candidates: int | None,
    questions: int | None,
    threshold: Fraction | None,
    share: Fraction | None,
    wanted: Fraction | None,
    lower: Fraction,
    upper: Fraction,
    monotone: bool,
    known: Any,
    outlook: str,
) -> Job:
    from dpselect.planning.job import Job
    from dpselect.privacy.family import QueryFamily

    if candidates is not None and (questions is not None or threshold is not None):
        raise InvalidParameter("give --candidates (which is largest), or --threshold (which cross it), and not both")
    if questions is not None and threshold is None:
        raise InvalidParameter("--questions needs --threshold beside it")
    family = QueryFamily(
        lower=lower,  # type: ignore[arg-type]  # fractions are taken, and rounded to the safe side
        upper=upper,  # type: ignore[arg-type]
        sensitivity=sensitivity,  # type: ignore[arg-type]
        monotone=monotone,
    )
    return Job(
        asked="largest" if threshold is None else "crossings",
        family=family,
        count=candidates or questions or 0,
        epsilon=None if epsilon is None else no_more_than(epsilon),
        delta=no_more_than(delta),
        threshold=None if threshold is None else float(threshold),
        share=None if share is None else float(share),
        public=known,
        outlook=outlook,  # type: ignore[arg-type]  # another word is refused there
        wanted=None if wanted is None else float(wanted),
    )


def _pictures(comparison: Comparison, *, plot: Path | None, report: Path | None, seed: int) -> dict[str, str]:
    if plot is None and report is None:
        return {}
    from dpselect.planning.frontier import frontier
    from dpselect.report.page import write_page
    from dpselect.report.plan_page import plan_report
    from dpselect.report.plots import draw_frontier
    from dpselect.report.plots import save as save_plot

    with screen.progress("drawing the frontier") as move:
        found = frontier(comparison.job, seed=seed, on_progress=move)
    written = {}
    if plot is not None:
        written["plot"] = str(save_plot(draw_frontier(found), plot))
    if report is not None:
        written["report"] = str(write_page(plan_report(comparison, frontier=found), report))
    return written


def _show(comparison: Comparison) -> None:
    from dpselect.report.plan_page import expected, guarantee_in_words, parameters_in_words

    job = comparison.job
    names = [name for name, _ in expected(job, comparison.best)]
    rows = [
        [plan.title, guarantee_in_words(plan), *(text for _, text in expected(job, plan)), parameters_in_words(plan)]
        for plan in comparison.plans
    ]
    what = f"the largest of {job.count}" if job.asked == "largest" else f"{job.count} questions at {job.threshold:g}"
    screen.table(
        f"Contenders for {what}, best first",
        ["", "guarantee", *names, "parameters"],
        rows,
        note=f"A guess that looks at no data: {comparison.guess:.3f}. Nothing was spent.",
    )
    typer.echo(comparison.advice)
