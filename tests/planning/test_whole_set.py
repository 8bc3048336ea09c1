"""The whole set as a way: foreseen as it turns out, and ahead where all questions are there."""

from dataclasses import replace

import numpy as np
import pytest
from tests.planning.streams import KINDS, stream
from tests.planning.test_robust_outlook import FAMILY, planned

from dpselect import QueryFamily
from dpselect.errors import InvalidParameter
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Job, Plan, Profile
from dpselect.planning.planner import compare, ranked
from dpselect.planning.simulation import Passes, drawn_sets, f1_scores

SET = "set-above-threshold"


def plan_for(past, line, *, epsilon, count=365):
    public = Profile(tuple(past), public=True)
    given = {"family": FAMILY, "count": count, "threshold": line, "public": public}
    return ranked(Job(asked="crossings", **given, epsilon=epsilon, whole=True), [SET])[0]


def score(plan, values, *, passes):
    mechanism, truth = plan.mechanism(), values >= plan.threshold
    named = [mechanism.release(values, entropy=SeededEntropy(seed)).above for seed in range(passes)]
    hits, claimed = (np.array([part.sum() for part in parts]) for parts in ([one & truth for one in named], named))
    return f1_scores(hits, claimed=claimed, true=truth.sum())


def set_scores(plan, values, *, passes, seed=99):
    """F1 of so many simulated sets."""
    mechanism = plan.mechanism()
    claims = drawn_sets(mechanism, values, passes=passes, generator=np.random.default_rng(seed))
    return Passes.of_claims(claims, values >= plan.threshold, spent=plan.epsilon).f1[0]


@pytest.mark.parametrize(("kind", "epsilon"), [("calm", 0.7), ("season", 0.5), ("heavy tails", 0.3)])
def test_simulated_as_it_is_drawn(kind, epsilon):
    past, future, line = stream(kind, seed=4)
    plan = plan_for(past, line, epsilon=epsilon)
    drawn, simulated = (
        score(plan, future, passes=120),
        set_scores(plan, future, passes=600, seed=9),
    )
    spread = np.hypot(drawn.std() / np.sqrt(120), simulated.std() / np.sqrt(600))
    assert drawn.mean() == pytest.approx(simulated.mean(), abs=4 * spread + 1e-3)
    assert plan.prediction.spent == pytest.approx(epsilon)


@pytest.mark.parametrize("kind", ["calm", "season"])
def test_it_is_ahead_of_a_sparse_vector_that_pays_for_every_top(kind):
    past, future, line = stream(kind, seed=31)
    assert score(plan_for(past, line, epsilon=1.0), future, passes=20).mean() > planned(past, future, line, 1.0) + 0.05


@pytest.mark.slow
def test_ahead_on_a_dozen_streams_and_seldom_worse_than_said():
    gains, worse = {}, []
    for kind in KINDS:
        for seed in (31, 32, 33):
            past, future, line = stream(kind, seed=seed)
            plan = plan_for(past, line, epsilon=1.0)
            found = score(plan, future, passes=30)
            gains[kind, seed] = float(found.mean()) - planned(past, future, line, 1.0)
            worse.append(np.mean(found < plan.prediction.low - 0.005))
    by_kind = {kind: float(np.mean([gains[kind, seed] for seed in (31, 32, 33)])) for kind in KINDS}
    assert min(by_kind.values()) > -0.02, by_kind
    assert np.mean(list(gains.values())) > 0.06
    assert np.mean(worse) < 0.12, "one in ten, as said"


def test_a_plan_costs_what_it_promises_for_every_table_it_fits():
    past, _, line = stream("calm", seed=4)
    plan = Plan.from_document(plan_for(past, line, epsilon=0.4).as_document())
    for sensitivity in (1 / 3000, 1 / 9000, 1e-9):
        here = QueryFamily(lower=0, upper=1, sensitivity=sensitivity, monotone=True)
        for count in (1, 31, 5000):
            mechanism = plan.fitted(here, unit=1.0, count=count).mechanism()
            assert 0.399 < mechanism.epsilon(count) <= 0.4
    with pytest.raises(InvalidParameter, match="moves by up to"):
        plan.fitted(QueryFamily(lower=0, upper=1, sensitivity=0.1, monotone=True), unit=1.0)
    document = plan.as_document()
    with pytest.raises(InvalidParameter, match="chains"):
        Plan.from_document(document | {"parameters": {"line_share": 0.1}})
    for wrong in (
        {"chains": [[0.0, 0.5, 1.0]]},
        {"chains": [[0.5, 1.0, 1.0]]},
        {"line_share": 1.5},
        {"line_share": "much"},
    ):
        with pytest.raises(InvalidParameter):
            Plan.from_document(document | {"parameters": {**plan.way.parameters, **wrong}}).mechanism()


def test_only_where_all_questions_are_there():
    job = Job(asked="crossings", family=FAMILY, count=60, epsilon=1.0, threshold=0.6)
    assert SET not in [plan.name for plan in compare(job).plans]
    whole = compare(replace(job, whole=True))
    assert whole.best.name == SET
    assert Job.from_document(whole.job.as_document()) == whole.job
    with pytest.raises(InvalidParameter, match="ways"):
        compare(job, ways=[SET])
