"""How far a run has come: a callback, a bar with the remaining time, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from dpselect.checks import refuse

#: Called with (figure, parts finished, parts in all).
Report: TypeAlias = Callable[[str, int, int], None]
Progress: TypeAlias = Report | Literal["rich"] | None


@contextmanager
def reporting(progress: Progress, *, total: int) -> Iterator[Report]:
    """A function to call after every finished part."""
    if progress is None:
        yield lambda figure, done, all_: None
    elif callable(progress):
        yield progress
    elif progress == "rich":
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("remaining"),
            TimeRemainingColumn(),
        )
        with Bar(*columns) as bar:
            task = bar.add_task("starting", total=total)
            yield lambda figure, done, all_: bar.update(task, description=figure, completed=done, total=all_)
    else:
        raise refuse("progress", progress, "None, 'rich' or a function of (figure, done, total)")
