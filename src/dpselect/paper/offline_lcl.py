"""Figure "offline-lcl": the day of highest load of 5,564 homes (appendix), as a total and as a mean per home."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.paper.datasets import load
from dpselect.paper.offline import offline_caption, offline_draw, offline_measure, offline_parts
from dpselect.paper.parts import Part, Table, gather
from dpselect.paper.sizes import QUICK, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Offline selection on Low Carbon London: which day was consumption highest?"
#: ρ of the main text's online figure; it tells the two readings of the series apart.
PUBLISHED_THRESHOLD = 0.33
SERIES = ("lcl", "lcl-365", "lcl-mean")


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """One part per series."""
    return offline_parts(SERIES, size=size, data=data)


def measure(part: Part, *, data: Path | None = None) -> Table:
    """One series, with how many of its days are above the threshold that the paper watches online."""
    days = int((load(part["series"], data=data).values >= PUBLISHED_THRESHOLD).sum())
    return offline_measure(part, data=data).assign(days_above=days)


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


def draw(table: Table) -> Figure:
    """One column per series."""
    figure: Figure = offline_draw(table)
    return figure


def caption(table: Table) -> str:
    """What the reader sees."""
    return (
        f"{offline_caption(table)} A day is the total over the 5,564 homes or, on the right, the mean per metered "
        "home; the paper does not say which."
    )
