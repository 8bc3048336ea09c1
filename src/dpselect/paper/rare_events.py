"""A rare-event stream: twenty alarms among a thousand questions, or among ten thousand.

Where ⊤ is rare and the stream long, a sparse vector pays for the alarms and little for the silence, while releasing
everything pays for every question. The stream is simulated and public: N = 6,946 people, a level of .3 with ordinary
days between .2 and .4, alarms at .8, ρ = .6. Every method is shown at its best setting in hindsight.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from dpselect.mechanisms.release import GaussianRelease
from dpselect.paper.datasets import Series
from dpselect.paper.figure import Figure, Part, Table, generator_of
from dpselect.paper.sizes import Size
from dpselect.paper.stopping import answered
from dpselect.paper.style import COLOURS, drawn, panels, plain_log
from dpselect.paper.transfer import METHODS, days_of, settings_of
from dpselect.paper.watching import f1_scores, verdicts_of

THRESHOLD, ALARMS, POPULATION = 0.6, 20, 6946
BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def stream(length: int) -> FloatArray:
    """The stream: the same alarms, spread evenly, whatever its length.

    >>> int((stream(1_000) >= THRESHOLD).sum())
    20
    """
    generator = np.random.default_rng(length)
    values = np.clip(0.3 + 0.04 * generator.standard_normal(length), 0.2, 0.4)
    values[np.linspace(0, length - 1, ALARMS + 2, dtype=np.int64)[1:-1]] = 0.8
    return values


def _parts(size: Size, *, data: Path | None) -> list[Part]:
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


def measure(part: Part, *, data: Path | None) -> Table:
    """The best mean F1 over the method's settings, by budget."""
    length, method, generator = part["length"], part["method"], generator_of(part)
    series = Series(label="rare events", values=stream(length), population=POPULATION, simulated=False)
    truth, delta = series.values >= THRESHOLD, 1.0 / POPULATION
    best = dict.fromkeys(BUDGETS, 0.0)
    if method == "release":
        # Nothing to tune: the least noise that the budget allows.
        for budget in BUDGETS:
            sigma = GaussianRelease.calibrated(series.family(), candidates=length, epsilon=budget, delta=delta).sigma
            noisy = series.values[:, None] + sigma * generator.standard_normal((length, part["runs"]))
            best[budget] = float(f1_scores(noisy >= THRESHOLD, truth=truth).mean())
    else:
        settings = settings_of(method, series, levels=part["levels"], threshold=THRESHOLD)
        for place in range(0, len(settings), 16):
            some = settings[place : place + 16]
            answers = verdicts_of(
                some, values=series.values, passes=part["runs"], fresh=method != "exponential", generator=generator
            )
            for column, watch in enumerate(some):
                for budget in BUDGETS:
                    verdicts = answers[:, column]
                    days = days_of(method, watch, verdicts=verdicts, series=series, budget=budget)
                    f1 = float(f1_scores(answered(verdicts, days=days), truth=truth).mean())
                    best[budget] = max(best[budget], f1)
    return pd.DataFrame({"length": length, "method": method, "budget": list(best), "f1": list(best.values())})


@drawn
def _draw(table: Table) -> Any:
    """One panel per length, on the same axes."""
    lengths = sorted(table["length"].unique())
    figure, axes = panels(columns=len(lengths), width=10.5, height=4.7, sharex=True, sharey=True)
    names = METHODS | {"release": ("x", "release every value, Gaussian, δ = 1/N")}
    for axis, length in zip(axes[0], lengths, strict=True):
        for method, (marker, label) in names.items():
            curve = table[(table["length"] == length) & (table["method"] == method)].sort_values("budget")
            axis.plot(curve["budget"], curve["f1"], f"{marker}-", ms=5, lw=1.4, color=COLOURS[method], label=label)
        axis.set_title(f"{ALARMS} alarms among {length:,} questions")
        axis.set_xlabel("budget ε, enforced")
    axes[0, 0].set_xscale("log")
    plain_log(axes[0, 0].xaxis, ticks=list(BUDGETS))
    axes[0, 0].set_ylim(0, 1.03)
    axes[0, 0].set_ylabel("F1 (not answered counts as ⊥)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _caption(table: Table) -> str:
    return (
        f"A stream made for this figure, N = {POPULATION:,}: ordinary values near .3, {ALARMS} alarms at .8, ρ = "
        f"{THRESHOLD:g}. Each method at its best setting in hindsight; releasing all takes the noise that ε asks for."
    )


def _numbers(table: Table) -> Table:
    return table.pivot(index=["length", "budget"], columns="method", values="f1").reset_index()


RARE = Figure(
    title="Rare events: where a sparse vector pays",
    parts=_parts,
    measure=measure,
    draw=_draw,
    caption=_caption,
    numbers=_numbers,
)
