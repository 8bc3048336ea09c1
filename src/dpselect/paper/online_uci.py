"""Figure "online-uci": F1 against the final ε over 731 days of a bicycle share (paper, Section 4, and appendix)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.paper.online import online_caption, online_draw, online_measure, online_parts
from dpselect.paper.parts import Part, Table, gather
from dpselect.paper.sizes import QUICK, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Online selection on UCI Bikes: on which days are riders above ρ?"
#: The first threshold is the main text's; the appendix gives no list, so these span the range.
THRESHOLDS = (0.575, 0.85, 0.65, 0.75)
SIGMAS = (0.09, 0.15)


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """Several parts per threshold."""
    return online_parts("uci", thresholds=THRESHOLDS, sigmas=SIGMAS, size=size, data=data)


def measure(part: Part, *, data: Path | None = None) -> Table:
    """One kind of setting at one threshold."""
    return online_measure(part, data=data)


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


def draw(table: Table) -> Figure:
    """One panel per threshold."""
    return online_draw(table)


def caption(table: Table) -> str:
    """What the reader sees."""
    return online_caption(table)
