"""Sums of doubles without rounding, as whole numbers of 2^-1074; what is shown is rounded, to the safe side.

Adding takes the same time whatever was added before, and a million additions lose nothing.

>>> total = 10 * in_units(0.1)
>>> round_up(total) >= 1.0, sum([0.1] * 10) >= 1.0
(True, False)
"""

from __future__ import annotations

import math

from dpselect.checks import refuse

#: Every finite double is a whole multiple of 2^-1074.
_GRID = 1074
#: 2^1024, the first power of two that is no double.
_INFINITE = 1 << (1024 + _GRID)


def in_units(value: float) -> int:
    """A double as a whole number of 2^-1074; infinity as a number beyond all others."""
    if value == math.inf:
        return _INFINITE
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_GRID + 1 - denominator.bit_length())


def read_units(text: str) -> int:
    """A whole number of 2^-1074 as a saved state writes it, in hexadecimal."""
    units = int(text, 16)
    if units < 0:
        raise refuse("units", units, "a whole number, 0 or more")
    return units


def round_down(units: int) -> float:
    """The largest double that is not above so many 2^-1074."""
    spare = max(0, units.bit_length() - 53)
    kept = units >> spare
    return _scaled(kept, spare)


def left(limit: float, units: int) -> float:
    """The largest double that is not above ``limit`` minus so many 2^-1074; 0 where those have reached it."""
    return limit if math.isinf(limit) else round_down(max(0, in_units(limit) - units))


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
