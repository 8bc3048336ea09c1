"""What makes two questions the same to a ledger, and what a budget in memory is worth to a forked child."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import dpselect as dp
from dpselect.cli.stream import read_line
from dpselect.dataset import WatchRequest
from dpselect.dataset.facts import Facts
from dpselect.dataset.file import write_file
from dpselect.dataset.watch import plan_watch
from dpselect.dataset.whole import WholeVector
from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter, StateRefused
from dpselect.ledger import Ledger, Total
from dpselect.ledger.wording import key_of, written
from dpselect.noise.entropy import SYSTEM_ENTROPY

DAYS = [f"2013-01-{day:02d}" for day in range(1, 32)]
YEAR = {"start": DAYS[0], "end": DAYS[-1]}
HOMES = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 20}


def rows() -> pyarrow.Table:
    """Twenty meters in seven homes; they draw most on the 9th and give most on the 21st."""
    return pyarrow.table(
        {
            "meter": [f"m{meter}" for meter in range(20) for _ in DAYS],
            "home": [f"h{meter // 3}" for meter in range(20) for _ in DAYS],
            "at": DAYS * 20,
            "stamp": DAYS * 20,
            "kwh": [9.0 if day == 8 else 1.0 for _ in range(20) for day in range(31)],
            "given": [9.0 if day == 20 else 1.0 for _ in range(20) for day in range(31)],
        }
    )


def questions(**facts: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    homes = dp.Dataset(rows(), **{**HOMES, **facts})
    days = homes.candidates(start=DAYS[0], end=DAYS[-1])
    peak = homes.plan(epsilon=1000, start=DAYS[0], end=DAYS[-1])
    return peak.question(), homes.plan_watch(days, threshold=5, budget=500, noise=(0.1, 0.1)).question()


OTHERWISE = [
    {"user": "home"},
    {"time": "stamp"},
    {"value": "given"},
    {"per_user": "max"},
    {"duplicates": "largest"},
    {"measure": "sum"},
    {"adjacency": "replace"},
    {"time_format": "%Y-%m-%d"},
    {"timezone": "Europe/London"},
    {"decimal": ","},
    {"hour": "at"},
    {"cap": 11},
    {"population": 21},
    {"grid": 1000},
]


@pytest.mark.parametrize("facts", OTHERWISE, ids=[next(iter(facts)) for facts in OTHERWISE])
def test_other_facts_are_another_question(facts: dict[str, Any]) -> None:
    for asked, before in zip(questions(**facts), questions(), strict=True):
        assert asked["reading"] != before["reading"]


def test_every_fact_counts_but_those_that_change_no_answer() -> None:
    from dpselect.dataset.facts import AMOUNTS, READING

    shown = {"source", "backend", "unit", "start", "end", "every", "cap_every", "categories"}
    assert {*READING, *AMOUNTS} | shown == set(Facts.__dataclass_fields__) - {"_"}


def test_the_same_facts_written_otherwise_are_the_same_question() -> None:
    assert questions(cap=Fraction(10)) == questions(cap=10.0) == questions(unit=None)
    assert questions() == questions(per_user="sum") == questions(grid=1_000_000) == questions(delimiter=",")


def watched(start: Any = DAYS[0], end: Any = DAYS[-1], every: Any = None, **line: Any) -> str:
    homes = dp.Dataset(rows(), **(HOMES | {"population": 5000}))
    asked = {"threshold": Fraction(1, 2), "budget": 1} | line
    question = homes.plan_watch(homes.candidates(start=start, end=end, every=every), **asked).question()
    return key_of(written("question", question), None)


@pytest.mark.parametrize("mechanism", ["exponential", "set"])
def test_the_same_watch_typed_otherwise_is_the_same_question(mechanism: str) -> None:
    asked = watched(mechanism=mechanism)
    assert watched(threshold=0.5, budget=Fraction(1), mechanism=mechanism) == asked
    for knowledge in ({"expect": 0.1}, {"expect": Fraction(1, 10)}, {"expect": 3}, {"between": (0, 2)}):
        found = watched(**knowledge, mechanism=mechanism)
        assert found == asked, "what is known beforehand is no part of the question"
    for start, end in (("20130101", "2013-01-31"), (date(2013, 1, 1), date(2013, 1, 31)), ("2013-01", "2013-01")):
        assert watched(start, end, "day", mechanism=mechanism) == asked
    planned = dp.Dataset(rows(), **(HOMES | {"population": 5000})).plan(
        threshold=0.5, budget=1, start=DAYS[0], end=DAYS[-1], mechanism=mechanism
    )
    assert watched(threshold=None, budget=None, plan=planned.settings) == asked


def test_all_at_once_and_one_by_one_are_two_questions() -> None:
    """Each is charged in its own way: neither is ever taken for the other, whichever the planner chooses."""
    at_once, one_by_one = watched(mechanism="set"), watched(mechanism="exponential")
    assert at_once != one_by_one
    assert watched() in (at_once, one_by_one)


@pytest.mark.parametrize(
    "line",
    [
        {"threshold": 0.5000001},
        {"budget": 1.0000001},
        {"mechanism": "laplace"},
        {"how_much": True},
        {"clip": (0.5, 0.5)},
        {"clip": (0.5, 0.4)},
        {"clip": (0.5, 0.5), "resample": False},
        {"noise": (0.1, 0.1)},
        {"noise": (0.1, 0.2)},
    ],
    ids=str,
)
def test_another_watch_is_another_question(line: dict[str, Any]) -> None:
    assert watched(**line) != watched()
    assert watched(**line) == watched(**line)


def test_noise_by_hand_tells_questions_apart() -> None:
    by_hand = [{"clip": (0.5, 0.5)}, {"clip": (0.5, 0.4)}, {"noise": (0.1, 0.1)}, {"noise": (0.1, 0.2)}]
    assert len({watched(**line) for line in by_hand}) == len(by_hand)


def test_a_ledger_does_not_take_one_column_for_another(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(5000.0))
    asked = {"threshold": 5, "budget": 1000, "start": DAYS[0], "end": DAYS[-1], "anyway": True}
    drawn = dp.Dataset(rows(), **HOMES, ledger=book)
    given = dp.Dataset(rows(), **{**HOMES, "value": "given"}, ledger=book)
    assert [watch.name(place) for watch in (drawn.watch(**asked),) for place in watch.above] == ["2013-01-09"]
    assert [watch.name(place) for watch in (given.watch(**asked),) for place in watch.above] == ["2013-01-21"]


def test_a_watch_that_the_ledger_cannot_pay_for_is_not_begun(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(500.0))
    homes = dp.Dataset(rows(), **HOMES, ledger=book)
    asked = {"threshold": 5, "start": DAYS[0], "end": DAYS[-1], "anyway": True}
    with pytest.raises(BudgetExhausted, match=r"500 of 500 is left in the ledger; .*budget 500 would fit"):
        homes.watch(budget=600, **asked)
    assert book.balance().spent == 0.0
    first = homes.watch(budget=500, **asked)
    # Asked again it costs nothing, so what is left does not matter.
    assert homes.watch(budget=500, **asked).above == first.above


def test_answers_that_are_seen_one_by_one_are_not_drawn_again_under_one_charge(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.zcdp(5000.0, delta=1e-6))
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    plan = plan_watch(family, WatchRequest(threshold=0.5, budget=50, noise=(0.5, 0.5)), questions=9)
    plan.start(book=book).ask(0.1)
    with pytest.raises(InvalidParameter, match="interrupted"):
        plan.start(book=book)
    # Of a data set nobody sees an answer before the ledger has all of them, so there is no other way to ask.
    homes = dp.Dataset(rows(), **HOMES, ledger=book)
    about_homes = homes.plan_watch(homes.candidates(**YEAR), threshold=5, budget=50, noise=(5, 5))
    spent = book.balance().spent
    with pytest.raises(StateRefused, match="as a whole"):
        about_homes.start(book=book)
    assert book.balance().spent == spent


def test_no_seeded_answer_gets_into_a_ledger(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(5.0))
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    plan = plan_watch(family, WatchRequest(threshold=0.5, budget=1, noise=(0.5, 0.5)), questions=9)
    with pytest.raises(InvalidParameter, match="seeded"):
        plan.start(dp.SeededEntropy(1), book=book)
    with pytest.raises(InvalidParameter, match="seeded"):
        dp.Dataset(rows(), **HOMES, ledger=book, entropy=dp.SeededEntropy(1))
    assert book.balance().spent == 0.0
    assert dp.Dataset(rows(), **HOMES, ledger=book, entropy=SYSTEM_ENTROPY).ledger is book


def test_a_changed_copy_of_a_data_set_goes_on_with_what_is_left() -> None:
    homes = dp.Dataset(rows(), **HOMES, total=1000)
    homes.peak(epsilon=900, **YEAR)
    with pytest.raises(BudgetExhausted):
        replace(homes, unit="kWh").peak(epsilon=900, **YEAR)
    with pytest.raises(InvalidParameter, match="once"):
        replace(homes, total=2000)


@pytest.mark.parametrize("total", ["2.5", "0.3", "1/2"])
def test_a_total_need_not_be_whole(tmp_path: Path, total: str) -> None:
    pyarrow_rows = rows()
    (tmp_path / "readings.csv").write_text(
        "meter,at,kwh\n"
        + "".join(
            f"{meter},{at},{kwh}\n"
            for meter, at, kwh in zip(*(pyarrow_rows[name].to_pylist() for name in ("meter", "at", "kwh")), strict=True)
        )
    )
    Ledger.create(tmp_path / "homes.ledger", dataset="homes", total=Total.pure(Fraction(str(total)))).close()
    facts = {"source": tmp_path / "readings.csv", **HOMES, "start": DAYS[0], "end": DAYS[-1]}
    place = write_file(tmp_path / "homes.toml", {**facts, "ledger": tmp_path / "homes.ledger", "total": total})
    homes = dp.Dataset.open(place)
    assert homes.peak(epsilon=0.1, anyway=True).entry is not None
    homes.book.close()  # type: ignore[union-attr]


def test_a_forked_child_has_no_share_in_the_budget() -> None:
    homes = dp.Dataset(rows(), **HOMES, total=1000.0)
    child = os.fork()
    if child == 0:
        try:
            homes.peak(epsilon=1000, start=DAYS[0], end=DAYS[-1])
        except StateRefused as refusal:  # by the budget itself, before an engine is touched
            os._exit(7 if "keep a ledger" in str(refusal) else 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert homes.peak(epsilon=1000, start=DAYS[0], end=DAYS[-1]).label == "2013-01-09"


def test_a_fraction_with_an_exponent_is_refused_like_any_other_line() -> None:
    with pytest.raises(InvalidData, match="a line must be a number"):
        read_line("1/3e5")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_is_paid_for_as_a_whole_is_answered_once_by_one_process() -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    release = dp.GaussianRelease.calibrated(family, candidates=4, epsilon=1.0, delta=1e-6)
    vector = WholeVector(release, threshold=0.5, count=4, entropy=SYSTEM_ENTROPY)
    vector.ask(0.1)
    with pytest.raises(StateRefused, match="not copied"):
        copy.copy(vector)
    child = os.fork()
    if child == 0:
        try:
            vector.ask(0.1)
        except StateRefused as refusal:
            os._exit(7 if "a forked child must start its own" in str(refusal) else 8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert vector.can_ask
    for _ in range(3):
        assert vector.ask(0.1) is not None
    assert not vector.can_ask
    with pytest.raises(BudgetExhausted, match="all 4 questions that were paid for"):
        vector.ask(0.1)
