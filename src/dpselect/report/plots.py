"""Every plot: what an answer costs, what was spent, accuracy against budget. Matplotlib is loaded when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect import files
from dpselect.checks import FloatArray
from dpselect.errors import SourceError
from dpselect.report.palette import BLACK, BLUE, LINES, MARKS, PALE, VERMILION
from dpselect.report.record import Spending
from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.composition.transcript import RunRecord
    from dpselect.planning.frontier import Frontier

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
    """What a run with these ⊤ had cost after so many of its questions."""
    from dpselect.composition.loss_table import loss_table

    table = loss_table(svt.watcher)
    ended_alike = abs(table.loss(run.below, run.above) - run.epsilon) <= 1e-9 * run.epsilon
    if len(tops) != run.above or not ended_alike:
        return np.full(len(inside), run.epsilon)
    above = np.searchsorted(tops, inside, side="left")
    pairs = zip((inside - above).tolist(), above.tolist(), strict=True)
    return [min(table.loss(below, tops_so_far), run.epsilon) for below, tops_so_far in pairs]


def save_spend_plot(path: Path, *, svt: SparseVector) -> Path:
    """Draws what was spent over the questions, ⊤ marked, with the limit where it is an ε.

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
    axes.plot(tops, heights, "o", color=VERMILION, markersize=4 if len(tops) < 50 else 2.5, label=f"⊤ ({len(tops):,})")
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


_WIDTH, _HEIGHT = 720.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 12.0, 22.0, 40.0
#: From a number to a place on the drawing.
Scale: TypeAlias = Callable[[float], float]

#: More steps than this are finer than a pixel.
_FINEST = 600


def spending_svg(spending: Spending) -> str:
    """ε spent after each answer, ⊤ marked, the budget dashed: in the page's own colours, without Matplotlib.

    Parameters
    ----------
    spending : Spending
        The odometer after each answer.

    Returns
    -------
    str
        An ``<svg>`` element.

    Examples
    --------
    >>> drawing = spending_svg(Spending(spent=(0.1, 0.3), above=(1,), budget=1.0, last="tuesday"))
    >>> drawing.startswith("<svg"), drawing.count("<circle"), "tuesday" in drawing  # one mark, one in the legend
    (True, 2, True)
    """
    count = len(spending.spent)
    top = max(spending.budget, max(spending.spent, default=0.0))

    def across(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * place / max(1, count)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value / top if top > 0 else 0.0)

    base, budget = up(0.0), up(spending.budget)
    told = (
        f"ε spent over {count} answers, {at_most(spending.spent[-1]) if count else '0'} of {at_most(spending.budget)}"
    )
    parts = [
        f'<svg class="odometer" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(told)}">',
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{base:.1f}H{_WIDTH - _RIGHT:g}"/>',
        f'<path class="limit" d="M{_LEFT:g} {budget:.1f}H{_WIDTH - _RIGHT:g}"/>',
        f'<text x="{_LEFT + 6:g}" y="{budget - 6:.1f}">budget ε = {at_most(spending.budget)}</text>',
        f'<path class="spent" d="{_steps(spending.spent, across, up)}"/>',
        *_marks(spending, across, up),
        f'<text x="{_LEFT - 6:g}" y="{base + 4:.1f}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 6:g}" y="{(base + budget) / 2:.1f}" text-anchor="end">ε</text>',
        f'<text x="{_LEFT:g}" y="{_HEIGHT - 14:g}">{escape(spending.first)}</text>',
        f'<text x="{_WIDTH - _RIGHT:g}" y="{_HEIGHT - 14:g}" text-anchor="end">{escape(spending.last)}</text>',
        f'<circle class="above" cx="{_WIDTH / 2 - 46:g}" cy="{_HEIGHT - 18:g}" r="3.5"/>' if spending.above else "",
        f'<text x="{_WIDTH / 2 - 38:g}" y="{_HEIGHT - 14:g}">answered above</text>' if spending.above else "",
        "</svg>",
    ]
    return "".join(parts)


def _kept(places: Sequence[int]) -> list[int]:
    """Places thinned to about one per pixel, the last one always kept."""
    stride = max(1, -(-len(places) // _FINEST))
    thinned = list(places[stride - 1 :: stride])
    return thinned if not places or thinned[-1:] == [places[-1]] else [*thinned, places[-1]]


def _steps(spent: Sequence[float], across: Scale, up: Scale) -> str:
    path = [f"M{across(0):.1f} {up(0.0):.1f}"]
    for place in _kept(range(len(spent))):
        path.append(f"H{across(place + 1):.1f}V{up(spent[place]):.1f}")
    return "".join(path)


def _marks(spending: Spending, across: Scale, up: Scale) -> list[str]:
    return [
        f'<circle class="above" cx="{across(place + 1):.1f}" cy="{up(spending.spent[place]):.1f}" r="3.5"/>'
        for place in _kept(spending.above)
    ]
