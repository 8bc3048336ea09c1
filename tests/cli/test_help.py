"""Help, documentation and start-up."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dpselect import __version__
from dpselect.cli.application import COMMANDS, app

OFFERED = sorted(command.name or "" for command in app.registered_commands)
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_promised_commands_are_offered() -> None:
    assert set(OFFERED) >= {"demo", "peak", "watch", "epsilon", "calibrate", "paper"}
    assert set(OFFERED) <= set(COMMANDS)


@pytest.mark.parametrize("command", OFFERED)
def test_every_command_has_help_with_an_example(dpselect: Callable[..., object], command: str) -> None:
    ran = dpselect(command, "--help")
    assert ran.code == 0
    assert re.search(rf"\$ (\w+ \| )?dpselect {command}\b", ran.out), "an example to copy"
    assert "In Python" in ran.out, "every verb echoes a library call"
    assert "--json" in ran.out


@pytest.mark.parametrize("command", OFFERED)
def test_every_command_and_every_option_is_documented(dpselect: Callable[..., object], command: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"## `dpselect {command}`" in text
    options = set(re.findall(r"--[a-z][a-z-]+", dpselect(command, "--help").out))
    missing = sorted(option for option in options if option not in text)
    assert not missing


def test_no_command_shows_the_help(dpselect: Callable[..., object]) -> None:
    ran = dpselect()
    assert ran.code == 2
    assert "Commands" in ran.out + ran.err


def test_version(dpselect: Callable[..., object]) -> None:
    assert dpselect("--version").out == f"dpselect {__version__}\n"


def test_help_starts_without_the_heavy_libraries() -> None:
    program = (
        "import sys; from dpselect.cli import main; main(['--help']); "
        "print([name for name in ('numpy', 'scipy', 'ibis', 'matplotlib', 'pandas', 'duckdb', 'flint') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_costs_start_without_tables_or_plots() -> None:
    program = (
        "import sys; from dpselect.cli import main; "
        "main(['epsilon', '--candidates', '9', '--sigma', '1', '--sensitivity', '1/10', '--json']); "
        "print([name for name in ('ibis', 'matplotlib', 'pandas', 'duckdb') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "dpselect", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"dpselect {__version__}"


def test_the_shell_examples_of_the_page_run(dpselect: Callable[..., object]) -> None:
    """Those that need no data: every line that begins with ``$ dpselect epsilon`` or ``calibrate``."""
    lines = re.findall(
        r"^\$ dpselect ((?:epsilon|calibrate) .*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert len(lines) >= 3
    for line in lines:
        assert dpselect(*line.split()).code == 0, line
