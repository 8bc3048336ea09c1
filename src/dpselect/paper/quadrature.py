"""The authors' quadrature, called as their public code calls it, against the truth (paper, Section 3.4).

``mpmath.quad(f, [-inf, inf])``: noisy max at 100 digits by default and 128 in the notebook of the figures; above
threshold at 20 and 25. The code takes the logarithm, b and the sign of σ_X·x right, where the paper's print does not;
what can go wrong is that the nodes miss the integrand's mode (THEORY §6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpselect.errors import SourceError
from dpselect.paper.claims import Claim, over_readings
from dpselect.paper.figure import Figure, Part, Table
from dpselect.paper.sizes import QUICK, Size
from dpselect.paper.style import COLOURS, drawn, panels, plain_log, subscripts
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.noisy_max import noisy_max_epsilon

SENSITIVITY = 1e-3
#: (σ, d) of noisy max and (σ_X, ρ, t) of above threshold.
NOISY_MAX = ((0.3, 365), (0.1, 365), (0.05, 365))
THRESHOLDS = ((0.25, 0.5, 3), (0.25, 0.5, 1000), (0.25, 0.5, 100_000))
DIGITS = {"noisy max": (100, 128), "above threshold": (20, 25)}
#: Which digits belong to which place in the authors' code.
PLACES = ("default", "notebook")


def _parts(size: Size, *, data: Path | None) -> list[Part]:
    """One part per kind and number of digits; the smallest size keeps 128 digits to the setting that they decide."""
    settings = {"noisy max": NOISY_MAX, "above threshold": THRESHOLDS}
    return [
        {"kind": kind, "place": place, "settings": [list(setting) for setting in (few or settings[kind])]}
        for kind in DIGITS
        for place in PLACES
        for few in [NOISY_MAX[1:2] if (kind, place) == ("noisy max", "notebook") and size.grid < QUICK.grid else ()]
    ]


def measure(part: Part, *, data: Path | None) -> Table:
    """Rows of (setting, digits, found, true)."""
    try:
        import mpmath
    except ImportError:
        raise SourceError("the authors' quadrature needs mpmath; install dpselect[paper]") from None
    kind = part["kind"]
    digits = dict(zip(PLACES, DIGITS[kind], strict=True))[part["place"]]
    rows = []
    for setting in part["settings"]:
        with mpmath.workdps(digits):
            found, true, name = (_noisy_max if kind == "noisy max" else _threshold)(mpmath, *setting)
        rows.append(
            {"kind": kind, "setting": name, "place": part["place"], "digits": digits, "found": found, "true": true}
        )
    return pd.DataFrame(rows)


def _noisy_max(mp: Any, sigma: float, candidates: int) -> tuple[float, float, str]:
    """log of the ratio of integrals over the unscaled noise, as coded."""

    def integral(shift: float) -> Any:
        return mp.quad(
            lambda x: mp.npdf(x, 0, sigma) * mp.ncdf(x - (1 - shift), 0, sigma) ** (candidates - 1), [-mp.inf, mp.inf]
        )

    found = float(mp.log(integral(2 * SENSITIVITY) / integral(0.0)))
    true = noisy_max_epsilon(width=1.0, sensitivity=SENSITIVITY, sigma=sigma, candidates=candidates)
    return found, float(np.asarray(true)), f"noisy max, σ = {sigma:g}, d = {candidates}"


def _threshold(mp: Any, sigma: float, threshold: float, step: int) -> tuple[float, float, str]:
    """The same for a run that halts at ``step``, over the standard normal, as coded."""
    noise = math.sqrt(3) * sigma

    def integral(shift: float) -> Any:
        return mp.quad(
            lambda x: (
                mp.npdf(x)
                * mp.ncdf((sigma * x + threshold - 1 + shift) / noise) ** (step - 1)
                * mp.ncdf((-sigma * x - threshold + shift) / noise)
            ),
            [-mp.inf, mp.inf],
        )

    found = float(mp.log(integral(SENSITIVITY) / integral(0.0)))
    true = transcript_epsilon(
        lower=0.0,
        upper=1.0,
        sensitivity=SENSITIVITY,
        threshold=threshold,
        sigma_threshold=sigma,
        sigma_query=noise,
        below=step - 1,
        above=1,
    )
    return found, float(np.asarray(true)), f"above threshold, σ_X = {sigma:g}, ρ = {threshold:g}, t = {step:,}"


def right(table: Table) -> Any:
    """Whether the value found is the true one, to a part in ten thousand."""
    return (table["found"] / table["true"] - 1).abs() < 1e-4


@drawn
def _draw(table: Table) -> Any:
    """Found over true, one line per setting; 1 is right."""
    names = list(dict.fromkeys(table["setting"]))
    figure, axes = panels(width=10.0, height=0.5 * len(names) + 1.7)
    axis, floor = axes[0, 0], 0.02
    axis.axvline(1.0, color="black", lw=1, label="true (enclosed)")
    for place, marker, side in zip(PLACES, ("o", "D"), (-0.12, 0.12), strict=True):
        rows = table[table["place"] == place]
        ratio = np.maximum(rows["found"] / rows["true"], floor)
        spots = [names.index(name) + side for name in rows["setting"]]
        digits = "/".join(str(DIGITS[kind][PLACES.index(place)]) for kind in DIGITS)
        label = f"{place} digits ({digits}) of the authors' code"
        face = COLOURS["pure"] if place == "notebook" else "white"
        axis.plot(ratio, spots, marker, ms=7, color=COLOURS["pure"], mfc=face, label=label)
        for row, spot in zip(rows.itertuples(), spots, strict=True):
            if row.found / row.true < floor:
                text = f"{row.found:.0e}"
                axis.annotate(text, (floor, spot), xytext=(8, -3), textcoords="offset points", fontsize=8.5)
    axis.set_yticks(range(len(names)), [subscripts(name) for name in names])
    axis.invert_yaxis()
    axis.set_xscale("log")
    plain_log(axis.xaxis, ticks=[0.03, 0.1, 0.3, 1, 3, 10])
    axis.set_xlabel("ε found / true ε    (left of 1: unsafe; right: loose)")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _caption(table: Table) -> str:
    good = int(right(table).sum())
    return (
        f"mpmath.quad over (−∞, ∞), Δ = {SENSITIVITY:g}, as coded: {good} of {len(table)} values are right. At "
        "the digits "
        "of the figures' notebook the published range is right; less noise (σ = .05) and long runs (t = 100,000) "
        "are not."
    )


def _numbers(table: Table) -> Table:
    side = np.where(right(table), "right", np.where(table["found"] < table["true"], "unsafe", "loose"))
    return table.assign(verdict=side)[["setting", "place", "digits", "found", "true", "verdict"]]


def _claims(table: Table) -> Iterator[Claim]:
    fine = right(table)
    wrong = "; ".join(
        f"{row.setting} at {row.digits} digits: {row.found:.3g} where {row.true:.4g}"
        for row in table[~fine].itertuples()
    )
    yield Claim(
        where="Section 3.4, and the authors' public code",
        claim="mpmath computes each density and the outer integral to an arbitrary degree of precision.",
        rule="Held if mpmath.quad, called with the code's own digits, is within 1e-4 of the enclosed value at every "
        "setting tried; it depends if at some.",
        verdict=over_readings(*fine.tolist()),
        found=f"{int(fine.sum())} of {len(table)} right, among them all at the published noise with the notebook's "
        f"digits; wrong: {wrong}",
        setting="Δ = .001, [0, 1]; 100 and 128 digits for noisy max, 20 and 25 above threshold",
    )


QUADRATURE = Figure(
    title="The authors' quadrature, as they call it",
    parts=_parts,
    measure=measure,
    draw=_draw,
    caption=_caption,
    numbers=_numbers,
    claims=_claims,
)
