"""The page of a ledger: what is left, how it was spent, what was asked. Everything on it is public."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from dpselect import files
from dpselect.report.over_time import Across, Charged, charged_svg
from dpselect.report.page import document
from dpselect.report.record import Entry
from dpselect.report.rounding import at_most

#: On a narrow screen each question becomes a block of its own, its cells named.
_STYLE = """
.questions { width: 100%; font-size: .92rem; }
.questions td { overflow-wrap: anywhere; vertical-align: top; padding-right: .8rem; }
.questions td:first-child, .questions td:nth-child(2), .questions td:last-child { white-space: nowrap; }
@media (min-width: 64rem) { main { max-width: 62rem; } }
@media (max-width: 46rem) {
  .questions thead { display: none; }
  .questions tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .questions td { display: grid; grid-template-columns: 6rem 1fr; border: 0; padding: .1rem 0;
    white-space: normal !important; }
  .questions td::before { content: attr(data-name); color: var(--soft); }
}
"""


def write_ledger_page(
    path: Path | str,
    *,
    dataset: str,
    facts: Sequence[Entry],
    charged: Charged,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    across: Across = "time",
) -> Path:
    """Writes the page of a data set's ledger.

    Parameters
    ----------
    path : path
        Where to write; an earlier page is replaced, any other file is refused.
    dataset : str
        Its name.
    facts : sequence of (str, str)
        What is left, in words.
    charged : Charged
        What was charged over time.
    columns, rows
        The questions, as a table.
    across : {"time", "entry"}
        What lies across the drawing.
    """
    title = f"Ledger of {dataset}"
    spent = charged.spent[-1] if charged.spent else 0.0
    share = min(100.0, 100.0 * spent / charged.total)
    told = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-name="{escape(name)}">{escape(cell)}</td>' for name, cell in zip(columns, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    asked = (
        f'<table class="questions"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        if rows
        else "<p>Nothing was asked yet.</p>"
    )
    page = f"""<h1>{escape(title)}</h1>
<section class="card"><p class="question">Charged of the total</p>
<p class="answer">{charged.unit} = {at_most(spent)} of {at_most(charged.total)}</p>
<div class="meter"><span style="width:{share:.2f}%"></span></div><dl>{told}</dl></section>
<h2>Spent</h2><figure>{charged_svg(charged, across=across)}</figure>
<h2>Questions</h2>{asked}
<footer class="small">Made with dpselect. Every cost on this page is an upper bound, rounded up.</footer>"""
    return files.write(path, document(title, page, style=_STYLE), files.PAGE)
