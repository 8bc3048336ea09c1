"""The versions that are declared work: the lowest set, the newest, every Python; and each extra on its own.

Environments are made with uv from the package registry; where there is no uv, no registry or no such Python, the tests
are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ["pytest>=8.3", "hypothesis>=6.100", "pytest-timeout>=2.3"]
#: A share of the suite that goes through every dependency once.
SHARE = ["tables/test_answers.py", "tables/test_wide.py", "tables/test_sources.py", "tables/test_engines.py"]
SHARE += ["cli/test_peak.py", "cli/test_help.py", "ledger/test_store.py", "composition/test_filters.py"]
SHARE += ["mechanisms/test_contract.py", "report", "dataset"]
EXTRAS = "cli,tables,polars,plots,ledger,paper,postgres"


def interpreter(python: str) -> str:
    """Where that Python is, if pyenv keeps it; uv finds the others, but stumbles over pyenv's stand-ins."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return str(max(home.glob(f"versions/{python}.*/bin/python{python}"), default=python))


def environment(folder: Path, python: str, *packages: str) -> Path:
    """The Python of a new environment with these packages; skips where it cannot be made."""
    if importlib.util.find_spec("uv") is None:
        pytest.skip("no uv to make environments with")
    uv = [sys.executable, "-m", "uv"]
    made = subprocess.run(
        [*uv, "venv", "--quiet", "--no-python-downloads", "--python", interpreter(python), folder],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no Python {python} on this machine")
    found = folder / "bin" / "python"
    installed = subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", found, *packages], capture_output=True, text=True, cwd=ROOT
    )
    if "failed to fetch" in installed.stderr.lower():
        pytest.skip("the package registry does not answer")
    assert installed.returncode == 0, installed.stderr
    return found


@pytest.mark.parametrize(
    ("python", "resolution"),
    [("3.11", "lowest-direct"), ("3.11", "highest"), ("3.12", "highest"), ("3.13", "highest")],
)
def test_a_share_of_the_suite_passes(tmp_path, python, resolution):
    found = environment(tmp_path / "venv", python, "--resolution", resolution, f"{ROOT}[{EXTRAS}]", *TOOLS)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(
        [found, "-m", "pytest", "-q", "-x", "-m", "not slow", "--timeout", "300", *(f"tests/{part}" for part in SHARE)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=plain,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    assert " passed" in ran.stdout


ROWS = ["--user", "a", "--time", "b", "--value", "c", "--cap", "1", "--population", "5", "--epsilon", "1"]
ROWS += ["--from", "2013-01-01", "--to", "2013-01-31", "--anyway"]
PLAN = ["plan", "--candidates", "9", "--epsilon", "3", "--sensitivity", "1/10"]


@pytest.fixture(scope="module")
def command_line_alone(tmp_path_factory):
    """``dpselect`` with the extra ``cli`` and nothing else."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "x.csv").write_text("a,b,c\nx,2013-01-01,1\n")
    return environment(folder / "venv", "3.11", f"{ROOT}[cli]").with_name("dpselect"), folder


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["demo"], "tables"),
        (["peak", "x.csv", *ROWS], "tables"),
        (["describe", "x.csv"], "tables"),
        ([*PLAN, "--plot", "plan.svg"], "plots"),
        (["ledger", "show", "books.sqlite"], "ledger"),
        (["ledger", "create", "books.sqlite", "--dataset", "homes", "--total", "1"], "ledger"),
    ],
)
def test_the_command_line_alone_names_the_extra_that_is_missing(command_line_alone, arguments, extra):
    program, folder = command_line_alone
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL)
    assert ran.returncode == 2, ran.stderr
    assert f"install dpselect[{extra}]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_installation_from_a_wheel_says_where_the_paper_is(command_line_alone):
    program, folder = command_line_alone
    ran = subprocess.run([program, "paper", "--list"], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 2, ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "papers/lebensold2024" in ran.stderr


@pytest.mark.parametrize("command", ["epsilon", "calibrate"])
def test_the_command_line_alone_costs_and_calibrates(command_line_alone, command):
    program, folder = command_line_alone
    given = {"epsilon": ["--sigma", "1"], "calibrate": ["--epsilon", "1"]}[command]
    known = ["--candidates", "9", "--sensitivity", "1/10"]
    ran = subprocess.run([program, command, *known, *given], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stderr


POLARS_ALONE = """
import dpselect as dp, polars
rows = polars.DataFrame({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})
facts = dict(user="meter", time="at", value="kwh", cap=10, population=2, backend="polars")
print(dp.Dataset(rows, **facts).peak(epsilon=1000, start="2013-01-01", end="2013-01-03").label)
"""


def test_polars_needs_no_other_extra(tmp_path):
    found = environment(tmp_path / "venv", "3.11", f"{ROOT}[polars]")
    ran = subprocess.run([found, "-c", POLARS_ALONE], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "2013-01-02\n"), ran.stderr


def test_the_package_names_its_licence(tmp_path):
    found = environment(tmp_path / "venv", "3.11", str(ROOT))
    script = "from importlib.metadata import metadata; m = metadata('dpselect'); "
    script += "print(m['License-Expression'], m['License-File'], m['Author'])"
    ran = subprocess.run([found, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "Apache-2.0 LICENSE dpselect contributors\n", ran.stderr
