"""The losses of THEORY §2: reference values, laws, corners, and mistakes that must be caught."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpselect.errors import InvalidParameter, SensitivityClipped
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.noisy_max import noisy_max_epsilon, noisy_max_loss

# THEORY §6: 5 digits, made with 30-digit quadrature around the located mode.
NOISY_MAX = {
    0.1: {16: 0.20405, 95: 0.23183, 1024: 0.25323},
    0.3: {16: 0.02921, 95: 0.03589, 1024: 0.04194},
    0.5: {16: 0.01315, 95: 0.01677, 1024: 0.02021},
}
ABOVE_THRESHOLD = {
    (0.2, 0.5): {3: 0.01564, 10: 0.03051, 50: 0.04693},
    (0.3, 0.75): {3: 0.00797, 10: 0.01522, 50: 0.02418},
}
UNIT = QueryFamily(lower=0, upper=1, sensitivity=1e-3)


@pytest.mark.parametrize("sigma", NOISY_MAX)
def test_noisy_max_matches_the_reference_values(sigma):
    for candidates, expected in NOISY_MAX[sigma].items():
        assert round(GaussianNoisyMax(UNIT, sigma).epsilon(candidates), 5) == expected


def test_twenty_digits_of_one_reference_value():
    picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1 / 6946), 0.2)
    assert picker.epsilon(365) == pytest.approx(0.010788385236438305946, rel=1e-13)


@pytest.mark.parametrize(("sigma", "threshold"), ABOVE_THRESHOLD)
def test_above_threshold_matches_the_reference_values(sigma, threshold):
    watcher = GaussianAboveThreshold(UNIT, threshold=threshold, sigma_threshold=sigma, sigma_query=math.sqrt(3) * sigma)
    for step, expected in ABOVE_THRESHOLD[sigma, threshold].items():
        assert round(watcher.loss(below=step - 1, above=1), 5) == expected


def test_the_values_a_naive_quadrature_gets_wrong():
    """THEORY §6: mpmath.quad over the whole line returns 0.0, 11.43 and .0206 for these."""
    assert round(GaussianNoisyMax(UNIT, 0.1).epsilon(365), 3) == 0.245
    assert round(GaussianNoisyMax(UNIT, 0.05).epsilon(365), 3) == 0.878
    watcher = GaussianAboveThreshold(UNIT, threshold=0.5, sigma_threshold=0.25, sigma_query=math.sqrt(3) / 4)
    assert round(watcher.loss(below=99_999, above=1), 4) == 0.0644


def test_the_range_enters_through_its_upper_end():
    """Printed as b - a, the bound for [1, 2] would be .0102; the truth is .0305 (THEORY §2)."""
    shifted = QueryFamily(lower=1, upper=2, sensitivity=1e-3)
    setting = {"threshold": 1.5, "sigma_threshold": 0.2, "sigma_query": 0.2 * math.sqrt(3)}
    assert round(GaussianAboveThreshold(shifted, **setting).loss(below=9, above=1), 4) == 0.0305


def transcript_probability(queries, verdicts, *, threshold, sigma_threshold, sigma_query):
    """Exact probability of a transcript by the trapezoidal rule on a wide fine grid."""
    x = np.linspace(-12, 12, 4001)
    level = threshold + sigma_threshold * x
    mass = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    for query, above in zip(queries, verdicts, strict=True):
        below = ndtr((level - query) / sigma_query)
        mass = mass * (ndtr((query - level) / sigma_query) if above else below)
    return mass.sum()


@st.composite
def neighbouring_runs(draw, *, monotone):
    length = draw(st.integers(1, 6))
    delta = draw(st.floats(0.01, 0.5))
    first = np.array(draw(st.lists(st.floats(0, 1), min_size=length, max_size=length)))
    side = draw(st.sampled_from([-1.0, 1.0])) if monotone else None
    moves = np.array(draw(st.lists(st.floats(0 if monotone else -1, 1), min_size=length, max_size=length)))
    second = np.clip(first + delta * moves * (side if monotone else 1.0), 0, 1)
    verdicts = draw(st.lists(st.booleans(), min_size=length, max_size=length))
    return delta, first, second, verdicts


SETTING = {"threshold": 0.55, "sigma_threshold": 0.3, "sigma_query": 0.4}


@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbouring_pair_exceeds_the_loss(monotone):
    @settings(max_examples=150, deadline=None)
    @given(neighbouring_runs(monotone=monotone))
    def check(run):
        delta, first, second, verdicts = run
        watcher = GaussianAboveThreshold(QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=monotone), **SETTING)
        pair = [transcript_probability(queries, verdicts, **SETTING) for queries in (first, second)]
        bound = watcher.loss(below=verdicts.count(False), above=verdicts.count(True))
        assert abs(math.log(pair[0] / pair[1])) <= bound + 1e-9

    check()


@pytest.mark.parametrize(("below", "above"), [(3, 0), (3, 1), (2, 2), (0, 2)])
def test_loss_is_attained_at_the_corner(below, above):
    """⊥ queries fall to b, ⊤ queries to a: the bound is reached, so nothing smaller would do."""
    delta = 0.1
    verdicts = [False] * below + [True] * above
    near = [1.0 - delta] * below + [delta] * above
    corner = [1.0] * below + [0.0] * above
    ratio = math.log(
        transcript_probability(near, verdicts, **SETTING) / transcript_probability(corner, verdicts, **SETTING)
    )
    watcher = GaussianAboveThreshold(QueryFamily(lower=0, upper=1, sensitivity=delta), **SETTING)
    assert watcher.loss(below, above) == pytest.approx(ratio, rel=1e-9)
    halved = GaussianAboveThreshold(QueryFamily(lower=0, upper=1, sensitivity=delta / 2), **SETTING)
    assert halved.loss(below, above) < ratio  # negative control


def test_monotone_loss_is_attained_too():
    delta, verdicts = 0.1, [False, False, False, True]
    watcher = GaussianAboveThreshold(QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=True), **SETTING)
    corner = [1.0, 1.0, 1.0, 0.0]
    ratios = [
        math.log(
            transcript_probability(near, verdicts, **SETTING) / transcript_probability(corner, verdicts, **SETTING)
        )
        for near in ([0.9, 0.9, 0.9, 0.0], [1.0, 1.0, 1.0, 0.1])
    ]
    assert watcher.loss(3, 1) == pytest.approx(max(ratios), rel=1e-9)


def noisy_max_probability(values, winner, sigma):
    x = np.linspace(-12, 12, 4001)
    mass = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    for index, value in enumerate(values):
        if index != winner:
            mass = mass * ndtr(x + (values[winner] - value) / sigma)
    return mass.sum()


@settings(max_examples=150, deadline=None)
@given(neighbouring_runs(monotone=False).filter(lambda run: len(run[1]) >= 2), st.floats(0.2, 1.0), st.booleans())
def test_no_neighbouring_pair_exceeds_noisy_max(run, sigma, monotone):
    delta, first, second, _ = run
    if monotone:
        second = np.minimum(first, second)
    picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=delta, monotone=monotone), sigma)
    bound = picker.epsilon(len(first))
    for winner in range(len(first)):
        pair = [noisy_max_probability(values, winner, sigma) for values in (first, second)]
        assert abs(math.log(pair[0] / pair[1])) <= bound + 1e-9


def test_noisy_max_bound_is_attained():
    near, corner = [0.9, 0.9, 0.9, 0.1], [1.0, 1.0, 1.0, 0.0]
    ratio = math.log(noisy_max_probability(near, 3, 0.4) / noisy_max_probability(corner, 3, 0.4))
    picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=0.1), 0.4)
    assert picker.epsilon(4) == pytest.approx(ratio, rel=1e-9)


positive = st.floats(1e-2, 10)


@settings(max_examples=60, deadline=None)
@given(sigma=positive, delta=st.floats(1e-9, 0.4), power=st.floats(0.4, 12), more=st.floats(1.001, 3))
def test_noisy_max_epsilon_falls_in_sigma_and_grows_in_sensitivity_and_candidates(sigma, delta, power, more):
    candidates = math.floor(10**power)
    base = {"width": 1.0, "sensitivity": delta, "sigma": sigma, "candidates": candidates}
    epsilon = noisy_max_epsilon(**base)
    assert noisy_max_epsilon(**base | {"sigma": sigma * more}) <= epsilon
    assert noisy_max_epsilon(**base | {"sensitivity": delta * more}) >= epsilon
    assert noisy_max_epsilon(**base | {"candidates": candidates + 1}) >= epsilon * (1 - 1e-11)
    assert noisy_max_epsilon(**base, monotone=True) <= epsilon


@settings(max_examples=60, deadline=None)
@given(
    sigma=positive,
    ratio=st.floats(0.3, 3),
    threshold=st.floats(-0.5, 1.5),
    delta=st.floats(1e-9, 0.4),
    below=st.integers(0, 10**6),
    above=st.integers(0, 50),
    more=st.floats(1.001, 3),
)
def test_transcript_loss_laws(sigma, ratio, threshold, delta, below, above, more):
    base = {
        "lower": 0.0,
        "upper": 1.0,
        "sensitivity": delta,
        "threshold": threshold,
        "sigma_threshold": sigma,
        "sigma_query": sigma * ratio,
        "below": below,
        "above": above,
    }
    loss = transcript_epsilon(**base)
    slack = 1 - 1e-10
    if below + above == 0:
        assert loss == 0.0
        return
    louder = {"sigma_threshold": sigma * more, "sigma_query": sigma * ratio * more}
    if 0 <= threshold <= 1:  # a threshold out of reach is answered for sure, and costs less, with less noise
        assert transcript_epsilon(**base | louder) * slack <= loss
    assert transcript_epsilon(**base | {"sensitivity": min(1.0, delta * more)}) >= loss * slack
    assert transcript_epsilon(**base | {"below": below + 1}) >= loss * slack
    assert transcript_epsilon(**base | {"above": above + 1}) >= loss * slack
    assert transcript_epsilon(**base, monotone=True) <= loss * (1 + 1e-10)


def test_a_silent_run_can_cost_more_than_one_that_ended_at_once():
    """Capped at one step, ⊥ can be the more revealing answer: the cap must look at both (THEORY §3)."""
    watcher = GaussianAboveThreshold(UNIT, threshold=0.2, sigma_threshold=0.2, sigma_query=0.3)
    assert watcher.loss(below=1) > watcher.loss(below=0, above=1)
    assert watcher.epsilon(horizon=1) == watcher.loss(below=1)


BAD_FAMILIES = [
    ({"lower": 1, "upper": 0, "sensitivity": 0.1}, "upper must be above lower"),
    ({"lower": 0, "upper": 0, "sensitivity": 0.1}, "upper must be above lower"),
    ({"lower": math.nan, "upper": 1, "sensitivity": 0.1}, "lower must be a number, not NaN"),
    ({"lower": 0, "upper": math.inf, "sensitivity": 0.1}, "upper must be finite; got inf"),
    ({"lower": 0, "upper": 1, "sensitivity": -0.1}, "sensitivity must be zero or more, and finite; got -0.1"),
    ({"lower": 0, "upper": 1, "sensitivity": "x"}, "sensitivity must be a number"),
    ({"lower": 0, "upper": 1, "sensitivity": 0.1, "monotone": 1}, "monotone must be True or False; got 1"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_FAMILIES)
def test_a_bad_family_is_refused_with_its_value_and_the_rule(arguments, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        QueryFamily(**arguments)
    assert isinstance(caught.value, ValueError)


def test_too_large_a_sensitivity_is_clipped_with_a_warning():
    with pytest.warns(SensitivityClipped, match=r"larger than upper - lower = 1\.0"):
        family = QueryFamily(lower=0, upper=1, sensitivity=3)
    assert family.sensitivity == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GaussianNoisyMax(UNIT, -1.0), r"sigma must be positive and finite; got -1\.0"),
        (lambda: GaussianNoisyMax(UNIT, math.nan), "sigma must be a number, not NaN"),
        (lambda: GaussianNoisyMax(UNIT, math.inf), "sigma must be positive and finite; got inf"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).epsilon(1), "candidates must be a whole number, 2 or more; got 1"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).epsilon(2.5), r"candidates must be a whole number, 2 or more; got 2\.5"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).epsilon([]), "candidates must be non-empty"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).epsilon([3, True, "a"]), "candidates must be a number"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).epsilon([[3], [4, 5]]), "candidates must be a number or a rect"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).profile([0.1, 0.2], [3, 4, 5]), r"shapes must broadcast.*epsilon \(2,\)"),
        (lambda: GaussianNoisyMax(UNIT, 0.1).approximate_epsilon(0.0, 3), r"delta must be strictly between 0 and 1"),
        (lambda: GaussianAboveThreshold(UNIT, threshold=0.5, sigma_threshold=0, sigma_query=1), "sigma_threshold must"),
        (
            lambda: GaussianAboveThreshold(UNIT, threshold=0.5, sigma_threshold=1, sigma_query=1).loss(-1, 0),
            "below must be a whole number, 0 or more; got -1",
        ),
        (
            lambda: GaussianAboveThreshold(UNIT, threshold=0.5, sigma_threshold=1, sigma_query=1).epsilon(0),
            "horizon must be a whole number, 1 or more; got 0",
        ),
        (lambda: noisy_max_loss(width=0, sensitivity=0.1, sigma=1, candidates=3), "width must be positive"),
    ],
)
def test_bad_input_names_the_argument_the_value_and_the_rule(call, message):
    with pytest.raises(InvalidParameter, match=message):
        call()


def test_scalars_give_floats_and_arrays_give_arrays():
    picker = GaussianNoisyMax(UNIT, 0.1)
    assert type(picker.epsilon(365)) is float
    assert picker.epsilon([[3, 4], [5, 6]]).shape == (2, 2)
    assert type(picker.profile(0.05, 365)) is float


@settings(max_examples=80, deadline=None)
@given(
    sigma=st.floats(1e-150, 1e150),
    delta=st.floats(0, 1),
    candidates=st.integers(2, 2**53),
    width=st.floats(1e-100, 1e100),
)
def test_extreme_but_valid_input_never_gives_nan(sigma, delta, candidates, width):
    epsilon = noisy_max_epsilon(width=width, sensitivity=delta * width, sigma=sigma, candidates=candidates)
    assert epsilon >= 0.0  # NaN would fail


@pytest.mark.parametrize(
    ("sensitivity", "sigma", "candidates"),
    [
        (1e-12, 4.472136397415793e-08, 10**12),
        (1.6457274329605921e-09, 2.153496527424359e-07, 11510044288),
        (3.8868677889546413e-10, 2.418336268517439e-08, 138896358377),
    ],
)
def test_a_range_ten_million_times_the_noise_stays_on_the_safe_side(sensitivity, sigma, candidates):
    picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=sensitivity), sigma)
    proven = picker.certify(candidates)
    assert proven.lower <= picker.epsilon(candidates) <= proven.upper * (1 + 1e-10)


@pytest.mark.parametrize(("threshold", "below", "above"), [(2.0, 10, 0), (-1.0, 0, 3)])
def test_a_threshold_out_of_reach_costs_next_to_nothing_not_infinity(threshold, below, above):
    family = QueryFamily(lower=0, upper=1, sensitivity=0.01)
    watcher = GaussianAboveThreshold(family, threshold=threshold, sigma_threshold=0.01, sigma_query=0.01)
    assert 0 < watcher.loss(below, above) < 1e-307


@settings(max_examples=200, deadline=None)
@given(lower=st.floats(-1e9, 1e9), gap=st.floats(1e-9, 1e9))
def test_the_width_is_rounded_up(lower, gap):
    if lower + gap > lower:
        family = QueryFamily(lower=lower, upper=lower + gap, sensitivity=0.0)
        assert Fraction(family.width) >= Fraction(family.upper) - Fraction(family.lower)


def test_arrays_are_refused_where_one_number_is_meant():
    for call in (
        lambda: GaussianNoisyMax(UNIT, [0.1, 0.2]),
        lambda: GaussianNoisyMax(UNIT, 0.1).certify([2, 3]),
        lambda: GaussianNoisyMax.calibrated(UNIT, candidates=[3, 4], epsilon=0.1),
        lambda: QueryFamily(lower=0, upper=[1, 2], sensitivity=0.1),
    ):
        with pytest.raises(InvalidParameter, match="one number, not an array"):
            call()


def test_a_family_is_asked_for_by_name():
    with pytest.raises(InvalidParameter, match="family must be a QueryFamily"):
        GaussianNoisyMax(None, 0.1)
    with pytest.raises(InvalidParameter, match=r"SeededEntropy\(seed\)"):
        GaussianNoisyMax(UNIT, 0.1).release([0.1, 0.2], entropy=np.random.default_rng(1))


def test_out_of_reach_less_noise_can_cost_less():
    """ρ above b: ⊥ is nearly certain, the more so the smaller the noise; the law of σ needs ρ within [a, b]."""
    family = QueryFamily(lower=0, upper=1, sensitivity=0.25)
    losses = [
        GaussianAboveThreshold(family, threshold=1.5, sigma_threshold=s, sigma_query=s).loss(1) for s in (0.25, 0.5)
    ]
    assert losses[0] < losses[1]


@pytest.mark.parametrize(
    ("upper", "sensitivity", "sigma"), [(1e285, 5e-324, 2.0), (1e3, 5e-324, 3.0), (1, 1e-300, 1e200)]
)
@pytest.mark.parametrize("many", [1, 20])
def test_a_shift_that_underflows_is_still_paid_for(upper, sensitivity, sigma, many):
    """Δ/σ came out as 0, and so did ε, where the truth is about Δ·c/(2σ²) for one ⊥ and one ⊤ at the middle."""
    family = QueryFamily(lower=0, upper=upper, sensitivity=sensitivity)
    watcher = GaussianAboveThreshold(family, threshold=upper / 2, sigma_threshold=sigma, sigma_query=sigma)
    truth = Fraction(sensitivity) * Fraction(upper) / (2 * Fraction(sigma) ** 2)
    assert 0 < truth < np.min(watcher.loss([1] * many, 1))
    assert 0 < truth < np.min(GaussianNoisyMax(family, sigma).epsilon([2] * many))
    assert GaussianNoisyMax(QueryFamily(lower=0, upper=upper, sensitivity=0), sigma).epsilon(2) == 0.0


def test_a_run_of_several_above_costs_its_dearest_transcript():
    """All of them in one batch; for a horizon of fewer questions than ⊤, all of them ⊤ at most."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-2)
    watcher = GaussianAboveThreshold(family, threshold=0.4, sigma_threshold=0.2, sigma_query=0.3)
    horizons = np.array([1, 3, 200])
    losses = [watcher.loss(horizons - np.minimum(k, horizons), np.minimum(k, horizons)) for k in range(41)]
    assert watcher.epsilon(horizons, above=40) == pytest.approx(np.max(losses, axis=0), rel=1e-9)
    assert watcher.epsilon(200, above=40) == pytest.approx(max(watcher.loss(200 - k, k) for k in range(41)), rel=1e-9)
