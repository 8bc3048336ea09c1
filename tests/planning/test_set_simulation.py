"""Passes of a whole set in doubles come out as releases do."""

import numpy as np
import pytest
from tests.planning.streams import stream

from dpselect import QueryFamily
from dpselect.mechanisms.chains import Chains
from dpselect.mechanisms.set_above_threshold import RUNS, SetAboveThreshold
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.simulation import drawn_sets

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1 / 3000, monotone=True)


@pytest.mark.parametrize("prior", [RUNS, Chains([(0.1, 0.0), (0.5, 0.9, 2.0), (0.9, 0.5)])])
@pytest.mark.parametrize(("kind", "epsilon"), [("calm", 0.7), ("season", 0.3)])
def test_simulated_as_it_is_drawn(kind, epsilon, prior):
    _, values, line = stream(kind, seed=4)
    mechanism = SetAboveThreshold.calibrated(FAMILY, threshold=line, epsilon=epsilon, candidates=365, prior=prior)
    drawn = np.array([mechanism.release(values, entropy=SeededEntropy(seed)).above for seed in range(200)])
    passes = np.concatenate(list(drawn_sets(mechanism, values, passes=1500, generator=np.random.default_rng(3))))
    assert passes.shape == (1500, 365)
    for measure in (lambda sets: (sets != (values >= line)).sum(axis=1), lambda sets: sets[:, 1:] @ np.ones(364)):
        one, other = measure(drawn), measure(passes)
        spread = np.hypot(one.std() / np.sqrt(len(one)), other.std() / np.sqrt(len(other)))
        assert one.mean() == pytest.approx(other.mean(), abs=4.5 * spread + 1e-6)
    again = np.concatenate(list(drawn_sets(mechanism, values, passes=1500, generator=np.random.default_rng(3))))
    assert (again == passes).all()
