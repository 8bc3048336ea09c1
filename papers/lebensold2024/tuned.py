"""Four methods with the budget enforced: tuned on one year and tested on the next, and on a stream of rare events.

UCI's 2011 is the stream to tune on and 2012 the one to test on, each as shares of its own largest day, which is its N
(the paper's normalisation). For every budget the setting with the best mean F1 on 2011 is taken to 2012; beside it,
what would have been best on 2012 itself.

Where ⊤ is rare and the stream long, a sparse vector pays for the alarms and little for the silence, while releasing
everything pays for every question. The second stream is simulated and public: N = 6,946 people, a level of .3 with
ordinary days between .2 and .4, alarms at .8, ρ = .6; every method is shown at its best setting in hindsight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.release import GaussianRelease
from lebensold2024.ablation import exponential_settings
from lebensold2024.datasets import Series
from lebensold2024.figure import Figure, Part, Row, Size, Table, generator_of
from lebensold2024.online import tuned_settings
from lebensold2024.passes import (
    Days,
    Passes,
    f1_scores,
    gaussian,
    in_all_cost,
    most_rounds,
    reserve_of,
    run_curve,
    run_passes,
)
from lebensold2024.style import COLOURS, legend, panels, plain_log

#: How each method is drawn and called.
METHODS = {
    "fsrc": ("o", "published settings, FSRC (its (ε, δ) fails)"),
    "in all": ("^", "published settings, Whitehouse, δ = 1/N in all"),
    "tuned": ("s", "Gaussian, monotone, clip, free ratio, pure filter"),
    "exponential": ("v", "exponential noise, kept threshold, pure filter"),
}


def settings_of(method: str, series: Series, *, levels: int, threshold: float) -> list[AboveThreshold]:
    """What the method can be tuned over."""
    monotone, ratios = series.family(monotone=True), (1.0, math.sqrt(3), 4.0, 10.0)
    if method == "tuned":
        return tuned_settings(monotone, threshold=threshold, sigmas=np.geomspace(0.02, 0.3, levels).tolist())
    if method == "exponential":
        scales = np.geomspace(0.002, 0.3, 2 * levels).tolist()
        return exponential_settings(monotone, threshold=threshold, ratios=ratios, scales=scales)
    sigmas = np.geomspace(0.02, 0.3, 2 * levels).tolist()
    return [gaussian(series.family(), threshold=threshold, sigma=sigma) for sigma in sigmas]


def _days(method: str, passes: Passes, *, series: Series, budget: float) -> Days:
    """How many days each pass is answered for."""
    watch, days = passes.watch, len(passes.verdicts)
    if method == "tuned":
        return passes.pure_days(budget=budget)
    if method == "exponential":
        # Under one threshold only ⊤ add to the cost: the next question is asked if one more ⊤ fits.
        tops = most_rounds(lambda n: float(watch.loss(days, n)), budget=budget, most=days)
        return passes.tops_days(tops=tops)
    curve = run_curve(watch)
    if method == "fsrc":
        return passes.reserve_days(budget=budget, reserve=reserve_of(curve, delta=series.delta))
    runs = most_rounds(lambda n: float(in_all_cost(curve, rounds=n, delta=series.delta)), budget=budget, most=days)
    return passes.rounds_days(rounds=runs)


def scores(
    method: str,
    settings: Sequence[AboveThreshold],
    *,
    series: Series,
    budgets: Sequence[float],
    runs: int,
    generator: np.random.Generator,
) -> Iterator[tuple[int, float, FloatArray]]:
    """(Setting, budget, F1 of each pass), the budget enforced."""
    truth, fresh = series.values >= settings[0].threshold, method != "exponential"
    found = run_passes(settings, values=series.values, passes=runs, fresh=fresh, generator=generator)
    for place, passes in enumerate(found):
        for budget in budgets:
            days = _days(method, passes, series=series, budget=budget)
            yield place, budget, f1_scores(passes.verdicts, truth=truth, days=days)


# --- tuned on 2011, tested on 2012 -----------------------------------------------------------------------------------

THRESHOLD = 0.575
YEARS = ("uci-2011-own", "uci-2012")
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0)


def _measure(part: Part, series: Series) -> Iterator[Row]:
    """Mean F1 of every setting of one method, by budget."""
    method, runs = part["method"], part["runs"]
    settings = settings_of(method, series, levels=part["levels"], threshold=THRESHOLD)
    found = scores(method, settings, series=series, budgets=BUDGETS, runs=runs, generator=generator_of(part))
    for place, budget, f1 in found:
        row = {"method": method, "setting": place, "budget": budget}
        yield row | {"f1": f1.mean(), "standard_error": f1.std(ddof=1) / math.sqrt(len(f1))}


def chosen(table: Table) -> Table:
    """By method and budget: F1 on the test year of the setting tuned on the other, and of the best in hindsight."""
    tune, test = (table[table["series"] == name] for name in YEARS)
    rows = []
    for (method, budget), here in tune.groupby(["method", "budget"], sort=False):
        there = test[(test["method"] == method) & (test["budget"] == budget)].set_index("setting")
        taken = there.loc[int(here.loc[here["f1"].idxmax(), "setting"])]
        row = {"method": method, "ε": budget, "F1 on 2011": float(here["f1"].max()), "F1 on 2012": float(taken["f1"])}
        row |= {"standard error": float(taken["standard_error"]), "best on 2012": float(there["f1"].max())}
        rows.append(row)
    return pd.DataFrame(rows)


def _draw(table: Table) -> Any:
    """Solid: tuned on 2011, tested on 2012; dotted: the best on 2012 in hindsight."""
    found = chosen(table)
    figure, axes = panels(size=(8.0, 5.0), across="budget ε, enforced", up="F1 on 2012 (not answered counts as ⊥)")
    axis = axes[0, 0]
    for method, (marker, said) in METHODS.items():
        curve = found[found["method"] == method].sort_values("ε")
        style: Any = {"fmt": f"{marker}-", "ms": 5, "lw": 1.4, "color": COLOURS[method]}
        axis.errorbar(curve["ε"], curve["F1 on 2012"], 1.96 * curve["standard error"], **style, label=said)
        axis.plot(curve["ε"], curve["best on 2012"], ":", lw=1.2, color=COLOURS[method])
    axis.plot([], [], ":", color="#777777", label="the best on 2012, in hindsight")
    plain_log(axis, "x", ticks=BUDGETS)
    axis.set(ylim=(0, 1.02))
    axis.legend(loc="lower right")
    return figure


def _caption(table: Table) -> str:
    simulated = " (simulated)" if table["simulated"].any() else ""
    return (
        f"UCI Bikes{simulated}, ρ = {THRESHOLD:g} of each year's largest day. Lines: settings picked on 2011, F1 on "
        "2012 with 95% intervals; dotted: the best on 2012 itself."
    )


TRANSFER = Figure(
    title="Tuned on 2011, tested on 2012",
    parts=lambda size: [
        {"series": name, "method": method, "levels": size.tuning, "runs": size.runs}
        for name in YEARS
        for method in METHODS
    ],
    measure=_measure,
    draw=_draw,
    caption=_caption,
    numbers=chosen,
)

# --- rare events -----------------------------------------------------------------------------------------------------

ALARM, ALARMS, POPULATION = 0.6, 20, 6946
RARE_BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def stream(length: int) -> FloatArray:
    """The stream: the same alarms, spread evenly, whatever its length.

    >>> int((stream(1_000) >= ALARM).sum())
    20
    """
    generator = np.random.default_rng(length)
    values = np.clip(0.3 + 0.04 * generator.standard_normal(length), 0.2, 0.4)
    values[np.linspace(0, length - 1, ALARMS + 2, dtype=np.int64)[1:-1]] = 0.8
    return values


def _rare_parts(size: Size) -> list[Part]:
    return [
        {
            "length": length,
            "method": method,
            # Clips and ratios multiply the settings of the tuned method; the others have noise alone to choose.
            "levels": -(-size.tuning // 4) if method == "tuned" else size.tuning,
            "runs": max(3, size.runs // 2),
        }
        for length in (size.questions, 10 * size.questions)
        for method in (*METHODS, "release")
    ]


def _rare(part: Part) -> Iterator[Row]:
    """The best mean F1 over the method's settings, by budget."""
    length, method, generator = part["length"], part["method"], generator_of(part)
    series = Series(label="rare events", values=stream(length), population=POPULATION, simulated=False)
    best = dict.fromkeys(RARE_BUDGETS, 0.0)
    if method == "release":
        # Nothing to tune: the least noise that the budget allows.
        for budget in best:
            release = GaussianRelease.calibrated(series.family(), candidates=length, epsilon=budget, delta=series.delta)
            noisy = series.values[:, None] + release.sigma * generator.standard_normal((length, part["runs"]))
            best[budget] = float(f1_scores(noisy >= ALARM, truth=series.values >= ALARM).mean())
    else:
        settings = settings_of(method, series, levels=part["levels"], threshold=ALARM)
        # A few at a time, to save memory.
        for first in range(0, len(settings), 16):
            some = settings[first : first + 16]
            for _, budget, f1 in scores(
                method, some, series=series, budgets=RARE_BUDGETS, runs=part["runs"], generator=generator
            ):
                best[budget] = max(best[budget], float(f1.mean()))
    yield {"length": length, "method": method, "budget": list(best), "f1": list(best.values())}


def _draw_rare(table: Table) -> Any:
    """One panel per length, on the same axes."""
    lengths = list(table.groupby("length"))
    up = "F1 (not answered counts as ⊥)"
    figure, axes = panels(1, len(lengths), size=(10.5, 4.7), across="budget ε, enforced", up=up)
    names = METHODS | {"release": ("x", "release every value, Gaussian, δ = 1/N")}
    for axis, (length, here) in zip(axes[0], lengths, strict=True):
        for method, (marker, said) in names.items():
            curve = here[here["method"] == method].sort_values("budget")
            axis.plot(curve["budget"], curve["f1"], f"{marker}-", ms=5, lw=1.4, color=COLOURS[method], label=said)
        axis.set_title(f"{ALARMS} alarms among {length:,} questions")
    plain_log(axes[0, 0], "x", ticks=RARE_BUDGETS)
    axes[0, 0].set_ylim(0, 1.03)
    return legend(figure, columns=2)


RARE = Figure(
    title="Rare events: where a sparse vector pays",
    parts=_rare_parts,
    measure=_rare,
    draw=_draw_rare,
    caption=lambda table: (
        f"A stream made for this figure, N = {POPULATION:,}: ordinary values near .3, {ALARMS} alarms at .8, ρ = "
        f"{ALARM:g}. Each method at its best setting in hindsight; releasing all takes the noise that ε asks for."
    ),
    numbers=lambda table: table.pivot(index=["length", "budget"], columns="method", values="f1").reset_index(),
)
