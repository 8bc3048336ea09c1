"""The fast integral against the rigorous one, over the whole domain."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx

from dpselect.numerics import normal
from dpselect.numerics.enclosure import enclose_log_integral, enclose_log_ratio
from dpselect.numerics.integral import log_integral, log_ratio
from dpselect.privacy.noisy_max import certify_noisy_max, noisy_max_loss


def test_the_comparison_would_notice_an_error_of_1e_9():
    case = {"sensitivity": 1e-3, "sigma": 0.1, "candidates": 365}
    proven = certify_noisy_max(lower=0.0, upper=1.0, **case)
    value = float(noisy_max_loss(width=1.0, **case).upper)
    assert value * (1 - 1e-9) < proven.lower
    assert value * (1 + 1e-9) > proven.upper * (1 + 1e-10)


def test_log_integral_is_enclosed():
    rng = np.random.default_rng(5)
    for _ in range(60):
        powers = [float(np.floor(10 ** rng.uniform(0, 9))), float(rng.integers(0, 3))]
        slope, offsets = 10 ** rng.uniform(-2, 2), rng.uniform(-30, 5, 2)
        fast = log_integral(powers, [slope, -slope], offsets)
        proven = enclose_log_integral([int(p) for p in powers], [slope, -slope], list(map(float, offsets)))
        assert proven.lower - 1e-300 <= fast.value + fast.error
        assert fast.value - fast.error <= proven.upper + 1e-300
        assert fast.error <= 1e-10 * max(1.0, abs(float(fast.value)))


def test_small_losses_keep_their_digits():
    """Loss 1e-40: the gain lives twenty standard deviations from where the integrand does."""
    args = ([1.0], [1.0], [19.0], [1e-9])
    fast = log_ratio(*args)
    proven = enclose_log_ratio([1], *args[1:])
    assert 0 < float(fast.value) < 1e-40
    assert proven.lower <= float(fast.upper) <= proven.upper * (1 + 1e-10)


def test_losses_too_small_for_a_double_are_covered_not_zero():
    assert float(log_ratio([1.0], [1.0], [80.0], [1e-3]).upper) > 0.0


def test_losses_beyond_the_exponential_range_are_finite():
    loss = log_ratio([1e12], [1e-6], [-1.0], [1.0])
    assert np.isfinite(loss.value)
    assert loss.value > 1e10


counts = st.integers(0, 12).map(lambda power: float(10**power))


@settings(max_examples=60, deadline=None)
@given(
    count=counts,
    slope=st.floats(1e-3, 1e3),
    offset=st.floats(-50, 5),
    shift=st.floats(1e-12, 10.0),
    more=st.floats(1.0, 3.0),
)
def test_loss_grows_with_the_shift_and_the_count(count, slope, offset, shift, more):
    base = log_ratio([count], [slope], [offset], [shift])
    for other in (
        log_ratio([count], [slope], [offset], [shift * more]),
        log_ratio([count * 2], [slope], [offset], [shift]),
        log_ratio([count], [slope], [offset - 1.0], [shift]),
    ):
        assert other.value >= base.value * (1 - 1e-10)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_broadcasting_equals_looping(seed):
    rng = np.random.default_rng(seed)
    powers = np.floor(10 ** rng.uniform(0, 6, (4, 1, 2)))
    slopes = np.array([1.0, -1.0]) * 10 ** rng.uniform(-1, 1, (5, 1))
    offsets = rng.uniform(-20, 3, (5, 2))
    shifts = 10 ** rng.uniform(-9, 0, (4, 1, 2))
    whole = log_ratio(powers, slopes, offsets, shifts)
    assert whole.value.shape == (4, 5)
    for i in range(4):
        for j in range(5):
            one = log_ratio(powers[i, 0], slopes[j], offsets[j], shifts[i, 0])
            assert abs(one.value - whole.value[i, j]) <= one.error + whole.error[i, j]


def test_many_chunks_equal_one():
    sigma = np.linspace(0.05, 0.5, 9000)
    whole = noisy_max_loss(width=1, sensitivity=1e-3, sigma=sigma, candidates=365)
    part = noisy_max_loss(width=1, sensitivity=1e-3, sigma=sigma[8000:8010], candidates=365)
    np.testing.assert_allclose(whole.value[8000:8010], part.value, rtol=1e-13)


def test_the_polynomial_of_many_numbers_equals_erfcx():
    x = np.concatenate([np.linspace(0, 60, 4000), 10 ** np.linspace(0, 9, 1000)])
    np.testing.assert_allclose(normal.scaled_tail(x), erfcx(x * np.sqrt(0.5)), rtol=2e-15)
