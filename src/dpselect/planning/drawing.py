"""The frontier as a picture: score against ε, one line per contender. Matplotlib is loaded when a picture is made."""

from __future__ import annotations

import io
from typing import Any

from dpselect.planning.contender import TITLES
from dpselect.planning.frontier import Frontier
from dpselect.planning.shown import shown

#: Colours that stay apart for colour-blind readers (Okabe and Ito), and marks that stay apart without colour.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
_MARKS = "osD^vP*X"


def draw_frontier(found: Frontier) -> Any:
    """A Matplotlib figure; bars show the stated uncertainty."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.6), layout="constrained")
    axis = figure.add_subplot()
    for place, (key, line) in enumerate(found.lines.items()):
        points = [(plan.epsilon, plan.prediction) for plan in line if plan.prediction is not None]
        if not points:
            continue
        delta = line[0].delta
        axis.errorbar(
            [epsilon for epsilon, _ in points],
            [prediction.score for _, prediction in points],
            yerr=[prediction.uncertainty for _, prediction in points],
            color=_COLOURS[place % len(_COLOURS)],
            marker=_MARKS[place % len(_MARKS)],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.8,
            label=TITLES[key] + (f" (δ = {shown(delta)})" if delta else ""),
        )
    axis.axhline(found.guess, color="#999999", linestyle=":", linewidth=1.2, label="a guess that looks at no data")
    if found.job.epsilon is not None:
        axis.axvline(found.job.epsilon, color="#999999", linestyle="--", linewidth=0.8)
    axis.set_xscale("log")
    budgets = sorted({plan.epsilon for line in found.lines.values() for plan in line})
    axis.set_xticks(budgets, [shown(budget) for budget in budgets])
    axis.minorticks_off()
    axis.set_ylim(None, 1.02)
    axis.set_xlabel("privacy budget ε")
    axis.set_ylabel("accuracy" if found.job.asked == "largest" else "F1")
    axis.grid(alpha=0.25)
    axis.legend(fontsize=7.5, loc="best")
    return figure


def frontier_svg(found: Frontier) -> str:
    """The picture as SVG, the same text every time."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "dpselect", "svg.fonttype": "none"}):
        draw_frontier(found).savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
