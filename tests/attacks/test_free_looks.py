"""What costs nothing looks at no row: dry runs, plans, and refusals before the charge are the same for neighbours."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas
import pytest
from tests.tables.test_routes import write_sheets

import dpselect as dp
from dpselect.cli import main
from dpselect.errors import DPSelectError

#: Everybody's rows, and those of one more person, who has a reading nobody else has.
HOMES = [{"meter": f"h{home}", "at": f"2013-01-{day:02d}", "kwh": "5"} for home in range(20) for day in range(1, 11)]
ONE_MORE = [{"meter": "last", "at": "2013-01-03", "kwh": "1", "insulin": "7"}]
FACTS = ["--user", "meter", "--time", "at", "--value", "insulin", "--cap", "10", "--population", "50"]
FACTS += ["--from", "2013-01-01", "--to", "2013-01-10"]
QUESTIONS = {"peak": ["--epsilon", "900"], "watch": ["--threshold", "3", "--budget", "900"]}


def text_of(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv_of(rows: list[dict[str, str]]) -> str:
    names = ["meter", "at", "kwh", "insulin"]
    return "\n".join([",".join(names), *(",".join(row.get(name, "") for name in names) for row in rows)]) + "\n"


def json_lines(folder: Path, rows: list[dict[str, str]]) -> str:
    (folder / "rows.jsonl").write_text(text_of(rows))
    return "rows.jsonl"


def json_gzipped(folder: Path, rows: list[dict[str, str]]) -> str:
    with gzip.open(folder / "rows.jsonl.gz", "wt") as file:
        file.write(text_of(rows))
    return "rows.jsonl.gz"


def zipped(folder: Path, rows: list[dict[str, str]]) -> str:
    with zipfile.ZipFile(folder / "rows.zip", "w") as archive:
        archive.writestr("rows.csv", csv_of(rows))
    return "rows.zip"


def excel(folder: Path, rows: list[dict[str, str]]) -> str:
    write_sheets(folder / "rows.xlsx", {"rows": [tuple(line.split(",")) for line in csv_of(rows).splitlines()]})
    return "rows.xlsx"


def plain_csv(folder: Path, rows: list[dict[str, str]]) -> str:
    (folder / "rows.csv").write_text(csv_of(rows))
    return "rows.csv"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """The command line, run for real in a folder."""

    def run(folder: Path, *arguments: str, stdin: str = "") -> Ran:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return run


def neighbours(tmp_path: Path) -> list[tuple[Path, list[dict[str, str]]]]:
    pairs = []
    for name, rows in (("without", HOMES), ("with", HOMES + ONE_MORE)):
        (tmp_path / name).mkdir()
        pairs.append((tmp_path / name, rows))
    return pairs


@pytest.mark.parametrize("verb", QUESTIONS)
@pytest.mark.parametrize("kind", [json_lines, json_gzipped, zipped, excel, plain_csv])
def test_a_dry_run_is_the_same_with_one_more_person(
    ran: Callable[..., Ran], tmp_path: Path, kind: Callable[[Path, list[dict[str, str]]], str], verb: str
) -> None:
    seen = [
        ran(folder, verb, kind(folder, rows), *FACTS, *QUESTIONS[verb], "--dry-run")
        for folder, rows in neighbours(tmp_path)
    ]
    assert seen[0] == seen[1]
    assert seen[0].code == 0, seen[0].err


def test_a_dry_run_over_standard_input_is_the_same(ran: Callable[..., Ran], tmp_path: Path) -> None:
    seen = [
        ran(folder, "peak", "-", *FACTS, "--epsilon", "900", "--dry-run", stdin=text_of(rows))
        for folder, rows in neighbours(tmp_path)
    ]
    assert seen[0] == seen[1]
    assert seen[0].code == 0, seen[0].err


@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_question_that_does_not_fit_is_refused_alike(ran: Callable[..., Ran], tmp_path: Path, verb: str) -> None:
    """The rows of one are whole, the other's end in the middle of a gzip: who cannot pay learns nothing of it."""
    seen = []
    for folder, rows in neighbours(tmp_path):
        place = json_gzipped(folder, rows)
        if len(rows) > len(HOMES):
            whole = (folder / place).read_bytes()
            (folder / place).write_bytes(whole[: len(whole) // 2])
        assert ran(folder, "ledger", "create", "homes.ledger", "--dataset", "homes", "--total", "1").code == 0
        seen.append(ran(folder, verb, place, *FACTS, *QUESTIONS[verb], "--ledger", "homes.ledger"))
    assert seen[0] == seen[1]
    assert seen[0].code == 3


def test_a_frame_is_read_after_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpselect.dataset.budget import Budget
    from dpselect.tables import frames

    order: list[str] = []
    load, charge = frames.text_of, Budget.charge
    monkeypatch.setattr(frames, "text_of", lambda value: order.append("row") or load(value))  # type: ignore[func-returns-value]

    def noted(self: Budget, cost: Any, *, parameter: str) -> None:
        order.append("charge")
        charge(self, cost, parameter=parameter)

    monkeypatch.setattr(Budget, "charge", noted)
    frame = pandas.DataFrame(HOMES).astype(object)
    homes = dp.Dataset(frame, user="meter", time="at", value="kwh", cap=10, population=50, total=2000)
    homes.plan(epsilon=900, start="2013-01-01", end="2013-01-10")
    assert order == []
    homes.peak(epsilon=900, anyway=True, start="2013-01-01", end="2013-01-10")
    assert order[0] == "charge"
    assert order.count("row") > 0


@pytest.mark.parametrize("odd", [b"bytes", 2**70, object(), 1.5, None, ["nested"]])
def test_an_odd_object_in_a_frame_changes_no_refusal(odd: object) -> None:
    def asked(rows: list[dict[str, Any]]) -> str:
        frame = pandas.DataFrame(rows).astype(object)
        homes = dp.Dataset(frame, user="meter", time="at", value="kwh", cap=10, population=50, total=1)
        try:
            homes.peak(epsilon=900, start="2013-01-01", end="2013-01-10")
        except DPSelectError as failure:
            return str(failure)
        return ""

    assert asked(HOMES) == asked([*HOMES, {"meter": odd, "at": odd, "kwh": odd}]) != ""
