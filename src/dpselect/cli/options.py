"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dpselect.cli.numbers import Counts, read_count, read_counts, read_number

_PUBLIC = "The family of queries"
_NOISE = "Noise"

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")]
ReportFile: TypeAlias = Annotated[
    Path | None, typer.Option("--report", metavar="FILE.html", help="Also write a page to read offline.")
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option("--seed", help="Repeatable noise for tests: the answer is then [bold]not private[/bold]."),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Show cost, noise and expected accuracy; ask nothing, spend nothing.")
]

Sensitivity: TypeAlias = Annotated[
    Fraction,
    typer.Option(
        "--sensitivity",
        parser=read_number,
        metavar="Δ",
        help="The most one person moves any query, e.g. 1/6946.",
        rich_help_panel=_PUBLIC,
    ),
]
Lower: TypeAlias = Annotated[
    Fraction,
    typer.Option("--lower", parser=read_number, metavar="A", help="Least value of a query.", rich_help_panel=_PUBLIC),
]
Upper: TypeAlias = Annotated[
    Fraction,
    typer.Option("--upper", parser=read_number, metavar="B", help="Largest value of a query.", rich_help_panel=_PUBLIC),
]
Monotone: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--monotone",
        help="One person added moves all queries one way (counts, sums of non-negative parts).",
        rich_help_panel=_PUBLIC,
    ),
]
Candidates: TypeAlias = Annotated[
    Counts | None,
    typer.Option(
        "--candidates", parser=read_counts, metavar="D[,D…]", help="Noisy max: among how many; a list gives a table."
    ),
]
Horizon: TypeAlias = Annotated[
    Counts | None,
    typer.Option(
        "--horizon",
        parser=read_counts,
        metavar="H[,H…]",
        help="Above threshold: cost known beforehand, of a run that stops at the first ⊤ or after H questions.",
    ),
]
Below: TypeAlias = Annotated[
    Counts | None,
    typer.Option(
        "--below", parser=read_counts, metavar="M[,M…]", help="Above threshold: cost of a run that answered M ⊥ …"
    ),
]
Above: TypeAlias = Annotated[int | None, typer.Option("--above", parser=read_count, metavar="K", help="… and K ⊤.")]
ThresholdAt: TypeAlias = Annotated[
    Fraction | None,
    typer.Option("--threshold", parser=read_number, metavar="ρ", help="Above threshold: the public threshold."),
]
Sigma: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sigma", parser=read_number, metavar="σ", help="Noisy max: noise of each candidate.", rich_help_panel=_NOISE
    ),
]
SigmaThreshold: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sigma-threshold",
        parser=read_number,
        metavar="σ_X",
        help="Above threshold: noise of the threshold.",
        rich_help_panel=_NOISE,
    ),
]
SigmaQuery: TypeAlias = Annotated[
    Fraction | None,
    typer.Option(
        "--sigma-query",
        parser=read_number,
        metavar="σ_Z",
        help="Above threshold: noise of each question; σ_X·√3 if left out.",
        rich_help_panel=_NOISE,
    ),
]
Delta: TypeAlias = Annotated[
    Fraction | None,
    typer.Option("--delta", parser=read_number, metavar="δ", help="Also show the smaller ε that holds up to δ."),
]
Certify: TypeAlias = Annotated[
    bool, typer.Option("--certify", help="Also enclose the pure ε between two proven numbers.")
]
