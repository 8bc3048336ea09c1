"""Accuracy of a selection against what it costs: the computation behind the offline figures.

Accuracy is 1 − E[q_max − q_chosen], by simulation over many trials, with its standard error. One Gaussian simulation
serves every way of accounting for it; the classical mechanisms get the noise that the same ε allows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.checks import FloatArray
from dpselect.paper.datasets import load
from dpselect.paper.parts import Part, Table, generator_of
from dpselect.paper.sizes import Size
from dpselect.paper.style import METHOD_COLOURS, drawn, note_simulated, panels, plain_log
from dpselect.privacy.conversions import renyi_to_approximate
from dpselect.privacy.noisy_max import noisy_max_epsilon
from dpselect.privacy.profiles import selection_epsilon
from dpselect.privacy.renyi import ORDERS

#: δ of every method that needs one.
DELTA = 1e-5

#: Rows of the figures: what the paper compares, then the mechanisms it calls competitive.
PUBLISHED = ("pure", "Δ√d Gaussian", "Δ√d Rényi", "profile", "pure, monotone")
CLASSICAL = ("pure", "exponential", "permute-and-flip", "Laplace", "Laplace release of all")

_LABELS = {
    "pure": "Gaussian, pure bound",
    "pure, monotone": "Gaussian, pure bound, monotone",
    "profile": "Gaussian, profile bound",
    "Δ√d Gaussian": "baseline: all d released, Δ√d",
    "Δ√d Rényi": "the same by Rényi accounting",
    "exponential": "exponential mechanism",
    "permute-and-flip": "permute-and-flip",
    "Laplace": "Laplace noisy max",
    "Laplace release of all": "Laplace, all d released",
}
_DASHED = {"pure, monotone": "--", "permute-and-flip": "--", "Laplace release of all": "-."}
_NEEDS_DELTA = {"Δ√d Gaussian", "Δ√d Rényi", "profile"}


def offline_parts(names: tuple[str, ...], *, size: Size, data: Path | None) -> list[Part]:
    """One part per series."""
    return [
        {
            "series": name,
            "fingerprint": load(name, data=data).fingerprint,
            "sigmas": np.geomspace(0.015, 0.6, size.curve).tolist(),
            "trials": size.trials,
            "delta": DELTA,
        }
        for name in names
    ]


def offline_measure(part: Part, *, data: Path | None) -> Table:
    """Accuracy and ε of every mechanism and accounting over the noise levels."""
    series = load(part["series"], data=data)
    generator = generator_of(part)
    sigmas = np.array(part["sigmas"])
    delta, trials = part["delta"], part["trials"]
    step, days = 1.0 / series.population, len(series.values)

    def picked(noise: Any, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = [accuracy(series.values, noise=scale * noise((trials, days))) for scale in scales.tolist()]
        means, errors = zip(*found, strict=True)
        return np.array(means), np.array(errors)

    gaussian = picked(generator.standard_normal, sigmas)
    cost: dict[str, Any] = {"width": 1.0, "sensitivity": step, "sigma": sigmas, "candidates": days}
    spread = step * np.sqrt(days) / sigmas
    pure = np.asarray(noisy_max_epsilon(**cost))
    accounts = {
        "pure": pure,
        "pure, monotone": noisy_max_epsilon(**cost, monotone=True),
        "profile": selection_epsilon(delta, shift=2 * step / sigmas, outputs=days),
        "Δ√d Gaussian": selection_epsilon(delta, shift=spread),
        "Δ√d Rényi": [renyi_to_approximate(ORDERS, ORDERS * mu * mu / 2, delta=delta) for mu in spread.tolist()],
    }
    rows: list[tuple[Any, ...]] = [(method, sigmas, epsilon, *gaussian) for method, epsilon in accounts.items()]
    # ε = 2Δ/scale for all three; the scale is what the mechanism multiplies its noise by.
    epsilons = np.geomspace(step, 1000 * step, len(sigmas))
    scales = 2 * step / epsilons
    for method, noise in (
        ("exponential", lambda shape: generator.gumbel(size=shape)),
        ("permute-and-flip", lambda shape: generator.exponential(size=shape)),
        ("Laplace", lambda shape: generator.laplace(size=shape)),
    ):
        reached = picked(noise, scales)
        rows.append((method, scales, epsilons, *reached))
        if method == "Laplace":
            # The same noise on all d values, released whole: the post-processing argument, d·Δ/scale.
            rows.append(("Laplace release of all", scales, days * step / scales, *reached))
    tables = [
        pd.DataFrame(
            {
                "series": part["series"],
                "label": series.label,
                "simulated": series.simulated,
                "candidates": days,
                "population": series.population,
                "method": method,
                "delta": delta if method in _NEEDS_DELTA else 0.0,
                "scale": scale,
                "epsilon": epsilon,
                "accuracy": mean,
                "standard_error": error,
            }
        )
        for method, scale, epsilon, mean, error in rows
    ]
    return pd.concat(tables, ignore_index=True)


def accuracy(values: FloatArray, *, noise: FloatArray) -> tuple[float, float]:
    """Mean and standard error of 1 − (q_max − q_chosen) over the rows of ``noise``.

    >>> accuracy(np.array([0.25, 1.0]), noise=np.array([[0.0, 0.0], [9.0, 0.0]]))
    (0.625, 0.37...)
    """
    chosen = values[np.argmax(values + noise, axis=1)]
    reached = 1.0 - (values.max() - chosen)
    return float(reached.mean()), float(reached.std(ddof=1) / np.sqrt(len(reached)))


def cost_of(table: Table, *, series: str, method: str, accuracy: float) -> float:
    """The ε at which ``method`` first keeps ``accuracy``, between the two nearest noise levels; infinite if never."""
    curve = table[(table["series"] == series) & (table["method"] == method)].sort_values("epsilon")
    epsilon, reached = curve["epsilon"].to_numpy(), np.maximum.accumulate(curve["accuracy"].to_numpy())
    place = int(np.searchsorted(reached, accuracy))
    if place == len(reached):
        return float("inf")
    if place == 0:
        return float(epsilon[0])
    low, high = reached[place - 1], reached[place]
    share = (accuracy - low) / (high - low)
    return float(np.exp((1 - share) * np.log(epsilon[place - 1]) + share * np.log(epsilon[place])))


@drawn
def offline_draw(table: Table) -> Any:
    """One column per series; above, the paper's comparison and the profile bound; below, classical mechanisms."""
    names = list(dict.fromkeys(table["series"]))
    # A single series has its two panels side by side; several have one column each.
    shape = (2, len(names)) if len(names) > 1 else (1, 2)
    width = 3.6 + 3.9 * shape[1]
    figure, axes = panels(shape[0], columns=shape[1], width=width, height=0.6 + 3.4 * shape[0], sharey=True)
    grid = axes if len(names) > 1 else axes.T
    for column, name in enumerate(names):
        here = table[table["series"] == name]
        for axis, methods in zip(grid[:, column], (PUBLISHED, CLASSICAL), strict=True):
            for method in methods:
                _curve(axis, here[here["method"] == method].sort_values("epsilon"), method=method)
            axis.set_xscale("log")
            axis.set_ylim(top=1.01)
            # The same reach in ε for every panel of a series.
            axis.set_xlim(*_reach(here))
            plain_log(axis.xaxis)
            axis.set_xlabel("privacy cost ε")
        grid[0, column].set_title(f"{here['label'].iloc[0]}, N = {int(here['population'].iloc[0]):,}")
    for axis in axes[:, 0]:
        axis.set_ylabel("accuracy 1 − E[q_max − q_chosen]")
    where = ("top", "bottom") if len(names) > 1 else ("left", "right")
    style: dict[str, Any] = {"alignment": "left"}
    keys = [axis.get_legend_handles_labels() for axis in grid[:, 0]]
    figure.legend(*keys[0], loc="outside right upper", title=f"Gaussian noisy max ({where[0]})", **style)
    figure.legend(*keys[1], loc="outside right lower", title=f"pure mechanisms ({where[1]})", **style)
    note_simulated(figure, bool(table["simulated"].any()))
    return figure


def _curve(axis: Any, curve: Table, *, method: str) -> None:
    """One mechanism's accuracy with its band."""
    label = f"{_LABELS[method]} (δ = {'1e-5' if method in _NEEDS_DELTA else '0'})"
    colour = METHOD_COLOURS[method]
    axis.plot(curve["epsilon"], curve["accuracy"], _DASHED.get(method, "-"), color=colour, label=label)
    low, high = (curve["accuracy"] + side * curve["standard_error"] for side in (-1, 1))
    axis.fill_between(curve["epsilon"], low, high, color=colour, alpha=0.2, linewidth=0)


def _reach(table: Table) -> tuple[float, float]:
    pure = table[table["method"] == "pure"]
    return float(pure["epsilon"].min()), min(float(pure["epsilon"].max()), 10.0)


def offline_caption(table: Table, *, target: float = 0.9) -> str:
    """What the reader sees: the ε at which each method keeps the target accuracy."""
    sentences = []
    for name in dict.fromkeys(table["series"]):
        costs = [
            f"{method} {cost_of(table, series=name, method=method, accuracy=target):.3g}"
            for method in dict.fromkeys((*PUBLISHED, *CLASSICAL))
        ]
        label = table.loc[table["series"] == name, "label"].iloc[0]
        sentences.append(f"{label}: ε for {target:.0%} accuracy: {', '.join(costs)}.")
    return " ".join(sentences) + (
        " Bands: one standard error. Where the family is monotone, every pure mechanism here costs about half."
    )
