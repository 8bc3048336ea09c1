from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpselect.errors import InvalidData, InvalidParameter
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.inputs import exact_scale, exactly, scores

REFUSED = {
    "empty": [],
    "empty array": np.array([]),
    "NaN": [12.5, float("nan")],
    "infinity": np.array([12.5, np.inf]),
    "minus infinity": np.array([12.5, -np.inf], dtype=np.float32),
    "two dimensions": [[12.5]],
    "no dimension": np.float64(12.5),
    "ragged": [[12.5], [1.0, 2.0]],
    "text": ["12.5"],
    "truth values": [True, False],
    "a truth value among numbers": [12.5, True],
    "complex": [12.5 + 1j],
    "nothing among numbers": [12.5, None],
    "NaN beside an integer": [12.5, 1, float("nan")],
    "NaN as a Decimal": [Decimal("12.5"), Decimal("nan")],
    "dates": np.array(["2012-12-05"], dtype="datetime64[D]"),
    "masked": np.ma.masked_invalid([12.5, np.nan]),
    "long doubles": np.array([12.5], dtype=np.longdouble),
}


@pytest.mark.parametrize("values", REFUSED.values(), ids=REFUSED)
def test_bad_values_are_refused_without_repeating_them(values: Any) -> None:
    with pytest.raises(InvalidData, match="values must") as caught:
        noisy_argmax(values, scale=1.0)
    assert "12.5" not in str(caught.value)
    assert "2012" not in str(caught.value)


@pytest.mark.parametrize(
    ("scale", "rule"),
    [
        (0.0, r"scale must be positive and finite; got 0\.0"),
        (-1, "scale must be positive and finite; got -1"),
        (float("nan"), "scale must be finite; got nan"),
        (float("inf"), "scale must be finite; got inf"),
        (True, "scale must be a number; got True"),
        ("1", "scale must be a number; got '1'"),
        (Fraction(1, 2**1001), "scale must be a float, or between"),
        (10**400, "scale must be a float, or between"),
    ],
)
def test_bad_scales_are_refused_with_their_value(scale: Any, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        noisy_argmax([0.0, 1.0], scale=scale)


number = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**70), 2**70)
    | st.fractions()
    | st.decimals(allow_nan=False, allow_infinity=False, places=4)
)


@settings(deadline=None, max_examples=100)
@given(values=st.lists(number, min_size=1, max_size=8))
def test_mixed_numbers_are_kept_exactly(values: list[Any]) -> None:
    read = scores(values)
    assert [read.exact(i) for i in range(len(read))] == [Fraction(value) for value in values]
    assert read.largest() == max(Fraction(value) for value in values)


@settings(deadline=None, max_examples=200)
@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)
    | st.lists(st.integers(2**63, 2**64 - 1), min_size=1, max_size=5)
    | st.lists(st.fractions(), min_size=1, max_size=5),
    about=st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.fractions(),
    scale=st.floats(min_value=5e-324, allow_infinity=False),
)
def test_distances_keep_their_promised_error(values: list[Any], about: Any, scale: float) -> None:
    read = scores(values)
    origin = read.near(read.largest() if about is None else Fraction(about))
    found = read.distances(origin=origin, scale=Fraction(scale))(0, len(values))
    for value, distance in zip(values, found.tolist(), strict=True):
        true = (Fraction(value) - origin) / Fraction(scale)
        if np.isinf(distance):
            assert abs(true) > Fraction(2) ** 1022
            assert (true > 0) == (distance > 0)
        else:
            assert abs(Fraction(distance) - true) <= abs(true) / 2**50 + Fraction(1, 2**1000)


@pytest.mark.parametrize("values", [[2**63 + 1, 1], [-1, 2**64 - 1], [2**60 + 1, 0.5], [2**70 + 1]])
def test_large_integers_in_lists_are_not_rounded(values: list[Any]) -> None:
    read = scores(values)
    assert [read.exact(i) for i in range(len(values))] == values


def test_public_numbers_are_read_exactly() -> None:
    assert exactly("threshold", 0.1) == Fraction(0.1) != Fraction(1, 10)
    assert exactly("threshold", Fraction(1, 10)) == Fraction(1, 10)
    assert exactly("threshold", np.float32(0.5)) == exactly("threshold", Decimal("0.5")) == Fraction(1, 2)
    assert exactly("threshold", np.int64(7)) == 7
    assert exact_scale("scale", 5e-324) == Fraction(5e-324)
    assert exact_scale("scale", Fraction(1, 2**1000)) == Fraction(1, 2**1000)


def test_a_refusal_does_not_tell_how_long_a_text_was() -> None:
    messages = set()
    for text in ("1", "a long private text"):
        with pytest.raises(InvalidData) as caught:
            scores([text])  # type: ignore[list-item]
        messages.add(str(caught.value))
    assert len(messages) == 1
