"""Messages speak of options; settings that cannot be meant are refused or warned of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TABLE = ("--user", "meter", "--time", "at", "--value", "kwh", "--cap", "10", "--population", "2000")
DATES = ("--from", "2013-01-01", "--to", "2013-01-31")
PEAK = (*TABLE, *DATES, "--epsilon", "1")
WATCH = (*TABLE, *DATES, "--anyway", "--budget", "1")
STREAM = ("watch", "--sensitivity", "1/1000", "--budget", "1")
Run = Callable[..., Any]


def refused(ran: Any, said: str) -> None:
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert said in ran.err
    for word in ("Fraction(", "time_format", "timezone=", "shape=", "table=", "public=True", "None"):
        assert word not in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*TABLE, "--from", "2013-02-01", "--to", "2013-01-01", "--epsilon", "1"), "--to must not come before --from"),
        ((*PEAK, "--time-format", "%q"), "--time-format must be made of"),
        ((*PEAK[:8], *DATES, "--population", "9", "--epsilon", "1", "--cap", "-1"), "--cap must be positive; got -1"),
        ((*PEAK[:6], *DATES, "--population", "9", "--epsilon", "1"), "--cap must be given"),
        (("--user", "meter", *PEAK[4:], "--value", "kwh"), "or --wide"),
        ((*PEAK, "--epsilon", "inf"), "'--epsilon': must be finite"),
        ((*PEAK, "--epsilon", "-1"), "--epsilon must be positive and finite; got -1"),
        ((*PEAK, "--table", "t"), "--table must be left out"),
        ((*PEAK, "--to", "2013-01-01"), "error: there is only one candidate"),
    ],
)
def test_peak_speaks_of_options(dpselect: Run, readings: Path, options: tuple[str, ...], said: str) -> None:
    refused(dpselect("peak", readings, *options), said)


def test_other_commands_speak_of_options(dpselect: Run, tmp_path: Path) -> None:
    cost = ("epsilon", "--candidates", "9", "--sigma", "1", "--sensitivity")
    refused(dpselect(*cost, "-1"), "--sensitivity must be zero or more, and finite; got -1")
    profile = tmp_path / "past.txt"
    profile.write_text("0.1\n0.2\n")
    refused(
        dpselect("plan", "--profile", profile, "--threshold", "0.5", "--epsilon", 1, "--sensitivity", "1/9"), "--public"
    )
    refused(dpselect("peak", "duckdb:///nowhere.db", *PEAK), "give --table")
    refused(
        dpselect(*STREAM, "--threshold", "0.5", "--clip", "0"),
        "--clip must be wide enough to leave a range around the threshold, 0.5, within 0 to 1; got 0",
    )


def test_clip_is_refused_in_the_unit_of_the_readings(dpselect: Run, readings: Path) -> None:
    ran = dpselect("watch", readings, *WATCH, "--threshold", "50", "--clip", "3,1")
    refused(ran, "around the threshold, 50, within 0 to 10; got 3,1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dry-run", "--report", "page.html"), "--report does not go with --dry-run"),
        (("--dry-run", "--show-sensitive"), "--show-sensitive does not go with --dry-run"),
    ],
)
def test_what_a_dry_run_would_ignore_is_refused(
    dpselect: Run, readings: Path, options: tuple[str, ...], said: str
) -> None:
    refused(dpselect("peak", readings, *PEAK, *options), said)
    refused(dpselect("watch", readings, *WATCH, "--threshold", 5, *options), said)


def test_what_a_source_would_ignore_is_refused(dpselect: Run) -> None:
    url = ("peak", "duckdb:///some.db", "--table", "t", *PEAK)
    refused(dpselect(*url, "--backend", "polars"), "--backend does not go with a database URL")
    refused(dpselect(*url, "--delimiter", ";"), "--delimiter does not go with a database URL")
    for option, value in (("--every", "week"), ("--backend", "polars"), ("--delimiter", ";"), ("--grid", "9")):
        refused(dpselect(*STREAM, "--threshold", "0.5", option, value), f"{option} does not go with questions on")


@pytest.mark.parametrize(("threshold", "warned"), [(60, True), (-1, True), (10, False), (5, False), (0, False)])
def test_a_line_that_nothing_can_cross_is_warned_of(
    dpselect: Run, readings: Path, threshold: int, warned: bool
) -> None:
    common = ("watch", readings, *WATCH, "--sigma-threshold", "5", "--threshold", threshold)
    for more in ((), ("--dry-run",)):
        ran = dpselect(*common, *more)
        assert ran.code in (0, 3)
        assert (f"warning: the line at {threshold} lies" in ran.err) == warned
        assert ("[0, 10]" in ran.err) == warned
    first = dpselect(*common, "--json").err.splitlines()[:1]
    assert bool(first and "warning" in json.loads(first[0])) == warned


def test_a_line_outside_the_range_of_a_stream_is_warned_of(dpselect: Run) -> None:
    assert "lies above" in dpselect(*STREAM, "--threshold", 2, "--sigma-threshold", 1, "--anyway", stdin="0.5\n").err
    assert "lies" not in dpselect(*STREAM, "--threshold", 1, stdin="0.5\n").err


def test_a_weak_promise_is_called_weak_everywhere(dpselect: Run, readings: Path) -> None:
    peak, watch = ("peak", readings, *PEAK[:-1]), ("watch", readings, *WATCH[:-1])
    for epsilon, word in ((1, None), (5, "weak promise"), (20, "hardly anyone")):
        for command in ((*peak, epsilon), (*watch, epsilon, "--threshold", 5)):
            for more in ((), ("--dry-run",)):
                shown = dpselect(*command, *more)
                assert (word or "weak promise") in " ".join((shown.out + shown.err).split()) or word is None
                note = dpselect(*command, *more, "--json").lines[-1].get("note")
                assert (note is None) if word is None else word in note


def test_a_dry_run_gives_the_same_advice_as_the_answer(dpselect: Run, readings: Path) -> None:
    asked = ("peak", readings, *PEAK[:-1], "0.1", "--mechanism", "gaussian")
    advice = dpselect(*asked, "--json").json["advice"]
    assert "permute-and-flip" in advice
    dry = dpselect(*asked, "--dry-run")
    assert advice in " ".join(dry.err.split())
    assert [line.get("advice") for line in dpselect(*asked, "--dry-run", "--json").lines] == [advice, None, None, None]


@pytest.mark.parametrize(("mark", "typed"), [(";", ";"), ("\t", "tab"), ("\t", "\\t"), ("\t", "\t")])
def test_fields_may_be_kept_apart_by_other_marks(
    dpselect: Run, readings: Path, tmp_path: Path, mark: str, typed: str
) -> None:
    other = tmp_path / "other.csv"
    other.write_text(readings.read_text().replace(",", mark))
    asked = (*TABLE[:-1], "20", *DATES, "--epsilon", "2000", "--mechanism", "permute-and-flip", "--json")
    assert dpselect("peak", other, *asked, "--delimiter", typed).json["answer"] == "2013-01-20"
    refused(dpselect("peak", other, *asked), "no column")
    refused(dpselect("peak", other, *asked, "--delimiter", "::"), "--delimiter must be one character")


def test_the_number_for_the_running_sum_is_named(dpselect: Run, readings: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for command, said in (
        (("peak", readings, *PEAK, "--report", page), "Into the running sum of all answers about the same people goes"),
        (
            ("watch", readings, *WATCH, "--threshold", 5, "--report", page),
            "Into the running sum goes ε = 1.",
        ),
    ):
        assert said in " ".join(dpselect(*command).out.split())
        assert said in page.read_text()
        page.unlink()


def test_the_noise_is_told_in_the_unit_of_the_reading(dpselect: Run, readings: Path) -> None:
    ran = dpselect("peak", readings, *PEAK)
    assert "in the unit of kwh" in ran.out
    record = dpselect("peak", readings, *PEAK, "--json").json
    assert record["query_unit"] == 10
    assert "in the reading's unit" in dpselect("peak", readings, *PEAK, "--dry-run").out
    counted = [word for word in (*PEAK, "--measure", "count") if word not in ("--cap", "10", "--value", "kwh")]
    assert "in the unit of" not in dpselect("peak", readings, *counted).out


def test_a_record_holds_its_question(dpselect: Run, readings: Path) -> None:
    """Whoever finds an answer a year later can tell what it answers."""
    for more in ((), ("--dry-run",)):
        record = dpselect("peak", readings, *PEAK, "--unit", "kWh", *more, "--json").lines[0]
        kept = {name: record[name] for name in ("data", "from", "to", "every", "unit")}
        assert kept == {
            "data": "readings.csv",
            "from": "2013-01-01",
            "to": "2013-01-31",
            "every": "day",
            "unit": "kWh",
        }
    asked = dpselect("peak", readings, *PEAK, "--top", 2, "--smallest", "--json").json["question"]
    assert asked == (
        "For which 2 days is the mean of kwh over the population (each person counted up to 10) smallest, in order?"
    )


def test_a_long_list_is_cut_only_where_a_page_holds_it_whole(dpselect: Run, tmp_path: Path) -> None:
    table, page = tmp_path / "table.csv", tmp_path / "page.html"
    days = [f"2013-{month:02d}-{day:02d}" for month in (1, 2, 3) for day in range(1, 29)]
    table.write_text("meter,at,kwh\n" + "".join(f"h{home},{day},9\n" for home in range(20) for day in days))
    asked = ("watch", table, *TABLE[:-1], "20", "--from", "2013-01-01", "--to", "2013-03-28", "--threshold", "5")
    spent = (*asked, "--budget", "100000", "--sigma-threshold", "0.1", "--anyway")
    whole = dpselect(*spent)
    assert whole.code == 0, whole.err
    assert all(day in whole.out for day in days)
    cut = dpselect(*spent, "--report", page)
    assert "Above, the first 60 (all 84 are on the page)" in " ".join(cut.out.split())
    assert all(day in page.read_text() for day in days)
