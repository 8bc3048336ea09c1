"""A report as one HTML file that needs nothing else: no network, no script, light or dark as the reader likes."""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files as resources
from pathlib import Path

from dpselect import files
from dpselect.errors import SourceError
from dpselect.report.calendar_strip import strip_svg
from dpselect.report.guarantee import Guarantee
from dpselect.report.plots import spending_svg
from dpselect.report.record import NOT_PRIVATE, Entry, Finding, Report, Spending
from dpselect.report.rounding import at_most

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


def house_style() -> str:
    """The style sheet that all pages share."""
    return resources("dpselect.report").joinpath("page.css").read_text(encoding="utf-8")


def write_page(report: Report, path: Path | str) -> Path:
    """Writes the page; an earlier page is replaced at once or not at all, any other file is refused.

    Returns
    -------
    Path
        Where the page is, in full.
    """
    return files.write(path, html_page(report), files.PAGE)


def _finding(finding: Finding) -> str:
    details = _definitions(finding.details)
    figure = ""
    if finding.figure is not None:
        caption = f"<figcaption>{escape(finding.caption)}</figcaption>" if finding.caption else ""
        figure = f"<figure>{inline_svg(finding.figure)}{caption}</figure>"
    odometer = _odometer(finding.spending) if finding.spending else ""
    return (
        f'<section class="card"><p class="question">{escape(finding.question)}</p>'
        f'<p class="answer">{escape(finding.answer)}</p>{details}{odometer}{figure}</section>'
    )


def _odometer(spending: Spending) -> str:
    spent = spending.spent[-1] if spending.spent else 0.0
    share = min(100.0, 100.0 * spent / spending.budget) if spending.budget > 0 else 0.0
    told = f'<p class="small">Spent ε = {at_most(spent)} of {at_most(spending.budget)}.</p>'
    if len(spending.spent) < 2:
        return f'<div class="meter"><span style="width:{share:.2f}%"></span></div>{told}'
    return f"{_strip(spending)}<figure>{spending_svg(spending)}</figure>{told}"


def _strip(spending: Spending) -> str:
    """The verdicts as a calendar, where the questions have names and are not too many to be seen."""
    if not 2 <= len(spending.labels) <= _MOST_CELLS:
        return ""
    drawn = strip_svg(spending.labels, above=spending.above, answered=len(spending.spent))
    pale = " Pale: not asked, the budget had ended." if len(spending.spent) < len(spending.labels) else ""
    return f"<figure>{drawn}<figcaption>Filled: answered above the line.{pale}</figcaption></figure>"


def _guarantee(guarantee: Guarantee) -> str:
    heading = "What is promised to each person" if guarantee.holds else "What private noise would promise"
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in guarantee.sentences)
    rows = "".join(f"<tr><td>{before}</td><td>{after}</td></tr>" for before, after in guarantee.beliefs)
    beliefs = (
        "<p>Someone suspects something about a person. How sure may the answer make them?</p>"
        f"<table><thead><tr><th>Before</th><th>After, at most</th></tr></thead><tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
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


def _definitions(entries: tuple[Entry, ...]) -> str:
    if not entries:
        return ""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{_unbroken(text)}</dd>" for name, text in entries) + "</dl>"


def _unbroken(text: str) -> str:
    """The text escaped; the short items of a list, such as dates, are kept on one line each."""
    items = [escape(item) for item in text.split(", ")]
    if len(items) == 1:
        return items[0]
    return ", ".join(f'<span class="item">{item}</span>' if len(item) <= 24 else item for item in items)


def inline_svg(drawing: str) -> str:
    """The ``<svg>`` element of a drawing made by this package, ready to stand inside a page.

    >>> inline_svg('<?xml version="1.0"?><!DOCTYPE svg><svg width="2"><path/></svg>')
    '<svg width="2"><path/></svg>'
    """
    found = re.search(r"<svg\b.*</svg>", drawing, flags=re.DOTALL)
    if found is None or re.search(r"<script|\son\w+\s*=|javascript:", found.group(), flags=re.IGNORECASE):
        raise SourceError("a figure must be an SVG drawing without scripts")
    return found.group()
