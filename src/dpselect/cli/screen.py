"""Where output goes: answers on standard output, everything about the work on standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class Progress(Protocol):
    """Told the share done, and what is being done now."""

    def __call__(self, share: float, doing: str | None = None, /) -> None:
        """Move the bar."""
        ...


def emit(record: Mapping[str, Any]) -> None:
    """One JSON object on one line, flushed, for machines.

    >>> emit({"epsilon": 0.1, "delta": 0.0})
    {"epsilon": 0.1, "delta": 0.0}
    """
    print(json.dumps(_plain(record), ensure_ascii=False, allow_nan=False), flush=True)


def _plain(value: Any) -> Any:
    """JSON has no infinities; they are written as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "infinity" if value > 0 else "-infinity" if value < 0 else "not a number"
    return value


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, note: str | None = None) -> None:
    """A table on standard output; columns of numbers line up on the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(Text(title, style="bold"))
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width, numeric in zip(columns, *_widths(columns, rows, within=console.width), strict=True):
        drawn.add_column(Text(column), justify="right" if numeric else "left", width=width)
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    # On a narrow screen lines run over its edge: a number broken over two lines, or cut, reads as a smaller one.
    Console(width=1000, soft_wrap=True).print(drawn)
    if note:
        console.print(Text(note, style="dim"))


def width() -> int:
    """How many signs a line on standard output takes."""
    from rich.console import Console

    return Console().width


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], *, within: int) -> tuple[list[int], list[bool]]:
    """Each column as wide as what it holds; where that is too much the widest give way, down to their longest word."""
    cells = [[row[index] for row in rows] for index in range(len(columns))]
    numeric = [all(cell[:1].isdigit() for cell in column) for column in cells]
    texts = [(heading, *column) for heading, column in zip(columns, cells, strict=True)]
    widths = [max(map(len, column)) for column in texts]
    floors = [max(_longest_word(text) for text in column) for column in texts]
    while sum(widths) + 3 * len(widths) > within:
        index = max(range(len(widths)), key=lambda i: (widths[i] - floors[i], widths[i]))
        if widths[index] == floors[index]:
            break
        widths[index] -= 1
    return widths, numeric


def _longest_word(text: str) -> int:
    indent = len(text) - len(text.lstrip())
    return indent + max(map(len, text.split()), default=0)


def entries(title: str, rows: Sequence[tuple[str, str]], *, note: str | None = None) -> None:
    """Names and texts side by side on standard output."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for name, text in rows:
        # A long word is broken, never cut: an anchor is to be copied.
        grid.add_row(Text(name, style="dim"), Text(text, overflow="fold"))
    console = Console()
    console.print(Text(title, style="bold"))
    console.print(Padding(grid, (0, 0, 0, 2)))
    if note is not None:
        console.print(Text(note, style="dim"))


def wrapped(text: str) -> str:
    """A sentence for standard error: broken between words to a terminal's width, whole where a program reads it."""
    if not sys.stderr.isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)


def notice(text: str, *, style: str = "yellow") -> None:
    """A sentence about the work on standard error."""
    from rich.console import Console
    from rich.text import Text

    try:
        Console(stderr=True).print(Text(wrapped(text), style=style), soft_wrap=True)
    except BrokenPipeError:
        raise
    except OSError:
        # A remark that finds no room must not turn an answer that was given into a failure.
        return


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """A bar on standard error that moves with the share done, from 0 to 1; nothing where nobody is watching."""
    if not sys.stderr.isatty():
        yield lambda _share, _doing=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)

        def move(share: float, now_doing: str | None = None) -> None:
            # Until the engine tells how far it is, a bar that only pulses says more than one at nothing.
            bar.update(task, total=1.0 if share > 0 else None, completed=share, description=now_doing or doing)

        yield move
