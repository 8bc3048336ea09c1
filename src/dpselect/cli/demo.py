"""``dpselect demo``: the main job, end to end, on a simulated city."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number as Between

from dpselect.cli import screen
from dpselect.cli.options import AsJson, Seed
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.demo.script import Demonstration, Step


def demo(
    *,
    out: Annotated[Path, Parameter(help="Where the readings, the data-set file and the report go.")] = Path("out/demo"),
    meters: Annotated[int, Parameter(help="Homes in the city.", validator=Between(gte=2, lte=200_000))] = 2000,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a city of meters over a year, ask for its peak and its cold days, write a report.

    Nothing else is needed:

      $ dpselect demo --out out/demo

    In Python: dpselect.demo.script.run_demo(out=…).
    """
    with _steps() as step:
        from dpselect.demo.script import run_demo
        from dpselect.noise.entropy import SYSTEM_ENTROPY, SeededEntropy

        entropy = SYSTEM_ENTROPY if seed is None else SeededEntropy(seed)
        found = run_demo(out=out, meters=meters, entropy=entropy, step=step)
    if as_json:
        record: dict[str, Any] = asdict(found)
        record["watch"] |= {"right": found.watch.right}
        del record["watch"]["spending"]
        screen.emit(record | {name: str(record[name]) for name in ("page", "readings", "homes")})
        return
    _show(found)


@contextmanager
def _steps() -> Iterator[Step]:
    """A bar on standard error where somebody is watching, else a line per step."""
    if not sys.stderr.isatty():
        said: list[str] = []

        def say(doing: str, _share: float) -> None:
            if doing not in (*said, "Done"):
                said.append(doing)
                screen.notice(f"{doing} …", style="dim")

        yield say
        return
    with screen.progress("Starting") as move:
        yield lambda doing, share: move(share, doing)


def _show(found: Demonstration) -> None:
    from dpselect.demo.script import LINE, UNIT
    from dpselect.report.record import NOT_PRIVATE

    if found.noise == "reproducible":
        screen.notice(NOT_PRIVATE, style="bold red")
    peak, watch = found.peak, found.watch
    spent = watch.spending.spent[-1] if watch.spending.spent else 0.0
    screen.entries(
        f"A simulated city: {found.meters:,} homes, {found.days} days, {found.rows:,} rows",
        [
            ("Which day was the peak?", ""),
            ("  private answer", f"{peak.day} ({peak.mean_kwh:.1f} {UNIT}, number {peak.rank} of {found.days})"),
            ("  truth (simulated)", f"{peak.true_day} ({peak.true_mean_kwh:.1f} {UNIT})"),
            ("  cost", f"ε ≤ {at_most(peak.epsilon)}, {peak.mechanism}"),
            (f"Which days reached {LINE} {UNIT}?", f"{watch.asked} days asked"),
            ("  private answer", _listed(watch.days, note=f", {watch.right} of them right")),
            ("  truth (simulated)", _listed(watch.true_days)),
            ("  cost", f"ε ≤ {at_most(spent)} of {at_most(watch.spending.budget)}"),
        ],
        note="",
    )
    screen.notice(f"Report: {found.page}", style="green")
    print("Next, as typed here:")
    for command in _next(found):
        print(f"  {command}")


def _next(found: Demonstration) -> list[str]:
    """Three commands as they must be typed where the person stands."""
    from dpselect.demo.script import LINE

    homes = shlex.quote(_near(found.homes))
    return [
        f"{program()} describe {homes}",
        f"{program()} peak {homes} --epsilon 0.5 --how-much",
        f"{program()} watch {homes} --threshold {LINE} --budget 1",
    ]


def program() -> str:
    """How this program is called from here: by its name where the shell finds it, otherwise by its place."""
    started = Path(sys.argv[0])
    if started.name != "dpselect":
        return "dpselect"
    named = shutil.which("dpselect")
    if named is not None and Path(named).exists() and started.exists() and Path(named).samefile(started):
        return "dpselect"
    return shlex.quote(_near(started))


def _near(place: Path) -> str:
    """A path from where the person stands, where it lies below."""
    whole = Path(os.path.abspath(place))  # noqa: PTH100 - a link to the program stays the link
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(whole)


def _listed(days: Sequence[str], *, note: str = "") -> str:
    return f"{len(days)} days{note}: {', '.join(days)}" if days else "none"
