"""No pair of neighbouring inputs tells more than the cost says: exact output probabilities, random neighbours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.mechanisms.members import PRICED_WATCHERS, SELECTIONS, WATCHERS, watcher
from tests.mechanisms.output_law import noisy_max_probabilities, transcript_probability

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical import ExponentialMechanism
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold
from dpselect.mechanisms.release import GaussianRelease, LaplaceRelease
from dpselect.mechanisms.run import Verdict
from dpselect.noise.quantiles import GUMBEL
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.release import Grid, discrete_gaussian_delta, gaussian_release_rho, is_smooth

every_maximum = pytest.mark.parametrize("mechanism", SELECTIONS.values(), ids=SELECTIONS)
#: Quadrature error of the exact probabilities, relative.
SLACK = 1e-9


@st.composite
def neighbours(draw: st.DrawFn, *, monotone: bool) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Two score vectors in [0, 1] that differ by at most Δ everywhere, often exactly by it, and Δ."""
    size = draw(st.integers(2, 5))
    sensitivity = draw(st.sampled_from([0.05, 0.3, 1.0]))
    unit = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))
    values = np.array(draw(st.lists(unit, min_size=size, max_size=size)))
    moves = st.one_of(
        st.sampled_from([0.0, 1.0] if monotone else [-1.0, 0.0, 1.0]), st.floats(0 if monotone else -1, 1)
    )
    step = sensitivity * np.array(draw(st.lists(moves, min_size=size, max_size=size)))
    # Clipping is 1-Lipschitz and keeps the direction of every move.
    other = np.clip(values + step, 0, 1)
    return values, other, sensitivity


def family_of(sensitivity: float, *, monotone: bool) -> QueryFamily:
    return QueryFamily(lower=0.0, upper=1.0, sensitivity=sensitivity, monotone=monotone)


def worst_log_ratio(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(np.log(first) - np.log(second))))


@pytest.mark.parametrize("monotone", [False, True])
@every_maximum
@settings(deadline=None, max_examples=60)
@given(data=st.data(), scale=st.sampled_from([0.1, 0.5, 2.0]))
def test_noisy_maxima_stay_within_their_epsilon(
    mechanism: type[ExponentialMechanism], monotone: bool, data: st.DataObject, scale: float
) -> None:
    values, other, sensitivity = data.draw(neighbours(monotone=monotone))
    first, second = (noisy_max_probabilities(scores, scale=scale, law=mechanism.law) for scores in (values, other))
    epsilon = mechanism(family_of(sensitivity, monotone=monotone), scale).epsilon(candidates=len(values))
    assert worst_log_ratio(first, second) <= epsilon + SLACK


@pytest.mark.parametrize("monotone", [False, True])
@every_maximum
def test_half_the_cost_of_a_noisy_max_would_be_a_lie(mechanism: Any, monotone: bool) -> None:
    sensitivity, scale = 0.2, 0.1
    values = np.array([0.0, 1.0, 1.0])
    other = values + sensitivity * np.array([1.0, 0.0, 0.0] if monotone else [1.0, -1.0, -1.0])
    first, second = (noisy_max_probabilities(scores, scale=scale, law=mechanism.law) for scores in (values, other))
    epsilon = mechanism(family_of(sensitivity, monotone=monotone), scale).epsilon(candidates=3)
    assert worst_log_ratio(first, second) > 0.5 * epsilon
    # ... and the halved cost of monotone families holds for them only: this pair moves both ways.
    other = values + sensitivity * np.array([1.0, -1.0, -1.0])
    second = noisy_max_probabilities(other, scale=scale, law=mechanism.law)
    assert worst_log_ratio(first, second) > mechanism(family_of(sensitivity, monotone=True), scale).epsilon(3)


@pytest.mark.parametrize("monotone", [False, True])
def test_the_exponential_mechanism_pays_exactly_what_its_worst_pair_tells(monotone: bool) -> None:
    sensitivity, scale = 0.2, 0.7
    values = np.array([0.0, 1.0, 1.0])
    other = values + sensitivity * np.array([1.0, 0.0, 0.0] if monotone else [1.0, -1.0, -1.0])
    first, second = (noisy_max_probabilities(scores, scale=scale, law=GUMBEL) for scores in (values, other))
    epsilon = ExponentialMechanism(family_of(sensitivity, monotone=monotone), scale).epsilon(candidates=3)
    assert epsilon == pytest.approx(worst_log_ratio(first, second), rel=1e-10)
    assert epsilon < ExponentialMechanism(family_of(sensitivity, monotone=monotone), scale).epsilon()


def all_transcripts(length: int) -> list[tuple[Verdict, ...]]:
    return list(itertools.product((Verdict.BELOW, Verdict.ABOVE), repeat=length))


@settings(deadline=None, max_examples=200)
@given(
    share=st.one_of(st.floats(1e-12, 1.0), st.floats(0.5, 1.0)),
    # Down to 1e-9: gaps beyond 700, where e^s is no double.
    scale=st.one_of(st.floats(1e-3, 1e3), st.floats(-9.0, -2.5).map(lambda exponent: 10.0**exponent)),
    candidates=st.integers(2, 10**9),
    monotone=st.booleans(),
)
def test_the_exponential_mechanisms_epsilon_is_never_below_its_formula(
    share: float, scale: float, candidates: int, monotone: bool
) -> None:
    printed = ExponentialMechanism(family_of(share, monotone=monotone), scale).epsilon(candidates=candidates)
    with mpmath.workdps(60):
        gap = mpmath.mpf(share) * (1 if monotone else 2) / mpmath.mpf(scale)
        lone = 1 / (1 + (candidates - 1) * mpmath.exp(1 / mpmath.mpf(scale)))
        truth = gap - mpmath.log1p(lone * mpmath.expm1(gap))
        assert mpmath.mpf(printed) >= truth
        assert mpmath.mpf(printed) <= truth * (1 + mpmath.mpf("1e-9"))


def watcher_of(kind: str, family: QueryFamily, scales: tuple[float, float]) -> AboveThreshold:
    return watcher(kind, family, threshold=0.5, scales=scales)


def told_by(
    watcher: AboveThreshold, transcript: tuple[Verdict, ...], values: NDArray[np.float64], other: NDArray[np.float64]
) -> float:
    """|log ratio| of the transcript's probabilities on two inputs."""
    first, second = (
        transcript_probability(
            asked,
            transcript,
            threshold=watcher.level,
            scale_threshold=watcher.scales[0],
            scale_query=watcher.scales[1],
            law=watcher.law,
        )
        for asked in (values, other)
    )
    return abs(math.log(first / second))


@pytest.mark.parametrize("kind", WATCHERS)
@pytest.mark.parametrize("monotone", [False, True])
@settings(deadline=None, max_examples=40)
@given(data=st.data(), scales=st.sampled_from([(0.3, 0.6), (1.0, 0.4), (0.4, 1.0)]))
def test_transcripts_stay_within_their_loss(
    kind: str, monotone: bool, data: st.DataObject, scales: tuple[float, float]
) -> None:
    values, other, sensitivity = data.draw(neighbours(monotone=monotone))
    watcher = watcher_of(kind, family_of(sensitivity, monotone=monotone), scales)
    transcripts = all_transcripts(len(values))
    above = np.array([transcript.count(Verdict.ABOVE) for transcript in transcripts])
    allowed = np.atleast_1d(watcher.loss(below=len(values) - above, above=above))
    for transcript, most in zip(transcripts, allowed, strict=True):
        assert told_by(watcher, transcript, values, other) <= most + SLACK


@pytest.mark.parametrize("kind", PRICED_WATCHERS)
@settings(deadline=None, max_examples=40)
@given(data=st.data(), monotone=st.booleans(), scales=st.sampled_from([(0.3, 0.6), (1.0, 0.2), (0.2, 1.0)]))
def test_classical_runs_stay_within_what_was_said_before(
    kind: str, data: st.DataObject, monotone: bool, scales: tuple[float, float]
) -> None:
    values, other, sensitivity = data.draw(neighbours(monotone=monotone))
    watcher = watcher_of(kind, family_of(sensitivity, monotone=monotone), scales)
    for transcript in all_transcripts(len(values)):
        told, above = told_by(watcher, transcript, values, other), transcript.count(Verdict.ABOVE)
        assert told <= watcher.epsilon(above=max(above, 1)) + SLACK
        assert told <= watcher.epsilon(above=len(transcript), horizon=len(transcript)) + SLACK


@pytest.mark.parametrize("kind", WATCHERS)
def test_half_the_loss_of_a_transcript_would_be_a_lie(kind: str) -> None:
    watcher = watcher_of(kind, family_of(0.2, monotone=False), (0.1, 0.1))
    values = np.array([1.0, 1.0, 0.0])
    other = values + 0.2 * np.array([-1.0, -1.0, 1.0])
    told = told_by(watcher, (Verdict.BELOW, Verdict.BELOW, Verdict.ABOVE), values, other)
    assert told > 0.5 * float(watcher.loss(below=2, above=1))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("below", "above"), [(3, 0), (3, 2), (1, 3), (0, 3)])
def test_exponential_transcripts_cost_exactly_what_their_worst_pair_tells(
    monotone: bool, below: int, above: int
) -> None:
    """⊥ far above the line and ⊤ far below it, so that every factor is in its tail, all moved the worst way."""
    family = QueryFamily(lower=-100.0, upper=100.0, sensitivity=0.3, monotone=monotone)
    watcher = ExponentialAboveThreshold(family, threshold=0.0, scale_threshold=0.7, scale_query=1.1)
    transcript = (Verdict.BELOW,) * below + (Verdict.ABOVE,) * above
    values = np.array([4.0] * below + [-20.0] * above)
    if below and not monotone:
        moves = [1.0] * below + [-1.0] * above
    else:
        moves = [1.0] * below + [0.0 if below else 1.0] * above
    told = told_by(watcher, transcript, values, values + 0.3 * np.array(moves))
    assert told == pytest.approx(float(watcher.loss(below, above)), rel=1e-11)


def test_the_cost_of_few_answers_needs_both_scales() -> None:
    """Dropping the threshold's share from a transcript with ⊥, or a ⊤'s second Δ, would be a lie."""
    family = family_of(0.2, monotone=False)
    watcher = watcher_of("exponential-above-threshold", family, (0.1, 0.1))
    values = np.array([1.0, 0.0])
    told = told_by(watcher, (Verdict.BELOW, Verdict.ABOVE), values, values + 0.2 * np.array([-1.0, 1.0]))
    assert told > 0.2 / 0.1 + 0.2 / 0.1
    assert told > float(watcher_of("exponential-above-threshold", family_of(0.2, monotone=True), (0.1, 0.1)).loss(1, 1))


def test_a_value_on_the_line_is_above_half_of_the_time() -> None:
    for kind in WATCHERS:
        for scales in ((0.3, 0.3), (0.1, 0.5), (0.5, 0.1)):
            watcher = watcher_of(kind, family_of(0.1, monotone=False), scales)
            cost = {"threshold": watcher.level, "scale_threshold": scales[0], "scale_query": scales[1]}
            chance = transcript_probability([0.5], [Verdict.ABOVE], **cost, law=watcher.law)
            assert chance == pytest.approx(0.5, abs=1e-11)


@pytest.mark.parametrize("kind", PRICED_WATCHERS)
@settings(deadline=None, max_examples=300)
@given(
    monotone=st.booleans(),
    above=st.integers(1, 12),
    horizon=st.integers(1, 12),
    scales=st.tuples(st.floats(0.01, 10), st.floats(0.01, 10)),
)
def test_the_horizon_bound_is_the_dearest_reachable_transcript(
    kind: str, monotone: bool, above: int, horizon: int, scales: tuple[float, float]
) -> None:
    watcher = watcher_of(kind, family_of(0.1, monotone=monotone), scales)
    reachable = [(m, k) for m in range(horizon + 1) for k in range(min(above, horizon - m) + 1)]
    dearest = max(float(watcher.loss(below=m, above=k)) for m, k in reachable)
    assert watcher.epsilon(above=above, horizon=horizon) == dearest
    assert dearest <= watcher.epsilon(above=above)


@settings(deadline=None, max_examples=200)
@given(
    exponent=st.integers(-6, 2),
    x=st.floats(-3, 3),
    y=st.floats(-3, 3),
)
def test_rounding_to_the_grid_moves_neighbours_no_further_than_the_grid_says(exponent: int, x: float, y: float) -> None:
    gap = abs(Fraction(x) - Fraction(y))
    grid = Grid(exponent)
    first, second = grid.round(np.array([x, y])).tolist()
    assert abs(first - second) <= math.ceil(gap / Fraction(2) ** exponent)
    assert [first, second] == grid.round([Fraction(x), Fraction(y)]).tolist()


@settings(deadline=None, max_examples=100)
@given(
    lower=st.sampled_from([0.0, -1.0, 1e6]),
    width=st.sampled_from([1.0, 1e-9, 1e12]),
    fraction=st.floats(1e-15, 1.0),
    scale=st.floats(1e-12, 1e12),
    places=st.tuples(st.floats(0, 1), st.floats(-1, 1)),
)
def test_two_released_neighbours_differ_by_at_most_the_sensitivity_in_steps(
    lower: float, width: float, fraction: float, scale: float, places: tuple[float, float]
) -> None:
    family = QueryFamily(lower=lower, upper=lower + width, sensitivity=min(fraction * width, (lower + width) - lower))
    value = min(max(Fraction(lower) + Fraction(places[0]) * Fraction(width), Fraction(lower)), Fraction(family.upper))
    moved = value + Fraction(places[1]) * Fraction(family.sensitivity)
    moved = min(max(moved, Fraction(family.lower)), Fraction(family.upper))
    grid = Grid.for_release(family, scale=scale)
    first, second = grid.round([value, moved]).tolist()
    assert abs(first - second) <= grid.sensitivity(family)
    assert 0 < grid.in_steps(scale) <= 2**40


def test_rounding_to_even_would_break_the_grid_sensitivity() -> None:
    values, other = np.array([0.5]), np.array([1.5])
    assert abs(np.rint(other) - np.rint(values)) == 2
    assert abs(Grid(0).round(other) - Grid(0).round(values)) == 1


def test_the_laplace_release_pays_exactly_what_one_value_tells() -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=0.1)
    mechanism = LaplaceRelease(family, scale=0.3)
    steps, shift = mechanism.grid.in_steps(0.3), mechanism.grid.sensitivity(family)
    assert mechanism.epsilon(5) >= 5 * Fraction(shift) / steps
    assert mechanism.epsilon(5) == pytest.approx(5 * 0.1 / 0.3, rel=1e-4)


def exact_delta(epsilon: float, *, scale: float, shift: int, coordinates: int) -> float:
    """δ of the discrete Gaussian by summation over all sums of coordinates."""
    reach = int(14 * scale)
    k = np.arange(-reach, reach + 1)
    one = np.exp(-0.5 * (k / scale) ** 2)
    one /= one.sum()
    law = one
    for _ in range(coordinates - 1):
        law = np.convolve(law, one)
    total = np.arange(len(law)) - len(law) // 2
    log_ratio = (shift * total + 0.5 * coordinates * shift**2) / scale**2
    return float(np.sum(law * np.maximum(0.0, -np.expm1(epsilon - log_ratio))))


@pytest.mark.parametrize("coordinates", [1, 2, 4])
@pytest.mark.parametrize("shift", [1, 7, 60])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_the_discrete_profile_lies_above_the_exact_sum_and_close_to_it(
    coordinates: int, shift: int, epsilon: float
) -> None:
    truth = exact_delta(epsilon, scale=60.0, shift=shift, coordinates=coordinates)
    bound = discrete_gaussian_delta(epsilon, scale=Fraction(60), shift=shift, coordinates=coordinates)
    start = max(0.0, epsilon / (shift * coordinates**0.5 / 60) - shift * coordinates**0.5 / 120)
    assert truth <= bound <= truth + 0.4 * math.exp(-0.5 * start**2) / 60 * 2 + 1e-15
    rho = coordinates * shift**2 / (2 * 60**2)
    assert rho == pytest.approx(
        gaussian_release_rho(
            QueryFamily(lower=0, upper=1, sensitivity=shift / 64), sigma=60 / 64, candidates=coordinates
        ),
        rel=1e-4,
    )


def test_noise_narrow_on_its_grid_still_costs_no_less_than_the_truth() -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=2.0**-52)
    mechanism = GaussianRelease(family, sigma=3 * 2.0**-52, delta=1e-5)
    assert not is_smooth(scale=mechanism.grid.in_steps(mechanism.sigma), coordinates=4)
    epsilon = float(mechanism.epsilon(candidates=4))
    assert exact_delta(epsilon, scale=3.0, shift=1, coordinates=4) <= 1e-5
    assert exact_delta(epsilon * 0.7, scale=3.0, shift=1, coordinates=4) > 1e-5


def test_the_continuous_profile_at_half_the_shift_lies_below_the_truth() -> None:
    truth = exact_delta(0.5, scale=60.0, shift=60, coordinates=2)
    assert discrete_gaussian_delta(0.5, scale=Fraction(60), shift=30, coordinates=2) < truth


def test_a_smaller_move_of_one_coordinate_never_tells_more() -> None:
    scale, n, reach = 3.0, 4, 40
    k = np.arange(-reach, reach + 1)
    one = np.exp(-0.5 * (k / scale) ** 2)
    one /= one.sum()
    told = []
    for first, second in itertools.product(range(n + 1), repeat=2):
        log_ratio = np.add.outer(*((move * k + 0.5 * move**2) / scale**2 for move in (first, second)))
        told.append((first, second, float(np.sum(np.outer(one, one) * np.maximum(0, -np.expm1(0.3 - log_ratio))))))
    worst = max(told, key=lambda entry: entry[2])
    assert worst[:2] == (n, n)
