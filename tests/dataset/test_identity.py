"""A question is the same question to a ledger by its facts alone: frozen, however it is worded to people."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.dataset.asked import homes, plans

import dpselect as dp
from dpselect.dataset import scope, watch
from dpselect.ledger import Ledger, Total

#: How every kind of question is kept, and how it was kept before version 2. Regenerate neither: ledgers hold them.
FROZEN = json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))
PLANS = plans()


def plain(question: Any) -> Any:
    return json.loads(json.dumps(question))


def test_every_kind_of_question_is_in_the_list() -> None:
    assert set(FROZEN["2"]) == set(FROZEN["1"]) == set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_a_question_is_kept_as_it_was(name: str) -> None:
    assert plain(PLANS[name].question()) == FROZEN["2"][name]


@pytest.mark.parametrize("name", PLANS)
def test_a_question_of_version_1_is_found_as_it_was_written(name: str) -> None:
    plan = PLANS[name]
    found, kept = plain(plan.question_1()), FROZEN["1"][name]
    if "sigma" in kept:  # calibrated by a bound whose last digits have changed since: looked up but for those
        assert found["sigma"] == pytest.approx(kept["sigma"], rel=1e-9)
        found["sigma"] = kept["sigma"]
    assert found == kept


def test_no_two_of_them_are_the_same_but_for_their_unit() -> None:
    texts = {name: json.dumps(question, sort_keys=True) for name, question in FROZEN["2"].items()}
    assert texts.pop("peak, unit") == texts["peak"]
    assert len(set(texts.values())) == len(texts)


def test_facts_hold_no_sentence() -> None:
    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [text for one in value.values() for text in texts(one)]
        return [value] if isinstance(value, str) else []

    for question in FROZEN["2"].values():
        assert not any(re.search("[a-z] [a-z]", text) for text in texts(question)), question


def test_other_words_do_not_make_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [plain(plan.question()) for plan in plans().values()]
    monkeypatch.setattr(scope.Scope, "parameters", lambda self: (("Reworded", "altogether"),))
    monkeypatch.setattr(scope.Scope, "measured", "something else")
    monkeypatch.setattr(scope.Scope, "cap_in_words", "a cap")
    monkeypatch.setattr(watch.WatchPlan, "line", "a line")
    assert [plain(plan.question()) for plan in plans().values()] == before


def test_an_answer_of_version_1_is_free_and_a_new_one_is_kept_as_facts(tmp_path: Path) -> None:
    rows = tmp_path / "readings.csv"
    rows.write_text("meter,at,kwh\n" + "".join(f"m{home},2013-01-0{1 + home % 2},9\n" for home in range(20)))
    ledger = Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1000))
    facts = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 20}
    data = dp.Dataset(rows, **facts, ledger=ledger, start="2013-01-01", end="2013-01-05")
    plan = data.plan(epsilon=100)
    old = ledger.ask(plan.question_1(), cost=100, draw=lambda: {"label": "2013-01-04", "index": 3, "epsilon": 100.0,
                                                           "delta": 0.0, "noise": "private"})  # fmt: skip
    found = data.peak(epsilon=100)
    assert (found.label, found.entry, found.repeated) == ("2013-01-04", old.number, True)
    assert ledger.balance().spent == 100
    # Only the same question is free.
    assert not data.peak(epsilon=200).repeated
    assert ledger.balance().spent == pytest.approx(300, rel=1e-9)
    again = data.peak(epsilon=200)
    assert again.repeated
    kept = next(one for one in ledger.entries() if one.number == again.entry)
    assert kept.content["version"] == 2
    ledger.close()


def test_gaussian_noise_of_version_1_is_found_but_for_its_last_digits(tmp_path: Path) -> None:
    rows = tmp_path / "readings.csv"
    rows.write_text("meter,at,kwh\n" + "".join(f"m{home},2013-01-0{1 + home % 2},9\n" for home in range(20)))
    with Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1000)) as ledger:
        facts = {"user": "meter", "time": "at", "value": "kwh", "cap": 10, "population": 20}
        data = dp.Dataset(rows, **facts, ledger=ledger, start="2013-01-01", end="2013-01-05")
        old = data.plan(epsilon=100, mechanism="gaussian").question_1()
        old["sigma"] *= 1 + 1e-12
        answer = {"label": "2013-01-04", "index": 3, "epsilon": 100.0, "delta": 0.0, "noise": "private"}
        entry = ledger.ask(old, cost=100, draw=lambda: answer).number
        found = data.peak(epsilon=100, mechanism="gaussian")
        assert (found.label, found.entry, found.repeated) == ("2013-01-04", entry, True)
        assert not data.peak(epsilon=101, mechanism="gaussian").repeated


def test_a_question_under_other_facts_is_another_one() -> None:
    first = homes().plan(epsilon=0.1, start="2013-01-01", end="2013-01-31").question()
    for change in ({"cap": 51}, {"population": 5567}, {"value": "gas"}, {"adjacency": "replace"}, {"per_user": "max"}):
        other = homes(**change).plan(epsilon=0.1, start="2013-01-01", end="2013-01-31").question()
        assert other != first, change
