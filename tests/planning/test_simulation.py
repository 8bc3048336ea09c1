"""What is simulated is what the mechanisms do, and what is read between losses is close to the losses."""

import numpy as np
import pytest

from dpselect import GaussianAboveThreshold, LaplaceAboveThreshold, QueryFamily
from dpselect.planning import stream_simulation
from dpselect.planning.run_costs import (
    counted_rule,
    exact_kept_limits,
    gaussian_losses,
    horizon_costs,
    kept_limits,
    laplace_losses,
    pure_rule,
    repaired_rule,
)
from dpselect.planning.stream_simulation import Settings, StandardNoise, simulate_fresh, simulate_kept

LENGTH = 120
THRESHOLD = 0.6
FAMILIES = [QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=kind) for kind in (True, False)]
VALUES = np.random.default_rng(4).uniform(0.2, 0.8, LENGTH)


def some_settings(number=6):
    generator = np.random.default_rng(8)
    line = generator.uniform(0.03, 0.2, number)
    return Settings(
        THRESHOLD,
        line,
        line * generator.uniform(0.5, 3, number),
        THRESHOLD - generator.uniform(0.1, 0.6, number),
        THRESHOLD + generator.uniform(0.1, 0.4, number),
    )


@pytest.mark.parametrize("rule", ["pure", "repaired", "counted"])
def test_leaping_gives_the_answers_of_walking(monkeypatch, rule):
    settings = some_settings()
    losses = gaussian_losses(FAMILIES[0], settings)
    horizon = np.array([1, 3, 10, 40, LENGTH, 7])
    made = {
        "pure": lambda: pure_rule(losses, longest=LENGTH, epsilon=0.4),
        "repaired": lambda: repaired_rule(losses, settings, horizon=horizon, longest=LENGTH, epsilon=0.4, delta=1e-3),
        "counted": lambda: counted_rule(np.array([90.0, 30, 9, 4, 1, 0]), horizon, longest=LENGTH),
    }[rule]()
    noise = StandardNoise.drawn("normal", length=LENGTH, passes=40, generator=np.random.default_rng(2))
    walked = simulate_fresh(settings, made, values=VALUES, noise=noise)
    monkeypatch.setattr(stream_simulation, "LONG", 1)
    leapt = simulate_fresh(settings, made, values=VALUES, noise=noise)
    np.testing.assert_array_equal(walked.f1, leapt.f1)
    np.testing.assert_array_equal(walked.answered, leapt.answered)
    np.testing.assert_allclose(walked.spent, leapt.spent, rtol=1e-12, atol=1e-15)
    assert 0 < walked.answered.mean() < LENGTH


@pytest.mark.parametrize("family", FAMILIES)
def test_no_simulated_pass_overspends(family):
    settings = some_settings()
    noise = StandardNoise.drawn("normal", length=LENGTH, passes=60, generator=np.random.default_rng(3))
    rule = pure_rule(gaussian_losses(family, settings), longest=LENGTH, epsilon=0.3, detail="exact")
    passes = simulate_fresh(settings, rule, values=VALUES, noise=noise)
    assert (passes.spent <= 0.3 + 1e-12).all()
    assert (passes.answered < LENGTH).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_laplace_losses_are_those_of_the_mechanism(family):
    settings = some_settings(3)
    below, above = np.array([[0.0, 1, 5, 90, 3]]), np.array([[1.0, 0, 2, 7, 90]])
    found = laplace_losses(family, settings)(below, above)
    for row in range(3):
        mechanism = LaplaceAboveThreshold(
            family,
            threshold=THRESHOLD,
            scale_threshold=settings.line_scale[row],
            scale_query=settings.question_scale[row],
        )
        np.testing.assert_allclose(found[row], mechanism.loss(below=below[0], above=above[0]), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_rough_losses_are_within_three_parts_in_a_hundred(family):
    settings = some_settings()
    losses = gaussian_losses(family, settings)
    rough = pure_rule(losses, longest=LENGTH, epsilon=1.0)
    exact = pure_rule(losses, longest=LENGTH, epsilon=1.0, detail="exact")
    np.testing.assert_allclose(rough.topped, exact.topped, rtol=0.03)
    np.testing.assert_allclose(rough.silent[:, 1:], exact.silent[:, 1:], rtol=0.03)


@pytest.mark.parametrize("epsilon", [0.05, 0.3])
@pytest.mark.parametrize("family", FAMILIES)
def test_exact_limits_of_a_kept_threshold_are_the_last_that_fit(family, epsilon):
    settings = some_settings(2)
    limits = exact_kept_limits(gaussian_losses(family, settings), longest=40, epsilon=epsilon)
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
            sigma_threshold=settings.line_scale[row],
            sigma_query=settings.question_scale[row],
        )
        m, k = np.meshgrid(np.arange(42.0), np.arange(41.0), indexing="ij")
        fits = np.maximum(mechanism.loss(m + 1, k), mechanism.loss(m, k + 1)) <= epsilon
        expected = np.minimum(fits.sum(axis=0) - 1, 40)
        np.testing.assert_array_equal(limits[row], expected)


def test_rough_limits_of_a_kept_threshold_are_near_the_exact_ones():
    settings = some_settings()
    losses = gaussian_losses(FAMILIES[0], settings)
    rough = kept_limits(losses, longest=LENGTH, epsilon=0.3)
    exact = exact_kept_limits(losses, longest=LENGTH, epsilon=0.3)
    noise = StandardNoise.drawn("normal", length=LENGTH, passes=100, generator=np.random.default_rng(5))
    first = simulate_kept(settings, rough, values=VALUES, noise=noise).f1.mean(axis=1)
    second = simulate_kept(settings, exact, values=VALUES, noise=noise).f1.mean(axis=1)
    np.testing.assert_allclose(first, second, atol=0.03)


def test_a_capped_run_costs_what_the_mechanism_says():
    settings = some_settings(4)
    horizon = np.array([1, 2, 30, 100])
    found = horizon_costs(gaussian_losses(FAMILIES[1], settings), horizon)
    for row in range(4):
        near = QueryFamily(lower=settings.lower[row], upper=settings.upper[row], sensitivity=1e-3)
        mechanism = GaussianAboveThreshold(
            near,
            threshold=THRESHOLD,
            sigma_threshold=settings.line_scale[row],
            sigma_query=settings.question_scale[row],
        )
        assert found[row] == pytest.approx(mechanism.epsilon(horizon=int(horizon[row])), rel=1e-9)
