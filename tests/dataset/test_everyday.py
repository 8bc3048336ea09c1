"""Everyday questions: the top five, the smallest, how much it is, the busiest weekday."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpselect as dp
from dpselect.dataset import WatchRequest
from dpselect.dataset import rows as access
from dpselect.dataset.file import laid_over
from dpselect.dataset.watch import plan_watch
from dpselect.errors import InvalidParameter
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.planner import ranked
from dpselect.tables import Calendar, Cycle, Question, bounded_query, open_source

pyarrow = pytest.importorskip("pyarrow")

DAYS = [f"2013-01-{day:02d}" for day in range(1, 29)]
HOMES = {"user": "meter", "time": "at", "value": "kwh", "cap": 40, "population": 50, "unit": "kWh"}
DATES = {"start": "2013-01-01", "end": "2013-01-28"}


def homes(**changes: Any) -> dp.Dataset:
    """Fifty homes; every day uses one more than the day before, and Sundays ten more again."""
    used = [number + (10 if number % 7 == 5 else 0) for number in range(28)]  # 2013-01-06 was a Sunday
    rows = pyarrow.table(
        {
            "meter": [f"h{home}" for home in range(50) for _ in DAYS],
            "at": DAYS * 50,
            "kwh": [float(one) for _ in range(50) for one in used],
        }
    )
    return dp.Dataset(rows, **(HOMES | DATES | changes))


def test_the_top_are_named_in_order_and_cost_no_more_than_asked() -> None:
    answer = homes(total=3000).peak(epsilon=3000, top=5)
    assert answer.labels == ["2013-01-27", "2013-01-20", "2013-01-28", "2013-01-26", "2013-01-25"]
    assert answer.label == "2013-01-27"
    assert answer.epsilon <= 3000
    record = answer.to_dict()
    assert record["answers"] == answer.labels
    assert 0 < record["rho"] <= answer.epsilon**2 / 2
    assert "  Place 1: 2013-01-27\n  Place 2: 2013-01-20\n" in str(answer)
    assert str(answer).count("2013-01-27") == 1
    assert "takes ρ = " in str(answer)


def test_the_smallest_is_found_at_the_same_cost() -> None:
    small, large = homes().peak(epsilon=500, goal="smallest"), homes().peak(epsilon=500)
    assert (small.label, large.label) == ("2013-01-01", "2013-01-27")
    assert small.epsilon == large.epsilon
    assert "smallest?" in str(small)


@pytest.mark.parametrize(
    ("epsilon", "top", "how_much"), [(0.1, 3, True), (0.3, 7, False), (1, 1, True), (0.7, 28, True)]
)
def test_all_parts_together_cost_no_more_than_asked(epsilon: float, top: int, how_much: bool) -> None:
    plan = homes().plan_peak(homes().candidates(), epsilon=epsilon, top=top, how_much=how_much)
    assert 0.8 * epsilon < plan.cost(plan.mechanism) <= epsilon  # fewer candidates cost Gaussian noise less
    parts = Fraction(plan.chosen.mechanism().top_epsilon(28, top))
    if plan.value is not None:
        parts += Fraction(float(plan.value.epsilon(top)))
    assert parts <= Fraction(plan.cost(plan.mechanism)) <= Fraction(epsilon)


def test_the_value_lies_within_its_margin_as_often_as_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    data = homes(entropy=SeededEntropy(5))
    plan = data.plan_peak(data.candidates(), epsilon=4.0, how_much=True, mechanism="permute-and-flip")
    read = access.read(data.scope(data.candidates()))
    # The rows stay as they are: once is enough.
    monkeypatch.setattr(access, "check", lambda *_, **__: None)
    monkeypatch.setattr(access, "read", lambda *_, **__: read)
    truth = {label: value * plan.unit for label, value in zip(plan.scope.public.labels, read.values, strict=True)}
    answers = [plan.ask(anyway=True) for _ in range(200)]
    hits = sum(abs(one.amounts[0] - truth[one.label]) <= plan.margin for one in answers)
    assert hits >= 180  # 190 expected; below 180 with chance 0.0006
    closer = sum(abs(one.amounts[0] - truth[one.label]) <= plan.margin / 3 for one in answers)
    assert closer < 150  # the noise is really there: 126 expected
    assert all(0 <= one.amounts[0] <= 40 for one in answers)
    assert "± " in str(answers[0])
    assert "kWh" in str(answers[0])


def test_more_than_there_are_is_refused_and_costs_nothing() -> None:
    data = homes(total=1)
    for top in (29, 0):
        with pytest.raises(InvalidParameter, match="top must be"):
            data.peak(epsilon=1, top=top)
    assert data.spent == 0


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("every", ["weekday", "hour-of-day", "month-of-year"])
def test_cycles_gather_the_same_periods_as_python_does(every: Any, backend: str) -> None:
    random = np.random.default_rng(3)
    hours = np.sort(random.choice(366 * 24 * 2, size=900, replace=False))
    moments = [np.datetime64("2012-06-01T00") + np.timedelta64(int(hour), "h") for hour in hours]
    rows = {"user": [f"p{n % 7}" for n in range(900)], "at": [str(one).replace("T", " ") + ":00" for one in moments]}
    table = open_source(pyarrow.table(rows), backend=backend)
    cycle = Cycle("2012-07-04", "2013-09-30", every=every)
    answer = bounded_query(table, Question(user="user", time="at", measure="count", population=900), cycle)
    seen = {(rows["user"][n], cycle.index(one.astype(object))) for n, one in enumerate(moments)}
    counted = Counter(place for _, place in seen if place is not None)
    assert answer.totals == tuple(counted[place] for place in range(len(cycle)))
    assert len(answer.labels) == {"weekday": 7, "hour-of-day": 24, "month-of-year": 12}[every]


def test_the_busiest_weekday_is_found_by_each_persons_mean() -> None:
    answer = homes().peak(epsilon=500, every="weekday", how_much=True)
    assert answer.label == "Sunday"
    # Sundays use 5, 12, 19, 26 and ten more each; by the mean over them the cap of a day still fits.
    assert answer.amounts is not None
    assert abs(answer.amounts[0] - 25.5) < 1
    assert "each person's mean of the readings there are" in " ".join(str(answer).split())


def test_one_person_moves_no_part_of_a_cycle_by_more_than_the_cap() -> None:
    rows = pyarrow.table({"user": ["a"] * 40, "at": DAYS + DAYS[:12], "kwh": [1000.0] * 40})
    question = Question(user="user", time="at", value="kwh", cap=10, grid=100, population=3, per_user="sum")
    totals = bounded_query(rows, question, Cycle("2013-01-01", "2013-01-28", every="weekday")).totals
    assert totals == (100,) * 7
    assert len(Calendar("2013-01-01", "2013-01-28")) == 28


YEAR = [(date(2013, 1, 1) + timedelta(days=number)).isoformat() for number in range(365)]
WHOLE_YEAR = {"start": "2013-01-01", "end": "2013-12-31"}


def steady(**changes: Any) -> dp.Dataset:
    """Five homes that use 8 a day, and in July 9: more than a daily cap in every week and month."""
    rows = pyarrow.table(
        {
            "meter": [f"h{home}" for home in range(5) for _ in YEAR],
            "at": YEAR * 5,
            "kwh": [9.0 if day.startswith("2013-07") else 8.0 for _ in range(5) for day in YEAR],
        }
    )
    return dp.Dataset(rows, **(HOMES | WHOLE_YEAR | {"cap": 10, "population": 5} | changes))


@pytest.mark.parametrize(
    ("every", "facts", "times", "said"),
    [
        ("day", {}, 1, "10 kWh"),
        ("week", {}, 7, "70 kWh: 7 times 10 kWh, that of a day"),
        ("month", {}, 31, "310 kWh: 31 times 10 kWh, that of a day"),
        ("month", {"cap_every": "month"}, 1, "10 kWh"),
        ("month", {"cap_every": "week"}, 6, "60 kWh: 6 times 10 kWh, that of a week"),
        ("month", {"per_user": "max"}, 1, "10 kWh"),
        ("hour", {}, 1, "10 kWh, that of a whole day"),
        ("weekday", {}, 1, "10 kWh"),
        ("weekday", {"per_user": "sum"}, 53, "530 kWh: 53 times 10 kWh, that of a day"),  # 2013 had 53 Tuesdays
        ("hour-of-day", {"per_user": "sum"}, 365, "3650 kWh: 365 times 10 kWh, that of a day"),
        ("month-of-year", {"per_user": "sum"}, 31, "310 kWh: 31 times 10 kWh, that of a day"),
    ],
)
def test_a_cap_belongs_to_a_period_and_a_longer_one_takes_several(
    every: Any, facts: dict[str, Any], times: int, said: str
) -> None:
    homes = steady(**facts)
    candidates = homes.candidates(every=every)
    assert homes.scope(candidates).times_cap == times
    assert dict(homes.scope(candidates).parameters())["Cap per person"] == said
    assert homes.scope(candidates).public.natural_unit == 10 * times
    # What one person changes is cut by the engine, at the cap of the period that is asked about.
    wild = pyarrow.table({"meter": ["x"] * 365, "at": YEAR, "kwh": [1e6] * 365})
    alone = dp.Dataset(wild, **(HOMES | WHOLE_YEAR | {"cap": 10, "population": 1, "grid": 1000} | facts))
    assert set(access.read(alone.scope(alone.candidates(every=every))).totals) <= {0, 1000}


def test_a_daily_cap_does_not_hide_the_largest_month() -> None:
    answer = steady().peak(epsilon=2000, every="month", how_much=True)
    assert answer.label == "2013-07"
    assert answer.amounts is not None
    assert abs(answer.amounts[0] - 31 * 9) < 2
    assert "the month's total of kwh per person (each counted up to 310 kWh)" in " ".join(str(answer).split())
    weekday = steady()
    assert weekday.scope(weekday.candidates(every="weekday")).measured.startswith("the mean of kwh over the population")
    # In a ledger the question stays the one it was.
    assert "(each person counted up to 310 kWh)" in answer.plan.question_1()["measured"]
    cut = access.read(steady(cap_every="month").scope(steady().candidates(every="month")))
    assert len(set(cut.totals)) == 1  # a cap of 10 for a month makes all months alike
    assert "at or above ‹cap›" in steady(cap_every="month").describe(every="month").remarks[0].text
    assert steady().describe(every="month").remarks == ()


def test_a_watch_over_months_takes_the_cap_of_a_month() -> None:
    watch = steady().watch(threshold=260, budget=2000, every="month")
    assert [watch.name(place) for place in watch.above] == ["2013-07"]


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
@pytest.mark.parametrize("every", ["weekday", "month-of-year"])
def test_cycles_of_a_series_already_added_up_are_means_over_their_occurrences(every: Any, backend: str) -> None:
    values = [100.0 + number % 50 for number in range(365)]
    rows = open_source(pyarrow.table({"day": YEAR, "trips": values}), backend=backend)
    series = dp.Dataset(rows, time="day", value="trips", maximum=200, population=400, **WHOLE_YEAR)
    cycle = series.candidates(every=every)
    assert isinstance(cycle, Cycle)
    found = access.read(series.scope(cycle))
    sums = Counter[int]()
    for day, value in zip(YEAR, values, strict=True):
        sums[cycle.index(date.fromisoformat(day)) or 0] += Fraction(value)
    often = Counter(cycle.index(date.fromisoformat(day)) for day in YEAR)
    assert cycle.occurrences == tuple(often[part] if every == "weekday" else 1 for part in range(len(cycle)))
    top = 200 if every == "weekday" else 200 * 31
    assert found.exact_values == tuple(sums[part] / (cycle.occurrences[part] * top) for part in range(len(cycle)))
    assert found.family.sensitivity == pytest.approx(1 / 400)


def test_what_a_curator_vouches_for_a_day_is_not_taken_for_a_month() -> None:
    """One person who moves each day by the declared sensitivity moves a month by 31 times that, and Δ covers it."""
    facts: dict[str, Any] = {"time": "day", "value": "kwh", "maximum": 100, "sensitivity": 2, **WHOLE_YEAR}
    days = {every: [50.0 + extra for _ in YEAR] for every, extra in (("without", 0), ("with", 2))}
    found = {name: dp.Dataset(pyarrow.table({"day": YEAR, "kwh": values}), **facts) for name, values in days.items()}
    for every in ("day", "week", "month", "weekday", "month-of-year"):
        read = {name: access.read(one.scope(one.candidates(every=every))) for name, one in found.items()}
        moved = abs(read["with"].values - read["without"].values).max()
        assert 0.8 * 0.02 < moved <= read["with"].family.sensitivity


def test_what_a_curator_vouches_for_a_day_says_nothing_of_an_hour() -> None:
    """Two units more in one hour and two fewer in the next leave the day as it was."""
    facts: dict[str, Any] = {"time": "at", "value": "kwh", "maximum": 100, "sensitivity": 1}
    facts |= {"start": "2013-01-01", "end": "2013-01-01"}
    hours = [f"2013-01-01 {hour:02d}:00" for hour in range(24)]
    rows = pyarrow.table({"at": hours, "kwh": [1.0] * 24})
    for every in ("hour", "hour-of-day"):
        days = dp.Dataset(rows, **facts)
        with pytest.raises(InvalidParameter, match="stated for a day and says nothing about one hour"):
            access.read(days.scope(days.candidates(every=every)))
        by_hour = dp.Dataset(rows, cap_every="hour", **facts)
        assert access.read(by_hour.scope(by_hour.candidates(every=every))).family.sensitivity == pytest.approx(1 / 100)


def test_what_a_file_vouches_for_is_not_kept_for_other_candidates() -> None:
    file = {"time": "day", "value": "kwh", "maximum": 100, "sensitivity": 2, "every": "day"}
    with pytest.raises(InvalidParameter, match="sensitivity of the data-set file was stated for another"):
        laid_over(file, {"maximum": 900, "every": "month"})
    with pytest.raises(InvalidParameter, match="maximum and sensitivity of the data-set file were stated"):
        laid_over(file, {"category": "shop"})
    assert laid_over(file, {"maximum": 900, "sensitivity": 40, "every": "month"})["cap_every"] == "month"
    assert laid_over(file, {"every": "month"})["cap_every"] == "day"


SERIES = {"time": "day", "value": "kwh", "maximum": Fraction(1000), "population": 1000, "monotone": True}


@pytest.mark.parametrize(
    ("changes", "anew"),
    [
        ({"maximum": 10}, "population of the data-set file was stated for another maximum"),
        ({"population": 9000}, "maximum of the data-set file was stated for another population"),
        ({"sensitivity": 1}, "maximum of the data-set file was stated for another sensitivity"),
        ({"monotone": False}, "maximum and population of the data-set file were stated for another monotone"),
        ({"value": "other"}, "maximum and population of the data-set file were stated for another value"),
        ({"time": "sent"}, "stated for another time"),
        ({"table": "other"}, "stated for another table"),
        ({"source": "other.csv"}, "stated for another source"),
        ({"time_format": "%Y-%d-%m"}, "stated for another time_format"),
        ({"decimal": ","}, "stated for another decimal"),
        ({"delimiter": ";"}, "stated for another delimiter"),
        ({"timezone": "Asia/Tokyo"}, "stated for another timezone"),
        ({"cap_every": "month"}, "stated for another cap_every"),
        ({"value": "other", "maximum": 1000}, "population of the data-set file was stated for another value"),
        ({"value": "other", "population": 1000}, "maximum of the data-set file was stated for another value"),
    ],
)
def test_what_a_file_vouches_for_is_stated_anew_as_a_whole(changes: dict[str, Any], anew: str) -> None:
    """A maximum of 10 beside the file's population of 1000 would make Δ a hundred times smaller."""
    with pytest.raises(InvalidParameter, match=anew):
        laid_over(SERIES, changes)


def test_values_read_with_another_decimal_sign_are_not_what_was_vouched_for() -> None:
    """A person who adds a half to 1250 takes all of it away where ``1250,5`` is no number."""
    facts: dict[str, Any] = {"time": "day", "value": "kwh", "maximum": 2000, "sensitivity": 1}

    def first(text: str, decimal: str) -> float:
        rows = pyarrow.table({"day": ["2013-01-01", "2013-01-02"], "kwh": [text, "1"]})
        days = dp.Dataset(rows, decimal=decimal, start="2013-01-01", end="2013-01-02", **facts)
        return float(access.read(days.scope(days.candidates())).values[0]) * 2000

    assert abs(first("1250", ",") - first("1250,5", ",")) <= 1
    assert abs(first("1250", ".") - first("1250,5", ".")) == 1250


def test_what_is_stated_anew_leaves_nothing_of_the_file_behind() -> None:
    found = laid_over(SERIES, {"maximum": 10, "sensitivity": 10, "value": "other"})
    assert (found["maximum"], found["sensitivity"], found["value"]) == (10, 10, "other")
    assert not {"population", "monotone"} & set(found)
    assert laid_over(SERIES, {"maximum": 10, "population": 5, "monotone": True})["monotone"] is True
    by_category = {"category": "shop", "value": "visits", "maximum": 100, "sensitivity": 2, "categories": ["a", "b"]}
    with pytest.raises(InvalidParameter, match="maximum and sensitivity of the data-set file were stated"):
        laid_over(by_category, {"category": "street"})
    assert "sensitivity" not in laid_over(by_category, {"category": "street", "maximum": 5, "population": 5})


def test_what_a_file_says_already_is_no_change() -> None:
    for same in (
        {"decimal": "."},
        {"maximum": 1000.0},
        {"population": 1000},
        {"value": "kwh", "monotone": True},
        {"cap_every": "day"},
    ):
        assert laid_over(SERIES, same) == SERIES | same | {"cap_every": "day"}
    assert laid_over(SERIES, {"every": "month", "unit": "kWh"})["monotone"] is True


def test_what_a_curator_vouches_for_a_week_says_nothing_of_a_month() -> None:
    """Forty more on each of three days and forty fewer on the next three leave the week as it was, not its months."""
    moved = dict.fromkeys(YEAR[28:31], 40.0) | dict.fromkeys(YEAR[31:34], -40.0)
    facts: dict[str, Any] = {"time": "day", "value": "kwh", "maximum": 1000, "sensitivity": 1, **WHOLE_YEAR}
    tables = [pyarrow.table({"day": YEAR, "kwh": [50.0 + one.get(day, 0.0) for day in YEAR]}) for one in ({}, moved)]

    def read(every: str, **more: Any) -> list[Any]:
        return [
            access.read(one.scope(one.candidates(every=every)))
            for one in (dp.Dataset(rows, **facts | more) for rows in tables)
        ]

    without, with_them = read("week", cap_every="week")
    assert without.totals == with_them.totals
    for every in ("month", "month-of-year"):
        with pytest.raises(InvalidParameter, match="stated for a week, and a month cuts weeks"):
            read(every, cap_every="week")
    without, with_them = read("month", cap_every="day", maximum=100, sensitivity=40)
    assert abs(with_them.values - without.values).max() * 3100 == pytest.approx(120)
    assert without.family.sensitivity * 3100 >= 120


def test_what_a_curator_vouches_for_weeks_holds_for_these_weeks_alone() -> None:
    facts: dict[str, Any] = {"time": "day", "value": "kwh", "maximum": 1000, "sensitivity": 1, "cap_every": "week"}
    weeks = dp.Dataset(pyarrow.table({"day": YEAR, "kwh": [1.0] * 365}), **facts, **WHOLE_YEAR)
    assert weeks.scope(weeks.candidates(every="week", start="2013-01-15")).times_cap == 1
    with pytest.raises(InvalidParameter, match="weeks counted from 2013-01-01: start must be a whole number of weeks"):
        access.read(weeks.scope(weeks.candidates(every="week", start="2013-01-04")))
    file = facts | WHOLE_YEAR
    assert laid_over(file, {"start": "2013-01-08"})["maximum"] == 1000
    for start in ("2013-01-04", None):
        with pytest.raises(InvalidParameter, match="were stated for another start"):
            laid_over(file, {"start": start})
    assert laid_over(file, {"start": "2013-01-04", "maximum": 900, "sensitivity": 9})["sensitivity"] == 9
    # Rows of persons are cut by the engine, whatever the weeks.
    assert steady(cap_every="week").scope(steady().candidates(every="week", start="2013-01-04")).times_cap == 1


def test_a_total_of_epsilon_alone_takes_no_delta() -> None:
    data = homes(total=5)
    planned = data.plan_watch(data.candidates(), threshold=20, budget=1, delta=1e-6)
    assert planned.settings.delta == 0, "a pure way does better, and a delta is not used"
    job = planned.asked.job(planned.settings.family, questions=planned.questions, unit=planned.unit)
    assert job is not None
    found = replace(ranked(job, ["gaussian-release"])[0], unit=float(planned.unit))
    assert found.delta > 0
    for total, refused in ((5, True), (None, False)):
        data = homes(total=total)
        plan = data.plan_watch(data.candidates(), plan=found)
        if refused:
            with pytest.raises(InvalidParameter, match="ε alone and promises no δ"):
                plan.ask(anyway=True)
            assert data.spent == 0
        else:
            assert plan.ask(anyway=True).answered > 0


def test_a_cap_is_a_number() -> None:
    with pytest.raises(InvalidParameter, match="cap must be a number such as 50"):
        steady(cap="50")
    with pytest.raises(InvalidParameter, match="cap_every must be one of hour, day, week, month"):
        steady(cap_every="weekday")


@pytest.mark.parametrize("backend", ["duckdb", "polars"])
def test_categories_of_a_series_already_added_up_are_compared(backend: str) -> None:
    rows = pyarrow.table({"shop": ["north", "south", "south", "", "west"], "visits": [30.0, 20.0, 25.0, 99.0, 98.0]})
    series = dp.Dataset(
        open_source(rows, backend=backend), category="shop", value="visits", maximum=100, population=100
    )
    answer = series.peak(epsilon=2000, categories=["north", "south", "east"], how_much=True)
    assert answer.label == "south"
    assert answer.amounts is not None
    assert abs(answer.amounts[0] - 45) < 1
    with pytest.raises(InvalidParameter, match="time must name a column of the series, or category"):
        dp.Dataset(rows, value="visits", maximum=100, population=100)


@pytest.mark.slow
def test_the_values_of_days_above_a_line_lie_within_their_margin_as_often_as_promised() -> None:
    """Each by noise that is drawn after the names, so being named does not change how often."""
    data = homes(entropy=SeededEntropy(5))
    plan = data.plan_watch(data.candidates(), threshold=20, budget=60, how_much=True, mechanism="exponential")
    values = [float(value) * float(plan.unit) for value in access.read(data.scope(data.candidates())).values]
    answers = [plan.ask(anyway=True) for _ in range(60)]
    errors = [
        abs(amount - values[place]) / one.margin
        for one in answers
        for place, amount in zip(one.above, one.amounts or (), strict=True)
    ]
    assert len(errors) >= 300
    assert 0.92 < np.mean(np.array(errors) <= 1) < 0.985  # .95 expected, give or take .012 at most
    assert np.mean(np.array(errors) <= 1 / 3) < 0.75, "the noise is really there: .63 expected"
    for one in answers:
        assert one.cost <= 60
        assert one.to_dict()["amounts"] == one.amounts
        assert len(one.amounts or ()) == one.count
        assert float(plan.release(one.count).epsilon(one.count)) <= 30
    assert "± " in str(answers[0])
    assert "half of ε pays for names and half for values" in " ".join(str(answers[0]).split())


def test_a_value_clearly_below_the_line_is_remarked() -> None:
    data = homes(entropy=SeededEntropy(5))
    answer = data.watch(threshold=20, budget=60, how_much=True, mechanism="exponential", anyway=True)
    within = answer.plan.margin_of(3)
    answer = replace(answer, above=[0, 1, 2], count=3, amounts=[20 - 0.9 * within, 20 - 1.1 * within, 20 + within])
    found = answer.as_report().findings[0]
    assert [text.endswith("*") for text in found.listed] == [False, True, False]
    assert "probably named by noise" in dict(found.details)["Marked *"]
    assert answer.to_dict()["clearly_below"] == [answer.name(1)]
    assert answer.amounts is not None
    answer.amounts[1] = 20.0
    assert "named by noise" not in str(answer)


def test_names_and_values_share_the_budget_and_the_expectation_is_of_the_share() -> None:
    data = homes(total=1)
    both = data.plan_watch(data.candidates(), threshold=20, budget=1, how_much=True)
    half = data.plan_watch(data.candidates(), threshold=20, budget=0.5)
    assert both.settings == half.settings
    assert both.expected == half.expected
    assert both.to_dict()["expected_amount_margin"] == both.margin_of(both.expected_above)
    assert "named, their values would be given to within ±" in both.expectation
    data.watch(threshold=20, budget=1, how_much=True, anyway=True)
    assert data.spent == 1


def test_values_are_not_asked_for_where_they_cannot_be_given() -> None:
    family = dp.QueryFamily(lower=0, upper=1, sensitivity=1e-4)
    with pytest.raises(InvalidParameter, match="how_much does not go with questions that come one by one"):
        plan_watch(family, WatchRequest(threshold=0.5, budget=1, how_much=True), questions=9)
    plan = plan_watch(family, WatchRequest(threshold=0.5, budget=1, mechanism="laplace"), questions=9).settings
    with pytest.raises(InvalidParameter, match="how_much does not go with plan"):
        WatchRequest(plan=plan, how_much=True)
