"""Pages: one HTML file each that needs nothing else, no network and no script, light or dark as the reader likes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from dpselect import files
from dpselect.errors import SourceError
from dpselect.report.guarantee import Guarantee
from dpselect.report.plots import charged_chart, house_style, spending_chart, strip_svg, svg
from dpselect.report.record import NOT_PRIVATE, Across, Charged, Entry, Finding, Report, Spending
from dpselect.rounding import at_most

#: The page may show itself and nothing more, whatever text found its way into it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

#: More verdicts than this are no calendar to look at.
_MOST_CELLS = 1500


def html_page(report: Report) -> str:
    """The whole page as text. Everything that came from outside is escaped.

    >>> from dpselect.report.guarantee import Guarantee
    >>> found = Finding(question="<script>", answer="2013-01-20")
    >>> page = html_page(Report(title="Peak", findings=(found,), guarantee=Guarantee(epsilon=0.1)))
    >>> "<script>" in page, "&lt;script&gt;" in page
    (False, True)
    """
    when = f'<p class="when">{escape(report.made.strftime("%d %B %Y, %H:%M"))}</p>' if report.made else ""
    footer = '<footer class="small">Made with dpselect. Every ε on this page is an upper bound, rounded up.</footer>'
    body = f"<h1>{escape(report.title)}</h1>\n{when}\n{fragment(report)}\n{footer}"
    return document(report.title, body)


def fragment(report: Report) -> str:
    """The report without its title, as HTML that can stand inside another page or a notebook's cell."""
    banner = f'<p class="banner" role="alert"><strong>Not private.</strong> {escape(NOT_PRIVATE)}</p>'
    simulated = '<p class="banner calm"><strong>Simulated data.</strong> Nobody\'s readings were used.</p>'
    parts = [
        banner if report.noise == "reproducible" else "",
        simulated if report.simulated else "",
        *(_finding(finding) for finding in report.findings),
        _guarantee(report.guarantee),
        _notes(report.notes),
        _entries("Parameters", report.parameters),
    ]
    return "\n".join(part for part in parts if part)


def document(title: str, body: str, *, style: str = "") -> str:
    """A whole page around a ``body`` of HTML that this package made: the house style, then ``style``, and no network.

    Every page of the package is made here, so that all look alike, open offline, and are known as ours.

    >>> from dpselect.files import PAGE_MARK
    >>> document("A & B", "<p>hello</p>").startswith(PAGE_MARK), "A &amp; B" in document("A & B", "")
    (True, True)
    """
    return f"""{files.PAGE_MARK}<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>
{house_style()}{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def write_page(report: Report, path: Path | str) -> Path:
    """Writes the page; an earlier page is replaced at once or not at all, any other file is refused.

    Returns
    -------
    Path
        Where the page is, in full.
    """
    return files.write(path, html_page(report), files.PAGE)


def _finding(finding: Finding) -> str:
    table = ""
    if finding.table:
        head, *rows = finding.table
        table = table_html(head, rows, kind="stacked")
    listed = "".join(f"<li>{escape(text)}</li>" for text in finding.listed)
    if listed:
        listed = f'<p class="small">{escape(finding.listed_as)}:</p><ul class="listed">{listed}</ul>'
    figure = ""
    if finding.figure is not None:
        caption = f"<figcaption>{escape(finding.caption)}</figcaption>" if finding.caption else ""
        figure = f'<figure><div class="scroll">{inline_svg(finding.figure)}</div>{caption}</figure>'
    return (
        f'<section class="card"><p class="question">{escape(finding.question)}</p>'
        f'<p class="answer">{told(finding.answer)}</p>{listed}{_definitions(finding.details)}{table}'
        f"{_spending(finding.spending)}{figure}</section>"
    )


def _spending(spending: Spending | None) -> str:
    """What was spent; with several answers also a calendar of them, and how the spending grew."""
    if spending is None or not spending.spent:
        return ""
    spent = at_most(spending.spent[-1])
    if len(spending.spent) < 2:
        return f'<p class="small">Cost: ε = {spent}.</p>'
    words = f'<p class="small">Spent ε = {spent} of {at_most(spending.budget)}.</p>'
    grew = len(set(spending.spent)) > 1  # all at once: there is nothing to draw
    return f"{_strip(spending)}{f'<figure>{svg(spending_chart(spending))}</figure>' if grew else ''}{words}"


def _meter(spent: float, total: float) -> str:
    share = min(100.0, 100.0 * spent / total) if total > 0 else 0.0
    return f'<div class="meter"><span style="width:{share:.2f}%"></span></div>'


def _strip(spending: Spending) -> str:
    """The verdicts as a calendar, where the questions have names and are not too many to be seen."""
    if not 2 <= len(spending.labels) <= _MOST_CELLS:
        return ""
    drawn = strip_svg(spending.labels, above=spending.above, answered=len(spending.spent))
    pale = " Empty: not asked, the budget had ended." if len(spending.spent) < len(spending.labels) else ""
    return f"<figure>{drawn}<figcaption>Filled: answered above the line.{pale}</figcaption></figure>"


def _guarantee(guarantee: Guarantee) -> str:
    heading = "What is promised to each person" if guarantee.holds else "What private noise would promise"
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in guarantee.sentences)
    beliefs = ""
    if guarantee.beliefs:
        beliefs = "<p>Someone suspects something about a person. How sure may the answer make them?</p>"
        beliefs += table_html(("Before", "After, at most"), guarantee.beliefs)
    return (
        f'<h2>{heading}</h2><section class="card">'
        f'<p class="headline">{escape(guarantee.headline)}</p>{sentences}{beliefs}</section>'
    )


def _notes(notes: tuple[str, ...]) -> str:
    if not notes:
        return ""
    return "<h2>Good to know</h2><ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"


def _entries(heading: str, entries: tuple[Entry, ...]) -> str:
    return f"<h2>{escape(heading)}</h2>{_definitions(entries)}" if entries else ""


def _definitions(entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{told(text)}</dd>" for name, text in entries) + "</dl>"


#: A date with the hour or the value that belongs to it, or a number with its ±.
_TOGETHER = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?(?: \([^()]{1,30}\))?|[\d.]+ ± [\d.]+")


def told(text: str) -> str:
    """The text escaped; a date stays on one line with the hour or the value that belongs to it, a number with its ±.

    >>> told("on 2013-01-20 (9.5 ± 0.1) & later")
    'on <span class="item">2013-01-20 (9.5 ± 0.1)</span> &amp; later'
    """
    return _TOGETHER.sub(r'<span class="item">\g<0></span>', escape(text))


def table_html(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    kind: str = "",
    told: Callable[[str], str] = told,
) -> str:
    """A table; each cell carries its column's name, for screens too narrow to show it as one (kind "stacked").

    ``told`` makes HTML of a text.

    >>> table_html(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td data-name="a">&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{told(name)}</th>" for name in columns)
    cells = (
        "".join(f'<td data-name="{escape(name)}">{told(text)}</td>' for name, text in zip(columns, row, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def inline_svg(drawing: str) -> str:
    """The ``<svg>`` element of a drawing made by this package, ready to stand inside a page.

    >>> inline_svg('<?xml version="1.0"?><!DOCTYPE svg><svg width="2"><path/></svg>')
    '<svg width="2"><path/></svg>'
    """
    found = re.search(r"<svg\b.*</svg>", drawing, flags=re.DOTALL)
    if found is None or re.search(r"<script|\son\w+\s*=|javascript:", found.group(), flags=re.IGNORECASE):
        raise SourceError("a figure must be an SVG drawing without scripts")
    return found.group()


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
    asked = table_html(columns, rows, kind="stacked") if rows else "<p>Nothing was asked yet.</p>"
    page = f"""<h1>{escape(title)}</h1>
<section class="card"><p class="question">Charged of the total</p>
<p class="answer">{charged.unit} = {at_most(spent)} of {at_most(charged.total)}</p>
{_meter(spent, charged.total)}{_definitions(facts)}</section>
<h2>Spent</h2><figure>{svg(charged_chart(charged, across=across))}</figure>
<h2>Questions</h2>{asked}
<footer class="small">Made with dpselect. Every cost on this page is an upper bound, rounded up.</footer>"""
    return files.write(path, document(title, page), files.PAGE)
