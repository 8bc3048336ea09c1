"""Numbers as people type them, ``1/6946``, ``0.1``, ``1e-5``, ``10%``, ``16,95,365``, and options that take them.

What cannot be read raises a ``ValueError`` that says how to write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?)")
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_PERCENT = re.compile(r"(\d{1,9}(?:\.\d*)?)\s*%")
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
        raise ValueError("must be finite")
    if len(written) > _LONGEST or not _NUMBER.fullmatch(written):
        if _WITH_COMMA.fullmatch(written):
            raise ValueError(f"must have a point before its decimals: {written.replace(',', '.')}")
        if share := _PERCENT.fullmatch(written):
            raise ValueError(f"must be a number, not a percentage: {float(share[1]) / 100:g}?")
        raise ValueError("must be a number such as 12.5, 1e-5 or 1/6946")
    try:
        number = Fraction(written)
        float(number)
    except ZeroDivisionError:
        raise ValueError("must not divide by zero") from None
    except OverflowError:
        raise ValueError("must be below 1.7e308 in size") from None
    return number


def read_count(text: str) -> int:
    """One whole number; ``1e6`` is one.

    >>> read_count("365"), read_count("1e6")
    (365, 1000000)
    """
    number = read_number(text)
    if number.denominator != 1:
        raise ValueError("must be a whole number such as 365")
    return int(number)


def read_counts(text: str) -> tuple[int, ...]:
    """A whole number, or several with commas between.

    >>> read_counts("16, 95,1e3")
    (16, 95, 1000)
    """
    return tuple(read_count(part) for part in str(text).split(","))


def read_widths(text: str) -> tuple[Fraction, Fraction]:
    """One width for both sides, or BELOW,ABOVE.

    >>> read_widths("0.1,1/20")
    (Fraction(1, 10), Fraction(1, 20))
    """
    parts = [read_number(part) for part in str(text).split(",")]
    if len(parts) > 2 or min(parts) < 0:
        raise ValueError("must be a width such as 0.1, or two such as 0.1,0.05")
    return parts[0], parts[-1]


def read_expected(text: str) -> Fraction | int:
    """A share such as ``10%`` or ``0.1``, or a whole number.

    >>> read_expected("10%"), read_expected("36"), read_expected("1/4")
    (Fraction(1, 10), 36, Fraction(1, 4))
    """
    written = text.strip()
    number = read_number(written[:-1]) / 100 if written.endswith("%") else read_number(written)
    if 0 < number < 1:
        return number
    if number.denominator != 1 or written.endswith("%") or number < 1:
        raise ValueError("must be a share such as 10%, or a whole number such as 36")
    return int(number)


def _read(reader: Callable[[str], Any], metavar: str) -> Parameter:
    def convert(_type: Any, tokens: Any) -> Any:
        return reader(tokens[0].value)

    return Parameter(converter=convert, n_tokens=1, allow_leading_hyphen=True, metavar=metavar, accepts_keys=False)


def _ends(_type: Any, tokens: Any) -> tuple[Fraction, Fraction]:
    low, high = (read_number(token.value) for token in tokens)
    return low, high


#: Numbers are kept exactly as they were typed.
Number: TypeAlias = Annotated[Fraction, _read(read_number, "NUMBER")]
Count: TypeAlias = Annotated[int, _read(read_count, "N")]
Counts: TypeAlias = Annotated[tuple[int, ...], _read(read_counts, "N[,N…]")]
Widths: TypeAlias = Annotated[tuple[Fraction, Fraction], _read(read_widths, "W or BELOW,ABOVE")]
Expected: TypeAlias = Annotated[Fraction | int, _read(read_expected, "10% or N")]
Range: TypeAlias = Annotated[
    tuple[Fraction, Fraction],
    Parameter(converter=_ends, n_tokens=2, allow_leading_hyphen=True, metavar="LOW HIGH", accepts_keys=False),
]
