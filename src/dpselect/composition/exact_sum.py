"""Sums of doubles without rounding: a million additions cost no digit, and what is shown is rounded up."""

from __future__ import annotations

import math

from dpselect.checks import refuse

#: Every finite double is a whole multiple of 2^-1074.
_GRID = 1074
#: 2^1024, the first power of two that is no double.
_INFINITE = 1 << (1024 + _GRID)


class ExactSum:
    """A running sum of non-negative doubles, kept as a whole number of 2^-1074.

    Adding costs the same whatever was added before, and nothing is ever rounded; :meth:`upward` rounds what is
    shown, and only upward.

    Examples
    --------
    >>> total = ExactSum()
    >>> for _ in range(10):
    ...     total.add(0.1)
    >>> total.upward() >= 1.0, sum([0.1] * 10) >= 1.0
    (True, False)
    >>> total.fits(0.1, limit=1.2), total.fits(0.1, limit=1.0)
    (True, False)
    """

    __slots__ = ("_units",)

    def __init__(self, units: int = 0) -> None:
        if isinstance(units, bool) or not isinstance(units, int) or units < 0:
            raise refuse("units", units, "a whole number, 0 or more")
        self._units = units

    @property
    def units(self) -> int:
        """The sum in multiples of 2^-1074; what is written to a saved state."""
        return self._units

    def add(self, value: float) -> None:
        """Add a non-negative double, exactly."""
        self._units += in_units(value)

    def fits(self, value: float, *, limit: float) -> bool:
        """Whether the sum with ``value`` added is still at most ``limit``; compares exactly."""
        if math.isinf(limit):
            return True
        return self._units + in_units(value) <= in_units(limit)

    def upward(self) -> float:
        """The smallest double that is not below the sum."""
        return round_up(self._units)

    def left(self, limit: float) -> float:
        """The largest double that is not above ``limit`` minus the sum; 0 where the sum has reached it."""
        if math.isinf(limit):
            return limit
        return round_down(max(0, in_units(limit) - self._units))


def in_units(value: float) -> int:
    """A double as a whole number of 2^-1074; infinity as a number beyond all others."""
    if value == math.inf:
        return _INFINITE
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_GRID + 1 - denominator.bit_length())


def read_units(text: str) -> int:
    """A whole number of 2^-1074 as a saved state writes it, in hexadecimal."""
    return ExactSum(int(text, 16)).units


def round_down(units: int) -> float:
    """The largest double that is not above so many 2^-1074."""
    spare = max(0, units.bit_length() - 53)
    kept = units >> spare
    return _scaled(kept, spare)


def round_up(units: int) -> float:
    """The smallest double that is not below so many 2^-1074."""
    spare = max(0, units.bit_length() - 53)
    kept = units >> spare
    if kept << spare != units:
        kept += 1
    return _scaled(kept, spare)


def _scaled(kept: int, spare: int) -> float:
    try:
        return math.ldexp(float(kept), spare - _GRID)
    except OverflowError:
        return math.inf
