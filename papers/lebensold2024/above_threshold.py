"""Above threshold: the loss after a run against guarantees before it, and as the threshold moves (paper, Section 3).

For t = 3, σ_X = .3, ρ = .75 the authors' notebook shows 0.028 before the run and 0.008 after it; the paper's text
prints neither. The first is Zhu and Wang's closed form turned into (ε, δ) by the tight conversion to *approximate* DP
(.0275). The conversion to *probabilistic* DP, printed in the paper's Section 2, gives .0364.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr

from dpselect.checks import FloatArray
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.conversions import ORDERS, renyi_to_approximate, renyi_to_probabilistic
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.profiles import selection_epsilon
from dpselect.privacy.zhu_wang import zhu_wang_renyi
from dpselect.rounding import at_most
from lebensold2024.as_printed import zhu_wang_renyi_as_published
from lebensold2024.figure import Claim, Figure, Part, Row, Size, Table, generator_of, held_if
from lebensold2024.passes import gaussian, run_curve
from lebensold2024.style import heat_map, legend, panels, plain_log, ramp

SENSITIVITY = 1e-3
UNIT = QueryFamily(lower=0.0, upper=1.0, sensitivity=SENSITIVITY)
DELTA = 1e-5
THRESHOLDS = (0.5, 0.65, 0.75)
#: Simulated runs stop here.
CAP = 200


def before(sigma: float, *, threshold: float) -> dict[str, float]:
    """What can be said before the run: as published in both senses of δ, and with the moment taken numerically.

    >>> {name: round(value, 4) for name, value in before(0.3, threshold=0.75).items()}
    {'published': 0.0275, 'published_probabilistic': 0.0364, 'numerical': 0.0269}
    """
    published, numerical = (
        run_curve(gaussian(UNIT, threshold=threshold, sigma=sigma), bound)
        for bound in (zhu_wang_renyi_as_published, zhu_wang_renyi)
    )
    return {
        "published": renyi_to_approximate(ORDERS, published, delta=DELTA),
        "published_probabilistic": renyi_to_probabilistic(ORDERS, published, delta=DELTA),
        "numerical": renyi_to_approximate(ORDERS, numerical, delta=DELTA),
    }


def stopping_times(sigma: float, *, threshold: float, trials: int, generator: np.random.Generator) -> FloatArray:
    """Simulated stopping times of the stream of zeros, the slowest to stop: geometric once the threshold is drawn."""
    offset = sigma * generator.standard_normal(trials)
    chance = ndtr(-(threshold + offset) / (math.sqrt(3) * sigma))
    return np.minimum(generator.geometric(chance), CAP).astype(np.float64)


# --- the heat map ----------------------------------------------------------------------------------------------------


def _map_parts(size: Size) -> list[Part]:
    return [
        {
            "threshold": threshold,
            "sigmas": np.linspace(0.2, 0.3, size.grid).tolist(),
            "steps": sorted({round(t) for t in np.linspace(3, 50, size.grid)}),
            "trials": size.stopping,
        }
        for threshold in THRESHOLDS
    ]


def _map(part: Part) -> Iterator[Row]:
    """Losses and guarantees over (σ_X, t) at one threshold, with the stopping times' quantiles."""
    threshold, generator = part["threshold"], generator_of(part)
    steps = np.array(part["steps"], dtype=np.float64)
    for sigma in part["sigmas"]:
        times = stopping_times(sigma, threshold=threshold, trials=part["trials"], generator=generator)
        shift = SENSITIVITY * math.sqrt(1 + 4 / 3) / sigma
        row: Row = {"threshold": threshold, "sigma_threshold": sigma, "step": steps}
        row |= {
            "after": gaussian(UNIT, threshold=threshold, sigma=sigma).loss(steps - 1, 1),
            "before_profile": selection_epsilon(DELTA, shift=shift, outputs=steps + 1),
            "median_stop": np.quantile(times, 0.5),
            "late_stop": np.quantile(times, 0.8),
        }
        yield row | {f"before_{name}": value for name, value in before(sigma, threshold=threshold).items()}


def _best_before(table: Table) -> Any:
    return table[["before_profile", "before_numerical"]].min(axis=1)


def _draw_map(table: Table) -> Any:
    """As published above, against the stronger guarantee below, one colour scale."""
    from matplotlib.patheffects import Normal, Stroke

    outline = [Stroke(linewidth=3.6, foreground="white"), Normal()]
    figure, axes = panels(2, 3, size=(11.5, 7.0), across=r"threshold noise $\sigma_X$")
    rows = {
        "against Zhu–Wang as published\n(the paper's comparison)": table["after"] - table["before_published"],
        "against the best guarantee\nfor a run capped at t": table["after"] - _best_before(table),
    }
    lines = {
        "median_stop": ("--", "median stopping time, all-zeros stream"),
        "late_stop": (":", "80th percentile of the stopping time"),
    }
    reach = max(float(np.abs(gap).max()) for gap in rows.values())
    mesh: Any = None
    for row, (name, gap) in zip(axes, rows.items(), strict=True):
        for axis, (_, here) in zip(row, table.assign(gap=gap).groupby("threshold"), strict=True):
            grid = here.pivot(index="step", columns="sigma_threshold", values="gap")
            mesh = heat_map(axis, grid, vmin=-reach, vmax=reach)
            stops = here.drop_duplicates("sigma_threshold").sort_values("sigma_threshold").set_index("sigma_threshold")
            for column, (style, said) in lines.items():
                axis.plot(stops.index, stops[column], style, color="black", label=said, path_effects=outline)
        row[0].set_ylabel(f"{name}\nhalting step t")
    for axis, threshold in zip(axes[0], sorted(table["threshold"].unique()), strict=True):
        axis.set_title(f"ρ = {threshold:g}")
    said = "realised loss after the run − guarantee before it\n(blue: the loss is lower)"
    figure.colorbar(mesh, ax=axes, label=said, pad=0.01, aspect=35)
    axes[0, 0].plot([], [], color="black", linewidth=1.2, label="equal")
    return legend(figure, columns=3)


def _map_caption(table: Table) -> str:
    published, best = (
        100 * float((table["after"] < bound).mean()) for bound in (table["before_published"], _best_before(table))
    )
    return (
        f"Δ = {SENSITIVITY:g}, δ = {at_most(DELTA)}, σ_Z = √3·σ_X, queries in [0, 1]; stopping times cut at {CAP}. The "
        f"realised loss, which asks for no δ, is lower in {published:.0f}% of the map above and in {best:.0f}% below."
    )


def _map_numbers(table: Table) -> Table:
    columns = ["threshold", "sigma_threshold", "step", "after", "before_published", "before_profile", "median_stop"]
    ends = table["sigma_threshold"].isin([table["sigma_threshold"].min(), table["sigma_threshold"].max()])
    return table[ends & table["step"].isin([table["step"].min(), table["step"].max()])][columns]


def _map_claims(table: Table) -> Iterator[Claim]:
    gaps = (table["before_published"] - table["after"]).groupby(table["threshold"]).mean()
    yield Claim(
        where="Section 3.2, text on the above-threshold heat map",
        claim="The separation between ex-ante and ex-post grows with the threshold.",
        rule="Held if the mean gap over the map rises from each published threshold to the next.",
        verdict=held_if(bool(gaps.is_monotonic_increasing)),
        found=", ".join(f"ρ = {threshold:g}: {gap:.4f}" for threshold, gap in gaps.items()),
        setting="mean over the map, Δ = .001, δ = 1e-5",
    )
    early = table[table["step"] <= table["median_stop"]]
    published = float((early["after"] < early["before_published"]).mean())
    best = float((early["after"] < _best_before(early)).mean())
    yield Claim(
        where="Section 3.1, caption of the above-threshold heat map",
        claim="The ex-post loss improves on the baseline below the line of median stopping times.",
        rule="Held if it is below the published baseline in at least 99% of the cells below that line.",
        verdict=held_if(published >= 0.99),
        found=f"{published:.0%} of them; {best:.0%} against the best guarantee for a run capped at t, which is newer",
        setting="Δ = .001, δ = 1e-5; the loss asks for no δ",
    )
    halted = {
        float(threshold): float(((rows["before_published"] - rows["after"]) / rows["before_published"]).max())
        for threshold, rows in table[table["step"] == table["step"].min()].groupby("threshold")
    }
    yield Claim(
        where="abstract, and Section 1 (above threshold)",
        claim="The bounds lead to tighter accounting in the high-privacy, low-data regime.",
        rule="Held if, on the paper's own map (N = 1,000, every ε below .1), the ex-post loss of a run that "
        "halts by the "
        "median time is below the published baseline in at least 99% of the cells.",
        verdict=held_if(published >= 0.99 and float(table["before_published"].max()) < 0.1),
        found="lower by up to "
        + ", ".join(f"{share:.0%} at ρ = {threshold:g}" for threshold, share in halted.items())
        + f" for runs that halt at t = 3; largest baseline ε on the map {table['before_published'].max():.3f}",
        setting="Δ = .001, δ = 1e-5",
    )


HEAT_MAP = Figure(
    title="Above threshold: loss after the run against guarantees before it",
    parts=_map_parts,
    measure=_map,
    draw=_draw_map,
    caption=_map_caption,
    numbers=_map_numbers,
    claims=_map_claims,
)

# --- the loss against ρ ----------------------------------------------------------------------------------------------

SIGMA_THRESHOLD = 0.15
STEPS = (2, 5, 10, 25, 50, 200)
#: Half-width of the clip in the third panel.
CLIP = 0.1


def _losses(part: Part) -> Iterator[Row]:
    """ε(⊥^(t−1)⊤) over (t, ρ), three ways."""
    step, threshold = (grid.ravel() for grid in np.meshgrid(part["steps"], part["thresholds"], indexing="ij"))
    shared: dict[str, Any] = {
        "sensitivity": SENSITIVITY,
        "threshold": threshold,
        "sigma_threshold": SIGMA_THRESHOLD,
        "sigma_query": math.sqrt(3) * SIGMA_THRESHOLD,
        "below": step - 1,
        "above": 1,
    }
    clipped: dict[str, Any] = {"lower": np.maximum(threshold - CLIP, 0.0), "upper": np.minimum(threshold + CLIP, 1.0)}
    yield {
        "step": step,
        "threshold": threshold,
        "published": transcript_epsilon(**shared, lower=0.0, upper=1.0),
        "monotone": transcript_epsilon(**shared, lower=0.0, upper=1.0, monotone=True),
        "clipped": transcript_epsilon(**shared, **clipped, monotone=True),
    }


def _draw_losses(table: Table) -> Any:
    """Three panels on the same axes; dots mark each curve's least loss."""
    names = {"across": "public threshold ρ", "up": "realised loss ε of halting at step t"}
    figure, axes = panels(1, 3, size=(11.5, 4.0), **names)
    steps = sorted(table["step"].unique())
    titles = {
        "published": "Queries in [0, 1], as in the paper",
        "monotone": "Monotone family",
        "clipped": f"Monotone, clipped to ρ ± {CLIP:g}",
    }
    for axis, (name, title) in zip(axes[0], titles.items(), strict=True):
        for step, colour in zip(steps, ramp(len(steps)), strict=True):
            curve = table[table["step"] == step].sort_values("threshold")
            axis.plot(curve["threshold"], curve[name], color=colour, label=f"t = {int(step)}")
            least = curve.loc[curve[name].idxmin()]
            axis.plot([least["threshold"]], [least[name]], "o", color=colour, ms=5, clip_on=False)
        axis.set_title(title)
    plain_log(axes[0, 0], "y")
    axes[0, 0].plot([], [], "o", color="#777777", ms=5, label="least")
    return legend(figure, columns=len(steps) + 1)


def least_at(table: Table, *, step: int) -> float:
    """The ρ at which halting at ``step`` costs least, as published."""
    curve = table[table["step"] == step]
    return float(curve.loc[curve["published"].idxmin(), "threshold"])


def _loss_claims(table: Table) -> Iterator[Claim]:
    least = least_at(table, step=2)
    curve = table[table["step"] == 2].set_index("threshold")["published"]
    place = "Section 3.3, caption of loss against ρ"
    yield Claim(
        where=place,
        claim="Halting after two steps costs least at ρ = .5.",
        rule="Held if the least loss of the curve t = 2 lies within .03 of ρ = .5.",
        verdict=held_if(abs(least - 0.5) < 0.03),
        found=f"least at ρ = {least:.2f}; the curve varies by {curve.max() / curve.min() - 1:.1%} only",
        setting="Δ = .001, σ_X = .15",
    )
    falling = all(
        bool((rows.sort_values("threshold")["published"].diff().dropna() <= 0).all())
        for _, rows in table[table["step"] > 2].groupby("step")
    )
    late = table[table["step"] == 50].set_index("threshold")["published"]
    yield Claim(
        where=place,
        claim="For larger t the loss falls as ρ → 1.",
        rule="Held if every curve with t > 2 falls all the way from ρ = 0 to 1.",
        verdict=held_if(falling),
        found=f"t = 50: {late.loc[0.0]:.4f} at ρ = 0, {late.loc[1.0]:.4f} at ρ = 1",
        setting="Δ = .001, σ_X = .15, t = 5 … 200",
    )


LOSSES = Figure(
    title="Above threshold: loss of a halted run against the threshold ρ",
    parts=lambda size: [{"thresholds": np.linspace(0.0, 1.0, 2 * size.curve - 1).tolist(), "steps": list(STEPS)}],
    measure=_losses,
    draw=_draw_losses,
    caption=lambda table: (
        f"Δ = {SENSITIVITY:g}, σ_X = {SIGMA_THRESHOLD:g}, σ_Z = √3·σ_X. Clipping the queries to a band round the "
        "threshold keeps Δ and removes most of the dependence on ρ."
    ),
    numbers=lambda table: table[table["threshold"].isin([0.0, 0.5, 1.0]) & table["step"].isin([2, 50])],
    claims=_loss_claims,
)
