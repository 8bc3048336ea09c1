"""Every picture: what was spent or charged, a year and its line, a calendar of answers, accuracy against budget.

A :class:`Chart` is drawn twice from the same description: inside a page as ``<svg>`` that takes its colours, light or
dark, from the page's style sheet and needs no library; and by Matplotlib as PNG or PDF.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from importlib.resources import files as resources
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect import files
from dpselect.errors import SourceError
from dpselect.report.record import Across, Charged, Spending
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector

# Okabe and Ito's colours, which colour-blind readers can tell apart, and marks that differ without colour.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
PALE = "#999999"

#: In the order in which lines of one plot take them.
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, PALE)
MARKS = "osD^vP*X"

#: More steps or marks than this are finer than a pixel.
_FINEST = 600

#: A place across and a value.
Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A line over an axis, dots on it, and a dashed limit.

    Attributes
    ----------
    points, marks : sequence of (float, float)
        Places across, from 0 to ``last``, and values: of the line, and of the dots that say "answered above".
    limit, named : float, str
        The dashed line, where there is one, and what it is called.
    told : str
        The chart in words.
    ticks : sequence of (float, str)
        What stands below the axis.
    last : float
        Where the axis ends.
    stepped : bool
        Whether the line is level between points, and rises at each.
    across, up : str
        What the axes show.
    """

    points: Sequence[Point]
    limit: float | None
    named: str
    told: str
    ticks: Sequence[tuple[float, str]]
    marks: Sequence[Point] = ()
    last: float = 1.0
    stepped: bool = True
    across: str = ""
    up: str = "ε"

    @property
    def top(self) -> float:
        """What the drawing must reach up to."""
        return max(self.limit or 0.0, *(value for _, value in self.points), 0.0) or 1.0

    @property
    def levels(self) -> list[float]:
        """Values that are named beside the axis."""
        return [share * (self.limit or self.top) for share in (0.0, 0.5, 1.0)]


# --- inside a page ---------------------------------------------------------------------------------------------------

#: As wide as the page's column.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _CEILING, _BOTTOM = 720.0, 270.0, 72.0, 708.0, 26.0, 56.0


def svg(chart: Chart) -> str:
    """The chart as an element of a page."""

    def across(place: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * place / (chart.last or 1.0)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _CEILING) * min(1.0, value / chart.top)

    def text(x: float, y: float, words: str, anchor: str = "start") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'

    base = up(0.0)
    parts = [f'<path class="axis" d="M{_LEFT:g} {_CEILING:g}V{base:.1f}H{_RIGHT:g}"/>']
    parts += [text(_LEFT - 8, up(level) + 4, at_most(level), "end") for level in chart.levels]
    for place, words in chart.ticks:
        # At its ends they stay inside the drawing.
        share = place / (chart.last or 1.0)
        anchor = "start" if share < 0.08 else "end" if share > 0.92 else "middle"
        parts += [f'<path class="axis" d="M{across(place):.1f} {base:.1f}v5"/>']
        parts += [text(across(place), base + 22, words, anchor)]
    if chart.stepped:
        steps = "".join(f"H{across(place):.1f}V{up(value):.1f}" for place, value in chart.points)
        parts += [f'<path class="spent" d="M{_LEFT:g} {base:.1f}{steps}H{_RIGHT:g}"/>']
    else:
        line = " ".join(f"{across(place):.1f},{up(value):.1f}" for place, value in chart.points)
        parts += [f'<polyline class="spent" points="{line}"/>']
    if chart.limit is not None:
        parts += [f'<path class="limit" d="M{_LEFT:g} {up(chart.limit):.1f}H{_RIGHT:g}"/>']
        parts += [text((_LEFT + _RIGHT) / 2, up(chart.limit) - 7, chart.named, "middle")]
    dots = [(across(place), up(value)) for place, value in chart.marks]
    if dots:
        dots.append((_WIDTH / 2 - 60, _HEIGHT - 9))
        parts += [text(_WIDTH / 2 - 50, _HEIGHT - 4, "answered above")]
    parts += [f'<circle class="above" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in dots]
    parts += [text((_LEFT + _RIGHT) / 2, _HEIGHT - 4, chart.across, "middle")] if chart.across else []
    box = f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}"'
    return f'<svg class="drawing" {box} role="img" aria-label="{escape(chart.told)}">{"".join(parts)}</svg>'


def spending_chart(spending: Spending) -> Chart:
    """ε spent after each answer, those above marked, under the budget.

    >>> drawing = svg(spending_chart(Spending(spent=(0.1, 0.3), above=(1,), budget=1.0, last="tuesday")))
    >>> drawing.startswith("<svg"), drawing.count("<circle"), "tuesday" in drawing  # one mark, one in the legend
    (True, 2, True)
    """
    count, spent, budget = len(spending.spent), spending.spent, spending.budget
    return Chart(
        points=[(place + 1, spent[place]) for place in _thinned(range(count))],
        marks=[(place + 1, spent[place]) for place in _thinned(spending.above)],
        limit=budget,
        named=f"budget ε = {at_most(budget)}",
        told=f"ε spent over {count} answers, {at_most(spent[-1]) if count else '0'} of {at_most(budget)}",
        ticks=_months(spending.labels[:count]) or [(0, spending.first), (max(1, count), spending.last)],
        last=max(1, count),
    )


def year_chart(
    values: Sequence[float], labels: Sequence[str], *, line: float, marked: Sequence[int], unit: str
) -> Chart:
    """A series that may be shown, its line, and the questions that were answered above it.

    >>> drawing = svg(year_chart([1.0, 5.0, 2.0], ["a", "b", "c"], line=4, marked=[1], unit="kWh"))
    >>> drawing.count("<circle"), "4 kWh" in drawing
    (2, True)
    """
    last = len(values) - 1
    return Chart(
        points=list(enumerate(values)),
        marks=[(place, values[place]) for place in marked],
        limit=line,
        named=f"the line, {line:g} {unit}",
        told=f"the simulated year, its line at {line:g} {unit}, {len(marked)} days marked",
        ticks=_months(labels) or [(0, labels[0]), (last, labels[-1])],
        last=last,
        stepped=False,
        up=unit,
    )


def charged_chart(charged: Charged, *, across: Across = "time") -> Chart:
    """What a ledger has charged, under its total, over an axis of dates or of entries.

    >>> drawing = svg(charged_chart(Charged(at=("2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"),
    ...                                     spent=(0.0, 0.5), total=2.0)))
    >>> drawing.startswith("<svg"), "total ε = 2" in drawing, "2026-02-01" in drawing
    (True, True, True)
    """
    places, ticks = _by_time(charged) if across == "time" else _by_entry(charged)
    spent, total = charged.spent[-1] if charged.spent else 0.0, at_most(charged.total)
    return Chart(
        points=[(places[place], charged.spent[place]) for place in _thinned(range(len(places)))],
        limit=charged.total,
        named=f"total {charged.unit} = {total}",
        told=f"{charged.unit} charged over {across}, {at_most(spent)} of {total}",
        ticks=ticks,
        across=across,
        up=charged.unit,
    )


def _thinned(places: Sequence[int]) -> Sequence[int]:
    """About one place per pixel, the last one always kept."""
    stride = max(1, -(-len(places) // _FINEST))
    return places[::-1][::stride][::-1]


_EVENLY = (0.0, 0.25, 0.5, 0.75, 1.0)


def _are_days(labels: Sequence[str]) -> bool:
    return all(len(label) == 10 and label[4] == label[7] == "-" for label in labels)


def _months(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Where months begin, at most four of them; none where the labels are not days, or too few."""
    starts = [(float(place), label[:7]) for place, label in enumerate(labels) if label[8:] == "01"]
    return starts[:: -(-len(starts) // 4)] if len(starts) > 2 and _are_days(labels) else []


def _by_time(charged: Charged) -> tuple[list[float], list[tuple[float, str]]]:
    """Where each entry lies from 0 to 1, and the dates or hours below."""
    moments = charged.moments()
    if not moments:
        return [], []
    first, span = moments[0], (moments[-1] - moments[0]).total_seconds()
    if span == 0:
        return [0.0] * len(moments), [(0.0, first.strftime("%Y-%m-%d %H:%M"))]
    if span > 3 * 86400:
        marks = _at_midnights(first, span)
    else:
        short = "%m-%d %H:%M" if span > 600 else "%H:%M:%S"
        marks = [(share, (first + timedelta(seconds=span * share)).strftime(short)) for share in (0.0, 0.5, 1.0)]
    return [(when - first).total_seconds() / span for when in moments], marks


def _at_midnights(first: datetime, span: float) -> list[tuple[float, str]]:
    """Beginnings of days, or of months where there are enough of them, at most three: on a telephone no more fit."""
    day, last = first.replace(hour=0, minute=0, second=0, microsecond=0), first + timedelta(seconds=span)
    days = [one for more in range(1, int(span // 86400) + 2) if (one := day + timedelta(days=more)) <= last]
    months = [one for one in days if one.day == 1]
    wanted = months if len(months) >= 3 or (months and len(days) > 45) else days
    stride = -(-len(wanted) // 3)
    return [((one - first).total_seconds() / span, one.strftime("%Y-%m-%d")) for one in wanted[::stride]]


def _by_entry(charged: Charged) -> tuple[list[float], list[tuple[float, str]]]:
    count = len(charged.at)
    last = max(1, count - 1)
    shown = sorted({round(share * (count - 1)) for share in _EVENLY}) if count else []
    return [place / last for place in range(count)], [(place / last, f"{place + 1:,}") for place in shown]


#: Cells in a row where the questions are not days; their size, a row's height, and the room for its name.
_ROW, _CELL, _STEP, _TALL, _LABEL = 31, 15, 18, 24, 92


def strip_svg(labels: Sequence[str], *, above: Sequence[int], answered: int) -> str:
    """One cell for each question: filled where it was answered above, pale where it was not asked; months in rows.

    >>> drawing = strip_svg(["2013-01-30", "2013-01-31", "2013-02-01"], above=[1], answered=2)
    >>> drawing.count("<rect"), drawing.count('class="hit"'), drawing.count('class="unasked"'), "2013-02" in drawing
    (3, 1, 1, True)
    """
    rows, hits, place = _rows(labels), set(above), 0
    told = f"{len(hits)} of {answered} answered above"
    box = f"0 0 {_LABEL + _ROW * _STEP} {len(rows) * _TALL}"
    parts = [f'<svg class="drawing strip" viewBox="{box}" role="img" aria-label="{told}">']
    for number, (name, offset, row) in enumerate(rows):
        y = number * _TALL
        parts.append(f'<text x="0" y="{y + 16}">{escape(name)}</text>')
        for position, label in enumerate(row, offset):
            kind = "unasked" if place >= answered else "hit" if place in hits else "quiet"
            cell = f'x="{_LABEL + position * _STEP}" y="{y}" width="{_CELL}" height="{_TALL - 3}" rx="2"'
            parts.append(f'<rect class="{kind}" {cell}><title>{escape(label)}</title></rect>')
            place += 1
    return "".join([*parts, "</svg>"])


def _rows(labels: Sequence[str]) -> list[tuple[str, int, list[str]]]:
    """The name of each row, how far it is moved in, and what stands in it."""
    if _are_days(labels):
        months = [(month, list(days)) for month, days in groupby(labels, key=lambda label: label[:7])]
        return [(month, int(days[0][8:]) - 1, days) for month, days in months]
    cut = [list(labels[first : first + _ROW]) for first in range(0, len(labels), _ROW)]
    return [(row[0][:10], 0, row) for row in cut]


def house_style() -> str:
    """The style sheet that all pages and their drawings share."""
    return resources("dpselect.report").joinpath("page.css").read_text(encoding="utf-8")


# --- as files --------------------------------------------------------------------------------------------------------


def save(figure: Any, path: Path | str) -> Path:
    """Writes a Matplotlib figure as SVG, PNG or PDF by the file's ending; the folder is made if need be."""
    return _write(Path(path), rendered(figure, Path(path).suffix[1:].lower()))


def rendered(figure: Any, kind: str) -> bytes:
    """A Matplotlib figure as the bytes of an SVG, PNG or PDF file."""
    from matplotlib import rc_context

    drawn = io.BytesIO()
    with rc_context({"svg.hashsalt": "dpselect"}):
        # No date inside, so that the same plot is the same file.
        undated = {"metadata": {"Date": None, "Creator": None}} if kind == "svg" else {}
        figure.savefig(drawn, format=kind or None, dpi=150, **undated)
    return drawn.getvalue()


def _write(target: Path, drawn: bytes | str) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise files.refused_place("drawing", target, failure.strerror or "it cannot be written") from None
    return files.write(target, drawn, files.DRAWING)


def axes_of(*, width: float = 7.2, height: float = 3.8) -> tuple[Any, Any]:
    """An empty Matplotlib figure, so many inches wide and high, and its axes."""
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: F401
        from matplotlib.figure import Figure
    except ImportError:
        raise SourceError("plots need matplotlib; install dpselect[plots]") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_chart(chart: Chart, path: Path, *, title: str) -> Path:
    """The chart as a file: SVG in the page's colours, without Matplotlib, or PNG or PDF."""
    if path.suffix.lower() == ".svg":
        drawn = svg(chart).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        return _write(path, drawn.replace(">", f"><title>{escape(title)}</title><style>{house_style()}</style>", 1))
    figure, axes = axes_of()
    line = [(0.0, 0.0), *chart.points]
    axes.step(*zip(*line, (chart.last, line[-1][1]), strict=True), where="post", color=BLUE, linewidth=1.8)
    if chart.marks:
        size = 4 if len(chart.marks) < 50 else 2.5
        axes.plot(*zip(*chart.marks, strict=True), "o", color=VERMILION, markersize=size, label="answered above")
    if chart.limit is not None:
        axes.axhline(chart.limit, color=BLACK, linewidth=1.0, linestyle="--", label=chart.named)
    axes.set(xlabel=chart.across, ylabel=f"{chart.up} (upper bound)", ylim=(0.0, 1.05 * chart.top))
    axes.set_xticks([place for place, _ in chart.ticks], [words for _, words in chart.ticks])
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False)
    return save(figure, path)


def save_spend_plot(path: Path, *, svt: SparseVector) -> Path:
    """Draws what was spent over the questions, those answered above marked, with the limit where it is an ε.

    Everything shown is a function of the answers and of public parameters, so the plot may be published with them.

    Parameters
    ----------
    path : Path
        Where to write; SVG, PNG or PDF by its ending.
    svt : SparseVector
        What was asked so far.
    """
    from dpselect.composition.odometer import spend_curve

    questions, epsilon = spend_curve(svt)
    tops = svt.tops[svt.tops >= questions[0]] + 1
    heights = epsilon[np.minimum(np.searchsorted(questions, tops), len(epsilon) - 1)]
    limit = svt.filter.limit
    title = f"Spent ε = {at_most(svt.spent)} on {svt.questions:,} questions"
    # Between two points the curve takes the later value.
    rises = np.concatenate([questions[:1], questions[:-1]])
    chart = Chart(
        points=list(zip(rises.tolist(), epsilon.tolist(), strict=True)),
        marks=list(zip(tops.tolist(), heights.tolist(), strict=True)),
        # A filter that was not given an ε counts in another unit.
        limit=limit if "epsilon" in svt.filter.saved_limits else None,
        named=f"limit ε = {at_most(limit)}",
        told=title,
        ticks=[(round(share * svt.questions), f"{round(share * svt.questions):,}") for share in _EVENLY],
        last=svt.questions,
        across="questions answered",
    )
    return save_chart(chart, path, title=title)
