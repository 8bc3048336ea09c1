"""The work behind the figures: parts spread over processes, finished ones kept on disk, progress told.

A finished part is found again by its parameters and by the code that computed it, so that a run that was stopped goes
on where it was.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pandas as pd
import pyarrow

import dpselect
from dpselect.errors import SourceError
from dpselect.files import fresh_file
from lebensold2024.figure import Measure, Part, Table, digest_of, measured

#: Called with (figure, parts finished, parts in all).
Report: TypeAlias = Callable[[str, int, int], None]
Progress: TypeAlias = Report | Literal["rich"] | None

#: Seconds between lines where standard error is not a terminal.
BETWEEN_LINES = 15.0


class Piece(NamedTuple):
    """One part of a figure, and how it is computed."""

    figure: str
    measure: Measure
    part: Part

    def path(self, folder: Path) -> Path:
        """Where the finished table is kept; the name changes with the parameters and with the code."""
        name = digest_of({"figure": self.figure, "part": self.part, "code": code_digest()})[:24]
        return folder / f"{self.figure}-{name}.parquet"

    def kept(self, folder: Path) -> Table | None:
        """The finished table; None where there is none, or where it was damaged and is to be computed again."""
        try:
            return pd.read_parquet(self.path(folder))
        except (pyarrow.ArrowException, OSError):
            return None

    def keep(self, table: Table, folder: Path) -> None:
        """Keeps a finished table, whole or not at all."""
        with fresh_file(self.path(folder), what="finished part") as fresh:
            table.to_parquet(fresh, index=False)
            fresh.replace(self.path(folder))


def tables_of(
    pieces: Sequence[Piece], *, data: Path | None, cache: Path, workers: int, progress: Progress
) -> list[Table]:
    """Every piece's table, from the cache where it can be; SIGTERM ends the work like an exit, workers and all."""
    found = [piece.kept(cache) for piece in pieces]
    missing = [place for place, table in enumerate(found) if table is None]
    done = len(pieces) - len(missing)
    try:
        with _ended_by_sigterm(), _reporting(progress) as report:
            report("from the cache", done, len(pieces))
            # Closed at once when anything here fails, which ends the workers.
            with closing(_computed(pieces, missing, data=data, workers=min(workers, len(missing)))) as computed:
                for place, table in computed:
                    pieces[place].keep(table, cache)
                    # Read back, so that a figure looks the same whether its parts were kept or new.
                    found[place] = pieces[place].kept(cache)
                    done += 1
                    report(pieces[place].figure, done, len(pieces))
    except (KeyboardInterrupt, SystemExit):
        if progress == "rich":
            said = f"Stopped with {done} of {len(pieces)} parts done and kept; run again to continue."
            print(said, file=sys.stderr, flush=True)
        raise
    return found


def _computed(
    pieces: Sequence[Piece], missing: list[int], *, data: Path | None, workers: int
) -> Generator[tuple[int, Table]]:
    """The missing tables, each as soon as it is finished."""
    if workers <= 1:
        for place in missing:
            yield place, measured(pieces[place].measure, pieces[place].part, data=data)
        return
    # Fresh interpreters: a copied one may hold the locks of numerical threads that it does not have.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(max_workers=workers, mp_context=context, initializer=_settle) as pool:
        running: dict[Future[Table], int] = {
            pool.submit(measured, pieces[place].measure, pieces[place].part, data=data): place for place in missing
        }
        try:
            for finished in as_completed(running):
                yield running[finished], finished.result()
        except BrokenProcessPool:
            raise SourceError(
                "a worker was ended from outside, perhaps because memory ran out; what was finished is kept: run again "
                "to continue, with fewer ‹jobs›"
            ) from None
        except BaseException:
            # A part can take a minute; whoever asked to stop should not wait for it.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def _settle() -> None:
    """A worker leaves Ctrl-C, which reaches every process of a terminal, to the first one, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    # Otherwise a worker whose parent was killed would go on, and then wait for ever for the next part.
    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM raises like an exit, so that the workers are ended too; only a main thread can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    earlier = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


@cache
def code_digest() -> str:
    """Changes with any file of dpselect or of this folder, so that no number computed by other code is ever shown."""
    digest = hashlib.sha256()
    for home in (Path(dpselect.__file__).parent, Path(__file__).parent):
        for path in sorted(home.rglob("*.py")):
            digest.update(path.relative_to(home.parent).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


# --- how far it has come ---------------------------------------------------------------------------------------------


@contextmanager
def _reporting(progress: Progress) -> Iterator[Report]:
    """A function to call after every finished part."""
    if progress != "rich":
        yield progress or (lambda figure, done, total: None)
    elif sys.stderr.isatty():
        with _bar() as report:
            yield report
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Report]:
    """A bar with the remaining time."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (*Bar.get_default_columns(), TextColumn("left,"), MofNCompleteColumn(), TextColumn("parts"))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda figure, done, total: bar.update(task, description=f"{figure:<20}", completed=done, total=total)


def _lines() -> Report:
    """A line at the start, every quarter of a minute, and at the end."""
    started, shown, kept = time.monotonic(), float("-inf"), -1

    def report(figure: str, done: int, total: int) -> None:
        nonlocal shown, kept
        now = time.monotonic()
        # What was found in the cache took no time.
        kept = done if kept < 0 else kept
        if now - shown < BETWEEN_LINES and done < total:
            return
        shown = now
        new = done - kept
        left = f", about {(now - started) / new * (total - done):.0f} s left" if new and done < total else ""
        print(f"{done} of {total} parts done, {now - started:.0f} s{left} ({figure})", file=sys.stderr, flush=True)

    return report
