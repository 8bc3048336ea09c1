"""Figure "spend-lcl": ε spent by each day of the stream (appendix)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.paper.parts import Part, Table, gather
from dpselect.paper.sizes import QUICK, Size
from dpselect.paper.spending import spending_caption, spending_draw, spending_measure, spending_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Privacy spent over time on Low Carbon London"
THRESHOLDS = (0.33, 0.8)
SIGMAS = (0.04, 0.1, 0.16)


def parts(size: Size, *, data: Path | None = None) -> list[Part]:
    """One part per panel."""
    return spending_parts("lcl", thresholds=THRESHOLDS, sigmas=SIGMAS, size=size, data=data)


def measure(part: Part, *, data: Path | None = None) -> Table:
    """One panel."""
    return spending_measure(part, data=data)


def compute(size: Size = QUICK, *, data: Path | None = None) -> Table:
    """The whole table."""
    return gather(parts(size, data=data), measure=measure, data=data)


def draw(table: Table) -> Figure:
    """Thresholds down, noise levels across."""
    return spending_draw(table)


def caption(table: Table) -> str:
    """What the reader sees."""
    return spending_caption(table)
