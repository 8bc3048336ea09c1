"""The spend plot shows the odometer, never below it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpselect.composition import SparseVector, ZCDPFilter
from dpselect.composition.odometer import spend_curve
from dpselect.errors import SourceError
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily
from dpselect.report.plots import save_spend_plot

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.05, sigma_query=0.05)
OTHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.1, sigma_query=0.1)


@pytest.mark.parametrize("resample", [True, False])
@pytest.mark.parametrize("points", [2, 60])
def test_the_curve_is_never_below_what_was_spent_at_the_time(resample: bool, points: int) -> None:
    svt = SparseVector(WATCHER, budget=20.0, resample=resample, entropy=SeededEntropy(2))
    spent = [0.0]
    for at, value in enumerate(np.random.default_rng(1).uniform(0.2, 0.6, 120)):
        if at == 60:
            svt.switch(OTHER)
        svt.ask(value)
        spent.append(svt.spent)
    questions, epsilon = spend_curve(svt, points=points)
    assert questions[0] == 0
    assert questions[-1] == 120
    # Between two points the step takes the later value.
    shown = epsilon[np.searchsorted(questions, np.arange(121), side="left")]
    assert (shown >= np.array(spent)).all()
    assert epsilon[-1] == pytest.approx(svt.spent, rel=1e-9)


def test_a_restored_state_starts_where_it_was() -> None:
    svt = SparseVector(WATCHER, budget=20.0)
    svt.ask_many(np.tile([0.0, 1.0], 10))
    again = SparseVector.restore(svt.save())
    again.ask(0.0)
    questions, epsilon = spend_curve(again)
    assert questions[-1] == 21
    assert epsilon[0] == pytest.approx(svt.spent)
    assert epsilon[-1] >= again.spent


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_it_is_drawn_with_its_limit_and_its_tops(tmp_path: Path, ending: str) -> None:
    svt = SparseVector(WATCHER, budget=20.0, entropy=SeededEntropy(1))
    svt.ask_many(np.tile([0.0, 0.0, 1.0], 10))
    path = save_spend_plot(tmp_path / "plots" / f"spend.{ending}", svt=svt)
    assert path.stat().st_size > 1000
    if ending == "svg":
        again = save_spend_plot(tmp_path / "again.svg", svt=svt)
        assert "limit ε = 20" in path.read_text()
        assert len(path.read_text()) == len(again.read_text())


def test_nothing_asked_and_other_units_are_drawn_too(tmp_path: Path) -> None:
    save_spend_plot(tmp_path / "empty.svg", svt=SparseVector(WATCHER, budget=1.0))
    svt = SparseVector(WATCHER, filter=ZCDPFilter(rho=5.0), horizon=5)
    svt.ask_many(np.zeros(8))
    assert "limit ε" not in save_spend_plot(tmp_path / "zcdp.svg", svt=svt).read_text()


def test_a_place_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="choose another place"):
        save_spend_plot(tmp_path / "file" / "spend.svg", svt=SparseVector(WATCHER, budget=1.0))
