"""Where ``plan`` may put its output."""

from __future__ import annotations

from pathlib import Path

from dpselect import files
from dpselect.errors import DPSelectError

PLAN = files.Kind("plan", (".toml", ".json"), (b"",))


def check_places(*, save: Path | None, plot: Path | None, report: Path | None, inputs: list[Path]) -> None:
    """Refuses places that must not be written to, before the tuning."""
    from dpselect.planning.plan import load_plan

    if save is not None:
        files.check(save, PLAN, inputs=inputs)
        if save.exists() and save.stat().st_size:
            try:
                load_plan(save)
            except DPSelectError:
                raise files.refused_place("plan", save, "a file is there that is no plan of dpselect") from None
    if plot is not None:
        files.check(plot, files.DRAWING, inputs=inputs)
    if report is not None:
        files.check(report, files.PAGE, inputs=inputs)
