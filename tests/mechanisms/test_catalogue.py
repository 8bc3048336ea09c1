"""The catalogue names every mechanism once, as it is."""

from __future__ import annotations

import inspect

import pytest
from tests.mechanisms.members import untested

import dpselect
from dpselect import QueryFamily
from dpselect.errors import InvalidParameter
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.catalogue import CATALOGUE, entry_of, find, of_kind
from dpselect.mechanisms.release import GaussianRelease, LaplaceRelease
from dpselect.mechanisms.selection import NoisyMax
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold

KINDS = {
    "selection": NoisyMax,
    "above-threshold": AboveThreshold,
    "set": SetAboveThreshold,
    "release": (GaussianRelease, LaplaceRelease),
}
FAMILY = QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_every_entry_is_a_public_mechanism_of_its_kind(entry: object) -> None:
    mechanism = entry.mechanism()  # type: ignore[attr-defined]
    assert issubclass(mechanism, KINDS[entry.kind])  # type: ignore[attr-defined]
    assert getattr(dpselect, entry.class_name) is mechanism  # type: ignore[attr-defined]
    assert set(mechanism.noise_names) <= set(inspect.signature(mechanism).parameters)  # type: ignore[attr-defined]
    assert find(entry.name) is entry  # type: ignore[attr-defined]


def test_every_public_mechanism_stands_in_the_catalogue() -> None:
    public = {name for name in dpselect.__all__ if isinstance(getattr(dpselect, name), type)}
    kinds = (NoisyMax, AboveThreshold, SetAboveThreshold, GaussianRelease, LaplaceRelease)
    mechanisms = {name for name in public if issubclass(getattr(dpselect, name), kinds)}
    assert mechanisms == {entry.class_name for entry in CATALOGUE}
    assert len({entry.name for entry in CATALOGUE}) == len({entry.title for entry in CATALOGUE}) == len(CATALOGUE)


def test_every_mechanism_of_the_catalogue_has_a_contract_suite() -> None:
    assert untested() == []


def test_selections_and_thresholds_are_made_by_one_call_each() -> None:
    for entry in of_kind("selection"):
        made = entry.mechanism().calibrated(FAMILY, epsilon=0.5, candidates=10)
        assert entry_of(made) is entry
    for entry in of_kind("above-threshold"):
        more = {"horizon": 50} if entry.guarantee == "pure, by transcript" else {}
        made = entry.mechanism().calibrated(FAMILY, threshold=0.5, epsilon=0.5, **more)
        assert made.scales == tuple(getattr(made, name) for name in made.noise_names)


def test_strangers_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="mechanism must be one of gaussian-noisy-max"):
        find("nonsense")
    with pytest.raises(InvalidParameter, match="a mechanism of this package"):
        entry_of(object())
