"""Saved states: nothing is lost, nothing can be changed unnoticed, no lost run is continued."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpselect.composition import GaussianFilter, PureFilter, RepairedReportingFilter, SparseVector
from dpselect.composition.saved_state import digest
from dpselect.errors import BudgetExhausted, InvalidParameter, StateRefused
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold, LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.noise.entropy import SeededEntropy
from dpselect.privacy.family import QueryFamily

FAMILY = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
WATCHER = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=0.05, sigma_query=0.05)
LAPLACE = LaplaceAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.02, scale_query=0.02)
EXPONENTIAL = ExponentialAboveThreshold(FAMILY, threshold=0.5, scale_threshold=0.02, scale_query=0.02)


WATCHER_STATE = WATCHER.state()


def used(watcher=WATCHER, **settings) -> SparseVector:
    svt = SparseVector(watcher, **({"budget": 5.0, "clip": (0.3, 0.2)} | settings))
    svt.ask_many([0.0, 1.0, 0.0, 0.0])
    return svt


@pytest.mark.parametrize("watcher", [WATCHER, LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("key", [None, b"a secret of the curator"])
def test_a_restored_budget_goes_on_where_it_was(watcher, key: bytes | None) -> None:
    svt = used(watcher)
    again = SparseVector.restore(svt.save(key=key), key=key)
    assert again.spent == svt.spent
    assert again.watcher == svt.watcher
    assert again.questions == svt.questions
    assert again.filter.limit == 5.0
    again.ask(0.0)
    assert again.spent > svt.spent


def test_an_open_run_is_charged_and_not_continued() -> None:
    svt = used()
    assert svt.open_run is not None
    again = SparseVector.restore(svt.save())
    assert again.open_run is None
    assert again.runs[-1].epsilon == svt.open_run.epsilon > 0
    assert again.filter.spent == again.spent == svt.spent
    again.ask(0.0)
    assert again.open_run[:2] == (1, 0)


def test_restoring_an_exhausted_budget_does_not_refill_it() -> None:
    svt = SparseVector(WATCHER, budget=0.5)
    svt.ask_many(np.tile([0.0, 1.0], 5000))
    again = SparseVector.restore(svt.save())
    assert again.spent == svt.spent
    try:
        asked = len(again.ask_many(np.tile([0.0, 1.0], 5000)))
    except BudgetExhausted:
        asked = 0
    assert asked < 10
    assert again.spent <= 0.5


def test_a_closed_one_stays_closed() -> None:
    svt = used()
    svt.close()
    again = SparseVector.restore(svt.save())
    assert not again.open
    with pytest.raises(StateRefused):
        again.ask(0.0)


def test_other_filters_are_saved_too() -> None:
    for filter, horizon in ((GaussianFilter(mu=3.0), 20), (RepairedReportingFilter(epsilon=5.0, delta=0.2), None)):
        svt = used(budget=None, filter=filter, horizon=horizon)
        again = SparseVector.restore(svt.save())
        svt.renew()
        assert again.filter._state() == svt.filter._state()
        assert again.spent == svt.spent


def test_reproducible_answers_stay_marked() -> None:
    svt = used(entropy=SeededEntropy(4))
    assert SparseVector.restore(svt.save()).noise == "reproducible"


PATHS = [
    ("watcher", "sigma_query", 0.5),
    ("watcher", "sensitivity", 1e-9),
    ("filter", "epsilon", 50.0),
    ("filter", "sum", "0x0"),
    (None, "ended", "0x0"),
    (None, "questions", 0),
    (None, "run", None),
    (None, "resample", False),
    (None, "clip", [0.01, 0.01]),
    (None, "noise", "reproducible"),
]


@pytest.mark.parametrize(("part", "name", "value"), PATHS)
def test_an_altered_number_is_refused(part: str | None, name: str, value: object) -> None:
    # Seeded, so that a run has ended and another is open; but a seeded state is marked reproducible already.
    svt = used() if name == "noise" else used(entropy=SeededEntropy(4))
    state = json.loads(svt.save())
    target = state if part is None else state[part]
    assert target[name] != value
    target[name] = value
    with pytest.raises(StateRefused, match="digest"):
        SparseVector.restore(json.dumps(state))


@pytest.mark.parametrize("version", [0, 2, "1", None, True])
def test_another_version_is_refused(version: object) -> None:
    state = json.loads(used().save())
    state["version"] = version
    with pytest.raises(StateRefused, match="version"):
        SparseVector.restore(json.dumps(state))


STRANGE = [
    "",
    "{",
    "[]",
    "null",
    "\x00",
    "[" * 100_000,
    '{"format": "something else"}',
    '{"format": "dpselect sparse vector", "version": 1, "x": NaN, "digest": "sha256:00"}',
    '{"format": "dpselect sparse vector", "version": 1, "x": -Infinity, "digest": "sha256:00"}',
    '{"format": "dpselect sparse vector", "version": 1, "x": 1e999, "digest": "sha256:00"}',
    '{"format": "dpselect sparse vector", "version": 1, "version": 1, "digest": "sha256:00"}',
    '{"format": "dpselect sparse vector", "version": 1, "digest": "\\ud800"}',
    '{"format": "dpselect sparse vector", "version": 1}',
    "1" * 10_000,
]


@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(StateRefused):
        SparseVector.restore(text)


def test_a_field_that_stands_twice_is_refused() -> None:
    """Two programs may read two numbers from such a text, and the digest of one of them matches."""
    text = used().save()
    assert text.count('"ended":') == 1
    with pytest.raises(StateRefused, match="not JSON"):
        SparseVector.restore(text.replace('"ended":', '"ended": "0x0", "ended":'))


def test_without_the_key_an_edit_cannot_be_signed() -> None:
    text = used().save(key=b"curator")
    state = json.loads(text)
    del state["digest"]
    state["ended"] = "0x0"
    for forged_key in (None, b"guess"):
        with pytest.raises(StateRefused, match="digest"):
            SparseVector.restore(json.dumps({**state, "digest": digest(state, forged_key)}), key=b"curator")
    with pytest.raises(StateRefused):
        SparseVector.restore(text)
    with pytest.raises(InvalidParameter):
        SparseVector.restore(text, key=b"")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", {"below": 3, "above": 0, "charge": 0.0}),
        ("ended", "-0x1"),
        ("filter", {"kind": "pure", "epsilon": -1.0, "sum": "0x0"}),
        ("filter", {"kind": "unknown"}),
        ("watcher", {}),
        ("clip", [1]),
        ("clip", [0.3, 0.2, 0.1]),
        ("run", {"below": 5, "above": 0, "charge": 4.0}),
        ("run", {"below": 0, "above": 1, "charge": 4.0}),
        ("run", {"below": 3000, "above": 0, "charge": 4.0}),
        ("run", {"below": 2, "above": 0, "charge": 4.0, "more": 1}),
        ("run", {"below": 2.5, "above": 0, "charge": 4.0}),
        ("open", 1),
        ("open", None),
        ("noise", "none"),
        ("questions", -1),
        ("questions", 1),
        ("questions", [4]),
        ("horizon", 1),
        ("horizon", [5]),
        ("ended", 5),
        ("ended", "0x" + "f" * 300),
        ("more", 1),
        ("watcher", {**WATCHER_STATE, "more": 1}),
        ("watcher", {**WATCHER_STATE, "sigma_query": [0.05]}),
        ("filter", {"kind": "pure", "epsilon": 5.0, "sum": "0x0", "more": 1}),
        ("filter", {"kind": "pure", "epsilon": [5.0], "sum": "0x0"}),
        ("filter", {"kind": "pure", "epsilon": 5.0, "sum": "0x0"}),
        ("filter", {"kind": "pure", "epsilon": 5.0}),
        ("filter", {"kind": ["pure"]}),
    ],
)
def test_numbers_that_cannot_be_are_refused_even_with_a_matchingdigest(name: str, value: object) -> None:
    state = json.loads(used().save())
    while state["run"] is None or state["run"]["below"] != 2:  # the noise is real: answers differ once in a long while
        state = json.loads(used().save())
    del state["digest"]
    SparseVector.restore(json.dumps({**state, "digest": digest(state, None)}))
    state[name] = value
    with pytest.raises(StateRefused):
        SparseVector.restore(json.dumps({**state, "digest": digest(state, None)}))


def test_a_filter_from_outside_is_not_saved() -> None:
    class Mine(PureFilter):
        pass

    svt = SparseVector(WATCHER, filter=Mine(1.0))
    with pytest.raises(StateRefused, match="Mine"):
        svt.save()
