"""The integer noise: ball arithmetic has the last word, and it agrees with the quick way wherever that is sure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpselect.errors import InvalidParameter
from dpselect.noise import discrete
from dpselect.noise.discrete import discrete_gaussian, discrete_laplace
from dpselect.noise.entropy import SeededEntropy

SCALES = [Fraction(1, 7), Fraction(1), Fraction(10, 3), Fraction(2**20 + 1, 3), Fraction(2**40)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", ["laplace", "gaussian"])
def test_ball_arithmetic_for_every_draw_gives_the_same_noise(
    sampler: str, scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw() -> list[int]:
        if sampler == "laplace":
            return discrete_laplace(300, scale=scale, entropy=SeededEntropy(11)).tolist()
        return discrete_gaussian(300, sigma=scale, entropy=SeededEntropy(11)).tolist()

    quick = draw()
    # Doubt everything: then every comparison is settled exactly, with the same random bits.
    monkeypatch.setattr(discrete, "_LOG_DOUBT", 4.0)
    monkeypatch.setattr(discrete, "_EXP_DOUBT", 4.0)
    assert draw() == quick


def test_a_word_that_does_not_decide_draws_more_bits() -> None:
    class Counting(SeededEntropy):
        asked = 0

        def bits(self, count: int, /) -> int:
            self.asked += 1
            return super().bits(count)

    entropy = Counting(1)
    # U starts with 64 zeros: −log U is somewhere above 44, so the floor needs more bits.
    assert discrete._geometric_exactly(0, Fraction(1), entropy) >= 44
    assert entropy.asked >= 1
    # U's first 64 bits agree with those of e^-1: undecided until more are drawn.
    word = int(Fraction(36787944117144232159552377016146086744581, 10**41) * 2**64)
    entropy = Counting(1)
    discrete._accept_exactly(word, Fraction(1), entropy)
    assert entropy.asked >= 1


def test_far_draws_stay_within_sixty_four_bits() -> None:
    entropy = SeededEntropy(1)
    assert discrete._geometric_exactly(1, Fraction(2**40), entropy) > 44 * 2**40
    noise = discrete_laplace(10_000, scale=Fraction(2**40), entropy=entropy)
    assert np.abs(noise).max() <= discrete.LARGEST_MAGNITUDE


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**41), 0.5, None])
def test_scales_outside_the_sampler_are_refused(scale: Any) -> None:
    with pytest.raises(InvalidParameter):
        discrete_laplace(1, scale=scale)
    with pytest.raises(InvalidParameter):
        discrete_gaussian(1, sigma=scale)


def test_tiny_scales_give_zeros() -> None:
    assert not discrete_gaussian(1000, sigma=Fraction(1, 100)).any()
    assert not discrete_laplace(1000, scale=Fraction(1, 1000)).any()


class Given(SeededEntropy):
    """Hands out words that were chosen, and counts how often more bits were asked for."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(1)
        self.given, self.asked = np.array(words, dtype=np.uint64), 0

    def words(self, count: int, /, *, dtype: Any) -> Any:
        assert (count, dtype) == (len(self.given), np.uint64)
        return self.given

    def bits(self, count: int, /) -> int:
        self.asked += 1
        return super().bits(count)


def edge_of(exponent: Fraction) -> int:
    """The 64 bits that e^(−exponent) begins with."""
    with mpmath.workdps(60):
        chance = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        return int(mpmath.floor(chance * 2**64))


@pytest.mark.parametrize("scale", [Fraction(1000, 3), Fraction(2**20 + 1, 3), Fraction(2**33)])
def test_words_at_the_edge_of_a_magnitude_are_settled_exactly(scale: Fraction) -> None:
    """U lies next to e^(−k/t), where the logarithm in doubles falls on either side of k."""
    words, exact = [], []
    for k in (int(scale * Fraction(share, 100)) for share in range(1, 600)):
        edge = edge_of(k / scale)
        words += [edge - 2, edge + 2]
        exact += [k, k - 1]
    assert discrete._geometric(len(words), scale, Given(words)).tolist() == exact


def test_chances_that_doubles_cannot_tell_apart_are_settled_exactly() -> None:
    magnitudes, words, exact = [], [], []
    for magnitude in range(1, 400):
        edge = edge_of(Fraction(magnitude**2, 2 * 100**2))
        magnitudes += [magnitude] * 2
        words += [edge - 2, edge + 2]
        exact += [True, False]
    found = discrete._accept(np.array(magnitudes), Fraction(0), Fraction(100), Given(words))
    assert found.tolist() == exact


def test_a_word_with_few_digits_draws_more_of_them() -> None:
    """The 64 bits of a small word leave thousands of magnitudes open; a double would choose one of them."""
    entropy = Given([5, 1000])
    found = discrete._geometric(2, Fraction(2**30), entropy)
    assert entropy.asked >= 2
    for word, magnitude in zip((5, 1000), found.tolist(), strict=True):
        least, most = (2.0**30 * (64 * np.log(2.0) - np.log(end)) for end in (word + 1, word))
        assert least - 1 <= magnitude <= most
