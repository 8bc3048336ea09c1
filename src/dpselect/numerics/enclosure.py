"""The integral behind every bound, enclosed rigorously in ball arithmetic (THEORY §2, §6).

J(shift) = E_x ∏_g Φ(slope_g·x + offset_g + shift_g)^count_g, x ~ N(0, 1). What is returned contains the
true value for the inputs taken *exactly*: rounding, quadrature error and both tails are inside. It takes
milliseconds, one set of parameters at a time; the batched integral is checked against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dpselect.checks import counts as whole_numbers
from dpselect.checks import finite, refuse

if TYPE_CHECKING:
    from flint import arb

#: A number taken exactly: an ``int``, ``float`` or ``Fraction``; a python-flint ball; or a function without
#: arguments that makes such a ball at the precision in force when it is called (``lambda: arb(3).sqrt()``).
Exact: TypeAlias = "int | float | Fraction | arb | Callable[[], arb]"

#: The narrowest relative width that two doubles rounded outward can be sure to have.
_TIGHTEST = 1e-15


@dataclass(frozen=True)
class Enclosure:
    """Two doubles, rounded outward, with the true value between them.

    >>> third = Enclosure(lower=0.333, upper=0.334)
    >>> 1 / 3 in third, 0.34 in third
    (True, False)
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """upper − lower."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """The double halfway, at most half the width from the truth (up to its own rounding)."""
        return self.lower + (self.upper - self.lower) / 2

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float, Fraction)) and self.lower <= value <= self.upper


def enclose_log_ratio(
    counts: Sequence[float],
    slopes: Sequence[Exact],
    offsets: Sequence[Exact],
    shifts: Sequence[Exact],
    *,
    tolerance: float = 1e-12,
) -> Enclosure:
    """log J(shift) − log J(0), to a relative width of ``tolerance``.

    J(shift) − J(0) is integrated as such, so a ratio within 1e-46 of one is enclosed as tightly as any other.

    Parameters
    ----------
    counts : sequence of whole numbers
        The powers, one per factor.
    slopes, offsets, shifts : sequences of exact numbers
        Taken without rounding: pass ``Fraction(sigma_threshold) / Fraction(sigma_query)``, not the quotient
        of doubles. Shifts are zero or more.
    tolerance : float
        The largest (upper − lower)/lower wanted, 1e-15 or more. A value too small or too large for
        normal doubles gets the nearest doubles around it instead, 0 and infinity among them.

    Returns
    -------
    Enclosure

    Raises
    ------
    InvalidParameter
        An input breaks its rule.
    DPSelectError
        The width cannot be reached: an input ball is too wide, or the parameters are beyond reason.

    Examples
    --------
    Report noisy max over 365 candidates in [0, 1], σ = 1/5, Δ = 1/6946:

    >>> epsilon = enclose_log_ratio([364], [1], [-5], [Fraction(10, 6946)])
    >>> 0.010788385236438305946 in epsilon, epsilon.width < 1.1e-14
    (True, True)
    """
    # python-flint is loaded by the first enclosure, not by the import of this package.
    from dpselect.numerics.enclosure_logs import log_ratio, to_tolerance

    factors = _check(counts, slopes, offsets, shifts)
    return Enclosure(*to_tolerance(factors, _check_tolerance(tolerance), log_ratio))


def enclose_log_integral(
    counts: Sequence[float],
    slopes: Sequence[Exact],
    offsets: Sequence[Exact],
    *,
    tolerance: float = 1e-12,
) -> Enclosure:
    """log J(0), which is never positive, to a width of ``tolerance`` relative to its own size.

    Where J is near 1 the log is made from 1 − J, integrated as such, so it stays relatively tight there too.

    Parameters
    ----------
    counts, slopes, offsets, tolerance
        As in :func:`enclose_log_ratio`.

    Returns
    -------
    Enclosure

    Examples
    --------
    The chance that one normal is above another, and above two others:

    >>> import math
    >>> math.log(1 / 2) in enclose_log_integral([1], [1], [0])
    True
    >>> round(math.exp(enclose_log_integral([2], [1], [0]).midpoint), 12)
    0.333333333333
    """
    from dpselect.numerics.enclosure_logs import log_integral, to_tolerance

    factors = _check(counts, slopes, offsets, [0] * len(counts))
    return Enclosure(*to_tolerance(factors, _check_tolerance(tolerance), log_integral))


class ExactFactor(NamedTuple):
    """One factor Φ(slope·x + offset + shift)^power as given, checked."""

    power: int
    slope: Exact
    offset: Exact
    shift: Exact


def _check(
    counts: Sequence[float], slopes: Sequence[Exact], offsets: Sequence[Exact], shifts: Sequence[Exact]
) -> list[ExactFactor]:
    lengths = {len(counts), len(slopes), len(offsets), len(shifts)}
    if len(lengths) != 1:
        raise refuse("counts, slopes, offsets and shifts", sorted(lengths), "of one length")
    checked = []
    for count, slope, offset, shift in zip(counts, slopes, offsets, shifts, strict=True):
        power = int(whole_numbers("counts", count))
        _check_exact("slopes", slope)
        _check_exact("offsets", offset)
        _check_exact("shifts", shift)
        if isinstance(shift, Rational | float) and shift < 0:
            raise refuse("shifts", shift, "zero or more")
        if power:
            checked.append(ExactFactor(power, slope, offset, shift))
    return checked


def _check_exact(name: str, value: Exact) -> None:
    if isinstance(value, bool):
        raise refuse(name, value, "numbers")
    if isinstance(value, float):
        finite(name, value)
    elif not isinstance(value, Rational) and not callable(value):
        from flint import arb

        if not isinstance(value, arb) or not value.is_finite():
            raise refuse(name, value, "finite numbers: int, float, Fraction, arb, or a function that makes an arb")


def _check_tolerance(tolerance: float) -> float:
    value = float(finite("tolerance", tolerance))
    if not _TIGHTEST <= value < 1:
        raise refuse("tolerance", tolerance, f"at least {_TIGHTEST} and below 1")
    return value
