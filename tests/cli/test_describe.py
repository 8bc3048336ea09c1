"""Before anything is spent: the table is described, what looks wrong is named with its option, the facts are kept."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def table(folder: Path, text: str, name: str = "rows.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


PUBLIC = ("--cap", 10, "--population", 20)
DAY = ("--from", "2013-01-01", "--to", "2013-01-01")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("meter;at;kwh\na;2013-01-01;1,5\n", (), None),  # decimal commas and semicolons are found
        ("meter,at,kwh\na,13/01/2013,1\nb,01/02/2013,2\n", (), None),  # so is the order of day and month
        ("meter,at,kwh\na,03/01/2013,1\nb,01/02/2013,2\n", (), "either order"),
        ("meter,at,kwh\na,2013-01-01,1\nb,SECRET,2\n", (), "line 3 of 'rows.csv'"),
        ("meter,at,kwh\na,2013-01-01,1\nb,2013-01-01,SECRET\n", (), "line 3 of 'rows.csv'"),
        ("meter,day,hour,kwh\na,2013-01-01,5,1\n", ("--time", "day", "--value", "kwh", "--user", "meter"), None),
        ("meter,at,kwh\na,2013-01-01,1\n", ("--every", "hour"), "falls on midnight"),
        ("meter,at,kwh\na,2013-01-01 00:00,1\n", ("--every", "hour-of-day"), "falls on midnight"),
        ("meter,2013-01-01\na,1\n", ("--wide", "--user", "meter", *DAY, "--every", "hour"), "dates without an hour"),
        ("meter,at,kwh\na,2013-01-01,-1\nb,2013-01-01,-2\n", (), "all readings are negative"),
        ("meter,at,kwh\na,2013-01-01,-1\nb,2013-01-01,2\n", (), "count as 0"),
        ("meter,at,kwh\na,2013-01-01,99\nb,2013-01-01,98\n", (), "lie above --cap"),
        ("meter,at,kwh\na,2013-01-01,1\nb,2013-01-01,1\n", ("--population", 1), "more persons have rows"),
        ("meter,at,kwh\na,2013-01-01,1\n", ("--value", "KWH"), "differs from it only in case"),
        ("meter,at,kwh\na,2013-01-01,1\n", ("--from", "2014-01-01", "--to", "2014-01-31"), "lies in the calendar"),
        ("meter,at,kwh\na,2013-01-01,1\nb,2013-01-01,\n", (), "1 of 2 readings are empty: they count nothing"),
        ("meter,at,kwh\na,2013-01-01,1\n", ("--population", 50), "you say 50 persons, 1 has rows: means come out 50"),
        ("meter,at,kwh\na,2013-01-01,1\n", (*DAY[:3], "2013-01-03"), "2 of the 3 candidates have no rows"),
        (
            "meter,at,kwh\na,2013-01-01,1\nb,2013-01-03,2\n",
            (*DAY[:3], "2013-01-03"),
            "1 of the 3 candidates have no rows, or only 0: gaps within the dates, the first at 2013-01-02",
        ),
        ("meter,at,kwh\na,2013-01-01,1\nb,2013-01-03,2\n", (), None),  # a gap within dates that nobody named
        (
            "meter,2013-01-01\na,1\n",
            ("--wide", "--user", "meter", *DAY[:3], "2013-01-03"),
            "2013-01-02 to 2013-01-03 have no column, and would count as 0: end with --to 2013-01-01",
        ),
        ("meter,at,kwh\n", (), "no rows"),
        ("day,trips\n2013-01-01,5\n", (), "--user is still needed"),
    ],
)
def test_what_looks_wrong_is_named_with_what_mends_it(
    dpselect: Run, tmp_path: Path, text: str, options: tuple[Any, ...], said: str | None
) -> None:
    ran = dpselect("describe", table(tmp_path, text), "--cap", 10, "--population", 4, *options)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("sensitive: for the curator only\n")
    assert "SECRET" not in ran.out + ran.err
    assert said is None or said in ran.err, ran.err
    needed = "! --from and --to are still needed, here or with each question"
    assert said is not None or (ran.err.startswith(needed) and ran.err.count("!") == 1), ran.err
    assert (needed in ran.err) == ("--from" not in options), ran.err


@pytest.mark.parametrize(("cap", "said"), [(9, None), (44, None), (500, "a 50th"), (900, "a 100th")])
def test_a_cap_far_above_nearly_all_readings_is_named(
    dpselect: Run, readings: Path, cap: int, said: str | None
) -> None:
    """The largest reading is 9, and 99 of 100 are at most that; no cap up to five times as much is called wrong."""
    ran = dpselect("describe", readings, "--cap", cap, "--population", 20, "--unit", "kWh")
    assert ("no reading comes near --cap" in ran.err) == (said is not None), ran.err
    assert said is None or f"counts for at most {said} of it" in ran.err
    if cap == 900:
        assert "a cap of about 9 kWh means 100 times less noise" in ran.err


def test_what_is_empty_is_not_called_unreadable(dpselect: Run, tmp_path: Path) -> None:
    rows = "meter,at,kwh\na,2013-01-01,1\nb,2013-01-01,\na,2013-01-02,?\n"
    ran = dpselect("describe", table(tmp_path, rows), "--cap", 2, "--population", 4)
    assert "1 of 3 readings are empty" in ran.err
    assert "only 1 of 2 readings are numbers (the first that cannot is in line 4 of 'rows.csv')" in ran.err
    empty = dpselect("describe", table(tmp_path, rows.replace("?", "2")), "--cap", 2, "--population", 4)
    assert "--decimal" not in empty.err


def test_days_at_either_end_without_a_column_are_not_paid_for(dpselect: Run, tmp_path: Path) -> None:
    rows = table(tmp_path, "meter,2013-01-02,2013-01-04\na,1,2\nb,1,9\n")
    asked = ("--wide", "--user", "meter", "--cap", 10, "--population", 2, "--epsilon", 2000)
    ran = dpselect("peak", rows, *asked, "--from", "2013-01-01", "--to", "2013-01-31")
    assert ran.code == 2
    assert (
        "2013-01-01 and 2013-01-05 to 2013-01-31 have no column, and would count as 0: begin with --from 2013-01-02 "
        "and end with --to 2013-01-04; nothing was spent"
    ) in ran.err
    within = dpselect("peak", rows, *asked, "--from", "2013-01-02", "--to", "2013-01-04", "--json")
    assert within.json["answer"] == "2013-01-04", within.err
    assert "2013-01-03 has no column: there every value is 0" in within.err
    assert "no column" not in dpselect("peak", rows, *asked, "--from", "2013-01-04", "--to", "2013-01-04", "--json").err


def test_columns_formats_and_signs_are_guessed(dpselect: Run, tmp_path: Path) -> None:
    rows = "Customer ID;Datum;Verbrauch kWh\nx1;31.12.2013;1,5\nx2;1.1.2013;2,5\n"
    found = dpselect("describe", table(tmp_path, rows), "--cap", 10, "--population", 4, "--json").json
    assert found["facts"]["delimiter"] == ";"
    assert (found["facts"]["user"], found["facts"]["time"]) == ("Customer ID", "Datum")
    assert (found["facts"]["value"], found["facts"]["decimal"]) == ("Verbrauch kWh", ",")
    assert found["facts"]["time_format"] == "%-d.%-m.%Y"
    assert found["counts"]["readings that are numbers"] == 2
    assert {"delimiter", "user", "time", "value", "decimal", "time_format"} == set(found["guessed"])
    assert [one["option"] for one in found["remarks"]] == ["--from"]


def test_the_file_it_writes_answers_and_charges_its_ledger(dpselect: Run, readings: Path) -> None:
    homes = readings.parent / "homes.toml"
    asked = (
        "--from",
        "2013-01-01",
        "--to",
        "2013-01-31",
        "--unit",
        "kWh",
        "--accept",
        "--write",
        homes,
        "--total",
        3000,
    )
    ran = dpselect("describe", readings, *PUBLIC, *asked)
    assert ran.code == 0, ran.err
    written = tomllib.loads(homes.read_text())
    assert (written["rows"], written["ledger"], written["total"]) == ("readings.csv", "homes.ledger", 3000)
    assert dpselect("peak", homes, "--epsilon", 2000, "--json").json["answer"] == "2013-01-20"
    assert dpselect("peak", homes, "--epsilon", 1500, "--from", "2013-01-02").code == 3
    again = dpselect("describe", readings, *PUBLIC, *asked)
    assert (again.code, again.err.count("\n")) == (2, 2), again.err  # the remarks, then the refusal
    assert "a file is there already, and its ledger 'homes.ledger' has charges" in again.err
    homes.unlink()
    kept = dpselect("describe", readings, *PUBLIC, *asked)
    assert "a ledger with charges is there" in kept.err  # a new file must not come with a full budget
    assert not homes.exists()
    named = (*asked[:-2], "--ledger", readings.parent / "homes.ledger")
    assert dpselect("describe", readings, *PUBLIC, *named).code == 0  # but may name the one there is
    assert dpselect("peak", homes, "--epsilon", 1500, "--from", "2013-01-02").code == 3


def test_what_is_missing_is_asked_for_and_nothing_is_written(dpselect: Run, readings: Path) -> None:
    homes = readings.parent / "homes.toml"
    ran = dpselect("describe", readings, "--write", homes, "--total", 1)
    assert ran.code == 2
    assert "--cap is still needed: the most one person counts for in a period; choose it from what is known" in ran.err
    assert "--population is still needed" in ran.err
    assert "nothing was written: without --cap and --population nothing can be asked" in ran.err
    assert [one.name for one in readings.parent.iterdir()] == [readings.name]
    day = table(readings.parent, "day,trips\n2013-01-01,5\n", "days.csv")
    nobody = dpselect("describe", day, *PUBLIC, "--write", homes)
    assert "--user is still needed: name the column that says whose row it is" in nobody.err
    assert not homes.exists()


def test_facts_can_be_corrected_until_something_was_asked(dpselect: Run, readings: Path) -> None:
    homes = readings.parent / "homes.toml"
    first = ("--from", "2013-01-01", "--to", "2013-01-31", "--accept", "--write", homes, "--total", 3000)
    assert dpselect("describe", readings, *PUBLIC, *first).code == 0
    again = dpselect("describe", homes, "--cap", 12, "--write", homes)
    assert again.code == 0, again.err
    written = tomllib.loads(homes.read_text())
    assert (written["cap"], written["cap_every"], written["total"], written["ledger"]) == (
        12,
        "day",
        3000,
        "homes.ledger",
    )
    other = dpselect("describe", readings, *PUBLIC, *first[:-1], 5000)
    assert "--total must be left out, or be what was chosen when the ledger was made" in other.err
    assert dpselect("peak", homes, "--epsilon", 2000).code == 0
    late = dpselect("describe", homes, "--cap", 13, "--write", homes)
    assert (late.code, "has charges" in late.err) == (2, True)
    assert tomllib.loads(homes.read_text())["cap"] == 12
    beside = dpselect("describe", homes, "--write", homes.with_name("homes2.toml"), "--total", 3000)
    assert "at most ε = 3000 together; 1000 of 3000 is left" in beside.err, beside.err


def test_a_second_budget_for_the_same_rows_is_warned_of(dpselect: Run, readings: Path) -> None:
    for name, warned in (("homes", False), ("again", True)):
        ran = dpselect(
            "describe", readings, *PUBLIC, "--accept", "--write", readings.parent / f"{name}.toml", "--total", 1.5
        )
        assert ran.code == 0, ran.err
        assert ("homes.toml already keeps a budget for these rows" in ran.err) == warned
        assert "at most ε = 1.5 together" in ran.err
    shared = ("--accept", "--write", readings.parent / "third.toml", "--ledger", readings.parent / "homes.ledger")
    assert "already keeps a budget" not in dpselect("describe", readings, *PUBLIC, *shared).err


def test_json_lines_that_are_none_are_told_to_the_curator(dpselect: Run, tmp_path: Path) -> None:
    """A question cannot say it: whether any line is an object depends on the rows."""
    rows = table(tmp_path, "meter,at,kwh\na,2013-01-01,1\n", "rows.jsonl")
    ran = dpselect("describe", rows, *PUBLIC)
    assert (ran.code, "has no line that is a JSON object" in ran.err) == (2, True)


def test_a_cap_that_cuts_most_persons_is_named(dpselect: Run, readings: Path) -> None:
    asked = (*PUBLIC, "--from", "2013-01-01", "--to", "2013-01-31", "--every")
    assert (
        "100% of the person-months (one person, one month) lie at or above --cap and are cut to it"
        in dpselect("describe", readings, *asked, "month").err
    )
    assert "Nothing looks wrong" in dpselect("describe", readings, *asked, "month", "--cap-every", "day").err


def test_a_table_on_standard_input_is_described_and_asked(dpselect: Run, readings: Path) -> None:
    text = readings.read_text()
    assert "rows: 620" in dpselect("describe", "-", *PUBLIC, stdin=text).out
    options = ("--user", "meter", "--time", "at", "--value", "kwh", "--from", "2013-01-01", "--to", "2013-01-31")
    asked = (*options, *PUBLIC, "--json", "--seed", 3)
    for command in (("peak", "--epsilon", 2000), ("watch", "--threshold", 5, "--budget", 500)):
        piped = dpselect(command[0], "-", *command[1:], *asked, stdin=text)
        named = dpselect(command[0], readings, *command[1:], *asked)
        assert piped.out == named.out.replace(json.dumps(readings.name), json.dumps("a table in memory"))
    assert "save it to a file first" in dpselect("describe", "-", "--write", "x.toml", stdin=text).err


def test_a_broken_row_is_named_by_its_line(dpselect: Run, readings: Path) -> None:
    readings.write_text(readings.read_text() + "SECRET,2013-01-01\n")
    options = ("--user", "meter", "--time", "at", "--value", "kwh", "--from", "2013-01-01", "--to", "2013-01-31")
    for command in (("describe",), ("peak", "--epsilon", 2000)):
        ran = dpselect(command[0], readings, *command[1:], *options, *PUBLIC)
        assert ran.code == 2
        assert "line 622 of 'readings.csv'" in ran.err
        assert "SECRET" not in ran.out + ran.err


def test_midnights_are_no_news_where_the_hour_has_a_column_of_its_own(dpselect: Run, tmp_path: Path) -> None:
    rows = table(tmp_path, "meter,day,hour,kwh\na,2013-01-01,5,1\n")
    assert "times at midnight" not in dpselect("describe", rows, *PUBLIC).out
    assert "midnight" in dpselect("describe", table(tmp_path, "meter,day,kwh\na,2013-01-01,1\n"), *PUBLIC).out
