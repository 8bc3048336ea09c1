"""What a ledger has charged, over time or entry by entry: as a drawing in the page's own colours, or by Matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Literal

from dpselect.report.palette import BLACK, BLUE
from dpselect.report.rounding import at_most

#: What lies across: when it was, or the number of the entry.
Across = Literal["time", "entry"]

_WIDTH, _HEIGHT = 720.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 20.0, 26.0, 44.0
#: A drawing has no use for more steps than this.
_FINEST = 1200


@dataclass(frozen=True, kw_only=True)
class Charged:
    """What was charged from each entry on.

    Attributes
    ----------
    at : tuple of str
        When each entry was made, as it is written.
    spent : tuple of float
        What was charged from then on.
    total : float
        The most that may be charged.
    unit : str
        ``ε`` or ``ρ``.
    """

    at: tuple[str, ...]
    spent: tuple[float, ...]
    total: float
    unit: str = "ε"

    def moments(self) -> list[datetime]:
        """When, in order: a clock that was set back counts as standing still."""
        found: list[datetime] = []
        for text in self.at:
            when = datetime.fromisoformat(text).astimezone(UTC)
            found.append(max(when, found[-1]) if found else when)
        return found


def charged_svg(charged: Charged, *, across: Across = "time") -> str:
    """The steps under the total, with an axis of dates or of entries.

    >>> drawing = charged_svg(Charged(at=("2026-01-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"),
    ...                               spent=(0.0, 0.5), total=2.0))
    >>> drawing.startswith("<svg"), "total ε = 2" in drawing, "2026-02-01" in drawing
    (True, True, True)
    """
    places, marks = _by_time(charged) if across == "time" else _by_entry(charged)
    right, base = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def over(place: float) -> float:
        return _LEFT + (right - _LEFT) * place

    def up(value: float) -> float:
        return base - (base - _TOP) * min(1.0, value / charged.total)

    path = [f"M{over(0.0):.1f} {base:.1f}"]
    stride = max(1, len(places) // _FINEST)
    for place, spent in [*zip(places, charged.spent, strict=True)][::-1][::stride][::-1]:
        path.append(f"H{over(place):.1f}V{up(spent):.1f}")
    path.append(f"H{right:.1f}")
    spent = charged.spent[-1] if charged.spent else 0.0
    told = f"{charged.unit} charged over {across}, {at_most(spent)} of {at_most(charged.total)}"
    ticks = []
    for place, name in marks:
        # At the ends the text stays inside the drawing.
        anchor = "start" if place < 0.08 else "end" if place > 0.92 else "middle"
        ticks.append(f'<path class="axis" d="M{over(place):.1f} {base:.1f}v5"/>')
        ticks.append(f'<text x="{over(place):.1f}" y="{base + 20:.1f}" text-anchor="{anchor}">{escape(name)}</text>')
    for share in (0.0, 0.5, 1.0):
        text = at_most(charged.total * share) if share else "0"
        ticks.append(f'<text x="{_LEFT - 8:g}" y="{up(charged.total * share) + 4:.1f}" text-anchor="end">{text}</text>')
    return "".join(
        [
            f'<svg class="odometer" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(told)}">',
            f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{base:.1f}H{right:g}"/>',
            f'<path class="limit" d="M{_LEFT:g} {_TOP:.1f}H{right:g}"/>',
            f'<text x="{_LEFT + 6:g}" y="{_TOP - 8:.1f}">total {charged.unit} = {at_most(charged.total)}</text>',
            f'<path class="spent" d="{"".join(path)}"/>',
            *ticks,
            f'<text x="{(_LEFT + right) / 2:g}" y="{_HEIGHT - 4:g}" text-anchor="middle">{across}</text>',
            "</svg>",
        ]
    )


def save_charged_plot(path: Path, charged: Charged, *, title: str, across: Across = "time") -> Path:
    """The same by Matplotlib, as PNG, PDF or SVG by the file's ending."""
    from dpselect.report.plots import _axes, save

    figure, axes = _axes()
    moments = charged.moments()
    over = moments if across == "time" else list(range(1, len(charged.at) + 1))
    axes.step(over, charged.spent, where="post", color=BLUE, linewidth=1.8, label="charged")
    label = f"total {charged.unit} = {at_most(charged.total)}"
    axes.axhline(charged.total, color=BLACK, linewidth=1.0, linestyle="--", label=label)
    axes.set(xlabel=across, ylabel=f"{charged.unit} (upper bound)")
    axes.set_ylim(0.0, 1.05 * charged.total)
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, loc="center right")
    if across == "time":
        figure.autofmt_xdate(rotation=0, ha="center")
        if moments[0] == moments[-1]:
            axes.set_xlim(moments[0] - timedelta(hours=1), moments[0] + timedelta(hours=1))
    return save(figure, path)


def _by_time(charged: Charged) -> tuple[list[float], list[tuple[float, str]]]:
    """Where each entry lies from 0 to 1, and the dates or hours below."""
    moments = charged.moments()
    if not moments:
        return [], []
    first, span = moments[0], (moments[-1] - moments[0]).total_seconds()
    if span == 0:
        return [0.0] * len(moments), [(0.0, first.strftime("%Y-%m-%d %H:%M"))]
    short = "%Y-%m-%d" if span > 3 * 86400 else "%m-%d %H:%M" if span > 600 else "%H:%M:%S"
    marks = [(share, (first + timedelta(seconds=span * share)).strftime(short)) for share in _EVENLY]
    if span > 3 * 86400:
        marks = _at_midnights(first, span)
    return [(when - first).total_seconds() / span for when in moments], marks


_EVENLY = (0.0, 0.25, 0.5, 0.75, 1.0)


def _at_midnights(first: datetime, span: float) -> list[tuple[float, str]]:
    """Beginnings of days, or of months where there are enough of them, at most six."""
    day, last = first.replace(hour=0, minute=0, second=0, microsecond=0), first + timedelta(seconds=span)
    days = [
        day + timedelta(days=more) for more in range(1, int(span // 86400) + 2) if day + timedelta(days=more) <= last
    ]
    months = [one for one in days if one.day == 1]
    wanted = months if len(months) >= 3 or (months and len(days) > 45) else days
    stride = -(-len(wanted) // 6)
    return [((one - first).total_seconds() / span, one.strftime("%Y-%m-%d")) for one in wanted[::stride]]


def _by_entry(charged: Charged) -> tuple[list[float], list[tuple[float, str]]]:
    count = len(charged.at)
    last = max(1, count - 1)
    shown = sorted({round(share * (count - 1)) for share in _EVENLY}) if count else []
    return [place / last for place in range(count)], [(place / last, f"{place + 1:,}") for place in shown]
