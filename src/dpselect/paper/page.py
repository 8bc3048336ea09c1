"""The report: one HTML file in the style of all reports, which needs nothing beside it."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import dpselect
from dpselect.paper.figure import Size, Table, is_simulated
from dpselect.report.page import document, table_html

_STYLE = """
main { max-width: 72rem; }
a { color: var(--accent); }
nav ol { columns: 18rem; column-gap: 2.5rem; font-size: .95rem; padding-left: 1.8rem; }
nav li { break-inside: avoid; }
figure img { width: 100%; height: auto; display: block; background: #fff; border-radius: .3rem; padding: .4rem; }
figcaption { margin-top: .6rem; }
.scroll { overflow-x: auto; }
.scroll table { font-size: .88rem; width: 100%; }
.scroll td, .scroll th { vertical-align: top; padding: .35rem .9rem .35rem 0; }
.claims td { min-width: 7rem; } .claims td:nth-child(5) { min-width: 16rem; }
.verdict { font-weight: 600; white-space: nowrap; }
.held { color: var(--good); } .not { color: var(--warn-ink); } .depends { color: var(--accent); }
details { margin: .6rem 0; } summary { color: var(--soft); cursor: pointer; }
@media (max-width: 44rem) {
  /* A figure keeps a size at which it can be read, and is moved sideways. */
  figure .scroll img { width: 56rem; max-width: none; }
  .scroll table:not(.claims) td { white-space: nowrap; }
  .claims thead { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: 100%; }
  .claims tr { border-bottom: 2px solid var(--line); padding: .5rem 0; }
  .claims td { border: 0; padding: .12rem 0; white-space: normal; }
  .claims td::before { content: attr(data-name) ": "; color: var(--soft); }
}
"""

_SUBSCRIPT = re.compile(r"([σε])_(X|Z|max)")
_CLASSES = {"held": "held", "did not hold": "not", "depends": "depends"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One figure of the page."""

    name: str
    title: str
    caption: str
    image: Path
    table: Table
    numbers: Table | None = None


def page_text(*, sections: Sequence[Section], claims: Table, size: Size) -> str:
    """The page with every image inside it."""
    contents = "".join(f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in sections)
    figures = "".join(_figure(one) for one in sections)
    return document(
        "The paper, checked",
        f"""<h1>Selection with Gaussian noise: the paper, checked</h1>
<p class="small">Figures and claims of “On the Privacy of Selection Mechanisms with Gaussian Noise” (AISTATS 2024),
recomputed with dpselect {escape(dpselect.__version__)} at {escape(size.name)} size, with what came after beside them.
Costs are upper bounds, rounded up; what is marked “as published”, the wrong side of the corrections and Monte Carlo’s
estimates are not.</p>
{_notice(sections)}
<nav><ol><li><a href="#claims">Claims</a></li>{contents}</ol></nav>
<h2 id="claims">Claims</h2>
{_claims(claims)}
{figures}
<footer class="small"><p>Made with dpselect. The tables behind the figures are in <code>tables/</code>, the figures as
PNG and SVG in <code>figures/</code>.</p></footer>""",
        style=_STYLE,
    )


def _notice(sections: Sequence[Section]) -> str:
    names = [one.name for one in sections if is_simulated(one.table)]
    if not names:
        return ""
    return (
        f'<p class="banner"><strong>Simulated data.</strong> No data file was found for {escape(", ".join(names))}: '
        "stand-ins were drawn and their claims are not judged. Name a data folder to use the real data.</p>"
    )


def _claims(claims: Table) -> str:
    if claims.empty:
        return "<p>None of the figures computed here decides a claim.</p>"
    summary = ", ".join(f"{count} {verdict}" for verdict, count in claims["verdict"].value_counts().items())
    table = table_html(list(claims.columns), claims.to_numpy().tolist(), kind="claims", told=_text)
    return f'<p class="small">{escape(summary)}.</p><div class="scroll">{table}</div>'


def _figure(section: Section) -> str:
    image = base64.b64encode(section.image.read_bytes()).decode("ascii")
    simulated = '<p class="banner">Simulated stand-in data.</p>' if is_simulated(section.table) else ""
    return (
        f'<h2 id="{escape(section.name)}">{escape(section.title)}</h2>{simulated}'
        f'<figure><div class="scroll"><img alt="{escape(section.title)}" src="data:image/png;base64,{image}"></div>'
        f"<figcaption>{_text(section.caption)}</figcaption></figure>{_numbers(section.numbers)}"
    )


def _numbers(table: Table | None) -> str:
    if table is None:
        return ""
    names = [str(name).replace("sigma_threshold", "σ_X") for name in table.columns]
    names = [name if _SUBSCRIPT.search(name) else name.replace("_", " ") for name in names]
    rows = [[shown(value) for value in row] for row in table.itertuples(index=False)]
    told = table_html(names, rows, told=_text)
    return f'<details open><summary>Numbers</summary><div class="scroll">{told}</div></details>'


def _text(text: str) -> str:
    """Plain text as HTML: σ_X, σ_Z and ε_max with their subscripts, a verdict in its colour."""
    if text in _CLASSES:
        return f'<span class="verdict {_CLASSES[text]}">{text}</span>'
    return _SUBSCRIPT.sub(r"\1<sub>\2</sub>", escape(text))


def shown(value: Any) -> str:
    """A cell as people read it.

    >>> shown(0.123456), shown(365.0), shown("UCI"), shown(float("inf"))
    ('0.1235', '365', 'UCI', 'never')
    """
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return ""
    if abs(value) == float("inf"):
        return "never"
    return f"{value:.0f}" if value.is_integer() and abs(value) >= 1 else f"{value:.4g}"
