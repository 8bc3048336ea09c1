"""Every figure from one call: parts spread over processes, finished ones kept, one page at the end."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

import pandas as pd

from dpselect.checks import refuse
from dpselect.paper.catalogue import FIGURES
from dpselect.paper.claims import judge
from dpselect.paper.datasets import data_folder
from dpselect.paper.fetching import fetch_bikes
from dpselect.paper.page import Section, write_page
from dpselect.paper.parts import Part, Table
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
    home = Path(out)
    folder = data_folder(None if data is None else Path(data))
    if fetch:
        folder = fetch_bikes(home / "data", beside=folder)
    chosen = size if size is not None else QUICK if quick else FULL
    tables = _tables(names, size=chosen, data=folder, store=Store(home / "cache"), workers=workers, progress=progress)
    sections = []
    for name, table in tables.items():
        (home / "tables").mkdir(parents=True, exist_ok=True)
        table.to_csv(home / "tables" / f"{name}.csv", index=False)
        module = FIGURES[name]
        image, _ = save(module.draw(table), stem=home / "figures" / name)
        sections.append(Section(name=name, title=module.TITLE, caption=module.caption(table), image=image, table=table))
    verdicts = judge(tables)
    verdicts.to_csv(home / "tables" / "claims.csv", index=False)
    return write_page(home / "report.html", sections=sections, claims=verdicts, size=chosen)


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
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        running: dict[Future[Table], int] = {pool.submit(_measured, *work[place], data): place for place in missing}
        try:
            for finished in as_completed(running):
                keep(running[finished], finished.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
