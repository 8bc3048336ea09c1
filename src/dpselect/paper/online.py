"""F1 against the final ε of watching a stream (paper, Section 4 and appendix D).

What a pass is charged is marked as realised (the ex-post losses of its own answers, valid after the fact) or as a
guarantee (a cost that was known per run, taken for the number of runs used).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.paper.baselines import READINGS, run_curve
from dpselect.paper.datasets import Series, load
from dpselect.paper.figure import Figure, Part, Table, generator_of, is_simulated
from dpselect.paper.sizes import Size
from dpselect.paper.style import COLOURS, drawn, note_simulated, panels, plain_log
from dpselect.paper.watching import f1_scores, fresh_costs, kept_costs, verdicts_of
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.profiles import selection_epsilon

#: How far above and below the threshold tuned runs let the queries reach; None keeps the whole range.
CLIPS = (0.05, 0.15, None)
#: σ_Z/σ_X tried by tuned runs; the paper fixes √3.
RATIOS = (1.0, math.sqrt(3), 3.0)

#: Accountings of the published settings: marker and name.
ACCOUNTINGS = {
    "fsrc": ("o", "realised: FSRC, sum of ex-post losses"),
    "monotone": ("v", "realised: the same runs, monotone family"),
    "per run": ("s", "guarantee: Whitehouse over Zhu–Wang, δ = 1/N per run"),
    "in all": ("^", "guarantee: the same, δ = 1/N in all"),
    "printed": ("D", "guarantee: δ = 1/N per run, Section 2's conversion"),
}

#: A stream and a threshold.
Panel = tuple[str, float]


def gaussian(
    family: QueryFamily, *, threshold: float, sigma: float, ratio: float = math.sqrt(3)
) -> GaussianAboveThreshold:
    """The paper's settings, σ_Z = √3·σ_X, or another ratio."""
    return GaussianAboveThreshold(family, threshold=threshold, sigma_threshold=sigma, sigma_query=ratio * sigma)


def online_part(kind: str, panel: Panel, *, size: Size, data: Path | None, **rest: Any) -> Part:
    """Parameters of one kind of work on one panel."""
    name, threshold = panel
    fingerprint = load(name, data=data).fingerprint
    return {"kind": kind, "series": name, "fingerprint": fingerprint, "threshold": threshold, "runs": size.runs} | rest


def published_part(panel: Panel, *, sigmas: tuple[float, float], size: Size, data: Path | None) -> Part:
    """The published settings over a range of σ_X."""
    grid = np.linspace(*sigmas, max(3, size.curve // 3)).tolist()
    return online_part("published", panel, size=size, data=data, sigmas=grid)


def _parts(chosen: tuple[Panel, ...], sigmas: tuple[float, float], size: Size, *, data: Path | None) -> list[Part]:
    """Per panel: the published settings, our tuned ones, and releasing everything."""
    tuned = np.geomspace(0.015, 0.3, size.tuning).tolist()
    found: list[Part] = []
    for panel in chosen[: size.panels]:
        found.append(published_part(panel, sigmas=sigmas, size=size, data=data))
        released = np.geomspace(0.005, 0.5, size.curve).tolist()
        found.append(online_part("release", panel, size=size, data=data, sigmas=released))
        found += [online_part(kind, panel, size=size, data=data, sigmas=tuned) for kind in ("fresh", "kept")]
    return found


def measure(part: Part, *, data: Path | None) -> Table:
    """One part: a row per setting and, for the published settings, per pass and accounting."""
    series = load(part["series"], data=data)
    work = {"published": _published, "release": _release, "fresh": _tuned, "kept": _tuned}[part["kind"]]
    table = work(series, part)
    for place, (name, value) in enumerate(
        (
            ("series", part["series"]),
            ("label", series.label),
            ("simulated", series.simulated),
            ("threshold", part["threshold"]),
        )
    ):
        table.insert(place, name, value)
    return table


def _published(series: Series, part: Part) -> Table:
    """σ_Z = √3·σ_X, queries in [0, 1], threshold drawn anew after every ⊤; costs per pass."""
    generator, threshold, delta = generator_of(part), part["threshold"], 1.0 / series.population
    truth = series.values >= threshold
    settings = [gaussian(series.family(), threshold=threshold, sigma=sigma) for sigma in part["sigmas"]]
    answers = verdicts_of(settings, values=series.values, passes=part["runs"], fresh=True, generator=generator)
    tables = []
    for place, watch in enumerate(settings):
        verdicts, sigma = answers[:, place], watch.sigma_threshold
        passes = fresh_costs(watch, verdicts=verdicts)
        # The same answers, priced as a monotone family.
        again = fresh_costs(replace(watch, family=series.family(monotone=True)), verdicts=verdicts)
        curve = run_curve(population=series.population, threshold=threshold, sigma_threshold=sigma)
        costs: dict[str, FloatArray] = {"fsrc": passes.spent, "monotone": again.spent}
        costs |= {name: cost(curve, rounds=passes.rounds, delta=delta) for name, cost in READINGS.items()}
        for accounting, epsilon in costs.items():
            row = {"kind": accounting, "sigma_threshold": sigma, "passed": np.arange(part["runs"])}
            row |= {"f1": f1_scores(verdicts, truth=truth), "epsilon": epsilon, "rounds": passes.rounds}
            tables.append(pd.DataFrame(row))
    return pd.concat(tables, ignore_index=True)


def clipped(family: QueryFamily, threshold: float, *, below: float | None, above: float | None) -> QueryFamily:
    """The family after clipping round the threshold; None keeps that side whole."""
    reach = family.width
    return family.near(threshold, below=reach if below is None else below, above=reach if above is None else above)


def tuned_settings(family: QueryFamily, *, threshold: float, sigmas: list[float]) -> list[AboveThreshold]:
    """Every combination of clips, ratio and noise."""
    return [
        gaussian(clipped(family, threshold, below=below, above=above), threshold=threshold, sigma=sigma, ratio=ratio)
        for below, above, ratio, sigma in itertools.product(CLIPS, CLIPS, RATIOS, sigmas)
    ]


def _tuned(series: Series, part: Part) -> Table:
    """Monotone, clipped, with σ_Z/σ_X free; means over the passes of each setting."""
    threshold, fresh = part["threshold"], part["kind"] == "fresh"
    settings = tuned_settings(series.family(monotone=True), threshold=threshold, sigmas=part["sigmas"])
    truth, price = series.values >= threshold, fresh_costs if fresh else kept_costs
    answers = verdicts_of(
        settings, values=series.values, passes=part["runs"], fresh=fresh, generator=generator_of(part)
    )
    rows = []
    for place, watch in enumerate(settings):
        costs = price(watch, verdicts=answers[:, place])
        rows.append(
            {
                "kind": part["kind"],
                "sigma_threshold": watch.scales[0],
                "ratio": watch.scales[1] / watch.scales[0],
                "lower": watch.family.lower,
                "upper": watch.family.upper,
                "f1": float(f1_scores(answers[:, place], truth=truth).mean()),
                "epsilon": float(costs.spent.mean()),
                "needed": float(costs.needed.mean()),
            }
        )
    return pd.DataFrame(rows)


def _release(series: Series, part: Part) -> Table:
    """Every day released with Gaussian noise and compared with the threshold afterwards; exact profile at δ = 1/N."""
    generator, threshold, delta = generator_of(part), part["threshold"], 1.0 / series.population
    days, truth = len(series.values), series.values >= threshold
    rows = []
    for sigma in part["sigmas"]:
        noisy = series.values[:, None] + sigma * generator.standard_normal((days, part["runs"]))
        f1 = float(f1_scores(noisy >= threshold, truth=truth).mean())
        epsilon = selection_epsilon(delta, shift=math.sqrt(days) * delta / sigma)
        rows.append({"kind": "release", "sigma_threshold": sigma, "f1": f1, "epsilon": epsilon})
    return pd.DataFrame(rows)


def interval(values: Any) -> tuple[float, float]:
    """The mean and half of its 95% interval.

    >>> tuple(round(part, 3) for part in interval(np.array([1.0, 2.0, 3.0])))
    (2.0, 1.132)
    """
    numbers = np.asarray(values, dtype=np.float64)
    return float(numbers.mean()), 1.96 * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))


def frontier(table: Table) -> Table:
    """The settings that no cheaper one beats, by rising ε."""
    ordered = table.sort_values("epsilon")
    best = ordered["f1"].cummax()
    return ordered[ordered["f1"] >= best].drop_duplicates("f1")


def cost_of_f1(table: Table, *, f1: float) -> float:
    """The least ε among the settings that reach ``f1``; infinite where none does."""
    reached = table[table["f1"] >= f1]
    return float(reached["epsilon"].min()) if len(reached) else float("inf")


def ours(table: Table) -> Table:
    """Our settings at their mean costs: tuned ones, with or without fresh thresholds, and the published, monotone."""
    means = table[table["kind"] == "monotone"].groupby(["kind", "sigma_threshold"], as_index=False)
    return pd.concat([table[table["kind"].isin(["fresh", "kept"])], means[["f1", "epsilon"]].mean()], ignore_index=True)


def _panels_of(table: Table) -> list[tuple[str, Table]]:
    """(title, rows) of each panel, in the table's order."""
    return [
        (f"{rows['label'].iloc[0]}, ρ = {threshold:g}", rows)
        for (_, threshold), rows in table.groupby(["series", "threshold"], sort=False)
    ]


@drawn
def _draw(table: Table) -> Any:
    """One panel per stream and threshold, all on the same axes; means with 95% intervals."""
    shown = _panels_of(table)
    columns = 3 if len(shown) % 3 == 0 else min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure, axes = panels(
        rows, columns=columns, width=3.9 * columns + 0.4, height=3.2 * rows + 1.5, sharex=True, sharey=True
    )
    for axis, (title, here) in zip(axes.flat, shown, strict=True):
        for kind, (marker, label) in ACCOUNTINGS.items():
            points = here[here["kind"] == kind].groupby("sigma_threshold")
            found = [(*interval(rows["epsilon"]), *interval(rows["f1"])) for _, rows in points]
            epsilon, wide, f1, high = np.array(found).T
            face = COLOURS[kind] if label.startswith("realised") else "white"
            axis.errorbar(
                epsilon,
                f1,
                high,
                wide,
                marker=marker,
                ms=5,
                mfc=face,
                lw=1,
                color=COLOURS[kind],
                label=label,
                elinewidth=1,
            )
        best = frontier(ours(here))
        label = "realised: monotone, clipped, free ratio (picked in hindsight)"
        axis.plot(best["epsilon"], best["f1"], drawstyle="steps-post", color=COLOURS["tuned"], label=label)
        everything = here[here["kind"] == "release"].sort_values("epsilon")
        label = "guarantee: release every day, Gaussian, δ = 1/N"
        axis.plot(everything["epsilon"], everything["f1"], ":", color=COLOURS["release"], label=label)
        axis.set_title(title)
    axes[0, 0].set_xscale("log")
    axes[0, 0].set_ylim(0, 1.02)
    published = table[table["kind"].isin(list(ACCOUNTINGS))]["epsilon"]
    axes[0, 0].set_xlim(0.2 * published.min(), 1.6 * published.max())
    plain_log(axes[0, 0].xaxis)
    for axis in axes[-1]:
        axis.set_xlabel("final privacy cost ε")
    for axis in axes[:, 0]:
        axis.set_ylabel("F1 against the noiseless answers")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note_simulated(figure, is_simulated(table))
    return figure


def _caption(note: str, table: Table) -> str:
    runs = int(table["passed"].max()) + 1
    label = "; ".join(dict.fromkeys(table["label"]))
    return (
        f"{label}. Marks: means over {runs} passes at one σ_X, with 95% intervals; filled: realised after the pass; "
        "hollow: a guarantee for the number of runs used. FSRC's sum is a valid reading after the fact; its (ε, δ) "
        f"theorem is not (see the corrections). {note}"
    ).strip()


def _numbers(table: Table) -> Table:
    """At the least published noise of each panel."""
    rows = []
    for title, here in _panels_of(table):
        means = (
            here[here["kind"].isin(list(ACCOUNTINGS))].groupby(["kind", "sigma_threshold"])[["epsilon", "f1"]].mean()
        )
        sigma = float(means.loc["fsrc"].index.min())
        f1 = float(means.loc[("fsrc", sigma), "f1"])
        row: dict[str, Any] = {"stream": title, "σ_X": sigma, "F1": f1}
        row |= {f"ε, {kind}": float(means.loc[(kind, sigma), "epsilon"]) for kind in ACCOUNTINGS}
        row |= {"ε, tuned in hindsight": cost_of_f1(ours(here), f1=f1)}
        row |= {"ε, release every day": cost_of_f1(here[here["kind"] == "release"], f1=f1)}
        rows.append(row)
    return pd.DataFrame(rows)


def _online(title: str, *chosen: Panel, sigmas: tuple[float, float], note: str = "") -> Figure:
    return Figure(
        title=title,
        parts=partial(_parts, chosen, sigmas),
        measure=measure,
        draw=_draw,
        caption=partial(_caption, note),
        numbers=_numbers,
    )


UCI_SIGMAS, LCL_SIGMAS = (0.09, 0.15), (0.04, 0.16)
#: The main text's thresholds are .575 and .33; the appendix gives no list, so the others span the range.
UCI = _online(
    "Online selection on UCI Bikes: on which days are riders above ρ?",
    *(("uci-2011", 0.575), ("uci-2012", 0.575), ("uci", 0.575), ("uci", 0.65), ("uci", 0.75), ("uci", 0.85)),
    sigmas=UCI_SIGMAS,
    note="The paper says “a year”; the public file has 731 days, so each year and both are shown.",
)
LCL = _online(
    "Online selection on Low Carbon London: on which days is consumption above ρ?",
    *(("lcl", 0.33), ("lcl", 0.5), ("lcl", 0.8)),
    sigmas=LCL_SIGMAS,
    note="A day is the total over the 5,564 homes: at ρ = .33 the mean per home would leave nothing to find.",
)
