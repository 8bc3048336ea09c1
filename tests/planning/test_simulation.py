"""What is simulated is what the mechanisms do, and what is read between losses is close to the losses."""

import numpy as np
import pytest

from dpselect import (
    ExponentialAboveThreshold,
    GaussianAboveThreshold,
    LaplaceAboveThreshold,
    QueryFamily,
    SeededEntropy,
    SparseVector,
)
from dpselect.mechanisms.above_threshold import Settings
from dpselect.noise.quantiles import EXPONENTIAL, NORMAL
from dpselect.planning import simulation
from dpselect.planning.costs import (
    counted_rule,
    exact_kept_limits,
    horizon_costs,
    kept_limits,
    own_losses,
    plain_losses,
    pure_rule,
    repaired_rule,
)
from dpselect.planning.simulation import StandardNoise, simulate_fresh, simulate_kept

LENGTH = 120
THRESHOLD = 0.6
FAMILIES = [QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=kind) for kind in (True, False)]
VALUES = np.random.default_rng(4).uniform(0.2, 0.8, LENGTH)


def some_settings(number=6, kind=GaussianAboveThreshold):
    generator = np.random.default_rng(8)
    line = generator.uniform(0.03, 0.2, number)
    return Settings(
        kind,
        THRESHOLD,
        line,
        line * generator.uniform(0.5, 3, number),
        THRESHOLD - generator.uniform(0.1, 0.6, number),
        THRESHOLD + generator.uniform(0.1, 0.4, number),
    )


@pytest.mark.parametrize("rule", ["pure", "repaired", "counted"])
def test_leaping_gives_the_answers_of_walking(monkeypatch, rule):
    settings = some_settings()
    losses = own_losses(FAMILIES[0], settings)
    horizon = np.array([1, 3, 10, 40, LENGTH, 7])
    made = {
        "pure": lambda: pure_rule(losses, longest=LENGTH, epsilon=0.4),
        "repaired": lambda: repaired_rule(losses, settings, horizon=horizon, longest=LENGTH, epsilon=0.4, delta=1e-3),
        "counted": lambda: counted_rule(np.array([90.0, 30, 9, 4, 1, 0]), horizon, longest=LENGTH),
    }[rule]()
    noise = StandardNoise.drawn(NORMAL, length=LENGTH, passes=40, generator=np.random.default_rng(2))
    walked = simulate_fresh(settings, made, values=VALUES, noise=noise)
    monkeypatch.setattr(simulation, "LONG", 1)
    leapt = simulate_fresh(settings, made, values=VALUES, noise=noise)
    np.testing.assert_array_equal(walked.f1, leapt.f1)
    np.testing.assert_array_equal(walked.answered, leapt.answered)
    np.testing.assert_allclose(walked.spent, leapt.spent, rtol=1e-12, atol=1e-15)
    assert 0 < walked.answered.mean() < LENGTH


@pytest.mark.parametrize("family", FAMILIES)
def test_no_simulated_pass_overspends(family):
    settings = some_settings()
    noise = StandardNoise.drawn(NORMAL, length=LENGTH, passes=60, generator=np.random.default_rng(3))
    rule = pure_rule(own_losses(family, settings), longest=LENGTH, epsilon=0.3, detail="exact")
    passes = simulate_fresh(settings, rule, values=VALUES, noise=noise)
    assert (passes.spent <= 0.3 + 1e-12).all()
    assert (passes.answered < LENGTH).any()


@pytest.mark.parametrize("kind", [LaplaceAboveThreshold, ExponentialAboveThreshold])
@pytest.mark.parametrize("family", FAMILIES)
def test_losses_of_many_settings_are_those_of_the_mechanism(family, kind):
    settings = some_settings(3, kind)
    below, above = np.array([[0.0, 1, 5, 90, 3]]), np.array([[1.0, 0, 2, 7, 90]])
    found = own_losses(family, settings)(below, above)
    for row in range(3):
        mechanism = kind(
            family,
            threshold=THRESHOLD,
            scale_threshold=settings.scale_threshold[row],
            scale_query=settings.scale_query[row],
        )
        np.testing.assert_allclose(found[row], mechanism.loss(below=below[0], above=above[0]), rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
@pytest.mark.parametrize("kind", [LaplaceAboveThreshold, ExponentialAboveThreshold])
@pytest.mark.parametrize("family", FAMILIES)
def test_closed_form_limits_of_a_kept_threshold_are_the_last_that_fit(family, kind, epsilon):
    losses = own_losses(family, some_settings(4, kind))
    limits = exact_kept_limits(losses, longest=40, epsilon=epsilon, counts=41)
    m, k = (axis.ravel()[None, :] for axis in np.meshgrid(np.arange(41.0), np.arange(41.0), indexing="ij"))
    fits = (np.maximum(losses(m + 1, k), losses(m, k + 1)) <= epsilon).reshape(-1, 41, 41)
    np.testing.assert_array_equal(limits, fits.sum(axis=1) - 1)
    assert (limits >= 0).any()


@pytest.mark.parametrize("resample", [True, False])
def test_exponential_noise_is_simulated_as_the_sparse_vector_answers(resample):
    """Mean answers and claims of simulated passes against 300 real ones; without the moved threshold they differ."""
    scales = {"scale_threshold": 0.02, "scale_query": 0.05}
    watcher = ExponentialAboveThreshold(FAMILIES[0], threshold=THRESHOLD, **scales)
    real = []
    for seed in range(300):
        vector = SparseVector(watcher, budget=0.6, resample=resample, entropy=SeededEntropy(seed))
        vector.ask_many(VALUES)
        real.append((vector.questions, len(vector.tops)))
    settings = Settings(type(watcher), THRESHOLD, *(np.array([value]) for value in (0.02, 0.05, 0.0, 1.0)))
    noise = StandardNoise.drawn(EXPONENTIAL, length=LENGTH, passes=4000, generator=np.random.default_rng(6))
    losses = own_losses(FAMILIES[0], settings)
    if resample:
        rule = pure_rule(losses, longest=LENGTH, epsilon=0.6, detail="exact")
        passes = simulate_fresh(settings, rule, values=VALUES, noise=noise)
    else:
        limits = exact_kept_limits(losses, longest=LENGTH, epsilon=0.6, counts=LENGTH + 1)
        passes = simulate_kept(settings, limits, values=VALUES, noise=noise)
    for found, one in ((passes.answered[0], 0), (passes.claimed[0], 1)):
        sample = np.array([row[one] for row in real], dtype=float)
        error = np.hypot(sample.std() / np.sqrt(len(sample)), found.std() / np.sqrt(len(found)))
        assert abs(sample.mean() - found.mean()) < 5 * error + 1e-9
    assert passes.answered.mean() < LENGTH


@pytest.mark.parametrize("family", FAMILIES)
def test_plain_sums_are_within_three_parts_in_a_hundred_and_fine_ones_within_ten_in_a_million(family):
    settings = some_settings()
    losses = own_losses(family, settings)
    rough = pure_rule(losses, longest=LENGTH, epsilon=1.0)
    exact = pure_rule(losses, longest=LENGTH, epsilon=1.0, detail="exact")
    np.testing.assert_allclose(rough.topped, exact.topped, rtol=0.03)
    np.testing.assert_allclose(rough.silent[:, 1:], exact.silent[:, 1:], rtol=0.03)


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
@pytest.mark.parametrize("family", FAMILIES)
def test_exact_limits_of_a_kept_threshold_are_the_last_that_fit(family, epsilon):
    settings = some_settings(2)
    limits = exact_kept_limits(own_losses(family, settings), longest=40, epsilon=epsilon)
    for row in range(2):
        near = QueryFamily(
            lower=settings.lower[row],
            upper=settings.upper[row],
            sensitivity=family.sensitivity,
            monotone=family.monotone,
        )
        mechanism = GaussianAboveThreshold(
            near,
            threshold=THRESHOLD,
            sigma_threshold=settings.scale_threshold[row],
            sigma_query=settings.scale_query[row],
        )
        m, k = np.meshgrid(np.arange(42.0), np.arange(41.0), indexing="ij")
        fits = np.maximum(mechanism.loss(m + 1, k), mechanism.loss(m, k + 1)) <= epsilon
        expected = np.minimum(fits.sum(axis=0) - 1, 40)
        np.testing.assert_array_equal(limits[row], expected)


def test_rough_limits_of_a_kept_threshold_are_near_the_exact_ones():
    settings = some_settings()
    losses = own_losses(FAMILIES[0], settings)
    rough = kept_limits(losses, longest=LENGTH, epsilon=0.3)
    exact = exact_kept_limits(losses, longest=LENGTH, epsilon=0.3)
    noise = StandardNoise.drawn(NORMAL, length=LENGTH, passes=100, generator=np.random.default_rng(5))
    first = simulate_kept(settings, rough, values=VALUES, noise=noise).f1.mean(axis=1)
    second = simulate_kept(settings, exact, values=VALUES, noise=noise).f1.mean(axis=1)
    np.testing.assert_allclose(first, second, atol=0.03)


def test_a_capped_run_costs_what_the_mechanism_says():
    settings = some_settings(4)
    horizon = np.array([1, 2, 30, 100])
    found = horizon_costs(own_losses(FAMILIES[1], settings), horizon)
    for row in range(4):
        near = QueryFamily(lower=settings.lower[row], upper=settings.upper[row], sensitivity=1e-3)
        mechanism = GaussianAboveThreshold(
            near,
            threshold=THRESHOLD,
            sigma_threshold=settings.scale_threshold[row],
            sigma_query=settings.scale_query[row],
        )
        assert found[row] == pytest.approx(mechanism.epsilon(horizon=int(horizon[row])), rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_by_a_plain_sum_rank_settings_as_the_bounds_do(family):
    """Within three parts in a hundred; half the nodes' reach would miss the peak of long runs."""
    settings = some_settings(20)
    below, above = np.array([[0.0, 1, 9, 119, 100, 0, 20]]), np.array([[1.0, 0, 1, 1, 19, 50, 20]])
    exact = own_losses(family, settings)(below, above)
    np.testing.assert_allclose(plain_losses(family, settings, detail="rough")(below, above), exact, rtol=0.03)
    np.testing.assert_allclose(plain_losses(family, settings, detail="exact")(below, above), exact, rtol=1e-5)


@pytest.mark.parametrize("rare", ["above", "below"])
def test_long_rationed_streams_are_simulated_in_blocks_as_they_are_question_by_question(monkeypatch, rare):
    """Prices held for a thousandth of the questions against a price for each, on the same noise."""
    from dpselect.composition.ration import Ration
    from dpselect.planning import simulation

    values = np.resize(VALUES, 5000)
    scales = (0.005, 0.1, 0.0, 1.0)
    settings = Settings(ExponentialAboveThreshold, THRESHOLD, *(np.array([value]) for value in scales))
    share = float((values >= THRESHOLD).mean())
    expected = 5000 * (share if rare == "above" else 1 - share)
    ration = Ration(questions=5000, expected=(expected / 3,) * 3, together=1.5, hold=(0.5, 2.0), lean=0.2, rare=rare)
    noise = StandardNoise.drawn(EXPONENTIAL, length=5000, passes=60, generator=np.random.default_rng(2), lines=1)
    given_ = {"each": np.array([1e-4, 1e-4]), "budget": 4.0, "values": values, "noise": noise}
    coarse = simulation.simulate_rationed(settings, ration, **given_)
    monkeypatch.setattr(simulation, "_BLOCKS", 10**9)
    fine = simulation.simulate_rationed(settings, ration, **given_)
    assert coarse.f1.mean() == pytest.approx(fine.f1.mean(), abs=0.003)
    assert coarse.spent.mean() == pytest.approx(fine.spent.mean(), rel=0.01)
    assert coarse.claimed.mean() == pytest.approx(fine.claimed.mean(), rel=0.01)
    assert 0.2 < fine.f1.mean() < 0.99
