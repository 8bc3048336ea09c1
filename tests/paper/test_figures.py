"""Every figure's numbers are the theory's, computing and drawing are apart, and stand-ins say so."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lebensold2024 import FIGURES, above_threshold, offline
from lebensold2024.figure import QUICK, TINY, measured
from lebensold2024.noisy_max import CURVES, HEAT_MAP
from lebensold2024.offline import accuracy, costs_of
from lebensold2024.online import cost_of_f1, frontier
from lebensold2024.slips import CORRECTIONS, QUADRATURE

pytestmark = pytest.mark.slow

DATA_FIGURES = {"offline-near", "offline-lcl", "offline-uci", "online-uci", "online-lcl", "spend-uci", "spend-lcl"}
DATA_FIGURES |= {"separation", "budget-stop", "cap", "ablation", "transfer"}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_from_the_table_alone_and_marks_stand_ins(tiny_run: Path, name: str) -> None:
    table = pd.read_csv(tiny_run / "tables" / f"{name}.csv")
    figure = FIGURES[name].drawn(table)
    places = [(axis, axis.get_subplotspec()) for axis in figure.axes]
    assert places
    assert all(axis.get_xlabel() for axis, place in places if place is not None and place.is_last_row())
    assert ("SIMULATED" in figure.get_suptitle()) == (name in DATA_FIGURES)
    assert ("simulated" in FIGURES[name].caption(table)) == (name in DATA_FIGURES)


def test_noisy_max_curves_are_the_reference_values() -> None:
    table = CURVES.compute(TINY)
    pure = table.set_index(["sigma", "candidates"])["pure"]
    reference = {
        (0.1, 16): 0.20405,
        (0.1, 95): 0.23183,
        (0.1, 1024): 0.25323,
        (0.3, 16): 0.02921,
        (0.3, 95): 0.03589,
        (0.3, 1024): 0.04194,
        (0.5, 16): 0.01315,
        (0.5, 95): 0.01677,
        (0.5, 1024): 0.02021,
    }
    for place, expected in reference.items():
        assert pure.loc[place] == pytest.approx(expected, abs=6e-6)


def test_the_heat_map_holds_what_the_notebook_shows() -> None:
    part = {"threshold": 0.75, "sigmas": [0.3], "steps": [3], "trials": 10}
    row = measured(above_threshold.HEAT_MAP.measure, part).iloc[0]
    # 0.028 and 0.008, to the digits shown.
    assert (round(row["before_published"], 3), round(row["after"], 3)) == (0.028, 0.008)
    assert (round(row["before_published"], 4), round(row["after"], 5)) == (0.0275, 0.00797)
    # The conversion that filters over realised losses need would have given another number.
    assert round(row["before_published_probabilistic"], 4) == 0.0364


@pytest.mark.parametrize(
    ("sigma", "threshold", "expected"),
    [(0.2, 0.5, (0.01564, 0.03051, 0.04693)), (0.3, 0.75, (0.00797, 0.01522, 0.02418))],
)
def test_losses_after_the_run_are_the_reference_values(
    sigma: float, threshold: float, expected: tuple[float, ...]
) -> None:
    part = {"threshold": threshold, "sigmas": [sigma], "steps": [3, 10, 50], "trials": 10}
    table = measured(above_threshold.HEAT_MAP.measure, part)
    assert table["after"].to_numpy() == pytest.approx(expected, abs=6e-6)


def test_stopping_times_have_the_median_that_quadrature_gives() -> None:
    times = above_threshold.stopping_times(0.25, threshold=0.5, trials=20_000, generator=np.random.default_rng(3))
    x = np.linspace(-9, 9, 20_001)
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    from scipy.special import ndtr

    survive = ndtr((0.25 * x + 0.5) / (0.25 * math.sqrt(3)))
    longer = [float(weight @ survive**t) for t in range(30)]
    exact_median = next(t for t, chance in enumerate(longer) if chance <= 0.5)
    assert abs(np.median(times) - exact_median) <= 1


def test_bounds_only_get_lower_by_what_is_added() -> None:
    losses = above_threshold.LOSSES.compute(TINY)
    assert (losses["monotone"] <= losses["published"]).all()
    assert (losses["clipped"] <= losses["monotone"] * (1 + 1e-9)).all()
    costs = HEAT_MAP.compute(TINY)
    assert (costs["pure, monotone"] < costs["pure"]).all()
    assert (costs["Δ√d Gaussian"] <= costs["Δ√d Rényi"]).all()


def test_every_correction_has_its_known_numbers() -> None:
    table = CORRECTIONS.compute(TINY).set_index("what")
    assert table.loc["ψ with b − a for b, equal if a = 0", "wrong"] == pytest.approx(0.0102, abs=5e-5)
    assert table.loc["ψ with b − a for b, equal if a = 0", "true"] == pytest.approx(0.0305, abs=5e-5)
    assert table.loc["closed form at ρ = 0", ["wrong", "true"]].round(3).tolist() == [2.475, 2.562]
    delta = table.loc["FSRC: what the theorem gives"]
    assert "758 runs" in delta["setting"]
    assert (round(delta["wrong"], 5), round(delta["true"], 3)) == (0.00135, 0.576)
    # Where the table says unsafe, the printed value is the smaller one; each says where it stands.
    assert ((table["wrong"] < table["true"]) == (table["harm"] == "unsafe")).all()
    assert {where.split(":")[0] for where in table["where"]} == {"printed", "quoted from Zhu–Wang", "not in the paper"}


NOISY, HALTED = "noisy max, σ = {}, d = 365", "above threshold, σ_X = 0.25, ρ = 0.5, t = {}"
QUADRATURE_VERDICTS = {
    (NOISY.format(0.3), 100): "right",
    (NOISY.format(0.3), 128): "right",
    (NOISY.format(0.1), 100): "unsafe",
    (NOISY.format(0.1), 128): "right",
    (NOISY.format(0.05), 100): "loose",
    (NOISY.format(0.05), 128): "loose",
    (HALTED.format("3"), 20): "right",
    (HALTED.format("3"), 25): "right",
    (HALTED.format("1,000"), 20): "loose",
    (HALTED.format("1,000"), 25): "right",
    (HALTED.format("100,000"), 20): "unsafe",
    (HALTED.format("100,000"), 25): "unsafe",
}


def quadrature_verdicts(table: pd.DataFrame) -> dict[tuple[str, int], str]:
    numbers = QUADRATURE.numbers(table)  # type: ignore[misc]
    return numbers.set_index(["setting", "digits"])["verdict"].to_dict()


def test_the_authors_quadrature_is_right_and_wrong_where_it_is_said_to_be(tiny_run: Path) -> None:
    found = quadrature_verdicts(pd.read_csv(tiny_run / "tables" / "quadrature.csv"))
    # All but one of the costly values of noisy max are left to the long tests.
    kept = (NOISY.format(0.1), 100)
    assert found == {place: said for place, said in QUADRATURE_VERDICTS.items() if place[1] < 100 or place == kept}


@pytest.mark.slow
def test_the_authors_quadrature_at_every_setting_and_digit() -> None:
    assert quadrature_verdicts(QUADRATURE.compute(QUICK)) == QUADRATURE_VERDICTS


def test_every_claim_says_where_and_by_which_rule(tiny_run: Path) -> None:
    claims = pd.read_csv(tiny_run / "tables" / "claims.csv")
    assert claims["where"].str.contains("Section|abstract|appendix").all()
    assert claims["rule"].str.startswith("Held if").all()
    assert claims["rule"].str.count(r"\.(?:\s|$)").eq(1).all()


def test_more_noise_costs_less_and_finds_less() -> None:
    table = offline.NEAR.compute(replace(QUICK, trials=300))
    pure = table[table["method"] == "pure"].sort_values("scale")
    assert pure["epsilon"].is_monotonic_decreasing
    assert pure["accuracy"].iloc[0] > pure["accuracy"].iloc[-1] + 0.1
    ours, theirs = costs_of(table, "near", "pure", "Δ√d Gaussian")
    assert ours < theirs


def test_accuracy_without_noise_is_one() -> None:
    assert accuracy(np.array([0.2, 1.0, 0.4]), noise=np.zeros((5, 3))) == (1.0, 0.0)


def test_the_frontier_is_never_beaten_by_a_cheaper_setting() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"epsilon": rng.random(200), "f1": rng.random(200)})
    best = frontier(table)
    assert best["f1"].is_monotonic_increasing
    assert best["epsilon"].is_monotonic_increasing
    assert best["f1"].max() == table["f1"].max()
    assert cost_of_f1(table, f1=2.0) == math.inf
    assert cost_of_f1(table, f1=0.5) == table[table["f1"] >= 0.5]["epsilon"].min()
