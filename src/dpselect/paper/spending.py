"""ε spent by each day of a stream, under the paper's settings: the computation and drawing behind the spend figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.paper.baselines import honest_cost, lenient_cost, run_curve
from dpselect.paper.datasets import load
from dpselect.paper.online import PUBLISHED
from dpselect.paper.parts import Part, Table, generator_of
from dpselect.paper.sizes import Size
from dpselect.paper.style import drawn, note_simulated, panels
from dpselect.paper.watching import Watch, spent_by_day, verdicts_of


def spending_parts(
    name: str, *, thresholds: tuple[float, ...], sigmas: tuple[float, ...], size: Size, data: Path | None
) -> list[Part]:
    """One part per threshold and noise level."""
    fingerprint = load(name, data=data).fingerprint
    return [
        {"series": name, "fingerprint": fingerprint, "runs": size.runs, "threshold": threshold, "sigma": sigma}
        for threshold in thresholds
        for sigma in sigmas
    ]


def spending_measure(part: Part, *, data: Path | None) -> Table:
    """Mean, least and largest spend over the passes, by day and accounting."""
    series = load(part["series"], data=data)
    threshold, sigma, delta = part["threshold"], part["sigma"], 1.0 / series.population
    watch = Watch(family=series.family(), threshold=threshold, sigma_threshold=sigma, sigma_query=math.sqrt(3) * sigma)
    verdicts = verdicts_of(
        [watch], values=series.values, passes=part["runs"], fresh=True, generator=generator_of(part)
    )[:, 0]
    published, rounds = spent_by_day(watch, verdicts=verdicts)
    monotone, _ = spent_by_day(replace(watch, family=series.family(monotone=True)), verdicts=verdicts)
    curve = run_curve(population=series.population, threshold=threshold, sigma_threshold=sigma)
    costs = {
        "published": published,
        "lenient": lenient_cost(curve, rounds=rounds, delta=delta),
        "honest": honest_cost(curve, rounds=np.maximum(rounds, 1), delta=delta),
        "monotone": monotone,
    }
    tables = [
        pd.DataFrame(
            {
                "series": part["series"],
                "label": series.label,
                "simulated": series.simulated,
                "threshold": threshold,
                "sigma_threshold": sigma,
                "kind": kind,
                "day": np.arange(1, len(series.values) + 1),
                "epsilon": spent.mean(axis=1),
                "least": spent.min(axis=1),
                "largest": spent.max(axis=1),
                "rounds": rounds.mean(axis=1),
            }
        )
        for kind, spent in costs.items()
    ]
    return pd.concat(tables, ignore_index=True)


@drawn
def spending_draw(table: Table) -> Any:
    """Thresholds down, noise levels across; panels of one noise level share their axes."""
    thresholds, sigmas = sorted(table["threshold"].unique()), sorted(table["sigma_threshold"].unique())
    figure, axes = panels(
        len(thresholds),
        columns=len(sigmas),
        width=3.8 * len(sigmas) + 0.6,
        height=2.9 * len(thresholds) + 0.9,
        sharex=True,
        sharey="col",
    )
    for row, threshold in zip(axes, thresholds, strict=True):
        for axis, sigma in zip(row, sigmas, strict=True):
            here = table[(table["threshold"] == threshold) & (table["sigma_threshold"] == sigma)]
            for kind, (colour, _, label) in PUBLISHED.items():
                curve = here[here["kind"] == kind]
                axis.plot(curve["day"], curve["epsilon"], color=colour, label=label)
                axis.fill_between(curve["day"], curve["least"], curve["largest"], color=colour, alpha=0.18, linewidth=0)
            axis.set_title(rf"ρ = {threshold:g}, $\sigma_X$ = {sigma:g}")
        row[0].set_ylabel("privacy spent, ε")
    for axis in axes[0]:
        axis.set_ylim(bottom=0)
    axes[0, 0].set_xlim(0, table["day"].max())
    for axis in axes[-1]:
        axis.set_xlabel("day of the stream")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note_simulated(figure, bool(table["simulated"].any()))
    return figure


def spending_caption(table: Table) -> str:
    """What the reader sees on the last day."""
    last = table[table["day"] == table["day"].max()]
    sentences = []
    for (threshold, sigma), here in last.groupby(["threshold", "sigma_threshold"]):
        at = here.set_index("kind")["epsilon"]
        sentences.append(
            f"ρ = {threshold:g}, σ_X = {sigma:g}: FSRC {at['published']:.3g}, Whitehouse {at['lenient']:.3g} or "
            f"{at['honest']:.3g}, monotone {at['monotone']:.3g}."
        )
    return f"{table['label'].iloc[0]}. Lines: means over the passes; bands: all passes. Last day: {' '.join(sentences)}"
