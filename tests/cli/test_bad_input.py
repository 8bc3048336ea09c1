"""Bad input: exit code 2, nothing on standard output, one line that says what to change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TABLE = ("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "20")
DATES = ("--from", "2013-01-01", "--to", "2013-01-31")


def replaced(words: tuple[str, ...], **changes: str | None) -> tuple[str, ...]:
    """The options with other values; None leaves one out."""
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    pairs |= {f"--{name.rstrip('_').replace('_', '-')}": value for name, value in changes.items()}
    return tuple(word for name, value in pairs.items() if value is not None for word in (name, value))


ALL = (*TABLE, *DATES, "--epsilon", "1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (replaced(ALL, value="kWh"), "'kwh' differs from it only in case"),
        (replaced(ALL, user="who"), "no column 'who'"),
        (replaced(ALL, time="kwh"), "no time in column 'kwh' can be read"),
        (replaced(ALL, from_="2013-02-30"), "--from must be a date such as"),
        (replaced(ALL, from_="2013-02-01"), "the calendar is empty"),
        (replaced(ALL, to=None), "--from and --to must be given"),
        (replaced(ALL, cap="0"), "cap must be positive"),
        (replaced(ALL, cap="-3"), "cap must be positive"),
        (replaced(ALL, cap="ten"), "'--cap': must be a number"),
        (replaced(ALL, cap=None), "cap must be given"),
        (replaced(ALL, population=None), "--population must be given"),
        (replaced(ALL, population="0"), "population must be a whole number from 1"),
        (replaced(ALL, population="2.5"), "'--population': must be a whole number"),
        (replaced(ALL, user=None), "--user must name the column"),
        (replaced(ALL, epsilon="0"), "epsilon must be positive"),
        (replaced(ALL, epsilon="1/0"), "'--epsilon': must not divide by zero"),
        (replaced(ALL, epsilon=None), "--epsilon must be given: the most the answer may cost"),
        (replaced(ALL, backend="oracle9"), "backend must be one of duckdb, polars, spark"),
        (replaced(ALL, every="fortnight"), "'fortnight' is not one of"),
        (replaced(ALL, timezone="Mars/Olympus"), "--timezone must be a known zone"),
        (replaced(ALL, maximum="5"), "--user does not go with --maximum"),
        (replaced(ALL, categories="a,b"), "--categories does not go with --from and --to"),
        (replaced(ALL, to="2013-01-01"), "only one candidate"),
        (replaced(ALL, table="t"), "table must be left out unless the data is a database URL"),
        ((*ALL, "--monotone"), "--monotone does not go with rows of persons"),
        ((*ALL, "--wide"), "a wide table takes no time"),
        ((*ALL, "--colour"), "No such option"),
    ],
)
def test_peak_says_what_to_change(
    dpselect: Callable[..., object], readings: Path, options: tuple[str, ...], said: str
) -> None:
    ran = dpselect("peak", readings, *options)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("error: ")
    assert said in ran.err


def test_an_unreadable_file_is_named(dpselect: Callable[..., object], tmp_path: Path) -> None:
    assert "no file matches" in dpselect("peak", tmp_path / "nothing.csv", *ALL).err
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 and then nonsense")
    ran = dpselect("peak", broken, *ALL)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "reading" in ran.err
    text = tmp_path / "notes.md"
    text.write_text("hello")
    assert "must end in .csv" in dpselect("peak", text, *ALL).err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--budget", "0"), "--budget must be positive"),
        (("--sigma-query", "1"), "--sigma-query needs --sigma-threshold"),
        (("--user", "x"), "--user does not go with questions on standard input"),
        (("--expect", "0"), "must be a share such as 10%"),
        (("--questions", "0"), "--questions must be 1 or more"),
        (("--clip", "1,2,3"), "must be a width"),
        (("--clip", "-1"), "must be a width"),
        (("--threshold", "5", "--clip", "0.1"), "wide enough to leave a range around the threshold"),
        (("--lower", "2"), "upper must be above lower"),
    ],
)
def test_watch_says_what_to_change(dpselect: Callable[..., object], options: tuple[str, ...], said: str) -> None:
    base = replaced(("--sensitivity", "1/10", "--threshold", "0.5", "--budget", "1"))
    names = dict(zip(base[::2], base[1::2], strict=True)) | dict(zip(options[::2], options[1::2], strict=True))
    ran = dpselect("watch", *(word for pair in names.items() for word in pair), stdin="0.5\n")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert said in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("epsilon", "--sensitivity", "1"), "give one of --candidates"),
        (("epsilon", "--sensitivity", "1", "--candidates", "3", "--horizon", "3"), "got --candidates and --horizon"),
        (("epsilon", "--sensitivity", "1", "--candidates", "3"), "--sigma must be given"),
        (("epsilon", "--sensitivity", "1", "--candidates", "3", "--sigma", "-1"), "sigma must be positive"),
        (("epsilon", "--sensitivity", "1", "--horizon", "3", "--sigma", "1"), "--sigma does not go with"),
        (("epsilon", "--sensitivity", "-1", "--candidates", "3", "--sigma", "1"), "sensitivity must be zero or more"),
        (("epsilon", "--sensitivity", "1", "--candidates", "1", "--sigma", "1"), "2 or more"),
        (("calibrate", "--sensitivity", "0", "--candidates", "9", "--epsilon", "1"), "sensitivity must be positive"),
        (("calibrate", "--sensitivity", "1", "--horizon", "9", "--epsilon", "1"), "--threshold must be given"),
        (("paper", "--figure", "no-such-figure"), "figure must be one of"),
        (("nonsense",), "No such command"),
    ],
)
def test_the_other_commands_say_what_to_change(
    dpselect: Callable[..., object], arguments: tuple[str, ...], said: str
) -> None:
    ran = dpselect(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert said in ran.err


def test_errors_are_json_where_json_was_asked_for(dpselect: Callable[..., object]) -> None:
    ran = dpselect("epsilon", "--sensitivity", "1", "--json")
    assert ran.code == 2
    assert json.loads(ran.err)["error"].startswith("give one of")


def test_control_characters_do_not_reach_the_terminal(dpselect: Callable[..., object]) -> None:
    ran = dpselect("peak", "x\x1b[2J\nmore.csv", *ALL)
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


def test_a_password_in_a_url_is_never_shown(dpselect: Callable[..., object]) -> None:
    ran = dpselect("peak", "postgres://curator:hunter2@localhost:1/db", "--table", "t", *ALL)
    assert ran.code == 2
    assert "hunter2" not in ran.out + ran.err
