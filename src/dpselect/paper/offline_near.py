"""Figure "offline-near": the day of highest load over 300 homes (appendix), from the daily total alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.paper.offline import offline_caption, offline_draw, offline_measure, offline_parts
from dpselect.paper.parts import Part, Table, gather
from dpselect.paper.sizes import QUICK, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Offline selection on NEAR: which day was consumption highest?"
SERIES = ("near",)


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """One part per series."""
    return offline_parts(SERIES, size=size, data=data)


def measure(part: Part, *, data: Path | None = None) -> Table:
    """One series."""
    return offline_measure(part, data=data)


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


def draw(table: Table) -> Figure:
    """One column per series."""
    figure: Figure = offline_draw(table)
    return figure


def caption(table: Table) -> str:
    """What the reader sees."""
    return f"{offline_caption(table)} Only the daily total over the 300 homes was at hand, and only it is needed."
