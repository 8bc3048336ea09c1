"""Processes killed at any point, and many at once: what got out is charged, and never more than the total."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpselect.ledger import Ledger, Total
from dpselect.ledger.amounts import PER_EPSILON

WORKERS = Path(__file__).with_name("workers.py")
COST = 0.01


def run(deed: str, place: str, log: Path, processes: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(WORKERS), deed, place, str(log), str(processes)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def got_out(lines: list[dict[str, Any]]) -> Fraction:
    """The exact loss of all answers that got out; the same answer to the same question counts once."""
    shown = {(line["question"], line["answer"]): line["cost"] for line in lines if "answer" in line}
    return sum((Fraction(cost) for cost in shown.values()), Fraction(0))


def check(place: str, lines: list[dict[str, Any]], total: Total) -> Counter[str]:
    with Ledger.open(place) as ledger:
        found, charged = ledger.verify(), ledger.balance().charged
        entries = {entry.number: entry for entry in ledger.entries()}
    assert found.holds, found.problems
    assert got_out(lines) <= Fraction(charged.epsilon, PER_EPSILON) <= Fraction(total.amounts.epsilon, PER_EPSILON)
    for line in lines:
        if "settled" in line:
            assert entries[line["settled"]].digest == line["digest"], "a settled entry was lost"
    answers = {line["question"]: line["answer"] for line in lines if "answer" in line}
    for line in lines:
        assert "answer" not in line or answers[line["question"]] == line["answer"], "a question had two answers"
    return Counter(entry.kind for entry in entries.values())


def test_the_protocol_holds_when_processes_are_killed(place: str, tmp_path: Path) -> None:
    hold_when_killed(place, tmp_path, processes=24)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_protocol_holds_when_hundreds_of_processes_are_killed(place: str, tmp_path: Path) -> None:
    hold_when_killed(place, tmp_path, processes=600)


def hold_when_killed(place: str, tmp_path: Path, *, processes: int) -> None:
    total = Total.pure(0.1 * processes)
    Ledger.create(place, dataset="homes", total=total).close()
    kinds = check(place, run("kill", place, tmp_path / "log", processes), total)
    # Otherwise nothing was killed between a reservation and its end, and nothing got that far.
    assert kinds["reserve"] - kinds["settle"] > processes / 12
    assert kinds["settle"] > processes / 4


def test_showing_an_answer_before_it_is_charged_is_caught(tmp_path: Path) -> None:
    """The negative control: the same workers, which let answers out first."""
    place, total = str(tmp_path / "homes.ledger"), Total.pure(0.05)
    Ledger.create(place, dataset="homes", total=total).close()
    with pytest.raises(AssertionError):
        check(place, run("show-first", place, tmp_path / "log", 10), total)


def test_thirty_two_processes_share_a_small_budget(tmp_path: Path) -> None:
    share(str(tmp_path / "homes.ledger"), tmp_path, Total.pure(0.64))


@pytest.mark.slow
def test_thirty_two_processes_share_one_budget(place: str, tmp_path: Path) -> None:
    share(place, tmp_path, Total.pure(2.0))


def share(place: str, tmp_path: Path, total: Total) -> None:
    Ledger.create(place, dataset="homes", total=total).close()
    lines = run("race", place, tmp_path / "log", 32)
    kinds = check(place, lines, total)
    assert kinds["reserve"] == kinds["settle"] == len(lines)
    with Ledger.open(place) as ledger:
        assert ledger.balance().remaining < COST + 1e-15, "no more than one reservation's worth is left"


def test_of_many_at_one_open_question_one_outcome_is_seen(place: str, tmp_path: Path) -> None:
    one_outcome_each(place, tmp_path, "same", processes=8)


@pytest.mark.slow
def test_of_very_many_at_one_open_question_one_outcome_is_seen(place: str, tmp_path: Path) -> None:
    one_outcome_each(place, tmp_path, "same", processes=32)


def test_showing_a_second_failure_under_one_charge_is_caught(tmp_path: Path) -> None:
    """The negative control: the same workers, who show what went wrong also where somebody else has answered."""
    with pytest.raises(AssertionError, match="more than one outcome"):
        one_outcome_each(str(tmp_path / "homes.ledger"), tmp_path, "same-careless", processes=8)


def one_outcome_each(place: str, tmp_path: Path, deed: str, *, processes: int) -> None:
    """One answer, or one failure, gets out of each reservation; the others see the same answer, or are refused."""
    Ledger.create(place, dataset="homes", total=Total.pure(10.0)).close()
    lines = run(deed, place, tmp_path / "log", processes)
    assert len(lines) == 20 * processes
    for number in range(20):
        seen = {line["seen"] for line in lines if line["question"] == number and "seen" in line}
        assert len(seen) == 1, f"more than one outcome: {seen}"
    assert all("was lost" in line["refused"] for line in lines if "refused" in line)
    assert any("failure" in line.get("seen", "") for line in lines), "otherwise no draw failed first"
    with Ledger.open(place) as ledger:
        price = ledger.total.price(COST).epsilon
        assert ledger.balance().charged.epsilon == 20 * price, "each was paid once"
        assert ledger.verify().holds
