"""Bounds known before a run, against the exact law of short runs under two neighbours (THEORY §3)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp, ndtr

from dpselect import GaussianAboveThreshold, GaussianNoisyMax, QueryFamily
from dpselect.privacy.profiles import gaussian_delta
from dpselect.privacy.zhu_wang import zhu_wang_renyi

X, STEP = np.linspace(-9.0, 9.0, 1441, retstep=True)
WEIGHTS = np.exp(-0.5 * X * X) / math.sqrt(2.0 * math.pi) * STEP


def run_law(watcher: GaussianAboveThreshold, values: tuple[float, ...]) -> np.ndarray:
    """P(first ⊤ at question 1, 2, …, h) and P(only ⊥)."""
    silent, law = WEIGHTS.copy(), []
    for value in values:
        below = ndtr((watcher.threshold + watcher.sigma_threshold * X - value) / watcher.sigma_query)
        law.append(float((silent * (1.0 - below)).sum()))
        silent = silent * below
    return np.array([*law, float(silent.sum())])


def worst_delta(watcher: GaussianAboveThreshold, horizon: int, epsilon: float, *, monotone: bool) -> float:
    """The largest δ at ε over values in corners and neighbours that move each by ±Δ (all one way if monotone)."""
    low, high, delta = watcher.family.lower, watcher.family.upper, watcher.family.sensitivity
    found = 0.0
    for values in itertools.product((low, low + delta, high - delta, high, watcher.threshold), repeat=horizon):
        for moves in itertools.product((-delta, delta), repeat=horizon):
            others = tuple(value + move for value, move in zip(values, moves, strict=True))
            if min(others) < low or max(others) > high or (monotone and len(set(moves)) > 1):
                continue
            p, q = run_law(watcher, values), run_law(watcher, others)
            found = max(found, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
    return found


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("sigma_threshold", "sigma_query"), [(2.0, 0.15), (0.15, 2.0), (0.4, 0.4)])
def test_no_short_run_has_a_larger_delta_than_its_profile(
    monotone: bool, sigma_threshold: float, sigma_query: float
) -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=0.25, monotone=monotone)
    watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=sigma_threshold, sigma_query=sigma_query)
    for epsilon in (0.5, 1.0, 2.0, 4.0, 6.0):
        assert worst_delta(watcher, 2, epsilon, monotone=monotone) <= watcher.profile(epsilon, horizon=2) + 1e-15


def test_questions_that_move_against_each_other_need_both_moves_in_the_shift() -> None:
    """Where the threshold's noise is wide, two questions are compared with each other: the shift is above Δ/σ_Z."""
    family = QueryFamily(lower=0, upper=1, sensitivity=0.25)
    watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=2.0, sigma_query=0.15)
    epsilon = 9.0
    found = worst_delta(watcher, 2, epsilon, monotone=False)
    # One move per question would not be enough, by a factor of twenty.
    one_move = 0.25 * math.sqrt(1.0 / 2.0**2 + 1.0 / 0.15**2)
    assert 20 * 3 * gaussian_delta(epsilon, shift=one_move) < found <= watcher.profile(epsilon, horizon=2)


def test_no_noisy_max_of_three_has_a_larger_delta_than_its_profile() -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=0.25)
    picker = GaussianNoisyMax(family, sigma=0.3)

    def law(values: tuple[float, ...]) -> np.ndarray:
        return np.array(
            [
                float(
                    (WEIGHTS * np.prod([ndtr(X + (v - w) / 0.3) for j, w in enumerate(values) if j != i], axis=0)).sum()
                )
                for i, v in enumerate(values)
            ]
        )

    for epsilon in (0.5, 1.0, 2.0, 4.0):
        worst = 0.0
        for values in itertools.product((0.0, 0.25, 0.75, 1.0), repeat=3):
            for moves in itertools.product((-0.25, 0.25), repeat=3):
                others = tuple(value + move for value, move in zip(values, moves, strict=True))
                if min(others) >= 0.0 and max(others) <= 1.0:
                    p, q = law(values), law(others)
                    worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
                    assert np.abs(np.log(p / q)).max() <= picker.epsilon(candidates=3) + 1e-9
        assert worst <= picker.profile(epsilon, candidates=3) + 1e-15


@pytest.mark.parametrize(("sigma_threshold", "sigma_query"), [(0.2, 0.25), (0.2, 0.5), (0.1, 1.0)])
@pytest.mark.parametrize("alpha", [1.5, 8.0, 200.0])
def test_the_zhu_wang_bound_is_its_formula_at_the_best_gamma(
    sigma_threshold: float, sigma_query: float, alpha: float
) -> None:
    """γ/(γ-1)·αΔ²/(2σ_X²) + 2αΔ²/σ_Z² + log M_γ/(γ(α-1)), the moment and γ by sums and a search of their own."""
    delta, gap = 0.05, 0.3

    x = np.linspace(-12.0, 80.0, 20_001)
    tail = log_ndtr(-(sigma_threshold * x + gap) / sigma_query)

    def moment(gamma: float) -> float:
        return float(logsumexp(-0.5 * x * x - gamma * tail) + math.log((x[1] - x[0]) / math.sqrt(2.0 * math.pi)))

    def bound(gamma: float) -> float:
        return (
            gamma / (gamma - 1) * alpha * delta**2 / (2 * sigma_threshold**2)
            + 2 * alpha * delta**2 / sigma_query**2
            + max(moment(gamma), 0.0) / (gamma * (alpha - 1))
        )

    limit = (sigma_query / sigma_threshold) ** 2
    # Near the limit the moment's own grid would have to be longer; the best γ is not there.
    tried = 1 + (limit - 1) * 0.5 * (1 - np.cos(np.linspace(0, 0.9 * np.pi, 400)[1:]))
    best = min(bound(float(gamma)) for gamma in tried)
    stated = zhu_wang_renyi(
        alpha, sensitivity=delta, threshold_gap=gap, sigma_threshold=sigma_threshold, sigma_query=sigma_query
    )
    assert stated == pytest.approx(best, rel=1e-2)
