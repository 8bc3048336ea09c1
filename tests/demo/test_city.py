"""The simulated city and the demonstration."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from dpselect.cli import main
from dpselect.demo.city import simulate_city
from dpselect.demo.script import WATCH_BUDGET, run_demo
from dpselect.noise.entropy import SeededEntropy


def test_the_same_seed_gives_the_same_city_and_another_does_not() -> None:
    city = simulate_city(meters=50, days=30, seed=3)
    assert city.equals(simulate_city(meters=50, days=30, seed=3))
    assert not city.equals(simulate_city(meters=50, days=30, seed=4))


def test_the_city_is_a_long_table_of_plausible_readings() -> None:
    city = simulate_city(meters=200, days=365)
    assert 0.97 < city.num_rows / (200 * 365) < 0.99
    kwh = city["kwh"].to_numpy()
    assert kwh.min() > 0
    assert 6 < kwh.mean() < 14
    assert len(city["meter"].unique()) == 200
    assert min(city["day"].to_pylist()) == date(2025, 1, 1)
    assert max(city["day"].to_pylist()) == date(2025, 12, 31)


def test_the_cold_spells_stand_out() -> None:
    city = simulate_city(meters=200, days=365).to_pandas()
    means = city.groupby("day")["kwh"].mean()
    assert date(2025, 2, 4) <= means.idxmax() <= date(2025, 2, 12)


def test_the_demonstration_answers_both_questions_and_writes_its_files(tmp_path: Path) -> None:
    steps: list[float] = []
    found = run_demo(
        out=tmp_path, meters=2000, entropy=SeededEntropy(1), step=lambda _doing, share: steps.append(share)
    )
    assert found.rows > 700_000
    assert found.peak.rank <= 10
    assert found.peak.epsilon <= 0.5
    assert found.watch.right >= 3
    assert found.watch.asked > 300
    assert found.watch.spending.spent[-1] <= WATCH_BUDGET
    assert found.page.read_text(encoding="utf-8").count("<svg") >= 1
    assert all(plot.is_file() for plot in found.plots)
    assert len(found.plots) == 2
    assert steps == sorted(steps)
    pure = [bound.pure for bound in found.bounds]
    assert pure == sorted(pure)
    assert found.noise == "reproducible"


def test_the_command_prints_answers_beside_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--meters", "300", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("truth (simulated)") == 2
    assert "report.html" in shown.err.replace("\n", "")
    assert main(["demo", "--meters", "300", "--out", str(tmp_path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["noise"] == "private"
    assert Path(record["page"]).is_file()
