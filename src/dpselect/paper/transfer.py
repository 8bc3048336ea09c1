"""Settings tuned on one year and tested on the next, with the budget enforced.

UCI's 2011 is the stream to tune on and 2012 the one to test on, each as shares of its own largest day, which is its N
(the paper's normalisation). For every budget the setting with the best mean F1 on 2011 is taken to 2012; beside it,
what would have been best on 2012 itself.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold
from dpselect.paper.baselines import in_all_cost, reserve, run_curve
from dpselect.paper.datasets import Series, load
from dpselect.paper.figure import Figure, Part, Table, generator_of, is_simulated
from dpselect.paper.online import gaussian, tuned_settings
from dpselect.paper.sizes import Size
from dpselect.paper.stopping import answered, most_rounds, pure_days, reserve_days, rounds_days
from dpselect.paper.style import COLOURS, drawn, note_simulated, panels, plain_log
from dpselect.paper.watching import f1_scores, loss_of, verdicts_of

THRESHOLD = 0.575
YEARS = ("uci-2011-own", "uci-2012")
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0)
#: How each method is drawn and called.
METHODS = {
    "fsrc": ("o", "published settings, FSRC (its (ε, δ) fails)"),
    "in all": ("^", "published settings, Whitehouse, δ = 1/N in all"),
    "tuned": ("s", "Gaussian, monotone, clip, free ratio, pure filter"),
    "exponential": ("v", "exponential noise, kept threshold, pure filter"),
}


def _parts(size: Size, *, data: Path | None) -> list[Part]:
    return [
        {
            "series": name,
            "fingerprint": load(name, data=data).fingerprint,
            "method": method,
            "levels": size.tuning,
            "runs": size.runs,
        }
        for name in YEARS
        for method in METHODS
    ]


def settings_of(method: str, series: Series, *, levels: int, threshold: float = THRESHOLD) -> list[AboveThreshold]:
    """What the method can be tuned over."""
    monotone = series.family(monotone=True)
    if method == "tuned":
        return tuned_settings(monotone, threshold=threshold, sigmas=np.geomspace(0.02, 0.3, levels).tolist())
    if method == "exponential":
        scales = np.geomspace(0.002, 0.3, 2 * levels).tolist()
        return [
            ExponentialAboveThreshold(monotone, threshold=threshold, scale_threshold=scale, scale_query=ratio * scale)
            for ratio, scale in itertools.product((1.0, math.sqrt(3), 4.0, 10.0), scales)
        ]
    sigmas = np.geomspace(0.02, 0.3, 2 * levels).tolist()
    return [gaussian(series.family(), threshold=threshold, sigma=sigma) for sigma in sigmas]


def days_of(method: str, watch: AboveThreshold, *, verdicts: Any, series: Series, budget: float) -> Any:
    """How many days each pass is answered for."""
    delta, days = 1.0 / series.population, len(verdicts)
    if method == "tuned":
        return pure_days(watch, verdicts=verdicts, budget=budget)
    if method == "exponential":
        # Under one threshold only ⊤ add to the cost: the next question is asked if one more ⊤ fits.
        tops = most_rounds(lambda n: float(loss_of(watch, days, above=n)), budget=budget, most=days)
        before = np.cumsum(verdicts, axis=0) - verdicts
        blocked = before >= tops
        return np.where(blocked.any(axis=0), blocked.argmax(axis=0), days)
    sigma = watch.scales[0]
    curve = run_curve(population=series.population, threshold=watch.threshold, sigma_threshold=sigma)
    if method == "fsrc":
        return reserve_days(watch, verdicts=verdicts, budget=budget, reserve=reserve(curve, delta=delta))
    runs = most_rounds(lambda n: float(in_all_cost(curve, rounds=n, delta=delta)[0]), budget=budget, most=days)
    return rounds_days(verdicts, rounds=runs)


def measure(part: Part, *, data: Path | None) -> Table:
    """Mean F1 of every setting of one method, by budget."""
    series, method, generator = load(part["series"], data=data), part["method"], generator_of(part)
    truth, settings = series.values >= THRESHOLD, settings_of(method, series, levels=part["levels"])
    answers = verdicts_of(
        settings, values=series.values, passes=part["runs"], fresh=method != "exponential", generator=generator
    )
    rows = []
    for place, watch in enumerate(settings):
        for budget in BUDGETS:
            days = days_of(method, watch, verdicts=answers[:, place], series=series, budget=budget)
            f1 = f1_scores(answered(answers[:, place], days=days), truth=truth)
            error = float(f1.std(ddof=1)) / math.sqrt(len(f1))
            rows.append({"setting": place, "budget": budget, "f1": float(f1.mean()), "standard_error": error})
    shared = {"series": part["series"], "label": series.label, "simulated": series.simulated, "method": method}
    return pd.DataFrame(rows).assign(**shared)


def chosen(table: Table) -> Table:
    """By method and budget: F1 on the test year of the setting tuned on the other, and of the best in hindsight."""
    tune, test = (table[table["series"] == name] for name in YEARS)
    rows = []
    for (method, budget), here in tune.groupby(["method", "budget"], sort=False):
        there = test[(test["method"] == method) & (test["budget"] == budget)].set_index("setting")
        setting = int(here.loc[here["f1"].idxmax(), "setting"])
        rows.append(
            {
                "method": method,
                "ε": budget,
                "F1 on 2011": float(here["f1"].max()),
                "F1 on 2012": float(there.loc[setting, "f1"]),
                "standard error": float(there.loc[setting, "standard_error"]),
                "best on 2012": float(there["f1"].max()),
            }
        )
    return pd.DataFrame(rows)


@drawn
def _draw(table: Table) -> Any:
    """Solid: tuned on 2011, tested on 2012; dotted: the best on 2012 in hindsight."""
    found = chosen(table)
    figure, axes = panels(width=8.0, height=5.0)
    axis = axes[0, 0]
    for method, (marker, label) in METHODS.items():
        curve = found[found["method"] == method].sort_values("ε")
        bars = 1.96 * curve["standard error"]
        axis.errorbar(
            curve["ε"], curve["F1 on 2012"], bars, fmt=f"{marker}-", ms=5, lw=1.4, color=COLOURS[method], label=label
        )
        axis.plot(curve["ε"], curve["best on 2012"], ":", lw=1.2, color=COLOURS[method])
    axis.plot([], [], ":", color="#777777", label="the best on 2012, in hindsight")
    axis.set_xscale("log")
    plain_log(axis.xaxis, ticks=list(BUDGETS))
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("budget ε, enforced")
    axis.set_ylabel("F1 on 2012 (not answered counts as ⊥)")
    axis.legend(loc="lower right")
    note_simulated(figure, is_simulated(table))
    return figure


def _caption(table: Table) -> str:
    simulated = " (simulated)" if is_simulated(table) else ""
    return (
        f"UCI Bikes{simulated}, ρ = {THRESHOLD:g} of each year's largest day. Lines: settings picked on 2011, F1 "
        "on 2012 with "
        "95% intervals; dotted: the best on 2012 itself."
    )


TRANSFER = Figure(
    title="Tuned on 2011, tested on 2012",
    parts=_parts,
    measure=measure,
    draw=_draw,
    caption=_caption,
    numbers=chosen,
)
