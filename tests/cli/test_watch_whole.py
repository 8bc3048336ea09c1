"""A table's days above a line are named at once where that does best: one charge, one draw, found again for nothing."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpselect as dp
from dpselect.dataset import Dataset, WatchRequest, how_much
from dpselect.dataset.watch import plan_watch
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.ledger import Ledger, Total
from dpselect.ledger.history import history
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Plan

DAYS = 300
_LOAD = 40 + 25 * np.sin(np.arange(DAYS) / 23) + np.random.default_rng(5).normal(0, 4, DAYS)
WITHIN: dict[str, Any] = {
    "start": "2013-01-01",
    "end": str(datetime.date(2013, 1, 1) + datetime.timedelta(DAYS - 1)),
    "threshold": 62,
}


@pytest.fixture
def series(tmp_path: Path) -> Path:
    days = (datetime.date(2013, 1, 1) + datetime.timedelta(day) for day in range(DAYS))
    path = tmp_path / "load.csv"
    path.write_text("day,load\n" + "\n".join(f"{day},{load:.4f}" for day, load in zip(days, _LOAD, strict=True)) + "\n")
    return path


def opened(series: Path, **more: Any) -> Dataset:
    return dp.Dataset(series, time="day", value="load", maximum=100, population=5000, **more)


def f1(named: list[int]) -> float:
    truth = set(np.flatnonzero(_LOAD >= 62).tolist())
    return 2 * len(truth & set(named)) / (len(truth) + len(named))


def test_the_default_names_all_at_once_and_nearly_all_right(series: Path) -> None:
    plan = opened(series, entropy=SeededEntropy(1)).plan(**WITHIN, budget=1)
    assert plan.settings.name == "set-above-threshold"
    assert "named together, at one price" in plan.reason
    found = plan.ask()
    assert found.answered == DAYS
    assert f1(found.above) > 0.9
    assert found.cost == pytest.approx(1.0, abs=1e-6)
    assert found.cost <= 1.0
    assert plan.expected is not None
    assert plan.expected.worst <= f1(found.above)
    text = str(found)
    assert "likelier the nearer its worst mistake" in text
    assert found.to_dict()["mechanism"] == "set-above-threshold"
    sparse = opened(series, entropy=SeededEntropy(1)).plan(**WITHIN, budget=1, mechanism="exponential").ask()
    assert f1(found.above) > f1(sparse.above)


@pytest.mark.parametrize(
    "total",
    [Total.pure(1), Total.approximate(1.0, delta=Fraction(1, 10**6)), Total.zcdp(1, delta=Fraction(1, 10**6))],
    ids=lambda total: total.kind,
)
def test_one_charge_one_draw_and_found_again(series: Path, tmp_path: Path, total: Total) -> None:
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=total)
    plan = opened(series, ledger=book).plan(**WITHIN, budget=Fraction(7, 10))
    found = plan.ask()
    charged = book.balance().charged
    assert charged == total.price(dp.Loss(epsilon=plan.settings.epsilon))
    again = opened(series, ledger=book).plan(**WITHIN, budget=Fraction(7, 10)).ask()
    assert again.above == found.above
    assert again.repeats == DAYS
    assert book.balance().charged == charged
    # The same line by other means is another question, and paid.
    if total.kind == "pure":
        with pytest.raises(BudgetExhausted):
            opened(series, ledger=book).plan(**WITHIN, budget=Fraction(7, 10), mechanism="exponential").ask()
        with pytest.raises(BudgetExhausted, match=r"0\.3 of 1 is left in the ledger; .*budget 0\.3 would fit"):
            opened(series, ledger=book).plan(**WITHIN, budget=Fraction(7, 10)).ask(afresh=True)
    assert book.balance().charged == charged


def test_nothing_is_shown_before_the_ledger_has_it(series: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Stopped between the draw and the entry: the charge stands, nobody has seen a day, and it is drawn once more."""
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(1))
    plan, settle = opened(series, ledger=book).plan(**WITHIN, budget=1), Ledger.settle

    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "settle", stopped)
    with pytest.raises(KeyboardInterrupt):
        plan.ask()
    assert book.balance().remaining == 0
    monkeypatch.setattr(Ledger, "settle", settle)
    found = opened(series, ledger=book).plan(**WITHIN, budget=1).ask()
    assert f1(found.above) > 0.8
    assert book.balance().remaining == 0


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), MemoryError(), KeyboardInterrupt()])
def test_a_set_that_the_ledger_did_not_take_is_not_drawn_again(
    series: Path, tmp_path: Path, monkeypatch: Any, failure: BaseException
) -> None:
    """That it did not may tell how many days were named; only an interruption, which comes from outside, may not."""
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(1))
    plan, settle = opened(series, ledger=book).plan(**WITHIN, budget=1, mechanism="set"), Ledger._settle
    failures = [failure]

    def failing(*given: Any, **named: Any) -> Any:
        if failures:
            raise failures.pop()
        return settle(*given, **named)

    monkeypatch.setattr(Ledger, "_settle", failing)
    with pytest.raises(type(failure)):
        plan.ask()
    assert book.last is not None
    if isinstance(failure, KeyboardInterrupt):
        assert not book.last.lost
        assert plan.ask().answered == DAYS
    else:
        assert book.last.lost
        with pytest.raises(InvalidParameter, match="lost"):
            plan.ask()
    assert book.balance().remaining == 0


def test_a_failed_draw_of_values_is_lost_and_the_names_stand(series: Path, tmp_path: Path, monkeypatch: Any) -> None:
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(2))
    plan = opened(series, ledger=book).plan(**WITHIN, budget=2, how_much=True)
    with monkeypatch.context() as patched:
        patched.setattr(how_much, "draw", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError) as failed:
            plan.ask()
    assert failed.value.__notes__ == ["the ledger has the names; their values are lost and it keeps ε = 1"]
    with pytest.raises(InvalidParameter, match="was lost after its charge"):
        plan.ask()


def test_values_come_from_the_other_half(series: Path, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(2))
    plan = opened(series, ledger=book).plan(**WITHIN, budget=2, how_much=True)
    assert plan.settings.name == "set-above-threshold"
    found = plan.ask()
    assert found.amounts is not None
    assert len(found.amounts) == len(found.above)
    assert book.balance().remaining == pytest.approx(0, abs=1e-9)
    assert found.cost == pytest.approx(2, abs=1e-6)


def test_a_plan_in_a_file_fits_other_numbers_of_days(series: Path, tmp_path: Path) -> None:
    made = opened(series).plan(**WITHIN, budget=1)
    plan = Plan.from_document(made.settings.as_document())
    short: dict[str, Any] = {"start": "2013-01-01", "end": "2013-02-09"}
    found = opened(series).plan(plan=plan, **short).ask(anyway=True)
    assert (found.answered, found.ended) == (40, False)
    assert found.cost <= 1.0


def test_questions_one_by_one_are_refused(series: Path) -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    made = opened(series).plan(**WITHIN, budget=1)
    for line in (WatchRequest(threshold=Fraction(1, 2), budget=1, mechanism="set"), WatchRequest(plan=made.settings)):
        with pytest.raises(InvalidParameter, match="one by one"):
            plan_watch(family, line, questions=9)
    budgeted = opened(series, total=1)
    with pytest.raises(StateRefused, match="nothing was spent"):
        budgeted.plan(**WITHIN, budget=1).start(SeededEntropy(1))
    assert budgeted.spent == 0
    with pytest.raises(InvalidParameter, match="outside everything"):
        opened(series).plan(**(WITHIN | {"threshold": 200}), budget=1, mechanism="set")


def test_names_and_values_must_both_fit_before_either_is_paid(series: Path, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(Fraction(3, 2)))
    with pytest.raises(BudgetExhausted, match="nothing was asked"):
        opened(series, ledger=book).plan(**WITHIN, budget=2, how_much=True).ask()
    assert book.balance().spent == 0


def test_a_year_of_hours_is_found_again(tmp_path: Path) -> None:
    hours = 24 * 365
    load = 40 + 30 * np.sin(np.arange(hours) / 400)
    start = datetime.datetime(2013, 1, 1)
    rows = (f"{start + datetime.timedelta(hours=place)},{value:.4f}" for place, value in enumerate(load))
    (tmp_path / "hours.csv").write_text("at,load\n" + "\n".join(rows) + "\n")
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.pure(1))
    facts: dict[str, Any] = {
        "time": "at",
        "value": "load",
        "maximum": 100,
        "population": 2_000_000,
        "ledger": book,
        "cap_every": "hour",
    }
    asked: dict[str, Any] = {"start": "2013-01-01", "end": "2013-12-31", "every": "hour", "threshold": 62, "budget": 1}
    first, again = (
        dp.Dataset(tmp_path / "hours.csv", **facts).plan(**asked, mechanism="set").ask(anyway=True) for _ in range(2)
    )
    assert again.repeats == hours
    assert again.above == first.above
    assert len(first.above) > 1000
    assert [one.answer["above"] for one in history(book)] == [len(first.above)]


def test_the_command_line_knows_it(dpselect: Callable[..., Any], series: Path) -> None:
    asked = ("watch", series, "--time", "day", "--value", "load", "--maximum", 100, "--population", 5000)
    asked += ("--from", WITHIN["start"], "--to", WITHIN["end"], "--threshold", 62, "--budget", 1)
    ran = dpselect(*asked, "--mechanism", "set", "--json")
    assert ran.code == 0, ran.err
    assert ran.lines[-1]["mechanism"] == "set-above-threshold"
    named = [place for place, line in enumerate(ran.lines[:-1]) if line["answer"] == "above"]
    assert f1(named) > 0.85
