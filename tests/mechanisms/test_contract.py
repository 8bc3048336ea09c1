"""Every mechanism, the same promises: costs fall with noise, calibration ends on the private side, halves where due."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.members import PRICED_WATCHERS, RELEASES, SELECTIONS, release
from tests.mechanisms.output_law import noisy_max_probabilities
from tests.privacy_loss import least_delta

from dpselect.errors import InvalidParameter
from dpselect.mechanisms.classical import ClassicalNoisyMax, ExponentialMechanism, PermuteAndFlip
from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.release import GaussianRelease, LaplaceRelease
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily

CLASSICAL = {name: cls for name, cls in SELECTIONS.items() if issubclass(cls, ClassicalNoisyMax)}
every_classical = pytest.mark.parametrize("mechanism", CLASSICAL.values(), ids=CLASSICAL)
every_maximum = pytest.mark.parametrize("mechanism", SELECTIONS.values(), ids=SELECTIONS)
every_release = pytest.mark.parametrize("name", RELEASES)
families = st.builds(
    lambda share, monotone: QueryFamily(lower=0.0, upper=1.0, sensitivity=share, monotone=monotone),
    st.floats(1e-9, 1.0),
    st.booleans(),
)
epsilons = st.floats(1e-6, 50.0)


@every_classical
@settings(deadline=None, max_examples=100)
@given(family=families, epsilon=epsilons)
def test_calibration_ends_on_the_private_side_and_at_the_smallest_scale(
    mechanism: Any, family: QueryFamily, epsilon: float
) -> None:
    found = mechanism.calibrated(family, epsilon=epsilon)
    assert found.epsilon() <= epsilon
    assert found.epsilon(candidates=1000) <= epsilon
    assert mechanism(family, float(np.nextafter(found.scale, 0))).epsilon() >= epsilon * (1 - 1e-15)


@every_classical
@settings(deadline=None, max_examples=100)
@given(family=families, scale=st.floats(1e-3, 1e3))
def test_printed_epsilons_are_never_below_the_rational_truth(mechanism: Any, family: QueryFamily, scale: float) -> None:
    truth = Fraction(family.sensitivity) * (1 if family.monotone else 2) / Fraction(scale)
    assert Fraction(mechanism(family, scale).epsilon()) >= truth


@every_classical
def test_monotone_families_pay_half(mechanism: Any) -> None:
    one_way = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01, monotone=True)
    any_way = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01)
    assert mechanism(one_way, 0.1).epsilon() == mechanism(any_way, 0.1).epsilon() / 2
    assert mechanism.calibrated(one_way, epsilon=0.5).scale == mechanism.calibrated(any_way, epsilon=0.5).scale / 2


@every_maximum
def test_more_noise_costs_less_and_more_candidates_never_less(mechanism: Any) -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01)
    by_noise = [mechanism(family, scale).epsilon(candidates=20) for scale in (0.1, 0.2, 0.4, 0.8)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_number = mechanism(family, 0.3).epsilon(candidates=[2, 3, 10, 1000])
    assert (np.diff(by_number) >= 0).all()


@every_maximum
def test_peeling_costs_the_sum_of_its_rounds(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=100.0, sensitivity=1.0), 2.0)
    ranking = picker.top([5.0, 90.0, 30.0, 60.0], 3)
    assert ranking.indices == (1, 3, 2)
    rounds = [picker.epsilon(candidates=d) for d in (4, 3, 2)]
    # The exact sum, correctly rounded: a plain sum of doubles may itself lie above.
    assert math.fsum(rounds) <= ranking.loss.epsilon == pytest.approx(sum(rounds), rel=1e-14)


@every_maximum
def test_peeling_states_its_cost_both_ways_before_and_after(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01), 0.5)
    ranking = picker.top([0.5, 0.9, 0.3, 0.6], 3)
    assert ranking.loss.epsilon == picker.top_epsilon(4, 3)
    assert ranking.rho == picker.top_rho(4, 3)
    rounds = [picker.rho(candidates=d) for d in (4, 3, 2)]
    assert sum(rounds) <= ranking.rho * (1 + 1e-15) <= sum(rounds) * (1 + 1e-5)
    assert picker.top_rho(1, 1) == 0.0


@every_maximum
def test_zcdp_never_costs_more_than_the_pure_guarantee_implies(mechanism: Any) -> None:
    for share, monotone, scale in ((1e-3, False, 0.1), (1.0, False, 0.05), (0.3, True, 2.0)):
        family = QueryFamily(lower=0.0, upper=1.0, sensitivity=share, monotone=monotone)
        picker = mechanism(family, scale)
        for candidates in (2, 3, 365):
            most = picker.epsilon(candidates=candidates) ** 2 / 2
            assert picker.rho(candidates=candidates) <= most * (1 + 1e-12)
            for order in (1.5, 8.0, 300.0):
                curve = picker.renyi(order, candidates)
                assert curve <= min(order * picker.rho(candidates=candidates), picker.epsilon(candidates)) * (1 + 1e-12)


def divergence(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], order: float) -> float:
    exponent = order * np.log(first) - (order - 1.0) * np.log(second)
    return float(np.log(np.exp(exponent).sum())) / (order - 1.0)


def largest_divergence_over_rho(mechanism: Any, order: float) -> float:
    """The largest D_α/(α·ρ) of many neighbouring pairs, from the exact probabilities of the winners."""
    rng = np.random.default_rng(5)
    found = 0.0
    for candidates, share in itertools.product((2, 3, 8), (1.0, 0.1)):
        picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=share), 0.7)
        rho = picker.rho(candidates=candidates)
        pairs = [(rng.uniform(size=candidates), rng.uniform(-share, share, candidates)) for _ in range(30)]
        corner = np.append(0.0, np.ones(candidates - 1))
        pairs += [(corner, np.where(corner > 0, -share, share)), (1 - corner, np.where(corner > 0, share, -share))]
        for values, move in pairs:
            first, second = (
                noisy_max_probabilities(np.clip(side, 0.0, 1.0), scale=0.7, law=mechanism.law)
                for side in (values, values + move)
            )
            most = max(divergence(first, second, order), divergence(second, first, order))
            found = max(found, most / (order * rho))
    return found


@every_maximum
@pytest.mark.parametrize("order", [1.1, 2.0, 10.0])
def test_rho_covers_the_divergence_of_exact_probabilities(mechanism: Any, order: float) -> None:
    assert largest_divergence_over_rho(mechanism, order) <= 1.0


def test_a_quarter_of_rho_would_not_cover_permute_and_flip() -> None:
    # It has no bounded range: η²/8 with its ε is exceeded.
    assert largest_divergence_over_rho(PermuteAndFlip, 1.1) > 0.25


def test_the_tight_epsilon_of_two_candidates_is_not_the_range_of_the_exponential_mechanism() -> None:
    picker = ExponentialMechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=1.0), scale=2.0)
    epsilon = float(picker.epsilon(candidates=2))
    first, second = (noisy_max_probabilities(side, scale=2.0, law=picker.law) for side in ([0.0, 1.0], [1.0, 0.0]))
    seen = divergence(first, second, 1.1)
    assert 1.1 * epsilon**2 / 8 < seen <= 1.1 * picker.rho(candidates=2)


@every_maximum
def test_peeling_everything_names_everyone_once_and_the_last_for_free(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), 5.0)
    ranking = picker.top([0.1, 0.9, 0.3, 0.6], 4)
    assert sorted(ranking.indices) == [0, 1, 2, 3]
    assert ranking.loss == picker.top([0.1, 0.9, 0.3, 0.6], 3).loss


@every_maximum
def test_naming_the_only_candidate_costs_nothing(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), 1.0)
    selection = picker.release([0.4])
    assert (selection.index, selection.loss.epsilon) == (0, 0.0)


@every_maximum
@pytest.mark.parametrize("k", [0, 5, 2.5, -1])
def test_peeling_more_than_there_are_is_refused(mechanism: Any, k: Any) -> None:
    with pytest.raises(InvalidParameter, match="k must be"):
        mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), 1.0).top([0.1, 0.9, 0.3, 0.6], k)


@every_maximum
def test_a_selection_states_its_epsilon_with_every_winner(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), 1.0)
    for values in ([0.4, 0.6], [0.1, 0.5, 0.9, 0.2]):
        loss = picker.release(values).loss
        assert (loss.epsilon, loss.delta) == (picker.epsilon(candidates=len(values)), 0.0)
        for delta in (1e-9, 1e-3):
            assert picker.approximate_epsilon(delta, len(values)) <= loss.epsilon


@every_maximum
def test_many_releases_cost_as_many_times_one(mechanism: Any) -> None:
    picker = mechanism(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), 1.0)
    many = picker.release_many([0.1, 0.5], times=1000, entropy=SeededEntropy(1))
    assert many.indices.shape == (1000,)
    assert many.loss.epsilon == pytest.approx(1000 * picker.epsilon(candidates=2))


@pytest.mark.parametrize("candidates", [1, 7, 1000])
@settings(deadline=None, max_examples=60)
@given(family=families, epsilon=epsilons)
def test_the_laplace_release_is_calibrated_to_the_fineness_of_its_grid(
    candidates: int, family: QueryFamily, epsilon: float
) -> None:
    found = LaplaceRelease.calibrated(family, candidates=candidates, epsilon=epsilon)
    assert epsilon * (1 - 1e-4) <= found.epsilon(candidates) <= epsilon


@pytest.mark.parametrize(("candidates", "epsilon", "delta"), [(1, 1.0, 1e-5), (365, 0.1, 1e-9), (10**6, 3.0, 1e-3)])
def test_the_gaussian_release_is_calibrated_from_above(candidates: int, epsilon: float, delta: float) -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3)
    found = GaussianRelease.calibrated(family, candidates=candidates, epsilon=epsilon, delta=delta)
    assert epsilon * (1 - 1e-6) <= found.epsilon(candidates) <= epsilon
    assert found.profile(epsilon, candidates=candidates) <= delta


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta"), [(0.0375, 0.217, 1.124e-4), (3.66e-6, 3.216, 1.07e-6), (0.2, 1.7, 1e-9)]
)
def test_the_gaussian_release_is_calibrated_to_the_last_digit(sensitivity: float, epsilon: float, delta: float) -> None:
    """σ and ε are found by searches of their own, whose last digits need not agree."""
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=sensitivity)
    for share in np.linspace(0.9, 1.1, 5):
        found = GaussianRelease.calibrated(family, candidates=1, epsilon=epsilon * share, delta=delta)
        assert found.epsilon(1) <= epsilon * share


@pytest.mark.parametrize("mechanism", PRICED_WATCHERS.values(), ids=PRICED_WATCHERS)
@pytest.mark.parametrize("monotone", [False, True])
@settings(deadline=None, max_examples=100)
@given(share=st.floats(1e-9, 1.0), epsilon=epsilons, above=st.integers(1, 50))
def test_the_classical_thresholds_are_calibrated_from_above(
    mechanism: Any, monotone: bool, share: float, epsilon: float, above: int
) -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=share, monotone=monotone)
    found = mechanism.calibrated(family, threshold=0.5, epsilon=epsilon, above=above)
    assert epsilon * (1 - 1e-12) <= found.epsilon(above=above) <= epsilon


def test_the_split_of_the_laplace_threshold_beats_its_neighbours() -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01)
    found = LaplaceAboveThreshold.calibrated(family, threshold=0.5, epsilon=1.0, above=4)
    best = found.scale_threshold**2 + found.scale_query**2
    for factor in (0.9, 1.1):
        first = found.scale_threshold * factor
        second = 8 * 0.01 / (1.0 - 0.01 / first)
        assert first**2 + second**2 > best


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e-320])
@every_classical
def test_impossible_targets_are_refused(mechanism: Any, epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        mechanism.calibrated(QueryFamily(lower=0.0, upper=1.0, sensitivity=1.0), epsilon=epsilon)


@every_release
def test_released_numbers_are_whole_multiples_of_the_public_step(name: str) -> None:
    family = QueryFamily(lower=-3.0, upper=7.0, sensitivity=0.013)
    values = np.random.default_rng(1).uniform(-3, 7, 1000)
    released = release(name, family, scale=0.37).release(values)
    assert (released.values / released.step % 1 == 0).all()
    assert released.step <= 0.013 / 2**16
    assert np.abs(released.values - values).mean() == pytest.approx(0.3, abs=0.15)


def moved(mechanism: Any, *, shift: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Chances of the cells of a fine grid for one released value, and for its neighbour."""
    cells = np.linspace(-12.0, 12.0, 200_001)
    sides = (np.exp(mechanism.law.log_density(cells - move)) for move in (0.0, shift))
    first, second = ((weights + 1e-300) / weights.sum() for weights in sides)
    return first, second


@every_release
@pytest.mark.parametrize("candidates", [1, 2, 12])
@pytest.mark.parametrize("monotone", [False, True])
def test_a_release_needs_no_more_delta_than_it_states(name: str, candidates: int, monotone: bool) -> None:
    """Every value moves by Δ, in one direction: monotone families are no cheaper to release."""
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.02, monotone=monotone)
    mechanism = release(name, family, scale=0.05)
    loss = mechanism.release(np.full(candidates, 0.5)).loss
    assert loss.epsilon == mechanism.epsilon(candidates)
    first, second = moved(mechanism, shift=0.02 / 0.05)
    needed = least_delta(first, second, epsilon=loss.epsilon, times=candidates)
    assert needed <= loss.delta * (1 + 1e-3) + 1e-9
    # Four fifths of the cost would be a lie, so the comparison above has teeth.
    assert least_delta(first, second, epsilon=0.8 * loss.epsilon, times=candidates) > 1.5 * loss.delta + 1e-9


def test_two_inputs_closer_than_half_a_step_give_the_same_numbers() -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.25)
    mechanism = LaplaceRelease(family, scale=0.25)
    near = [0.3, np.nextafter(0.3, 1.0), 0.3 + mechanism.grid.step / 1000]
    seen = {mechanism.release([value], entropy=SeededEntropy(4)).values[0] for value in near}
    assert len(seen) == 1


@pytest.mark.parametrize("candidates", [2, 5, 40, 10**6])
@every_maximum
@settings(deadline=None, max_examples=20)
@given(family=families, epsilon=st.floats(1e-3, 5.0))
def test_the_same_call_calibrates_every_selection_from_above(
    mechanism: Any, candidates: int, family: QueryFamily, epsilon: float
) -> None:
    found = mechanism.calibrated(family, epsilon=epsilon, candidates=candidates)
    assert found.epsilon(candidates=candidates) <= epsilon
    if mechanism in (GaussianNoisyMax, ExponentialMechanism):
        assert found.epsilon(candidates=candidates) >= epsilon * (1 - 1e-9)


def test_knowing_that_candidates_are_few_saves_noise() -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1.0)
    simple = ExponentialMechanism.calibrated(family, epsilon=1.0)
    assert simple.epsilon(candidates=5) < 0.87
    assert ExponentialMechanism.calibrated(family, epsilon=1.0, candidates=5).scale < 0.9 * simple.scale


@pytest.mark.parametrize("epsilon", [300.0, 500.0, 699.0, 701.0, 1e5])
def test_a_large_epsilon_is_used_up_too(epsilon: float) -> None:
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1.0)
    found = ExponentialMechanism.calibrated(family, epsilon=epsilon, candidates=2)
    assert epsilon * (1 - 1e-9) <= found.epsilon(candidates=2) <= epsilon
    # Both candidates at the ends change places: half of what holds for any number of them.
    assert found.epsilon() >= 1.9 * epsilon


def test_gaussian_noise_cannot_be_calibrated_without_the_number_of_candidates() -> None:
    with pytest.raises(InvalidParameter, match="candidates must be given"):
        GaussianNoisyMax.calibrated(QueryFamily(lower=0.0, upper=1.0, sensitivity=0.1), epsilon=1.0)
