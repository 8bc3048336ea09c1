"""Many sparse vectors at once are what so many single ones would be: the same law, the same stops, the same sums."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.mechanisms.output_law import transcript_probability

from dpselect.composition import SparseVector
from dpselect.composition.loss_table import loss_table
from dpselect.composition.many import _Purses
from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold, LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily
from dpselect.rounding import round_down, round_up

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=0.05)
MONOTONE = QueryFamily(lower=0, upper=1, sensitivity=0.02, monotone=True)
WATCHERS: dict[str, Any] = {
    "Gaussian": GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.3, sigma_query=0.4),
    "Laplace": LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.5, scale_query=0.5),
    "exponential": ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.5, scale_query=0.5),
}
STREAM = np.array([0.2, 0.7, 0.5, 0.9, 0.1])
#: So that some streams stop early and others do not.
BUDGETS = {"Gaussian": 1.0, "Laplace": 0.45, "exponential": 0.6}


def paths(watcher: Any, budget: float, *, resample: bool) -> Iterator[tuple[list[bool], list[list[int]]]]:
    """Every sequence of answers that the rule lets happen, with the runs it falls into (by question)."""

    def onwards(
        answers: list[bool], ended: list[list[int]], run: list[int], spent: Fraction
    ) -> Iterator[tuple[list[bool], list[list[int]]]]:
        place = len(answers)
        above = sum(answers[question] for question in run)
        below = len(run) - above
        worst = max(watcher.loss(below + 1, above), watcher.loss(below, above + 1))
        if place == len(STREAM) or spent + Fraction(float(worst)) > Fraction(budget):
            yield answers, [*ended, run]
            return
        yield from onwards([*answers, False], ended, [*run, place], spent)
        if resample:
            cost = Fraction(float(watcher.loss(below, 1)))
            yield from onwards([*answers, True], [*ended, [*run, place]], [], spent + cost)
        else:
            yield from onwards([*answers, True], ended, [*run, place], spent)

    yield from onwards([], [], [], Fraction(0))


def law(watcher: Any, budget: float, *, resample: bool) -> dict[tuple[int, ...], float]:
    """The exact chance of each row of verdicts."""
    scale_threshold, scale_query = watcher.scales
    found = {}
    for answers, runs in paths(watcher, budget, resample=resample):
        chance = 1.0
        for run in filter(None, runs):
            verdicts = [Verdict.ABOVE if answers[question] else Verdict.BELOW for question in run]
            chance *= transcript_probability(
                STREAM[run],
                verdicts,
                threshold=watcher.level,
                scale_threshold=scale_threshold,
                scale_query=scale_query,
                law=watcher.law,
            )
        found[(*map(int, answers), *[-1] * (len(STREAM) - len(answers)))] = chance
    return found


def rejection(verdicts: NDArray[np.int8], expected: dict[tuple[int, ...], float]) -> float:
    """The p-value of a G-test; rare rows are pooled."""
    seen = dict(zip(*((part.tolist()) for part in _rows(verdicts)), strict=True))
    assert {tuple(row) for row in np.unique(verdicts, axis=0).tolist()} <= set(expected), "a row the rule forbids"
    assert sum(expected.values()) == pytest.approx(1.0, abs=1e-8)
    chances = np.array(list(expected.values()))
    counted = np.array([seen.get(_code(row), 0) for row in expected], dtype=float)
    rare = chances * len(verdicts) < 10
    if rare.any():
        chances, counted = (
            np.append(chances[~rare], chances[rare].sum()),
            np.append(counted[~rare], counted[rare].sum()),
        )
    some = counted > 0
    statistic = 2.0 * np.sum(counted[some] * np.log(counted[some] / (chances[some] * len(verdicts))))
    return float(chi2.sf(statistic, len(chances) - 1))


def _code(row: tuple[int, ...]) -> int:
    return sum((answer + 1) * 3**place for place, answer in enumerate(row))


def _rows(verdicts: NDArray[np.int8]) -> tuple[Any, Any]:
    return np.unique((verdicts.astype(np.int64) + 1) @ (3 ** np.arange(verdicts.shape[1])), return_counts=True)


@pytest.mark.parametrize("resample", [True, False])
@pytest.mark.parametrize("name", WATCHERS)
def test_the_law_is_that_of_sparse_vectors_and_less_noise_is_noticed(name: str, resample: bool) -> None:
    watcher, budget = WATCHERS[name], BUDGETS[name]
    expected = law(watcher, budget, resample=resample)
    assert any(-1 in row for row in expected)
    assert any(-1 not in row for row in expected)
    found = SparseVector.run_many(
        watcher, STREAM, budget=budget, times=200_000, resample=resample, entropy=SeededEntropy(11)
    )
    assert found.noise == "reproducible"
    assert rejection(found.verdicts, expected) > 1e-6
    # The control: the law of a mechanism with a tenth less noise, under the same rule.
    first, second = watcher.noise_names
    quiet = type(watcher)(
        watcher.family,
        threshold=watcher.threshold,
        **{first: 0.9 * watcher.scales[0], second: 0.9 * watcher.scales[1]},
    )
    one_law = law(watcher, 1e6, resample=resample)
    assert (
        rejection(SparseVector.run_many(quiet, STREAM, budget=1e6, times=200_000, resample=resample).verdicts, one_law)
        < 1e-6
    )


@pytest.mark.parametrize("resample", [True, False])
@pytest.mark.parametrize("name", ["Gaussian", "Laplace"])
@pytest.mark.parametrize("clip", [None, (0.3, 0.4)])
def test_each_row_stops_and_costs_as_one_sparse_vector_with_the_same_answers(
    name: str, resample: bool, clip: Any, forced_entropy: Any
) -> None:
    watcher = WATCHERS[name]
    values = np.random.default_rng(3).uniform(0.0, 1.0, 40)
    for budget in (0.05, BUDGETS[name], 1.0, 2.5):
        found = SparseVector.run_many(
            watcher, values, budget=budget, times=40, resample=resample, clip=clip, entropy=SeededEntropy(5)
        )
        for row, spent in zip(found.verdicts, found.spent, strict=True):
            answers = [bool(answer) for answer in row if answer >= 0]
            svt = SparseVector(
                watcher, budget=budget, resample=resample, clip=clip, entropy=forced_entropy([*answers, False])
            )
            told = []
            try:
                for value in values.tolist():
                    told.append(svt.ask(value) is Verdict.ABOVE)
            except BudgetExhausted:
                pass
            assert told == answers
            assert svt.spent == pytest.approx(spent, rel=1e-12)
            assert spent <= budget


@given(
    st.floats(1e-3, 50.0),
    st.lists(
        st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.1, 1e-9, 1e-40, 2.0**-60]), max_size=12),
        min_size=1,
        max_size=6,
    ),
)
def test_what_is_left_is_exact_whatever_was_paid(limit: float, payments: list[list[float]]) -> None:
    purses = _Purses(len(payments), limit)
    left = [Fraction(limit)] * len(payments)
    unit = Fraction(2) ** -1074
    for turn in range(12):
        rows = [row for row, paid in enumerate(payments) if len(paid) > turn and Fraction(paid[turn]) <= left[row]]
        if not rows:
            continue
        losses = np.array([payments[row][turn] for row in rows])
        purses.pay(np.array(rows), losses)
        for row, loss in zip(rows, losses.tolist(), strict=True):
            left[row] -= Fraction(loss)
        assert purses.left.tolist() == [round_down(int(found / unit)) for found in left]
    assert purses.spent(np.zeros(len(left))).tolist() == [
        round_up(int((Fraction(limit) - found) / unit)) for found in left
    ]


def test_a_matrix_holds_one_stream_per_row() -> None:
    sharp = GaussianAboveThreshold(
        QueryFamily(lower=0, upper=1, sensitivity=1e-4), threshold=0.5, sigma_threshold=0.01, sigma_query=0.01
    )
    found = SparseVector.run_many(sharp, np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]), budget=5.0)
    assert found.verdicts.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert found.noise == "private"
    assert found.spent[0] == pytest.approx(sharp.loss(1, 1) + sharp.loss(1, 0))
    assert SparseVector.run_many(sharp, [0.0, 1.0], budget=5.0).verdicts.tolist() == [[0, 1]]


def test_long_streams_pass_the_rows_of_the_table() -> None:
    watcher = LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.01, scale_query=0.01)
    quiet = np.zeros(9000)
    assert (SparseVector.run_many(watcher, quiet, budget=30.0, times=3).verdicts == 0).all()
    gaussian = GaussianAboveThreshold(MONOTONE, threshold=0.9, sigma_threshold=0.05, sigma_query=0.05)
    budget = loss_table(gaussian).loss(5000, 1)
    stopped = (SparseVector.run_many(gaussian, quiet, budget=budget, times=2).verdicts >= 0).sum(axis=1)
    assert ((stopped > 4900) & (stopped < 5100)).all()


@pytest.mark.parametrize("many", [np.zeros((2, 2, 2)), [], [2.0], ["a"], [Fraction(1, 3)], [float("nan")]])
def test_what_cannot_be_asked_is_refused(many: Any) -> None:
    with pytest.raises(InvalidData):
        SparseVector.run_many(WATCHERS["Gaussian"], many, budget=1.0)


@pytest.mark.parametrize("wrong", [{"budget": 0.0}, {"budget": 1.0, "times": 0}, {"budget": 1.0, "resample": "no"}])
def test_unknown_ways_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        SparseVector.run_many(WATCHERS["Gaussian"], [0.1], **wrong)
