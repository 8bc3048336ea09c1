"""How figures look: one set of colours that colour-blind readers can tell apart, one size of type, no clutter.

Figures are made without any window system or global state, so that every process can draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect import files
from dpselect.checks import FloatArray
from dpselect.report.plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: One meaning per colour, in every figure: what is the paper's own, its baselines, what this library adds, and the
#: rest.
COLOURS = {
    "pure": BLUE,
    "fsrc": BLUE,
    "Δ√d Gaussian": VERMILION,
    "per run": VERMILION,
    "Δ√d Rényi": ORANGE,
    "in all": ORANGE,
    "printed": "#8C510A",
    "profile": GREEN,
    "monotone": GREEN,
    "repaired": "#A8960F",
    "fsrc split": SKY,
    "renyi": "#882255",
    "tuned": BLACK,
    "exponential": PURPLE,
    "permute-and-flip": PURPLE,
    "Laplace": "#6A3D9A",
    "release": "#777777",
}

_RULES: Any = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
}


def under_rules(draw: Callable[[Any], Figure], table: Any, *, simulated: bool) -> Figure:
    """A drawing under the house rules for type, lines and legends, and marked where its data were simulated."""
    import matplotlib as mpl

    with mpl.rc_context(_RULES):
        figure = draw(table)
        if simulated:
            figure.suptitle("SIMULATED stand-in data: not the paper's data set", color=VERMILION, fontsize=11)
        return figure


def panels(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], across: str = "", up: str = "", **sharing: Any
) -> tuple[Figure, Any]:
    """An empty figure so many inches wide and high, and a two-dimensional array of its axes, shared unless it is said.

    What lies ``across`` is named under the lowest panels, what goes ``up`` beside the leftmost.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # Room between panels, so that the last tick of one and the first of the next stay apart.
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06))
    axes = figure.subplots(rows, columns, squeeze=False, **{"sharex": True, "sharey": True} | sharing)
    for axis in axes[-1]:
        axis.set_xlabel(across)
    for axis in axes[:, 0]:
        axis.set_ylabel(up)
    return figure, axes


def legend(figure: Figure, *, columns: int) -> Figure:
    """The figure with one legend below all panels: whatever they name, each once."""
    keys: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            keys.setdefault(name, handle)
    figure.legend(keys.values(), keys.keys(), loc="outside lower center", ncols=columns)
    return figure


def ramp(count: int) -> list[Any]:
    """``count`` colours from dark to light, in order also for colour-blind readers.

    >>> len(ramp(5))
    5
    """
    import matplotlib as mpl

    return [mpl.colormaps["viridis"](position) for position in np.linspace(0.0, 0.86, count)]


def heat_map(axis: Any, gap: Any, *, log: bool = False, **scale: Any) -> Any:
    """A pivoted gap as a map, red where it is positive and blue where it is negative, black where it changes sign."""
    x, y, values = _edges(gap.columns), _edges(gap.index, log=log), gap.to_numpy()
    mesh = axis.pcolormesh(x, y, values, cmap="RdBu_r", **scale)
    if values.min() < 0 < values.max():
        axis.contour(gap.columns, gap.index, values, levels=[0.0], colors="black", linewidths=1.2)
    axis.set(xlim=x[[0, -1]], ylim=y[[0, -1]])
    axis.grid(False)
    return mesh


def _edges(centres: Any, *, log: bool = False) -> FloatArray:
    """The edges of cells round the centres, so that the outer cells are shown whole."""
    values = np.asarray(centres, dtype=np.float64)
    values = np.log(values) if log else values
    middle = 0.5 * (values[1:] + values[:-1])
    edges = np.concatenate([[1.5 * values[0] - 0.5 * values[1]], middle, [1.5 * values[-1] - 0.5 * values[-2]]])
    return np.asarray(np.exp(edges) if log else edges)


def subscripts(text: str) -> str:
    """σ_X and σ_Z as a reader of mathematics writes them.

    >>> subscripts("ρ = .5, σ_X = .2")
    'ρ = .5, $\\\\sigma_X$ = .2'
    """
    return text.replace("σ_X", r"$\sigma_X$").replace("σ_Z", r"$\sigma_Z$")


def plain_log(panel: Any, way: str, *, ticks: Iterable[float] | None = None) -> None:
    """Makes "x" or "y" of a panel (or "xy") logarithmic, with numbers people read: 0.02, 0.1, 2."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    for one in way:
        panel.set(**{f"{one}scale": "log"})
        axis = getattr(panel, f"{one}axis")
        low, high = axis.get_view_interval()
        # Three labels per decade run into each other on a long axis.
        steps = (1.0, 2.0, 5.0) if high / low < 100 else (1.0, 3.0)
        axis.set_major_locator(
            LogLocator(base=10, subs=steps, numticks=20) if ticks is None else FixedLocator(list(ticks))
        )
        if ticks is not None:
            axis.set_minor_locator(FixedLocator([]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, *, stem: Path) -> bytes:
    """Writes ``stem``.png and ``stem``.svg, and gives the first."""
    import matplotlib as mpl

    with mpl.rc_context(_RULES):
        image = rendered(figure, "png")
        # The places found for the image serve the drawing too.
        figure.set_layout_engine("none")
        drawing = rendered(figure, "svg")
    files.write(stem.with_suffix(".svg"), drawing, files.DRAWING)
    files.write(stem.with_suffix(".png"), image, files.DRAWING)
    return image
