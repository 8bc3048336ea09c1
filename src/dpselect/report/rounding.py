"""Numbers rounded for reading, always to the safe side.

An ε or δ that a person reads is an upper bound, so its last shown digit is rounded up; so is a noise scale,
which may be typed in again and must not come out smaller.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


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


def no_more_than(number: Fraction | float) -> float:
    """The largest double that is not above the number as it is written: for an ε or δ that must not be exceeded.

    0.1 is one tenth, and the double that is written so lies a little above it: ten answers that cost that
    much would come to more than 1.

    >>> no_more_than(Fraction(1, 10)), no_more_than(0.1), no_more_than(0.3)
    (0.09999999999999999, 0.09999999999999999, 0.3)
    """
    if isinstance(number, float) and not math.isfinite(number):
        return float(number)
    exact = Fraction(float.__repr__(number)) if isinstance(number, float) else Fraction(number)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)
