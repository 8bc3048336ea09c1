"""Quadrature against plain Monte Carlo for noisy max (paper, Section 3.4 and appendix B).

The authors draw ten billion normals for the numerator and as many others for the denominator, a hundred times.
``benchmarks/monte_carlo.py`` does so on a GPU, with paired draws beside it; its JSON, named ``monte_carlo_gpu.json``
and put into the data folder, is drawn beside the smaller sample a processor can afford. What ten billion must give is
also known without drawing any: the spread is an integral too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr

from dpselect.checks import FloatArray
from dpselect.errors import SourceError
from dpselect.privacy.noisy_max import noisy_max_loss
from lebensold2024.datasets import GPU_RESULTS, data_folder
from lebensold2024.figure import Claim, Figure, Part, Row, Size, Table, generator_of, held_if
from lebensold2024.style import COLOURS, legend, panels, plain_log

SENSITIVITY = 0.01
#: The main text's σ, and the range beside it as in the appendix.
SIGMA = 0.3
SIGMAS = (0.2, 0.3, 0.4, 0.5)
CANDIDATES = (2, 5, 10, 20, 50, 100)
#: Draws of their own for the denominator, as the authors do it, or the same for both.
PAIRINGS = ("independent", "paired")

#: The samples of one estimate in the paper.
PAPER_SAMPLES = 10_000_000_000

_CHUNK = 1 << 14


def _parts(size: Size) -> Iterator[Part]:
    """Per σ: quadrature with the spread it predicts, and a few groups of estimates."""
    groups = min(5, size.estimates)
    for sigma in SIGMAS:
        yield {"kind": "quadrature", "sigma": sigma}
        for group in range(groups):
            estimates = size.estimates // groups + (group < size.estimates % groups)
            drawn = {"group": group, "estimates": estimates, "samples": size.samples}
            yield {"kind": "processor", "sigma": sigma} | drawn


def _left_by_gpu(data: Path | None) -> list[Part]:
    folder = data_folder(data)
    if folder is None or not (folder / GPU_RESULTS).is_file():
        return []
    try:
        found = json.loads((folder / GPU_RESULTS).read_text())
        chosen = {name: found[name] for name in ("samples", "sensitivity", "device", "trials")}
        columns = set(chosen["trials"][0])
    except (ValueError, KeyError, TypeError, IndexError):
        columns, chosen = set(), {}
    if not {"sigma", "candidates", "pairing", "trial", "epsilon"} <= columns:
        raise SourceError(f"{GPU_RESULTS} is not what benchmarks/monte_carlo.py --gpu --json writes")
    if chosen["sensitivity"] != SENSITIVITY:
        raise SourceError(f"{GPU_RESULTS} holds another Δ than this figure's {SENSITIVITY:g}")
    return [{"kind": "gpu", **chosen}]


class Estimate(NamedTuple):
    """ε of noisy max by Monte Carlo, one entry per number of candidates, with its standard error."""

    epsilon: FloatArray
    standard_error: FloatArray


def processor_sums(
    candidates: tuple[int, ...], *, sigma: float, samples: int, generator: np.random.Generator
) -> FloatArray:
    """The sums of :func:`estimate_from`, in chunks that fit a cache."""
    powers = np.array(candidates)[:, None] - 1.0
    products: FloatArray = np.zeros((2 * len(candidates) + 1,) * 2)
    left = samples
    while left > 0:
        x = generator.standard_normal(min(left, _CHUNK))
        left -= len(x)
        # One logarithm serves all powers; Φ is far from underflow for normals a generator can give.
        terms = [np.exp(powers * np.log(ndtr(x - shift))) for shift in shifts(sigma)]
        rows = np.concatenate([*terms, np.ones((1, len(x)))])
        products += rows @ rows.T
    return sums_of(products)


def shifts(sigma: float) -> tuple[float, float]:
    """What Φ's argument is moved by in the numerator and in the denominator."""
    return (1 - 2 * SENSITIVITY) / sigma, 1 / sigma


def sums_of(products: FloatArray) -> FloatArray:
    """f₁, f₀, f₁², f₀² and f₁f₀ added up, by d, out of all products of the rows f₁ by d, f₀ by d, and 1."""
    count = len(products) // 2
    squares = np.diag(products)
    both = np.diag(products[:count, count:-1])
    return np.stack([products[:count, -1], products[count:-1, -1], squares[:count], squares[count:-1], both], axis=1)


def estimate_from(sums: FloatArray, *, samples: int, others: FloatArray | None = None) -> Estimate:
    """log(mean f₁/mean f₀) and, by the delta method, its standard error, from :func:`sums_of`.

    The same draws serve numerator and denominator; with ``others`` the denominator has draws of its own, as in the
    authors' code. Where nothing was hit, ε is NaN and the error infinite: plain Monte Carlo does not see the rare event
    that carries the integral.

    >>> estimate = estimate_from(np.array([[2.0, 1.0, 2.0, 1.0, 1.0]]), samples=4)
    >>> round(float(estimate.epsilon[0]), 4)
    0.6931
    """
    first, _, square_first, _, product = sums.T / samples
    second, square_second = (sums if others is None else others).T[[1, 3]] / samples
    if others is not None:
        product = first * second
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon = np.log(first / second)
        spread = square_first / first**2 + square_second / second**2 - 2 * product / (first * second)
        error = np.sqrt(np.maximum(spread, 0.0) / samples)
    hit = (first > 0) & (second > 0)
    return Estimate(np.where(hit, epsilon, np.nan), np.where(hit, error, np.inf))


def predicted_spread(candidates: int, *, sigma: float, samples: int = PAPER_SAMPLES) -> dict[str, float]:
    """The relative standard deviation of an estimate, by quadrature.

    >>> {pairing: round(spread, 4) for pairing, spread in predicted_spread(100, sigma=0.3).items()}
    {'independent': 0.1167, 'paired': 0.0168}
    """
    x = np.linspace(-12.0, 24.0, 40_001)
    weight = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    near, far = (log_ndtr(x - shift) for shift in shifts(sigma))
    power = candidates - 1

    def moment(first: int, second: int) -> float:
        return float(weight @ np.exp(power * (first * near + second * far)))

    means = moment(1, 0), moment(0, 1)
    squares = moment(2, 0) / means[0] ** 2 + moment(0, 2) / means[1] ** 2
    both = moment(1, 1) / (means[0] * means[1])
    epsilon = float(np.log(means[0] / means[1]))
    return {
        "independent": float(np.sqrt((squares - 2.0) / samples)) / epsilon,
        "paired": float(np.sqrt((squares - 2.0 * both) / samples)) / epsilon,
    }


def measure(part: Part) -> Iterator[Row]:
    """Rows of (kind, σ, d, pairing, trial, ε)."""
    if part["kind"] == "gpu":
        yield dict(pd.DataFrame(part["trials"])) | {name: part[name] for name in ("kind", "samples", "device")}
        return
    row = {"kind": part["kind"], "sigma": part["sigma"], "candidates": CANDIDATES}
    if part["kind"] == "quadrature":
        loss = noisy_max_loss(width=1.0, sensitivity=SENSITIVITY, sigma=part["sigma"], candidates=CANDIDATES)
        spreads = [predicted_spread(d, sigma=part["sigma"]) for d in CANDIDATES]
        row |= {"epsilon": loss.value, "device": ""} | {f"spread_{p}": [one[p] for one in spreads] for p in PAIRINGS}
        yield row | {"bound": loss.error / loss.value, "samples": 0}
        return
    drawn: Any = {"sigma": part["sigma"], "samples": part["samples"], "generator": generator_of(part)}
    row |= {"samples": part["samples"], "device": "processor"}
    for trial in range(part["estimates"]):
        first, second = (processor_sums(CANDIDATES, **drawn) for _ in PAIRINGS)
        for pairing, others in zip(PAIRINGS, (second, None), strict=True):
            epsilon = estimate_from(first, samples=part["samples"], others=others).epsilon
            yield row | {"pairing": pairing, "trial": f"{part['group']}-{trial}", "epsilon": epsilon}


def spread_of(table: Table, *, kind: str) -> Table:
    """Mean and standard deviation over trials by (σ, pairing, d), beside quadrature's ε; no hit counts as ε = 0."""
    trials = table[table["kind"] == kind].fillna({"epsilon": 0.0})
    found = trials.groupby(["sigma", "pairing", "candidates"])["epsilon"].agg(["mean", "std", "count"]).reset_index()
    exact = table[table["kind"] == "quadrature"].set_index(["sigma", "candidates"])["epsilon"]
    found["exact"] = [float(exact.loc[row.sigma, row.candidates]) for row in found.itertuples()]
    found["relative"] = found["std"] / found["exact"]
    return found


def ran(table: Table) -> str:
    """What the verdict is taken from: the GPU where it ran."""
    return "gpu" if (table["kind"] == "gpu").any() else "processor"


def _samples(table: Table, kind: str) -> tuple[int, str, str]:
    """Samples per estimate, how many trials (a range where σ differ) and on what."""
    rows, counts = table[table["kind"] == kind], spread_of(table, kind=kind)["count"]
    trials = " to ".join(str(count) for count in sorted({int(counts.min()), int(counts.max())}))
    return int(rows["samples"].iloc[0]), trials, str(rows["device"].iloc[0])


def _draw(table: Table) -> Any:
    """Above, estimates with their spread; below, that spread relative to ε, one column per σ."""
    sigmas = sorted(table["sigma"].unique())
    figure, axes = panels(2, len(sigmas), size=(12.0, 6.6), across="candidates d", sharey="row")
    colours = {"independent": COLOURS["pure"], "paired": COLOURS["profile"]}
    exact = table[table["kind"] == "quadrature"].sort_values("candidates")
    for column, sigma in zip(axes.T, sigmas, strict=True):
        here = exact[exact["sigma"] == sigma].set_index("candidates")
        column[0].plot(here.index, here["epsilon"], color="black", lw=1.2, label="quadrature", zorder=1)
        column[1].plot(here.index, here["bound"], color="black", lw=1.2)
        for pairing, colour in colours.items():
            said = f"{pairing}: predicted for 10,000,000,000 samples"
            column[1].plot(here.index, here[f"spread_{pairing}"], "--", color=colour, label=said)
        column[0].set_title(f"σ = {sigma:g}")
    for kind, mark in {"processor": "s", "gpu": "o"}.items():
        if not (table["kind"] == kind).any():
            continue
        samples, trials, device = _samples(table, kind)
        for (sigma, pairing), here in spread_of(table, kind=kind).groupby(["sigma", "pairing"]):
            column, colour = axes[:, sigmas.index(sigma)], colours[pairing]
            style: Any = {"color": colour, "ms": 4.5, "mfc": "white" if kind == "processor" else colour}
            said = f"{pairing}: {samples:,} samples × {trials} ({device})"
            column[1].plot(here["candidates"], here["relative"], mark, label=said, **style)
            if kind == ran(table):
                places = here["candidates"] * (0.94 if pairing == PAIRINGS[0] else 1.06)
                column[0].errorbar(places, here["mean"], here["std"], fmt=mark, capsize=2, elinewidth=1, **style)
    plain_log(axes[0, 0], "x", ticks=CANDIDATES)
    axes[0, 0].set(ylim=(0, 1.6 * float(exact["epsilon"].max())))
    axes[1, 0].set(yscale="log", ylim=(1e-15, 30))
    axes[0, 0].set_ylabel(f"privacy cost ε\n({'GPU' if ran(table) == 'gpu' else 'processor'}; bars: std over trials)")
    axes[1, 0].set_ylabel("relative error: std/ε;\nquadrature: error bound/ε")
    return legend(figure, columns=2)


def _caption(table: Table) -> str:
    samples, trials, device = _samples(table, ran(table))
    text = (
        f"Δ = {SENSITIVITY:g}. The verdict is taken from {samples:,} samples × {trials} on {device}. Independent draws "
        "for numerator and denominator are the authors' way; pairing them costs nothing. A black line: quadrature."
    )
    if ran(table) == "processor":
        text += f" Ten billion samples appear when {GPU_RESULTS} from benchmarks/monte_carlo.py is in the data folder."
    return text


def _numbers(table: Table) -> Table:
    exact = table[table["kind"] == "quadrature"]
    keys = ["sigma", "candidates"]
    wide = exact[[*keys, "epsilon", "spread_independent", "spread_paired"]].rename(
        columns={"epsilon": "quadrature", **{f"spread_{p}": f"{p}, 1e10 predicted" for p in PAIRINGS}}
    )
    for kind in ("processor", "gpu"):
        if (table["kind"] == kind).any():
            found = spread_of(table, kind=kind).pivot(index=keys, columns="pairing", values="relative").reset_index()
            wide = wide.merge(found.rename(columns={p: f"{p}, {kind}" for p in PAIRINGS}), on=keys)
    return wide[wide["candidates"].isin([10, 100])]


def _claims(table: Table) -> Iterator[Claim]:
    kind = ran(table)
    samples, trials, device = _samples(table, kind)
    found = spread_of(table, kind=kind).set_index(["sigma", "pairing", "candidates"])["relative"]
    own, paired = (float(found.loc[(SIGMA, pairing, 100)]) for pairing in PAIRINGS)
    expected = predicted_spread(100, sigma=SIGMA)
    setting = f"Δ = .01, {samples:,} samples × {trials} on {device}"
    yield Claim(
        where="Section 3.4, text on Monte Carlo",
        claim="At σ = .3 the variance between Monte Carlo trials becomes unwieldy.",
        rule="Held if estimates made the authors' way (independent draws) spread by more than 5% of ε at σ = .3, "
        "d = 100, in the sample that ran and in the one predicted for ten billion.",
        verdict=held_if(min(own, expected["independent"]) > 0.05),
        found=f"{own:.1%} independent, {paired:.1%} paired; ten billion samples must give "
        f"{expected['independent']:.1%} and {expected['paired']:.2%}",
        setting=setting,
    )
    curve = [float(found.loc[(0.5, "independent", d)]) for d in CANDIDATES]
    least, most = (predicted_spread(d, sigma=0.5)["independent"] for d in (2, 100))
    yield Claim(
        where="appendix B, caption of the Monte Carlo figure",
        claim="The variance of the estimate rises with the dimension.",
        rule="Held if, made the authors' way at the largest σ shown, the relative spread at d = 100 exceeds that "
        "at d = 2, in the sample that ran and in the one predicted for ten billion.",
        verdict=held_if(curve[-1] > curve[0] and most > least),
        found=f"σ = .5: {curve[0]:.2%} at d = 2, {curve[-1]:.2%} at d = 100; ten billion samples must give {least:.3%} "
        f"and {most:.2%}",
        setting=setting,
    )


MONTE_CARLO = Figure(
    title="Report noisy max: quadrature against Monte Carlo",
    parts=_parts,
    found=_left_by_gpu,
    measure=measure,
    draw=_draw,
    caption=_caption,
    numbers=_numbers,
    claims=_claims,
)
