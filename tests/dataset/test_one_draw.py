"""What is paid for once is drawn once, values share what is left for them, and nothing outside its range is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import dpselect as dp
from dpselect.dataset import WatchRequest, how_much
from dpselect.dataset.watch import plan_watch
from dpselect.ledger import Ledger, Total
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.noise.entropy import SeededEntropy

DAYS = [f"2013-01-{day:02d}" for day in range(1, 11)]
WITHIN = {"start": DAYS[0], "end": DAYS[-1]}
USED = [1.0, 2.0, 30.0, 3.0, 25.0, 4.0, 35.0, 5.0, 6.0, 7.0]
FAMILY = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)


def homes(number: int = 40, **changes: Any) -> dp.Dataset:
    """Homes that use the same on each of ten days; the third, the fifth and the seventh are above 20."""
    rows = pyarrow.table(
        {
            "meter": [f"h{home}" for home in range(number) for _ in DAYS],
            "at": DAYS * number,
            "kwh": USED * number,
        }
    )
    return dp.Dataset(rows, **({"user": "meter", "time": "at", "value": "kwh", "cap": 40, "population": 40} | changes))


def test_all_answers_of_a_whole_set_come_from_one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    release = SetAboveThreshold.release

    def counted(self: SetAboveThreshold, values: Any, **asked: Any) -> Any:
        drawn.append(len(values))
        return release(self, values, **asked)

    monkeypatch.setattr(SetAboveThreshold, "release", counted)
    assert homes().watch(threshold=20, budget=40, mechanism="set", **WITHIN).answered == len(DAYS)
    assert drawn == [len(DAYS)]


@pytest.mark.parametrize("mechanism", [None, "exponential"])
def test_the_values_of_a_watch_cost_their_part_however_many_are_named(mechanism: str | None) -> None:
    data = homes()
    days = data.candidates(**WITHIN)
    plan = data.plan_watch(days, threshold=20, budget=Fraction(3, 2), how_much=True, mechanism=mechanism)
    for named in (1, 2, 7):
        release = plan.release(named)
        assert 0.74 < float(release.epsilon(named)) <= 0.75
        assert Fraction(release.scale) >= named * Fraction(release.family.sensitivity) / Fraction(3, 4)


def test_the_values_of_a_watch_are_those_of_the_ones_it_names_and_are_paid_for() -> None:
    data = homes(total=4000)
    watch = data.watch(threshold=20, budget=4000, how_much=True, **WITHIN)
    assert watch.above == [2, 4, 6]
    assert watch.amounts == pytest.approx([30.0, 25.0, 35.0], abs=1.0)
    assert 2000 < watch.cost <= 4000
    assert data.spent == 4000


def test_names_and_values_of_a_watch_cost_no_more_than_its_budget() -> None:
    assert homes().watch(threshold=20, budget=4000, how_much=True, **WITHIN).cost <= 4000


def test_values_asked_afresh_are_drawn_and_paid_again(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "x.ledger", dataset="homes", total=Total.pure(1000)) as book:
        data = homes(ledger=book)
        asked: dict[str, Any] = {"threshold": 20, "budget": 400, "how_much": True, **WITHIN}
        first = data.watch(**asked)
        charged = book.balance().spent
        assert data.watch(**asked).amounts == first.amounts
        assert book.balance().spent == charged
        again = data.watch(**asked, afresh=True)
        assert again.amounts != first.amounts
        assert book.balance().spent == pytest.approx(2 * charged, rel=1e-9)


def test_a_peak_pays_for_its_names_and_for_their_values() -> None:
    plan = homes().plan(epsilon=2, top=3, how_much=True, **WITHIN)
    names, values = plan.chosen.mechanism().top_epsilon(10, 3), float(plan.value.epsilon(3))
    assert plan.promise.epsilon >= names + values > 1.9
    assert plan.promise.epsilon <= 2
    assert Fraction(plan.value.scale) >= 3 * Fraction(plan.value.family.sensitivity)


def test_more_persons_than_anybody_expected_stop_no_answer() -> None:
    """Totals a thousand times beyond the range are cut to what there is room for; a refusal would tell of them."""
    data = homes(2600, population=2)
    plan = data.plan(epsilon=5000, how_much=True, mechanism="exponential", **WITHIN)
    assert not plan.is_cut
    found = plan.ask()
    assert found.label in DAYS
    assert found.amounts is not None
    assert data.watch(threshold=20, budget=5000, how_much=True, **WITHIN).answered == len(DAYS)
    release = dp.LaplaceRelease.calibrated(FAMILY, candidates=2, epsilon=50)
    assert how_much.draw(release, [-5.0, 7.5], entropy=SeededEntropy(1)) == pytest.approx([0.0, 1.0], abs=0.1)


def test_a_stream_cuts_what_lies_outside_its_range() -> None:
    plan = plan_watch(FAMILY, WatchRequest(threshold=0.5, budget=50, noise=(0.01, 0.01)), questions=9)
    watch = plan.start()
    assert [watch.ask(value) for value in (7.5, -3.0, 0.9)] == [True, False, True]


def test_a_series_is_drawn_within_its_range() -> None:
    rows = pyarrow.table({"at": DAYS, "kwh": USED})
    data = dp.Dataset(rows, time="at", value="kwh", maximum=40, population=1000)
    plan = data.plan(epsilon=2, mechanism="exponential", **WITHIN)
    assert plan.is_cut
    assert plan.drawing.family == plan.chosen.mechanism().family


def test_lines_that_are_shown_alike_are_two_questions() -> None:
    data = homes()
    lines = Fraction(20), Fraction(20) + Fraction(1, 10**10)
    plans = [data.plan_watch(data.candidates(**WITHIN), threshold=line, budget=5) for line in lines]
    assert plans[0].line == plans[1].line
    assert plans[0].question() != plans[1].question()


def test_other_names_are_another_question() -> None:
    rows = pyarrow.table({"who": ["a", "b", "c"], "shop": ["tea", "milk", "tea"]})
    data = dp.Dataset(rows, user="who", category="shop", measure="count", population=10)
    lists = [["tea", "milk"], ["milk", "tea"], ["tea", "rice"]]
    questions = [data.plan(epsilon=50, categories=names).question() for names in lists]
    assert all(questions[one] != questions[other] for one, other in ((0, 1), (0, 2), (1, 2)))
