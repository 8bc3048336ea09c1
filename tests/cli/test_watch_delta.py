"""With a δ a watch runs what was planned for it: every value released, or a sparse vector under a filter of its own."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpselect as dp
from dpselect.dataset import Dataset, WatchRequest
from dpselect.dataset.watch import plan_watch
from dpselect.dataset.whole import WholeVector
from dpselect.errors import BudgetExhausted, InvalidParameter
from dpselect.ledger import Ledger, Total
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Plan
from dpselect.planning.planner import ranked

DAYS = 200
DELTA = Fraction(1, 10**6)
_WAVE = np.clip(0.5 + 0.2 * np.sin(np.arange(DAYS) / 32), 0, 1)
WITHIN = {"start": "2013-01-01", "end": str(datetime.date(2013, 1, 1) + datetime.timedelta(DAYS - 1))}


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Days of which about half are above 50."""
    days = (datetime.date(2013, 1, 1) + datetime.timedelta(day) for day in range(DAYS))
    rows = (f"{day},{100 * value:.4f}" for day, value in zip(days, _WAVE, strict=True))
    path = tmp_path / "load.csv"
    path.write_text("day,load\n" + "\n".join(rows) + "\n")
    return path


def opened(series: Path, **more: Any) -> Dataset:
    return dp.Dataset(series, time="day", value="load", maximum=100, population=10_000, **more)


def f1(named: Any, *, line: float = 0.5) -> float:
    truth = set(np.flatnonzero(line <= _WAVE).tolist())
    return 2 * len(truth & set(named)) / (len(truth) + len(named))


def released(dataset: Dataset, *, threshold: int = 50) -> Plan:
    """A plan that releases every value, made by name: the default is a whole set, better and pure."""
    asked: dict[str, Any] = {"budget": Fraction(1, 2), "expect": Fraction(1, 2), "delta": DELTA}
    plan = dataset.plan(**asked, threshold=threshold, **WITHIN)
    assert plan.settings.name == "set-above-threshold"
    assert "δ is not used" in plan.reason
    job = plan.asked.job(plan.settings.family, questions=DAYS, unit=plan.unit)
    assert job is not None
    made = ranked(job, ["gaussian-release"])[0]
    assert made.prediction is not None
    assert plan.expected is not None
    assert plan.expected.score > made.prediction.score
    return Plan.from_document(replace(made, unit=float(plan.unit)).as_document())


def test_every_value_may_be_released_and_the_ledger_is_charged_both_numbers(series: Path, tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "x.ledger", dataset="load", total=Total.approximate(1.0, delta=2 * DELTA))
    dataset = opened(series, ledger=book)
    plan = dataset.plan(plan=released(dataset), **WITHIN)
    found = plan.ask()
    assert found.answered == DAYS
    assert plan.expected is not None
    assert f1(found.above) == pytest.approx(plan.expected.score, abs=0.08)
    assert 0.499 < found.cost <= 0.5
    assert book.balance().charged == book.total.price(dp.Loss(epsilon=0.5, delta=float(DELTA)))
    # Asked again it is repeated; another question finds what is left, and a third nothing.
    again = plan.ask()
    assert again.above == found.above
    dataset.plan(plan=released(dataset, threshold=55), **WITHIN).ask()
    with pytest.raises(BudgetExhausted):
        dataset.plan(plan=released(dataset, threshold=45), **WITHIN).ask()


def test_no_more_values_are_released_than_the_plan_pays_for(series: Path) -> None:
    dataset = opened(series)
    plan = released(dataset)
    short = dataset.plan(plan=replace(plan, count=DAYS - 50), **WITHIN).ask()
    assert (short.answered, short.ended) == (DAYS - 50, True)
    with pytest.raises(InvalidParameter, match="for a line to be reached"):
        WatchRequest(plan=replace(plan, asked="largest", threshold=None))


def test_a_published_vector_answers_as_its_noise_says_and_ends() -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    release = dp.GaussianRelease.calibrated(family, candidates=2000, epsilon=1.0, delta=1e-6)
    vector = WholeVector(release, threshold=0.5, count=2000, entropy=SeededEntropy(4))
    # One standard deviation above the line: ⊤ 84 times of 100; half the noise would give 98.
    above = sum(vector.ask(0.5 + release.sigma) is dp.Verdict.ABOVE for _ in range(2000))
    assert above == pytest.approx(0.8413 * 2000, abs=4 * 16.3)
    assert (vector.spent, vector.remaining, vector.can_ask) == (release.epsilon(2000), 0.0, False)
    with pytest.raises(BudgetExhausted, match="paid for are answered"):
        vector.ask(0.5)


def test_a_stream_of_known_length_releases_every_value_where_that_does_best() -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    asked: dict[str, Any] = {
        "threshold": Fraction(1, 2),
        "budget": Fraction(1, 2),
        "expect": Fraction(45, 100),
    }
    plan = plan_watch(family, WatchRequest(**asked, delta=DELTA), questions=800)
    assert plan.settings.name == "gaussian-release"
    assert plan.settings.delta == float(DELTA)
    assert plan.expected is not None
    values = plan.asked.job(family, questions=800, unit=Fraction(1)).values()  # type: ignore[union-attr]
    watch = plan.start(SeededEntropy(1))
    while watch.answered < len(values) and watch.can_ask:
        watch.ask(float(values[watch.answered]))
    truth = set(np.flatnonzero(values >= 0.5).tolist())
    scored = 2 * len(truth & set(watch.above)) / (len(truth) + len(watch.above))
    assert scored == pytest.approx(plan.expected.score, abs=0.06)
    assert not watch.can_ask


def test_the_command_line_runs_it_and_says_so(dpselect: Callable[..., Any], series: Path, tmp_path: Path) -> None:
    place = tmp_path / "y.ledger"
    assert dpselect("ledger", "create", place, "--dataset", "load", "--total", 1, "--delta", "1e-6").code == 0
    asked = ("watch", series, "--time", "day", "--value", "load", "--maximum", 100, "--population", 10_000)
    asked += ("--from", WITHIN["start"], "--to", WITHIN["end"], "--plan", tmp_path / "plan.toml")
    released(opened(series)).save(tmp_path / "plan.toml")
    ran = dpselect(*asked, "--ledger", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.lines[-1]["mechanism"] == "gaussian-release"
    assert "on every day's value" in ran.lines[-1]["reason"]
    left = dpselect("ledger", "show", place, "--json").json
    assert left["spent"] == 0.5
    assert 1e-6 <= left["spent_delta"] < 1.000001e-6
