"""Help, documentation and start-up."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclopts import App

from dpselect import __version__
from dpselect.cli.application import application
from dpselect.cli.verbs import VERBS

OFFERED = sorted(name for name in application() if not name.startswith("-"))
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_promised_commands_are_offered() -> None:
    assert set(OFFERED) >= {"demo", "peak", "watch", "epsilon", "calibrate", "paper"}
    assert set(OFFERED) <= set(VERBS)


@pytest.mark.parametrize("command", OFFERED)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(command: str) -> None:
    found = importlib.import_module(f"dpselect.cli.{command}").__dict__[command]
    told = found.help if isinstance(found, App) else found.__doc__
    assert " ".join(told.split("\n\n")[0].split()) == VERBS[command].line


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
    within = [name for name in application()[command] if not name.startswith("-")]
    shown = [dpselect(*words, "--help").out for words in ([command], *([command, name] for name in within))]
    options = set(re.findall(r"--[a-z][a-z-]+", " ".join(shown)))
    missing = sorted(option for option in options if option not in text)
    assert not missing


@pytest.mark.parametrize("words", [[], ["ledger"]])
def test_no_command_shows_the_help(dpselect: Callable[..., object], words: list[str]) -> None:
    ran = dpselect(*words)
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


@pytest.mark.parametrize(
    ("every", "first", "last", "periods"),
    [
        ("month", "2013-01-15", "2013-03-10", 3),
        ("month", "2013-01", "2013-03", 3),
        ("week", "2013-01-02", "2013-01-20", 3),
        ("day", "2013-01-01", "2013-01-31", 31),
        ("hour", "2013-01-01", "2013-01-31", 744),
        ("hour", "2013-01-01T05:30", "2013-01-01T08:00", 4),
    ],
)
def test_periods_are_whole_as_the_page_says(every: str, first: str, last: str, periods: int) -> None:
    from dpselect.tables import Calendar

    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{word}`" in text for word in (every, first, last))
    assert len(Calendar(first, last, every=every)) == periods  # type: ignore[arg-type]


@pytest.mark.parametrize("absolute", [True, False])
def test_database_urls_are_read_as_the_page_says(
    dpselect: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    with duckdb.connect(str(tmp_path / "meters.duckdb")) as base:
        base.execute("create table readings as select 'a' as meter, date '2013-01-02' as at, 9.0 as kwh")
    url = f"duckdb://{tmp_path}/meters.duckdb" if absolute else "duckdb://meters.duckdb"
    ran = dpselect(
        *("peak", url, "--table", "readings", "--user", "meter", "--time", "at", "--value", "kwh", "--cap", 10),
        *("--population", 1, "--from", "2013-01-01", "--to", "2013-01-03", "--epsilon", 2000),
        *("--mechanism", "permute-and-flip", "--json"),
    )
    assert ran.json["answer"] == "2013-01-02"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_learn_every_command_and_its_options(dpselect: Callable[..., object], shell: str) -> None:
    script = dpselect("completion", shell).out
    assert all(command in script for command in OFFERED)
    assert "population" in script
    assert dpselect("completion", "cmd.exe").code == 2
