"""``dpselect watch``: when is a line crossed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpselect.cli import line_options, options, screen
from dpselect.cli import table_options as given
from dpselect.cli.asking import TableAsked
from dpselect.cli.epsilon import refuse_given
from dpselect.cli.failures import BAD_INPUT, BUDGET_EXHAUSTED, DONE
from dpselect.cli.line_options import STREAM_LENGTH
from dpselect.cli.watch_line import Line, read_plan
from dpselect.cli.watch_output import Told, ready_for_report, show_plan, show_verdicts, write_report

if TYPE_CHECKING:
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily


def watch(
    data: Annotated[str, typer.Argument(help=given.DATA_HELP + " Left out or -: standard input.")] = "-",
    threshold: line_options.Threshold = None,
    budget: line_options.Budget = None,
    plan: line_options.PlanFile = None,
    clip: line_options.Clip = None,
    sigma_threshold: line_options.SigmaThreshold = None,
    sigma_query: line_options.SigmaQuery = None,
    expect: line_options.Expect = None,
    keep_threshold: line_options.KeepThreshold = False,
    lower: line_options.Lower = None,
    upper: line_options.Upper = None,
    questions: line_options.Questions = None,
    user: given.User = None,
    time: given.Time = None,
    value: given.Value = None,
    wide: given.Wide = False,
    time_format: given.TimeFormat = None,
    duplicates: given.Duplicates = "keep",
    start: given.From = None,
    end: given.To = None,
    every: given.EveryOption = "day",
    timezone: given.Timezone = None,
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
    """On which days (hours, …) is the line crossed? Asked in order, within a budget.

      [dim]$[/dim] dpselect watch readings.parquet --user meter --time at --value kwh
        --cap 50 --population 5564 --from 2013-01-01 --to 2013-12-31
        --threshold 14 --clip 3 --budget 1

    Or question by question, in a pipe; JSON lines out, exit code 3 when the budget ends:

      [dim]$[/dim] producer | dpselect watch --sensitivity 1/6946 --threshold 0.575
        --budget 1

    In Python: SparseVector(GaussianAboveThreshold(…), budget).ask(value).
    """
    from dpselect.noise.entropy import SYSTEM_ENTROPY, SeededEntropy

    if dry_run:
        refuse_given("--dry-run, which gives no answer", report=report, show_sensitive=show_sensitive or None)
    ready_for_report(report, inputs=(data, plan))
    entropy: Entropy = SYSTEM_ENTROPY if seed is None else SeededEntropy(seed)
    line = Line(
        threshold=threshold,
        budget=budget,
        clip=clip,
        sigma_threshold=sigma_threshold,
        sigma_query=sigma_query,
        expect=expect,
        keep_threshold=keep_threshold,
        plan=None if plan is None else read_plan(plan),
    )
    if data == "-":
        refuse_given(
            "questions on standard input (no table was named)",
            user=user,
            time=time,
            value=value,
            wide=wide or None,
            cap=cap,
            population=population,
            maximum=maximum,
            table=table,
            time_format=time_format,
            timezone=timezone,
            grid=grid,
            delimiter=delimiter,
            duplicates=None if duplicates == "keep" else duplicates,
            every=None if every == "day" else every,
            measure=None if measure == "mean" else measure,
            per_user=None if per_user == "sum" else per_user,
            adjacency=None if adjacency == "add-remove" else adjacency,
            backend=None if backend == "duckdb" else backend,
            show_sensitive=show_sensitive or None,
            **{"from": start, "to": end},
        )
        code = _watch_stream(
            line,
            line.stream_family(lower=lower, upper=upper, sensitivity=sensitivity, monotone=monotone),
            questions=STREAM_LENGTH if questions is None else questions,
            entropy=entropy,
            dry_run=dry_run,
            report=report,
            as_json=as_json,
        )
    else:
        refuse_given("a table", lower=lower, upper=upper, questions=questions)
        asked = TableAsked(
            data=data,
            table=table,
            backend=backend,
            delimiter=delimiter,
            user=user,
            time=time,
            value=value,
            category=None,
            wide=wide,
            time_format=time_format,
            duplicates=duplicates,
            start=start,
            end=end,
            every=every,
            timezone=timezone,
            categories=None,
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
        code = _watch_table(
            line,
            asked,
            entropy=entropy,
            dry_run=dry_run,
            report=report,
            as_json=as_json,
            show_sensitive=show_sensitive,
        )
    raise typer.Exit(code)


def _watch_stream(
    line: Line,
    family: QueryFamily,
    *,
    questions: int,
    entropy: Entropy,
    dry_run: bool,
    report: Path | None,
    as_json: bool,
) -> int:
    from dpselect.cli.stream import answer_lines

    watching = line.watching(family, questions=questions)
    told = Told(watching=watching, keep=report is not None)
    told.warn_of_the_line(as_json=as_json)
    if dry_run:
        show_plan(told, as_json=as_json)
        return DONE
    vector = watching.build(entropy)
    told.warn(vector)
    ended, refused = answer_lines(
        _standard_input(), vector, write=screen.emit, answered=lambda above: told.add(above, vector)
    )
    screen.emit(told.summary(vector, ended=ended))
    if report is not None:
        write_report(told, vector, report, ended=ended)
    if ended:
        told.say_ended(vector)
        return BUDGET_EXHAUSTED
    if refused:
        lines = "1 line was" if refused == 1 else f"{refused:,} lines were"
        screen.notice(f"error: {lines} refused; nothing was spent on what was refused", style="red")
        return BAD_INPUT
    return DONE


def _standard_input() -> Iterable[str]:
    """Lines as they come, whatever bytes they hold; a line without end is cut where no question is so long."""
    if sys.stdin.isatty():
        screen.notice("Reading questions from the keyboard, one number a line; end with Ctrl-D.", style="dim")
    source = getattr(sys.stdin, "buffer", None)
    if source is None:
        yield from sys.stdin
        return
    while chunk := source.readline(1 << 16):
        text = chunk.decode("utf-8", errors="replace")
        yield text
        while chunk and not chunk.endswith(b"\n"):
            chunk = source.readline(1 << 16)


def _watch_table(
    line: Line,
    asked: TableAsked,
    *,
    entropy: Entropy,
    dry_run: bool,
    report: Path | None,
    as_json: bool,
    show_sensitive: bool,
) -> int:
    public = asked.public_side()
    watching = line.watching(public.family, questions=len(public), unit=public.natural_unit)
    told = Told(
        watching=watching,
        unit=public.natural_unit,
        asked=asked,
        labels=public.labels,
        keep=True,
    )
    told.warn_of_the_line(as_json=as_json)
    if dry_run:
        asked.check()
        show_plan(told, as_json=as_json)
        return DONE
    answer = asked.read()
    vector = watching.build(entropy)
    told.warn(vector)
    show_verdicts(told, vector, answer, as_json=as_json, page=report is not None)
    ended = vector.questions < len(answer)
    if report is not None:
        write_report(told, vector, report, ended=ended)
    if show_sensitive:
        from dpselect.cli.peak import show_curator

        show_curator(answer)
    if ended:
        told.say_ended(vector)
        return BUDGET_EXHAUSTED
    return DONE
