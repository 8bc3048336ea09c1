"""Runs a command line inside this process and writes down all that a person would see of it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
from pathlib import Path

from tests.golden.commands import COMMANDS, STDIN, write_inputs

from dpselect.cli import main

OUTPUTS = Path(__file__).parent / "outputs"

#: What differs from run to run: moments, digests, places, durations, versions.
_VARYING = (
    (r"\d{4}-\d\d-\d\d(?: at |[ T])\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: UTC|Z|\+00:00)?", "‹moment›"),
    (r"\b[0-9a-f]{40,64}\b", "‹digest›"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "‹id›"),
    (r"dpselect \d+\.\d+\.\d+\S*", "dpselect ‹version›"),
)


#: Numbers written in full: their last digits depend on the processor.
_LONG_NUMBER = re.compile(r"\d+\.\d{8,}(?:e[+-]?\d+)?")


def printed(name: str, folder: Path) -> str:
    """What the command lines of this name print, with their exit codes, in a folder with the inputs."""
    lines = COMMANDS[name]
    write_inputs(folder)
    told = []
    for line in [lines] if isinstance(lines, str) else lines:
        out, err, code = _run(line, folder, stdin=STDIN.get(name, ""))
        told.append(f"$ dpselect {line}\n{out}--- stderr\n{err}--- exit code {code}\n")
    text = "\n".join(told).replace(str(folder), "‹folder›")
    text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    for pattern, word in _VARYING:
        text = re.sub(pattern, word, text)
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.8g}", text)


def _run(line: str, folder: Path, *, stdin: str) -> tuple[str, str, int]:
    out, err = io.StringIO(), io.StringIO()
    before, here, environment = sys.stdin, Path.cwd(), os.environ.copy()
    try:
        os.chdir(folder)
        os.environ["COLUMNS"] = "100"
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(shlex.split(line))
    finally:
        sys.stdin = before
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)
    return out.getvalue(), err.getvalue(), code
