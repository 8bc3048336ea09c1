"""From factors to logs of their integrals: how the pieces combine, and how narrow the result must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from numbers import Rational

from flint import arb, ctx, fmpq

from dpselect.checks import refuse
from dpselect.errors import DPSelectError
from dpselect.numerics.enclosure import Exact, ExactFactor
from dpselect.numerics.enclosure_integrand import Factor, Growth, Product
from dpselect.numerics.enclosure_quadrature import PrecisionTooLow, find_peak, integrate
from dpselect.precision import working_precision

_FIRST_PRECISION = 80
_LAST_PRECISION = 16384
#: Where J is above this, its log is made from 1 − J.
_NEAR_ONE = 0.9


def to_tolerance(
    given: Sequence[ExactFactor], tolerance: float, method: Callable[[list[Factor], float], arb]
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


def _factor(given: ExactFactor) -> Factor:
    shift = _ball("shifts", given.shift)
    if not shift >= 0:
        raise refuse("shifts", shift, "zero or more")
    return Factor(arb(given.power), _ball("slopes", given.slope), _ball("offsets", given.offset), shift)


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


def log_ratio(factors: list[Factor], tolerance: float, tail_tolerance: float | None = None) -> arb:
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


def log_integral(factors: list[Factor], tolerance: float, tail_tolerance: float | None = None) -> arb:
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
