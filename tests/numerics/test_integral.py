"""The fast integral against the rigorous one, over the whole domain."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx

from dpselect.numerics import integral, normal
from dpselect.numerics.careful import careful_log_ratio
from dpselect.numerics.enclosure import enclose_log_integral, enclose_log_ratio
from dpselect.numerics.factors import Factors
from dpselect.numerics.integral import log_integral, log_ratio
from dpselect.privacy.above_threshold import certify_transcript, transcript_loss
from dpselect.privacy.noisy_max import certify_noisy_max, noisy_max_loss

SETS_PER_PART = 210
PARTS = 10


def random_noisy_max(rng):
    return {
        "sensitivity": 10 ** rng.uniform(-12, 0),
        "sigma": 10 ** rng.uniform(-3, 3),
        "candidates": np.floor(10 ** rng.uniform(0.31, 12)) + 1,
        "monotone": bool(rng.integers(2)),
    }


def random_transcript(rng):
    below = np.floor(10 ** rng.uniform(0, rng.choice([3, 12]))) - 1
    return {
        "sensitivity": 10 ** rng.uniform(-12, 0),
        "threshold": rng.uniform(-0.2, 1.2),
        "sigma_threshold": 10 ** rng.uniform(-3, 3),
        "sigma_query": 10 ** rng.uniform(-3, 3),
        "below": below,
        "above": float(rng.choice([0, 1, 1, np.floor(10 ** rng.uniform(0, 6))])) if below else 1.0,
        "monotone": bool(rng.integers(2)),
    }


@pytest.mark.parametrize("part", range(PARTS))
def test_fast_value_is_within_1e_10_of_the_enclosure_and_never_below_it(part):
    """2,100 parameter sets: counts to 1e12, c/σ from 1e-3 to 1e3, Δ/c from 1e-12 to 1; one by one and batched."""
    rng = np.random.default_rng([20241, part])
    batches = {}
    for index in range(SETS_PER_PART):
        if index % 3 == 0:
            case = random_noisy_max(rng)
            fast = noisy_max_loss(width=1.0, **case)
            proven = certify_noisy_max(lower=0.0, upper=1.0, **case)
        else:
            case = random_transcript(rng)
            fast = transcript_loss(lower=0.0, upper=1.0, **case)
            proven = certify_transcript(lower=0.0, upper=1.0, **case)
        upper = float(fast.upper)
        assert upper >= proven.lower, case
        assert upper <= proven.upper * (1 + 1e-10) + 1e-307, case
        batches.setdefault((index % 3 == 0, case["monotone"]), []).append((case, proven))
    for (noisy_max, monotone), members in batches.items():
        names = [name for name in members[0][0] if name != "monotone"]
        arrays = {name: np.array([case[name] for case, _ in members]) for name in names}
        loss = noisy_max_loss if noisy_max else transcript_loss
        extent = {"width": 1.0} if noisy_max else {"lower": 0.0, "upper": 1.0}
        uppers = loss(**extent, **arrays, monotone=monotone).upper
        for upper, (case, proven) in zip(uppers, members, strict=True):
            assert proven.lower <= upper <= proven.upper * (1 + 1e-10) + 1e-307, case


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


@pytest.mark.parametrize(
    ("powers", "slopes", "offsets", "shifts"),
    [
        ([364.0], [1.0], [-10.0], [0.02]),
        ([49.0, 1.0], [0.577, -0.577], [-1.2, -1.7], [3e-3, 3e-3]),
        ([1e9], [1.0], [-20.0], [0.4]),
        ([10.0, 10.0], [1.5, -1.5], [-4.0, -9.0], [0.1, 0.1]),
    ],
)
def test_quick_and_careful_rules_agree(powers, slopes, offsets, shifts):
    rows = [np.array([row]) for row in (powers, slopes, offsets, shifts)]
    careful = careful_log_ratio(Factors(*rows[:3]), rows[3])
    quick = log_ratio(powers, slopes, offsets, shifts)
    assert abs(quick.value - careful.value[0]) <= quick.error + careful.error[0]


def test_the_quick_rule_refuses_what_it_cannot_settle():
    """A cliff a million times sharper than the hill: the trapezoidal rule must not claim it."""
    rows = [np.array([[5.0]]), np.array([[1e6]]), np.array([[3e5]]), np.array([[10.0]])]
    with np.errstate(all="ignore"):
        value, error = integral._quick_log_ratio(rows)
    assert not error[0] <= 1e-11 * value[0]


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
    np.testing.assert_allclose(normal._scaled_tail(x), erfcx(x * np.sqrt(0.5)), rtol=2e-15)


def test_differences_of_log_cdf_keep_their_relative_accuracy():
    """Against 250 digits: y from -1e3 to 8, steps from 1e-15 to 30."""
    rng = np.random.default_rng(3)
    y = np.concatenate([-(10 ** rng.uniform(-2, 3, 150)), rng.uniform(0, 8, 50)])
    step = 10 ** rng.uniform(-15, 1.5, 200) * rng.choice([-1, 1], 200)
    found, bend = normal.log_cdf_step(y, step), normal.log_cdf_bend(y, step)
    with mpmath.workdps(250):
        for at, move, value, rest in zip(y, step, found, bend, strict=True):
            a, s = mpmath.mpf(float(at)), mpmath.mpf(float(move))
            exact = mpmath.log(mpmath.ncdf(a + s)) - mpmath.log(mpmath.ncdf(a))
            assert abs(float(value / exact - 1)) < 1e-13 * (1 + max(at + abs(move), 0.0) ** 2)
            tangent = s * mpmath.npdf(a) / mpmath.ncdf(a)
            assert abs(float(rest - (exact - tangent))) <= 1e-13 * float(abs(exact) + abs(tangent))
