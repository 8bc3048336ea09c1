"""Options of ``watch`` about the line, the budget, the noise and the questions on standard input."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dpselect.cli.numbers import read_count, read_number
from dpselect.cli.watching import ONE_ABOVE_IN

_WATCH = "The line, the budget and the noise (in the readings' unit)"
_STREAM = "Questions on standard input"
#: How many questions a stream is planned for without other word.
STREAM_LENGTH = 365


class Widths(tuple[Fraction, Fraction]):
    """How far below and above the threshold questions are cut."""

    __slots__ = ()


def read_widths(text: str) -> Widths:
    """One width for both sides, or BELOW,ABOVE.

    >>> read_widths("0.1,1/20")
    (Fraction(1, 10), Fraction(1, 20))
    """
    parts = [read_number(part) for part in str(text).split(",")]
    if len(parts) > 2 or min(parts) < 0:
        raise typer.BadParameter("must be a width such as 0.1, or two such as 0.1,0.05")
    return Widths((parts[0], parts[-1]))


Threshold: TypeAlias = Annotated[
    Fraction | None,
    typer.Option("--threshold", parser=read_number, metavar="NUMBER", help="The public line.", rich_help_panel=_WATCH),
]

Budget: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--budget", parser=read_number, metavar="ε", help="The most all answers may cost.", rich_help_panel=_WATCH
    ),
]

Clip: TypeAlias = Annotated[
    Widths | None,
    typer.Option(
        "--clip",
        parser=read_widths,
        metavar="W or BELOW,ABOVE",
        help="Cut questions to so near the line: costs less.",
        rich_help_panel=_WATCH,
    ),
]

SigmaThreshold: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sigma-threshold",
        parser=read_number,
        metavar="σ_X",
        help="Noise of the line; if left out, the least with which --expect answers ⊤ fit the budget.",
        rich_help_panel=_WATCH,
    ),
]

SigmaQuery: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sigma-query",
        parser=read_number,
        metavar="σ_Z",
        help="Noise of each question; σ_X·√3 if left out (σ_X for a monotone family).",
        rich_help_panel=_WATCH,
    ),
]

Expect: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--expect",
        parser=read_count,
        metavar="K",
        help=f"How many ⊤ the noise is planned for; one in {ONE_ABOVE_IN} if left out.",
        rich_help_panel=_WATCH,
    ),
]

KeepThreshold: TypeAlias = Annotated[
    bool,
    typer.Option("--keep-threshold", help="One noisy line for all, not a new one after ⊤.", rich_help_panel=_WATCH),
]

Lower: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--lower", parser=read_number, metavar="A", help="Least value; 0 if left out.", rich_help_panel=_STREAM
    ),
]

Upper: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--upper", parser=read_number, metavar="B", help="Largest value; 1 if left out.", rich_help_panel=_STREAM
    ),
]

Questions: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--questions",
        parser=read_count,
        metavar="N",
        help=f"How many the noise is planned for; {STREAM_LENGTH} if left out.",
        rich_help_panel=_STREAM,
    ),
]
PlanFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--plan", metavar="PLAN.toml", help="All of this from a plan instead.", rich_help_panel=_WATCH),
]
