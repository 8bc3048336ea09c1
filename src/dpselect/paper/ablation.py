"""What each saving is worth: one change to the published settings at a time, and all of them in turn.

The question is what ε buys the published F1 (that of σ_X = .09). A monotone family (counts, when a person is added or
removed), clipping to a band round the threshold, a free ratio of the two noises, one threshold kept for all questions,
and exponential in place of Gaussian noise (THEORY §5, §12). Settings are picked in hindsight, for every row alike.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold
from dpselect.paper.datasets import Series, load
from dpselect.paper.figure import Figure, Part, Table, generator_of, is_simulated
from dpselect.paper.online import CLIPS, RATIOS, clipped, gaussian
from dpselect.paper.sizes import Size
from dpselect.paper.style import COLOURS, drawn, note_simulated, panels
from dpselect.paper.watching import f1_scores, fresh_costs, kept_costs, verdicts_of

THRESHOLD, SIGMA = 0.575, 0.09
STREAMS = ("uci-2012", "uci")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Which savings are on."""

    monotone: bool = False
    clip: bool = False
    ratio: bool = False
    kept: bool = False
    exponential: bool = False

    def watches(self, series: Series, *, levels: int) -> list[AboveThreshold]:
        """The settings to pick from."""
        family = series.family(monotone=self.monotone)
        ratios = RATIOS if self.ratio else (math.sqrt(3),)
        if self.exponential:
            # What exponential noise costs does not depend on the range, so there is nothing to clip.
            return [
                ExponentialAboveThreshold(family, threshold=THRESHOLD, scale_threshold=scale, scale_query=ratio * scale)
                for ratio, scale in itertools.product(ratios, np.geomspace(0.002, 0.2, levels).tolist())
            ]
        clips = CLIPS if self.clip else (None,)
        return [
            gaussian(
                clipped(family, THRESHOLD, below=below, above=above), threshold=THRESHOLD, sigma=sigma, ratio=ratio
            )
            for below, above, ratio, sigma in itertools.product(
                clips, clips, ratios, np.geomspace(0.015, 0.3, levels).tolist()
            )
        ]


SAVINGS = {
    "monotone": "monotone accounting",
    "clip": "clip to the threshold",
    "ratio": r"free ratio $\sigma_Z/\sigma_X$",
    "kept": "keep the threshold",
    "exponential": "exponential noise",
}


def variants() -> dict[str, Variant]:
    """The published settings, each saving alone, and all up to each.

    >>> list(variants())[:3], list(variants())[-1]
    (['published', 'monotone', 'clip'], '+ exponential')
    """
    found = {"published": Variant()} | {name: replace(Variant(), **{name: True}) for name in SAVINGS}
    so_far = Variant()
    for name in SAVINGS:
        so_far = replace(so_far, **{name: True})
        found[f"+ {name}"] = so_far
    return found


def _parts(size: Size, *, data: Path | None) -> list[Part]:
    return [
        {
            "series": name,
            "fingerprint": load(name, data=data).fingerprint,
            "variant": variant,
            "levels": 2 * size.tuning,
            "runs": size.runs,
        }
        for name in STREAMS
        for variant in variants()
        if variant != "+ monotone"
    ]


def measure(part: Part, *, data: Path | None) -> Table:
    """Mean F1 and mean realised ε of every setting of one variant."""
    series, variant, generator = load(part["series"], data=data), variants()[part["variant"]], generator_of(part)
    truth = series.values >= THRESHOLD
    settings = variant.watches(series, levels=part["levels"])
    if part["variant"] == "published":
        settings.append(gaussian(series.family(), threshold=THRESHOLD, sigma=SIGMA))
    answers = verdicts_of(
        settings, values=series.values, passes=part["runs"], fresh=not variant.kept, generator=generator
    )
    price = kept_costs if variant.kept else fresh_costs
    rows = []
    for place, watch in enumerate(settings):
        costs = price(watch, verdicts=answers[:, place])
        scales = dict(zip(("scale_threshold", "scale_query"), watch.scales, strict=True))
        ranges = {"lower": watch.family.lower, "upper": watch.family.upper}
        f1 = float(f1_scores(answers[:, place], truth=truth).mean())
        rows.append(scales | ranges | {"f1": f1, "epsilon": float(costs.spent.mean())})
    shared = {"series": part["series"], "label": series.label, "simulated": series.simulated}
    return pd.DataFrame(rows).assign(**shared, variant=part["variant"])


def target_of(table: Table, series: str) -> float:
    """F1 of the published settings at σ_X = .09."""
    rows = table[(table["series"] == series) & (table["variant"] == "published")]
    return float(rows.loc[(rows["scale_threshold"] - SIGMA).abs().idxmin(), "f1"])


def least_epsilon(table: Table, *, f1: float) -> float:
    """The least ε that reaches ``f1``, between neighbouring noise levels of one setting; infinite where none does."""
    rows = table.assign(ratio=(table["scale_query"] / table["scale_threshold"]).round(6))
    found = math.inf
    for _, curve in rows.groupby(["lower", "upper", "ratio"]):
        ordered = curve.sort_values("epsilon")
        epsilon, reached = ordered["epsilon"].to_numpy(), np.maximum.accumulate(ordered["f1"].to_numpy())
        place = int(np.searchsorted(reached, f1))
        if place == len(reached):
            continue
        if place == 0:
            found = min(found, float(epsilon[0]))
            continue
        share = (f1 - reached[place - 1]) / (reached[place] - reached[place - 1])
        found = min(found, float(np.exp(np.interp(share, (0.0, 1.0), np.log(epsilon[place - 1 : place + 1])))))
    return found


def costs(table: Table) -> Table:
    """ε for the published F1, by stream: each saving alone and all up to it."""
    rows = []
    for name in dict.fromkeys(table["series"]):
        here, f1 = table[table["series"] == name], target_of(table, name)
        least = {variant: least_epsilon(rows, f1=f1) for variant, rows in here.groupby("variant")}
        least["+ monotone"] = least["monotone"]
        label = here["label"].iloc[0]
        rows.append({"stream": label, "F1": f1, "saving": "published", "alone": least["published"]})
        rows[-1]["with all above"] = least["published"]
        for saving in SAVINGS:
            row = {"stream": label, "F1": f1, "saving": saving, "alone": least[saving]}
            rows.append(row | {"with all above": least[f"+ {saving}"]})
    return pd.DataFrame(rows)


@drawn
def _draw(table: Table) -> Any:
    """Bars: alone and in turn, one panel per stream."""
    found = costs(table)
    streams = list(dict.fromkeys(found["stream"]))
    figure, axes = panels(columns=len(streams), width=11.0, height=4.2, sharex=True, sharey=True)
    names = ["as published", *SAVINGS.values()]
    for axis, stream in zip(axes[0], streams, strict=True):
        rows = found[found["stream"] == stream]
        for side, column, colour in (
            (-0.2, "alone", COLOURS["fsrc"]),
            (0.2, "with all above", COLOURS["tuned"]),
        ):
            bars = axis.barh(np.arange(len(rows)) + side, rows[column], 0.36, color=colour, label=column)
            axis.bar_label(bars, fmt="%.2f", padding=2, fontsize=8.5)
        axis.set_title(f"{stream}, F1 = {rows['F1'].iloc[0]:.3f}")
        axis.set_xlabel("realised ε, mean over the passes")
        axis.grid(axis="y", visible=False)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(right=1.14 * float(found[["alone", "with all above"]].to_numpy().max()))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note_simulated(figure, is_simulated(table))
    return figure


def _caption(table: Table) -> str:
    label = "; ".join(dict.fromkeys(table["label"]))
    return (
        f"{label}, ρ = {THRESHOLD:g}: ε for the F1 that the published settings reach at σ_X = {SIGMA:g}. All δ = "
        "0. Settings "
        "are picked in hindsight; the next figure picks them on another year. Differences of a few per cent are chance."
    )


ABLATION = Figure(
    title="What each saving is worth",
    parts=_parts,
    measure=measure,
    draw=_draw,
    caption=_caption,
    numbers=costs,
)
