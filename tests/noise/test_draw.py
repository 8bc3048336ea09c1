from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm
from tests.interruptions import interrupted

from dpselect.errors import InvalidParameter
from dpselect.noise import draw as draw_module
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.draw import MOST_BITS, LazyDraw, NoisyValue, compare, largest
from dpselect.noise.entropy import SYSTEM_ENTROPY, SeededEntropy
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law

LAWS = [NORMAL, LAPLACE, EXPONENTIAL, GUMBEL]


@settings(deadline=None, max_examples=50)
@given(law=st.sampled_from(LAWS), seed=st.integers(0, 2**32), steps=st.lists(st.integers(1, 90), max_size=5))
def test_refining_only_narrows(law: Law, seed: int, steps: list[int]) -> None:
    draw = LazyDraw(law, entropy=SeededEntropy(seed))
    bounds = draw.bounds()
    for bits in steps:
        before = draw.prefix, draw.length
        draw.refine(bits=bits)
        assert draw.length == before[1] + bits
        assert draw.prefix >> bits == before[0]
        narrower = draw.bounds()
        # One double of play: both are rounded outward.
        assert narrower[0] >= np.nextafter(np.nextafter(bounds[0], -np.inf), -np.inf)
        assert narrower[1] <= np.nextafter(np.nextafter(bounds[1], np.inf), np.inf)
        bounds = narrower


def normal_p_value(scale: float) -> float:
    points = []
    for seed in range(4000):
        draw = LazyDraw(NORMAL, entropy=SeededEntropy(seed))
        draw.refine()
        points.append(scale * sum(draw.bounds()) / 2)
    return float(kstest(points, norm.cdf).pvalue)


def test_lazy_draws_follow_the_normal_law_and_shrunken_ones_do_not() -> None:
    assert normal_p_value(1.0) > 1e-6
    assert normal_p_value(0.85) < 1e-6


@settings(deadline=None, max_examples=60)
@given(
    values=st.tuples(st.fractions(), st.fractions()),
    scales=st.tuples(st.fractions(min_value=Fraction(1, 100)), st.fractions(min_value=Fraction(1, 100))),
    seed=st.integers(0, 2**32),
)
def test_a_comparison_turned_round_says_the_opposite(values: Any, scales: Any, seed: int) -> None:
    entropy = SeededEntropy(seed)
    first, second = (
        NoisyValue(value, scale=scale, draw=LazyDraw(NORMAL, entropy=entropy))
        for value, scale in zip(values, scales, strict=True)
    )
    # The bits drawn for the first comparison are kept, so the second can only confirm it.
    assert compare(first, second) == -compare(second, first)


def test_the_largest_of_many_agrees_with_every_pair() -> None:
    entropy = SeededEntropy(3)
    noisy = [NoisyValue(0, scale=1, draw=LazyDraw(NORMAL, entropy=entropy)) for _ in range(9)]
    winner = largest(noisy)
    assert all(compare(noisy[winner], other) > 0 for k, other in enumerate(noisy) if k != winner)


class StuckEntropy(SeededEntropy):
    """A broken source: the same bits for ever."""

    def bits(self, count: int, /) -> int:
        return (1 << count) // 3


def test_a_broken_source_is_refused_and_does_not_loop_for_ever() -> None:
    pair = [NoisyValue(0, scale=1, draw=LazyDraw(EXPONENTIAL, entropy=StuckEntropy(1))) for _ in range(2)]
    for noisy in pair:  # near the limit at once: on the way there every step costs more
        noisy.draw.refine(bits=MOST_BITS - 200)
    with pytest.raises(InvalidParameter, match="entropy must be a source of independent bits"):
        largest(pair)


def test_bits_are_never_shown() -> None:
    draw = LazyDraw(NORMAL, prefix=0b1011, length=4)
    assert repr(draw) == "LazyDraw(normal, 4 bits drawn)"
    assert "11" not in repr(NoisyValue(11, scale=2, draw=draw))


def test_bad_prefixes_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="prefix must be"):
        LazyDraw(NORMAL, prefix=4, length=2)
    with pytest.raises(InvalidParameter, match="prefix must be"):
        LazyDraw(NORMAL, prefix=-1, length=2)
    with pytest.raises(InvalidParameter, match="candidates must be non-empty"):
        largest([])


def test_an_interrupted_comparison_keeps_its_bits_whatever_line_it_stops_at() -> None:
    for count in range(1, 400):
        entropy = SeededEntropy(count)
        pair = [NoisyValue(0, scale=1, draw=LazyDraw(NORMAL, entropy=entropy)) for _ in range(2)]
        stopped = interrupted(lambda pair=pair: compare(*pair), at=count, within=draw_module.__file__)
        known = [(noisy.draw.prefix, noisy.draw.length) for noisy in pair]
        assert all(0 <= prefix < 1 << length for prefix, length in known)
        compare(*pair)
        for noisy, (prefix, length) in zip(pair, known, strict=True):
            assert noisy.draw.prefix >> (noisy.draw.length - length) == prefix
        if not stopped:
            break
    else:
        pytest.fail("the comparison never ran to its end")


class FailingEntropy(SeededEntropy):
    """Fails on a chosen call, as an interruption would; remembers every word it gave."""

    def __init__(self, seed: int, *, fail_at: int) -> None:
        super().__init__(seed)
        self.calls = 0
        self.fail_at = fail_at
        self.given: list[bytes] = []

    def words(self, count: int, /, *, dtype: Any) -> Any:
        self.calls += 1
        if self.calls == self.fail_at:
            raise KeyboardInterrupt
        words = super().words(count, dtype=dtype)
        self.given.append(words.tobytes())
        return words


def test_an_interrupted_release_gives_nothing_and_its_noise_is_not_used_again() -> None:
    values = np.zeros(200_000)  # seven blocks, a draw each
    for fail_at in range(1, 8):
        entropy = FailingEntropy(1, fail_at=fail_at)
        with pytest.raises(KeyboardInterrupt):
            noisy_argmax(values, scale=1.0, entropy=entropy)
        noisy_argmax(values, scale=1.0, entropy=entropy)
        given = b"".join(words for words in entropy.given if len(words) > 4096)
        blocks = [given[i : i + 16] for i in range(0, len(given), 16)]
        assert len(set(blocks)) == len(blocks)


def test_a_refused_release_draws_nothing() -> None:
    entropy = FailingEntropy(1, fail_at=1)  # any draw would raise KeyboardInterrupt
    for values, scale in (([], 1.0), ([0.0, float("nan")], 1.0), ([0.0], -1.0), ([[0.0]], 1.0)):
        with pytest.raises(ValueError, match="must"):
            noisy_argmax(values, scale=scale, entropy=entropy)
    assert SYSTEM_ENTROPY.private
