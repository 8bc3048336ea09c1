"""What a trial on made-up values says of a mechanism."""

import numpy as np
import pytest

from dpselect import GaussianNoisyMax, PermuteAndFlip, QueryFamily
from dpselect.mechanisms.catalogue import of_kind
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Job, Plan
from dpselect.planning.knowledge import Model, Profile, made_up, with_flat_ends
from dpselect.planning.prediction import predict_choice

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
JOB = Job(asked="largest", family=FAMILY, count=365, epsilon=1.0)
YEAR = made_up(FAMILY, count=365, public=Model())


def test_the_made_up_series_depends_on_nothing_but_its_arguments():
    family = QueryFamily(lower=2, upper=4, sensitivity=0.1)
    values = Model().candidates(family, count=1000)
    assert np.array_equal(values, Model().candidates(family, count=1000))
    assert not np.array_equal(values, Model().candidates(family, count=1000, seed=1))
    assert values.min() >= 2
    assert values.max() <= 4


def test_more_noise_is_expected_to_be_less_accurate():
    fine, coarse = (
        predict_choice(JOB, GaussianNoisyMax(FAMILY, sigma), epsilon=1.0, series=YEAR) for sigma in (0.0001, 0.3)
    )
    assert fine.shortfall < coarse.shortfall
    assert fine.hits > 0.9 > coarse.hits


def test_every_selection_is_tried_at_the_same_cost():
    job = Job(asked="largest", family=FAMILY, count=40, epsilon=0.2)
    plans = [Plan.made(job, entry.name, epsilon=0.2) for entry in of_kind("selection")]
    for plan in plans:
        assert 0.15 < plan.mechanism().epsilon(candidates=40) <= 0.2
    assert min(plans, key=lambda plan: plan.prediction.shortfall).name == "permute-and-flip"


def test_the_smallest_is_tried_towards_the_other_end():
    lone, picker = [np.array([0.0] + [0.5] * 9)], PermuteAndFlip(FAMILY, scale=0.01)
    jobs = [Job(asked="largest", family=FAMILY, count=10, epsilon=1.0, goal=goal) for goal in ("smallest", "largest")]
    small, large = (predict_choice(job, picker, epsilon=1.0, series=lone) for job in jobs)
    assert (small.guess_hits, large.guess_hits) == (0.1, 0.9)
    assert small.hits == 1.0


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1, 0.2])
def test_the_expectation_holds_on_series_that_were_not_tried(epsilon):
    """Hits on two hundred other series of the kind: their mean lies near the expected one, most within its range."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1 / 2000, monotone=True)
    picker = PermuteAndFlip.calibrated(family, epsilon=epsilon)
    job = Job(asked="largest", family=family, count=120, epsilon=epsilon)
    expected = predict_choice(job, picker, epsilon=epsilon)
    real = []
    for seed in range(1000, 1200):
        values = Model().candidates(family, count=120, seed=seed)
        picked = picker.release_many(values, times=30, entropy=SeededEntropy(seed)).indices
        real.append(float(np.mean(values[picked] == values.max())))
    spread = float(np.std(real)) * (1 / 20 + 1 / 200) ** 0.5
    assert abs(np.mean(real) - expected.hits) < 4 * spread + 0.01
    within = np.mean([expected.fewest_hits - 0.15 <= one <= expected.most_hits + 0.15 for one in real])
    assert within >= 0.7
    # One series alone can promise far more, or less: why there are several.
    if epsilon == 0.05:
        alone = [
            predict_choice(job, picker, epsilon=epsilon, series=[Model().candidates(family, count=120, seed=seed)]).hits
            for seed in range(9)
        ]
        assert max(alone) - min(alone) > 0.2


def test_a_public_series_is_taken_as_it_is():
    profile = Profile([0.1, 0.9, 0.2], public=True)
    assert [one.tolist() for one in made_up(FAMILY, count=3, public=profile)] == [[0.1, 0.9, 0.2]]
    job = Job(asked="largest", family=FAMILY, count=3, epsilon=1.0, public=profile)
    assert predict_choice(job, PermuteAndFlip(FAMILY, scale=0.01), epsilon=1.0).hits == 1.0


def test_many_near_ties_at_the_end_looked_for_are_among_what_is_tried() -> None:
    """The smallest of a season that is flat below, as heating is in summer, is found far less often than a wave's."""
    picker = PermuteAndFlip(FAMILY, scale=0.001)
    for goal in ("largest", "smallest"):
        made = with_flat_ends(YEAR, goal=goal)
        assert all((one.min(), one.max()) == (two.min(), two.max()) for one, two in zip(YEAR, made, strict=True))
        job = Job(asked="largest", family=FAMILY, count=365, epsilon=1.0, goal=goal)
        waves, flat, both = (
            predict_choice(job, picker, epsilon=1.0, series=part) for part in (made[0::2], made[1::2], made)
        )
        assert flat.hits < waves.hits / 2
        assert both.fewest_hits <= flat.hits < both.hits < waves.hits
