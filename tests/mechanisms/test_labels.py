"""Winners by name, from either end: the same law, the same cost, whatever the names come in."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpselect import GaussianNoisyMax, PermuteAndFlip, QueryFamily, SeededEntropy
from dpselect.errors import InvalidParameter

FAMILY = QueryFamily(lower=-10.0, upper=100.0, sensitivity=1.0)
PICKER = PermuteAndFlip(FAMILY, scale=0.01)
VALUES = [50.0, 90.0, 2.0]
DAYS = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)]


@pytest.mark.parametrize(
    "labels",
    [DAYS, tuple(DAYS), np.array(DAYS), pd.Index(DAYS), pd.Series(DAYS, index=[2, 0, 1]), pl.Series("day", DAYS)],
    ids=lambda labels: type(labels).__module__.split(".")[0] + "." + type(labels).__name__,
)
def test_the_winner_comes_back_as_its_label(labels: Any) -> None:
    assert PICKER.release(VALUES, labels).label == DAYS[1]
    assert PICKER.release(VALUES, labels, goal="smallest").label == DAYS[2]
    assert PICKER.top(VALUES, 2, labels).labels == (DAYS[1], DAYS[0])
    assert PICKER.top(VALUES, 2, labels, goal="smallest").labels == (DAYS[2], DAYS[0])


def test_a_pandas_series_brings_its_index() -> None:
    series = pd.Series(VALUES, index=pd.date_range("2024-01-01", periods=3))
    assert PICKER.release(series).label == pd.Timestamp("2024-01-02")
    assert PICKER.release(series, DAYS).label == DAYS[1]
    assert PICKER.release(VALUES).label is None


@pytest.mark.parametrize("labels", [["a", "b"], "abc", {"a": 1, "b": 2, "c": 3}, 5, {"a", "b", "c"}])
def test_labels_that_do_not_fit_are_refused_before_anything_is_drawn(labels: Any) -> None:
    class Untouched(SeededEntropy):
        def words(self, count: int, /, *, dtype: Any) -> Any:
            raise AssertionError("a refused call drew noise")

    for ask in (PICKER.release, lambda values, labels, **more: PICKER.top(values, 1, labels, **more)):
        with pytest.raises(InvalidParameter, match="labels must be"):
            ask(VALUES, labels, entropy=Untouched(1))


@pytest.mark.parametrize("mechanism", [GaussianNoisyMax(FAMILY, 20.0), PermuteAndFlip(FAMILY, 10.0)])
def test_the_smallest_is_the_largest_of_the_mirrored_values_at_the_same_cost(mechanism: Any) -> None:
    mirrored = type(mechanism)(QueryFamily(lower=-100.0, upper=10.0, sensitivity=1.0), mechanism.scales[0])
    exact = [Fraction(value) + Fraction(1, 3) for value in VALUES]
    for seed in range(50):
        for values in (VALUES, exact):
            found = mechanism.release(values, goal="smallest", entropy=SeededEntropy(seed))
            other = mirrored.release([-value for value in values], entropy=SeededEntropy(seed))
            assert (found.index, found.loss) == (other.index, other.loss)
    many = mechanism.release_many(VALUES, times=100, goal="smallest", entropy=SeededEntropy(1)).indices
    assert (many == mirrored.release_many([-v for v in VALUES], times=100, entropy=SeededEntropy(1)).indices).all()


def test_an_unknown_goal_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="goal must be"):
        PICKER.release(VALUES, goal="middle")  # type: ignore[arg-type]
