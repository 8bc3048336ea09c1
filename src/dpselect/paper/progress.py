"""How far a run has come: a bar with the remaining time, lines where nobody watches a bar, a callback, or silence."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from dpselect.checks import refuse

#: Called with (figure, parts finished, parts in all).
Report: TypeAlias = Callable[[str, int, int], None]
Progress: TypeAlias = Report | Literal["rich"] | None

#: Seconds between lines where standard error is not a terminal.
BETWEEN_LINES = 15.0


@contextmanager
def reporting(progress: Progress, *, total: int) -> Iterator[Report]:
    """A function to call after every finished part; an interrupted run says how to go on."""
    if progress is None:
        yield lambda figure, done, all_: None
    elif callable(progress):
        yield progress
    elif progress == "rich":
        last = [0, total]

        def counted(show: Report) -> Report:
            def report(figure: str, done: int, all_: int) -> None:
                last[:] = [done, all_]
                show(figure, done, all_)

            return report

        try:
            with _bar(total) if sys.stderr.isatty() else _lines() as show:
                yield counted(show)
        except (KeyboardInterrupt, SystemExit):
            print(
                f"Stopped with {last[0]} of {last[1]} parts done and kept; run again to continue.",
                file=sys.stderr,
                flush=True,
            )
            raise
    else:
        raise refuse("progress", progress, "None, 'rich' or a function of (figure, done, total)")


@contextmanager
def _bar(total: int) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("parts,"),
        TimeElapsedColumn(),
        TextColumn("elapsed, about"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda figure, done, all_: bar.update(task, description=figure, completed=done, total=all_)


@contextmanager
def _lines() -> Iterator[Report]:
    """A line at the start, every quarter of a minute, and at the end."""
    started, shown, kept = time.monotonic(), float("-inf"), -1

    def report(figure: str, done: int, all_: int) -> None:
        nonlocal shown, kept
        now = time.monotonic()
        # What was found in the cache took no time.
        kept = done if kept < 0 else kept
        if now - shown < BETWEEN_LINES and done < all_:
            return
        shown = now
        new = done - kept
        left = f", about {(now - started) / new * (all_ - done):.0f} s left" if new and done < all_ else ""
        print(f"{done} of {all_} parts done, {now - started:.0f} s{left} ({figure})", file=sys.stderr, flush=True)

    yield report
