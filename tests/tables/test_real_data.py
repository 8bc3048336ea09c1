"""The public data sets, end to end. They are found at DPSELECT_DATA or beside the checkout."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from dpselect.tables import Calendar, Question, bounded_query, open_source, series_query


def data_file(name: str) -> Path:
    folder = Path(os.environ.get("DPSELECT_DATA") or Path(__file__).parents[3] / "shared" / "data")
    path = folder / name
    if not path.is_file():
        pytest.skip(f"{name} is not in {folder}; set DPSELECT_DATA to the folder with the public data sets")
    return path


def published_totals() -> dict[str, float]:
    with data_file("lcl_daily_totals.csv").open() as file:
        return {row["day"]: float(row["energy_sum"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("polars", marks=pytest.mark.slow)])
def test_london_meters_wide_give_the_published_daily_totals(engine):
    source = open_source(data_file("lcl_daily.csv.gz"), backend=engine)
    question = Question(user="LCLid", shape="wide", cap=400, grid=400_000, population=5566, measure="sum")
    answer = bounded_query(source, question, Calendar("2011-11-23", "2014-02-28"))
    totals = published_totals()
    assert len(answer) == 829
    for label, value in zip(answer.labels, answer.values, strict=True):
        assert value == pytest.approx(totals[label], abs=0.02)
    assert answer.labels[answer.values.argmax()] == "2013-01-20"


@pytest.mark.slow
def test_london_meters_give_one_answer_on_three_engines(engine):
    source = open_source(data_file("lcl_daily.csv.gz"), backend=engine)
    question = Question(user="LCLid", shape="wide", cap=50, grid=50_000, population=5566)
    answer = bounded_query(source, question, Calendar("2011-11-23", "2014-02-28"))
    # 78,951.978 kWh on the peak day once each home is cut at 50 kWh a day.
    assert max(answer.totals) == 78_951_978
    assert sum(answer.totals) == 35_057_695_325
    months = bounded_query(source, question, Calendar("2012-01", "2013-12", every="month"))
    assert len(months) == 24
    assert max(months.totals) <= question.most_steps


@pytest.mark.slow
def test_the_curator_s_counts_for_london_are_the_published_ones():
    question = Question(user="LCLid", shape="wide", cap=50, grid=50_000, population=5566)
    answer = bounded_query(data_file("lcl_daily.csv.gz"), question, Calendar("2011-11-23", "2014-02-28"))
    report = answer.curator_report
    assert (report.rows, report.used, report.users) == (5566 * 829, 3_510_403, 5561)
    assert (report.duplicates, report.negative, report.without_user) == (0, 0, 0)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_bike_days_are_shares_of_the_largest_day(engine):
    source = open_source(data_file("uci_bikes_day.csv"), backend=engine)
    answer = series_query(
        source,
        time="dteday",
        value="registered",
        candidates=Calendar("2011-01-01", "2012-12-31"),
        maximum=6946,
        population=6946,
        monotone=True,
    )
    assert len(answer) == 731
    assert answer.values.max() == 1.0
    assert answer.curator_report.used == 731
    assert answer.family.sensitivity == pytest.approx(1 / 6946, rel=1e-11)
    assert answer.query_at(3473) == 0.5


def test_bike_hours_add_up_to_the_bike_days():
    asked = {"time": "dteday", "maximum": 6946, "population": 6946, "value": "registered"}
    calendar = Calendar("2011-01-01", "2012-12-31")
    hours = series_query(data_file("uci_bikes_hour.csv.gz"), candidates=calendar, **asked)
    days = series_query(data_file("uci_bikes_day.csv"), candidates=calendar, **asked)
    assert hours.totals == days.totals
