"""Real series have the paper's numbers; absent ones are replaced and say so; altered ones are refused."""

from __future__ import annotations

import functools
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpselect.errors import InvalidParameter, SourceError
from lebensold2024.datasets import DATA_VARIABLE, SERIES, load
from lebensold2024.sources import fetch_bikes, low_carbon_london

pytestmark = pytest.mark.slow

LENGTHS = {
    "uci": 731,
    "uci-2011": 365,
    "uci-2011-own": 365,
    "uci-2012": 366,
    "uci-365": 365,
    "uci-90": 90,
    "lcl": 829,
    "lcl-365": 365,
    "lcl-mean": 829,
    "near": 364,
}
POPULATIONS = {"uci": 6946, "lcl": 5564, "near": 300}


@pytest.mark.parametrize("name", SERIES)
def test_a_stand_in_has_the_real_size_and_says_simulated(name: str) -> None:
    series = load(name)
    assert series.simulated
    assert series.label.endswith("(simulated)")
    assert len(series.values) == LENGTHS[name]
    assert series.population == (4614 if name == "uci-2011-own" else POPULATIONS[name.split("-")[0]])
    assert series.values.min() >= 0
    assert series.values.max() <= 1


@pytest.mark.parametrize("name", SERIES)
def test_the_real_series_hold_their_largest_day(real_data: Path, name: str) -> None:
    series = load(name, data=real_data)
    assert not series.simulated
    assert "simulated" not in series.label
    assert len(series.values) == LENGTHS[name]
    # 2011 in the unit of both years is the one that does not hold the largest day.
    assert series.values.max() == (4614 / 6946 if name == "uci-2011" else 1.0)
    assert series.values.min() >= 0


def test_the_days_above_the_published_thresholds_are_these_many(real_data: Path) -> None:
    above = {
        name: int((load(name, data=real_data).values >= rho).sum()) for name, rho in (("uci", 0.575), ("lcl", 0.33))
    }
    assert above == {"uci": 290, "lcl": 648}
    # The other reading of LCL leaves one day below the published threshold, so nothing to find.
    assert int((load("lcl-mean", data=real_data).values < 0.33).sum()) == 1


def test_the_environment_names_the_folder(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(real_data))
    assert not load("uci").simulated


def test_series_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load("uci").values[0] = 2.0


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        load("uci", data=tmp_path / "nowhere")


METERS = pd.DataFrame(
    {
        "day": pd.date_range("2011-11-23", periods=829).strftime("%Y-%m-%d"),
        "energy_sum_5564": np.linspace(1.0, 2.0, 829),
        "households_5564": 5564,
    }
)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (4, "energy_sum_5564", None, "a number for every day"),
        (4, "energy_sum_5564", "inf", "a number for every day"),
        (4, "energy_sum_5564", -1.0, "a number for every day"),
        (4, "energy_sum_5564", "many", "cannot be read"),
        (4, "day", "2011-99-99", "one row per day"),
        (4, "day", "2011-11-23", "one row per day"),
        (None, "day", None, "500 of the 829 days"),
    ],
)
def test_a_file_with_a_hole_is_refused(
    tmp_path: Path, row: int | None, column: str, value: object, message: str
) -> None:
    damaged = METERS.head(500) if row is None else METERS.astype({column: object})
    if row is not None:
        damaged.loc[row, column] = value
    damaged.to_csv(tmp_path / "lcl_daily_totals.csv", index=False)
    with pytest.raises(SourceError, match=message):
        load("lcl", data=tmp_path)


def test_the_same_file_without_the_hole_is_read(tmp_path: Path) -> None:
    METERS.to_csv(tmp_path / "lcl_daily_totals.csv", index=False)
    assert load("lcl", data=tmp_path).values[[0, -1]].tolist() == [0.5, 1.0]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="name must be one of uci"):
        load("bikes")


def test_an_altered_bicycle_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "day.csv").write_text("dteday,registered\n2011-01-01,654\n")
    with pytest.raises(SourceError, match="is not the published file"):
        load("uci", data=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date,gc_kwh_total\n2010-07-01,3\n2010-07-03,4\n", "one row per day"),
        ("date,other\n2010-07-01,3\n", "cannot be read"),
        ("", "cannot be read"),
    ],
)
def test_a_damaged_series_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ausgrid_daily_totals.csv").write_text(text)
    with pytest.raises(SourceError, match=message):
        load("near", data=tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a web server on this machine that serves it."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/bikes.zip"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_the_download_is_unpacked_checked_and_used(
    served: tuple[Path, str], real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, url = served
    with zipfile.ZipFile(folder / "bikes.zip", "w") as archive:
        archive.write(real_data / "uci_bikes_day.csv", "day.csv")
        archive.writestr("Readme.txt", "cite me")
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "ausgrid_daily_totals.csv").write_bytes((real_data / "ausgrid_daily_totals.csv").read_bytes())
    fetched = fetch_bikes(tmp_path / "fetched", beside=beside, url=url)
    assert np.array_equal(load("uci", data=fetched).values, load("uci", data=real_data).values)
    assert not load("near", data=fetched).simulated
    # A second call needs no server.
    (folder / "bikes.zip").unlink()
    assert fetch_bikes(tmp_path / "fetched", beside=beside, url=url) == fetched


def test_a_folder_that_has_the_file_is_used_as_it_is(real_data: Path, tmp_path: Path) -> None:
    assert fetch_bikes(tmp_path / "unused", beside=real_data, url="http://127.0.0.1:9/none") == real_data
    assert not (tmp_path / "unused").exists()


def test_an_archive_with_another_file_is_refused_and_forgotten(
    served: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, url = served
    with zipfile.ZipFile(folder / "bikes.zip", "w") as archive:
        archive.writestr("day.csv", "dteday,registered\n2011-01-01,654\n")
    with pytest.raises(SourceError, match=r"does not hold the published day\.csv"):
        fetch_bikes(tmp_path / "fetched", url=url)
    assert not (tmp_path / "fetched" / "day.csv").exists()
    assert not (tmp_path / "fetched" / "archive").exists()


def test_a_dead_server_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(SourceError, match="could not be downloaded"):
        fetch_bikes(tmp_path / "fetched", url="http://127.0.0.1:9/bikes.zip")


# Low Carbon London's files per home, through the tables room, to the totals that are published beside them.


def test_missing_readings_count_as_rows_and_add_nothing(tmp_path: Path) -> None:
    days = "LCLid,day,energy_sum\na,2012-01-02,1.25\nb,2012-01-02,\na,2012-01-01,2\nc,2012-01-01,4\nc,2012-01-02,8\n"
    (tmp_path / "block_0.csv").write_text(days)
    (tmp_path / "homes.csv").write_text("LCLid,Acorn\na,ACORN-A\nb,ACORN-U\nc,ACORN-\n")
    path = low_carbon_london(tmp_path / "block_*.csv", households=tmp_path / "homes.csv", out=tmp_path)
    assert path.read_text().split() == [
        "day,energy_sum_5564,households_5564",
        "2012-01-01,2.0,1",
        "2012-01-02,1.25,2",
    ]
    # What was written is what the figures read.
    assert SERIES["lcl"].read(path).tolist() == [1.0, 0.625]


def test_a_source_without_the_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text("LCLid,Acorn\na,ACORN-A\n")
    with pytest.raises(SourceError, match="has no column 'day'"):
        low_carbon_london(tmp_path / "homes.csv", households=tmp_path / "homes.csv", out=tmp_path)


@pytest.mark.slow
def test_the_real_readings_add_up_to_the_real_totals(real_data: Path, tmp_path: Path) -> None:
    wide = pd.read_csv(real_data / "lcl_daily.csv.gz", index_col="LCLid")
    long = wide.stack().rename_axis(["LCLid", "day"]).rename("energy_sum").reset_index()
    path = low_carbon_london(long, households=real_data / "lcl_households.csv", out=tmp_path)
    found, expected = pd.read_csv(path), pd.read_csv(real_data / "lcl_daily_totals.csv")
    assert found["day"].tolist() == expected["day"].tolist()
    assert np.allclose(found["energy_sum_5564"], expected["energy_sum_5564"], atol=0.01)
