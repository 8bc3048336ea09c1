"""What each saving is worth: one change to the published settings at a time, and all of them in turn.

The question is what ε buys the published F1 (that of σ_X = .09). A monotone family (counts, when a person is added or
removed), clipping to a band round the threshold, a free ratio of the two noises, one threshold kept for all questions,
and exponential in place of Gaussian noise (THEORY §5, §12). Settings are picked in hindsight, for every row alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold
from dpselect.privacy.family import QueryFamily
from lebensold2024.datasets import Series
from lebensold2024.figure import Figure, Part, Row, Table, generator_of, least_cost, series_in
from lebensold2024.online import CLIPS, RATIOS, mean_rows, tuned_settings
from lebensold2024.passes import gaussian
from lebensold2024.style import COLOURS, legend, panels

THRESHOLD, SIGMA = 0.575, 0.09
STREAMS = ("uci-2012", "uci")


SAVINGS = {
    "monotone": "monotone accounting",
    "clip": "clip to the threshold",
    "ratio": r"free ratio $\sigma_Z/\sigma_X$",
    "kept": "keep the threshold",
    "exponential": "exponential noise",
}


def variants() -> dict[str, tuple[str, ...]]:
    """Which savings are on: none as published, each alone, and all up to each.

    >>> variants()["published"], variants()["clip"], variants()["+ clip"]
    ((), ('clip',), ('monotone', 'clip'))
    """
    names = tuple(SAVINGS)
    so_far = {f"+ {name}": names[:count] for count, name in enumerate(names, 1)}
    return {"published": ()} | {name: (name,) for name in names} | so_far


def settings_of(savings: tuple[str, ...], series: Series, *, levels: int) -> list[AboveThreshold]:
    """The settings to pick from."""
    family = series.family(monotone="monotone" in savings)
    ratios = RATIOS if "ratio" in savings else (math.sqrt(3),)
    if "exponential" in savings:
        # What exponential noise costs does not depend on the range, so there is nothing to clip.
        scales = np.geomspace(0.002, 0.2, levels).tolist()
        return exponential_settings(family, threshold=THRESHOLD, ratios=ratios, scales=scales)
    sigmas, clips = np.geomspace(0.015, 0.3, levels).tolist(), CLIPS if "clip" in savings else (1.0,)
    return tuned_settings(family, threshold=THRESHOLD, sigmas=sigmas, clips=clips, ratios=ratios)


def exponential_settings(
    family: QueryFamily, *, threshold: float, ratios: Sequence[float], scales: list[float]
) -> list[AboveThreshold]:
    """Every combination of ratio and scale of exponential noise."""
    return [
        ExponentialAboveThreshold(family, threshold=threshold, scale_threshold=scale, scale_query=ratio * scale)
        for ratio, scale in itertools.product(ratios, scales)
    ]


def measure(part: Part, series: Series) -> Iterator[Row]:
    """Mean F1 and mean realised ε of every setting of one variant."""
    savings, runs = variants()[part["variant"]], part["runs"]
    settings = settings_of(savings, series, levels=part["levels"])
    if not savings:
        settings.append(gaussian(series.family(), threshold=THRESHOLD, sigma=SIGMA))
    rows = mean_rows(settings, series=series, fresh="kept" not in savings, runs=runs, generator=generator_of(part))
    return ({"variant": part["variant"]} | row for row in rows)


def target_of(table: Table, series: str) -> float:
    """F1 of the published settings at σ_X = .09."""
    rows = table[(table["series"] == series) & (table["variant"] == "published")]
    return float(rows.loc[(rows["sigma_threshold"] - SIGMA).abs().idxmin(), "f1"])


def least_epsilon(table: Table, *, f1: float) -> float:
    """The least ε that reaches ``f1``, between neighbouring noise levels of one setting; infinite where none does."""
    curves = table.assign(ratio=table["ratio"].round(6)).groupby(["lower", "upper", "ratio"])
    return min(least_cost(curve, reach="f1", at_least=f1) for _, curve in curves)


def costs(table: Table) -> Table:
    """ε for the published F1, by stream: each saving alone and all up to it."""
    rows = []
    for name, here in table.groupby("series", sort=False):
        f1 = target_of(table, str(name))
        least = {variant: least_epsilon(found, f1=f1) for variant, found in here.groupby("variant")}
        least |= {"+ monotone": least["monotone"], "+ published": least["published"]}
        for saving in ("published", *SAVINGS):
            row = {"stream": here["label"].iloc[0], "F1": f1, "saving": saving, "alone": least[saving]}
            rows.append(row | {"with all above": least[f"+ {saving}"]})
    return pd.DataFrame(rows)


def _draw(table: Table) -> Any:
    """Bars: alone and in turn, one panel per stream."""
    found = costs(table)
    streams = list(found.groupby("stream", sort=False))
    figure, axes = panels(1, len(streams), size=(11.0, 4.2), across="realised ε, mean over the passes")
    for axis, (stream, rows) in zip(axes[0], streams, strict=True):
        for side, column, colour in ((-0.2, "alone", "fsrc"), (0.2, "with all above", "tuned")):
            bars = axis.barh(np.arange(len(rows)) + side, rows[column], 0.36, color=COLOURS[colour], label=column)
            axis.bar_label(bars, fmt="%.2f", padding=2, fontsize=8.5)
        axis.set_title(f"{stream}, F1 = {rows['F1'].iloc[0]:.3f}")
        axis.grid(axis="y", visible=False)
    names = ["as published", *SAVINGS.values()]
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(right=1.14 * float(found[["alone", "with all above"]].to_numpy().max()))
    return legend(figure, columns=2)


ABLATION = Figure(
    title="What each saving is worth",
    parts=lambda size: [
        {"series": name, "variant": variant, "levels": 2 * size.tuning, "runs": size.runs}
        for name in STREAMS
        for variant in variants()
        if variant != "+ monotone"  # the first saving alone
    ],
    measure=measure,
    draw=_draw,
    caption=lambda table: (
        f"{series_in(table)}, ρ = {THRESHOLD:g}: ε for the F1 that the published settings reach at σ_X = {SIGMA:g}. "
        f"All δ = 0. Settings are picked in hindsight; the next figure picks them on another year. "
        "Differences of a few per cent are chance."
    ),
    numbers=costs,
)
