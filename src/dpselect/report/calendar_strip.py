"""Verdicts as a calendar, one cell per question, and a year with its line: drawn in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

#: Cells in a row where the questions are not days.
_ROW = 31
_CELL, _GAP, _LABEL = 15.0, 3.0, 76.0
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720.0, 230.0, 44.0, 26.0, 14.0


def strip_svg(labels: Sequence[str], *, above: Sequence[int], answered: int) -> str:
    """One cell for each question: filled where it was answered above, pale where it was not asked; months in rows.

    >>> drawing = strip_svg(["2013-01-30", "2013-01-31", "2013-02-01"], above=[1], answered=2)
    >>> drawing.count("<rect"), drawing.count('class="hit"'), drawing.count('class="unasked"'), "2013-02" in drawing
    (3, 1, 1, True)
    """
    rows = _rows(labels)
    hits = set(above)
    parts, place = [], 0
    for number, (name, offset, row) in enumerate(rows):
        down = number * (_CELL + _GAP)
        parts.append(f'<text x="0" y="{down + 12:g}">{escape(name)}</text>')
        for position, label in enumerate(row):
            kind = "unasked" if place >= answered else "hit" if place in hits else "quiet"
            across = _LABEL + (offset + position) * (_CELL + _GAP)
            title = f"<title>{escape(label)}</title>"
            box = f'x="{across:g}" y="{down:g}" width="{_CELL:g}" height="{_CELL:g}" rx="2"'
            parts.append(f'<rect class="{kind}" {box}>{title}</rect>')
            place += 1
    width, height = _LABEL + _ROW * (_CELL + _GAP), len(rows) * (_CELL + _GAP)
    told = f"{len(hits)} of {answered} answered above"
    head = f'<svg class="odometer strip" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{told}">'
    return f"{head}{''.join(parts)}</svg>"


def _rows(labels: Sequence[str]) -> list[tuple[str, int, list[str]]]:
    """The name of each row, how far it is moved in, and what stands in it."""
    if all(len(label) == 10 and label[4] == label[7] == "-" for label in labels):
        months = [(month, list(days)) for month, days in groupby(labels, key=lambda label: label[:7])]
        return [(month, int(days[0][8:]) - 1, days) for month, days in months]
    cut = [list(labels[first : first + _ROW]) for first in range(0, len(labels), _ROW)]
    return [(row[0][:10], 0, row) for row in cut]


def year_svg(values: Sequence[float], labels: Sequence[str], *, line: float, marked: Sequence[int], unit: str) -> str:
    """A series that may be shown, its line, and the questions that were answered above it.

    >>> drawing = year_svg([1.0, 5.0, 2.0], ["a", "b", "c"], line=4, marked=[1], unit="kWh")
    >>> drawing.count("<circle"), "4 kWh" in drawing
    (2, True)
    """
    top = max(*values, line) * 1.06

    def across(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * place / max(1, len(values) - 1)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top

    curve = "".join(f"{'ML'[place > 0]}{across(place):.1f} {up(value):.1f}" for place, value in enumerate(values))
    dots = "".join(
        f'<circle class="above" cx="{across(place):.1f}" cy="{up(values[place]):.1f}" r="4"/>' for place in marked
    )
    base = up(0)
    told = f"the simulated year, its line at {line:g} {unit}, {len(marked)} days marked"
    return "".join(
        [
            f'<svg class="odometer" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(told)}">',
            f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{base:.1f}H{_WIDTH - 8:g}"/>',
            f'<path class="spent" d="{curve}"/>',
            f'<path class="limit" d="M{_LEFT:g} {up(line):.1f}H{_WIDTH - 8:g}"/>',
            f'<text x="{_WIDTH / 2:g}" y="{up(line) - 6:.1f}" text-anchor="middle">{line:g} {escape(unit)}</text>',
            dots,
            f'<text x="{_LEFT - 6:g}" y="{base + 4:.1f}" text-anchor="end">0</text>',
            f'<text x="{_LEFT:g}" y="{_HEIGHT - 6:g}">{escape(labels[0])}</text>',
            f'<text x="{_WIDTH - 8:g}" y="{_HEIGHT - 6:g}" text-anchor="end">{escape(labels[-1])}</text>',
            f'<circle class="above" cx="{_WIDTH / 2 - 60:g}" cy="{_HEIGHT - 10:g}" r="4"/>',
            f'<text x="{_WIDTH / 2 - 50:g}" y="{_HEIGHT - 6:g}">answered above</text>',
            "</svg>",
        ]
    )
