"""A ledger that can be read and not be written: it is shown, whatever its version, and answers nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpselect.ledger import Ledger


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder as it is on a read-only medium; for the superuser, who may write anywhere else, by a mount."""
    if os.geteuid():
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    if subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True).returncode:
        pytest.skip("this machine does not let the tests mount a folder")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def medium(dpselect: Callable[..., Any], describe: Callable[..., Path], tmp_path: Path) -> Path:
    """A folder with a ledger in which one question was answered."""
    homes = describe()
    assert dpselect("peak", homes, "--epsilon", 60, "--anyway").code == 0
    folder = tmp_path / "medium"
    folder.mkdir()
    source = sqlite3.connect(homes.with_suffix(".ledger"))
    source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    source.close()
    shutil.copy2(homes.with_suffix(".ledger"), folder / "homes.ledger")
    return folder


@pytest.mark.parametrize("version", [3, 4])
def test_it_is_shown_and_answers_nothing(
    dpselect: Callable[..., Any], medium: Path, readings: Path, version: int
) -> None:
    file = medium / "homes.ledger"
    by_hand = sqlite3.connect(file)
    by_hand.execute("UPDATE dpselect_ledger_schema SET version = ?", (version,))
    by_hand.commit()
    by_hand.close()
    with read_only(medium):
        shown = dpselect("ledger", "show", file, "--json")
        assert shown.code == 0, shown.err
        assert shown.json["spent"] == 60.0
        for action in (["history"], ["verify"], ["export"]):
            assert dpselect("ledger", *action, file).code == 0
        ran = dpselect("peak", readings, "--ledger", file, "--user", "meter", "--time", "at", "--value", "kwh", "--cap",
                       50, "--population", 20, "--from", "2013-01-01", "--to", "2013-01-30", "--epsilon", 20,
                       "--anyway")  # fmt: skip
        assert (ran.code, ran.out) == (2, "")
        assert "readonly" in ran.err
        assert dpselect("ledger", "retire", file).code == 2
        with Ledger.open(file) as opened:
            assert opened.read_only
        assert sorted(one.name for one in medium.iterdir()) == ["homes.ledger"]
