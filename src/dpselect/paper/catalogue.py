"""The figures by name, in the order of the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dpselect.paper import (
    corrections,
    monte_carlo,
    noisy_max_curves,
    noisy_max_heatmap,
    offline_lcl,
    offline_near,
    offline_uci,
    online_lcl,
    online_uci,
    spend_lcl,
    spend_uci,
    threshold_heatmap,
    threshold_losses,
)
from dpselect.paper.parts import Part, Table
from dpselect.paper.sizes import Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class FigureModule(Protocol):
    """What every figure's module offers: computing and drawing apart, and the work in parts."""

    TITLE: str

    def parts(self, size: Size, *, data: Path | None = None) -> list[Part]:
        """Parameters of independent pieces of work."""
        ...

    def measure(self, part: Part, *, data: Path | None = None) -> Table:
        """One piece, as a tidy table."""
        ...

    def compute(self, size: Size = ..., *, data: Path | None = None) -> Table:
        """All pieces in one tidy table."""
        ...

    def draw(self, table: Table) -> Figure:
        """The figure of a table."""
        ...

    def caption(self, table: Table) -> str:
        """What the reader sees, in numbers."""
        ...


#: Name → module.
FIGURES: dict[str, FigureModule] = {
    "epsilon-candidates": noisy_max_curves,
    "heatmap-max": noisy_max_heatmap,
    "monte-carlo": monte_carlo,
    "heatmap-at": threshold_heatmap,
    "loss-threshold": threshold_losses,
    "offline-near": offline_near,
    "offline-lcl": offline_lcl,
    "offline-uci": offline_uci,
    "online-uci": online_uci,
    "spend-uci": spend_uci,
    "online-lcl": online_lcl,
    "spend-lcl": spend_lcl,
    "corrections": corrections,
}
