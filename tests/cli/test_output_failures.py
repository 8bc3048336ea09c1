"""What happens when the answer cannot be shown: full, closed, ASCII, nobody reading, interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DPSELECT = f"{sys.executable} -m dpselect"
ASKED = (
    "--user meter --time at --value kwh --cap 10 --population 20 --from 2013-01-01 --to 2013-01-31 --epsilon 1 "
    "--mechanism permute-and-flip"
)
COST = "epsilon --candidates 9 --sigma 1 --sensitivity 1/10"
WATCH = "watch --sensitivity 1/1000 --threshold 0.5 --budget 1"


def shell(program: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", program], capture_output=True, timeout=120, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("options", ["", "--json"])
def test_a_full_output_says_that_the_answer_is_paid_for(readings: Path, options: str) -> None:
    done = shell(f"{DPSELECT} peak {readings} {ASKED} {options} > /dev/full")
    assert done.returncode == 4
    said = done.stderr.decode()
    assert "No space left on device" in said
    assert "count its cost as spent" in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said


def test_a_full_output_of_a_command_that_spends_nothing_says_only_that() -> None:
    done = shell(f"{DPSELECT} {COST} > /dev/full")
    assert done.returncode == 4
    assert "spent" not in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_a_closed_output_is_refused_before_anything_is_asked(readings: Path) -> None:
    done = shell(f"{DPSELECT} peak {readings} {ASKED} >&-")
    assert done.returncode == 2
    assert "nothing was asked" in done.stderr.decode()


@pytest.mark.parametrize(
    "command", [f"{COST}", f"{COST} --json", "--help", f"{WATCH} --anyway < <(yes 0.1)", f"{WATCH} --dry-run"]
)
def test_a_reader_that_leaves_ends_the_program_quietly(command: str) -> None:
    # The reader is gone before anything is written: the sleep keeps the order.
    done = shell(f"{{ sleep 0.5; {DPSELECT} {command}; echo $? >&2; }} | true")
    assert done.stderr.decode().split() == ["141"]


@pytest.mark.parametrize("where", ["/dev/full", "&-"])
def test_remarks_that_find_no_room_change_neither_answer_nor_exit_code(readings: Path, where: str) -> None:
    done = shell(f"{DPSELECT} peak {readings} {ASKED} --seed 1 --json 2>{where}")
    assert done.returncode == 0
    assert b'"answer"' in done.stdout
    assert shell(f"{DPSELECT} peak {readings} --nonsense 2>{where}").returncode == 2


@pytest.mark.parametrize("options", ["", "--json"])
def test_an_ascii_locale_gets_the_answer_whole(readings: Path, options: str) -> None:
    done = shell(f"{DPSELECT} peak {readings} {ASKED} {options}", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("utf-8")
    assert "2013-01-" in text
    if not options:
        assert "ε" in text


@pytest.mark.parametrize("delay", [0.03, 0.05, 0.08, 0.12, 0.2, 0.4])
def test_an_interruption_at_the_start_leaves_no_traceback(delay: float) -> None:
    # A shell may have started the suite with interruptions ignored, which children inherit: take that back first.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from dpselect.cli import main; "
        "print('go', file=sys.stderr, flush=True); sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, *WATCH.split()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == b"go\n"
        time.sleep(delay)  # wherever it lands, the claim is the same
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    # While modules are loading nothing is known of the command yet; later the line says what it cost.
    cost = (b"", b"; nothing was spent", "; count ε = 1 as spent".encode())
    assert said in [b"error: interrupted" + one + b"\n" for one in cost]
