"""The door: every way in is exact, every refusal is silent about what it saw."""

from __future__ import annotations

import itertools
from collections import deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.mechanisms.members import RELEASES, SELECTIONS, WATCHERS, release, watcher

from dpselect.errors import InvalidData, InvalidParameter
from dpselect.mechanisms.classical import ExponentialMechanism
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.values import admit, admit_one
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import GUMBEL
from dpselect.privacy.family import QueryFamily

FAMILY = QueryFamily(lower=0.0, upper=1000.0, sensitivity=1.0)
SECRETS = [3.0, 714.25, 12.0]


@pytest.mark.parametrize(
    "given",
    [
        SECRETS,
        tuple(SECRETS),
        np.array(SECRETS),
        np.array(SECRETS, dtype=np.float32),
        np.array(SECRETS)[::-1][::-1],
        pd.Series(SECRETS, index=[5, 6, 7]),
        pd.Series(SECRETS, dtype="Float64"),
        pl.Series(SECRETS),
        [3, np.float64(714.25), np.int32(12)],
    ],
    ids=lambda given: type(given).__name__,
)
def test_floating_point_input_arrives_unchanged(given: Any) -> None:
    admitted = admit(given, family=FAMILY)
    assert isinstance(admitted, np.ndarray)
    assert admitted.dtype == np.float64
    assert admitted.tolist() == SECRETS


@pytest.mark.parametrize(
    "given",
    [
        [3, 714],
        np.array([3, 714], dtype=np.uint16),
        pd.Series([3, 714]),
        pl.Series([3, 714]),
    ],
    ids=lambda given: type(given).__name__,
)
def test_integers_arrive_unchanged(given: Any) -> None:
    assert list(admit(given, family=FAMILY)) == [3, 714]


def test_exact_input_is_never_rounded() -> None:
    third = Fraction(1, 3)
    assert admit([third, 2, 0.5, Decimal("0.1")], family=FAMILY) == [third, 2, Fraction(1, 2), Fraction(1, 10)]
    wide = QueryFamily(lower=0, upper=2.0**60, sensitivity=1)
    odd = 2**55 + 1
    for given in ([odd, 1], np.array([odd, 1]), pl.Series([odd, 1]), [odd, 0.5]):
        assert admit(given, family=wide)[0] == odd


def test_other_sequences_are_read_like_lists() -> None:
    wide = QueryFamily(lower=-(2.0**70), upper=2.0**70, sensitivity=1)
    assert admit(deque([2**63 + 1, -1]), family=wide) == [2**63 + 1, -1]
    assert list(admit({"a": 1.5, "b": 2}.values(), family=FAMILY)) == [1.5, 2.0]
    assert list(admit(range(3), family=FAMILY)) == [0, 1, 2]


def test_a_mix_of_huge_integers_is_not_rounded_by_the_way() -> None:
    wide = QueryFamily(lower=-(2.0**70), upper=2.0**70, sensitivity=1)
    assert admit([2**63 + 1, -1], family=wide) == [2**63 + 1, -1]


BROKEN: dict[str, Any] = {
    "NaN": [1.0, float("nan")],
    "NaN beside a fraction": [Fraction(1, 3), float("nan")],
    "Decimal NaN": [Decimal("NaN")],
    "None": [1.0, None],
    "text": ["714.25"],
    "a string": "714.25",
    "boolean": [True, False],
    "boolean array": np.array([True]),
    "complex": np.array([1j]),
    "two-dimensional": np.ones((2, 2)),
    "ragged": [[1.0], [1.0, 2.0]],
    "empty": [],
    "scalar": 3.0,
    "set": {1.0, 2.0},
    "dict": {0: 1.0},
    "masked": np.ma.masked_array([1.0, 714.25], mask=[False, True]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "extended precision": np.array([1.0], dtype=np.longdouble),
    "pandas null": pd.Series([1, None], dtype="Int64"),
    "Polars null": pl.Series([1, None]),
}


@pytest.mark.parametrize("policy", ["refuse", "clip"])
@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_a_list_of_numbers_is_refused_under_either_policy(name: str, policy: Any) -> None:
    with pytest.raises(InvalidData) as caught:
        admit(BROKEN[name], family=FAMILY, outside=policy)
    assert "714" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("given", [[5.0, 1714.25], [-1714.25, 5], [Fraction(5), Fraction(6857, 4)], [5.0, np.inf]])
def test_values_outside_the_range_are_refused_without_a_word_about_them(given: Any) -> None:
    messages = set()
    for values in (given, given[::-1], [given[-1]] * 7, [given[0]] * 7 + list(given)):
        try:
            admit(values, family=FAMILY)
        except InvalidData as error:
            messages.add(str(error))
    assert len(messages) == 1
    text = messages.pop()
    assert not any(sign in text for sign in "0123456789")


def test_clipping_moves_values_to_the_nearer_end() -> None:
    assert admit([-5.0, 5.0, np.inf], family=FAMILY, outside="clip").tolist() == [0.0, 5.0, 1000.0]  # type: ignore[union-attr]
    assert admit([Fraction(-5), Fraction(1, 3)], family=FAMILY, outside="clip") == [0, Fraction(1, 3)]
    assert admit([10**400, 1], family=FAMILY, outside="clip") == [1000, 1]
    assert admit_one(1e9, family=FAMILY, outside="clip") == 1000.0


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="outside must be"):
        admit([1.0], family=FAMILY, outside="ignore")  # type: ignore[arg-type]


EVERY = [
    *(mechanism(FAMILY, 1.0) for mechanism in SELECTIONS.values()),
    *(release(name, FAMILY, scale=1.0) for name in RELEASES),
]


class Untouched(SeededEntropy):
    """Entropy that must not be asked."""

    def bytes(self, count: int, /) -> bytes:
        raise AssertionError("a refused call drew noise")

    def words(self, count: int, /, *, dtype: Any) -> Any:
        raise AssertionError("a refused call drew noise")


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_a_refused_release_draws_no_noise(mechanism: Any) -> None:
    for values in ([1.0, float("nan")], [1.0, 1714.25], []):
        with pytest.raises(InvalidData):
            mechanism.release(values, entropy=Untouched(1))


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_seeded_noise_is_called_reproducible_and_system_noise_private(mechanism: Any) -> None:
    assert mechanism.release([1.0, 2.0]).noise == "private"
    first, second = (mechanism.release([1.0, 2.0], entropy=SeededEntropy(5)) for _ in range(2))
    assert first.noise == second.noise == "reproducible"


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_exact_and_floating_input_of_equal_value_give_the_same_answer(mechanism: Any) -> None:
    floats = mechanism.release([1.0, 2.5, 2.25], entropy=SeededEntropy(5))
    fractions = mechanism.release([Fraction(1), Fraction(5, 2), Fraction(9, 4)], entropy=SeededEntropy(5))
    if hasattr(floats, "index"):
        assert floats.index == fractions.index
    else:
        assert floats.values.tolist() == fractions.values.tolist()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), "1", None])
def test_a_scale_that_is_not_positive_and_finite_is_refused(scale: Any) -> None:
    makers: list[Any] = [lambda cls=cls: cls(FAMILY, scale) for cls in SELECTIONS.values()]
    makers += [lambda name=name: release(name, FAMILY, scale=scale) for name in RELEASES]
    for name in WATCHERS:
        makers.append(lambda name=name: watcher(name, FAMILY, threshold=1.0, scales=(scale, 1.0)))
        makers.append(lambda name=name: watcher(name, FAMILY, threshold=1.0, scales=(1.0, scale)))
    for make in makers:
        with pytest.raises(InvalidParameter, match=r"(scale|sigma)(_threshold|_query)? must be"):
            make()


def test_a_run_refuses_what_the_door_refuses_and_counts_nothing() -> None:
    run = LaplaceAboveThreshold(FAMILY, threshold=500.0, scale_threshold=1.0, scale_query=2.0).start()
    for bad in (float("nan"), 1714.25, None, "3", [3.0], True):
        with pytest.raises(InvalidData):
            run.ask(bad)
    with pytest.raises(InvalidData):
        run.ask_many([1.0, 1714.25])
    assert (run.below, run.above, run.loss.epsilon) == (0, 0, 0.0)


class Meddling(SeededEntropy):
    """Changes the caller's array whenever noise is drawn, as another thread or a signal handler could."""

    def __init__(self, seed: int, array: Any, place: int, value: float = 1e9) -> None:
        super().__init__(seed)
        self.array, self.place, self.value = array, place, value

    def random_bytes(self, count: int, /) -> bytes:
        self.array[self.place] = self.value
        return super().random_bytes(count)

    def words(self, count: int, /, *, dtype: Any) -> Any:
        self.array[self.place] = self.value
        return super().words(count, dtype=dtype)


def shown(answer: Any) -> Any:
    return answer.index if hasattr(answer, "index") else answer.values.tolist()


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("size", [3, 500])
def test_an_array_changed_while_noise_is_drawn_changes_nothing(mechanism: Any, size: int) -> None:
    values = np.linspace(0.0, 900.0, size)
    expected = shown(mechanism.release(values, entropy=SeededEntropy(5)))
    assert shown(mechanism.release(values, entropy=Meddling(5, values, 0))) == expected
    assert values[0] == 1e9


@pytest.mark.parametrize("goal", ["largest", "smallest"])
def test_a_change_to_a_large_array_counts_as_one_within_the_range_that_was_checked(goal: Any) -> None:
    """Large arrays are not copied: what is read late is cut to the ends that were found before."""
    size, won, unchecked = 200_000, 0, 0
    for seed in range(20):
        values = np.full(size, 500.0)
        values[5] = 1000.0 if goal == "largest" else 0.0
        picker = ExponentialMechanism(FAMILY, scale=1.0)
        won += picker.release(values, goal=goal, entropy=Meddling(seed, values, size - 1)).index == size - 1
        values[-1] = 500.0
        unchecked += noisy_argmax(values, scale=1.0, law=GUMBEL, entropy=Meddling(seed, values, size - 1)) == size - 1
    assert won < 18 if goal == "largest" else won == 0
    assert unchecked == 20


def test_a_large_array_that_turns_into_nan_is_refused() -> None:
    values = np.full(200_000, 500.0)
    meddling = Meddling(1, values, 150_000, float("nan"))
    with pytest.raises(InvalidData, match="must stay as they are"):
        ExponentialMechanism(FAMILY, scale=1.0).release(values, entropy=meddling)


def test_questions_changed_while_noise_is_drawn_are_answered_as_they_were() -> None:
    watcher = LaplaceAboveThreshold(FAMILY, threshold=500.0, scale_threshold=1.0, scale_query=2.0)
    for seed, size in itertools.product(range(5), (3000, 100_000)):
        values = np.zeros(size)
        run = watcher.start(entropy=Meddling(seed, values, size - 1), resample=False)
        values[:] = 0.0
        # A large array is cut to the ends that were found before, 0 and 0 here.
        assert not run.ask_many(values).any()
        assert values[-1] == 1e9
        # The same change reaches what is asked without a copy.
        line = watcher.noisy_threshold(entropy=Meddling(seed, values, size - 1))
        values[:] = 0.0
        assert line.ask_many(values).any()


def test_a_run_whose_questions_turn_into_nan_is_over_and_paid_for() -> None:
    watcher = LaplaceAboveThreshold(FAMILY, threshold=500.0, scale_threshold=1.0, scale_query=2.0)
    values = np.zeros(100_000)
    run = watcher.start(entropy=Meddling(1, values, 99_999, float("nan")), resample=False)
    values[:] = 0.0
    with pytest.raises(InvalidData, match="must stay as they are"):
        run.ask_many(values)
    assert not run.open
    assert run.loss.epsilon == watcher.loss(below=100_000, above=100_000)
