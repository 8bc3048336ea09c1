"""Corrections: each slip of the printed statements, with a number that shows it matters.

Said for each: whether it is *printed* in the paper or *quoted* from Zhu and Wang. The authors' public code has the
logarithm, b and the sign right; what it gets wrong is in :mod:`dpselect.paper.quadrature`. THEORY §2 and §4 say what is
right and why; here both sides are computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.special import ndtr

from dpselect.paper.claims import Claim, held_if
from dpselect.paper.figure import Figure, Part, Table
from dpselect.paper.sizes import Size
from dpselect.paper.style import COLOURS, drawn, panels, plain_log, subscripts
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.noisy_max import noisy_max_epsilon


def _parts(size: Size, *, data: Path | None) -> list[Part]:
    return [{"kind": "all"}]


def _measure(part: Part, *, data: Path | None) -> Table:
    return pd.DataFrame([*_formulas(), *_filter(), _moment()])


#: What the paper says of each unit, and when that counts as held.
SAYS = {
    "ε": (
        "The statement as it stands gives the cost, and is tight",
        "Held if the value it gives is the true one, since the abstract calls the bounds tight; a larger one is safe "
        "but loose.",
    ),
    "δ": ("FSRC is (ε, δ)-DP", "Held if the δ of the theorem is at least the true one."),
    "log M₂": (
        "Zhu and Wang's closed form follows from their general bound with γ = 2, for every ρ ≥ 0",
        "Held if what it puts for the logarithm of the second moment is at least the true one.",
    ),
}


def _row(unit: str, what: str, where: str, setting: str, wrong: float, true: float) -> dict[str, Any]:
    harm = "unsafe" if wrong < true else "loose"
    return {"unit": unit, "what": what, "where": where, "setting": setting, "wrong": wrong, "true": true, "harm": harm}


def _formulas() -> list[dict[str, Any]]:
    pure = float(np.asarray(noisy_max_epsilon(width=1.0, sensitivity=1e-3, sigma=0.1, candidates=365)))
    run: dict[str, Any] = {"sensitivity": 1e-3, "sigma_threshold": 0.2, "sigma_query": 0.2 * math.sqrt(3)}
    run |= {"below": 9, "above": 1}
    shifted = float(np.asarray(transcript_epsilon(**run, threshold=1.5, lower=1.0, upper=2.0)))
    unit = float(np.asarray(transcript_epsilon(**run, threshold=0.75, lower=0.0, upper=1.0)))
    narrow = _printed_loss(lower=1.0, top=1.0, sign=-1.0, threshold=1.5)
    wide = _printed_loss(lower=1.0, top=3.0, sign=-1.0, threshold=1.5)
    plus = _printed_loss(lower=0.0, top=1.0, sign=1.0, threshold=0.75)
    away = "[1, 2], ρ = 1.5, σ_X = .2, t = 10"
    noisy = "noisy max, σ = .1, d = 365, Δ = .001"
    return [
        _row("ε", "the log is missing", "printed: Sections 3.1, 3.2, A.1, A.2", noisy, math.exp(pure), pure),
        _row("ε", "ψ with b − a for b, equal if a = 0", "printed: appendix A.2", away, narrow, shifted),
        _row("ε", "ψ with b + a for b, equal if a = 0", "printed: Section 3.2", away, wide, shifted),
        _row("ε", "β with +x for −x", "printed: Section 3.2", "[0, 1], ρ = .75, σ_X = .2, t = 10", plus, unit),
    ]


def _printed_loss(*, lower: float, top: float, sign: float, threshold: float) -> float:
    """The ex-post theorem with ψ's b replaced by ``top`` and the sign of σ_X·x in β as given (the log put back)."""
    sigma_threshold, delta = 0.2, 1e-3
    sigma_query = sigma_threshold * math.sqrt(3)
    x = np.linspace(-12.0, 12.0, 200_001)

    def integral(shift: float) -> float:
        silent = ndtr((sigma_threshold * x + threshold - top + shift) / sigma_query) ** 9
        halting = ndtr((lower - threshold + sign * sigma_threshold * x + shift) / sigma_query)
        return float(np.sum(np.exp(-0.5 * x * x) * silent * halting))

    return math.log(integral(delta) / integral(0.0))


def counter_example() -> dict[str, float]:
    """FSRC on a genuine instance: queries in [3, 5] far above ρ = 0, so that a first ⊥ is rare and costs much.

    ε_max is set directly: every round reserves ε(⊤), which its loss exceeds with probability δ = P(first answer ⊥).
    The filter then lets ``rounds`` runs through.

    >>> {name: round(value, 5) for name, value in counter_example().items()}
    {'rounds': 758.0, 'theorem': 0.00135, 'union': 1.02322, 'true': 0.57633}
    """
    budget = 1.0
    usual = transcript_epsilon(
        lower=3.0,
        upper=5.0,
        sensitivity=1.0,
        threshold=0.0,
        sigma_threshold=0.5,
        sigma_query=math.sqrt(3) / 2,
        below=0,
        above=1,
    )
    theorem = float(ndtr(-3.0))
    rounds = math.ceil(budget / float(np.asarray(usual))) - 1
    ever, neighbour = (-math.expm1(rounds * math.log1p(-float(ndtr(-value)))) for value in (3.0, 4.0))
    true = ever - math.exp(budget) * neighbour
    return {"rounds": float(rounds), "theorem": theorem, "union": rounds * theorem, "true": true}


def _filter() -> list[dict[str, Any]]:
    found = counter_example()
    setting = f"[3, 5], ρ = 0, σ_X = .5, Δ = 1, ε = 1: {found['rounds']:.0f} runs"
    return [
        _row(
            "δ", "FSRC: what the theorem gives", "printed: Sections 3.3, A.3", setting, found["theorem"], found["true"]
        ),
        _row("δ", "its easy repair, n·δ", "not in the paper", setting, min(found["union"], 1.0), found["true"]),
    ]


def _moment() -> dict[str, Any]:
    """log E[Φ(−x/√3)^(−2)], which the closed form claims to cover at ρ = a."""
    found = quad(
        lambda x: math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) / ndtr(-x / math.sqrt(3)) ** 2, -12, 30, limit=500
    )
    printed = math.log(1 + 2 * math.sqrt(3) * math.pi)
    where = "quoted from Zhu–Wang: Section 2"
    return _row("log M₂", "closed form at ρ = 0", where, "σ_Z = √3·σ_X, ρ = a", printed, math.log(found[0]))


@drawn
def _draw(table: Table) -> Any:
    """Wrong and true side by side, one axis per unit."""
    units = list(dict.fromkeys(table["unit"]))
    counts = [int((table["unit"] == unit).sum()) for unit in units]
    figure, axes = panels(
        len(units),
        width=10.5,
        height=0.58 * len(table) + 0.75 * len(units) + 0.8,
        height_ratios=[n + 0.4 for n in counts],
    )
    ticks = {"ε": [0.01, 0.03, 0.1, 0.3, 1], "δ": [0.001, 0.01, 0.1, 1], "log M₂": [2.45, 2.5, 2.55, 2.6]}
    for axis, unit in zip(axes[:, 0], units, strict=True):
        rows = table[table["unit"] == unit].reset_index(drop=True)
        for spot, row in enumerate(rows.itertuples()):
            axis.plot([row.wrong, row.true], [spot, spot], "-", color="#999999", lw=1.4, zorder=1)
            repair = row.where == "not in the paper"
            colour, label = (
                (COLOURS["fsrc split"], "repair") if repair else (COLOURS["per run"], "as printed or quoted")
            )
            axis.plot([row.wrong], [spot], "P" if repair else "X", color=colour, ms=9, label=label)
            axis.plot([row.true], [spot], "o", color="black", ms=7, label="true")
        names = [f"{row.what}\n{row.where}; {row.setting}" for row in rows.itertuples()]
        axis.set_yticks(range(len(rows)), [subscripts(name) for name in names], fontsize=8.5)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.set_xscale("log")
        plain_log(axis.xaxis, ticks=ticks[unit])
        axis.set_xlim(*((2.44, 2.61) if unit == "log M₂" else (min(ticks[unit]) * 0.9, max(ticks[unit]) * 1.5)))
        axis.set_xlabel(f"{unit}" + (" (at least, for the true one)" if unit == "δ" else ""))
    keys: dict[str, Any] = {}
    for axis in axes[:, 0]:
        handles, labels = axis.get_legend_handles_labels()
        keys |= dict(zip(labels, handles, strict=True))
    figure.legend(keys.values(), keys.keys(), loc="outside lower center", ncols=3)
    return figure


def _caption(table: Table) -> str:
    unsafe = int((table["harm"] == "unsafe").sum())
    return (
        f"A cross left of its dot promises more privacy than there is ({unsafe} of {len(table)} lines); right of it, "
        "less. The authors' code has the log, b and the sign right, so their figures do too, and with a = 0 both forms "
        "of ψ are right. FSRC's sum is a valid reading after the fact; only the (ε, δ) theorem fails, and n runs fixed "
        "beforehand give (ε, nδ), which on this instance promises nothing."
    )


def _numbers(table: Table) -> Table:
    return table[["what", "where", "setting", "unit", "wrong", "true", "harm"]]


def _claims(table: Table) -> Iterator[Claim]:
    for row in table[table["where"] != "not in the paper"].itertuples():
        says, rule = SAYS[row.unit]
        at_least = "at least " if row.unit == "δ" else ""
        union = "; n·δ, the easy repair, would be 1.02; ε_max is set directly to ε(⊤)" if row.unit == "δ" else ""
        fine = math.isclose(row.wrong, row.true, rel_tol=1e-6) if row.unit == "ε" else row.wrong >= row.true
        yield Claim(
            where=row.where,
            claim=f"{says} ({row.what}).",
            rule=rule,
            verdict=held_if(fine),
            found=f"{row.wrong:.4g} where the truth is {at_least}{row.true:.4g} ({row.harm}{union})",
            setting=str(row.setting),
        )


CORRECTIONS = Figure(
    title="Corrections: what is printed, and what is true",
    parts=_parts,
    measure=_measure,
    draw=_draw,
    caption=_caption,
    numbers=_numbers,
    claims=_claims,
)
