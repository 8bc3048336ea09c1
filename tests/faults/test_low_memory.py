"""Little memory: an answer, or one line and no crash."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from dpselect.cli import _LEAST_MEMORY
from dpselect.errors import SourceError
from dpselect.tables.failures import engine_failures

ASKED = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "200", "--epsilon", "1"]
ASKED += ["--from", "2013-01-01", "--to", "2013-01-31", "--mechanism", "permute-and-flip", "--json"]


def ask(tmp_path, limit, *more):
    """``peak`` under ``ulimit -v``."""
    path = tmp_path / "readings.csv"
    rows = (f"SECRET{home},2013-01-{day:02d},1.5\n" for home in range(2000) for day in range(1, 32))
    path.write_text("meter,at,kwh\n" + "".join(rows))
    return subprocess.run(
        [sys.executable, "-m", "dpselect", "peak", path, *ASKED, *more],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.parametrize("limit", [_LEAST_MEMORY - 1, 2**30])
def test_too_little_is_said_before_anything_is_loaded(tmp_path, limit):
    ran = ask(tmp_path, limit)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"error: ulimit -v allows {limit // 2**20} MiB, and dpselect needs 2560; raise it\n"


@pytest.mark.slow  # how much is needed depends on the machine's cores
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_the_least_that_is_asked_for_is_enough(tmp_path, engine):
    ran = ask(tmp_path, _LEAST_MEMORY, "--backend", engine)
    assert ran.returncode == 0, ran.stderr
    assert "SECRET" not in ran.stdout + ran.stderr


def test_a_library_that_panics_is_told_in_one_line():
    class PanicException(BaseException):
        """As Polars raises it."""

    with pytest.raises(SourceError, match=r"asking failed \(PanicException\)"), engine_failures("asking"):
        raise PanicException("SECRET")
    with pytest.raises(KeyboardInterrupt), engine_failures("asking"):
        raise KeyboardInterrupt
