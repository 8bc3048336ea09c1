"""Numbers and promises as a person would write them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.privacy.family import QueryFamily


def shown(number: Fraction) -> str:
    """An exact number as a person would write it.

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


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.0123), percent(0.0)
    ('1.23%', '0%')
    """
    return f"{100 * share:.3g}%"


def plural(word: str) -> str:
    """More than one of them.

    >>> plural("day"), plural("category")
    ('days', 'categories')
    """
    return word[:-1] + "ies" if word.endswith("y") and word[-2] not in "aeiou" else word + "s"


def family_in_words(family: QueryFamily) -> str:
    """What the queries of a family promise, in a few words."""
    ends = ", ".join(shown(Fraction(repr(end))) for end in (family.lower, family.upper))
    direction = ", monotone" if family.monotone else ""
    return f"queries in [{ends}], Δ ≤ {at_most(family.sensitivity, digits=6)}{direction}"
