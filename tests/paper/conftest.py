"""Where the real data are, and one small run of everything that several tests look at."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from lebensold2024 import run
from lebensold2024.datasets import DATA_VARIABLE
from lebensold2024.figure import TINY


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The data folder; tests that need it are skipped without it."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get(DATA_VARIABLE, beside))
    if not (folder / "uci_bikes_day.csv").is_file():
        pytest.skip(f"the paper's data are not here; name their folder in {DATA_VARIABLE}")
    return folder


@pytest.fixture(autouse=True)
def without_named_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say where their data come from; the caller's environment does not."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every figure at its smallest, from stand-ins; computed once, also where several workers ask for it."""
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "paper-tiny"
    out.mkdir(exist_ok=True)
    patch = pytest.MonkeyPatch()
    patch.delenv(DATA_VARIABLE, raising=False)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "report.html").is_file():
            run(out=out, size=TINY, jobs=1)
    patch.undo()
    return out
