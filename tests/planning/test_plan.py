"""Plans build mechanisms, come back from files as they went in, and cannot be bent to promise more than they keep."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import GaussianNoisyMax, PermuteAndFlip, QueryFamily
from dpselect.composition import SparseVector
from dpselect.errors import InvalidParameter, SourceError, StateRefused
from dpselect.planning import Job, Plan, load_plan
from dpselect.planning.ways import SETS, WAYS, GaussianByHand, OneShot, Rationed, equal_part

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)


def plan_for(name, *, epsilon=1.0):
    given = {"family": FAMILY, "count": 50, "epsilon": epsilon}
    if WAYS[name] is OneShot:
        approximate = name in ("gaussian-release", "gaussian-noisy-max-profile")
        job = Job(asked="largest", **given, delta=1e-5 if approximate else 0.0)
        return replace(Plan.made(job, name, epsilon=epsilon), prediction=None)
    parameters = {"scale_threshold": 0.05, "scale_query": 0.06}
    if name in SETS:
        parameters = {"line_share": 0.2, "chains": ((0.1, 0.5, 1.0), (0.5, 0.0, 2.0))}
    if name.endswith("-clipped"):
        parameters |= {"clip_below": 0.2, "clip_above": 0.1}
    if WAYS[name] is Rationed:
        parameters |= {"rare": "above", "expected": (3.0, 2.0), "together": 1.5, "hold": (0.5, 2.0), "lean": 0.2}
    way = WAYS[name].from_parameters(name, parameters)
    return Plan(way=way, asked="crossings", **given, threshold=0.6)


@pytest.mark.parametrize("key", WAYS)
def test_every_plan_builds_a_mechanism_that_answers(key):
    plan = plan_for(key)
    mechanism = plan.mechanism()
    if plan.one_by_one is None:
        released = mechanism.release([0.1] * 49 + [0.9])
        assert released.loss.delta == plan.delta or plan.name == "gaussian-noisy-max-profile"
    else:
        assert isinstance(mechanism, SparseVector)
        assert len(mechanism.ask_many([0.1, 0.9, 0.2])) == 3
        assert mechanism.filter.epsilon(delta=plan.delta) <= plan.epsilon


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@pytest.mark.parametrize("key", WAYS)
def test_plans_come_back_from_files_as_they_went_in(tmp_path, key, suffix):
    plan = plan_for(key)
    place = tmp_path / f"plan{suffix}"
    plan.save(place)
    assert load_plan(place) == plan


@given(
    line=st.floats(1e-9, 1e9),
    question=st.floats(1e-9, 1e9),
    epsilon=st.floats(1e-9, 1e3),
    threshold=st.floats(0.1, 0.9),
)
@settings(deadline=None, max_examples=60)
def test_numbers_keep_every_bit_in_toml(tmp_path_factory, line, question, epsilon, threshold):
    plan = replace(
        plan_for("sparse-kept"),
        epsilon=epsilon,
        threshold=threshold,
        way=GaussianByHand(name="sparse-kept", scale_threshold=line, scale_query=question),
    )
    place = tmp_path_factory.mktemp("plan") / "plan.toml"
    plan.save(place)
    assert load_plan(place) == plan


@pytest.mark.parametrize("key", ["permute-and-flip", "gaussian-noisy-max", "gaussian-release", "laplace-release"])
def test_a_plan_whose_noise_was_cut_is_refused(key):
    plan = plan_for(key)
    plan.mechanism()
    bent = replace(plan, way=replace(plan.way, scale=0.9 * plan.way.scale))
    with pytest.raises(StateRefused, match="make the plan again"):
        bent.mechanism()


def test_a_sparse_vector_with_less_noise_still_keeps_its_budget():
    way = GaussianByHand(name="sparse-kept", scale_threshold=1e-3, scale_query=1e-3)
    bent = replace(plan_for("sparse-kept"), way=way)
    mechanism = bent.mechanism()
    assert not mechanism.can_ask or mechanism.ask_many([0.9] * 40).size < 40
    assert mechanism.spent <= bent.epsilon


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": "another"}, StateRefused),
        ({"format": None}, StateRefused),
        ({"surprise": 1}, StateRefused),
        ({"contender": "magic"}, InvalidParameter),
        ({"contender": "sparse-zcdp"}, InvalidParameter),
        ({"epsilon": -1.0}, InvalidParameter),
        ({"epsilon": "much"}, InvalidParameter),
        ({"delta": 0.5}, InvalidParameter),
        ({"threshold": None}, InvalidParameter),
        ({"parameters": {"scale_threshold": 1.0, "sigma": 2.0}}, InvalidParameter),
        ({"family": {"lower": 0.0}}, InvalidParameter),
        ({"prediction": {"score": 1.0}}, StateRefused),
    ],
)
def test_damaged_documents_are_refused(change, error):
    document = plan_for("laplace-kept").as_document() | change
    with pytest.raises(error):
        Plan.from_document({name: value for name, value in document.items() if value is not None})


def test_missing_and_wrong_numbers_are_refused():
    document = plan_for("laplace-kept").as_document()
    with pytest.raises(InvalidParameter, match="scale_query must be among"):
        Plan.from_document(document | {"parameters": {"scale_threshold": 1.0}})
    with pytest.raises(InvalidParameter, match="scale_threshold"):
        Plan.from_document(document | {"parameters": {"scale_threshold": "1", "scale_query": 1.0}})


def test_a_file_that_is_no_plan_is_refused(tmp_path):
    place = tmp_path / "plan.json"
    place.write_text(json.dumps([1, 2]))
    with pytest.raises(SourceError, match="must hold a table"):
        load_plan(place)
    with pytest.raises(SourceError, match="cannot read"):
        load_plan(tmp_path / "none.toml")


def test_the_mechanism_is_the_one_that_was_planned():
    assert isinstance(plan_for("permute-and-flip").mechanism(), PermuteAndFlip)
    assert isinstance(plan_for("gaussian-noisy-max").mechanism(), GaussianNoisyMax)
    vector = plan_for("sparse-kept-clipped").mechanism()
    assert (vector.watcher.family.lower, vector.watcher.family.upper) == pytest.approx((0.4, 0.7))


@given(whole=st.floats(1e-9, 1e9), parts=st.integers(1, 1000))
def test_equal_parts_never_come_to_more_than_the_whole(whole, parts):
    assert Fraction(equal_part(whole, parts)) * parts <= Fraction(whole)
