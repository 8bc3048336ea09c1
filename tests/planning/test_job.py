"""Jobs are frozen, come back from files as they went in, and refuse what makes no sense."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import QueryFamily
from dpselect.errors import InvalidParameter, SourceError
from dpselect.planning import Job, Model, Profile, load_job

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)


@given(
    epsilon=st.floats(1e-6, 100),
    delta=st.one_of(st.just(0.0), st.floats(1e-12, 0.5)),
    threshold=st.floats(0.01, 0.99),
    share=st.one_of(st.none(), st.floats(0.01, 0.99)),
    values=st.one_of(st.none(), st.lists(st.floats(0.995, 1), min_size=1, max_size=8)),
    suffix=st.sampled_from([".toml", ".json"]),
)
@settings(deadline=None, max_examples=40)
def test_jobs_come_back_from_files_as_they_went_in(tmp_path_factory, epsilon, delta, threshold, share, values, suffix):
    job = Job(
        asked="crossings",
        family=FAMILY,
        count=9,
        epsilon=epsilon,
        delta=delta,
        threshold=threshold,
        share=share,
        public=Model(kind="uniform") if values is None else Profile(values, public=True),
    )
    place = tmp_path_factory.mktemp("job") / f"job{suffix}"
    job.save(place)
    assert load_job(place) == job


def test_jobs_are_frozen():
    job = Job(asked="largest", family=FAMILY, count=3, epsilon=1.0)
    with pytest.raises(FrozenInstanceError):
        job.epsilon = 2.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"asked": "smallest"}, "asked must be one of"),
        ({"epsilon": None}, "epsilon must be given, or else wanted"),
        ({"epsilon": -1.0}, "epsilon must be positive"),
        ({"delta": 1.0}, "delta must be"),
        ({"threshold": None}, "threshold must be given"),
        ({"threshold": 1.5}, "threshold must be strictly between"),
        ({"share": 1.5}, "share must be"),
        ({"count": 0}, "count must be"),
        ({"count": 10**9}, "plan for a stretch"),
        ({"outlook": "rosy"}, "outlook must be one of"),
        ({"wanted": 1.0}, "wanted must be"),
        ({"public": [0.1, 0.2]}, "public must be a Profile declared public"),
        ({"family": QueryFamily(lower=0, upper=1, sensitivity=0)}, "sensitivity must be positive"),
        ({"public": Profile([0.1], public=True), "share": None}, "the profile never reaches the threshold"),
    ],
)
def test_nonsense_is_refused_with_name_value_and_rule(change, message):
    given_ = {"asked": "crossings", "family": FAMILY, "count": 10, "epsilon": 1.0, "threshold": 0.5} | change
    with pytest.raises(InvalidParameter, match=message):
        Job(**given_)


def test_unknown_names_in_a_file_are_refused(tmp_path):
    place = tmp_path / "job.toml"
    place.write_text('asked = "largest"\nepsilom = 1.0\n[family]\nsensitivity = 0.1\n')
    with pytest.raises(InvalidParameter, match="epsilom"):
        load_job(place)
    place.write_text("asked = [")
    with pytest.raises(SourceError, match="not a TOML or JSON document"):
        load_job(place)


def test_scenarios_stay_rise_and_fall_in_the_rate_of_tops():
    job = Job(asked="crossings", family=FAMILY, count=200, epsilon=1.0, threshold=0.6)
    stays, rises, falls = (float((one.values >= 0.6).mean()) for one in job.scenarios())
    assert sum(one.weight for one in job.scenarios()) == pytest.approx(1.0)
    assert stays == pytest.approx(0.1, abs=0.01)
    assert rises == pytest.approx(0.25, abs=0.04)
    assert falls == pytest.approx(0.036, abs=0.02)
    steady = Job(asked="crossings", family=FAMILY, count=200, epsilon=1.0, threshold=0.6, outlook="steady")
    assert len(steady.scenarios()) == 1


def test_a_profile_is_cut_or_repeated_to_the_length_of_the_stream():
    profile = Profile([0.1, 0.9, 0.4], public=True)
    job = Job(asked="crossings", family=FAMILY, count=5, epsilon=1.0, threshold=0.5, public=profile)
    np.testing.assert_array_equal(job.values(), [0.1, 0.9, 0.4, 0.1, 0.9])
