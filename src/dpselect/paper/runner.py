"""The figures by name, in the order of the report, and one call that computes, draws and judges them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from dpselect import files
from dpselect.checks import refuse
from dpselect.paper import above_threshold, budget_stop, noisy_max, offline, online, published, slips, tuned
from dpselect.paper.ablation import ABLATION
from dpselect.paper.datasets import data_folder
from dpselect.paper.figure import FULL, QUICK, Claim, Figure, Size, Table
from dpselect.paper.monte_carlo import MONTE_CARLO
from dpselect.paper.page import Section, page_text
from dpselect.paper.style import save
from dpselect.paper.work import Piece, Progress, Store, tables_of

#: Name → figure.
FIGURES: dict[str, Figure] = {
    "epsilon-candidates": noisy_max.CURVES,
    "heatmap-max": noisy_max.HEAT_MAP,
    "population": noisy_max.SWEEP,
    "monte-carlo": MONTE_CARLO,
    "quadrature": slips.QUADRATURE,
    "heatmap-at": above_threshold.HEAT_MAP,
    "loss-threshold": above_threshold.LOSSES,
    "offline-near": offline.NEAR,
    "offline-lcl": offline.LCL,
    "offline-uci": offline.UCI,
    "online-uci": online.UCI,
    "online-lcl": online.LCL,
    "separation": published.SEPARATION,
    "spend-uci": published.SPENT_UCI,
    "spend-lcl": published.SPENT_LCL,
    "budget-stop": budget_stop.STOP,
    "cap": budget_stop.CAP,
    "ablation": ABLATION,
    "transfer": tuned.TRANSFER,
    "rare-events": tuned.RARE,
    "corrections": slips.CORRECTIONS,
}


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
    >>> from dpselect.paper.figure import TINY
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
    home, folder = Path(out), data_folder(None if data is None else Path(data))
    page = _claimed(home)
    if fetch:
        from dpselect.paper.sources import fetch_bikes

        folder = fetch_bikes(home / "data", beside=folder)
    chosen = size if size is not None else QUICK if quick else FULL
    pieces = [
        Piece(name, FIGURES[name].measure, part) for name in names for part in FIGURES[name].parts(chosen, data=folder)
    ]
    found = tables_of(pieces, data=folder, store=Store(home / "cache"), workers=workers, progress=progress)
    whole = {
        name: pd.concat(
            [
                table.dropna(axis="columns", how="all")
                for piece, table in zip(pieces, found, strict=True)
                if piece.figure == name
            ],
            ignore_index=True,
        )
        for name in names
    }
    verdicts = judge(whole)
    _keep(verdicts, home / "tables" / "claims.csv")
    sections = [_section(name, table, home=home) for name, table in whole.items()]
    return files.write(page, page_text(sections=sections, claims=verdicts, size=chosen), files.PAGE)


def judge(tables: Mapping[str, Table]) -> Table:
    """The claims that these figures' tables decide, in the order of the report; none is judged on a stand-in.

    >>> judge({}).columns.tolist()
    ['where', 'claim', 'rule', 'verdict', 'found', 'setting']
    """
    rows = [row for name, table in tables.items() for row in FIGURES[name].judged(table)]
    return pd.DataFrame(rows, columns=list(Claim.__dataclass_fields__))


def _section(name: str, table: Table, *, home: Path) -> Section:
    """Draws a figure, and keeps its tables beside it."""
    figure = FIGURES[name]
    _keep(table, home / "tables" / f"{name}.csv")
    numbers = None if figure.numbers is None else figure.numbers(table)
    if numbers is not None:
        _keep(numbers, home / "tables" / f"{name}-numbers.csv")
    image = save(figure.drawn(table), stem=home / "figures" / name)
    return Section(
        name=name, title=figure.title, caption=figure.caption(table), image=image, table=table, numbers=numbers
    )


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
