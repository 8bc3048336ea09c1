"""``dpselect ledger``: make, show, history, plot, verify, export, retire."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dpselect.ledger import Ledger, filter_on


@pytest.fixture
def place(dpselect: Callable[..., object], tmp_path: Path) -> str:
    """A ledger of 2 with one question answered and one that crashed."""
    found = str(tmp_path / "homes.ledger")
    assert dpselect("ledger", "create", found, "--dataset", "homes", "--total", "2").code == 0
    with Ledger.open(found, who="ann") as ledger:
        ledger.ask({"verb": "peak"}, cost=0.5, draw=lambda: "monday")
        ledger.reserve({"verb": "peak", "month": 2}, cost=0.25)
    return found


def test_show_says_what_is_left(dpselect: Callable[..., object], place: str) -> None:
    shown = dpselect("ledger", "show", place, "--json").json
    assert (shown["total"], shown["spent"], shown["remaining"], shown["questions_left"]) == (2.0, 0.75, 1.25, 3)
    text = dpselect("ledger", "show", place).out
    assert "█" * 15 + "·" * 25 in text
    assert "1.25" in text
    assert "3 more like the last (ε = 0.375 each)" in text
    with Ledger.open(place) as ledger:
        ledger.ask({"verb": "peak", "month": 3}, cost=0.74988, draw=lambda: "tuesday")
    text = dpselect("ledger", "show", place).out
    # Rounded up to 1.5, beside which 0.5001 would come to more than there is.
    assert "ε = 1.5 " in text
    assert re.search(r"Left\s+ε = 0\.5\s", text), text
    anchor = dpselect("ledger", "show", place, "--json").json["anchor"]
    assert anchor in re.sub(r"\s", "", text), "an anchor is never cut"


def test_history_as_table_json_and_csv(dpselect: Callable[..., object], place: str) -> None:
    rows = dpselect("ledger", "history", place, "--json").lines
    assert [(row["number"], row["state"], row["answer"], row["cost"]) for row in rows] == [
        (2, "settled", "monday", 0.5),
        (4, "reserved", None, 0.25),
    ]
    table = list(csv.DictReader(io.StringIO(dpselect("ledger", "history", place, "--csv").out)))
    assert [row["cost"] for row in table] == ["0.5", "0.25"]
    assert "monday" in dpselect("ledger", "history", place).out


def test_verify_prints_an_anchor_and_finds_an_older_copy(dpselect: Callable[..., object], place: str) -> None:
    anchor = dpselect("ledger", "verify", place, "--json").json["anchor"]
    assert dpselect("ledger", "verify", place, "--anchor", anchor).code == 0
    ran = dpselect("ledger", "verify", place, "--anchor", "9:" + "a" * 64)
    assert ran.code == 2
    assert "old copy" in ran.err
    ran = dpselect("ledger", "show", place, "--anchor", "9:" + "a" * 64)
    assert ran.code == 2
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("across", ["time", "entry"])
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plot_over_time_or_entries(
    dpselect: Callable[..., object], place: str, tmp_path: Path, across: str, ending: str
) -> None:
    out = tmp_path / f"spend.{ending}"
    assert dpselect("ledger", "plot", place, "--out", out, "--across", across).code == 0
    drawn = out.read_bytes()
    if ending == "png":
        assert drawn.startswith(b"\x89PNG")
        return
    assert "total ε = 2" in drawn.decode()
    assert f">{across}</text>" in drawn.decode()
    assert (">4</text>" in drawn.decode()) == (across == "entry"), "the number of the last entry"


def test_page_and_export(dpselect: Callable[..., object], place: str, tmp_path: Path) -> None:
    assert dpselect("ledger", "history", place, "--report", tmp_path / "ledger.html", "--across", "entry").code == 0
    page = (tmp_path / "ledger.html").read_text()
    assert "monday" in page
    assert ">entry</text>" in page
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page
    entries = dpselect("ledger", "export", place).lines
    assert [entry["kind"] for entry in entries] == ["create", "reserve", "settle", "reserve"]


def test_a_stream_is_one_question_in_the_history(dpselect: Callable[..., object], place: str) -> None:
    with Ledger.open(place) as ledger, filter_on(ledger, question={"verb": "watch"}, stretch=0.0625) as budget:
        for _ in range(4):
            budget.charge(0.03125)
    rows = dpselect("ledger", "history", place, "--json").lines
    assert [(row["question"], row["answer"], row["cost"]) for row in rows][-1] == (
        {"verb": "watch"},
        {"charges": 4},
        0.125,
    )
    assert len(rows) == 3
    assert dpselect("ledger", "show", place, "--json").json["questions_left"] == int(1.125 / (0.875 / 3))


def test_retire(dpselect: Callable[..., object], place: str) -> None:
    assert dpselect("ledger", "retire", place, "--reason", "the study is over").code == 0
    shown = dpselect("ledger", "show", place, "--json").json
    assert (shown["retired"], shown["remaining"]) == (True, 0.0)


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "x.ledger", "--total", "1"],
        ["create", "x.ledger", "--dataset", "x"],
        ["create", "x.ledger", "--dataset", "x", "--total", "1", "--rho", "1"],
        ["create", "x.ledger", "--dataset", "x", "--rho", "1"],
        ["create", "x.ledger", "--dataset", "x", "--total", "-1"],
        ["show", "gone.ledger"],
        ["show", "mysql://ann:secret@host/db"],
        ["what", "x.ledger"],
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(
    dpselect: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = dpselect("ledger", *arguments)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "secret" not in ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ["show", "--total", "3"],
        ["show", "--csv"],
        ["show", "--out", "x.svg"],
        ["verify", "--report", "x.html"],
        ["show", "--reason", "x"],
        ["history", "--across", "entry"],
        ["show", "--report", "x.txt"],
    ],
)
def test_what_would_be_ignored_is_refused(dpselect: Callable[..., object], place: str, options: list[str]) -> None:
    assert dpselect("ledger", options[0], place, *options[1:]).code == 2


@pytest.fixture
def described(tmp_path: Path, place: str) -> Path:
    """A data-set file that names the ledger."""
    found = tmp_path / "homes.toml"
    found.write_text('rows = "readings.csv"\nledger = "homes.ledger"\n')
    return found


@pytest.mark.parametrize("action", ["show", "history", "verify", "export"])
def test_a_data_set_file_stands_for_the_ledger_it_names(
    dpselect: Callable[..., object], place: str, described: Path, action: str
) -> None:
    ran = dpselect("ledger", action, described, "--json")
    assert (ran.code, ran.out) == (0, dpselect("ledger", action, place, "--json").out)


def test_a_data_set_file_without_a_ledger_is_refused(dpselect: Callable[..., object], described: Path) -> None:
    described.write_text('rows = "readings.csv"\n')
    ran = dpselect("ledger", "show", described)
    assert ran.code == 2
    assert "names no ledger" in ran.err


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_history_keeps_within_the_screen(
    dpselect: Callable[..., object], monkeypatch: pytest.MonkeyPatch, place: str, width: int
) -> None:
    question = {"verb": "peak", "Candidates": "365, each day from 2013-01-01 to 2013-12-31", "Cap per person": "50"}
    with Ledger.open(place, who="ben") as ledger:
        ledger.ask(question, cost=0.1, draw=lambda: {"label": "2013-01-20", "index": 19})
        ledger.ask({**question, "verb": "watch", "Line": "12 kWh"}, cost=0.1, draw=lambda: {"questions": 9, "above": 2})
    monkeypatch.setenv("COLUMNS", str(width))
    lines = dpselect("ledger", "history", place).out.splitlines()
    assert max(map(len, lines)) <= width
    told = " ".join(" ".join(lines).split())
    for word in ("2013-01-20", "2 of 9 above", "(no answer yet)", "ben", "12 kWh"):
        assert word in told
    assert "Cap per person" not in told, "what a curator would say, not every parameter"


def test_the_history_tells_questions_apart_and_shows_costs_as_typed(
    dpselect: Callable[..., object], place: str
) -> None:
    asked = {"verb": "peak", "Candidates": "365, each day from 2013-01-01 to 2013-12-31"}
    hours = {"verb": "peak", "Candidates": "24, each hour of day over 2013-01-01 to 2013-12-31, by the mean over it"}
    best = {"label": "2013-01-20", "index": 19}
    with Ledger.open(place) as ledger:
        ledger.ask(asked, cost=Fraction(3, 100), draw=lambda: best)
        ledger.ask({**asked, "goal": "smallest"}, cost=Fraction(12, 1000), draw=lambda: best)
        named = {**best, "labels": ["2013-01-20", "2013-01-21"], "amounts": [11.2345, 9.0]}
        ledger.ask({**asked, "top": 2, "value_scale": 0.1}, cost=0.1, draw=lambda: named)
        ledger.ask({**hours, "top": 2}, cost=0.07, draw=lambda: best)
        ledger.ask({**asked, "verb": "watch", "Line": "12 kWh", "how_much": True}, cost=0.06, draw=lambda: best)
    table = dpselect("ledger", "history", place).out
    for words in (
        " largest day, from 2013-01-01 to 2013-12-31 ",
        " smallest day, from",
        " 2 largest days, with values, from",
        " 2 largest hours of day, over",
        " days at or above 12 kWh, with values, from",
        " 2013-01-20 (11.23), 2013-01-21 (9) ",
    ):
        assert words in table, table
    costs = [row["cost"] for row in dpselect("ledger", "history", place, "--json").lines[2:]]
    assert costs == [0.03, 0.012, 0.100000000000001, 0.070000000000001, 0.06]  # doubles count for what they are
    assert (" 0.03 " in table, " 0.012 " in table) == (True, True), table
