"""The integer noise: ball arithmetic has the last word, and it agrees with the quick way wherever that is sure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

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
