"""A report in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpselect.report.record import NOT_PRIVATE, Report

if TYPE_CHECKING:
    from rich.console import Console


def print_report(report: Report, *, console: Console | None = None) -> None:
    """Writes the report as text; markup in the user's words is shown as it is, never obeyed.

    >>> from dpselect.report.guarantee import Guarantee
    >>> from dpselect.report.record import Finding
    >>> found = Finding(question="Which day?", answer="2013-01-20")
    >>> print_report(Report(title="Peak", findings=(found,), guarantee=Guarantee(epsilon=0.1)))
    Which day?
      2013-01-20
    ...
    """
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    screen = console or Console()
    if report.noise == "reproducible":
        screen.print(Text(NOT_PRIVATE, style="bold red"))
        screen.print()
    for finding in report.findings:
        screen.print(Text(finding.question))
        screen.print(Padding(Text(finding.answer, style="bold green"), (0, 0, 0, 2)))
        for name, text in finding.details:
            screen.print(Padding(Text.assemble((f"{name}: ", "dim"), text), (0, 0, 0, 2)))
        screen.print()
    screen.print(Text.assemble("Guarantee: ", (report.guarantee.headline, "bold")))
    screen.print(Padding(Text(report.guarantee.sentences[0]), (0, 0, 0, 2)))
    if report.guarantee.weakness is not None:
        screen.print(Padding(Text(report.guarantee.weakness, style="bold yellow"), (0, 0, 0, 2)))
    for note in report.notes:
        screen.print(Padding(Text(f"• {note}"), (0, 0, 0, 2)))
    if report.parameters:
        grid = Table.grid(padding=(0, 2))
        for name, text in report.parameters:
            grid.add_row(Text(name, style="dim"), Text(text))
        screen.print()
        screen.print(Padding(grid, (0, 0, 0, 2)))
