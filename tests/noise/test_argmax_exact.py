"""The chosen index is the one that 2,000 bits choose with the same random bits, however close the values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.noise import argmax
from dpselect.noise.argmax import decide, noisy_argmax
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.inputs import scores
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law

LAWS = [NORMAL, LAPLACE, EXPONENTIAL, GUMBEL]
TINY = 5e-324
BIG = float(2**60)

CLOSE_VALUES = {
    "ties": [0.25] * 6,
    "subnormal gaps": [0.0, TINY, 2 * TINY, -TINY, 0.0, 3 * TINY],
    "last bits": [1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0), 1.0, np.nextafter(1.0, 2), 1.0],
    "large and close": [BIG, BIG + 256, BIG - 128, BIG, BIG + 256, BIG],
    "far apart": [-1e308, 1e308, 1e308, -1e308, 1e308, 0.0],
    "integers past 2^53": [2**53, 2**53 + 1, 2**53 - 1, 2**53 + 1, 2**53, 2**53 + 2],
    "the ends of int64": [-(2**63), 2**63 - 1, 2**63 - 2, 0, 2**63 - 1, -(2**63)],
    "thirds": [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**40), Fraction(333, 1000), 0, 1, Fraction(1, 3)],
    "ints beside floats": [2**60, 2**60 + 1, float(2**60), 0.5, 2**60 + 1, 2**60 - 1],
}
SCALES: list[Any] = [1.0, 0.1, Fraction(1, 3), 1e-300, 1e300, 1e308, TINY, 64.0]


def check_against_the_judge(
    values: Any, scale: Any, law: Law, *, watched: Any, judge: Any, seed: int, cells: list[int] | None
) -> int:
    exact = [Fraction(value) if not isinstance(value, np.generic) else Fraction(value.item()) for value in values]
    found = []
    for few in (argmax._FEW, 0):  # in lists where there are few, and in arrays: both
        entropy = watched(seed, cells=cells)
        with mock.patch.object(argmax, "_FEW", few):
            chosen, draws = decide(scores(values), scale=scale, law=law, entropy=entropy)
        prefixes = entropy.prefixes(len(values))
        for i, draw in draws.items():  # what was drawn later continues what was drawn first
            prefix, length = prefixes[i]
            assert draw.prefix >> (draw.length - length) == prefix
        winner = judge(exact, scale=Fraction(scale), law=law, prefixes=prefixes, draws=draws, chosen=chosen)
        assert chosen == winner
        found.append(len(draws))
    return found[0]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("values", CLOSE_VALUES.values(), ids=CLOSE_VALUES)
def test_close_values_are_decided_as_at_two_thousand_bits(
    values: Any, scale: Any, law: Law, watched: Any, judge: Any
) -> None:
    for cells in (None, [31000] * 6, [65535] * 6, [0] * 6, [0, 65535, 40000, 40001, 40000, 39999], [65300, 65299] * 3):
        check_against_the_judge(values, scale, law, watched=watched, judge=judge, seed=1, cells=cells)


def test_equal_cells_force_more_bits(watched: Any, judge: Any) -> None:
    many = check_against_the_judge([0.0] * 8, 1.0, NORMAL, watched=watched, judge=judge, seed=2, cells=[500] * 8)
    one = check_against_the_judge([0.0] * 8, 1.0, NORMAL, watched=watched, judge=judge, seed=2, cells=[500, 900] * 4)
    assert (many, one) == (8, 4)


def test_a_tail_that_is_too_long_for_the_spare_bytes_gets_bytes_of_its_own(watched: Any, judge: Any) -> None:
    for cells in ([65300] * 40, [65300, 65301, 7] * 13 + [65300]):
        check_against_the_judge([0.0] * 40, 1.0, NORMAL, watched=watched, judge=judge, seed=5, cells=cells)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=150)
@given(
    values=st.lists(finite, min_size=1, max_size=6)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6)
    | st.lists(st.fractions() | st.integers(), min_size=1, max_size=6),
    scale=st.floats(min_value=TINY, allow_infinity=False, allow_nan=False),
    law=st.sampled_from(LAWS),
    cells=st.lists(st.sampled_from([0, 1, 30000, 30001, 65279, 65280, 65535]), min_size=6, max_size=6),
    seed=st.integers(0, 2**32),
)
def test_any_values_and_scale_are_decided_as_at_two_thousand_bits(
    values: Any, scale: float, law: Law, cells: list[int], seed: int, watched: Any, judge: Any
) -> None:
    check_against_the_judge(values, scale, law, watched=watched, judge=judge, seed=seed, cells=cells)


@settings(deadline=None, max_examples=60)
@given(
    base=finite.filter(lambda x: abs(x) < 1e300),
    steps=st.lists(st.integers(-3, 3), min_size=2, max_size=6),
    cell=st.integers(0, 65535),
    law=st.sampled_from(LAWS),
)
def test_noise_of_the_size_of_the_last_bit_is_decided_as_at_two_thousand_bits(
    base: float, steps: list[int], cell: int, law: Law, watched: Any, judge: Any
) -> None:
    spacing = float(np.spacing(abs(base)))
    values = [base + step * spacing for step in steps]
    for scale in (spacing, spacing * 0.37 or TINY, spacing * 100):
        check_against_the_judge(values, scale, law, watched=watched, judge=judge, seed=3, cells=[cell] * len(values))


def test_all_kinds_of_the_same_numbers_give_the_same_choice() -> None:
    numbers = [3, 1, 4, 1, 5, 9, 2, 6]
    kinds: list[Any] = [
        np.array(numbers, dtype=np.float64),
        np.array(numbers, dtype=np.float32),
        np.array(numbers, dtype=np.float16),
        np.array(numbers, dtype=np.int8),
        np.array(numbers, dtype=np.uint64),
        numbers,
        [Fraction(n) for n in numbers],
        tuple(float(n) for n in numbers),
        np.repeat(np.array(numbers, dtype=np.float64), 3)[::3],
    ]
    for seed in range(20):
        chosen = {noisy_argmax(values, scale=3, entropy=SeededEntropy(seed)) for values in kinds}
        assert len(chosen) == 1


def test_blocks_are_joined_without_a_seam() -> None:
    rng = np.random.default_rng(8)
    values = rng.random(100_003)
    for best in (0, 32767, 32768, 65536, 100_002):
        peaked = values.copy()
        peaked[best] += 1000
        assert noisy_argmax(peaked, scale=1.0) == best
        assert noisy_argmax(peaked, scale=1e-300) == best


def test_the_passes_do_not_depend_on_the_values(watched: Any) -> None:
    flat, peaked = np.zeros(70_000), np.zeros(70_000)
    peaked[123] = 50.0
    calls = []
    for values in (flat, peaked, np.linspace(-9, 9, 70_000)):
        entropy = watched(4)
        noisy_argmax(values, scale=1.0, entropy=entropy)
        calls.append([(words.dtype, len(words)) for words in entropy.words_given])
    assert calls[0] == calls[1] == calls[2]
