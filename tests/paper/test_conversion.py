"""The tables room turns the daily files of Low Carbon London into the totals that are published beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpselect.errors import SourceError
from dpselect.paper.conversion import low_carbon_london
from dpselect.paper.datasets import SERIES


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
