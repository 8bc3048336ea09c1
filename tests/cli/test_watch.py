"""``watch``: over a table, and question by question in a pipe."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.cli.stream import read_line
from dpselect.errors import InvalidData
from dpselect.ledger import Ledger, Total
from dpselect.ledger.history import history
from dpselect.rounding import at_most

COLUMNS = (
    *("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10"),
    *("--from", "2013-01-01", "--to", "2013-01-31"),
)
#: Started from a shell in the background, a child would be deaf to Ctrl-C.
CHILD = (
    *(sys.executable, "-c"),
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from dpselect.cli import main; "
    "sys.exit(main())",
)
STREAM = ("watch", "--sensitivity", "1/100000", "--threshold", "0.5", "--budget", "1")


def test_watch_finds_the_cold_days_of_a_table(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("watch", readings, *COLUMNS, "--population", 20, "--threshold", 5, "--budget", 500, "--expect", 3)
    ran = dpselect(*arguments, "--json")
    assert ran.code == 0, ran.err
    *days, summary = ran.lines
    assert [day["period"] for day in days if day["answer"] == "above"] == ["2013-01-20", "2013-01-21", "2013-01-22"]
    assert len(days) == 31
    assert summary["stopped"] == "end of input"
    assert summary["above"] == 3
    assert 0 < summary["spent"] <= 500
    spent = [day["spent"] for day in days]
    assert spent == sorted(spent)


def test_seeded_answers_say_on_every_line_that_they_promise_nothing(
    dpselect: Callable[..., object], readings: Path
) -> None:
    arguments = ("watch", readings, *COLUMNS, "--population", 20, "--threshold", 5, "--budget", 500, "--expect", 3)
    ran = dpselect(*arguments, "--seed", 7, "--json")
    assert {line["noise"] for line in ran.lines} == {"reproducible"}
    assert {line["noise"] for line in dpselect(*arguments, "--json").lines} == {"private"}
    asked = ("peak", readings, *COLUMNS, "--population", 20, "--epsilon", "1/100", "--anyway")
    for command in (arguments, asked):
        seeded, private = dpselect(*command, "--seed", 7), dpselect(*command)
        assert "running sum goes" not in " ".join(seeded.out.split())
        assert "promise nothing" in " ".join(seeded.out.split())
        assert "running sum" in " ".join(private.out.split())
        assert "promise nothing" not in " ".join(private.out.split())


def test_watch_stops_with_exit_code_3_before_the_budget_is_exceeded(
    dpselect: Callable[..., object], readings: Path
) -> None:
    ran = dpselect(
        *("watch", readings, *COLUMNS, "--population", 20, "--threshold", 5, "--budget", "0.1"),
        *("--sigma-threshold", 2, "--anyway", "--json"),
    )
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("budget exhausted: ")
    assert ran.lines[-1]["stopped"] == "budget exhausted"
    assert ran.lines[-1]["spent"] <= 0.1
    assert len(ran.lines) - 1 == ran.lines[-1]["questions"] < 31


def test_clipping_lowers_the_noise(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("watch", readings, *COLUMNS, "--population", 2000, "--threshold", 5, "--budget", 1, "--dry-run")
    wide = dpselect(*arguments, "--clip", "5", "--json").json
    near = dpselect(*arguments, "--clip", "1,2", "--json").json
    assert near["noise_threshold"] < wide["noise_threshold"]
    assert near["expected_f1"] > wide["expected_f1"]


@pytest.mark.parametrize("kept", [("--clip", "5"), ("--no-resample",)])
def test_the_planned_crossings_fit_the_budget(
    dpselect: Callable[..., object], readings: Path, kept: tuple[str, ...]
) -> None:
    """The default noise is what makes the expectation affordable, and not more."""
    plan = dpselect(
        *("watch", readings, *COLUMNS, "--population", 2000, "--threshold", 5, "--budget", 1, "--expect", 5),
        *("--dry-run", "--json", *kept),
    ).json
    assert plan["epsilon_of_a_crossing"] * (6 if "--clip" in kept else 1) <= 1.0
    assert plan["expected_answered"] > 0.5
    assert plan["expected_spent"] <= 1.0


def test_dry_run_of_watch_reads_no_value(dpselect: Callable[..., object], tmp_path: Path) -> None:
    shown = []
    for value in ("1", "9"):
        path = tmp_path / "homes.csv"
        path.write_text(f"meter,at,kwh\na,2013-01-03,{value}\n")
        arguments = (
            "watch",
            path,
            *COLUMNS,
            "--population",
            20,
            "--threshold",
            5,
            "--budget",
            1,
            "--dry-run",
            "--json",
        )
        shown.append(dpselect(*arguments).out)
    assert shown[0] == shown[1]


def test_a_stream_is_answered_line_by_line(dpselect: Callable[..., object]) -> None:
    ran = dpselect(*STREAM, stdin='0.1\n{"value": 0.9, "id": "monday"}\n\n1/10\n{"value": 1, "id": 7}\n')
    assert ran.code == 0, ran.err
    answers = [(line["line"], line.get("id"), line["answer"]) for line in ran.lines[:-1]]
    assert answers == [(1, None, "below"), (2, "monday", "above"), (4, None, "below"), (5, 7, "above")]
    summary = ran.lines[-1]
    assert (summary["stopped"], summary["questions"], summary["above"]) == ("end of input", 4, 2)
    assert (summary["spent"], summary["budget"], summary["noise"]) == (ran.lines[-2]["spent"], 1.0, "private")
    assert summary["mechanism"] == "exponential-rationed"
    assert summary["expected_f1"] > summary["guess_f1"]


@pytest.mark.parametrize(
    "bad",
    [
        "twelve",
        "nan",
        "-nan",
        "infinite",
        "[1]",
        '{"value": "0.5"}',
        '{"value": true}',
        '{"value": null}',
        '{"value": NaN}',
        '{"value": 0.5, "threshold": 0}',
        '{"value": 0.5, "value": 0.1}',
        '{"value": {"value": 1}}',
        '{"id": 3}',
        "{",
        '{"a":' * 5000,
        "9" * 100_000,
    ],
)
def test_a_bad_line_is_refused_costs_nothing_and_is_not_repeated(dpselect: Callable[..., object], bad: str) -> None:
    ran = dpselect(*STREAM, stdin=f"0.1\n{bad}\n0.1\n")
    first, refused, second, summary = ran.lines
    assert set(refused) == {"line", "error"}
    assert refused["line"] == 2
    assert "nothing was spent" in refused["error"]
    if len(bad) > 3:
        assert bad not in refused["error"]
    assert (first["line"], second["line"]) == (1, 3)
    assert summary["questions"] == 2
    alone = dpselect(*STREAM, stdin="0.1\n0.1\n").lines
    assert alone[-1]["spent"] == summary["spent"], "a refused line costs nothing"
    assert ran.code == 2
    assert ran.err == "error: 1 line was refused; nothing was spent on what was refused\n"


def test_bytes_that_are_no_text_are_refused(dpselect: Callable[..., object]) -> None:
    ran = dpselect(*STREAM, stdin=b"\xff\xfe\n0.1\n")
    assert [set(line) >= {"error"} for line in ran.lines[:2]] == [True, False]


def test_a_value_outside_the_range_counts_as_its_end(dpselect: Callable[..., object]) -> None:
    """Refusing it would tell, without noise, that a private value is outside."""
    low = ["-5", "-1e300", "-inf", "-1e999", "-1e99999", '{"value": -Infinity}']
    high = ["5", "1e300", "inf", "+inf", "Infinity", "1e999", "1E+400", '{"value": Infinity}', '{"value": 1e999}']
    ran = dpselect(*STREAM, "--budget", 1000, stdin="\n".join(low + high) + "\n")
    assert [line["answer"] for line in ran.lines[:-1]] == ["below"] * len(low) + ["above"] * len(high)
    assert ran.code == 0


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0." + "3" * 4000, Fraction(int("3" * 4000), 10**4000)),
        ("-0." + "0" * 3000 + "1", -Fraction(1, 10**3001)),
        ("5" * 4000, sys.float_info.max),
        ("-" + "5" * 4000, -sys.float_info.max),
        ("1" * 100 + "/" + "7" * 100, Fraction(1, 7)),
        ("1e-4000", Fraction(1, 10**4000)),
        ("-7e-99999999999999999999", 0.0),
        ("0e99999999999999999999", 0.0),
        ("-7e99999999999999999999", -sys.float_info.max),
        ("0.1", Fraction(1, 10)),
    ],
)
def test_a_number_is_read_whatever_its_length(written: str, value: float | Fraction) -> None:
    """Refusing long ones would tell, without noise, how large or how small a private value is."""
    assert read_line(written).value == value
    assert read_line(json.dumps({"value": 0}).replace("0", written) if "/" not in written else written).value == value


def test_what_cannot_be_read_is_refused_in_the_same_words_whatever_it_holds() -> None:
    said = set()
    for text in (
        "nan",
        "-nan",
        "x",
        "1/0",
        "--1",
        "1e",
        "0x10",
        "1,5",
        "9" * 5000,
        "0." + "9" * 5000,
        '{"value": "7"}',
    ):
        with pytest.raises(InvalidData) as refused:
            read_line(text)
        said.add(str(refused.value))
    assert len(said) == 1


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        line = read_line(text)
    except InvalidData:
        return
    float(line.value)


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_goes_through_json_unchanged(number: float) -> None:
    assert float(read_line(json.dumps({"value": number})).value) == number


def test_a_pipe_gets_each_answer_before_the_next_question() -> None:
    """For real: a child process that answers while its input stays open."""
    command = [*CHILD, *STREAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for value, expected in (("0.01", "below"), ("0.99", "above"), ("0.01", "below")):
            child.stdin.write(value + "\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["answer"] == expected
        child.stdin.close()
        assert json.loads(child.stdout.readline())["stopped"] == "end of input"
        assert child.wait() == 0


def test_an_exhausted_stream_ends_without_waiting_for_more_input() -> None:
    command = [*CHILD, "watch", "--sensitivity", "1/10", "--threshold", "0.5", "--budget"]
    with subprocess.Popen(
        [*command, "0.5", "--sigma-threshold", "1", "--anyway"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.write(b"0.5\n" * 200)
        child.stdin.flush()  # and left open: nothing more will come
        lines = [json.loads(line) for line in child.stdout]
        assert child.wait() == 3
        assert lines[-1]["stopped"] == "budget exhausted"
        assert lines[-1]["spent"] <= 0.5
        assert child.stderr.read().count(b"\n") == 1
        child.stdin.close()


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"yes 0.1 | {sys.executable} -m dpselect {' '.join(STREAM)} 2>&1 | head -n 2"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stdout + done.stderr


def test_a_seeded_stream_is_marked_in_every_line(dpselect: Callable[..., object], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    pages = [page.with_stem("first"), page]
    runs = [dpselect(*STREAM, "--seed", 3, "--report", one, stdin="0.5\n" * 20) for one in pages]
    assert runs[0].out == runs[1].out
    assert {line["noise"] for line in runs[0].lines} == {"reproducible"}
    assert "not private" in runs[0].err
    assert "Not private." in page.read_text()
    unseeded = {dpselect(*STREAM, stdin="0.5\n" * 60).out for _ in range(4)}
    assert len(unseeded) > 1


def test_without_a_ledger_the_last_record_says_that_nothing_remembers_it(
    dpselect: Callable[..., object], tmp_path: Path
) -> None:
    assert "No ledger remembers this answer" in dpselect(*STREAM, stdin="0.1\n").lines[-1]["ledger"]
    assert "ledger" not in dpselect(*STREAM, "--seed", 1, stdin="0.1\n").lines[-1]
    Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(1)).close()
    kept = dpselect(*STREAM, "--ledger", tmp_path / "x.ledger", "--total", 1, stdin="0.1\n").lines[-1]
    assert kept["ledger_entry"] == 3  # after whose privacy is counted
    assert "ledger" not in kept


def test_days_above_are_named_with_their_values(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("watch", readings, *COLUMNS, "--population", 20, "--threshold", 5, "--budget", 2000, "--expect", 3)
    record = dpselect(*arguments, "--how-much", "--json").lines[-1]
    assert record["above"] == len(record["amounts"]) == 3
    assert all(abs(found - true) < 2 for found, true in zip(record["amounts"], (9, 8, 8), strict=True))
    assert record["amount_margin"] < 0.01
    assert re.search(
        r"Above, each ± 0\.\d+:\s+2013-01-\d\d \d\.\d+  2013-01-\d\d", dpselect(*arguments, "--how-much").out
    )
    assert "--how-much does not go with" in dpselect(*STREAM, "--how-much", stdin="0.1\n").err


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_stream_ends_with_what_the_ledger_has(tmp_path: Path, stop: int) -> None:
    """For real: a child that is told to end between two questions."""
    place = tmp_path / "x.ledger"
    Ledger.create(place, dataset="load", total=Total.pure(1)).close()
    command = [*CHILD, *STREAM, "--ledger", str(place), "--total", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as child:  # type: ignore[call-overload]
        for value in ("0.01", "0.99", "0.01"):
            child.stdin.write(value + "\n")
            child.stdin.flush()
            child.stdout.readline()
        child.send_signal(stop)
        told = child.stderr.read()
        assert child.wait() == 128 + stop
    with Ledger.open(place) as ledger:
        balance = ledger.balance()
        assert [one.state for one in history(ledger)] == ["settled"]
    assert f"interrupted; the ledger has 3 answers, which cost ε = {at_most(balance.spent)}; asked again" in told
    assert 0 < balance.spent < 0.5


@pytest.mark.parametrize("how", ["closed", "interrupted", "closed, then interrupted", "interrupted, then closed"])
def test_every_answer_that_was_read_is_in_the_ledger_however_its_reader_leaves(
    dpselect: Callable[..., object], tmp_path: Path, how: str
) -> None:
    """For real: questions keep coming while standard output is closed, or Ctrl-C is pressed, or both at once."""
    Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(1)).close()
    watch = (*STREAM, "--ledger", str(tmp_path / "x.ledger"), "--total", "1")
    values = ["0.01", "0.02", "0.99", "0.03", "0.98", *["0.01"] * 200]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*CHILD, *watch], text=True, **pipes) as child:  # type: ignore[call-overload]
        child.stdin.write("\n".join(values) + "\n")
        child.stdin.flush()  # and left open: the stream would go on
        read = [json.loads(child.stdout.readline()) for _ in range(7)]
        for step in how.split(", then "):
            if step == "closed":
                child.stdout.close()
            else:
                child.send_signal(signal.SIGINT)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write("0.01\n" * 2000)
            child.stdin.close()
        rest = "" if child.stdout.closed else child.stdout.read()
        told = child.stderr.read()
        assert child.wait(timeout=60) != 0 or "interrupted" not in how
    read += [json.loads(line) for line in rest.splitlines() if "answer" in line]
    assert "Traceback" not in told
    again = dpselect(*watch, stdin="0.5\n" * len(read)).lines[: len(read)]
    assert [one["answer"] for one in again] == [one["answer"] for one in read]
    assert all(one.get("repeated") for one in again), "none of them is drawn, or paid for, a second time"


def test_records_say_what_was_asked(dpselect: Callable[..., object], readings: Path) -> None:
    arguments = ("watch", readings, *COLUMNS, "--population", 20, "--threshold", 5, "--budget", 2000, "--unit", "kWh")
    for more in (("--json",), ("--json", "--dry-run")):
        record = dpselect(*arguments, *more).lines[-1]
        assert record["question"].endswith("at or above 5 kWh?")
        assert (record["threshold"], record["line"], record["unit"]) == (5.0, "5 kWh", "kWh")
        assert (record["from"], record["to"], record["every"]) == ("2013-01-01", "2013-01-31", "day")
    record = dpselect(*STREAM, "--json", stdin="0.1\n").lines[-1]
    assert (record["threshold"], record["line"]) == (0.5, "0.5")
