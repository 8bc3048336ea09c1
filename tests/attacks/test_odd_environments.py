"""Environments that lose an answer or hang: no width, pipes in place of files, a terminal that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: Seconds after which a command that hangs is given up.
HANGS = 60
TABLE = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "20"]
TABLE += ["--from", "2013-01-01", "--to", "2013-01-10"]
SHOPS = ["--user", "meter", "--category", "at", "--cap", "9", "--population", "9", "--value", "kwh", "--epsilon", "1"]


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    rows = [f"h{home},2013-01-{day:02d},{9 if day == 7 else 1}" for home in range(20) for day in range(1, 11)]
    (tmp_path / "readings.csv").write_text("\n".join(["meter,at,kwh", *rows]) + "\n")
    return tmp_path / "readings.csv"


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpselect", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANGS,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("columns", ["0", "1", "7"])
@pytest.mark.parametrize("verb", [["peak", "--epsilon", "900"], ["watch", "--threshold", "5", "--budget", "900"]])
def test_an_answer_is_shown_whatever_width_is_claimed(readings: Path, columns: str, verb: list[str]) -> None:
    ran = run(verb[0], readings, *TABLE, *verb[1:], COLUMNS=columns)
    assert ran.returncode == 0, ran.stderr
    assert "2013-01-07" in ran.stdout


def test_a_width_of_nothing_hides_no_cost() -> None:
    ran = run("epsilon", "--candidates", "16", "--sigma", "0.1", "--sensitivity", "1/1000", COLUMNS="0")
    assert "0.204053" in ran.stdout


@pytest.mark.parametrize("what", ["table", "like", "plan", "categories", "job", "describe"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(readings: Path, what: str) -> None:
    pipe = readings.parent / "pipe.toml"
    os.mkfifo(pipe)
    command = {
        "table": ["peak", pipe, "--epsilon", "1"],
        "like": ["peak", readings, *TABLE, "--epsilon", "1", "--like", pipe, "--public"],
        "plan": ["peak", readings, *TABLE, "--plan", pipe],
        "categories": ["peak", readings, *SHOPS, "--categories", f"@{pipe}"],
        "job": ["plan", "--job", pipe],
        "describe": ["describe", pipe],
    }[what]
    ran = run(*command)
    assert ran.returncode == 2
    assert "is not a plain file" in ran.stderr


def test_a_pipe_beside_the_file_that_is_written_does_no_harm(readings: Path) -> None:
    """Other data-set files in the folder are looked at, for a second budget on the same rows."""
    os.mkfifo(readings.parent / "other.toml")
    ran = run("describe", readings, *TABLE, "--write", readings.parent / "homes.toml", "--total", "1")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_every_command_with_128_and_its_number(number: int, code: int) -> None:
    """And with one line that says what was spent; a signal that was not caught would end it without a word."""
    command = [
        sys.executable,
        "-m",
        "dpselect",
        "watch",
        "--sensitivity",
        "1/6946",
        "--threshold",
        "0.5",
        "--budget",
        "1",
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as child:  # type: ignore[call-overload]
        child.stdin.write("0.1\n")
        child.stdin.flush()
        assert "below" in child.stdout.readline()
        child.send_signal(number)
        _, said = child.communicate(timeout=HANGS)
    assert child.returncode == code
    assert "interrupted" in said
    assert "as spent" in said


def test_a_command_that_was_told_to_ignore_a_hangup_goes_on() -> None:
    """As under nohup."""
    command = [
        sys.executable,
        "-m",
        "dpselect",
        "watch",
        "--sensitivity",
        "1/6946",
        "--threshold",
        "0.5",
        "--budget",
        "1",
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        child = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
    finally:
        signal.signal(signal.SIGHUP, before)
    with child:
        for _ in range(2):
            child.stdin.write("0.1\n")
            child.stdin.flush()
            assert "below" in child.stdout.readline()
            child.send_signal(signal.SIGHUP)
            time.sleep(0.2)
        _, said = child.communicate(timeout=HANGS)
    assert child.returncode == 0, said
