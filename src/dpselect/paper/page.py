"""The report: one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import dpselect
from dpselect.paper.parts import Table
from dpselect.paper.sizes import Size

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 72rem; margin: 2rem auto;
       padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem; }
.lead, figcaption, footer { color: #444; }
figure { margin: 0; }
img { max-width: 100%; height: auto; }
figcaption { font-size: .92rem; max-width: 62rem; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; }
td.verdict { white-space: nowrap; font-weight: 600; }
.held { color: #00664b; } .not { color: #a83f00; } .depends { color: #5b4a00; } .unjudged { color: #555; }
.simulated { background: #fff3e6; border-left: 4px solid #D55E00; padding: .5rem .8rem; }
nav ol { columns: 2; font-size: .92rem; }
.scroll { overflow-x: auto; }
"""

_CLASSES = {"held": "held", "did not hold": "not", "depends": "depends"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One figure of the page."""

    name: str
    title: str
    caption: str
    image: Path
    table: Table

    @property
    def simulated(self) -> bool:
        """Whether a stand-in was drawn."""
        return "simulated" in self.table.columns and bool(self.table["simulated"].any())


def write_page(path: Path, *, sections: Sequence[Section], claims: Table, size: Size) -> Path:
    """Writes the page with every image inside it."""
    contents = "".join(f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in sections)
    figures = "".join(_figure(one) for one in sections)
    path.write_text(
        f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>The paper, checked</title><style>{_STYLE}</style></head>
<body>
<h1>Selection with Gaussian noise: the paper, checked</h1>
<p class="lead">Figures and claims of “On the Privacy of Selection Mechanisms with Gaussian Noise” (AISTATS 2024),
recomputed with dpselect {escape(dpselect.__version__)} at {escape(size.name)} size, with successors beside them. Costs
are upper bounds, rounded up; what is marked “as published”, the printed side of the corrections and Monte Carlo’s
estimates are not.</p>
{_notice(sections)}
<nav><ol><li><a href="#claims">Claims</a></li>{contents}</ol></nav>
<h2 id="claims">Claims</h2>
{_claims(claims)}
{figures}
<footer><p>The tables behind the figures are in <code>tables/</code>, the figures as PNG and SVG in
<code>figures/</code>.</p></footer>
</body></html>
""",
        encoding="utf-8",
    )
    return path


def _notice(sections: Sequence[Section]) -> str:
    names = [one.name for one in sections if one.simulated]
    if not names:
        return ""
    return (
        f'<p class="simulated"><strong>Simulated data.</strong> No data file was found for {escape(", ".join(names))}: '
        "stand-ins were drawn and their claims are not judged. Name a data folder to use the real data.</p>"
    )


def _claims(claims: Table) -> str:
    if claims.empty:
        return "<p>None of the figures computed here decides a claim.</p>"
    rows = "".join(
        f"<tr><td>{escape(row.source)}</td><td>{escape(row.claim)}</td>"
        f'<td class="verdict {_CLASSES.get(row.verdict, "unjudged")}">{escape(row.verdict)}</td>'
        f"<td>{escape(row.found)}</td><td>{escape(row.setting)}</td></tr>"
        for row in claims.itertuples()
    )
    head = "".join(f"<th>{name}</th>" for name in ("where", "claim", "verdict", "found", "setting"))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _figure(section: Section) -> str:
    image = base64.b64encode(section.image.read_bytes()).decode("ascii")
    simulated = '<p class="simulated">Simulated stand-in data.</p>' if section.simulated else ""
    return (
        f'<h2 id="{escape(section.name)}">{escape(section.title)}</h2>{simulated}'
        f'<figure><img alt="{escape(section.title)}" src="data:image/png;base64,{image}">'
        f"<figcaption>{escape(section.caption)}</figcaption></figure>"
    )
