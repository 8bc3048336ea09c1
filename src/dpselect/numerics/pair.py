"""Sums, products and quotients of doubles to twice their precision, as a double and what it leaves off.

The slopes and offsets of an integral are quotients of what a person gives. Taken as doubles they are off by a relative
1e-16, which is much where an offset of 1e8 meets a peak at 1e8. As pairs (high, low) they are off by a relative 1e-29
(:data:`LEFT_OFF`). Plain operators only, so that floats and arrays are served alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

#: A float, or an array with one entry per cell.
Number: TypeAlias = Any

#: Half a unit in the last place of 1: the largest relative error of one operation.
U = 2.0**-53
#: The relative error of a pair made by one :func:`difference` and one :func:`quotient`, with room to spare.
LEFT_OFF = 2.0**-96
_SPLITTER = 2.0**27 + 1.0


class Pair(NamedTuple):
    """high + low, |low| at most half a unit in the last place of high."""

    high: Number
    low: Number


def exact(value: Number) -> Pair:
    """A double as a pair."""
    return Pair(value, value * 0.0)


def total(a: Number, b: Number) -> Pair:
    """a + b without error (Knuth).

    >>> total(1.0, 1e-20)
    Pair(high=1.0, low=1e-20)
    """
    high = a + b
    rest = high - a
    return Pair(high, (a - (high - rest)) + (b - rest))


def difference(a: Number, b: Number) -> Pair:
    """a - b without error."""
    return total(a, -b)


def product(a: Number, b: Number) -> Pair:
    """a·b without error (Veltkamp, Dekker), for sizes between 1e-140 and 1e290.

    >>> product(1.0 + 2.0**-52, 1.0 + 2.0**-52).low == 2.0**-104
    True
    """
    high = a * b
    t = _SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return Pair(high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low)


def quotient(a: Pair, b: Number) -> Pair:
    """a/b for a double b.

    >>> third = quotient(exact(1.0), 3.0)
    >>> from fractions import Fraction
    >>> abs(Fraction(third.high) + Fraction(third.low) - Fraction(1, 3)) < Fraction(1, 2**105)
    True
    """
    return ratio(a, Pair(b, 0.0))


def shift_by(a: Number, b: Number) -> Number:
    """a/b as a double, a ≥ 0 < b; never 0 where a is not, since what underflows still moves something.

    >>> shift_by(1.0, 4.0), shift_by(1e-300, 1e300), shift_by(0.0, 1.0)
    (0.25, 5e-324, 0.0)
    """
    return a / b + 5e-324 * (a > 0.0)


def ratio(a: Pair, b: Pair) -> Pair:
    """a/b for a pair b."""
    a_high, a_low = a
    b_high, b_low = b
    high = a_high / b_high
    back, back_low = product(high, b_high)
    rest = ((((a_high - back) - back_low) + a_low) - high * b_low) / b_high
    # |rest| is at most about a unit in the last place of high (Dekker's shorter sum).
    whole = high + rest
    return Pair(whole, rest - (whole - high))


def negative(a: Pair) -> Pair:
    """-a."""
    return Pair(-a.high, -a.low)


def line(slope: Pair, x: Number, offset: Pair) -> Pair:
    """slope·x + offset, to a relative :data:`LEFT_OFF` of its larger term."""
    raised, raised_low = product(slope.high, x)
    high, low = total(raised, offset.high)
    low = low + (raised_low + (slope.low * x + offset.low))
    whole = high + low
    rest = whole - high
    return Pair(whole, (high - (whole - rest)) + (low - rest))
