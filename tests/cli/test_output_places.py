"""``--report``, ``--save``, ``--plot``, ``--out``: nothing that was there before is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ASKED = (
    *("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "20"),
    *("--from", "2013-01-01", "--to", "2013-01-31"),
)
PEAK = (*ASKED, "--epsilon", "1")
WATCH = (*ASKED, "--threshold", "5", "--budget", "1", "--anyway")
PLAN = ("plan", "--candidates", "9", "--epsilon", "1", "--sensitivity", "1/100", "--only", "permute-and-flip")


def refused(ran: object, said: str) -> None:
    assert ran.code == 2, ran.err  # type: ignore[attr-defined]
    assert ran.out == ""  # type: ignore[attr-defined]
    assert ran.err.count("\n") == 1, ran.err  # type: ignore[attr-defined]
    assert said in ran.err  # type: ignore[attr-defined]


@pytest.mark.parametrize("asked", [("peak", PEAK), ("watch", WATCH)])
def test_a_report_never_replaces_the_readings(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path, asked: tuple[str, tuple[str, ...]]
) -> None:
    command, options = asked
    before = readings.read_bytes()
    refused(dpselect(command, readings, *options, "--report", readings), "must end in .html")
    disguised = tmp_path / "disguised.html"
    disguised.hardlink_to(readings)
    refused(dpselect(command, readings, *options, "--report", disguised), "it is one of the inputs")
    link = tmp_path / "link.html"
    link.symlink_to(readings)
    refused(dpselect(command, readings, *options, "--report", link), "something else than an ordinary file")
    assert link.is_symlink()
    assert readings.read_bytes() == before


def test_what_somebody_else_wrote_is_kept_and_so_is_an_answer_that_was_paid_for(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!DOCTYPE html>\n<p>my thesis</p>")
    refused(dpselect("peak", readings, *PEAK, "--report", page), "no report of dpselect")
    assert "my thesis" in page.read_text()
    page.write_text("")
    ran = dpselect("peak", readings, *PEAK, "--report", page)
    assert ran.code == 0, ran.err  # type: ignore[attr-defined]
    paid = page.read_text()
    assert "What is promised" in paid
    refused(dpselect("peak", readings, *PEAK, "--report", page), "an answer that was paid for")
    assert page.read_text() == paid


def test_devices_folders_and_missing_folders_are_refused(
    dpselect: Callable[..., object], readings: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    (tmp_path / "folder.html").mkdir()
    for place in (pipe, tmp_path / "folder.html"):
        refused(dpselect("peak", readings, *PEAK, "--report", place), "something else than an ordinary file")
    refused(dpselect("peak", readings, *PEAK, "--report", tmp_path / "new" / "page.html"), "there is no such folder")
    assert not (tmp_path / "new").exists()
    refused(dpselect("peak", readings, *PEAK, "--report", "/dev/null"), "must end in .html")


def test_a_plan_is_saved_over_a_plan_and_over_nothing_else(dpselect: Callable[..., object], tmp_path: Path) -> None:
    other = tmp_path / "pyproject.toml"
    other.write_text("[project]\nname = 'mine'\n")
    refused(dpselect(*PLAN, "--save", other), "no plan of dpselect")
    refused(dpselect(*PLAN, "--save", tmp_path / "plan.csv"), "must end in .toml or .json")
    refused(dpselect(*PLAN, "--plot", other), "must end in .svg")
    refused(dpselect(*PLAN, "--report", other), "must end in .html")
    assert "mine" in other.read_text()
    for _ in range(2):
        assert dpselect(*PLAN, "--save", tmp_path / "plan.toml").code == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", ["demo", "paper"])
def test_a_file_in_the_place_of_the_folder_is_refused_before_the_work(
    dpselect: Callable[..., object], tmp_path: Path, command: str
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for place in (file, file / "deeper"):
        refused(dpselect(command, "--out", place), "is a file, not a folder")
    assert file.read_text() == "kept"


def test_the_demonstration_leaves_other_pages_alone(dpselect: Callable[..., object], tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("my own")
    refused(dpselect("demo", "--out", tmp_path), "no report of dpselect")
    assert [place.name for place in tmp_path.iterdir()] == ["report.html"]
