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
    assert found.peak.rank <= 3
    assert found.peak.epsilon <= 0.5
    assert found.watch.asked > 300
    assert found.watch.spending.spent[-1] <= WATCH_BUDGET
    page = found.page.read_text(encoding="utf-8")
    assert page.count("<svg") >= 2  # the year, the calendar of verdicts
    assert page.count("<rect") == 365
    assert "14 kWh" in page
    assert steps == sorted(steps)
    assert found.noise == "reproducible"


def test_the_command_leaves_readings_and_a_file_and_says_what_to_type_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [".venv/bin/dpselect", "demo"])
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["demo", "--meters", "1000"]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("truth (simulated)") == 2
    assert "report.html" in shown.err.replace("\n", "")
    typed = [line.split() for line in shown.out.splitlines() if line.startswith("  .venv/bin/dpselect ")]
    assert [words[1] for words in typed] == ["describe", "peak", "watch"]
    for words in typed[:2]:  # what is printed runs as it stands
        assert main(words[1:]) == 0, capsys.readouterr().err
    assert "± " in capsys.readouterr().out
    assert main(["demo", "--meters", "1000", "--json"]) == 0  # its own earlier files are replaced
    record = json.loads(capsys.readouterr().out)
    assert record["noise"] == "private"
    assert all(Path(record[name]).is_file() for name in ("page", "readings", "homes"))
    assert 'ledger = "homes.ledger"' in Path(record["homes"]).read_text()


def test_the_demonstration_leaves_other_peoples_readings_alone(tmp_path: Path) -> None:
    (tmp_path / "readings.csv").write_text("mine")
    assert main(["demo", "--meters", "100", "--out", str(tmp_path)]) == 2
    assert (tmp_path / "readings.csv").read_text() == "mine"
