"""Writes the golden outputs anew: ``python -m tests.golden [NAME …]``. Review the change with ``git diff``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.golden.commands import COMMANDS
from tests.golden.run import OUTPUTS, printed

if __name__ == "__main__":
    OUTPUTS.mkdir(exist_ok=True)
    names = sys.argv[1:] or list(COMMANDS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            (OUTPUTS / f"{name}.txt").write_text(printed(name, Path(folder)))
    if not sys.argv[1:]:
        for old in OUTPUTS.glob("*.txt"):
            if old.stem not in COMMANDS:
                old.unlink()
