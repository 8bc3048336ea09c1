"""F1 against the final ε of watching a stream: the computation and drawing behind the online figures."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.paper.baselines import honest_cost, lenient_cost, reserve, run_curve
from dpselect.paper.datasets import Series, load
from dpselect.paper.parts import Part, Table, generator_of
from dpselect.paper.sizes import Size
from dpselect.paper.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, drawn, note_simulated, panels, plain_log
from dpselect.paper.watching import Watch, f1_scores, fresh_costs, kept_costs, verdicts_of
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.profiles import selection_epsilon

#: How far above and below the threshold tuned runs let the queries reach; None keeps the whole range.
CLIPS = (0.02, 0.2, 0.05, 0.1, None)
#: σ_Z/σ_X tried by tuned runs; the paper fixes √3.
RATIOS = (0.7, 1.0, math.sqrt(3), 3.0)

#: Accountings of the published settings: how they are drawn, and what they are called.
PUBLISHED = {
    "published": (GREEN, "o", "FSRC as published: sum of losses (its δ does not hold)"),
    "lenient": (ORANGE, "s", "Whitehouse filter over Zhu–Wang, δ = 1/N per run"),
    "honest": (VERMILION, "^", "Whitehouse filter over Zhu–Wang, δ = 1/N in all"),
    "monotone": (BLUE, "v", "pure filter, monotone (same runs)"),
}


def online_parts(
    name: str, *, thresholds: tuple[float, ...], sigmas: tuple[float, float], size: Size, data: Path | None
) -> list[Part]:
    """Per threshold: the published settings, our tuned ones (in slices), and releasing everything."""
    shared = {"series": name, "fingerprint": load(name, data=data).fingerprint, "runs": size.runs}
    tuned = np.geomspace(0.015, 0.3, size.tuning).tolist()
    clips, ratios = (CLIPS, RATIOS) if size.tuning > 5 else (CLIPS[-size.tuning :], RATIOS[:3])
    found: list[Part] = []
    for threshold in thresholds[: size.thresholds]:
        here = {**shared, "threshold": threshold}
        grid = np.linspace(*sigmas, max(3, size.curve // 3)).tolist()
        found.append({**here, "kind": "published", "sigmas": grid})
        found.append({**here, "kind": "release", "sigmas": np.geomspace(0.005, 0.5, size.curve).tolist()})
        for above in clips:
            for kind in ("tuned", "tuned-kept"):
                found.append(
                    {
                        **here,
                        "kind": kind,
                        "sigmas": tuned,
                        "above": above,
                        "belows": list(clips),
                        "ratios": list(ratios),
                    }
                )
    return found


def online_measure(part: Part, *, data: Path | None) -> Table:
    """One part: a row per setting and, for the published settings, per pass and accounting."""
    series = load(part["series"], data=data)
    work = {"published": _published, "release": _release, "tuned": _tuned, "tuned-kept": _tuned}[part["kind"]]
    table = work(series, part)
    table.insert(0, "series", part["series"])
    table.insert(1, "label", series.label)
    table.insert(2, "simulated", series.simulated)
    table.insert(3, "threshold", part["threshold"])
    return table


def _published(series: Series, part: Part) -> Table:
    """σ_Z = √3·σ_X, queries in [0, 1], threshold drawn anew after every ⊤; costs per pass."""
    generator, threshold, delta = generator_of(part), part["threshold"], 1.0 / series.population
    truth = series.values >= threshold
    settings = [
        Watch(family=series.family(), threshold=threshold, sigma_threshold=sigma, sigma_query=math.sqrt(3) * sigma)
        for sigma in part["sigmas"]
    ]
    answers = verdicts_of(settings, values=series.values, passes=part["runs"], fresh=True, generator=generator)
    tables = []
    for place, watch in enumerate(settings):
        verdicts, sigma = answers[:, place], watch.sigma_threshold
        passes = fresh_costs(watch, verdicts=verdicts)
        # The same answers, priced as a monotone family.
        again = fresh_costs(replace(watch, family=series.family(monotone=True)), verdicts=verdicts)
        curve = run_curve(population=series.population, threshold=threshold, sigma_threshold=sigma)
        costs = {
            "published": passes.spent,
            "lenient": lenient_cost(curve, rounds=passes.rounds, delta=delta),
            "honest": honest_cost(curve, rounds=passes.rounds, delta=delta),
            "monotone": again.spent,
        }
        for accounting, epsilon in costs.items():
            tables.append(
                pd.DataFrame(
                    {
                        "kind": accounting,
                        "sigma_threshold": sigma,
                        "ratio": math.sqrt(3),
                        "delta": 0.0 if accounting == "monotone" else delta,
                        "f1": f1_scores(verdicts, truth=truth),
                        "epsilon": epsilon,
                        "needed": {"published": epsilon + reserve(curve, delta=delta), "monotone": again.needed}.get(
                            accounting, epsilon
                        ),
                        "rounds": passes.rounds,
                    }
                )
            )
    return pd.concat(tables, ignore_index=True)


def _tuned(series: Series, part: Part) -> Table:
    """Monotone, clipped, with σ_Z/σ_X free; means over the passes of each setting."""
    generator, threshold = generator_of(part), part["threshold"]
    whole, truth = series.family(monotone=True), series.values >= threshold
    settings = [
        (
            below,
            ratio,
            Watch(
                family=_clipped(whole, threshold, below=below, above=part["above"]),
                threshold=threshold,
                sigma_threshold=sigma,
                sigma_query=ratio * sigma,
            ),
        )
        for below, ratio, sigma in itertools.product(part["belows"], part["ratios"], part["sigmas"])
    ]
    fresh = part["kind"] == "tuned"
    price = fresh_costs if fresh else kept_costs
    answers = verdicts_of(
        [watch for _, _, watch in settings], values=series.values, passes=part["runs"], fresh=fresh, generator=generator
    )
    rows = []
    for place, (below, ratio, watch) in enumerate(settings):
        costs = price(watch, verdicts=answers[:, place])
        rows.append(
            {
                "kind": part["kind"],
                "sigma_threshold": watch.sigma_threshold,
                "ratio": ratio,
                "delta": 0.0,
                "f1": float(f1_scores(answers[:, place], truth=truth).mean()),
                "epsilon": float(costs.spent.mean()),
                "needed": float(costs.needed.mean()),
                "rounds": float(costs.rounds.mean()),
                "clip_below": np.nan if below is None else below,
                "clip_above": np.nan if part["above"] is None else part["above"],
            }
        )
    return pd.DataFrame(rows)


def _clipped(family: QueryFamily, threshold: float, *, below: float | None, above: float | None) -> QueryFamily:
    reach = family.width
    return family.near(threshold, below=reach if below is None else below, above=reach if above is None else above)


def _release(series: Series, part: Part) -> Table:
    """Every day released with Gaussian noise and compared with the threshold afterwards; exact profile at δ = 1/N."""
    generator, threshold, delta = generator_of(part), part["threshold"], 1.0 / series.population
    days, truth = len(series.values), series.values >= threshold
    rows = []
    for sigma in part["sigmas"]:
        noisy = series.values[:, None] + sigma * generator.standard_normal((days, part["runs"]))
        rows.append(
            {
                "kind": "release",
                "sigma_threshold": sigma,
                "delta": delta,
                "f1": float(f1_scores(noisy >= threshold, truth=truth).mean()),
                "epsilon": selection_epsilon(delta, shift=math.sqrt(days) * delta / sigma),
            }
        )
    return pd.DataFrame(rows)


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
    untuned = means[["ratio", "f1", "epsilon", "needed"]].mean()
    return pd.concat([table[table["kind"].isin(["tuned", "tuned-kept"])], untuned], ignore_index=True)


@drawn
def online_draw(table: Table) -> Any:
    """One panel per threshold, all on the same axes."""
    thresholds = sorted(table["threshold"].unique())
    columns = 2 if len(thresholds) > 1 else 1
    rows = math.ceil(len(thresholds) / columns)
    figure, axes = panels(rows, columns=columns, width=5.6 * columns, height=4.2 * rows + 1.3, sharex=True, sharey=True)
    for axis, threshold in zip(axes.flat, thresholds, strict=False):
        here = table[table["threshold"] == threshold]
        for kind, (colour, marker, label) in PUBLISHED.items():
            points = here[here["kind"] == kind]
            axis.scatter(points["epsilon"], points["f1"], s=8, marker=marker, color=colour, alpha=0.25, linewidth=0)
            means = points.groupby("sigma_threshold")[["epsilon", "f1"]].mean()
            axis.plot(means["epsilon"], means["f1"], marker=marker, ms=6, lw=1, color=colour, mec="white", label=label)
        best = frontier(ours(here))
        axis.plot(
            best["epsilon"],
            best["f1"],
            drawstyle="steps-post",
            color=BLACK,
            label="pure filter, monotone, clipped and tuned (ours)",
        )
        everything = here[here["kind"] == "release"].sort_values("epsilon")
        axis.plot(
            everything["epsilon"], everything["f1"], ":", color=GREY, label="release everything, Gaussian, δ = 1/N"
        )
        axis.set_title(f"ρ = {threshold:g}")
        axis.set_xscale("log")
        axis.set_ylim(0, 1.02)
    published = table[table["kind"].isin(list(PUBLISHED))]["epsilon"]
    axes[0, 0].set_xlim(0.25 * published.min(), 1.6 * published.max())
    plain_log(axes[0, 0].xaxis)
    for axis in axes[-1]:
        axis.set_xlabel("final privacy cost ε")
    for axis in axes[:, 0]:
        axis.set_ylabel("F1 against the noiseless answers")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    note_simulated(figure, bool(table["simulated"].any()))
    return figure


def online_caption(table: Table) -> str:
    """What the reader sees, at the least published noise of each threshold."""
    sentences = []
    for threshold, here in table.groupby("threshold", sort=False):
        means = here[here["kind"].isin(list(PUBLISHED))].groupby(["kind", "sigma_threshold"])[["epsilon", "f1"]].mean()
        sigma = float(means.loc["published"].index.min())
        at = {kind: means.loc[(kind, sigma), "epsilon"] for kind in PUBLISHED}
        f1 = float(means.loc[("published", sigma), "f1"])
        tuned = cost_of_f1(ours(here), f1=f1)
        sentences.append(
            f"ρ = {threshold:g}, σ_X = {sigma:g} (F1 {f1:.3f}): FSRC {at['published']:.3g}, Whitehouse "
            f"{at['lenient']:.3g} (δ per run) or {at['honest']:.3g} (δ in all), monotone {at['monotone']:.3g}, clipped "
            f"and tuned {tuned:.3g}."
        )
    runs = int((table["kind"] == "published").sum() / table[table["kind"] == "published"]["threshold"].nunique())
    return (
        f"{table['label'].iloc[0]}. Small marks: single passes ({runs} per threshold and accounting); large marks: "
        f"means at one σ_X. {' '.join(sentences)} Tuned settings were picked on this very stream, which is public "
        "here; on private data they must be fixed beforehand."
    )
