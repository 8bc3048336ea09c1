"""The enclosure holds the truth: published digits, an independent integrator, extremes, and controls that fail."""

from __future__ import annotations

import contextlib
import math
import random
import threading
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.numerics.enclosure import Enclosure, Exact, enclose_log_integral, enclose_log_ratio


def noisy_max(candidates: int, sigma: Fraction, sensitivity: Fraction, *, tolerance: float = 1e-12) -> Enclosure:
    return enclose_log_ratio([candidates - 1], [1], [-1 / sigma], [2 * sensitivity / sigma], tolerance=tolerance)


def over_root_three(value: Fraction) -> Exact:
    return lambda: arb(value.numerator) / value.denominator / arb(3).sqrt()


def above_threshold(
    step: int, sigma: Fraction, threshold: Fraction, *, upper: Fraction = Fraction(1), top_sign: int = -1
) -> Enclosure:
    """σ_X = sigma, σ_Z = √3·sigma, range [0, 1], Δ = 1e-3; the last two arguments allow the known slips."""
    shift = over_root_three(Fraction(1, 1000) / sigma)
    return enclose_log_ratio(
        [step - 1, 1],
        [over_root_three(Fraction(1)), over_root_three(Fraction(top_sign))],
        [over_root_three((threshold - upper) / sigma), over_root_three(-threshold / sigma)],
        [shift, shift],
    )


# THEORY §6: [0, 1], Δ = 1e-3, five digits.
NOISY_MAX = {
    (16, "0.1"): 0.20405,
    (95, "0.1"): 0.23183,
    (1024, "0.1"): 0.25323,
    (16, "0.3"): 0.02921,
    (95, "0.3"): 0.03589,
    (1024, "0.3"): 0.04194,
    (16, "0.5"): 0.01315,
    (95, "0.5"): 0.01677,
    (1024, "0.5"): 0.02021,
}
ABOVE_THRESHOLD = {
    (3, "0.2", "0.5"): 0.01564,
    (10, "0.2", "0.5"): 0.03051,
    (50, "0.2", "0.5"): 0.04693,
    (3, "0.3", "0.75"): 0.00797,
    (10, "0.3", "0.75"): 0.01522,
    (50, "0.3", "0.75"): 0.02418,
}


@pytest.mark.parametrize(("case", "expected"), NOISY_MAX.items())
def test_noisy_max_reference_values(case: tuple[int, str], expected: float) -> None:
    candidates, sigma = case
    epsilon = noisy_max(candidates, Fraction(sigma), Fraction(1, 1000))
    assert round(epsilon.lower, 5) == round(epsilon.upper, 5) == expected
    assert epsilon.width <= 1e-12 * epsilon.lower


@pytest.mark.parametrize(("case", "expected"), ABOVE_THRESHOLD.items())
def test_above_threshold_reference_values(case: tuple[int, str, str], expected: float) -> None:
    step, sigma, threshold = case
    epsilon = above_threshold(step, Fraction(sigma), Fraction(threshold))
    assert round(epsilon.lower, 5) == round(epsilon.upper, 5) == expected
    assert epsilon.width <= 1e-12 * epsilon.lower


def test_twenty_digit_reference_value() -> None:
    truth = Fraction("0.010788385236438305946")
    epsilon = noisy_max(365, Fraction(1, 5), Fraction(1, 6946))
    assert truth in epsilon
    assert epsilon.width <= 1e-12 * epsilon.lower
    assert truth + Fraction(1, 10**13) not in epsilon
    assert truth in noisy_max(365, Fraction(1, 5), Fraction(1, 6946), tolerance=1e-15)


@pytest.mark.parametrize(("sigma", "candidates", "three_digits"), [("0.1", 365, 0.245), ("0.05", 365, 0.878)])
def test_the_peaks_a_naive_integrator_misses(sigma: str, candidates: int, three_digits: float) -> None:
    assert round(noisy_max(candidates, Fraction(sigma), Fraction(1, 1000)).midpoint, 3) == three_digits


def test_the_printed_slips_fall_outside() -> None:
    # THEORY §2: for [1, 2] a printed b − a in place of b gives .0102; elsewhere a + stands before the noise of ⊤.
    truth = above_threshold(10, Fraction("0.2"), Fraction("0.5"))
    slipped = above_threshold(10, Fraction("0.2"), Fraction("0.5"), top_sign=1)
    shorter = above_threshold(10, Fraction("0.2"), Fraction("0.5"), upper=Fraction(0))
    assert round(truth.midpoint, 4) == 0.0305
    assert round(shorter.midpoint, 4) == 0.0102
    assert slipped.midpoint not in truth
    assert shorter.midpoint not in truth
    assert truth.midpoint not in slipped
    assert truth.midpoint not in shorter


def reference_log_integral(counts: list[int], slopes: list[Fraction], offsets: list[Fraction]) -> mpmath.mpf:
    """log J by mpmath with the peak bracketed: ternary search, then the fall of the log integrand on each side."""
    slopes_mp = [mpmath.mpf(s.numerator) / s.denominator for s in slopes]
    offsets_mp = [mpmath.mpf(o.numerator) / o.denominator for o in offsets]

    def log_integrand(x: mpmath.mpf) -> mpmath.mpf:
        total = -x * x / 2
        for count, slope, offset in zip(counts, slopes_mp, offsets_mp, strict=True):
            y = slope * x + offset
            above = mpmath.erfc(abs(y) / mpmath.sqrt(2)) / 2
            total += count * (mpmath.log1p(-above) if y > 0 else mpmath.log(above))
        return total

    low, high = mpmath.mpf(-2000), mpmath.mpf(2000)
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if log_integrand(left) < log_integrand(right) else (low, right)
    peak = (low + high) / 2
    top = log_integrand(peak)

    def fallen(side: int) -> mpmath.mpf:
        near, far = mpmath.mpf(0), mpmath.mpf(1)
        while log_integrand(peak + side * far) > top - 90:
            far *= 2
        for _ in range(12):
            middle = (near + far) / 2
            near, far = (middle, far) if log_integrand(peak + side * middle) > top - 90 else (near, middle)
        return peak + side * far

    start, end = fallen(-1), fallen(1)
    pieces = [start + (peak - start) * k / 6 for k in range(6)] + [peak + (end - peak) * k / 6 for k in range(7)]
    mass = mpmath.quad(lambda x: mpmath.exp(log_integrand(x) - top), pieces, maxdegree=7)
    return top + mpmath.log(mass) - mpmath.log(2 * mpmath.pi) / 2


def random_case(seed: int) -> tuple[list[int], list[Fraction], list[Fraction], list[Fraction]]:
    draw = random.Random(seed)
    sigma = Fraction(10 ** draw.uniform(-2, 1))
    ratio = Fraction(10 ** draw.uniform(-1, 1)) if seed % 2 else Fraction(1)
    threshold = Fraction(draw.uniform(-0.2, 1.2))
    shift = Fraction(10 ** draw.uniform(-5, 0)) / (sigma / ratio)
    counts = [int(10 ** draw.uniform(0, 9)), draw.randrange(1, 4)]
    slopes, offsets = [ratio, -ratio], [ratio * (threshold - 1) / sigma, -ratio * threshold / sigma]
    if seed % 2:
        return counts, slopes, offsets, [shift, shift]
    return counts[:1], slopes[:1], [-1 / sigma], [shift]


@pytest.mark.parametrize("seed", range(20))
def test_an_independent_integrator_agrees(seed: int) -> None:
    counts, slopes, offsets, shifts = random_case(seed)
    with mpmath.workdps(32):
        before = reference_log_integral(counts, slopes, offsets)
        shifted = [offset + shift for offset, shift in zip(offsets, shifts, strict=True)]
        after = reference_log_integral(counts, slopes, shifted)
        ratio = enclose_log_ratio(counts, slopes, offsets, shifts)
        whole = enclose_log_integral(counts, slopes, offsets)
        # The reference has 30 digits of log J, fewer of the difference: allow it that much and no more.
        slack = mpmath.mpf(10) ** -22 * max(1, abs(before))
        assert ratio.lower - slack <= after - before <= ratio.upper + slack
        assert whole.lower - slack <= before <= whole.upper + slack
        assert ratio.width <= 1e-12 * ratio.lower
        assert slack < ratio.lower * 1e-12


def test_looser_enclosures_contain_tighter_ones() -> None:
    for seed in range(8):
        case = random_case(seed)
        rough, middling, sharp = (enclose_log_ratio(*case, tolerance=t) for t in (1e-4, 1e-8, 1e-14))
        assert rough.lower <= middling.lower <= sharp.lower <= sharp.upper <= middling.upper <= rough.upper
        assert sharp.width <= 1e-14 * sharp.lower


EXTREMES = {
    "a trillion candidates": ([10**12], [1], [-10], [Fraction(1, 10**6)]),
    "a trillion candidates, little noise": ([10**12], [1], [-1000], [Fraction(1, 10**6)]),
    "a trillion candidates, much noise, a tiny shift": ([10**12], [1], [Fraction(-1, 1000)], [1e-15]),
    "a shift across everything": ([10**12], [1], [-1000], [1000]),
    "a growth far from the peak": ([1], [1], [20], [1e-3]),
    "a cliff": ([5], [10**6], [-1000], [1]),
    "two cliffs": ([5, 1], [10**6, -(10**6)], [-1000, -1000], [1e-15, 1e-15]),
    "flat slopes": ([10**12, 1], [1e-6, -1e-6], [-1000, -1000], [1e-15, 1e-15]),
    "a peak at half a billion": ([10**12], [1e-6], [-1000], [1000]),
    "two bumps": ([3, 2], [1, -1], [15, 12], [1e-3, 3]),
    "a trillion on both sides": ([10**12, 10**12], [1000, -1000], [-1, -1], [1e-3, 1e-3]),
    "constant factors": ([7, 3], [0, 1], [-3, -2], [1e-9, 0]),
    "a shift of 1e-300": ([364], [1], [-5], [1e-300]),
}


@pytest.mark.parametrize("case", EXTREMES.values(), ids=EXTREMES)
def test_extremes_are_enclosed_tightly(
    case: tuple[list[int], list[Exact], list[Exact], list[Exact]],
) -> None:
    epsilon = enclose_log_ratio(*case)
    assert 0 < epsilon.lower <= epsilon.upper < math.inf
    assert epsilon.width <= 1e-12 * epsilon.lower
    whole = enclose_log_integral(*case[:3])
    assert whole.lower <= whole.upper < 0
    assert whole.width <= 1e-12 * -whole.upper


def test_closed_forms() -> None:
    # One factor: J = Φ(offset/√(1 + slope²)).
    for slope, offset, shift in [(1, -1, 0.5), (10**6, 3, 1), (1e-6, -30, 1e-9), (2, 40, 1e-3), (1, -900, 700)]:
        with mpmath.workdps(900):  # 1 − Φ(18) still has 700 digits beside 1
            scale = mpmath.sqrt(2 * (1 + mpmath.mpf(slope) ** 2))
            start, end = -mpmath.mpf(offset) / scale, -(mpmath.mpf(offset) + mpmath.mpf(shift)) / scale
            ratio = mpmath.log(mpmath.erfc(end) / mpmath.erfc(start))
            whole = mpmath.log(mpmath.erfc(start) / 2)
            assert_contains(enclose_log_ratio([1], [slope], [offset], [shift]), ratio)
            assert_contains(enclose_log_integral([1], [slope], [offset]), whole)
    # The largest of d + 1 like normals is each of them equally often.
    for count in (1, 2, 9, 10**6, 10**12):
        with mpmath.workdps(40):
            assert_contains(enclose_log_integral([count], [1], [0]), -mpmath.log(count + 1))


def assert_contains(enclosure: Enclosure, value: mpmath.mpf) -> None:
    assert enclosure.lower <= value <= enclosure.upper
    assert enclosure.width <= 1e-12 * abs(enclosure.midpoint)


def test_what_a_double_cannot_hold_is_enclosed_by_zero_and_the_smallest_double() -> None:
    assert enclose_log_ratio([1], [1], [1000], [0.5]) == Enclosure(0.0, 5e-324)


def test_nothing_shifted_costs_exactly_nothing() -> None:
    assert enclose_log_ratio([5], [1], [-1], [0]) == Enclosure(0.0, 0.0)
    assert enclose_log_ratio([0], [1], [-1], [1]) == Enclosure(0.0, 0.0)
    assert enclose_log_integral([], [], []) == Enclosure(0.0, 0.0)


def test_exact_quotients_matter() -> None:
    sigma_threshold, sigma_query = 0.09, 0.156
    exact = Fraction(sigma_threshold) / Fraction(sigma_query)
    rounded = sigma_threshold / sigma_query
    assert exact != Fraction(rounded)
    arguments = ([10**9], [-5], [1e-3])
    sharp, blunt = (
        enclose_log_ratio(arguments[0], [slope], arguments[1], arguments[2], tolerance=1e-15)
        for slope in (exact, rounded)
    )
    assert sharp != blunt


small_case = st.tuples(
    st.integers(1, 10**12),
    st.floats(-12.0, 12.0),
    st.floats(1e-6, 3.0),
    st.floats(1e-3, 1e3),
)


@settings(max_examples=25, deadline=None)
@given(small_case)
def test_more_shift_and_more_factors_cost_more(case: tuple[int, float, float, float]) -> None:
    count, offset, shift, slope = case
    one = enclose_log_ratio([count], [slope], [offset], [shift])
    assert enclose_log_ratio([count], [slope], [offset], [2 * shift]).upper > one.lower
    assert enclose_log_ratio([count + 1], [slope], [offset], [shift]).upper >= one.lower


@settings(max_examples=15, deadline=None)
@given(small_case)
def test_splitting_a_factor_changes_nothing(case: tuple[int, float, float, float]) -> None:
    count, offset, shift, slope = case
    whole = enclose_log_ratio([count + 3], [slope], [offset], [shift])
    parts = enclose_log_ratio([count, 3], [slope, slope], [offset, offset], [shift, shift])
    assert max(whole.lower, parts.lower) <= min(whole.upper, parts.upper)


@settings(max_examples=15, deadline=None)
@given(small_case)
def test_shifts_in_two_steps_add_up(case: tuple[int, float, float, float]) -> None:
    count, offset, shift, slope = case
    once = enclose_log_ratio([count], [slope], [offset], [2 * Fraction(shift)])
    first = enclose_log_ratio([count], [slope], [offset], [shift])
    second = enclose_log_ratio([count], [slope], [Fraction(offset) + Fraction(shift)], [shift])
    low, high = Fraction(first.lower) + Fraction(second.lower), Fraction(first.upper) + Fraction(second.upper)
    assert low <= Fraction(once.upper)
    assert Fraction(once.lower) <= high


def test_threads_do_not_disturb_each_other_or_flint() -> None:
    cases = [random_case(seed) for seed in range(6)]
    alone = [enclose_log_ratio(*case) for case in cases]
    together: dict[int, Enclosure] = {}

    def work(index: int) -> None:
        together[index] = enclose_log_ratio(*cases[index])

    before = ctx.prec
    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[index] for index in range(len(cases))] == alone
    assert ctx.prec == before


def test_a_stranger_who_changes_flints_precision_cannot_make_it_wrong() -> None:
    truth, before, done = Fraction("0.010788385236438305946"), ctx.prec, threading.Event()

    def disturb() -> None:
        while not done.wait(0.003):
            ctx.prec = 30

    stranger = threading.Thread(target=disturb)
    stranger.start()
    try:
        for _ in range(6):
            with contextlib.suppress(DPSelectError):  # no answer is allowed, a wrong one is not
                assert truth in noisy_max(365, Fraction(1, 5), Fraction(1, 6946))
    finally:
        done.set()
        stranger.join()
        ctx.prec = before
    assert truth in noisy_max(365, Fraction(1, 5), Fraction(1, 6946))


def test_a_wide_input_ball_is_refused_rather_than_believed() -> None:
    with pytest.raises(DPSelectError, match="exact numbers"):
        enclose_log_ratio([3], [1], [arb(-5, 1e-3)], [1e-3])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([2.5], [1], [0], [1]), "counts"),
        (([-1], [1], [0], [1]), "counts"),
        (([1], [math.nan], [0], [1]), "slopes"),
        (([1], ["1"], [0], [1]), "slopes"),
        (([1], [True], [0], [1]), "slopes"),
        (([1], [1], [math.inf], [1]), "offsets"),
        (([1], [1], [0], [-1]), "shifts"),
        (([1], [1], [0], [arb(-1)]), "shifts"),
        (([1], [1], [0], [lambda: arb(-1)]), "shifts"),
        (([1], [lambda: 1.0], [0], [1]), "slopes"),
        (([1, 2], [1], [0], [1]), "one length"),
    ],
)
def test_bad_input_is_refused_by_name(arguments: tuple[list[Exact], ...], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        enclose_log_ratio(*arguments)


@pytest.mark.parametrize("tolerance", [0.0, 1e-16, 1.0, math.nan])
def test_impossible_tolerances_are_refused(tolerance: float) -> None:
    with pytest.raises(InvalidParameter, match="tolerance"):
        enclose_log_integral([1], [1], [0], tolerance=tolerance)


@pytest.mark.parametrize("slope", [1e300, 1e20, 1e-300])
@pytest.mark.parametrize("offset", [-1e300, -1e20, 1e300])
def test_parameters_beyond_reason_get_an_enclosure_or_a_clear_refusal(slope: float, offset: float) -> None:
    try:
        epsilon = enclose_log_ratio([2**53], [slope], [offset], [1e-3])
    except DPSelectError:
        return
    assert 0 <= epsilon.lower <= epsilon.upper
