"""A plot of what a sparse vector spent, question by question, with its ⊤ marked and its limit drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.advanced_filter import AdvancedFilter
from dpselect.composition.filter import Filter
from dpselect.composition.loss_table import loss_table
from dpselect.composition.pure_filter import PureFilter
from dpselect.composition.reporting_filters import PublishedReportingFilter, RepairedReportingFilter
from dpselect.composition.sparse_vector import SparseVector
from dpselect.composition.transcript import RunRecord
from dpselect.errors import SourceError
from dpselect.report.rounding import at_most

# Okabe and Ito's colours, told apart by every kind of eye.
_SPENT, _TOP, _LIMIT = "#0072b2", "#d55e00", "#000000"
#: Points computed inside one run; between them the curve takes the later, larger value.
_POINTS = 60


def spend_curve(svt: SparseVector, *, points: int = _POINTS) -> tuple[NDArray[np.int64], FloatArray]:
    """How many questions were answered, and what they had cost by then; never below the truth.

    Inside a run the cost is computed at up to ``points`` questions. A run whose mechanism is no longer the one in
    use is counted in full from its first question.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
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
    table = loss_table(svt.watcher)
    ended_alike = abs(table.loss(run.below, run.above) - run.epsilon) <= 1e-9 * run.epsilon
    if len(tops) != run.above or not ended_alike:
        return np.full(len(inside), run.epsilon)
    above = np.searchsorted(tops, inside, side="left")
    pairs = zip((inside - above).tolist(), above.tolist(), strict=True)
    return [min(table.loss(below, tops_so_far), run.epsilon) for below, tops_so_far in pairs]


def save_spend_plot(path: Path, *, svt: SparseVector) -> Path:
    """Draws the odometer over the questions; SVG or PNG by the file's ending.

    Everything shown is a function of the answers and of public parameters, so the plot may be published with them.

    Parameters
    ----------
    path : Path
        Where to write.
    svt : SparseVector
        What was asked so far.
    """
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        raise SourceError("plots need matplotlib; install dpselect[plots]") from None
    questions, epsilon = spend_curve(svt)
    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axes = figure.add_subplot()
    axes.step(questions, epsilon, where="pre", color=_SPENT, linewidth=1.8, label="spent")
    tops = svt.tops + 1
    tops = tops[tops > questions[0]]
    heights = epsilon[np.minimum(np.searchsorted(questions, tops), len(epsilon) - 1)]
    axes.plot(tops, heights, "o", color=_TOP, markersize=4 if len(tops) < 50 else 2.5, label=f"⊤ ({len(tops):,})")
    limit = _epsilon_limit(svt.filter)
    if limit is not None:
        kept = "" if not isinstance(svt.filter, PublishedReportingFilter) else " (published rule, not a promise)"
        label = f"limit ε = {at_most(limit)}{kept}"
        axes.axhline(limit, color=_LIMIT, linewidth=1.0, linestyle="--", label=label)
    axes.set(xlabel="questions answered", ylabel="ε (upper bound)")
    axes.set_ylim(bottom=0.0)
    axes.set_title(f"Spent ε = {at_most(svt.spent)} on {svt.questions:,} questions", loc="left", fontsize=11)
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # No date inside, so that the same plot is the same file.
        figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    except OSError as failure:
        raise SourceError(
            f"cannot write the plot to {str(path)!r} ({failure.strerror}); choose another place"
        ) from None
    return target


def _epsilon_limit(filter: Filter) -> float | None:
    """The limit where it is an ε; other filters count in other units."""
    counted = (PureFilter, RepairedReportingFilter, PublishedReportingFilter, AdvancedFilter)
    return filter.limit if isinstance(filter, counted) else None
