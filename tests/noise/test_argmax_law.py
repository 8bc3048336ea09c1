"""Choices follow the law of real-valued noise; a scale that is 2% off does not pass."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import chi2, expon, gumbel_r, laplace, norm

from dpselect.noise import argmax
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import SYSTEM_ENTROPY, SeededEntropy
from dpselect.noise.quantiles import EXPONENTIAL, GUMBEL, LAPLACE, NORMAL, Law

TRUE_LAWS = {NORMAL: norm, LAPLACE: laplace, EXPONENTIAL: expon, GUMBEL: gumbel_r}
# Gaps of about two, where the shares react most to the scale of the noise.
VALUES = np.array([0.0, 0.4, 2.4])


def winning_probabilities(values: NDArray[np.float64], law: Law) -> NDArray[np.float64]:
    """P(values[i] + x_i is the largest) for unit scale, by quadrature of the density."""
    true = TRUE_LAWS[law]

    def density(x: float, i: int) -> float:
        others = np.delete(values, i)
        return float(true.pdf(x - values[i]) * np.prod(true.cdf(x - others)))

    kinks = sorted(set(values.tolist()))
    edges = [-40.0, *kinks, 60.0]
    pieces = list(pairwise(edges))
    return np.array([sum(quad(density, a, b, args=(i,), limit=200)[0] for a, b in pieces) for i in range(len(values))])


def p_value(law: Law, *, releases: int, scale: float, seed: int) -> float:
    probabilities = winning_probabilities(VALUES, law)
    assert abs(probabilities.sum() - 1) < 1e-7
    entropy = SeededEntropy(seed)
    chosen = [noisy_argmax(VALUES, scale=scale, law=law, entropy=entropy) for _ in range(releases)]
    expected = releases * probabilities
    statistic = ((np.bincount(chosen, minlength=len(VALUES)) - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(VALUES) - 1))


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_choices_follow_the_law(law: Law) -> None:
    assert p_value(law, releases=20_000, scale=1.0, seed=1) > 1e-6


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_choices_made_in_arrays_follow_the_law(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(argmax, "_FEW", 0)
    assert p_value(law, releases=20_000, scale=1.0, seed=1) > 1e-6
    assert p_value(law, releases=20_000, scale=0.8, seed=1) < 1e-6


@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_a_scale_off_by_a_fifth_fails_the_law_test(law: Law) -> None:
    assert p_value(law, releases=20_000, scale=0.8, seed=1) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("law", TRUE_LAWS, ids=lambda law: law.name)
def test_many_choices_follow_the_law_and_a_scale_off_by_two_percent_fails(law: Law) -> None:
    assert p_value(law, releases=300_000, scale=1.0, seed=2) > 1e-6
    assert p_value(law, releases=300_000, scale=0.98, seed=2) < 1e-6


def test_equal_candidates_win_equally_often() -> None:
    chosen = [noisy_argmax(np.full(5, 2.0**60), scale=1e-3) for _ in range(20_000)]
    statistic = ((np.bincount(chosen, minlength=5) - 4000.0) ** 2 / 4000.0).sum()
    assert chi2.sf(statistic, 4) > 1e-6


def test_many_candidates_win_equally_often_across_cells_tails_and_blocks() -> None:
    chosen = [noisy_argmax(np.zeros(70_000), scale=1.0, entropy=SYSTEM_ENTROPY) // 7000 for _ in range(2000)]
    statistic = ((np.bincount(chosen, minlength=10) - 200.0) ** 2 / 200.0).sum()
    assert chi2.sf(statistic, 9) > 1e-6
