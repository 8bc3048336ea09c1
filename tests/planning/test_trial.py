"""What a trial on made-up values says of a mechanism."""

import numpy as np

from dpselect import GaussianNoisyMax, QueryFamily
from dpselect.mechanisms.catalogue import of_kind
from dpselect.planning.knowledge import Model
from dpselect.planning.trial import clearly_better, expected_accuracy, try_selections

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)


def test_the_made_up_series_depends_on_nothing_but_its_arguments():
    family = QueryFamily(lower=2, upper=4, sensitivity=0.1)
    values = Model().candidates(family, count=1000)
    assert np.array_equal(values, Model().candidates(family, count=1000))
    assert values.min() >= 2
    assert values.max() <= 4


def test_more_noise_is_expected_to_be_less_accurate():
    fine, coarse = (expected_accuracy(GaussianNoisyMax(FAMILY, sigma), candidates=365) for sigma in (0.0001, 0.3))
    assert fine.shortfall < coarse.shortfall
    assert fine.hits > 0.9 > coarse.hits


def test_every_selection_is_tried_at_the_same_cost():
    tried = try_selections(FAMILY, candidates=40, epsilon=0.2)
    assert list(tried) == [entry.name for entry in of_kind("selection")]
    for one in tried.values():
        assert 0.15 < one.mechanism.epsilon(candidates=40) <= 0.2
    assert clearly_better("gaussian-noisy-max", tried).name == "permute-and-flip"
    assert clearly_better("permute-and-flip", tried) is None
