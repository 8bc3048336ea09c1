"""What a trial on made-up values says of a mechanism."""

import numpy as np
import pytest

from dpselect import GaussianNoisyMax, PermuteAndFlip, QueryFamily
from dpselect.mechanisms.catalogue import of_kind
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.knowledge import Model, Profile, made_up
from dpselect.planning.one_release import clearly_better, try_selections
from dpselect.planning.prediction import blind_accuracy, expected_accuracy, with_flat_ends

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
YEAR = made_up(FAMILY, count=365, public=Model())


def test_the_made_up_series_depends_on_nothing_but_its_arguments():
    family = QueryFamily(lower=2, upper=4, sensitivity=0.1)
    values = Model().candidates(family, count=1000)
    assert np.array_equal(values, Model().candidates(family, count=1000))
    assert not np.array_equal(values, Model().candidates(family, count=1000, seed=1))
    assert values.min() >= 2
    assert values.max() <= 4


def test_more_noise_is_expected_to_be_less_accurate():
    fine, coarse = (expected_accuracy(GaussianNoisyMax(FAMILY, sigma), YEAR) for sigma in (0.0001, 0.3))
    assert fine.shortfall < coarse.shortfall
    assert fine.hits > 0.9 > coarse.hits


def test_every_selection_is_tried_at_the_same_cost():
    tried = try_selections(FAMILY, made_up(FAMILY, count=40, public=Model()), epsilon=0.2)
    assert list(tried) == [entry.name for entry in of_kind("selection")]
    for one in tried.values():
        assert 0.15 < one.mechanism.epsilon(candidates=40) <= 0.2
    assert clearly_better("gaussian-noisy-max", tried).name == "permute-and-flip"
    assert clearly_better("permute-and-flip", tried) is None


def test_the_smallest_is_tried_towards_the_other_end():
    lone = [np.array([0.0] + [0.5] * 9)]
    small, large = (blind_accuracy(FAMILY, lone, goal=goal) for goal in ("smallest", "largest"))
    assert (small.hits, large.hits) == (0.1, 0.9)
    assert expected_accuracy(PermuteAndFlip(FAMILY, scale=0.01), lone, goal="smallest").hits == 1.0


@pytest.mark.parametrize("epsilon", [0.02, 0.05, 0.1, 0.2])
def test_the_expectation_holds_on_series_that_were_not_tried(epsilon):
    """Hits on two hundred other series of the kind: their mean lies near the expected one, most within its range."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1 / 2000, monotone=True)
    picker = PermuteAndFlip.calibrated(family, epsilon=epsilon)
    expected = expected_accuracy(picker, made_up(family, count=120, public=Model()))
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
            expected_accuracy(picker, [Model().candidates(family, count=120, seed=seed)]).hits for seed in range(9)
        ]
        assert max(alone) - min(alone) > 0.2


def test_a_public_series_is_taken_as_it_is():
    profile = Profile([0.1, 0.9, 0.2], public=True)
    assert [one.tolist() for one in made_up(FAMILY, count=3, public=profile)] == [[0.1, 0.9, 0.2]]
    assert expected_accuracy(PermuteAndFlip(FAMILY, scale=0.01), made_up(FAMILY, count=3, public=profile)).hits == 1.0


def test_many_near_ties_at_the_end_looked_for_are_among_what_is_tried() -> None:
    """The smallest of a season that is flat below, as heating is in summer, is found far less often than a wave's."""
    picker = PermuteAndFlip(FAMILY, scale=0.001)
    for goal in ("largest", "smallest"):
        made = with_flat_ends(YEAR, goal=goal)
        assert all((one.min(), one.max()) == (two.min(), two.max()) for one, two in zip(YEAR, made, strict=True))
        waves, flat = (expected_accuracy(picker, made[first::2], goal=goal) for first in (0, 1))
        assert flat.hits < waves.hits / 2
        both = expected_accuracy(picker, made, goal=goal)
        assert both.fewest_hits <= flat.hits < both.hits < waves.hits
