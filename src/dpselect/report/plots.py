"""Plots by Matplotlib, loaded when one is drawn: what was spent or charged, accuracy against budget."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpselect import files
from dpselect.checks import FloatArray
from dpselect.errors import SourceError
from dpselect.report.record import Across, Charged
from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.composition.transcript import RunRecord
    from dpselect.planning.budgets import Frontier

# Okabe and Ito's colours, which every kind of eye can tell apart, and marks that stay apart without colour.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE = "#777777", "#999999"

#: In the order in which lines of one plot take them.
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, PALE)
MARKS = "osD^vP*X"

#: Points computed inside one run; between them the curve takes the later, larger value.
_POINTS = 60


def save(figure: Any, path: Path | str) -> Path:
    """Writes a Matplotlib figure as SVG, PNG or PDF by the file's ending; the folder is made if need be."""
    from matplotlib import rc_context

    target = Path(path)
    drawn = io.BytesIO()
    with rc_context({"svg.hashsalt": "dpselect"}):
        # No date inside, so that the same plot is the same file.
        figure.savefig(drawn, format=target.suffix[1:] or None, metadata={"Date": None} if _is_svg(target) else None)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise files.refused_place("drawing", target, failure.strerror or "it cannot be written") from None
    return files.write(target, drawn.getvalue(), files.DRAWING)


def _is_svg(path: Path) -> bool:
    return path.suffix.lower() == ".svg"


def _axes(*, width: float = 7.2, height: float = 3.8) -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        raise SourceError("plots need matplotlib; install dpselect[plots]") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def spend_curve(svt: SparseVector, *, points: int = _POINTS) -> tuple[NDArray[np.int64], FloatArray]:
    """How many questions were answered, and what they had cost by then; never below the truth.

    Inside a run the cost is computed at up to ``points`` questions. A run whose mechanism is no longer the one in
    use is counted in full from its first question.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily, SparseVector
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
    >>> svt = SparseVector(watcher, budget=9.0)
    >>> _ = svt.ask_many([0.0, 1.0, 0.0])
    >>> questions, epsilon = spend_curve(svt)
    >>> questions.tolist(), bool(epsilon[-1] >= svt.spent)
    ([0, 1, 2, 3], True)
    """
    records = list(svt.runs)
    if svt.open_run is not None:
        records.append(svt.open_run)
    lengths = [run.below + run.above for run in records]
    start = svt.questions - sum(lengths)
    spent = max(0.0, svt.spent - sum(run.epsilon for run in records))
    questions, epsilon = [np.array([start])], [np.array([spent])]
    tops = svt.tops
    for run, length in zip(records, lengths, strict=True):
        inside = np.unique(np.linspace(1, length, min(length, points)).astype(np.int64))
        first, last = np.searchsorted(tops, [start, start + length])
        costs = _inside(svt, run, tops[first:last] - start, inside)
        questions.append(start + inside)
        epsilon.append(spent + np.maximum.accumulate(costs))
        start, spent = start + length, spent + run.epsilon
    # Covers the rounding of these sums, which are for the eye; what was spent is added exactly elsewhere.
    return np.concatenate(questions), np.concatenate(epsilon) * (1.0 + 1e-10)


def _inside(
    svt: SparseVector, run: RunRecord, tops: NDArray[np.int64], inside: NDArray[np.int64]
) -> FloatArray | list[float]:
    """What a run with these answers above had cost after so many of its questions."""
    from dpselect.composition.loss_table import loss_table

    table = loss_table(svt.watcher)
    ended_alike = abs(table.loss(run.below, run.above) - run.epsilon) <= 1e-9 * run.epsilon
    if len(tops) != run.above or not ended_alike:
        return np.full(len(inside), run.epsilon)
    above = np.searchsorted(tops, inside, side="left")
    pairs = zip((inside - above).tolist(), above.tolist(), strict=True)
    return [min(table.loss(below, tops_so_far), run.epsilon) for below, tops_so_far in pairs]


def save_spend_plot(path: Path, *, svt: SparseVector) -> Path:
    """Draws what was spent over the questions, those answered above marked, with the limit where it is an ε.

    Everything shown is a function of the answers and of public parameters, so the plot may be published with them.

    Parameters
    ----------
    path : Path
        Where to write; SVG or PNG by its ending.
    svt : SparseVector
        What was asked so far.
    """
    figure, axes = _axes()
    questions, epsilon = spend_curve(svt)
    axes.step(questions, epsilon, where="pre", color=BLUE, linewidth=1.8, label="spent")
    tops = svt.tops + 1
    tops = tops[tops > questions[0]]
    heights = epsilon[np.minimum(np.searchsorted(questions, tops), len(epsilon) - 1)]
    axes.plot(
        tops,
        heights,
        "o",
        color=VERMILION,
        markersize=4 if len(tops) < 50 else 2.5,
        label=f"answered above ({len(tops):,})",
    )
    limit = _epsilon_limit(svt)
    if limit is not None:
        axes.axhline(limit[0], color=BLACK, linewidth=1.0, linestyle="--", label=limit[1])
    axes.set(xlabel="questions answered", ylabel="ε (upper bound)")
    axes.set_ylim(bottom=0.0)
    axes.set_title(f"Spent ε = {at_most(svt.spent)} on {svt.questions:,} questions", loc="left", fontsize=11)
    axes.legend(frameon=False)
    return save(figure, path)


def _epsilon_limit(svt: SparseVector) -> tuple[float, str] | None:
    """The limit and its label where it is an ε; other filters count in other units."""
    from dpselect.composition.declared import AdvancedFilter
    from dpselect.composition.realised import PublishedReportingFilter, PureFilter, RepairedReportingFilter

    kept = svt.filter
    if not isinstance(kept, (PureFilter, RepairedReportingFilter, PublishedReportingFilter, AdvancedFilter)):
        return None
    remark = " (published rule, not a promise)" if isinstance(kept, PublishedReportingFilter) else ""
    return kept.limit, f"limit ε = {at_most(kept.limit)}{remark}"


def draw_frontier(found: Frontier) -> Any:
    """Score against ε, one line per contender, as a Matplotlib figure; bars show the stated uncertainty."""
    from dpselect.planning.contender import TITLES

    figure, axes = _axes(width=7.6, height=4.6)
    for place, (key, line) in enumerate(found.lines.items()):
        points = [(plan.epsilon, plan.prediction) for plan in line if plan.prediction is not None]
        if not points:
            continue
        delta = line[0].delta
        axes.errorbar(
            [epsilon for epsilon, _ in points],
            [prediction.score for _, prediction in points],
            yerr=[prediction.uncertainty for _, prediction in points],
            color=LINES[place % len(LINES)],
            marker=MARKS[place % len(MARKS)],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.8,
            label=TITLES[key] + (f" (δ = {at_most(delta, digits=3)})" if delta else ""),
        )
    axes.axhline(found.guess, color=PALE, linestyle=":", linewidth=1.2, label="a guess that looks at no data")
    if found.job.epsilon is not None:
        axes.axvline(found.job.epsilon, color=PALE, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    budgets = sorted({plan.epsilon for line in found.lines.values() for plan in line})
    axes.set_xticks(budgets, [at_most(budget, digits=3) for budget in budgets])
    axes.minorticks_off()
    axes.set_ylim(None, 1.02)
    axes.set(xlabel="privacy budget ε", ylabel="accuracy" if found.job.asked == "largest" else "F1")
    axes.legend(fontsize=7.5, loc="best")
    return figure


def frontier_svg(found: Frontier) -> str:
    """The frontier as SVG, the same text every time."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "dpselect", "svg.fonttype": "none"}):
        draw_frontier(found).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def save_charged_plot(path: Path, charged: Charged, *, title: str, across: Across = "time") -> Path:
    """What a ledger has charged, as PNG, PDF or SVG by the file's ending."""
    figure, axes = _axes()
    moments = charged.moments()
    over = moments if across == "time" else list(range(1, len(charged.at) + 1))
    axes.step(over, charged.spent, where="post", color=BLUE, linewidth=1.8, label="charged")
    label = f"total {charged.unit} = {at_most(charged.total)}"
    axes.axhline(charged.total, color=BLACK, linewidth=1.0, linestyle="--", label=label)
    axes.set(xlabel=across, ylabel=f"{charged.unit} (upper bound)")
    axes.set_ylim(0.0, 1.05 * charged.total)
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, loc="center right")
    if across == "time":
        figure.autofmt_xdate(rotation=0, ha="center")
        if moments[0] == moments[-1]:
            axes.set_xlim(moments[0] - timedelta(hours=1), moments[0] + timedelta(hours=1))
    return save(figure, path)
