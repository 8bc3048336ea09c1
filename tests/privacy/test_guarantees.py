"""Guarantees known before a run: profiles, Rényi bounds, conversions, calibration."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from dpselect.mechanisms.classical import ExponentialMechanism
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.conversions import (
    ORDERS,
    pure_renyi,
    pure_to_gaussian,
    renyi_to_approximate,
    renyi_to_probabilistic,
)
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.noisy_max import noisy_max_epsilon
from dpselect.privacy.profiles import gaussian_delta, selection_epsilon, total_shift
from dpselect.privacy.zhu_wang import log_negative_moment, zhu_wang_renyi

UNIT = QueryFamily(lower=0, upper=1, sensitivity=1e-3)


def exact_profile(epsilon, shift):
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(shift)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@settings(max_examples=200, deadline=None)
@given(epsilon=st.floats(0, 40), shift=st.floats(1e-8, 20))
def test_the_gaussian_profile_is_rounded_up_and_tight(epsilon, shift):
    truth = exact_profile(epsilon, shift)
    found = gaussian_delta(epsilon, shift=shift)
    assert found >= truth
    assert found <= float(truth) * (1 + 1e-9) + 2e-300


def test_the_honest_comparison_of_theory_section_3():
    """δ = 1e-5, Δ = 1e-3, d = 365, σ = .1: pure .245, Δ√d baseline .690, profile .087."""
    picker = GaussianNoisyMax(UNIT, 0.1)
    assert round(picker.epsilon(365), 3) == 0.245
    assert round(selection_epsilon(1e-5, shift=1e-3 * math.sqrt(365) / 0.1), 3) == 0.690
    assert round(picker.approximate_epsilon(1e-5, 365), 3) == 0.087


def test_profile_epsilon_ends_on_the_private_side():
    for shift in (1e-6, 0.02, 1.0, 30.0):
        for outputs in (1, 365, 10**9):
            epsilon = selection_epsilon(1e-6, shift=shift, outputs=outputs)
            assert outputs * gaussian_delta(epsilon, shift=shift) <= 1e-6
            smaller = outputs * gaussian_delta(epsilon * (1 - 1e-6), shift=shift)
            assert smaller > 1e-6 or epsilon == 0.0


def noisy_max_law(values, sigma):
    x = np.linspace(-10, 10, 3001)
    mass = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    laws = []
    for winner in range(len(values)):
        part = mass
        for other in range(len(values)):
            if other != winner:
                part = part * ndtr(x + (values[winner] - values[other]) / sigma)
        laws.append(part.sum())
    return np.array(laws)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_neighbouring_pair_exceeds_the_noisy_max_profile(data):
    d = data.draw(st.integers(2, 5))
    monotone = data.draw(st.booleans())
    delta, sigma, epsilon = data.draw(st.tuples(st.floats(0.01, 0.5), st.floats(0.1, 1), st.floats(0, 2)))
    first = np.array(data.draw(st.lists(st.floats(0, 1), min_size=d, max_size=d)))
    moves = np.array(data.draw(st.lists(st.floats(0 if monotone else -1, 1), min_size=d, max_size=d)))
    second = np.clip(first + delta * moves, 0, 1)
    picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=monotone), sigma)
    laws = noisy_max_law(first, sigma), noisy_max_law(second, sigma)
    for one, other in (laws, laws[::-1]):
        assert np.maximum(one - math.exp(epsilon) * other, 0).sum() <= picker.profile(epsilon, d) + 1e-9


def run_law(queries, watcher):
    """Probabilities of stopping at each step, and of never stopping."""
    x = np.linspace(-10, 10, 3001)
    left = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    law = []
    for query in queries:
        gap = (watcher.threshold + watcher.sigma_threshold * x - query) / watcher.sigma_query
        law.append((left * ndtr(-gap)).sum())
        left = left * ndtr(gap)
    return np.array([*law, left.sum()])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_neighbouring_pair_exceeds_the_above_threshold_guarantees(data):
    h = data.draw(st.integers(1, 5))
    monotone = data.draw(st.booleans())
    delta, epsilon = data.draw(st.tuples(st.floats(0.01, 0.4), st.floats(0, 2)))
    first = np.array(data.draw(st.lists(st.floats(0, 1), min_size=h, max_size=h)))
    moves = np.array(data.draw(st.lists(st.floats(0 if monotone else -1, 1), min_size=h, max_size=h)))
    second = np.clip(first + delta * moves, 0, 1)
    watcher = GaussianAboveThreshold(
        QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=monotone),
        threshold=0.6,
        sigma_threshold=0.25,
        sigma_query=0.5,
    )
    laws = run_law(first, watcher), run_law(second, watcher)
    for one, other in (laws, laws[::-1]):
        assert np.max(np.log(one / other)) <= watcher.epsilon(h) + 1e-9
        assert np.maximum(one - math.exp(epsilon) * other, 0).sum() <= watcher.profile(epsilon, h) + 1e-9
        for alpha in (1.5, 4.0, 20.0):
            divergence = math.log((one**alpha * other ** (1 - alpha)).sum()) / (alpha - 1)
            assert divergence <= watcher.renyi(alpha, h) + 1e-9


def test_the_moment_is_right():
    for gamma, slope, gap in ((2.0, 0.5, 1.0), (1.2, 0.8, 2.0), (5.0, 0.3, 4.0)):
        x = np.linspace(-60, 60, 200_001)
        value = np.sum(np.exp(-x * x / 2 - gamma * log_ndtr(-(slope * x + gap))) * (x[1] - x[0]))
        expected = math.log(value / math.sqrt(2 * math.pi))
        assert log_negative_moment(gamma, -slope, -gap) == pytest.approx(expected, rel=1e-9)


def test_zhu_wang_needs_the_query_noise_to_be_the_larger():
    setting = {"sensitivity": 1e-3, "threshold_gap": 0.5, "sigma_threshold": 0.2}
    assert zhu_wang_renyi(3.0, sigma_query=0.2, **setting) == math.inf
    assert math.isfinite(zhu_wang_renyi(3.0, sigma_query=0.21, **setting))


def test_probabilistic_conversion_costs_more_than_approximate():
    """THEORY §3: UCI, σ_X = .09: .0231 (probabilistic) against .0192 (approximate); not interchangeable."""
    setting = {"sensitivity": 1 / 6946, "threshold_gap": 0.575, "sigma_threshold": 0.09}
    curve = zhu_wang_renyi(ORDERS, sigma_query=0.09 * math.sqrt(3), **setting)
    probabilistic = renyi_to_probabilistic(ORDERS, curve, delta=1 / 6946)
    approximate = renyi_to_approximate(ORDERS, curve, delta=1 / 6946)
    assert (round(probabilistic, 4), round(approximate, 4)) == (0.0231, 0.0192)


def test_gaussian_renyi_converts_to_a_valid_pair():
    """A Gaussian mechanism with μ = 1: the conversion stays above the exact profile's ε."""
    curve = ORDERS / 2
    exact = selection_epsilon(1e-5, shift=1.0)
    approximate = renyi_to_approximate(ORDERS, curve, delta=1e-5)
    assert exact < approximate < renyi_to_probabilistic(ORDERS, curve, delta=1e-5)
    assert approximate < exact * 1.1


@settings(max_examples=20, deadline=None)
@given(
    epsilon=st.floats(1e-3, 20),
    delta=st.floats(1e-6, 0.5),
    candidates=st.integers(2, 10**9),
    monotone=st.booleans(),
)
def test_calibrated_noise_is_the_smallest_on_the_private_side(epsilon, delta, candidates, monotone):
    family = QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=monotone)
    picker = GaussianNoisyMax.calibrated(family, candidates=candidates, epsilon=epsilon)
    assert picker.epsilon(candidates) <= epsilon
    assert GaussianNoisyMax(family, picker.sigma * (1 - 1e-9)).epsilon(candidates) > epsilon


@pytest.mark.parametrize("target", [{"horizon": 50}, {"below": 20, "above": 3}, {"below": 10}])
def test_calibrated_watcher_is_the_smallest_on_the_private_side(target):
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    watcher = GaussianAboveThreshold.calibrated(family, threshold=0.6, epsilon=0.05, ratio=1.3, **target)
    assert watcher.sigma_query == pytest.approx(1.3 * watcher.sigma_threshold)

    def cost(which):
        return which.epsilon(**target) if "horizon" in target else which.loss(**target)

    smaller = GaussianAboveThreshold(
        family,
        threshold=0.6,
        sigma_threshold=watcher.sigma_threshold * (1 - 1e-9),
        sigma_query=watcher.sigma_query * (1 - 1e-9),
    )
    assert cost(watcher) <= 0.05 < cost(smaller)


@pytest.mark.parametrize(
    ("epsilon", "shift"),
    [
        (112005587644.25198, 473296.41111324576),
        (4592335380.527004, 95829.7162657512),
        (6248915313.25183, 111788.395710241),
        (2189636073.720106, 66168.51134598049),
    ],
)
def test_profiles_of_enormous_shifts_that_once_fell_below(epsilon, shift):
    """ε/μ and μ/2 nearly cancel there. With g = ε/μ - μ/2, δ = Φ(-g) - φ(g)·R(g + μ), and R(x) < 1/x."""
    with mpmath.workdps(60):
        gap = mpmath.mpf(epsilon) / shift - mpmath.mpf(shift) / 2
        least = mpmath.ncdf(-gap) - mpmath.npdf(gap) / (gap + shift)
        assert least <= gaussian_delta(epsilon, shift=shift) <= least * (1 + 1e-8)


def test_conversion_keeps_its_digits_at_orders_next_to_one():
    """log((α - 1)/α) from 1/α would be off by 2^-53/(α - 1)."""
    for less in (1e-3, 1e-8, 1e-12):
        alpha = 1.0 + less
        with mpmath.workdps(60):
            order = mpmath.mpf(alpha)
            # A δ just below 1/α, so that the result is near 1 and little covers the rounding.
            delta = float(1 / order - (1 + mpmath.log(order / (order - 1))) * (order - 1) / order)
            truth = mpmath.log((order - 1) / order) - (mpmath.log(mpmath.mpf(delta)) + mpmath.log(order)) / (order - 1)
        found = renyi_to_approximate(alpha, 0.0, delta=delta)
        assert truth <= found <= float(truth) + 1e-3


UNITS = (-1000, -560, -530, -500, 500, 900)


def stated(power):
    """Everything the Gaussian mechanisms state, of one setting written in units of 2^-power."""
    family = QueryFamily(
        **{name: math.ldexp(x, power) for name, x in (("lower", 0.0), ("upper", 1.0), ("sensitivity", 1e-3))}
    )
    one_sigma, other = math.ldexp(0.1, power), math.ldexp(0.2, power)
    picker = GaussianNoisyMax(family, one_sigma)
    watcher = GaussianAboveThreshold(
        family, threshold=math.ldexp(0.6, power), sigma_threshold=one_sigma, sigma_query=other
    )
    return [
        picker.epsilon(365),
        picker.profile(1e-2, 365),
        picker.approximate_epsilon(1e-5, 365),
        picker.renyi(8.0, 365),
        watcher.loss(9, 1),
        watcher.profile(1e-2, 50),
        watcher.approximate_epsilon(1e-5, 50),
        watcher.approximate_epsilon(1e-5),
        watcher.probabilistic_epsilon(1e-5),
        watcher.renyi(8.0),
        watcher.renyi(8.0, 50),
    ]


@pytest.mark.parametrize("power", UNITS)
def test_the_unit_of_the_values_changes_no_bound(power):
    """Squares of what is given leave the doubles long before it does: δ came out as 0, ε at δ as 0 or NaN."""
    for found, usual in zip(stated(power), stated(0), strict=True):
        assert found == pytest.approx(usual, rel=1e-9, abs=0.0)


def test_what_moves_at_all_has_a_delta_a_divergence_and_a_price():
    assert 0.0 < float(total_shift((1e-200, 1e200))) < 1e-300
    assert float(total_shift((0.0, 1.0))) == 0.0
    assert GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-300), 1e200).profile(0.0, 2) > 0.0
    for epsilon in (5e-324, 1e-300, 1e-170):
        assert pure_renyi(2.0, epsilon) > 0.0
        assert pure_to_gaussian(epsilon) > epsilon
    assert pure_renyi(2.0, 0.0) == 0.0 == pure_to_gaussian(0.0)
    assert ExponentialMechanism(QueryFamily(lower=0, upper=1, sensitivity=5e-324), 1.5).epsilon(3) > 0.0


def test_extreme_inputs_give_bounds_without_warnings():
    """Every warning is an error here. What cannot be had is infinite, which is safe."""
    bound = zhu_wang_renyi(1e150, sensitivity=1.0, threshold_gap=1e16, sigma_threshold=1.0, sigma_query=1e8)
    assert bound > 0.5e150
    assert zhu_wang_renyi(1e300, sensitivity=1e200, threshold_gap=1.0, sigma_threshold=1.0, sigma_query=2.0) == math.inf
    assert selection_epsilon(1e-5, shift=[1e200, 1.0], outputs=3)[0] == math.inf
    rng = np.random.default_rng(8)
    for scale in (3, 30, 300):
        width, change, noise, spread, line = 10 ** rng.uniform(-scale, scale, (5, 40))
        many = np.floor(10 ** rng.uniform(0.5, 15, 40))
        assert (noisy_max_epsilon(width=width, sensitivity=change, sigma=noise, candidates=many) >= 0).all()
        setting = {"lower": 0.0, "upper": width, "sensitivity": change, "threshold": line, "below": many, "above": 1.0}
        assert (transcript_epsilon(**setting, sigma_threshold=spread, sigma_query=noise) >= 0).all()
