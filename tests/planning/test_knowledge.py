"""Only what is declared public is looked at."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect import QueryFamily
from dpselect.errors import InvalidParameter, NotPublic, SourceError
from dpselect.planning import Job, Model, Profile, read_profile
from dpselect.planning.knowledge import moved_to_share

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)


class Untouchable:
    def __array__(self, *_args, **_kwargs):
        raise AssertionError("private values were looked at")

    def __iter__(self):
        raise AssertionError("private values were looked at")


@pytest.mark.parametrize("declared", [False, None, 1, "yes"])
def test_undeclared_values_are_refused_unseen(declared):
    with pytest.raises(NotPublic, match="declare them so with public"):
        Profile(Untouchable(), public=declared)


def test_an_undeclared_file_is_not_opened(tmp_path):
    with pytest.raises(NotPublic):
        read_profile(tmp_path / "missing.csv", public=False)
    with pytest.raises(SourceError, match="cannot read"):
        read_profile(tmp_path / "missing.csv", public=True)


def test_a_document_must_declare_its_profile_public():
    described = {"asked": "largest", "epsilon": 1.0, "family": {"sensitivity": 1e-3}}
    with pytest.raises(NotPublic):
        Job.from_document({**described, "public": {"values": [0.1, 0.2]}})
    assert Job.from_document({**described, "public": {"values": [0.1, 0.2], "public": True}}).count == 2


def test_a_profile_does_not_print_its_values():
    assert "0.125" not in repr(Profile([0.125, 0.5], public=True))


def test_profiles_are_read_from_text_json_and_csv(tmp_path):
    (tmp_path / "a.txt").write_text("1\n2\n4\n")
    (tmp_path / "a.json").write_text("[1, 2, 4]")
    (tmp_path / "a.csv").write_text("day,riders\nx,1\ny,2\nz,4\n")
    for name, column in (("a.txt", None), ("a.json", None), ("a.csv", "riders")):
        assert read_profile(tmp_path / name, public=True, column=column, maximum=4).values == (0.25, 0.5, 1.0)
    with pytest.raises(SourceError):
        read_profile(tmp_path / "a.csv", public=True, column="nobody")
    with pytest.raises(SourceError):
        read_profile(tmp_path / "a.csv", public=True)


@given(
    count=st.integers(5, 400),
    share=st.floats(0.02, 0.98),
    threshold=st.floats(0.1, 0.9),
    kind=st.sampled_from(["seasonal", "uniform", "worst-case"]),
)
@settings(deadline=None, max_examples=60)
def test_models_have_the_share_that_was_asked_for(count, share, threshold, kind):
    model = Model(kind=kind, margin=0.05 if kind == "worst-case" else None)
    values = model.stream(FAMILY, count=count, threshold=threshold, share=share)
    assert len(values) == count
    assert values.min() >= 0
    assert values.max() <= 1
    assert np.count_nonzero(values >= threshold) == max(1, round(share * count))


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=50), share=st.floats(0.05, 0.95))
@settings(deadline=None, max_examples=60)
def test_moving_the_level_reaches_at_least_the_share(values, share):
    moved = moved_to_share(np.array(values), FAMILY, threshold=0.5, share=share)
    assert np.count_nonzero(moved >= 0.5) >= max(1, round(share * len(values)))


def test_bad_models_are_refused_by_name():
    with pytest.raises(InvalidParameter, match="kind must be one of"):
        Model(kind="hopeful")
    with pytest.raises(InvalidParameter, match="margin must be given with the worst case"):
        Model(kind="uniform", margin=0.1)
    with pytest.raises(InvalidParameter, match="margin must be below the width"):
        Model(kind="worst-case", margin=2.0).candidates(FAMILY, count=3)


@pytest.mark.parametrize(("low", "high", "threshold"), [(0.14, 0.3, 0.24), (0.0, 1.0, 0.05), (0.2, 0.9, 0.85)])
def test_a_range_bounds_the_stream_and_does_not_say_how_many_are_above(
    low: float, high: float, threshold: float
) -> None:
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    values = Model(low=low, high=high).stream(family, count=365, threshold=threshold)
    assert (values.min(), values.max()) == pytest.approx((low, high))
    assert (values >= threshold).sum() == round(0.1 * 365)
    job = Job(
        asked="crossings", family=family, count=365, epsilon=1.0, threshold=threshold, public=Model(low=low, high=high)
    )
    fewer = [float((case.values >= threshold).mean()) for case in job.scenarios()]
    assert min(fewer) < 0.05  # a share that nobody stated may be a third of what is supposed, in odds
    assert max(fewer) > 0.2
