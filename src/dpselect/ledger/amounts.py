"""What is written in a ledger: whole numbers of a fixed unit, so that databases add exactly as Python does.

ε and ρ are counted in 10⁻¹⁵, δ in 10⁻¹⁸. Costs are rounded up to the unit and nothing is ever rounded again; all
amounts fit a signed 64-bit integer, in which ε reaches 9223.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpselect.checks import refuse
from dpselect.rounding import downward, upward

#: How many units make one, for ε and ρ.
PER_EPSILON = 10**15
#: How many units make one, for δ.
PER_DELTA = 10**18
#: The largest amount a signed 64-bit integer holds.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Amounts:
    """ε, δ and ρ in units; a data set uses those of its total and leaves the others 0.

    >>> Amounts(epsilon=3) + Amounts(epsilon=4, delta=1)
    Amounts(epsilon=7, delta=1, rho=0)
    """

    epsilon: int = 0
    delta: int = 0
    rho: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(self.epsilon - other.epsilon, self.delta - other.delta, self.rho - other.rho)

    def __le__(self, other: Amounts) -> bool:
        """Whether every one of the three is at most the other's."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta and self.rho <= other.rho

    def at_most(self, other: Amounts) -> Amounts:
        """The smaller of each of the three, and nothing below 0."""
        return Amounts(
            max(0, min(self.epsilon, other.epsilon)),
            max(0, min(self.delta, other.delta)),
            max(0, min(self.rho, other.rho)),
        )

    def at_least(self, other: Amounts) -> Amounts:
        """The larger of each of the three."""
        return Amounts(max(self.epsilon, other.epsilon), max(self.delta, other.delta), max(self.rho, other.rho))

    def times_in(self, other: Amounts) -> int:
        """How many times this fits into the other; 0 for nothing at all, which says nothing.

        >>> Amounts(epsilon=3, delta=1).times_in(Amounts(epsilon=10, delta=2))
        2
        """
        pairs = ((self.epsilon, other.epsilon), (self.delta, other.delta), (self.rho, other.rho))
        return max(0, min((there // here for here, there in pairs if here), default=0))

    @property
    def negative(self) -> bool:
        """Whether one of the three is below 0."""
        return min(self.epsilon, self.delta, self.rho) < 0


#: No cost at all.
NOTHING = Amounts()


def units_up(value: float | Fraction, per_one: int) -> int:
    """So many units, rounded up.

    >>> units_up(0.1, PER_EPSILON)  # the double is a little above 1/10
    100000000000001
    """
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * per_one // denominator)


def promised(name: str, value: float | Fraction, per_one: int) -> int:
    """A total or a limit as the decimal number it is written as, in units; more digits than the unit has are cut off.

    >>> promised("total", 0.3, PER_EPSILON)  # the double is a little below 3/10
    300000000000000
    """
    units = int(Fraction(float.__repr__(value) if isinstance(value, float) else value) * per_one)
    if not 0 < units <= LARGEST:
        raise refuse(name, value, f"between {1 / per_one:g} and {LARGEST // per_one}")
    return units


def exact(units: int, per_one: int) -> Decimal:
    """So many units as the decimal number they are.

    >>> str(exact(900_000_000_000_000, PER_EPSILON))
    '0.9'
    """
    return Decimal(units) / per_one


def shown_up(units: int, per_one: int) -> float:
    """The smallest double that is not below so many units.

    >>> shown_up(100_000_000_000_001, PER_EPSILON)
    0.100000000000001
    """
    return upward(Fraction(units, per_one))


def shown_down(units: int, per_one: int) -> float:
    """The largest double that is not above so many units, 0 where there are none."""
    return downward(Fraction(max(0, units), per_one))
