"""Exact numbers and rounding to the safe side: every ε or δ that is shown or compared is rounded here.

* **Exact numbers.** :func:`exact_number` reads what a person typed; a fraction becomes a double by :func:`upward` or
  :func:`downward`.
* **Exact sums.** Sums of doubles are kept as whole numbers of 2^-1074 (:func:`in_units`), so a million additions lose
  nothing and each takes the same time; :func:`round_up` and :func:`round_down` turn a sum into a double.
* **Numbers for reading.** An ε or δ that a person reads is an upper bound, so :func:`at_most` rounds its last shown
  digit up; so does :func:`rounded_up` a noise scale, which may be typed in again and must not come out smaller.

>>> total = 10 * in_units(0.1)
>>> round_up(total) >= 1.0, sum([0.1] * 10) >= 1.0
(True, False)
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpselect.checks import refuse

#: Every finite double is a whole multiple of 2^-1074.
_GRID = 1074
#: 2^1024, the first power of two that is no double.
_INFINITE = 1 << (1024 + _GRID)


def exact_number(name: str, value: object) -> Fraction:
    """A finite number as an exact fraction; ``0.1`` means one tenth, as written.

    >>> exact_number("cap", 0.1), exact_number("cap", "1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal | str):
        raise refuse(name, value, "a number")
    try:
        # repr gives the shortest decimal that reads back as the same float: the number the person typed.
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise refuse(name, value, "a finite number such as 50, 12.5 or 1/3") from None


def upward(value: Fraction) -> float:
    """The smallest double at or above an exact rational.

    >>> upward(Fraction(1, 10)), Fraction(upward(Fraction(1, 3))) >= Fraction(1, 3)
    (0.1, True)
    """
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return math.nextafter(number, math.inf) if Fraction(number) < value else number


def downward(value: Fraction) -> float:
    """The largest double at or below an exact rational.

    >>> downward(Fraction(1, 10)), Fraction(downward(Fraction(1, 3))) <= Fraction(1, 3)
    (0.09999999999999999, True)
    """
    try:
        number = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return math.nextafter(number, -math.inf) if Fraction(number) > value else number


def no_more_than(number: Fraction | float) -> float:
    """The largest double that is not above the number as it is written: for an ε or δ that must not be exceeded.

    0.1 is one tenth, and the double that is written so lies a little above it: ten answers that cost that
    much would come to more than 1.

    >>> no_more_than(Fraction(1, 10)), no_more_than(0.1), no_more_than(0.3)
    (0.09999999999999999, 0.09999999999999999, 0.3)
    """
    if isinstance(number, float) and not math.isfinite(number):
        return float(number)
    return downward(Fraction(float.__repr__(number)) if isinstance(number, float) else Fraction(number))


def added(costs: Iterable[tuple[int, float]]) -> float:
    """So many times each cost, added exactly and rounded upward; infinite where one of them is.

    >>> added([(10, 0.1), (1, 0.0)]), added([(2, math.inf)])
    (1.0000000000000002, inf)
    """
    times = list(costs)
    if any(math.isinf(cost) for _, cost in times):
        return math.inf
    return upward(sum((count * Fraction(cost) for count, cost in times), Fraction(0)))


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


def _cut(value: float | Decimal, digits: int, rounding: str) -> Decimal:
    # repr is the shortest decimal that reads back as the same double: 0.1 stays 0.1, and whatever is shown reads
    # back as a double on the safe side.
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    return Context(prec=digits, rounding=rounding).plus(exact)


def _written(number: Decimal) -> str:
    if number == 0:
        return "0"
    if -4 <= number.adjusted() < 7:
        text = format(number, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{number:e}".lower().split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def at_most(value: float | Decimal, *, digits: int = 4) -> str:
    """The number in ``digits`` significant digits, rounded up.

    >>> at_most(0.2450601), at_most(0.1), at_most(1e-5), at_most(0.0)
    ('0.2451', '0.1', '1e-5', '0')
    >>> at_most(0.25), at_most(1234567.8), at_most(float("inf"))
    ('0.25', '1235000', 'infinity')
    """
    if math.isinf(value):
        return "infinity"
    return _written(_cut(value, digits, ROUND_CEILING))


def at_least(value: float | Decimal, *, digits: int = 4) -> str:
    """The number in ``digits`` significant digits, rounded down.

    >>> at_least(0.2450601), at_least(0.25)
    ('0.245', '0.25')
    """
    if math.isinf(value):
        return "infinity"
    return _written(_cut(value, digits, ROUND_FLOOR))


def rounded_up(value: float, *, digits: int = 6) -> float:
    """A number with few digits that is no smaller: what :func:`at_most` shows, as a ``float``.

    >>> rounded_up(0.16788123456)
    0.167882
    """
    return float(_cut(value, digits, ROUND_CEILING))
