"""Figure "loss-threshold": the loss of a halted run as the public threshold moves (paper, Section 3.3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpselect.paper.parts import Part, Table, gather
from dpselect.paper.sizes import QUICK, Size
from dpselect.paper.style import drawn, panels, plain_log, ramp
from dpselect.privacy.above_threshold import transcript_epsilon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Above threshold: loss of a halted run against the threshold ρ"
SENSITIVITY = 1e-3
SIGMA_THRESHOLD = 0.15
STEPS = (2, 5, 10, 25, 50, 200)
#: Half-width of the clip in the third panel.
CLIP = 0.1

_PANELS = {
    "published": "Queries in [0, 1], as in the paper",
    "monotone": "Monotone family",
    "clipped": f"Monotone, clipped to ρ ± {CLIP:g}",
}


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """One part."""
    return [{"thresholds": np.linspace(0.0, 1.0, 2 * size.curve - 1).tolist(), "steps": list(STEPS)}]


def measure(part: Part, *, data: Path | None = None) -> Table:
    """ε(⊥^(t−1)⊤) over (t, ρ), three ways."""
    step, threshold = (grid.ravel() for grid in np.meshgrid(part["steps"], part["thresholds"], indexing="ij"))
    shared: dict[str, Any] = {
        "sensitivity": SENSITIVITY,
        "threshold": threshold,
        "sigma_threshold": SIGMA_THRESHOLD,
        "sigma_query": math.sqrt(3) * SIGMA_THRESHOLD,
        "below": step - 1,
        "above": 1,
    }
    clipped: dict[str, Any] = {"lower": np.maximum(threshold - CLIP, 0.0), "upper": np.minimum(threshold + CLIP, 1.0)}
    return pd.DataFrame(
        {
            "step": step,
            "threshold": threshold,
            "published": transcript_epsilon(**shared, lower=0.0, upper=1.0),
            "monotone": transcript_epsilon(**shared, lower=0.0, upper=1.0, monotone=True),
            "clipped": transcript_epsilon(**shared, **clipped, monotone=True),
        }
    )


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


@drawn
def draw(table: Table) -> Figure:
    """Three panels on the same axes; dots mark each curve's least loss."""
    figure, axes = panels(columns=3, width=11.5, height=4.2, sharex=True, sharey=True)
    steps = sorted(table["step"].unique())
    for axis, (name, title) in zip(axes[0], _PANELS.items(), strict=True):
        for step, colour in zip(steps, ramp(len(steps)), strict=True):
            curve = table[table["step"] == step].sort_values("threshold")
            axis.plot(curve["threshold"], curve[name], color=colour, label=f"t = {int(step)}")
            least = curve.loc[curve[name].idxmin()]
            axis.plot([least["threshold"]], [least[name]], "o", color=colour, ms=5, clip_on=False)
        axis.set_title(title)
        axis.set_yscale("log")
        axis.set_xlabel("public threshold ρ")
    plain_log(axes[0, 0].yaxis)
    axes[0, 0].set_ylabel("loss ε of halting at step t")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(steps))
    return figure


def least_at(table: Table, *, step: int) -> float:
    """The ρ at which halting at ``step`` costs least, as published."""
    curve = table[table["step"] == step]
    return float(curve.loc[curve["published"].idxmin(), "threshold"])


def caption(table: Table) -> str:
    """What the reader sees."""
    return (
        f"Δ = {SENSITIVITY:g}, σ_X = {SIGMA_THRESHOLD:g}, σ_Z = √3·σ_X. Dots mark the least loss of each curve: "
        f"ρ = {least_at(table, step=2):.2f} for t = 2, ρ = {least_at(table, step=50):.2f} for t = 50. Clipping the "
        "queries to a band round the threshold keeps Δ and removes most of the dependence on ρ."
    )
