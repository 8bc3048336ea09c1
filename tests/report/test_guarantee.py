"""The guarantee in words: every number on the safe side."""

from __future__ import annotations

import math
import re
from pathlib import Path

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidParameter
from dpselect.report.guarantee import Guarantee
from dpselect.rounding import at_least, at_most, rounded_up


@settings(max_examples=300, deadline=None)
@given(st.floats(0, 1e300), st.integers(1, 17))
def test_shown_bounds_are_on_the_safe_side(value: float, digits: int) -> None:
    assert float(at_least(value, digits=digits)) <= value <= float(at_most(value, digits=digits))
    assert rounded_up(value, digits=digits) == float(at_most(value, digits=digits))


def test_rounding_to_nearest_would_have_shown_too_little() -> None:
    value = 0.10004
    assert float(f"{value:.4g}") < value  # the negative control
    assert at_most(value) == "0.1001"


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-12, 700))
def test_the_factor_is_never_below_e_to_the_epsilon(epsilon: float) -> None:
    with mpmath.workdps(50):
        assert mpmath.mpf(Guarantee(epsilon=epsilon).factor) >= mpmath.exp(mpmath.mpf(epsilon))


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-9, 30))
def test_beliefs_after_an_answer_are_upper_bounds(epsilon: float) -> None:
    for before, after in Guarantee(epsilon=epsilon).beliefs:
        prior = mpmath.mpf(before.rstrip("%")) / 100
        with mpmath.workdps(50):
            odds = prior / (1 - prior) * mpmath.exp(mpmath.mpf(epsilon))
            assert mpmath.mpf(after.rstrip("%")) / 100 >= odds / (1 + odds)


def test_delta_is_told_and_beliefs_are_not_promised_with_it() -> None:
    promise = Guarantee(epsilon=0.1, delta=1e-5)
    assert promise.headline == "ε = 0.1 up to δ = 1e-5"
    assert "beyond that by at most 1e-5" in promise.sentences[0]
    assert promise.beliefs == ()


@pytest.mark.parametrize(("epsilon", "word"), [(5.0, "weak"), (50.0, "hardly anyone"), (1000.0, "hardly anyone")])
def test_a_large_epsilon_is_called_what_it_is(epsilon: float, word: str) -> None:
    promise = Guarantee(epsilon=epsilon)
    assert any(word in sentence for sentence in promise.sentences)
    assert not any(word in sentence for sentence in Guarantee(epsilon=0.5).sentences)
    assert all(float(after.rstrip("%")) <= 100 for _, after in promise.beliefs)


def test_nothing_spent_changes_nothing() -> None:
    assert "stays the same" in Guarantee(epsilon=0.0).sentences[0]
    assert Guarantee(epsilon=0.0).beliefs[-1] == ("50%", "50.01%")


def test_neighbours_are_told_apart() -> None:
    told = {Guarantee(epsilon=1, neighbours=kind).sentences[0] for kind in ("add-remove", "replace", "declared")}  # type: ignore[arg-type]
    assert len(told) == 3


@pytest.mark.parametrize("bad", [{"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": 1, "neighbours": "cousins"}])
def test_nonsense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Guarantee(**bad)  # type: ignore[arg-type]


def test_the_page_for_curators_tells_the_same_numbers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+%) \|$", page, flags=re.MULTILINE)
    assert len(rows) >= 5
    for epsilon, factor, half in rows:
        promise = Guarantee(epsilon=float(epsilon))
        assert factor == at_most(promise.factor)
        assert half == dict(promise.beliefs)["50%"]


def test_a_seed_leaves_no_promise_standing() -> None:
    seeded, private = (Guarantee(epsilon=0.1, noise=noise) for noise in ("reproducible", "private"))  # type: ignore[arg-type]
    assert private.holds
    assert not seeded.holds
    assert seeded.headline.startswith("none")
    assert seeded.sentences[0].startswith("With private noise this would hold: take any one person out")
    assert not any("whatever else anyone knows" in sentence for sentence in seeded.sentences)
    assert seeded.beliefs == ()
