"""Known attacks on noise in floating point, which work on the plain line and not on the exact release."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, norm

from dpselect.noise.argmax import noisy_argmax

# Two counts near 2^60, where doubles lie 256 apart. One more person raises both by 1; the noise is ten times that.
WITHOUT = np.array([2**60 + 127, 2**60 + 128])
WITH = WITHOUT + 1
SIGMA = 10.0
#: How often the second candidate should win: it is ahead by 1 in both cases.
TRUE_SHARE = float(norm.cdf(1 / (SIGMA * np.sqrt(2))))


def share_of_the_second(choose: Callable[[NDArray[np.int64]], int], values: NDArray[np.int64]) -> int:
    return sum(choose(values) for _ in range(4000))


def test_rounding_tells_neighbours_apart_on_plain_noise() -> None:
    rng = np.random.default_rng(1)

    def plain(values: NDArray[np.int64]) -> int:
        return int(np.argmax(values + rng.normal(0, SIGMA, len(values))))

    # Without the person both counts round to 2^60 and swallow the noise; with them the second rounds up.
    assert share_of_the_second(plain, WITHOUT) == 0
    assert share_of_the_second(plain, WITH) == 4000


def test_rounding_tells_nothing_on_the_exact_release() -> None:
    for values in (WITHOUT, WITH):
        wins = share_of_the_second(lambda v: noisy_argmax(v, scale=SIGMA), values)
        assert binomtest(wins, 4000, TRUE_SHARE).pvalue > 1e-6


def low_bits_give_away_zero(outputs: NDArray[np.float64]) -> int:
    """Outputs in (0, 1/16) that are no multiple of 2^-53: 1 + noise, rounded, can never be one."""
    small = outputs[(outputs > 0) & (outputs < 1 / 16)]
    return int((small * 2.0**53 != np.floor(small * 2.0**53)).sum())


def test_low_bits_tell_neighbours_apart_on_plain_noise() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 1, 200_000)
    assert low_bits_give_away_zero(0.0 + noise) > 3000
    assert low_bits_give_away_zero(1.0 + noise) == 0


def test_ties_do_not_favour_the_first_candidate() -> None:
    rng = np.random.default_rng(3)
    equal = np.full(2, 2.0**60)
    plain = sum(int(np.argmax(equal + rng.normal(0, 1, 2))) for _ in range(4000))
    exact = sum(noisy_argmax(equal, scale=1.0) for _ in range(4000))
    assert plain == 0
    assert binomtest(exact, 4000, 0.5).pvalue > 1e-6
