"""Processes that are ended at any moment, disks that are full, readers that leave, files that change underfoot.

What a command printed stands in its ledger, and what it says of its cost is what the ledger says.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from pyarrow import csv, parquet

from dpselect.errors import LedgerError
from dpselect.ledger import Ledger, Total
from dpselect.ledger.answer_log import AnswerLog

TABLE = ["--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "200"]
TABLE += ["--from", "2013-01-01", "--to", "2013-01-31"]
QUESTIONS = {
    "peak": [*TABLE, "--epsilon", "1", "--mechanism", "permute-and-flip", "--json"],
    "watch": [*TABLE, "--threshold", "5", "--budget", "1", "--anyway", "--json"],
}
#: Verb, kind of table, and whether a ledger keeps the budget.
CASES = [("peak", "csv", False), ("peak", "parquet", True), ("peak", "sqlite", True)]
CASES += [("watch", "csv", True), ("watch", "parquet", True), ("watch", "sqlite", False)]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP]
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
def tables(tmp_path_factory):
    """Tables that take a while to read: a random moment may lie before, in or after that."""
    folder = tmp_path_factory.mktemp("killed")
    path = folder / "readings.csv"
    day = "".join(f"SECRET{home},2013-01-{{day:02d}} {hour:02d}:30,1.5\n" for home in range(200) for hour in range(24))
    with path.open("w") as file:
        file.write("meter,at,kwh\n")
        for number in range(1, 32):
            file.write(day.format(day=number) * 2)
    rows = csv.read_csv(path)
    parquet.write_table(rows, folder / "readings.parquet")
    with closing(sqlite3.connect(folder / "readings.sqlite")) as base:
        base.execute("CREATE TABLE readings (meter TEXT, at TEXT, kwh REAL)")
        columns = (rows["meter"].to_pylist(), map(str, rows["at"].to_pylist()), rows["kwh"].to_pylist())
        base.executemany("INSERT INTO readings VALUES (?, ?, ?)", zip(*columns, strict=True))
        base.commit()
    places = {kind: [str(folder / f"readings.{kind}")] for kind in ("csv", "parquet")}
    return places | {"sqlite": [f"sqlite://{folder / 'readings.sqlite'}", "--table", "readings"]}


@pytest.fixture(scope="module")
def readings(tables):
    return Path(tables["csv"][0])


def start(verb, place, *more, program=PROGRAM, out=subprocess.PIPE, **how):
    command = [sys.executable, "-c", program, verb, *place, *QUESTIONS[verb], *more]
    return subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, **how)


def whole_lines(out):
    """What was printed, line by line; a process that was killed may leave half a line."""
    return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith(b"\n")]


def check_ledger(place, verb, printed, told):
    """Every printed answer stands in the ledger, and the line about the cost is true of it."""
    answers = [line for line in printed if "answer" in line]
    try:
        book = Ledger.open(place)
    except LedgerError:  # ended before the ledger was made
        assert not answers
        assert "spent" not in told or "nothing was spent" in told
        return
    with book as ledger:
        assert ledger.verify().holds
        charged = ledger.balance().spent
        ends = [entry for entry in ledger.entries() if entry.kind == "settle"]
        reserved = sum(entry.kind == "reserve" for entry in ledger.entries())
        if verb == "peak" and answers:
            (kept,) = (entry for entry in ends if entry.reservation == answers[0]["ledger_entry"])
            assert answers[0]["answer"] in json.dumps(kept.content["answer"])
        if verb == "watch" and answers:
            log = AnswerLog()
            for entry in ends:
                log.restore(entry.content["answer"])
            assert [log.at(number, None) for number in range(len(answers))] == [
                line["answer"] == "above" for line in answers
            ]
        assert charged > 0 or not answers
        assert charged <= 1 + 1e-9
        if "nothing was spent" in told:
            assert charged == 0
        if "its answer is in the ledger" in told:
            assert ends
        if "the ledger holds" in told:
            assert reserved
            assert charged > 0


def make_ledger(place):
    """One with a total of 9: questions make none."""
    Ledger.create(place, dataset="homes", total=Total.pure(9)).close()


def end_at_random(tables, tmp_path, case, number, seed, *, longest=3.0, reader=True):
    """Ends a process somewhere in its first seconds, of which ``longest`` is the most; its exit code."""
    verb, kind, keeps = case
    place = tmp_path / "homes.ledger"
    delay = random.Random(f"{case} {number} {seed}").uniform(0.0, longest)
    out = subprocess.PIPE
    if keeps and not place.exists():
        make_ledger(place)
    if not reader:
        here, out = os.pipe()
        os.close(here)
    with start(verb, tables[kind], *(["--ledger", str(place), "--total", "9"] if keeps else []), out=out) as child:
        if not reader:
            os.close(out)
        assert child.stderr.readline() == b"go\n"
        time.sleep(delay)
        child.send_signal(number)
        shown, said = child.communicate(timeout=HANGS)
    said = said.removesuffix(b"done\n")
    assert b"Traceback" not in said, said
    assert b"SECRET" not in (shown or b"") + said
    told = [line for line in said.decode().splitlines() if not line.startswith('{"warning"')]
    told = [line for line in told if verb == "peak" or not line.startswith("budget exhausted")]
    printed = whole_lines(shown or b"")
    if number == signal.SIGKILL:
        assert child.returncode in (-signal.SIGKILL, 0, 3)
    elif child.returncode == 128 + number:
        # Nothing was told, or all of it: the signal may come just after the answer was written.
        assert verb == "watch" or not printed or "answer" in printed[0]
        assert "interrupted" in told[0]
        assert len(told) == 1
    else:
        assert child.returncode in ({0, 3} if reader and verb == "watch" else {0} if reader else {141}), said
        assert not reader or "answer" in printed[0]
    if keeps:
        check_ledger(place, verb, printed, " ".join(told))
    return child.returncode


@pytest.fixture(scope="module")
def lasts(tables, tmp_path_factory):
    """How long a command takes that nobody ends, measured once on this machine as it is."""
    known = {}

    def seconds(case):
        if case not in known:
            started = time.monotonic()
            end_at_random(tables, tmp_path_factory.mktemp("whole"), case, signal.SIGCONT, 0)
            known[case] = time.monotonic() - started
        return known[case]

    return seconds


@pytest.mark.parametrize(
    ("case", "number"),
    [(CASES[0], SIGNALS[2]), (CASES[1], SIGNALS[0]), (CASES[3], SIGNALS[1]), (CASES[2], SIGNALS[3])],
)
def test_a_process_ended_at_a_random_moment_says_so_in_one_line(tables, tmp_path, case, number):
    end_at_random(tables, tmp_path, case, number, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_process_ended_at_many_random_moments_says_so_in_one_line(tables, lasts, tmp_path, case, number, seed):
    end_at_random(tables, tmp_path, case, number, seed, longest=lasts(case))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("case", [case for case in CASES if case[2]], ids=str)
def test_an_interruption_while_nobody_reads_leaves_a_true_ledger(tables, lasts, tmp_path, case, seed):
    end_at_random(tables, tmp_path, case, signal.SIGINT, seed, longest=lasts(case), reader=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_answer_leaves_the_answer_and_the_exit_code(tables, number):
    with start("peak", tables["csv"]) as child:
        assert child.stderr.readline() == b"go\n"
        assert child.stderr.readline() == b"done\n"
        while child.poll() is None:  # all through what Python and the libraries do when they end
            child.send_signal(number)
            time.sleep(0.001)
        out, said = child.communicate()
    assert (child.returncode, said) == (0, b"")
    assert "answer" in json.loads(out)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGHUP])
def test_a_key_held_down_is_told_in_one_line(tables, number):
    with start("peak", tables["csv"]) as child:
        assert child.stderr.readline() == b"go\n"
        while child.poll() is None:
            child.send_signal(number)
        out, said = child.communicate()
    assert (child.returncode, out, said.splitlines()[1:]) == (128 + number, b"", [b"done"])
    assert b"interrupted" in said.splitlines()[0]


@pytest.mark.parametrize("debug", [False, True])
def test_what_fails_beside_the_command_is_kept_back(debug):
    """Python prints where a thread fails, or an object while it is taken down; both may quote rows."""
    program = """
import threading
import dpselect.cli as cli

class Half:
    def __del__(self):
        raise ValueError("SECRET")

def fail():
    raise ValueError("SECRET")

cli._prepare_process()
Half()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
"""
    environment = os.environ | {"DPSELECT_DEBUG": "1"} if debug else None
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, timeout=HANGS).stderr
    assert said.count(b"SECRET") == (2 if debug else 0)
    assert debug or not said


def test_a_library_that_is_deaf_is_left_after_a_while(tables):
    """The main thread waits inside C, where no handler of Python's runs; it says "go" from there."""
    stuck = (
        "import ctypes; import dpselect.cli as cli; cli._PATIENCE = 1; cli._prepare_process(); "
        "ctypes.CDLL(None).system(b'echo go >&2; exec sleep 100 >/dev/null 2>&1')"
    )
    with start("peak", tables["csv"], program=stuck) as child:
        assert child.stderr.readline() == b"go\n"
        child.send_signal(signal.SIGTERM)
        _, said = child.communicate(timeout=HANGS)
    assert child.returncode == 143
    assert said == b"error: interrupted\n"


def ended(child):
    """The exit code, what was printed and what was said, without what the program above adds."""
    out, said = child.communicate(timeout=HANGS)
    assert b"Traceback" not in said, said
    assert b"SECRET" not in (out or b"") + said
    return child.returncode, out, said.removeprefix(b"go\n").removesuffix(b"done\n").decode()


def run(verb, place, *more, **how):
    with start(verb, place, *more, **how) as child:
        return ended(child)


def no_room(size=0):
    """The kernel refuses every byte of a file beyond this, as a full disk does."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return {"preexec_fn": limit}


@pytest.mark.slow
def test_a_reader_that_left_changes_nothing_in_the_ledger(tables, tmp_path):
    place = tmp_path / "homes.ledger"
    here, there = os.pipe()
    os.close(here)
    make_ledger(place)
    code, _, said = run("peak", tables["parquet"], "--ledger", str(place), "--total", "9", out=there)
    os.close(there)
    assert (code, said) == (141, "")
    code, out, _ = run("peak", tables["parquet"], "--ledger", str(place))
    (again,) = whole_lines(out)
    assert (code, again["repeated"]) == (0, True)
    check_ledger(place, "peak", [again], "")


@pytest.mark.parametrize("verb", ["peak", pytest.param("watch", marks=pytest.mark.slow)])
def test_a_disk_without_room_for_a_ledger_spends_nothing(tables, tmp_path, verb):
    make_ledger(tmp_path / "x")
    code, out, said = run(verb, tables["parquet"], "--ledger", str(tmp_path / "x"), "--total", "9", **no_room())
    assert (code, out, said.count("\n")) == (2, b"", 1)
    assert "nothing was spent" in said


@pytest.mark.slow
def test_a_disk_that_fills_up_lets_no_answer_out_that_the_ledger_lacks(tables, tmp_path):
    place = tmp_path / "homes.ledger"
    make_ledger(place)
    assert run("peak", tables["parquet"], "--ledger", str(place), "--total", "9")[0] == 0
    printed = []
    for room in range(0, 40_000, 8_000):
        options = ["--ledger", str(place), "--afresh", "--epsilon", "0.01", "--anyway"]
        code, out, said = run("peak", tables["parquet"], *options, **no_room(place.stat().st_size + room))
        printed += whole_lines(out)
        assert code == (0 if out else 2), said
        assert out or said.count("\n") == 1
    with Ledger.open(place) as ledger:
        assert ledger.verify().holds
        ends = {entry.reservation for entry in ledger.entries() if entry.kind == "settle"}
        assert {line["ledger_entry"] for line in printed} <= ends


PLAN = ["plan", "--candidates", "9", "--epsilon", "4", "--sensitivity", "1/10", "--only", "permute-and-flip"]


@pytest.mark.parametrize("what", ["plan", "data-set file"])
def test_a_file_without_room_is_told_and_not_left_half(readings, tmp_path, what):
    kept = tmp_path / "kept.toml"
    command = [*PLAN, "--save", str(kept)]
    if what == "data-set file":
        command = ["describe", str(readings), *TABLE, "--write", str(kept)]
    ran = subprocess.run([sys.executable, "-m", "dpselect", *command], capture_output=True, timeout=HANGS, **no_room())
    assert ran.returncode in (2, 4)
    *remarks, told = ran.stderr.decode().splitlines()
    assert "cannot write" in told
    assert not remarks or what == "data-set file"  # describe tells first what it found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_file_cut_short_or_replaced_is_refused_or_answered(readings, tmp_path):
    content = readings.read_bytes()[:200_000]
    changing = tmp_path / "changing.csv"
    changing.write_bytes(content[: content.rindex(b",")])
    code, _, said = run("peak", [changing])
    assert code == 2
    assert "too few fields" in said
    changing.write_bytes(b"meter,at,kwh\n")
    assert run("peak", [changing])[0] == 0
    changing.write_bytes(os.urandom(5000))
    assert run("peak", [changing])[0] == 2


def test_a_file_replaced_while_it_is_read_gives_an_answer_or_one_line(readings, tmp_path):
    changing = tmp_path / "changing.csv"
    changing.write_bytes(readings.read_bytes())
    with start("peak", [changing]) as child:
        child.stderr.readline()
        time.sleep(random.Random(0).uniform(0.5, 2.5))
        (tmp_path / "other.csv").write_text("meter,at,kwh\nSECRET,2013-01-01\n")
        (tmp_path / "other.csv").replace(changing)
        code, _, said = ended(child)
    assert code in (0, 2), said


@pytest.mark.parametrize("place", ["/dev/full", "/proc/report.html", "/nowhere/report.html"])
def test_a_report_that_cannot_be_written_is_told(tables, place):
    code, _, said = run("peak", tables["csv"], "--report", place)
    assert code in (2, 4)
    assert said.count("\n") == 1
