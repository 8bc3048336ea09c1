"""What may be noised: one-dimensional arrays of floats or integers, or exact rational numbers.

A release first looks at *distances*, (value − origin)/scale in doubles. Subtracting the origin before
anything is rounded keeps the relative error of a distance near 2^-52 however large the values themselves
are, so values near 2^60 are told apart as well as values near 0. What distances leave undecided is
settled on the exact values.

Messages name the rule and never a value: the values are private. How many there are is public.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.errors import InvalidData

#: What the releases accept.
Values: TypeAlias = "NDArray[Any] | Sequence[float | int | Fraction] | FloatScores"
#: A number taken at its exact value.
Exact: TypeAlias = float | int | Fraction
#: ``distances(start, stop)`` of some values from a fixed origin, in units of a fixed scale.
Distances: TypeAlias = Callable[[int, int], FloatArray]

_DOUBLE = np.dtype(np.float64)
_MOST_RATIONAL_SCALE = Fraction(2**1000)
_LEAST_RATIONAL_SCALE = 1 / _MOST_RATIONAL_SCALE
#: What is said of a shared array that was changed beyond use.
CHANGED = "values must stay as they are while they are in use; pass a copy"
_FINITE = "values must be finite; there is a NaN or an infinity among them"


def scores(values: Values) -> Scores:
    """Check values at the door.

    >>> len(scores([3, 1, 2])), scores([0.5, 0.25]).exact(0)
    (3, Fraction(1, 2))
    >>> scores([0.5, float("nan")])
    Traceback (most recent call last):
    dpselect.errors.InvalidData: values must be finite; there is a NaN or an infinity among them
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidData("values must not be masked; give every candidate a value")
    if type(values) is FloatScores:
        return values
    if type(values) is np.ndarray and values.dtype == _DOUBLE and values.ndim == 1 and len(values):
        return FloatScores.checked(values)
    try:
        array = _without_rounding(values) if isinstance(values, (list, tuple)) else np.asarray(values)
    except ValueError:
        raise InvalidData("values must be a one-dimensional array of numbers; this is ragged") from None
    if array.ndim != 1:
        raise InvalidData(f"values must be one-dimensional; this has {array.ndim} dimensions")
    if array.size == 0:
        raise InvalidData("values must not be empty")
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return FloatScores.checked(array)
    if array.dtype.kind in "iuO":
        return ExactScores(array)
    raise InvalidData(
        f"values must be real numbers of at most 64 bits, or exact; these are {array.dtype.type.__name__}"
    )


def _without_rounding(values: Sequence[object]) -> NDArray[Any]:
    """A list as an array; NumPy alone would round large integers, among themselves or beside floats."""
    kinds = {type(value) for value in values}
    if len(kinds) <= 1 and kinds != {int}:
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def exactly(name: str, value: Exact) -> Fraction:
    """A finite public number at its exact value.

    >>> exactly("threshold", 0.5)
    Fraction(1, 2)
    """
    try:
        return _rational(value)
    except TypeError:
        raise refuse(name, value, "a number") from None
    except ValueError:
        raise refuse(name, value, "finite") from None


def exact_scale(name: str, value: Exact) -> Fraction:
    """A positive, finite scale of noise at its exact value.

    >>> exact_scale("scale", 2)
    Fraction(2, 1)
    """
    return Fraction(check_scale(name, value))


def check_scale(name: str, value: Exact) -> Exact:
    """A scale of noise as it was given, if it is positive and finite.

    >>> check_scale("scale", -2.0)
    Traceback (most recent call last):
    dpselect.errors.InvalidParameter: scale must be positive and finite; got -2.0
    """
    if type(value) is float and 0.0 < value < math.inf:
        return value
    number = exactly(name, value)
    if number <= 0:
        raise refuse(name, value, "positive and finite")
    if not isinstance(value, float) and not _LEAST_RATIONAL_SCALE <= number <= _MOST_RATIONAL_SCALE:
        raise refuse(name, value, "a float, or between 2^-1000 and 2^1000")
    return number


def nearest_double(number: Exact, *, clip: bool = False) -> float:
    """The double nearest to a rational number; infinite beyond the doubles unless it is to be clipped."""
    try:
        return float(number)
    except OverflowError:
        beyond = sys.float_info.max if clip else math.inf
        return beyond if number > 0 else -beyond


class FloatScores:
    """Doubles (or shorter floats), all of them between two finite ones.

    A ``shared`` array is somebody else's, who may change it at any time, by another thread or a signal handler. What is
    read from it is cut to the two ends on its way: whatever takes part in a release lies between them.
    """

    def __init__(self, array: NDArray[Any], *, least: float, largest: float, shared: bool = False) -> None:
        self.array = array
        self._least, self._largest = least, largest
        self._shared = shared

    @classmethod
    def checked(cls, array: NDArray[Any]) -> FloatScores:
        """An array that may hold anything; what is not finite is refused."""
        # Quicker than a minimum and a maximum; a NaN anywhere is found as both of them.
        least, largest = float(array[array.argmin()]), float(array[array.argmax()])
        if not (-math.inf < least and largest < math.inf):
            raise InvalidData(_FINITE)
        return cls(array, least=least, largest=largest)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: slice) -> FloatScores:
        return FloatScores(self.array[place], least=self._least, largest=self._largest, shared=self._shared)

    def __neg__(self) -> FloatScores:
        return FloatScores(-self.read(0, len(self.array)), least=-self._largest, largest=-self._least)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Some of them, between the two ends for certain."""
        block = self.array[start:stop]
        return np.clip(block, self._least, self._largest) if self._shared else block

    def largest(self) -> float:
        """The largest."""
        return self._largest

    def exact(self, index: int) -> Fraction:
        """One of them, exactly."""
        value = float(self.read(index, index + 1)[0])
        if math.isnan(value):
            raise InvalidData(CHANGED)
        return Fraction(value)

    def near(self, number: Fraction) -> float:
        """The double closest to ``number``."""
        return nearest_double(number, clip=True)

    def distances(self, *, origin: Exact, scale: Exact) -> Distances:
        """How to measure: each distance within 2^-50 of itself, or 2^-1000; beyond the doubles, infinite."""
        read, zero, unit = self.read, float(origin), nearest_double(scale)
        if max(abs(zero), abs(self._least), abs(self._largest)) > 2.0**1022:
            return lambda start, stop: huge_distances(read(start, stop), zero=zero, unit=unit)
        if not 2.0**-1000 <= unit <= 2.0**1000:
            return lambda start, stop: _divided_distances(read(start, stop), zero, unit)
        # Multiplying is quicker than dividing; the reciprocal of a usual scale is a normal number.
        factor = 1.0 / unit
        return lambda start, stop: _multiplied_distances(read(start, stop), zero, factor)

    def few_distances(self, *, origin: Exact, scale: Exact) -> list[float]:
        """All distances at once."""
        zero, unit = float(origin), nearest_double(scale)
        if max(abs(zero), abs(self._least), abs(self._largest)) > 2.0**1022 or not 2.0**-1000 <= unit <= 2.0**1000:
            return _all_of(self, origin=origin, scale=scale)
        factor = 1.0 / unit
        return [(value - zero) * factor for value in self.read(0, len(self.array)).tolist()]


def _all_of(values: Scores, *, origin: Exact, scale: Exact) -> list[float]:
    found: list[float] = values.distances(origin=origin, scale=scale)(0, len(values)).tolist()
    return found


# As a decorator, silence about overflow costs half of what it costs as a context.
@np.errstate(over="ignore", under="ignore")
def _multiplied_distances(block: NDArray[Any], zero: float, factor: float) -> FloatArray:
    found: FloatArray = np.subtract(block, zero, dtype=np.float64)
    found *= factor
    return found


@np.errstate(over="ignore", under="ignore")
def _divided_distances(block: NDArray[Any], zero: float, unit: float) -> FloatArray:
    found: FloatArray = np.subtract(block, zero, dtype=np.float64)
    found /= unit
    return found


@np.errstate(over="ignore", under="ignore")
def huge_distances(block: NDArray[Any], *, zero: FloatArray | float, unit: float) -> FloatArray:
    """Distances where differences may overflow: those are taken between halves, which at that size are exact."""
    found: FloatArray = np.subtract(block, zero, dtype=np.float64)
    halves = np.multiply(block, 0.5, dtype=np.float64) - zero * 0.5
    return np.where(np.isfinite(found), found / unit, halves / unit * 2.0)


class ExactScores:
    """Exact numbers, one by one: ints, Fractions, Decimals, and floats at their exact value."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._numbers = [private_rational(number) for number in array]

    def __len__(self) -> int:
        return len(self._numbers)

    def largest(self) -> Fraction:
        """The largest."""
        return max(self._numbers)

    def exact(self, index: int) -> Fraction:
        """One of them."""
        return self._numbers[index]

    def near(self, number: Fraction) -> Fraction:
        """The number itself: any can serve as an origin."""
        return number

    def distances(self, *, origin: Exact, scale: Exact) -> Distances:
        """How to measure, block by block."""
        numbers, zero, unit = self._numbers, Fraction(origin), Fraction(scale)
        return lambda start, stop: np.array(
            [nearest_double((number - zero) / unit) for number in numbers[start:stop]], dtype=np.float64
        )

    def few_distances(self, *, origin: Exact, scale: Exact) -> list[float]:
        """All distances at once."""
        return _all_of(self, origin=origin, scale=scale)


#: Values that passed the door, read block by block in doubles and one by one exactly.
Scores: TypeAlias = FloatScores | ExactScores


def private_rational(value: object) -> Fraction:
    """One private value, exactly; the message never repeats it."""
    try:
        return _rational(value)
    except TypeError:
        raise InvalidData("values must be numbers; there is something else among them") from None
    except ValueError:
        raise InvalidData(_FINITE) from None


def _rational(value: object) -> Fraction:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, (float, np.floating, Decimal)):
        raise TypeError
    if isinstance(value, np.floating):
        if value.itemsize > 8:  # would be rounded
            raise TypeError
        value = float(value)
    if not math.isfinite(value):
        raise ValueError
    return Fraction(value)
