"""Numbers as people type them: ``1/6946``, ``0.1``, ``1e-5``, lists such as ``16,95,365``."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import typer

_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?)")
_INFINITE = re.compile(r"[+-]?inf(inity)?|[+-]?∞", re.IGNORECASE)
#: More digits than this are a slip, and would make exact arithmetic slow.
_LONGEST = 60


def read_number(text: str) -> Fraction:
    """One number, exactly as written.

    >>> read_number("1/6946"), read_number("0.1"), read_number("1e-5")
    (Fraction(1, 6946), Fraction(1, 10), Fraction(1, 100000))
    """
    written = str(text).strip().replace("_", "")
    if _INFINITE.fullmatch(written):
        raise typer.BadParameter("must be finite")
    if len(written) > _LONGEST or not _NUMBER.fullmatch(written):
        raise typer.BadParameter("must be a number such as 12.5, 1e-5 or 1/6946")
    try:
        number = Fraction(written)
        float(number)
    except ZeroDivisionError:
        raise typer.BadParameter("must not divide by zero") from None
    except OverflowError:
        raise typer.BadParameter("must be below 1.7e308 in size") from None
    return number


def read_count(text: str) -> int:
    """One whole number; ``1e6`` is one.

    >>> read_count("365"), read_count("1e6")
    (365, 1000000)
    """
    number = read_number(text)
    if number.denominator != 1:
        raise typer.BadParameter("must be a whole number such as 365")
    return int(number)


class Counts(tuple[int, ...]):
    """One or more whole numbers, in the order given.

    >>> read_counts("16, 95,1e3")
    (16, 95, 1000)
    """


def read_counts(text: str) -> Counts:
    """A whole number, or several with commas between."""
    return Counts(read_count(part) for part in str(text).split(","))


def shown(number: Fraction) -> str:
    """The number as a person would write it.

    >>> shown(Fraction(1, 6946)), shown(Fraction(1, 10)), shown(Fraction(50))
    ('1/6946', '0.1', '50')
    """
    if number.denominator == 1:
        return str(number.numerator)
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    # Few digits and no endless decimal: written out; otherwise as the fraction it is.
    return repr(float(number)) if rest == 1 and number.denominator <= 10**12 else f"{number}"


def no_more_than(number: Fraction) -> float:
    """The largest double that is not above the number: for an ε or δ that must not be exceeded.

    >>> Fraction(no_more_than(Fraction(2, 3))) <= Fraction(2, 3)
    True
    """
    nearest = float(number)
    # A decimal such as 0.1 means the double that is written so, which may be above it by half a last digit.
    as_written = Fraction(repr(nearest)) == number
    return nearest if as_written or Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)
