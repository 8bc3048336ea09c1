"""ε by each day of a stream, under the paper's settings (paper, appendix D)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from dpselect.paper.baselines import READINGS, run_curve
from dpselect.paper.datasets import load
from dpselect.paper.figure import Figure, Part, Table, generator_of, is_simulated
from dpselect.paper.online import ACCOUNTINGS, Panel, gaussian
from dpselect.paper.sizes import Size
from dpselect.paper.style import COLOURS, drawn, note_simulated, panels
from dpselect.paper.watching import spent_by_day, verdicts_of


def _parts(chosen: tuple[Panel, ...], sigmas: tuple[float, ...], size: Size, *, data: Path | None) -> list[Part]:
    """One part per panel."""
    return [
        {
            "series": name,
            "fingerprint": load(name, data=data).fingerprint,
            "runs": size.runs,
            "threshold": threshold,
            "sigma": sigma,
        }
        for name, threshold in chosen
        for sigma in sigmas
    ]


def measure(part: Part, *, data: Path | None) -> Table:
    """Mean and the middle 90% of the passes, by day and accounting."""
    series = load(part["series"], data=data)
    threshold, sigma, delta = part["threshold"], part["sigma"], 1.0 / series.population
    watch = gaussian(series.family(), threshold=threshold, sigma=sigma)
    generator = generator_of(part)
    verdicts = verdicts_of([watch], values=series.values, passes=part["runs"], fresh=True, generator=generator)[:, 0]
    published, rounds = spent_by_day(watch, verdicts=verdicts)
    monotone, _ = spent_by_day(replace(watch, family=series.family(monotone=True)), verdicts=verdicts)
    curve = run_curve(population=series.population, threshold=threshold, sigma_threshold=sigma)
    costs: dict[str, FloatArray] = {"fsrc": published, "monotone": monotone}
    costs |= {name: cost(curve, rounds=rounds, delta=delta) for name, cost in READINGS.items()}
    tables = []
    for kind, spent in costs.items():
        low, high = np.quantile(spent, (0.05, 0.95), axis=1)
        row: dict[str, Any] = {"series": part["series"], "label": series.label, "simulated": series.simulated}
        row |= {"threshold": threshold, "sigma_threshold": sigma, "kind": kind}
        row |= {"day": np.arange(1, len(series.values) + 1), "epsilon": spent.mean(axis=1)}
        tables.append(pd.DataFrame(row | {"low": low, "high": high, "rounds": rounds.mean(axis=1)}))
    return pd.concat(tables, ignore_index=True)


@drawn
def _draw(table: Table) -> Any:
    """Streams and thresholds down, noise levels across; panels of one noise level share their scale."""
    rows = list(table.groupby(["series", "threshold"], sort=False).groups)
    sigmas = sorted(table["sigma_threshold"].unique())
    size: dict[str, Any] = {"width": 3.7 * len(sigmas) + 0.6, "height": 2.5 * len(rows) + 1.3}
    figure, axes = panels(len(rows), columns=len(sigmas), **size, sharey="col", sharex="row")
    for line, (name, threshold) in zip(axes, rows, strict=True):
        for axis, sigma in zip(line, sigmas, strict=True):
            chosen = (table["series"] == name) & (table["threshold"] == threshold)
            here = table[chosen & (table["sigma_threshold"] == sigma)]
            for kind, (_, label) in ACCOUNTINGS.items():
                curve, dashes = here[here["kind"] == kind], "-" if label.startswith("realised") else "--"
                axis.plot(curve["day"], curve["epsilon"], dashes, color=COLOURS[kind], label=label, lw=1.5)
                axis.fill_between(curve["day"], curve["low"], curve["high"], color=COLOURS[kind], alpha=0.15, lw=0)
            axis.set_xlim(0, here["day"].max())
            axis.set_title(rf"{here['label'].iloc[0]}, ρ = {threshold:g}, $\sigma_X$ = {sigma:g}", fontsize=9.5)
        line[0].set_ylabel("privacy spent, ε")
    for axis in axes[0]:
        axis.set_ylim(bottom=0)
    for axis in axes[-1]:
        axis.set_xlabel("day of the stream")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note_simulated(figure, is_simulated(table))
    return figure


def _caption(table: Table) -> str:
    label = "; ".join(dict.fromkeys(table["label"]))
    return (
        f"{label}. Lines: means over the passes; bands: the middle 90%. Solid: realised losses, a valid reading on any "
        "day; dashed: the filter's figure for the runs so far, which is none for a day picked by looking: that would "
        "take an odometer, as the paper notes."
    )


def _numbers(table: Table) -> Table:
    """The last day."""
    keys = ["label", "threshold", "sigma_threshold"]
    last = table[table["day"] == table.groupby("series")["day"].transform("max")]
    return last.pivot(index=keys, columns="kind", values="epsilon").reset_index()[[*keys, *ACCOUNTINGS]]


def _spending(title: str, *chosen: Panel, sigmas: tuple[float, ...]) -> Figure:
    return Figure(
        title=title,
        parts=partial(_parts, chosen, sigmas),
        measure=measure,
        draw=_draw,
        caption=_caption,
        numbers=_numbers,
    )


UCI = _spending(
    "Privacy spent over time on UCI Bikes",
    ("uci-2012", 0.575),
    ("uci", 0.575),
    ("uci", 0.85),
    sigmas=(0.09, 0.12, 0.15),
)
LCL = _spending("Privacy spent over time on Low Carbon London", ("lcl", 0.33), ("lcl", 0.8), sigmas=(0.04, 0.1, 0.16))
