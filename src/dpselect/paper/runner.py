"""Every figure from one call: parts spread over processes, finished ones kept, one page at the end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from dpselect import files
from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.paper.catalogue import FIGURES
from dpselect.paper.claims import Claim, unjudged
from dpselect.paper.datasets import data_folder
from dpselect.paper.fetching import fetch_bikes
from dpselect.paper.figure import Part, Table, is_simulated
from dpselect.paper.page import Section, page_text
from dpselect.paper.progress import Progress, reporting
from dpselect.paper.sizes import FULL, QUICK, Size
from dpselect.paper.store import Store
from dpselect.paper.style import save


def run(
    figures: Iterable[str] | None = None,
    *,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress = None,
    fetch: bool = False,
    size: Size | None = None,
) -> Path:
    """Computes and draws figures of the paper, judges its claims, and writes one page.

    Finished parts are kept under ``out/cache`` by their parameters and the package's code; a run that was stopped goes
    on where it was. Use it under ``if __name__ == "__main__":`` in a script, since it starts processes.

    Parameters
    ----------
    figures : iterable of str, optional
        Keys of :data:`FIGURES`; all without it.
    out : path
        Receives ``report.html``, ``figures/*.png`` and ``*.svg``, ``tables/*.csv`` and ``cache/``.
    data : path, optional
        The data folder (see :mod:`dpselect.paper.datasets`); without it ``DPSELECT_DATA``; without either, simulated
        stand-ins, and every figure says so.
    quick : bool
        Smaller grids and fewer trials.
    jobs : int, optional
        Processes; as many as there are cores without it. 1 works in this process.
    progress : "rich", callable or None
        A bar with the remaining time, or a function of (figure, parts done, parts in all).
    fetch : bool
        Download UCI Bikes from its publisher into ``out/data``, where it is not in the data folder.
    size : Size, optional
        Other counts than those of ``quick``.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from dpselect.paper.sizes import TINY
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run(["loss-threshold"], out=folder, size=TINY, jobs=1).name
    'report.html'
    """
    names = list(FIGURES) if figures is None else list(dict.fromkeys(figures))
    for name in names:
        if name not in FIGURES:
            raise refuse("figure", name, f"one of {', '.join(FIGURES)}")
    if not names:
        raise refuse("figures", names, "at least one name, or None for all")
    workers = os.cpu_count() or 1 if jobs is None else jobs
    if workers < 1:
        raise refuse("jobs", jobs, "a whole number, 1 or more")
    if not (progress is None or progress == "rich" or callable(progress)):
        raise refuse("progress", progress, "None, 'rich' or a function of (figure, done, total)")
    home = Path(out)
    folder = data_folder(None if data is None else Path(data))
    page = _claimed(home)
    if fetch:
        folder = fetch_bikes(home / "data", beside=folder)
    chosen = size if size is not None else QUICK if quick else FULL
    with ended_by_sigterm():
        tables = _tables(
            names, size=chosen, data=folder, store=Store(home / "cache"), workers=workers, progress=progress
        )
    sections = []
    for name, table in tables.items():
        _keep(table, home / "tables" / f"{name}.csv")
        figure = FIGURES[name]
        image = save(figure.draw(table), stem=home / "figures" / name)
        numbers = None if figure.numbers is None else figure.numbers(table)
        if numbers is not None:
            _keep(numbers, home / "tables" / f"{name}-numbers.csv")
        sections.append(
            Section(
                name=name,
                title=figure.title,
                caption=figure.caption(table),
                image=image,
                table=table,
                numbers=numbers,
            )
        )
    verdicts = judge(tables)
    _keep(verdicts, home / "tables" / "claims.csv")
    return files.write(page, page_text(sections=sections, claims=verdicts, size=chosen), files.PAGE)


def judge(tables: Mapping[str, Table]) -> Table:
    """The claims that these figures' tables decide, in the order of the report; none is judged on a stand-in.

    >>> judge({}).columns.tolist()
    ['where', 'claim', 'rule', 'verdict', 'found', 'setting']
    """
    found = [
        unjudged(claim) if is_simulated(table) else claim
        for name, table in tables.items()
        for claim in FIGURES[name].claims(table)
    ]
    return pd.DataFrame([claim.row() for claim in found], columns=Claim.columns())


def _claimed(home: Path) -> Path:
    """The page's place; refused before any work where it cannot be written, or holds a stranger's page."""
    files.check_folder(home, what="figures")
    try:
        for folder in ("cache", "figures", "tables"):
            (home / folder).mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise files.refused_place("figures", home, failure.strerror or "it cannot be made") from None
    files.check(home / "report.html", files.PAGE)
    return home / "report.html"


def _keep(table: Table, path: Path) -> None:
    with files.fresh_file(path, what="table") as fresh:
        table.to_csv(fresh, index=False)
        fresh.replace(path)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the work like an exit, so that its workers are ended too; only a main thread can be told."""
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


def _measured(name: str, part: Part, data: Path | None) -> Table:
    return FIGURES[name].measure(part, data=data)


def _tables(
    names: list[str], *, size: Size, data: Path | None, store: Store, workers: int, progress: Progress
) -> dict[str, Table]:
    """Every figure's table, from the store where it can be."""
    work = [(name, part) for name in names for part in FIGURES[name].parts(size, data=data)]
    found = {place: store.get(name, part=part) for place, (name, part) in enumerate(work)}
    missing = [place for place, table in found.items() if table is None]
    with reporting(progress, total=len(work)) as report:
        done = len(work) - len(missing)
        report("from the cache", done, len(work))

        def keep(place: int, table: Table) -> None:
            nonlocal done
            name, part = work[place]
            store.put(name, part=part, table=table)
            # Read back, so that a figure looks the same whether its parts were kept or new.
            found[place] = store.get(name, part=part)
            done += 1
            report(name, done, len(work))

        if workers == 1 or len(missing) <= 1:
            for place in missing:
                keep(place, _measured(*work[place], data))
        else:
            _spread(work, missing=missing, data=data, workers=min(workers, len(missing)), keep=keep)
    grouped: dict[str, list[Table]] = {name: [] for name in names}
    for place, (name, _) in enumerate(work):
        table = found[place]
        if table is not None:
            grouped[name].append(table.dropna(axis="columns", how="all"))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in grouped.items()}


def _spread(
    work: list[tuple[str, Part]],
    *,
    missing: list[int],
    data: Path | None,
    workers: int,
    keep: Callable[[int, Table], None],
) -> None:
    """The missing parts over processes, each kept as soon as it is finished."""
    # Fresh interpreters: a copied one may hold the locks of numerical threads that it does not have.
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(max_workers=workers, mp_context=context, initializer=_settle) as pool:
        running: dict[Future[Table], int] = {pool.submit(_measured, *work[place], data): place for place in missing}
        try:
            for finished in as_completed(running):
                keep(running[finished], finished.result())
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
