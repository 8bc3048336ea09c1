"""What is simulated is what the mechanisms do."""

import numpy as np
import pytest

from dpselect import ExponentialAboveThreshold, LaplaceAboveThreshold, QueryFamily, SeededEntropy, SparseVector
from dpselect.composition.ration import Ration
from dpselect.planning import Job, Profile, simulation
from dpselect.planning.simulation import simulate_kept, simulate_rationed
from dpselect.planning.ways import Capped, GaussianByHand, Promise, Rationed

LENGTH = 120
THRESHOLD = 0.6
FAMILIES = [QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=kind) for kind in (True, False)]
VALUES = np.random.default_rng(4).uniform(0.2, 0.8, LENGTH)


def agree(sample, found):
    """Whether two means lie within five standard errors of each other."""
    error = np.hypot(sample.std() / np.sqrt(len(sample)), found.std() / np.sqrt(len(found)))
    return abs(sample.mean() - found.mean()) < 5 * error + 1e-9


@pytest.mark.parametrize("kind", [LaplaceAboveThreshold, ExponentialAboveThreshold])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_fixed_number_of_tops_is_simulated_as_the_sparse_vector_answers(family, kind):
    """Answers and claims of simulated passes against 300 real ones; one ⊤ more or less would be seen."""
    cap, scales = 20, {"scale_threshold": 0.02, "scale_query": 0.05}
    watcher = kind(family, threshold=THRESHOLD, **scales)
    budget = watcher.epsilon(above=cap) * (1 + 1e-9)
    real = []
    for seed in range(300):
        vector = SparseVector(watcher, budget=budget, resample=False, entropy=SeededEntropy(seed))
        vector.ask_many(VALUES)
        real.append((vector.questions, len(vector.tops)))
    asked, tops = np.array(real, dtype=float).T
    given = {"streams": VALUES[None, :], "passes": 4000}
    found = simulate_kept(watcher, epsilon=budget, **given, generator=np.random.default_rng(6))
    assert agree(asked, found.answered[0])
    assert agree(tops, found.claimed[0])
    assert found.answered.mean() < LENGTH
    assert (found.spent <= budget).all()
    less = watcher.epsilon(above=cap - 2)
    fewer = simulate_kept(watcher, epsilon=less, **given, generator=np.random.default_rng(6))
    assert not agree(asked, fewer.answered[0])


@pytest.mark.parametrize("rare", ["above", "below"])
def test_a_rationed_budget_is_simulated_as_the_sparse_vector_answers(rare):
    ration = Ration(questions=LENGTH, expected=(20.0, 20.0), together=1.5, hold=(0.5, 2.0), lean=0.2, rare=rare)
    watcher = ExponentialAboveThreshold(FAMILIES[0], threshold=THRESHOLD, scale_threshold=0.01, scale_query=0.05)
    truth, real = VALUES >= THRESHOLD, []
    for seed in range(300):
        vector = SparseVector(watcher, budget=1.0, resample=False, ration=ration, entropy=SeededEntropy(seed))
        answers = vector.ask_many(VALUES)
        real.append((np.count_nonzero(answers), np.count_nonzero(answers & truth[: len(answers)]), vector.spent))
    claimed, hits, spent = np.array(real, dtype=float).T
    found = simulate_rationed(
        ration,
        scale_threshold=0.01,
        costs=(1e-3, 1e-3),
        budget=1.0,
        threshold=THRESHOLD,
        streams=VALUES[None, :],
        passes=4000,
        generator=np.random.default_rng(6),
    )
    assert agree(claimed, found.claimed[0])
    assert agree(hits, found.hits[0])
    assert agree(spent, found.spent[0])
    assert (found.spent <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("rare", ["above", "below"])
def test_long_rationed_streams_are_simulated_in_blocks_as_they_are_question_by_question(monkeypatch, rare):
    """Prices held for a thousandth of the questions against a price for each."""
    values = np.resize(VALUES, 5000)
    share = float((values >= THRESHOLD).mean())
    expected = 5000 * (share if rare == "above" else 1 - share)
    ration = Ration(questions=5000, expected=(expected / 3,) * 3, together=1.5, hold=(0.5, 2.0), lean=0.2, rare=rare)
    given = {"scale_threshold": 0.005, "costs": (1e-4, 1e-4), "budget": 4.0, "threshold": THRESHOLD, "passes": 60}
    passes = {}
    for blocks in (1000, 10**9):
        monkeypatch.setattr(simulation, "_BLOCKS", blocks)
        generator = np.random.default_rng(2)
        passes[blocks] = simulate_rationed(ration, **given, streams=values[None, :], generator=generator)
    coarse, fine = passes.values()
    assert coarse.f1.mean() == pytest.approx(fine.f1.mean(), abs=0.003)
    assert coarse.spent.mean() == pytest.approx(fine.spent.mean(), rel=0.01)
    assert coarse.claimed.mean() == pytest.approx(fine.claimed.mean(), rel=0.01)
    assert 0.2 < fine.f1.mean() < 0.99


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["exponential-kept", "laplace-kept"])
def test_a_capped_way_pays_for_the_number_it_was_chosen_for(family, name):
    job = Job(
        asked="crossings",
        family=family,
        epsilon=2.0,
        threshold=THRESHOLD,
        public=Profile(tuple(VALUES), public=True),
        outlook="steady",
    )
    way = Capped.chosen(name, job, epsilon=2.0, seed=1)
    vector = way.build(Promise.of(job, epsilon=2.0), entropy=SeededEntropy(1))
    vector.ask_many(np.resize([0.9, 0.1, 0.1], 1200))
    assert vector.spent <= 2.0
    assert 10 <= len(vector.tops) < 400
    # One more than the budget pays for does not fit.
    assert not vector.can_ask


def test_noise_by_hand_is_predicted_by_the_mechanism_itself():
    job = Job(
        asked="crossings",
        family=FAMILIES[0],
        epsilon=3.0,
        threshold=THRESHOLD,
        public=Profile(tuple(VALUES), public=True),
        outlook="steady",
    )
    fine = GaussianByHand.stated((0.05, 0.05), resample=True)
    coarse = GaussianByHand.stated((0.5, 0.5), resample=True)
    near, far = (way.predict(job, epsilon=3.0, seed=1) for way in (fine, coarse))
    assert near.spent <= 3.0
    assert near.score != far.score
    assert isinstance(Rationed.chosen("exponential-rationed", job, epsilon=3.0, seed=1), Rationed)
