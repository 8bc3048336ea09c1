"""SIGKILL between every two statements, one after the other: whatever was let out is charged, and asked again once."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpselect import QueryFamily
from dpselect.dataset import WatchRequest
from dpselect.dataset.watch import plan_watch
from dpselect.ledger import Ledger, Total

_where = Path(__file__).with_name("test_many_processes.py")
_spec = importlib.util.spec_from_file_location("ledger_processes", _where)
assert _spec is not None
assert _spec.loader is not None
processes: Any = importlib.util.module_from_spec(_spec)
sys.modules["ledger_processes"] = processes
_spec.loader.exec_module(processes)

COST, TOTAL = processes.COST, Total.pure(100.0)
POSTGRESQL_IS_SLOW = True


@pytest.fixture
def made(place: str) -> Iterator[Ledger]:
    with Ledger.create(place, dataset="homes", total=TOTAL) as ledger:
        yield ledger


def killed(deed: str, place: str, log: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many steps there were, and what got out."""
    lines = processes.run(deed, place, log, 0)
    return next(line["steps"] for line in lines if "steps" in line), [line for line in lines if "answer" in line]


def test_a_question_is_charged_once_wherever_its_process_died(made: Ledger, place: str, tmp_path: Path) -> None:
    steps, shown = killed("ask", place, tmp_path / "log")
    processes.check(place, shown, TOTAL)
    ends = {entry.reservation: entry for entry in made.entries() if entry.kind == "settle"}
    found = Counter(
        "settled" if entry.number in ends else "reserved" for entry in made.entries() if entry.kind == "reserve"
    )
    assert steps > 8
    assert len(shown) == 1, "only the one that came through"
    assert steps + 1 - found.total() > 2, "some died before the charge"
    assert found["reserved"] > 2, "some between the charge and the answer"
    assert found["settled"] > 1, "some after the answer was in the ledger"
    answers = [made.ask({"step": step, "question": 0}, cost=COST, draw=lambda: "y").answer for step in range(steps + 1)]
    assert answers.count("x") == found["settled"], "an answer that the ledger has is not drawn again"
    assert made.balance().charged == made.total.price(COST) + _times(made, steps)
    assert made.verify().holds


def _times(ledger: Ledger, count: int) -> Any:
    found = ledger.total.price(COST)
    for _ in range(count - 1):
        found += ledger.total.price(COST)
    return found


@pytest.mark.slow
def test_a_watch_repeats_what_it_showed_and_is_charged_for_it(made: Ledger, place: str, tmp_path: Path) -> None:
    steps, shown = killed("watch", place, tmp_path / "log")
    processes.check(place, shown, TOTAL)
    assert len(shown) > 20
    out = {line["question"]: line["answer"] for line in shown}
    line = WatchRequest(threshold=0.5, budget=COST * 10, noise=(0.05, 0.08))
    plan = plan_watch(QueryFamily(lower=0, upper=1, sensitivity=1e-4), line, questions=40)
    for step in range(steps + 1):
        watch = plan.start(book=made, key=str(step))
        assert watch.kept is not None
        known = [number for number in range(3) if f"{step} {number}" in out]
        assert watch.kept.repeated >= len(known), "an answer is in the ledger before it is shown"
        for number in known:
            assert watch.ask(0.5) == out[f"{step} {number}"]
        watch.settle(ended=False)
    assert made.balance().spent <= (steps + 1) * COST * 10 * 1.0001
    assert made.verify().holds
