"""The figures by name, in the order of the report, and one call that computes, draws and judges them on one page.

The page is one HTML file in the style of all reports, which needs nothing beside it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

import dpselect
from dpselect import files
from dpselect.checks import refuse
from dpselect.report.page import document, table_html
from lebensold2024 import above_threshold, budget_stop, noisy_max, offline, online, published, slips, tuned
from lebensold2024.ablation import ABLATION
from lebensold2024.datasets import data_folder
from lebensold2024.figure import FULL, QUICK, Claim, Figure, Size, Table, is_simulated, tidy
from lebensold2024.monte_carlo import MONTE_CARLO
from lebensold2024.style import save
from lebensold2024.work import Piece, Progress, tables_of

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
        The data folder (see :mod:`lebensold2024.datasets`); without it ``DPSELECT_DATA``; without either, simulated
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
    >>> from lebensold2024.figure import TINY
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
        from lebensold2024.sources import fetch_bikes

        folder = fetch_bikes(home / "data", beside=folder)
    chosen = size if size is not None else QUICK if quick else FULL
    pieces = [
        Piece(name, FIGURES[name].measure, part) for name in names for part in FIGURES[name].work(chosen, data=folder)
    ]
    found = tables_of(pieces, data=folder, cache=home / "cache", workers=workers, progress=progress)
    done = list(zip(pieces, found, strict=True))
    whole = {
        name: tidy(table.dropna(axis="columns", how="all") for piece, table in done if piece.figure == name)
        for name in names
    }
    verdicts = judge(whole)
    _keep(verdicts, home / "tables" / "claims.csv")
    sections = [_section(name, table, home=home) for name, table in whole.items()]
    return files.write(page, _page_text(whole, sections=sections, claims=verdicts, size=chosen), files.PAGE)


def judge(tables: Mapping[str, Table]) -> Table:
    """The claims that these figures' tables decide, in the order of the report; none is judged on a stand-in.

    >>> judge({}).columns.tolist()
    ['where', 'claim', 'rule', 'verdict', 'found', 'setting']
    """
    rows = [row for name, table in tables.items() for row in FIGURES[name].judged(table)]
    return pd.DataFrame(rows, columns=list(Claim.__dataclass_fields__))


def _section(name: str, table: Table, *, home: Path) -> str:
    """Draws a figure, keeps its tables and its drawing, and gives its part of the page."""
    figure = FIGURES[name]
    _keep(table, home / "tables" / f"{name}.csv")
    numbers = "" if figure.numbers is None else _numbers(figure.numbers(table), home / "tables" / f"{name}-numbers.csv")
    image = base64.b64encode(save(figure.drawn(table), stem=home / "figures" / name)).decode("ascii")
    simulated = '<p class="banner">Simulated stand-in data.</p>' if is_simulated(table) else ""
    return (
        f'<h2 id="{escape(name)}">{escape(figure.title)}</h2>{simulated}'
        f'<figure><div class="scroll"><img alt="{escape(figure.title)}" src="data:image/png;base64,{image}"></div>'
        f"<figcaption>{_text(figure.caption(table))}</figcaption></figure>{numbers}"
    )


def _numbers(table: Table, path: Path) -> str:
    """The small table under a figure, kept and shown."""
    _keep(table, path)
    names = [str(name).replace("sigma_threshold", "σ_X") for name in table.columns]
    names = [name if _SUBSCRIPT.search(name) else name.replace("_", " ") for name in names]
    rows = [[cell(value) for value in row] for row in table.itertuples(index=False)]
    told = table_html(names, rows, kind="numbers", told=_text)
    return f'<details open><summary>Numbers</summary><div class="scroll">{told}</div></details>'


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


# --- the page --------------------------------------------------------------------------------------------------------

_STYLE = """
main { max-width: 72rem; }
a { color: var(--accent); }
nav ol { columns: 18rem; column-gap: 2.5rem; font-size: .95rem; padding-left: 1.8rem; }
nav li { break-inside: avoid; }
figure img { width: 100%; height: auto; display: block; background: #fff; border-radius: .3rem; padding: .4rem; }
figcaption { margin-top: .6rem; }
.numbers { font-size: .88rem; width: 100%; }
.stacked td:nth-child(5) { min-width: 16rem; }
.verdict { font-weight: 600; white-space: nowrap; }
.held { color: var(--good); } .not { color: var(--warn-ink); } .depends { color: var(--accent); }
details { margin: .6rem 0; } summary { color: var(--soft); cursor: pointer; }
@media (max-width: 46rem) { .numbers td { white-space: nowrap; } .stacked td:nth-child(5) { min-width: 0; } }
"""

_SUBSCRIPT = re.compile(r"([σε])_(X|Z|max)")
_CLASSES = {"held": "held", "did not hold": "not", "depends": "depends"}


def _page_text(tables: Mapping[str, Table], *, sections: Iterable[str], claims: Table, size: Size) -> str:
    """The page with every image inside it."""
    contents = "".join(f'<li><a href="#{escape(name)}">{escape(FIGURES[name].title)}</a></li>' for name in tables)
    return document(
        "The paper, checked",
        f"""<h1>Selection with Gaussian noise: the paper, checked</h1>
<p class="small">Figures and claims of “On the Privacy of Selection Mechanisms with Gaussian Noise” (AISTATS 2024),
recomputed with dpselect {escape(dpselect.__version__)} at {escape(size.name)} size, with what came after beside them.
Costs are upper bounds, rounded up; what is marked “as published”, the wrong side of the corrections and Monte Carlo’s
estimates are not.</p>
{_notice([name for name, table in tables.items() if is_simulated(table)])}
<nav><ol><li><a href="#claims">Claims</a></li>{contents}</ol></nav>
<h2 id="claims">Claims</h2>
{_claims(claims)}
{"".join(sections)}
<footer class="small"><p>Made with dpselect. The tables behind the figures are in <code>tables/</code>, the figures as
PNG and SVG in <code>figures/</code>.</p></footer>""",
        style=_STYLE,
    )


def _notice(names: list[str]) -> str:
    if not names:
        return ""
    return (
        f'<p class="banner"><strong>Simulated data.</strong> No data file was found for {escape(", ".join(names))}: '
        "stand-ins were drawn and their claims are not judged. Name a data folder to use the real data.</p>"
    )


def _claims(claims: Table) -> str:
    if claims.empty:
        return "<p>None of the figures computed here decides a claim.</p>"
    summary = ", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items())
    table = table_html(list(claims.columns), claims.to_numpy().tolist(), kind="stacked", told=_text)
    return f'<p class="small">{escape(summary)}.</p><div class="scroll">{table}</div>'


def _text(text: str) -> str:
    """Plain text as HTML: σ_X, σ_Z and ε_max with their subscripts, a verdict in its colour."""
    if text in _CLASSES:
        return f'<span class="verdict {_CLASSES[text]}">{text}</span>'
    return _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escape(text))


def cell(value: Any) -> str:
    """A cell as people read it.

    >>> cell(0.123456), cell(365.0), cell("UCI"), cell(float("inf"))
    ('0.1235', '365', 'UCI', 'never')
    """
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return ""
    if abs(value) == float("inf"):
        return "never"
    return f"{value:.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.4g}"
