"""One fault, one copy of the package, the tests that must fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.fault import Fault

ROOT = Path(__file__).parents[2]
#: As many at a time as the suite is sized for.
_WORKERS = 2
#: Seconds; a fault that makes a test hang is noticed too.
_LIMIT = 240
_FAILED, _TIMED_OUT = 1, 124


@dataclass(frozen=True)
class Outcome:
    """What became of a fault."""

    fault: Fault
    killed: bool
    why: str

    def __str__(self) -> str:
        return f"{'noticed ' if self.killed else 'SURVIVED'}  {self.fault.name} ({self.fault.file}): {self.why}"


def misplaced(fault: Fault) -> str | None:
    """What is wrong with a fault whose text is gone, or no longer the only one."""
    for file, old, _ in fault.replacements:
        path = ROOT / file
        found = path.read_text(encoding="utf-8").count(old) if path.exists() else -1
        if found != 1:
            how = "there is no such file" if found < 0 else f"its text occurs {found} times in {file}, not once"
            return f"{how}; put the fault where the code is now"
    return None


def missing_tests(fault: Fault) -> list[str]:
    """The tests named with a fault that are not there, as far as their files tell without running them."""
    return [test for test in fault.tests if not _is_there(test)]


def _is_there(test: str) -> bool:
    file, *names = test.partition("[")[0].split("::")
    path = ROOT / file
    if not path.is_file():
        return path.is_dir() and not names
    # A class may inherit its tests from the class of the same name in another suite.
    others = [] if len(names) < 2 else sorted((ROOT / "tests").rglob("test_*.py"))
    return all(_defines(path, name) for name in names[:1]) and (
        len(names) < 2 or any(_defines(other, *names) for other in [path, *others])
    )


def _defines(path: Path, *names: str) -> bool:
    text = path.read_text(encoding="utf-8")
    return all(re.search(rf"\b(def|class) {re.escape(name)}\b", text) for name in names)


def try_one(fault: Fault) -> Outcome:
    """Apply one fault to a copy and run its tests: one of them must fail, and fail as a test does."""
    wrong = misplaced(fault)
    if wrong is not None:
        return Outcome(fault, killed=False, why=wrong)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        for file, old, new in fault.replacements:
            target = Path(folder) / file
            target.write_text(target.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        code, said = _run_tests(copy, fault.tests)
    if code == _FAILED:
        return Outcome(fault, killed=True, why=said)
    if code == _TIMED_OUT:
        return Outcome(fault, killed=True, why="a test did not come back")
    return Outcome(fault, killed=False, why="all tests passed" if code == 0 else f"the tests could not be run: {said}")


def baseline(faults: Iterable[Fault]) -> str | None:
    """Run all the tests named, once and without a fault: what is wrong, if anything is."""
    tests = sorted({test for fault in faults for test in fault.tests})
    code, said = _run_tests(ROOT / "src", tests, "-n", str(_WORKERS), limit=1200)
    return None if code == 0 else said


def try_all(faults: list[Fault], *, workers: int = _WORKERS) -> Iterator[Outcome]:
    """Outcomes in order, ``workers`` at a time."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(try_one, faults)


def _run_tests(source: Path, tests: Iterable[str], *more: str, limit: int = _LIMIT) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", "-m", "not slow", *more, *tests]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "DPSELECT_EXPLORE": ""}
    # Not the workers' own settings, where this runs inside a test.
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return _TIMED_OUT, "too long"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()[-200:]]
    return done.returncode, (lines or last)[0][:160]
