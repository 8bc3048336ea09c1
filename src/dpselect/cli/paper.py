"""``dpselect paper``: the paper's figures, recomputed and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dpselect.cli import screen
from dpselect.cli.options import AsJson
from dpselect.errors import SourceError

#: What a plain installation says: the figures are beside the package, not in it.
NOT_HERE = (
    "the paper's figures are not part of the installed package: they are in papers/lebensold2024 of the source tree; "
    "install that with pip install --editable '.[cli,paper]'"
)


def paper(
    *,
    figures: Annotated[
        list[str] | None,
        Parameter(name="--figure", metavar="NAME", help="One figure; may be repeated. All if left out."),
    ] = None,
    out: Annotated[Path, Parameter(help="Where figures, tables and the page go.")] = Path("out/paper"),
    data: Annotated[Path | None, Parameter(help="The data folder; simulated stand-ins without it.")] = None,
    quick: Annotated[bool, Parameter(help="Smaller grids and fewer trials: minutes.")] = False,
    jobs: Annotated[int | None, Parameter(help="Processes; as many as cores if left out.")] = None,
    fetch: Annotated[bool, Parameter(help="Download UCI Bikes from its publisher.")] = False,
    list_figures: Annotated[bool, Parameter(name="--list", help="Name the figures and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute the paper's figures and judge its claims, on one page.

    All figures, quickly, or one of them on your data:

      $ dpselect paper --quick --out out/paper

      $ dpselect paper --figure heatmap-at --data my-data

    A run that was stopped goes on where it was. In Python: lebensold2024.run(out=…).
    """
    with screen.progress("Loading"):
        try:
            from lebensold2024 import FIGURES, run
        except ModuleNotFoundError as missing:
            if missing.name != "lebensold2024":
                raise
            raise SourceError(NOT_HERE) from None
    if list_figures:
        if as_json:
            screen.emit({"figures": {name: figure.title for name, figure in FIGURES.items()}})
        else:
            screen.table("Figures", ["name", "what it shows"], [[name, one.title] for name, one in FIGURES.items()])
        return
    page = run(figures or None, out=out, data=data, quick=quick, jobs=jobs, fetch=fetch, progress="rich")
    if as_json:
        screen.emit({"page": str(page.resolve())})
    else:
        screen.notice(f"Report: {page.resolve()}", style="green")
