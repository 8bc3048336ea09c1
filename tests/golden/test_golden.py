"""What about sixty seeded command lines print, byte for byte; ``python -m tests.golden`` writes it anew."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from tests.golden.commands import COMMANDS
from tests.golden.run import OUTPUTS, printed


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_what_it_printed(name: str, tmp_path: Path) -> None:
    found, kept = printed(name, tmp_path), (OUTPUTS / f"{name}.txt").read_text()
    change = "\n".join(difflib.unified_diff(kept.splitlines(), found.splitlines(), "kept", "now", lineterm=""))
    assert found == kept, f"reviewed? then run: python -m tests.golden {name}\n{change}"


def test_every_output_belongs_to_a_command() -> None:
    assert {path.stem for path in OUTPUTS.glob("*.txt")} == set(COMMANDS)
