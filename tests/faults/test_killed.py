"""Processes that are ended at any moment, disks that are full, files that change underfoot."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

ASKED = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "200", "--epsilon", "1"]
ASKED += ["--from", "2013-01-01", "--to", "2013-01-31", "--mechanism", "permute-and-flip", "--json"]
# Says "go" where signals are heeded, and "done" where they no longer matter. A shell may have started the suite with
# interruptions ignored, which children inherit: that is taken back first.
PROGRAM = """
import signal, sys
import dpselect.cli as cli

def say(text):
    print(text, file=sys.stderr, flush=True)

def prepare(really=cli._prepare_process):
    told = really()
    say("go")
    return told

signal.signal(signal.SIGINT, signal.default_int_handler)
cli._prepare_process = prepare
code = cli.main()
say("done")
sys.exit(code)
"""
#: Seconds after which a process hangs, however slow the machine.
HANGS = 200


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    """A file that takes a while to read: a random moment may lie before, in or after that."""
    path = tmp_path_factory.mktemp("killed") / "readings.csv"
    day = "".join(f"SECRET{home},2013-01-{{day:02d}} {hour:02d}:30,1.5\n" for home in range(200) for hour in range(24))
    with path.open("w") as file:
        file.write("meter,at,kwh\n")
        for number in range(1, 32):
            file.write(day.format(day=number) * 2)
    return path


def start(readings, *more, program=PROGRAM):
    command = [sys.executable, "-c", program, "peak", str(readings), *ASKED, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end_at_random(readings, number, seed):
    delay = random.Random(seed).uniform(0.0, 3.0)
    with start(readings) as child:
        assert child.stderr.readline() == b"go\n"
        time.sleep(delay)
        child.send_signal(number)
        out, said = child.communicate(timeout=HANGS)
    said = said.removesuffix(b"done\n")
    assert b"Traceback" not in said
    assert b"SECRET" not in out + said
    if number == signal.SIGKILL:
        assert child.returncode in (-signal.SIGKILL, 0)
        return
    assert child.returncode in (0, 130), said
    if child.returncode == 0:
        assert "answer" in json.loads(out)
    else:
        # Nothing was told, or all of it: the signal may come just after the answer was written.
        assert out == b"" or "answer" in json.loads(out)
        assert b"interrupted" in said
        assert said.count(b"\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(1))
def test_a_process_ended_at_a_random_moment_says_so_in_one_line(readings, number, seed):
    end_at_random(readings, number, seed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_answer_leaves_the_answer_and_the_exit_code(readings, number):
    with start(readings) as child:
        assert child.stderr.readline() == b"go\n"
        assert child.stderr.readline() == b"done\n"
        while child.poll() is None:  # all through what Python and the libraries do when they end
            child.send_signal(number)
            time.sleep(0.001)
        out, said = child.communicate()
    assert (child.returncode, said) == (0, b"")
    assert "answer" in json.loads(out)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seed", range(1, 30))
def test_a_process_ended_at_many_random_moments_says_so_in_one_line(readings, number, seed):
    end_at_random(readings, number, seed)


def test_a_library_that_is_deaf_is_left_after_a_while(readings):
    """The main thread waits inside C, where no handler of Python's runs; it says "go" from there."""
    stuck = (
        "import ctypes; import dpselect.cli as cli; cli._PATIENCE = 1; cli._prepare_process(); "
        "ctypes.CDLL(None).system(b'echo go >&2; exec sleep 100 >/dev/null 2>&1')"
    )
    with start(readings, program=stuck) as child:
        assert child.stderr.readline() == b"go\n"
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=HANGS)
    assert child.returncode == 130
    assert said == b"error: interrupted\n"


def run(readings, *more):
    with start(readings, *more) as child:
        out, said = child.communicate(timeout=HANGS)
    assert b"Traceback" not in said
    assert b"SECRET" not in out + said
    return child.returncode, said.removeprefix(b"go\n").removesuffix(b"done\n")


def test_a_file_cut_short_or_replaced_is_refused_or_answered(readings, tmp_path):
    content = readings.read_bytes()[:200_000]
    changing = tmp_path / "changing.csv"
    changing.write_bytes(content[: content.rindex(b",")])
    code, said = run(changing)
    assert code == 2
    assert b"too few fields" in said
    changing.write_bytes(b"meter,at,kwh\n")
    assert run(changing)[0] == 0
    changing.write_bytes(os.urandom(5000))
    assert run(changing)[0] == 2


@pytest.mark.parametrize("seed", range(1))
def test_a_file_replaced_while_it_is_read_gives_an_answer_or_one_line(readings, tmp_path, seed):
    changing = tmp_path / "changing.csv"
    changing.write_bytes(readings.read_bytes())
    with start(changing) as child:
        child.stderr.readline()
        time.sleep(random.Random(seed).uniform(0.5, 2.5))
        (tmp_path / "other.csv").write_text("meter,at,kwh\nSECRET,2013-01-01\n")
        (tmp_path / "other.csv").replace(changing)
        out, said = child.communicate(timeout=HANGS)
    assert child.returncode in (0, 2), said
    assert b"Traceback" not in said
    assert b"SECRET" not in out + said


@pytest.mark.parametrize("place", ["/dev/full", "/proc/report.html", "/nowhere/report.html"])
def test_a_report_that_cannot_be_written_is_told(readings, place):
    code, said = run(readings, "--report", place)
    assert code in (2, 4)
    assert said.count(b"\n") == 1
