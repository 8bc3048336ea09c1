"""The integral behind every bound, enclosed rigorously in ball arithmetic (THEORY §2, §6).

J(shift) = E_x ∏_g Φ(slope_g·x + offset_g + shift_g)^count_g, x ~ N(0, 1). What is returned contains the
true value for the inputs taken *exactly*: rounding, quadrature error and both tails are inside. It takes
milliseconds, one set of parameters at a time; the batched integral is checked against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import NamedTuple, TypeAlias

from flint import arb, ctx, fmpq

from dpselect.checks import counts as whole_numbers
from dpselect.checks import finite, refuse
from dpselect.errors import DPSelectError
from dpselect.numerics.enclosure_integrand import BallFactor, Growth, Product
from dpselect.numerics.enclosure_quadrature import PrecisionTooLow, find_peak, integrate
from dpselect.precision import working_precision

#: A number taken exactly: an ``int``, ``float`` or ``Fraction``; a python-flint ball; or a function without
#: arguments that makes such a ball at the precision in force when it is called (``lambda: arb(3).sqrt()``).
Exact: TypeAlias = int | float | Fraction | arb | Callable[[], arb]

#: The narrowest relative width that two doubles rounded outward can be sure to have.
_TIGHTEST = 1e-15
_FIRST_PRECISION = 80
_LAST_PRECISION = 16384
#: Where J is above this, its log is made from 1 − J.
_NEAR_ONE = 0.9


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
    factors = _check(counts, slopes, offsets, shifts)
    return Enclosure(*_to_tolerance(factors, _check_tolerance(tolerance), log_ratio))


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
    factors = _check(counts, slopes, offsets, [0] * len(counts))
    return Enclosure(*_to_tolerance(factors, _check_tolerance(tolerance), log_integral))


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
    elif not (isinstance(value, Rational) or callable(value) or (isinstance(value, arb) and value.is_finite())):
        raise refuse(name, value, "finite numbers: int, float, Fraction, arb, or a function that makes an arb")


def _check_tolerance(tolerance: float) -> float:
    value = float(finite("tolerance", tolerance))
    if not _TIGHTEST <= value < 1:
        raise refuse("tolerance", tolerance, f"at least {_TIGHTEST} and below 1")
    return value


def _to_tolerance(
    given: Sequence[ExactFactor], tolerance: float, method: Callable[[list[BallFactor], float], arb]
) -> tuple[float, float]:
    """The ends of ``method``'s ball as doubles rounded outward; precision and effort rise until they fit."""
    with working_precision():
        precision, effort = _FIRST_PRECISION, tolerance
        for _ in range(16):
            ctx.prec = precision
            try:
                ball = method([_factor(factor) for factor in given], effort)
            except PrecisionTooLow as shortage:
                precision = 64 * math.ceil(max(precision * 1.5, precision + shortage.missing_bits) / 64)
                if precision > _LAST_PRECISION:
                    break
                continue
            # Rounding to doubles outward costs up to two units in the last place, 2^-51 together.
            if 2 * ball.rad() <= (tolerance - 2.0**-51) * ball.abs_lower():
                return _outward(ball)
            effort /= 1024
    raise DPSelectError(
        f"no enclosure of relative width {tolerance!r} was reached; "
        "pass exact numbers instead of balls, less extreme parameters or a larger tolerance"
    )


def _factor(given: ExactFactor) -> BallFactor:
    shift = _ball("shifts", given.shift)
    if not shift >= 0:
        raise refuse("shifts", shift, "zero or more")
    return BallFactor(arb(given.power), _ball("slopes", given.slope), _ball("offsets", given.offset), shift)


def _ball(name: str, value: Exact) -> arb:
    """The number at the precision in force."""
    if isinstance(value, Rational | float):
        exact = Fraction(value)
        return arb(fmpq(int(exact.numerator), int(exact.denominator)))
    ball = value() if callable(value) else value
    if not isinstance(ball, arb) or not ball.is_finite():
        raise refuse(name, ball, "finite balls")
    return ball


def _outward(ball: arb) -> tuple[float, float]:
    lower, upper = float(ball.lower()), float(ball.upper())
    if not arb(lower) <= ball.lower():
        lower = math.nextafter(lower, -math.inf)
    if not arb(upper) >= ball.upper():
        upper = math.nextafter(upper, math.inf)
    return lower + 0.0, upper + 0.0  # no negative zeros


def log_ratio(factors: list[BallFactor], tolerance: float, tail_tolerance: float | None = None) -> arb:
    """log J(shift) − log J(0) = log(1 + K/J(0)), K = J(shift) − J(0) integrated as one function."""
    if all(factor.shift == 0 for factor in factors):
        return arb(0)
    share = tolerance / 4
    product, growth = Product(factors), Growth(factors)
    whole = integrate(product, [find_peak(product)], tolerance=share, tail_tolerance=tail_tolerance)
    # Factors that rise and factors that fall in x are shifted to most effect in different places.
    sides = [
        [factor if (factor.slope >= 0) is rising else factor._replace(shift=arb(0)) for factor in factors]
        for rising in (True, False)
    ]
    peaks = [find_peak(Growth(side)) for side in sides if not all(factor.shift == 0 for factor in side)]
    if len(peaks) > 1:
        peaks.append(find_peak(growth))
    grown = integrate(growth, peaks, tolerance=share, tail_tolerance=tail_tolerance)
    lead = grown.log_scale - whole.log_scale
    ratio = grown.ball / whole.ball
    if lead > 100:
        return lead + (ratio + (-lead).exp()).log()
    return (ratio * lead.exp()).log1p()


def log_integral(factors: list[BallFactor], tolerance: float, tail_tolerance: float | None = None) -> arb:
    """log J(0), by way of 1 − J(0) where that is small."""
    if not factors:
        return arb(0)
    product = Product(factors)
    peak = find_peak(product)
    rough = integrate(product, [peak], tolerance=0.01)
    if not (rough.log_scale.exp() * rough.ball).mid() > _NEAR_ONE:
        whole = integrate(product, [peak], tolerance=tolerance / 40, tail_tolerance=tail_tolerance)
        return whole.log_scale + whole.ball.log()
    endless = [factor._replace(shift=None) for factor in factors]
    sides = [[factor for factor in endless if (factor.slope >= 0) is rising] for rising in (True, False)]
    peaks = [find_peak(Growth(side, endless=True)) for side in sides if side]
    shortfall = Growth(endless, endless=True)
    missing = integrate(shortfall, peaks, tolerance=tolerance / 4, tail_tolerance=tail_tolerance)
    return (-missing.log_scale.exp() * missing.ball).log1p()
