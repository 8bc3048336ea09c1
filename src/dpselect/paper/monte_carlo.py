"""Figure "monte-carlo": quadrature against plain Monte Carlo for noisy max (paper, Section 3.4).

The paper draws ten billion normals per estimate, a hundred times. ``benchmarks/monte_carlo.py`` does so on a GPU;
its JSON, named ``monte_carlo_gpu.json`` and put into the data folder, is drawn beside the smaller sample a processor
can afford, which the figure and its caption name as such.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpselect.checks import FloatArray
from dpselect.errors import SourceError
from dpselect.paper.datasets import GPU_RESULTS, data_folder
from dpselect.paper.monte_carlo_kernel import SUMS, Estimate, estimate_from
from dpselect.paper.parts import Part, Table, gather, generator_of
from dpselect.paper.sizes import QUICK, Size
from dpselect.paper.style import BLUE, GREEN, ORANGE, drawn, panels, plain_log
from dpselect.privacy.noisy_max import noisy_max_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Report noisy max: quadrature against Monte Carlo"
SENSITIVITY = 0.01
SIGMA = 0.3
CANDIDATES = (2, 5, 10, 20, 50, 100)

_CHUNK = 1 << 14


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """Quadrature, ten groups of estimates on the processor, and what a GPU left."""
    groups = min(10, size.estimates)
    found: list[Part] = [{"kind": "quadrature", "candidates": list(range(2, 101))}]
    for group in range(groups):
        estimates = size.estimates // groups + (group < size.estimates % groups)
        found.append({"kind": "processor", "group": group, "estimates": estimates, "samples": size.samples})
    left = _left_by_gpu(data)
    if left is not None:
        found.append({"kind": "gpu", **left})
    return found


def _left_by_gpu(data: Path | None) -> dict[str, object] | None:
    folder = data_folder(data)
    if folder is None or not (folder / GPU_RESULTS).is_file():
        return None
    try:
        found = json.loads((folder / GPU_RESULTS).read_text())
        chosen = {name: found[name] for name in ("samples", "candidates", "trials", "sigma", "sensitivity", "device")}
    except (ValueError, KeyError, TypeError):
        raise SourceError(f"{GPU_RESULTS} is not what benchmarks/monte_carlo.py --gpu --json writes") from None
    if (chosen["sigma"], chosen["sensitivity"]) != (SIGMA, SENSITIVITY):
        raise SourceError(f"{GPU_RESULTS} holds another σ or Δ than this figure's {SIGMA:g} and {SENSITIVITY:g}")
    return chosen


def processor_estimate(candidates: tuple[int, ...], *, samples: int, generator: np.random.Generator) -> Estimate:
    """ε for each number of candidates from ``samples`` normals, in chunks that fit a cache."""
    powers = np.array(candidates)[:, None] - 1.0
    sums: FloatArray = np.zeros((len(candidates), SUMS))
    left = samples
    while left > 0:
        x = generator.standard_normal(min(left, _CHUNK))
        left -= len(x)
        # One logarithm serves all powers; Φ is far from underflow for normals a generator can give.
        first = np.exp(powers * np.log(ndtr(x - (1 - 2 * SENSITIVITY) / SIGMA)))
        second = np.exp(powers * np.log(ndtr(x - 1 / SIGMA)))
        terms = (first, second, first * first, second * second, first * second)
        sums += np.stack([term.sum(axis=1) for term in terms], axis=1)
    return estimate_from(sums, samples=samples)


def measure(part: Part, *, data: Path | None = None) -> Table:
    """Rows of (kind, d, trial, ε, standard error)."""
    if part["kind"] == "quadrature":
        loss = noisy_max_loss(width=1.0, sensitivity=SENSITIVITY, sigma=SIGMA, candidates=part["candidates"])
        return pd.DataFrame(
            {
                "kind": "quadrature",
                "candidates": part["candidates"],
                "epsilon": loss.value,
                "standard_error": loss.error,
                "samples": 0,
                "device": "",
            }
        )
    if part["kind"] == "gpu":
        frame = pd.DataFrame(part["trials"])
        return frame.assign(kind="gpu", samples=part["samples"], device=part["device"])
    generator, tables = generator_of(part), []
    for trial in range(part["estimates"]):
        estimate = processor_estimate(CANDIDATES, samples=part["samples"], generator=generator)
        tables.append(
            pd.DataFrame(
                {
                    "kind": "processor",
                    "candidates": CANDIDATES,
                    "trial": f"{part['group']}-{trial}",
                    "epsilon": estimate.epsilon,
                    "standard_error": estimate.standard_error,
                    "samples": part["samples"],
                    "device": "processor",
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


def spread_of(table: Table, *, kind: str) -> Table:
    """Mean and standard deviation over the trials, by d, beside quadrature's ε; trials that hit nothing count as 0."""
    trials = table[table["kind"] == kind].fillna({"epsilon": 0.0})
    found = trials.groupby("candidates")["epsilon"].agg(["mean", "std", "count"])
    exact = table[table["kind"] == "quadrature"].set_index("candidates")["epsilon"]
    found["exact"] = exact.reindex(found.index)
    return found.reset_index()


@drawn
def draw(table: Table) -> Figure:
    """ε with Monte Carlo's spread on the left, that spread relative to ε on the right."""
    figure, axes = panels(columns=2, width=10.5, height=4.3, sharex=True)
    exact = table[table["kind"] == "quadrature"].sort_values("candidates")
    axes[0, 0].plot(exact["candidates"], exact["epsilon"], color=GREEN, label="quadrature", zorder=5)
    for kind, colour, marker, side in (("processor", ORANGE, "s", 0.97), ("gpu", BLUE, "o", 1.03)):
        if not (table["kind"] == kind).any():
            continue
        found = spread_of(table, kind=kind)
        samples = int(table.loc[table["kind"] == kind, "samples"].iloc[0])
        label = f"Monte Carlo, {samples:,} samples × {int(found['count'].max())} ({_device(table, kind)})"
        axes[0, 0].errorbar(
            side * found["candidates"],
            found["mean"],
            found["std"],
            fmt=marker,
            ms=5,
            color=colour,
            capsize=3,
            label=label,
        )
        axes[0, 1].plot(found["candidates"], found["std"] / found["exact"], f"{marker}-", color=colour, label=label)
    axes[0, 1].plot(exact["candidates"], exact["standard_error"] / exact["epsilon"], color=GREEN)
    axes[0, 1].set_yscale("log")
    for axis in axes[0]:
        axis.set_xscale("log")
        axis.set_xlabel("candidates d")
    plain_log(axes[0, 0].xaxis, ticks=[2, 5, 10, 20, 50, 100])
    axes[0, 0].set_ylabel("privacy cost ε")
    axes[0, 0].set_ylim(bottom=0)
    axes[0, 0].set_title("Estimates (bars: standard deviation over trials)")
    axes[0, 1].set_ylabel("relative error")
    axes[0, 1].set_title("Standard deviation / ε; quadrature: error bound / ε")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _device(table: Table, kind: str) -> str:
    return str(table.loc[table["kind"] == kind, "device"].iloc[0])


def caption(table: Table) -> str:
    """What the reader sees, with the sample sizes."""
    found = spread_of(table, kind="processor").set_index("candidates")
    samples = int(table.loc[table["kind"] == "processor", "samples"].iloc[0])
    row = found.loc[100]
    text = (
        f"Δ = {SENSITIVITY:g}, σ = {SIGMA:g}. A sample of {samples:,} per estimate, smaller than the paper's ten "
        f"billion: at d = 100 it gives {row['mean']:.3f} ± {row['std']:.3f} where quadrature gives {row['exact']:.6f}. "
    )
    if (table["kind"] == "gpu").any():
        exact = spread_of(table, kind="gpu").set_index("candidates").loc[100]
        text += (
            f"Ten billion samples on {_device(table, 'gpu')}: {exact['mean']:.5f} ± {exact['std']:.5f}, a relative "
            f"spread of {exact['std'] / exact['exact']:.1%}. "
        )
    else:
        text += (
            f"The ten-billion figure appears when {GPU_RESULTS} from benchmarks/monte_carlo.py is in the data folder. "
        )
    exact_rows = table[table["kind"] == "quadrature"]
    bound = float((exact_rows["standard_error"] / exact_rows["epsilon"]).max())
    return text + f"Quadrature's own error bound is at most {bound:.0e} of ε, and a batch of values takes milliseconds."
