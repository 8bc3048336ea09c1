"""The integral behind every bound, enclosed rigorously in ball arithmetic (THEORY §2, §6).

J(shift) = E_x ∏_g Φ(slope_g·x + offset_g + shift_g)^count_g, x ~ N(0, 1). What is returned contains the true value
for the inputs taken *exactly*: rounding, quadrature error and both tails are inside. Slow (milliseconds) and scalar; the
batched integral is checked against it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, TypeAlias

from dpselect.checks import counts as whole_numbers
from dpselect.checks import finite, refuse
from dpselect.errors import DPSelectError

if TYPE_CHECKING:
    from flint import arb

    from dpselect.numerics.enclosure_integrand import Factor

#: A number taken exactly: an ``int``, ``float`` or ``Fraction``; a python-flint ball; or a function without
#: arguments that makes such a ball at whatever precision is in force when it is called (``lambda: arb(3).sqrt()``).
Exact: TypeAlias = "int | float | Fraction | arb | Callable[[], arb]"

#: flint's working precision is one setting for the whole process.
_PRECISION_LOCK = threading.RLock()
_FIRST_PRECISION = 128
_LAST_PRECISION = 16384
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
        Taken without rounding: pass ``Fraction(sigma_threshold) / Fraction(sigma_query)``, not the quotient of
        doubles. Shifts are zero or more.
    tolerance : float
        The largest (upper − lower)/lower wanted, 1e-15 or more. Values under the smallest positive double are
        enclosed by 0 and that double.

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
    return _to_tolerance(_check(counts, slopes, offsets, shifts), _check_tolerance(tolerance), _log_ratio)


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

    >>> math.log(1 / 2) in enclose_log_integral([1], [1], [0])
    True
    >>> round(math.exp(enclose_log_integral([2], [1], [0]).midpoint), 12)
    0.333333333333
    """
    parameters = _check(counts, slopes, offsets, [0] * len(counts))
    return _to_tolerance(parameters, _check_tolerance(tolerance), _log_integral)


@dataclass(frozen=True)
class _Parameters:
    """One factor as given, checked."""

    count: int
    slope: Exact
    offset: Exact
    shift: Exact


def _check(
    counts: Sequence[float], slopes: Sequence[Exact], offsets: Sequence[Exact], shifts: Sequence[Exact]
) -> list[_Parameters]:
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
            checked.append(_Parameters(power, slope, offset, shift))
    return checked


def _check_exact(name: str, value: Exact) -> None:
    if isinstance(value, bool):
        raise refuse(name, value, "numbers")
    if isinstance(value, float):
        finite(name, value)
    elif not isinstance(value, Rational) and not callable(value):
        from flint import arb

        if not isinstance(value, arb) or not value.is_finite():
            raise refuse(
                name, value, "finite numbers: int, float, Fraction, arb, or a function that makes an arb"
            )


def _check_tolerance(tolerance: float) -> float:
    value = float(finite("tolerance", tolerance))
    if not _TIGHTEST <= value < 1:
        raise refuse("tolerance", tolerance, f"at least {_TIGHTEST} and below 1")
    return value


def _ball(value: Exact) -> arb:
    """The number at the precision in force."""
    from flint import arb, fmpq

    if isinstance(value, Rational | float):
        exact = Fraction(value)
        return arb(fmpq(int(exact.numerator), int(exact.denominator)))
    return value() if callable(value) else value


@contextmanager
def _flint_precision() -> Iterator[None]:
    """Hold flint's precision for this thread's work, and put it back."""
    from flint import ctx

    with _PRECISION_LOCK:
        before = ctx.prec
        try:
            yield
        finally:
            ctx.prec = before


def _to_tolerance(
    parameters: list[_Parameters], tolerance: float, method: Callable[[list[Factor], float], arb]
) -> Enclosure:
    """Raise precision or effort until the enclosure is as narrow as asked."""
    from flint import arb, ctx

    from dpselect.numerics.enclosure_integrand import Factor
    from dpselect.numerics.enclosure_quadrature import PrecisionTooLow

    with _flint_precision():
        precision, effort = _FIRST_PRECISION, tolerance
        for _ in range(16):
            ctx.prec = precision
            factors = [
                Factor(arb(p.count), _ball(p.slope), _ball(p.offset), _ball(p.shift)) for p in parameters
            ]
            for factor in factors:
                if factor.shift < 0:
                    raise refuse("shifts", factor.shift, "zero or more")
            try:
                ball = method(factors, effort)
            except PrecisionTooLow as shortage:
                precision += max(64, 64 * math.ceil(shortage.missing_bits / 64))
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


def _outward(ball: arb) -> Enclosure:
    from flint import arb

    lower, upper = float(ball.lower()), float(ball.upper())
    if not arb(lower) <= ball.lower():
        lower = math.nextafter(lower, -math.inf)
    if not arb(upper) >= ball.upper():
        upper = math.nextafter(upper, math.inf)
    return Enclosure(lower, upper)


def _log_ratio(factors: list[Factor], tolerance: float, tail_tolerance: float | None = None) -> arb:
    """log J(shift) − log J(0) = log(1 + K/J(0)), K = J(shift) − J(0) integrated as one function."""
    from flint import arb

    from dpselect.numerics.enclosure_integrand import Growth, Product
    from dpselect.numerics.enclosure_quadrature import find_peak, integrate

    if all(factor.shift == 0 for factor in factors):
        return arb(0)
    share = tolerance / 4
    product, growth = Product(factors), Growth(factors)
    whole = integrate(product, [find_peak(product)], tolerance=share, tail_tolerance=tail_tolerance)
    # Factors that rise and factors that fall in x are shifted to most effect in different places.
    rising = [factor if factor.slope >= 0 else factor._replace(shift=arb(0)) for factor in factors]
    falling = [factor if not factor.slope >= 0 else factor._replace(shift=arb(0)) for factor in factors]
    peaks = [
        find_peak(Growth(group))
        for group in (rising, falling)
        if not all(factor.shift == 0 for factor in group)
    ]
    if len(peaks) > 1:
        peaks.append(find_peak(growth))
    grown = integrate(growth, peaks, tolerance=share, tail_tolerance=tail_tolerance)
    lead = grown.log_scale - whole.log_scale
    ratio = grown.ball / whole.ball
    if lead > 100:
        return lead + (ratio + (-lead).exp()).log()
    return (ratio * lead.exp()).log1p()


def _log_integral(factors: list[Factor], tolerance: float, tail_tolerance: float | None = None) -> arb:
    """log J(0), by way of 1 − J(0) where that is small."""
    from flint import arb

    from dpselect.numerics.enclosure_integrand import Growth, Product
    from dpselect.numerics.enclosure_quadrature import find_peak, integrate

    if not factors:
        return arb(0)
    product = Product(factors)
    peak = find_peak(product)
    rough = integrate(product, [peak], tolerance=0.01)
    if not (rough.log_scale.exp() * rough.ball).mid() > 0.9:
        whole = integrate(product, [peak], tolerance=tolerance / 40, tail_tolerance=tail_tolerance)
        return whole.log_scale + whole.ball.log()
    endless = [factor._replace(shift=None) for factor in factors]
    shortfall = Growth(endless, endless=True)
    rising = [factor for factor in endless if factor.slope >= 0]
    falling = [factor for factor in endless if not factor.slope >= 0]
    peaks = [find_peak(Growth(group, endless=True)) for group in (rising, falling) if group]
    missing = integrate(shortfall, peaks, tolerance=tolerance / 4, tail_tolerance=tail_tolerance)
    return (-missing.log_scale.exp() * missing.ball).log1p()
