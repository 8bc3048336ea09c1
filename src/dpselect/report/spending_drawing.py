"""The odometer of a watch as SVG in the page's own colours, light or dark, without any plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TypeAlias

from dpselect.report.record import Spending
from dpselect.report.rounding import at_most

_WIDTH, _HEIGHT = 720.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 12.0, 22.0, 40.0
#: From a number to a place on the drawing.
Scale: TypeAlias = Callable[[float], float]

#: More steps than this are finer than a pixel.
_FINEST = 600


def draw_spending(spending: Spending) -> str:
    """ε spent after each answer, ⊤ marked, with the budget as a dashed line.

    Parameters
    ----------
    spending : Spending
        The odometer after each answer.

    Returns
    -------
    str
        An ``<svg>`` element.

    Examples
    --------
    >>> drawing = draw_spending(Spending(spent=(0.1, 0.3), above=(1,), budget=1.0, last="tuesday"))
    >>> drawing.startswith("<svg"), drawing.count("<circle"), "tuesday" in drawing  # one mark, one in the legend
    (True, 2, True)
    """
    count = len(spending.spent)
    top = max(spending.budget, max(spending.spent, default=0.0))

    def across(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * place / max(1, count)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value / top if top > 0 else 0.0)

    base, budget = up(0.0), up(spending.budget)
    told = (
        f"ε spent over {count} answers, {at_most(spending.spent[-1]) if count else '0'} of {at_most(spending.budget)}"
    )
    parts = [
        f'<svg class="odometer" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{escape(told)}">',
        f'<path class="axis" d="M{_LEFT:g} {_TOP:g}V{base:.1f}H{_WIDTH - _RIGHT:g}"/>',
        f'<path class="limit" d="M{_LEFT:g} {budget:.1f}H{_WIDTH - _RIGHT:g}"/>',
        f'<text x="{_LEFT + 6:g}" y="{budget - 6:.1f}">budget ε = {at_most(spending.budget)}</text>',
        f'<path class="spent" d="{_steps(spending.spent, across, up)}"/>',
        *_marks(spending, across, up),
        f'<text x="{_LEFT - 6:g}" y="{base + 4:.1f}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 6:g}" y="{(base + budget) / 2:.1f}" text-anchor="end">ε</text>',
        f'<text x="{_LEFT:g}" y="{_HEIGHT - 14:g}">{escape(spending.first)}</text>',
        f'<text x="{_WIDTH - _RIGHT:g}" y="{_HEIGHT - 14:g}" text-anchor="end">{escape(spending.last)}</text>',
        f'<circle class="above" cx="{_WIDTH / 2 - 46:g}" cy="{_HEIGHT - 18:g}" r="3.5"/>' if spending.above else "",
        f'<text x="{_WIDTH / 2 - 38:g}" y="{_HEIGHT - 14:g}">answered above</text>' if spending.above else "",
        "</svg>",
    ]
    return "".join(parts)


def _kept(places: Sequence[int]) -> list[int]:
    """So many places that no pixel is missed, the last one always."""
    stride = max(1, -(-len(places) // _FINEST))
    thinned = list(places[stride - 1 :: stride])
    return thinned if not places or thinned[-1:] == [places[-1]] else [*thinned, places[-1]]


def _steps(spent: Sequence[float], across: Scale, up: Scale) -> str:
    path = [f"M{across(0):.1f} {up(0.0):.1f}"]
    for place in _kept(range(len(spent))):
        path.append(f"H{across(place + 1):.1f}V{up(spent[place]):.1f}")
    return "".join(path)


def _marks(spending: Spending, across: Scale, up: Scale) -> list[str]:
    return [
        f'<circle class="above" cx="{across(place + 1):.1f}" cy="{up(spending.spent[place]):.1f}" r="3.5"/>'
        for place in _kept(spending.above)
    ]
