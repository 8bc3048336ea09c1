"""A person's slips: each ends with exit code 2 and one line that says what to do. Nothing is lost, no value shown."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Stands in every table as a person and as a reading: it must never be repeated.
HIDDEN = "PERSON-7731"
ROWS = ["meter,at,kwh", *(f"home-{home},2013-01-{day:02d},1.5" for home in range(5) for day in range(1, 32))]
COLUMNS = {"--user": "meter", "--time": "at", "--value": "kwh", "--cap": "10", "--population": "20"}
DATES = {"--from": "2013-01-01", "--to": "2013-01-31"}
ASKED = COLUMNS | DATES | {"--epsilon": "2000"}

#: The file's name and bytes, the options that differ (None leaves one out), and what the line must say.
Slip = tuple[str, bytes, dict[str, str | None], str]


def text(*rows: str) -> bytes:
    return ("\n".join(rows) + "\n").encode()


def table(change: Callable[[str], str] = str) -> bytes:
    return text(ROWS[0], *map(change, ROWS[1:]), change(f"{HIDDEN},2013-01-05,1.5"))


PLAIN = table()
SLIPS: dict[str, Slip] = {
    "another column": ("r.csv", PLAIN, {"--value": "watts"}, "no column 'watts'"),
    "a column in capitals": ("r.csv", PLAIN, {"--value": "KWH"}, "'kwh' differs from it only in case"),
    "a column misspelt": ("r.csv", PLAIN, {"--user": "metre"}, "did you mean 'meter'?"),
    "no file": ("other.csv", PLAIN, {}, "no file matches"),
    "an empty file": ("r.csv", b"", {}, "has no header"),
    "no first line": ("r.csv", text(*ROWS[1:], f"{HIDDEN},2013-01-01,1"), {}, "first line of a CSV file must name"),
    "semicolons": (
        "r.csv",
        table(lambda row: row.replace(",", ";")).replace(b"r,a", b"r;a").replace(b"t,k", b"t;k"),
        {},
        "--delimiter",
    ),
    "decimal commas": ("r.csv", table(lambda row: row.replace(",1.5", ',"1,5"')), {}, "or give --decimal ','"),
    "a comma in an option": ("r.csv", PLAIN, {"--cap": "12,5"}, "before its decimals: 12.5; nothing was spent"),
    "a cap for no such period": ("r.csv", PLAIN, {"--cap-every": "year"}, "is not one of hour, day, week, month"),
    "other letters in the first line": (
        "r.csv",
        PLAIN.replace(b"meter", "z\xe4hler".encode("latin-1")),
        {},
        "convert it (iconv -f latin1 -t utf-8)",
    ),
    "a database as a file": ("r.sqlite", PLAIN, {}, "write sqlite:// before"),
    "a share above no line": ("r.csv", PLAIN, {"--expect": "10%"}, "--expect does not go with a peak"),
    "a series nobody declared public": ("r.csv", PLAIN, {"--like": "r.csv"}, "with --public"),
    "a plan that is none": ("r.csv", PLAIN, {"--plan": "r.csv", "--epsilon": None}, "r.csv"),
    "a plan beside its price": ("r.csv", PLAIN, {"--plan": "r.csv"}, "r.csv"),
    "a ledger that is not there": ("r.csv", PLAIN, {"--ledger": "r.ledger"}, "made once, with its total"),
    "days first": (
        "r.csv",
        table(lambda row: row.replace("2013-01-", "01/").replace(",1.5", "/2013,1.5")),
        {},
        "--time-format",
    ),
    "a wrong time format": ("r.csv", PLAIN, {"--time-format": "%d/%m/%Y"}, "--time-format"),
    "a format that is none": ("r.csv", PLAIN, {"--time-format": "DD/MM/YYYY"}, "at least %Y, %m and %d"),
    "the wrong year": ("r.csv", PLAIN, {"--from": "2031-01-01", "--to": "2031-01-31"}, "lies in the calendar"),
    "dates the wrong way round": ("r.csv", PLAIN, {"--from": "2013-02-01"}, "--to must not come before --from"),
    "a date that is none": ("r.csv", PLAIN, {"--from": "2013-02-30"}, "a date such as"),
    "a date written otherwise": ("r.csv", PLAIN, {"--from": "01/01/2013"}, "a date such as"),
    "no dates": ("r.csv", PLAIN, {"--from": None, "--to": None}, "--from and --to must be given"),
    "a zone that is none": ("r.csv", PLAIN, {"--timezone": "London"}, "Europe/London"),
    "times with a zone": ("r.csv", table(lambda row: row.replace(",1.5", " 10:00Z,1.5")), {}, "--timezone"),
    "no cap": ("r.csv", PLAIN, {"--cap": None}, "--cap must be given"),
    "a cap of nothing": ("r.csv", PLAIN, {"--cap": "0"}, "--cap must be positive"),
    "no population": ("r.csv", PLAIN, {"--population": None}, "--population must be given"),
    "a population of nobody": ("r.csv", PLAIN, {"--population": "0"}, "--population must be a whole number from 1"),
    "half a person": ("r.csv", PLAIN, {"--population": "12.5"}, "a whole number"),
    "a budget of nothing": ("r.csv", PLAIN, {"--epsilon": "0"}, "--epsilon must be positive"),
    "a budget below nothing": ("r.csv", PLAIN, {"--epsilon": "-1"}, "--epsilon must be positive"),
    "a budget in words": ("r.csv", PLAIN, {"--epsilon": "little"}, "must be a number"),
    "a budget that buys nothing": ("r.csv", PLAIN, {"--epsilon": "0.0001"}, "nothing was spent (--anyway to insist)"),
    "no budget": ("r.csv", PLAIN, {"--epsilon": None}, "--epsilon must be given: the most"),
    "the other command's option": ("r.csv", PLAIN, {"--budget": "1"}, "give --epsilon"),
    "an option misspelt": (
        "r.csv",
        PLAIN,
        {"--populaton": "9"},
        "No such option: --populaton. Did you mean --population? Nothing was spent",
    ),
    "a mechanism that is none": ("r.csv", PLAIN, {"--mechanism": "gauss"}, "is not one of gaussian"),
    "a measure that is none": ("r.csv", PLAIN, {"--measure": "median"}, "is not one of mean"),
    "more winners than days": ("r.csv", PLAIN, {"--top": "40"}, "--top must be at most"),
    "a row cut short": ("r.csv", PLAIN + f"{HIDDEN},2013-01-01\n".encode(), {}, "line 158 of 'r.csv'"),
    "an open quote": ("r.csv", PLAIN + f'"{HIDDEN},2013-01-01,1\n'.encode(), {}, "open quote"),
    "other letters": ("r.csv", PLAIN + f"{HIDDEN}\xe9,2013-01-01,1\n".encode("latin-1"), {}, "UTF-8"),
    "a broken gzip": ("r.csv.gz", gzip.compress(PLAIN)[:200], {}, "gzip"),
    "a zip that is none": ("r.zip", PLAIN, {}, "no zip file"),
    "a workbook that is none": ("r.xlsx", PLAIN, {}, "r.xlsx"),
    "an unknown ending": ("r.ods", PLAIN, {}, "must end in .csv"),
    "a Parquet file that is none": ("r.parquet", PLAIN, {}, "r.parquet"),
    "a table of a file": ("r.csv", PLAIN, {"--table": "readings"}, "--table must be left out"),
    "a page over the readings": ("r.csv", PLAIN, {"--report": "r.csv"}, "must end in .html"),
    "a page into no folder": ("r.csv", PLAIN, {"--report": "no/such/page.html"}, "no such folder"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_one_line_that_helps(
    dpselect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file, content, changes, said = SLIPS[name]
    monkeypatch.chdir(tmp_path)
    place = tmp_path / ("r.csv" if name == "no file" else file)
    place.write_bytes(content)
    options = {option: value for option, value in (ASKED | changes).items() if value is not None}
    ran = dpselect("peak", tmp_path / file, *(word for pair in options.items() for word in pair))
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert ran.err.count("\n") == 1, ran.err
    assert said in ran.err, ran.err
    assert HIDDEN not in ran.err
    assert "Traceback" not in ran.err
    assert place.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir()] == [place.name]  # nothing half-written is left
    if not any(word in ran.err for word in ("--help", "spent")):
        pytest.fail(f"it does not say what it cost: {ran.err}")


def test_there_are_forty_of_them_and_without_a_slip_the_question_is_answered(
    dpselect: Callable[..., Any], tmp_path: Path
) -> None:
    assert len(SLIPS) >= 40
    (tmp_path / "r.csv").write_bytes(PLAIN)
    ran = dpselect("peak", tmp_path / "r.csv", *(word for pair in ASKED.items() for word in pair))
    assert ran.code == 0, ran.err


def test_the_watcher_is_told_what_its_budget_is_called(dpselect: Callable[..., Any]) -> None:
    ran = dpselect("watch", "r.csv", "--threshold", 5, "--epsilon", 1)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "give --budget" in ran.err


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("dataset.Dataset.plan_peak", "nothing was spent"),
        ("rows.check", "nothing was spent"),  # the question is asked, and not yet charged
        ("peak._draw", "count ε = 2000 as spent"),
    ],
)
def test_an_interruption_says_what_it_cost(
    dpselect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    (tmp_path / "r.csv").write_bytes(PLAIN)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"dpselect.dataset.{place}", interrupt)
    ran = dpselect("peak", tmp_path / "r.csv", *(word for pair in ASKED.items() for word in pair))
    assert (ran.code, ran.err) == (130, f"error: interrupted; {said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("peak", "--epsilon", 1), "no table was named; give a file, or a data-set file such as homes.toml"),
        (("describe",), "no table was named"),
        (("peek",), 'Did you mean "peak"? (see'),
        (("peak", "homes.toml", "r.csv", "--epsilon", 1), "a data-set file is named alone"),
        (("describe", "sqlite:///r.sqlite", "--table", "x"), "it is written sqlite://r.sqlite in this folder"),
    ],
)
def test_a_slip_in_what_is_named(
    dpselect: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[Any, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.sqlite").write_bytes(b"")
    ran = dpselect(*words)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert said in ran.err


def test_another_ledger_than_the_file_names_is_told_of_and_not_made(
    dpselect: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_bytes(PLAIN)
    described = ("--cap", 10, "--population", 20, "--accept", "--write", tmp_path / "r.toml", "--total", 4000)
    assert dpselect("describe", tmp_path / "r.csv", *described).code == 0
    asked = ("peak", tmp_path / "r.toml", "--epsilon", 2000, "--from", "2013-01-01", "--to", "2013-01-31")
    ran = dpselect(*asked, "--ledger", tmp_path / "other.ledger")
    assert ran.code == 2
    assert "another one is charged: what both allow adds up" in ran.err
    assert ran.err.endswith("nothing was spent\n")
    assert not (tmp_path / "other.ledger").exists()


def test_help_is_a_word_too(dpselect: Callable[..., Any]) -> None:
    assert dpselect("help").out == dpselect("--help").out
    assert dpselect("help", "peak").out == dpselect("peak", "--help").out
