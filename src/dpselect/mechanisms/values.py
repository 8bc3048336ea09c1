"""The door for private values: what comes in, what is refused, what is cut, to the range or nearer to a threshold.

Floating-point input stays floating point. Exact input (``int``, ``Fraction``, ``Decimal``) is never rounded:
rounding could move two neighbouring datasets further apart than the sensitivity says. No text raised here
repeats a value, a count or a position, since all of them are private; but *that* a call was refused is
visible, so data that may break the rules belongs behind ``outside="clip"``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, ValuesView
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import LARGEST_COUNT, FloatArray, finite, non_negative, one, refuse
from dpselect.errors import InvalidData
from dpselect.noise.inputs import FloatScores, private_rational
from dpselect.privacy.family import QueryFamily

if TYPE_CHECKING:
    from dpselect.mechanisms.above_threshold import AboveThreshold

#: What to do with a value outside [lower, upper].
OutsidePolicy: TypeAlias = Literal["refuse", "clip"]

#: ``w`` for [ρ - w, ρ + w], or (below, above) for [ρ - below, ρ + above].
Clip: TypeAlias = float | tuple[float, float]

#: Anything with one dimension and numbers in it: arrays, sequences, pandas and Polars series.
PrivateValues: TypeAlias = ArrayLike | Sequence[Fraction] | Any

_DOUBLE = np.dtype(np.float64)
_FLOATS: set[type] = {float, np.float64, np.float32, np.float16}
_WHOLE: set[type] = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}

#: From so many doubles on, memory for a copy costs more than looking at them twice.
_WORTH_SHARING = 1 << 15

_ONE_DIMENSION = "values must be a one-dimensional, non-empty sequence of numbers"
_NOT_NUMBERS = "values must be numbers (float64 or narrower, int, Fraction or Decimal), without NaN or nulls"
_OUTSIDE = 'values must lie in the family\'s [lower, upper]; pass outside="clip" to cut them to it'


def check_outside(outside: object) -> OutsidePolicy:
    """The policy itself; anything else is refused."""
    if not isinstance(outside, str) or outside not in get_args(OutsidePolicy):
        raise refuse("outside", outside, '"refuse" or "clip"')
    return cast(OutsidePolicy, outside)


def admit(
    values: PrivateValues, *, family: QueryFamily, outside: OutsidePolicy = "refuse"
) -> FloatArray | list[Fraction]:
    """The values as a ``float64`` array, or as fractions when they came exact and may not fit a double.

    Parameters
    ----------
    values : array, sequence or series
        One private value per candidate or query.
    family : QueryFamily
        The range they must lie in.
    outside : {"refuse", "clip"}
        Whether a value outside [lower, upper] is an error (the default) or is moved to the nearer end. NaN is
        always an error.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=0.1)
    >>> admit([0.25, 1], family=family).tolist()
    [0.25, 1.0]
    >>> admit([0.25, 1.5], family=family)
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidData: values must lie in the family's [lower, upper]; ...
    >>> admit([0.25, 1.5], family=family, outside="clip").tolist()
    [0.25, 1.0]
    >>> admit([Fraction(1, 3), 1], family=family)
    [Fraction(1, 3), Fraction(1, 1)]
    """
    admitted = admit_scores(values, family=family, outside=outside, shared=0)
    return admitted.array if isinstance(admitted, FloatScores) else admitted


def admit_scores(
    values: PrivateValues, *, family: QueryFamily, outside: OutsidePolicy = "refuse", shared: int = _WORTH_SHARING
) -> FloatScores | list[Fraction]:
    """:func:`admit` for a noisy maximum or a run: doubles come with what the check found out about them.

    They are copied before they are looked at, since the caller's array could be changed between the check and the
    draw; from ``shared`` doubles on (0 for never) they are not, and are checked again as they are read.
    """
    check_outside(outside)
    array = _as_array(values)
    if array.dtype == object or (array.dtype.kind in "iu" and not _holds_whole_numbers(family)):
        return _admit_exact(array, family, outside)
    # Within ±2^53 every integer is a double; further out conversion rounds, never across the range's ends.
    alone = outside == "clip" or not 0 < shared <= len(array)
    numbers: FloatArray = array.astype(np.float64, copy=alone and outside == "refuse")
    if outside == "clip":
        numbers = np.clip(numbers, family.lower, family.upper)
    # Looking for the least and the largest needs no memory and takes no short cuts, and a NaN is found as both.
    least, largest = float(numbers[numbers.argmin()]), float(numbers[numbers.argmax()])
    if math.isnan(least):
        raise InvalidData(_NOT_NUMBERS)
    if not (family.lower <= least and largest <= family.upper):
        raise InvalidData(_OUTSIDE)
    return FloatScores(numbers, least=least, largest=largest, shared=not alone)


def admit_one(value: PrivateValues, *, family: QueryFamily, outside: OutsidePolicy = "refuse") -> float | Fraction:
    """One private value through the same door.

    >>> admit_one(0.25, family=QueryFamily(lower=0, upper=1, sensitivity=0.1))
    0.25
    """
    if type(value) is float and family.lower <= value <= family.upper:
        return value
    admitted = admit([value], family=family, outside=outside)[0]
    return admitted if isinstance(admitted, Fraction) else float(admitted)


def _holds_whole_numbers(family: QueryFamily) -> bool:
    return family.lower >= -LARGEST_COUNT and family.upper <= LARGEST_COUNT


def _as_array(values: PrivateValues) -> np.ndarray[Any, np.dtype[Any]]:
    """A 1-d array of floats, integers or (dtype object) exact numbers; every conversion here is exact."""
    if type(values) is np.ndarray and values.dtype == _DOUBLE and values.ndim == 1 and len(values):
        return values  # the usual case needs none of the care below
    if isinstance(values, (str, bytes, set, frozenset, dict)):
        raise InvalidData(_ONE_DIMENSION)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidData(_NOT_NUMBERS)
    try:
        if isinstance(values, (Sequence, ValuesView)) and not hasattr(values, "__array__"):
            # NumPy turns a mix of large integers into rounded doubles, so plain sequences are looked at first.
            values = list(values)
            array: np.ndarray[Any, np.dtype[Any]] = np.array(values, dtype=_common_type(values))
        else:
            array = np.asarray(values)
    except Exception:  # whatever it was, its text may quote the values
        raise InvalidData(_ONE_DIMENSION) from None
    if array.ndim != 1 or array.size == 0:
        raise InvalidData(_ONE_DIMENSION)
    if array.dtype != object and (array.dtype.kind not in "iuf" or array.dtype.itemsize > 8):
        raise InvalidData(_NOT_NUMBERS)
    return array


def _common_type(values: Sequence[object]) -> type:
    """``float`` where that loses nothing whatever the values are, else ``object``."""
    kinds = set(map(type, values))
    if kinds <= _FLOATS:
        return float
    if kinds <= _FLOATS | _WHOLE and all(
        abs(int(value)) <= LARGEST_COUNT  # type: ignore[call-overload]
        for value in values
        if type(value) in _WHOLE
    ):
        return float
    return object


def _exact(value: object) -> Fraction:
    """One number, exactly; booleans, nulls, NaN and anything else are refused."""
    try:
        return private_rational(value)
    except InvalidData:
        raise InvalidData(_NOT_NUMBERS) from None


def _admit_exact(array: np.ndarray[Any, np.dtype[Any]], family: QueryFamily, outside: OutsidePolicy) -> list[Fraction]:
    exact = [_exact(value) for value in array]
    lower, upper = Fraction(family.lower), Fraction(family.upper)
    if outside == "clip":
        return [min(max(value, lower), upper) for value in exact]
    if sum(not lower <= value <= upper for value in exact):  # look at all of them before saying anything
        raise InvalidData(_OUTSIDE)
    return exact


class Clipper:
    """Admits values of ``watcher``'s family and cuts them to its clipped range (THEORY §5).

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.2, sigma_query=0.35)
    >>> door = Clipper(watcher, clip=(0.25, 0.125), outside="refuse")
    >>> door.admit([0.0, 0.5, 1.0]).tolist()
    [0.25, 0.5, 0.625]
    >>> door.admit_one(0.75, threshold=0.75)
    Fraction(1, 2)
    """

    def __init__(self, watcher: AboveThreshold, *, clip: Clip | None, outside: OutsidePolicy) -> None:
        self.watcher = watcher
        self.outside = check_outside(outside)
        self.clip = None if clip is None else _widths(clip)
        #: The mechanism over the clipped range, which is what its runs cost.
        self.clipped: AboveThreshold = watcher
        if self.clip is not None:
            near = watcher.family.near(watcher.threshold, below=self.clip[0], above=self.clip[1])
            self.clipped = replace(watcher, family=near)
        self._family = watcher.family
        #: Doubles within these ends need no cutting.
        self.lower, self.upper = self.clipped.family.lower, self.clipped.family.upper

    def admit_one(self, value: PrivateValues, *, threshold: float | None = None) -> float | Fraction:
        """One value, cut; with a threshold of its own, moved so that its distance from ρ is the one from that."""
        number = admit_one(value, family=self._family, outside=self.outside)
        if threshold is not None:
            # In fractions: rounding the difference could move neighbours further apart than the sensitivity.
            public = Fraction(one(finite, "threshold", threshold))
            number = Fraction(number) - public + Fraction(self.watcher.threshold)
        if number < self.lower:
            return self.lower
        return self.upper if number > self.upper else number

    def admit(self, values: PrivateValues) -> FloatArray | Sequence[Fraction]:
        """Many values, cut."""
        numbers = admit_scores(values, family=self._family, outside=self.outside, shared=1)
        if isinstance(numbers, FloatScores):
            # A new array in any case: the caller's could be changed after it was looked at.
            cut: FloatArray = np.clip(numbers.array, self.lower, self.upper)
            return cut
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        return [min(max(number, lower), upper) for number in numbers]


def _widths(clip: Clip) -> tuple[float, float]:
    pair = clip if isinstance(clip, tuple) else (clip, clip)
    if len(pair) != 2:
        raise refuse("clip", clip, "one width, or a pair (below, above)")
    below, above = (one(non_negative, "clip", width) for width in pair)
    return below, above
