"""The command line, run for real inside the test's process."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpselect.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def dpselect(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object, stdin: str | bytes = "") -> Ran:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def data() -> Path:
    place = Path(os.environ.get("DPSELECT_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not place.is_dir():
        pytest.skip("the public data sets are not here; set DPSELECT_DATA to their folder")
    return place


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """Twenty homes over January; the 20th is the peak by far, and from the 20th to the 22nd it is cold."""
    lines = ["meter,at,kwh"]
    for home in range(20):
        for day in range(1, 32):
            kwh = {20: 9.0, 21: 8.0, 22: 8.0}.get(day, 1.0)
            lines.append(f"home-{home},2013-01-{day:02d},{kwh}")
    path = tmp_path / "readings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
