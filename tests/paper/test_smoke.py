"""The paper's folder is found, runs, and is named where it is missing. The rest of this folder is slow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import dpselect
from lebensold2024 import FIGURES, above_threshold, run
from lebensold2024.figure import TINY, measured


def test_a_small_run_gives_tables_drawings_and_a_page(tmp_path: Path) -> None:
    page = run(["loss-threshold", "corrections"], out=tmp_path, size=TINY, jobs=1)
    assert page.read_text(encoding="utf-8").count("data:image/png;base64,") == 2
    assert (tmp_path / "figures" / "loss-threshold.svg").is_file()
    slips = pd.read_csv(tmp_path / "tables" / "corrections.csv").set_index("what")
    assert slips.loc["closed form at ρ = 0", ["wrong", "true"]].astype(float).round(3).tolist() == [2.475, 2.562]


def test_the_heat_map_holds_what_the_authors_notebook_shows() -> None:
    part = {"threshold": 0.75, "sigmas": [0.3], "steps": [3], "trials": 10}
    row = measured(above_threshold.HEAT_MAP.measure, part).iloc[0]
    assert (round(row["before_published"], 3), round(row["after"], 3)) == (0.028, 0.008)


@pytest.mark.parametrize("program", [["dpselect", "paper"], ["lebensold2024"]])
def test_the_command_and_the_module_name_the_figures(tmp_path: Path, program: list[str]) -> None:
    command = [sys.executable, "-m", *program, "--list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert all(f'"{name}"' in done.stdout for name in FIGURES)


@pytest.mark.parametrize(
    ("absent", "said"), [("lebensold2024", "papers/lebensold2024"), ("pandas", "install dpselect[paper]")]
)
def test_what_is_missing_is_named_in_one_line(absent: str, said: str) -> None:
    code = f"import sys; sys.modules[{absent!r}] = None; from dpselect.cli import main; sys.exit(main(['paper']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_the_package_exports_nothing_that_is_unsound() -> None:
    public = {*dir(dpselect), *dir(dpselect.composition)}
    assert not [name for name in public if "published" in name.lower() or "printed" in name.lower()]
    texts = {path: path.read_text(encoding="utf-8") for path in Path(dpselect.__file__).parent.rglob("*.py")}
    assert not [path for path, text in texts.items() if "as_published" in text or "PublishedReporting" in text]
