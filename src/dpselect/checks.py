"""The rules public parameters obey, checked once, at the door.

Every function takes the argument's name and value, returns the value as ``float64`` (an array when given one),
and otherwise raises :class:`~dpselect.errors.InvalidParameter` with the name, the value and the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.errors import InvalidParameter
from dpselect.errors import refuse as refuse

_INFINITY = float("inf")

FloatArray: TypeAlias = NDArray[np.float64]


def numbers(name: str, value: ArrayLike | float | Fraction) -> FloatArray:
    """Real numbers without NaN, as a ``float64`` array (0-d for a scalar)."""
    if isinstance(value, Fraction):
        try:
            value = float(value)
        except OverflowError:
            raise refuse(name, value, "within the range of doubles") from None
    try:
        raw = np.asarray(value)
    except ValueError:
        raise refuse(name, value, "a number or a rectangular array of numbers") from None
    if raw.dtype == np.bool_ or not (np.issubdtype(raw.dtype, np.floating) or np.issubdtype(raw.dtype, np.integer)):
        raise refuse(name, value, "a number or an array of numbers")
    array = raw.astype(np.float64)
    if array.size == 0:
        raise refuse(name, value, "non-empty")
    if np.isnan(array).any():
        raise refuse(name, value, "a number, not NaN")
    return array


def _demand(name: str, value: object, array: FloatArray, holds: NDArray[np.bool_], rule: str) -> FloatArray:
    if not holds.all():
        offender = value if array.ndim == 0 else float(array[~holds].flat[0])
        raise refuse(name, offender, rule)
    return array


def finite(name: str, value: ArrayLike | float | Fraction) -> FloatArray:
    """Finite numbers."""
    if isinstance(value, float) and -_INFINITY < value < _INFINITY:  # the common case, without array overhead
        return np.asarray(value)
    array = numbers(name, value)
    return _demand(name, value, array, np.isfinite(array), "finite")


def positive(name: str, value: ArrayLike | float | Fraction) -> FloatArray:
    """Positive, finite numbers.

    >>> float(positive("sigma", 2))
    2.0
    """
    if isinstance(value, float) and 0.0 < value < _INFINITY:
        return np.asarray(value)
    array = numbers(name, value)
    return _demand(name, value, array, np.isfinite(array) & (array > 0), "positive and finite")


def non_negative(name: str, value: ArrayLike | float | Fraction) -> FloatArray:
    """Finite numbers that are zero or more."""
    if isinstance(value, float) and 0.0 <= value < _INFINITY:
        return np.asarray(value)
    array = numbers(name, value)
    return _demand(name, value, array, np.isfinite(array) & (array >= 0), "zero or more, and finite")


def probability(name: str, value: ArrayLike) -> FloatArray:
    """Numbers strictly between 0 and 1."""
    array = numbers(name, value)
    return _demand(name, value, array, (array > 0) & (array < 1), "strictly between 0 and 1")


#: Whole numbers up to here are exact in double precision.
LARGEST_COUNT = 2.0**53


def counts(name: str, value: ArrayLike | int, *, least: int = 0) -> FloatArray:
    """Whole numbers of at least ``least`` (``1e12`` is one; ``2.5`` is not).

    >>> counts("below", [0, 1e12]).tolist()
    [0.0, 1000000000000.0]
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_COUNT:
        return np.asarray(float(value))
    array = numbers(name, value)
    holds = np.isfinite(array) & (array >= least) & (array <= LARGEST_COUNT) & (array == np.floor(array))
    limit = " and at most 2^53" if (array > LARGEST_COUNT).any() else ""
    return _demand(name, value, array, holds, f"a whole number, {least} or more{limit}")


def plain_floats(*values: object) -> list[float] | None:
    """The values themselves if all are finite ``float``: the common case of one setting, which needs no arrays.

    >>> plain_floats(0.5, 1.0), plain_floats(0.5, 1), plain_floats(np.ones(2)), plain_floats(float("nan"))
    ([0.5, 1.0], None, None, None)
    """
    found = [value for value in values if type(value) is float and -_INFINITY < value < _INFINITY]
    return found if len(found) == len(values) else None


def plain_counts(*values: object) -> list[float] | None:
    """The values as floats if all are ``int``, or ``float`` without a fraction, and none below 0 or beyond 2^53."""
    found = [
        float(value)
        for value in values
        if (type(value) is int or (type(value) is float and value.is_integer())) and 0 <= value <= LARGEST_COUNT
    ]
    return found if len(found) == len(values) else None


def one(check: Callable[..., FloatArray], name: str, value: object, **rules: int) -> float:
    """A single number that passes one of the checks above; an array is refused.

    >>> one(positive, "sigma", 2)
    2.0
    """
    array = check(name, value, **rules)
    if array.ndim:
        raise refuse(name, value, "one number, not an array")
    return float(array)


def pair(check: Callable[..., FloatArray], name: str, value: object, **rules: int) -> tuple[float, float]:
    """Two numbers that pass one of the checks above.

    >>> pair(positive, "hold", [1, 2])
    (1.0, 2.0)
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise refuse(name, value, "a pair of numbers")
    return one(check, name, value[0], **rules), one(check, name, value[1], **rules)


def flag(name: str, value: object) -> bool:
    """``True`` or ``False`` itself; what only counts as true is refused."""
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def broadcast(**arrays: FloatArray) -> list[FloatArray]:
    """The arrays in one shape; refuses shapes that do not fit together.

    >>> [a.shape for a in broadcast(x=np.zeros(3), y=np.zeros((2, 1)))]
    [(2, 3), (2, 3)]
    """
    if not any(array.ndim for array in arrays.values()):
        return list(arrays.values())
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InvalidParameter(f"shapes must broadcast against each other; got {shapes}") from None


def unwrap(array: FloatArray) -> float | FloatArray:
    """A plain ``float`` for a scalar result, the array otherwise."""
    return float(array) if np.ndim(array) == 0 else array
