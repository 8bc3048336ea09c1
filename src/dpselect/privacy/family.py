"""What the queries promise: a range, a sensitivity, and whether neighbours move them all one way."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

from dpselect.checks import finite, flag, non_negative, one, refuse
from dpselect.errors import SensitivityClipped


def _rounded(name: str, value: float | Fraction, toward: float) -> float:
    """A ``float`` on the ``toward`` side of an exact ``Fraction``; a ``float`` is taken as it stands."""
    number = one(finite, name, value)
    if isinstance(value, Fraction) and (Fraction(number) - value) * (1 if toward > 0 else -1) < 0:
        number = math.nextafter(number, toward)
    return number


def _difference_up(larger: float, smaller: float) -> float:
    """``larger - smaller``, never below the exact difference."""
    rounded = larger - smaller
    if math.isfinite(rounded) and math.fsum((larger, -smaller, -rounded)) > 0:
        return math.nextafter(rounded, math.inf)
    return rounded


@dataclass(frozen=True, kw_only=True)
class QueryFamily:
    """Queries into [lower, upper] that one person moves by at most ``sensitivity``.

    Parameters
    ----------
    lower, upper : float or Fraction
        The range [a, b] of every query.
    sensitivity : float or Fraction
        Δ, the most that any one query changes between neighbouring datasets. A Δ above b - a is cut to b - a,
        with a warning. ``Fraction`` values are rounded to the safe side.
    monotone : bool
        Whether, between any two neighbours, all queries move in the same direction: counts, and sums of
        non-negative contributions, when a person is added or removed. Replacing a person is not monotone.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1 / 6946, monotone=True)
    >>> family.width
    1.0
    >>> family.near(0.575, below=0.1, above=0.05).width
    0.15...
    """

    lower: float
    upper: float
    sensitivity: float
    monotone: bool = False

    def __post_init__(self) -> None:
        lower = _rounded("lower", self.lower, -math.inf)
        upper = _rounded("upper", self.upper, math.inf)
        if not lower < upper:
            raise refuse("upper", upper, f"above lower = {lower!r}")
        width = one(finite, "upper - lower", _difference_up(upper, lower))
        non_negative("sensitivity", self.sensitivity)
        sensitivity = _rounded("sensitivity", self.sensitivity, math.inf)
        flag("monotone", self.monotone)
        if sensitivity > width:
            warnings.warn(
                f"sensitivity {sensitivity!r} is larger than upper - lower = {width!r} and was cut to it",
                SensitivityClipped,
                stacklevel=3,
            )
            sensitivity = width
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "sensitivity", sensitivity)

    @property
    def width(self) -> float:
        """c = b - a, rounded up."""
        return _difference_up(self.upper, self.lower)

    def near(self, threshold: float, *, below: float, above: float) -> QueryFamily:
        """The family after clipping every query to [threshold - below, threshold + above] (THEORY §5).

        Clipping is 1-Lipschitz, so Δ and monotonicity stay, while the range, and with it the cost, shrinks.
        """
        low = max(self.lower, one(finite, "threshold", threshold) - one(non_negative, "below", below))
        high = min(self.upper, threshold + one(non_negative, "above", above))
        if not low < high:
            raise refuse("below and above", (below, above), "wide enough to leave a range around the threshold")
        # Rounded up, as the width is everywhere: a Δ below the true width would be too small.
        cut = min(self.sensitivity, _difference_up(high, low))
        return QueryFamily(lower=low, upper=high, sensitivity=cut, monotone=self.monotone)


def relative_shift(monotone: bool) -> int:
    """How many Δ a difference of two queries can move by: both ends move, or, in a monotone family, only one."""
    return 1 if monotone else 2


def check_family(family: object) -> QueryFamily:
    """The family itself; anything else is refused.

    >>> check_family(QueryFamily(lower=0, upper=1, sensitivity=0.1)).upper
    1.0
    """
    if not isinstance(family, QueryFamily):
        raise refuse("family", family, "a QueryFamily, such as QueryFamily(lower=0, upper=1, sensitivity=0.01)")
    return family
