"""Where ``plan`` may put its output."""

from __future__ import annotations

from pathlib import Path

from dpselect.errors import DPSelectError


def check_places(*, save: Path | None, plot: Path | None, report: Path | None, inputs: list[Path]) -> None:
    """Refuses places that must not be written to, before the tuning."""
    from dpselect.planning.plan import load_plan
    from dpselect.report.page import check_writable
    from dpselect.report.place import check_place, refused_place

    if save is not None:
        check_place(save, what="plan", endings=(".toml", ".json"), begins=(b"",), inputs=inputs)
        if save.exists() and save.stat().st_size:
            try:
                load_plan(save)
            except DPSelectError:
                raise refused_place("plan", save, "a file is there that is no plan of dpselect") from None
    if plot is not None:
        pictures = (b"<?xml", b"<svg", b"%PDF", bytes([0x89]) + b"PNG")
        check_place(plot, what="drawing", endings=(".svg", ".png", ".pdf"), begins=pictures, inputs=inputs)
    if report is not None:
        check_writable(report, inputs=inputs)
