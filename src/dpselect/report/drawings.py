"""Drawings in the page's own colours, light or dark, without Matplotlib: a calendar of answers, a year, the spending.

Each is an ``<svg>`` element that stands inside a page and takes its colours from the page's style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from itertools import groupby

from dpselect.report.record import Across, Charged, Spending
from dpselect.report.rounding import at_most

#: More steps or marks than this are finer than a pixel.
_FINEST = 600


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """Two axes: what lies across goes from 0 to ``last``, what goes up from 0 to ``top``."""

    last: float
    top: float
    height: float = 260.0
    left: float = 52.0
    bottom: float = 52.0
    #: As wide as the page's column.
    width = 720.0
    right = 708.0
    ceiling = 26.0

    def across(self, place: float) -> float:
        return self.left + (self.right - self.left) * place / max(1.0, self.last)

    def up(self, value: float) -> float:
        base = self.height - self.bottom
        return base - (base - self.ceiling) * (min(1.0, value / self.top) if self.top > 0 else 0.0)

    def text(self, x: float, y: float, text: str, anchor: str = "start") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

    def below(self, *marks: tuple[float, str]) -> str:
        """Words under the axis; at its ends they stay inside the drawing."""
        found = []
        for place, text in marks:
            share = place / max(1.0, self.last)
            anchor = "start" if share < 0.08 else "end" if share > 0.92 else "middle"
            found.append(f'<path class="axis" d="M{self.across(place):.1f} {self.up(0.0):.1f}v5"/>')
            found.append(self.text(self.across(place), self.up(0.0) + 24, text, anchor))
        return "".join(found)

    def steps(self, points: Iterable[tuple[float, float]]) -> str:
        """A line that rises at each (place, value) and is level in between."""
        path = "".join(f"H{self.across(place):.1f}V{self.up(value):.1f}" for place, value in points)
        return f'<path class="spent" d="M{self.left:g} {self.up(0.0):.1f}{path}H{self.right:g}"/>'

    def dots(self, points: Iterable[tuple[float, float]]) -> str:
        """Marks for what was answered above, and what they mean."""
        spots = [(self.across(place), self.up(value)) for place, value in points]
        if not spots:
            return ""
        spots.append((self.width / 2 - 60, self.height - 9))
        marks = "".join(f'<circle class="above" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in spots)
        return marks + self.text(self.width / 2 - 50, self.height - 5, "answered above")

    def svg(self, *parts: str, limit: float, named: str, told: str, at: float = 0.0) -> str:
        """The drawing, with a dashed line at the limit, named from this place on."""
        line = self.up(limit)
        return "".join(
            [
                f'<svg class="odometer" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
                f'aria-label="{escape(told)}">',
                f'<path class="axis" d="M{self.left:g} {self.ceiling:g}V{self.up(0.0):.1f}H{self.right:g}"/>',
                f'<path class="limit" d="M{self.left:g} {line:.1f}H{self.right:g}"/>',
                self.text(self.across(at) + 6, line - 7, named),
                self.text(self.left - 8, self.up(0.0) + 4, "0", "end"),
                *parts,
                "</svg>",
            ]
        )


def _thinned(places: Sequence[int]) -> Sequence[int]:
    """About one place per pixel, the last one always kept."""
    stride = max(1, -(-len(places) // _FINEST))
    return places[::-1][::stride][::-1]


def spending_svg(spending: Spending) -> str:
    """ε spent after each answer, those above marked, the budget dashed.

    >>> drawing = spending_svg(Spending(spent=(0.1, 0.3), above=(1,), budget=1.0, last="tuesday"))
    >>> drawing.startswith("<svg"), drawing.count("<circle"), "tuesday" in drawing  # one mark, one in the legend
    (True, 2, True)
    """
    count, spent = len(spending.spent), spending.spent
    frame = _Frame(last=count, top=max(spending.budget, *spent, 0.0))
    return frame.svg(
        frame.steps((place + 1, spent[place]) for place in _thinned(range(count))),
        frame.dots((place + 1, spent[place]) for place in _thinned(spending.above)),
        frame.text(frame.left - 8, (frame.up(0.0) + frame.up(spending.budget)) / 2, "ε", "end"),
        frame.below((0, spending.first), (max(1, count), spending.last)),
        limit=spending.budget,
        named=f"budget ε = {at_most(spending.budget)}",
        told=f"ε spent over {count} answers, {at_most(spent[-1]) if count else '0'} of {at_most(spending.budget)}",
    )


def year_svg(values: Sequence[float], labels: Sequence[str], *, line: float, marked: Sequence[int], unit: str) -> str:
    """A series that may be shown, its line, and the questions that were answered above it.

    >>> drawing = year_svg([1.0, 5.0, 2.0], ["a", "b", "c"], line=4, marked=[1], unit="kWh")
    >>> drawing.count("<circle"), "4 kWh" in drawing
    (2, True)
    """
    frame = _Frame(last=len(values) - 1, top=max(*values, line) * 1.06)
    points = " ".join(f"{frame.across(place):.1f},{frame.up(value):.1f}" for place, value in enumerate(values))
    return frame.svg(
        f'<polyline class="spent" points="{points}"/>',
        frame.dots((place, values[place]) for place in marked),
        frame.below((0, labels[0]), (len(values) - 1, labels[-1])),
        limit=line,
        named=f"{line:g} {unit}",
        at=0.45 * len(values),
        told=f"the simulated year, its line at {line:g} {unit}, {len(marked)} days marked",
    )


def charged_svg(charged: Charged, *, across: Across = "time") -> str:
    """What a ledger has charged, under its total, over an axis of dates or of entries.

    >>> drawing = charged_svg(Charged(at=("2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"),
    ...                               spent=(0.0, 0.5), total=2.0))
    >>> drawing.startswith("<svg"), "total ε = 2" in drawing, "2026-02-01" in drawing
    (True, True, True)
    """
    places, marks = _by_time(charged) if across == "time" else _by_entry(charged)
    frame = _Frame(last=1.0, top=charged.total, height=290.0, left=64.0, bottom=58.0)
    spent, total = charged.spent[-1] if charged.spent else 0.0, charged.total
    return frame.svg(
        frame.steps((places[place], charged.spent[place]) for place in _thinned(range(len(places)))),
        frame.below(*marks),
        *(
            frame.text(frame.left - 8, frame.up(total * share) + 4, at_most(total * share), "end")
            for share in (0.5, 1.0)
        ),
        frame.text((frame.left + frame.right) / 2, frame.height - 6, across, "middle"),
        limit=total,
        named=f"total {charged.unit} = {at_most(total)}",
        told=f"{charged.unit} charged over {across}, {at_most(spent)} of {at_most(total)}",
    )


_EVENLY = (0.0, 0.25, 0.5, 0.75, 1.0)


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
        marks = [(share, (first + timedelta(seconds=span * share)).strftime(short)) for share in _EVENLY]
    return [(when - first).total_seconds() / span for when in moments], marks


def _at_midnights(first: datetime, span: float) -> list[tuple[float, str]]:
    """Beginnings of days, or of months where there are enough of them, at most six."""
    day, last = first.replace(hour=0, minute=0, second=0, microsecond=0), first + timedelta(seconds=span)
    days = [one for more in range(1, int(span // 86400) + 2) if (one := day + timedelta(days=more)) <= last]
    months = [one for one in days if one.day == 1]
    wanted = months if len(months) >= 3 or (months and len(days) > 45) else days
    stride = -(-len(wanted) // 6)
    return [((one - first).total_seconds() / span, one.strftime("%Y-%m-%d")) for one in wanted[::stride]]


def _by_entry(charged: Charged) -> tuple[list[float], list[tuple[float, str]]]:
    count = len(charged.at)
    last = max(1, count - 1)
    shown = sorted({round(share * (count - 1)) for share in _EVENLY}) if count else []
    return [place / last for place in range(count)], [(place / last, f"{place + 1:,}") for place in shown]


#: Cells in a row where the questions are not days; their size, and the room for a row's name.
_ROW = 31
_CELL, _STEP, _LABEL = 15, 18, 76


def strip_svg(labels: Sequence[str], *, above: Sequence[int], answered: int) -> str:
    """One cell for each question: filled where it was answered above, pale where it was not asked; months in rows.

    >>> drawing = strip_svg(["2013-01-30", "2013-01-31", "2013-02-01"], above=[1], answered=2)
    >>> drawing.count("<rect"), drawing.count('class="hit"'), drawing.count('class="unasked"'), "2013-02" in drawing
    (3, 1, 1, True)
    """
    rows, hits, place = _rows(labels), set(above), 0
    told = f"{len(hits)} of {answered} answered above"
    box = f"0 0 {_LABEL + _ROW * _STEP} {len(rows) * _STEP}"
    parts = [f'<svg class="odometer strip" viewBox="{box}" role="img" aria-label="{told}">']
    for number, (name, offset, row) in enumerate(rows):
        y = number * _STEP
        parts.append(f'<text x="0" y="{y + 12}">{escape(name)}</text>')
        for position, label in enumerate(row, offset):
            kind = "unasked" if place >= answered else "hit" if place in hits else "quiet"
            cell = f'x="{_LABEL + position * _STEP}" y="{y}" width="{_CELL}" height="{_CELL}" rx="2"'
            parts.append(f'<rect class="{kind}" {cell}><title>{escape(label)}</title></rect>')
            place += 1
    return "".join([*parts, "</svg>"])


def _rows(labels: Sequence[str]) -> list[tuple[str, int, list[str]]]:
    """The name of each row, how far it is moved in, and what stands in it."""
    if all(len(label) == 10 and label[4] == label[7] == "-" for label in labels):
        months = [(month, list(days)) for month, days in groupby(labels, key=lambda label: label[:7])]
        return [(month, int(days[0][8:]) - 1, days) for month, days in months]
    cut = [list(labels[first : first + _ROW]) for first in range(0, len(labels), _ROW)]
    return [(row[0][:10], 0, row) for row in cut]
