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
from dpselect.paper.figure import Measure, Part, Table, digest_of, measured

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


def tables_of(
    pieces: Sequence[Piece], *, data: Path | None, store: Store, workers: int, progress: Progress
) -> list[Table]:
    """Every piece's table, from the store where it can be; SIGTERM ends the work like an exit, workers and all."""
    found = [store.get(piece.figure, part=piece.part) for piece in pieces]
    missing = [place for place, table in enumerate(found) if table is None]
    done = len(pieces) - len(missing)
    with _ended_by_sigterm(), reporting(progress, total=len(pieces)) as report:
        report("from the cache", done, len(pieces))
        # Closed at once when anything here fails, which ends the workers.
        with closing(_computed(pieces, missing, data=data, workers=min(workers, len(missing)))) as computed:
            for place, table in computed:
                name, _, part = pieces[place]
                store.put(name, part=part, table=table)
                # Read back, so that a figure looks the same whether its parts were kept or new.
                found[place] = store.get(name, part=part)
                done += 1
                report(name, done, len(pieces))
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
                "a worker was ended from outside, perhaps for want of memory; what was finished is kept: run again to "
                "continue, with fewer ‹jobs›"
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

    # Otherwise a worker whose parent was killed works on, and then waits for ever for the next part.
    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM raises like an exit, so that the workers are ended too; only a main thread can be told."""
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


# --- what is kept ----------------------------------------------------------------------------------------------------


@cache
def code_digest() -> str:
    """Changes with any file the numbers depend on, so that none computed by other code is ever shown."""
    home = Path(dpselect.__file__).parent
    digest = hashlib.sha256()
    rooms = ("checks.py", "numerics/*.py", "privacy/*.py", "mechanisms/*.py", "planning/simulation.py", "paper/*.py")
    for path in sorted(path for room in rooms for path in home.glob(room)):
        digest.update(path.relative_to(home).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Store:
    """One Parquet file per finished part, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, figure: str, *, part: Part) -> Path:
        """Where a part's table lies."""
        name = digest_of({"figure": figure, "part": part, "code": code_digest()})[:24]
        return self.folder / f"{figure}-{name}.parquet"

    def get(self, figure: str, *, part: Part) -> Table | None:
        """The finished table; None where there is none, or where it was damaged and is to be computed again."""
        try:
            return pd.read_parquet(self.path(figure, part=part))
        except (pyarrow.ArrowException, OSError):
            return None

    def put(self, figure: str, *, part: Part, table: Table) -> None:
        """Keeps a finished table; a crash leaves the old state or the new one."""
        path = self.path(figure, part=part)
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh_file(path, what="finished part") as fresh:
            table.to_parquet(fresh, index=False)
            fresh.replace(path)


# --- how far it has come ---------------------------------------------------------------------------------------------


@contextmanager
def reporting(progress: Progress, *, total: int) -> Iterator[Report]:
    """A function to call after every finished part; with "rich", an interrupted run says how to go on."""
    if progress != "rich":
        yield progress or (lambda figure, done, all_: None)
        return
    last = 0

    def counted(figure: str, done: int, all_: int) -> None:
        nonlocal last
        last = done
        show(figure, done, all_)

    try:
        with _bar(total) if sys.stderr.isatty() else _lines() as show:
            yield counted
    except (KeyboardInterrupt, SystemExit):
        said = f"Stopped with {last} of {total} parts done and kept; run again to continue."
        print(said, file=sys.stderr, flush=True)
        raise


@contextmanager
def _bar(total: int) -> Iterator[Report]:
    """A bar with the remaining time."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (*Bar.get_default_columns(), TextColumn("left,"), MofNCompleteColumn(), TextColumn("parts"))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda figure, done, all_: bar.update(task, description=f"{figure:<20}", completed=done, total=all_)


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
