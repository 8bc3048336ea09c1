"""End to end on the public data sets; skipped where they are not. The data are public, so seeds may be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

BIKES = (
    *("--time", "dteday", "--value", "registered", "--maximum", "6946", "--population", "6946", "--monotone"),
    *("--from", "2011-01-01", "--to", "2012-12-31"),
)
LONDON = ("--wide", "--user", "LCLid", "--cap", "50", "--population", "5566")


def test_peak_on_uci_bikes(dpselect: Callable[..., object], data: Path, tmp_path: Path) -> None:
    arguments = ("peak", data / "uci_bikes_day.csv", *BIKES, "--epsilon", "10", "--mechanism", "permute-and-flip")
    ran = dpselect(*arguments, "--json", "--report", tmp_path / "bikes.html")
    assert ran.code == 0, ran.err
    assert ran.json["answer"] == "2012-09-26"  # 6,946 riders, 29 more than any other day; the noise has scale 0.1
    assert ran.json["candidates"] == 731
    assert (tmp_path / "bikes.html").stat().st_size > 2000


def test_watch_on_uci_bikes(dpselect: Callable[..., object], data: Path) -> None:
    ran = dpselect(
        *("watch", data / "uci_bikes_day.csv", *BIKES, "--threshold", "4000", "--budget", 8),
        *("--clip", 1000, "--expect", 300, "--seed", 1, "--json"),
    )
    assert ran.code in (0, 3), ran.err
    *days, summary = ran.lines
    assert summary["spent"] <= 8
    above = {day["period"] for day in days if day["answer"] == "above"}
    # In the first winter nobody rides much; in the second autumn nearly every day is above.
    assert sum(day.startswith("2011-01") for day in above) <= 6
    assert sum(day.startswith("2012-09") for day in above) >= 15


def test_peak_on_a_month_of_low_carbon_london(dpselect: Callable[..., object], data: Path) -> None:
    ran = dpselect(
        *("peak", data / "lcl_daily.csv.gz", *LONDON, "--from", "2013-01-01", "--to", "2013-01-31"),
        *("--epsilon", "20", "--mechanism", "permute-and-flip", "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.json["answer"] == "2013-01-20"


@pytest.mark.slow
def test_peak_and_watch_on_all_of_low_carbon_london(dpselect: Callable[..., object], data: Path) -> None:
    calendar = ("--from", "2011-11-23", "--to", "2014-02-28")
    peak = dpselect("peak", data / "lcl_daily.csv.gz", *LONDON, *calendar, "--epsilon", "2", "--seed", 1, "--json")
    assert peak.code == 0, peak.err
    assert peak.json["candidates"] == 829
    assert peak.json["answer"][:7] in {"2012-12", "2013-01", "2013-02", "2013-03"}
    watch = dpselect(
        *("watch", data / "lcl_daily.csv.gz", *LONDON, *calendar, "--threshold", "12"),
        *("--budget", "1", "--expect", "10%", "--seed", 1, "--json"),
    )
    assert watch.code in (0, 3), watch.err
    above = [day["period"] for day in watch.lines[:-1] if day["answer"] == "above"]
    assert above
    assert sum(day[5:7] in {"11", "12", "01", "02", "03", "04"} for day in above) >= 0.8 * len(above)
