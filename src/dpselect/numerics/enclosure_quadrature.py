"""Rigorous Gauss–Legendre quadrature of one integrand over the whole line, in ball arithmetic.

The window is cut into panels. On a panel of half-width w, n-point Gauss–Legendre of a function analytic and
at most M inside the ellipse with foci at the panel's ends and semi-axes w(ρ ± 1/ρ)/2 errs by at most
(64/15)·w·M·ρ^(−2n)/(1 − ρ^(−2)): its Chebyshev coefficients are at most 2Mρ^(−k), the rule is exact below
degree 2n, odd degrees cancel, and degree k ≥ 4 contributes at most 2 + 2/(k² − 1) per coefficient. M comes
from the integrand's majorants, so no ball wider than rounding is ever evaluated, and a far, sharp or lopsided
peak costs little more than a Gaussian. Panels and tails that cannot matter go to the radius by the same
majorants.

How the mode, window and panels are chosen decides the width of the result, never its truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from flint import arb, ctx

from dpselect.errors import DPSelectError
from dpselect.numerics.enclosure_integrand import Bend, Integrand, Survey, Term

_ORDERS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48)
_ELLIPSES = (1.4, 1.8, 2.3, 3.0, 4.0, 5.5, 8.0, 12.0)
_MOST_PANELS = 4000
_PEAK_PRECISION = 40
_TOO_NARROW = "the integrand is too narrow to resolve; the parameters are too extreme"


class PrecisionTooLow(ArithmeticError):
    """Rounding hides the sign or size of something; more bits will show it."""

    def __init__(self, missing_bits: int = 64) -> None:
        super().__init__()
        self.missing_bits = missing_bits


@dataclass(frozen=True)
class Integral:
    """exp(log_scale)·(rounded ± truncated): the balls of the sum, and what was left out."""

    log_scale: arb
    rounded: arb
    truncated: arb

    @property
    def ball(self) -> arb:
        """The scaled integral, everything included."""
        return self.rounded + self.truncated


def integrate(
    integrand: Integrand, peaks: list[float], *, tolerance: float, tail_tolerance: float | None = None
) -> Integral:
    """The integral over the line, to about ``tolerance`` of itself.

    Parameters
    ----------
    integrand : Integrand
        What to integrate.
    peaks : list of float
        Where it is large; at least one point. The better they are, the narrower the result.
    tolerance : float
        The relative truncation error aimed at.
    tail_tolerance : float, optional
        The same for the tails alone. A larger one shortens the window and widens the result.
    """
    surveys = [integrand.survey(arb(peak)) for peak in peaks]
    best = max(range(len(peaks)), key=lambda k: _number(surveys[k].log_value.mid() - surveys[0].log_value.mid()))
    width = _width(surveys[best])
    if peaks[best] + width == peaks[best]:
        raise DPSelectError(_TOO_NARROW)
    log_scale = arb((surveys[best].log_value + math.log(width)).mid())
    _demand_accuracy(integrand.value(arb(peaks[best]), log_scale), tolerance)
    panel_tolerance = tolerance / 1024
    tail_tolerance = panel_tolerance if tail_tolerance is None else tail_tolerance
    right, tail_right = _window_end(integrand, max(peaks), width, log_scale, math.log(tail_tolerance), 1)
    left, tail_left = _window_end(integrand, min(peaks), width, log_scale, math.log(tail_tolerance), -1)
    truncated = _from_zero_to(tail_left) + _from_zero_to(tail_right)
    rounded = arb(0)
    for panel in _panels(integrand, left, right, log_scale, panel_tolerance):
        truncated += panel.error
        if panel.order:
            rounded += _gauss_legendre(integrand, panel, log_scale)
    if not (rounded.is_finite() and truncated.is_finite()):
        raise PrecisionTooLow
    _demand_accuracy(rounded, tolerance)
    return Integral(log_scale, rounded, truncated)


def find_peak(integrand: Integrand) -> float:
    """About where a log-concave integrand is largest: its log there is within 1/2 of the top.

    Looked for with few bits, and with those in force where few do not show it.
    """
    precision = ctx.prec
    ctx.prec = min(precision, _PEAK_PRECISION)
    try:
        return _climb(integrand)
    except PrecisionTooLow:
        ctx.prec = precision
        return _climb(integrand)
    finally:
        ctx.prec = precision


def _climb(integrand: Integrand) -> float:
    """Bisection of the sign of the log's derivative, helped by secants; concavity says how much is left to gain."""
    low, high = -math.inf, math.inf
    slope_low = slope_high = 0.0
    x, step = 0.0, 1.0
    for turn in range(400):
        slope = integrand.survey(arb(x)).log_slope
        if not slope.is_finite():
            raise PrecisionTooLow
        if slope > 0:
            low, slope_low = x, _number(slope)
        elif slope < 0:
            high, slope_high = x, _number(slope)
        elif slope.rad() < 1:
            return x
        else:
            raise PrecisionTooLow
        if math.inf in (-low, high):
            x += math.copysign(step, _number(slope))
            step *= 4
            continue
        if abs(_number(slope)) * (high - low) < 0.5 or math.nextafter(low, high) >= high:
            return x
        x = (low + high) / 2
        if turn % 2 and math.isfinite(slope_low) and math.isfinite(slope_high):
            secant = low + (high - low) * slope_low / (slope_low - slope_high)
            x = min(max(secant, low + (high - low) / 64), high - (high - low) / 64)
    raise DPSelectError("the largest point of the integrand was not found; the parameters are too extreme")


@dataclass(frozen=True)
class _Panel:
    centre: arb
    reach: arb
    order: int
    error: arb


def _demand_accuracy(ball: arb, tolerance: float) -> None:
    """Refuse a ball that rounding alone has made too wide."""
    missing = math.ceil(-math.log2(tolerance)) + 4 - ball.rel_accuracy_bits()
    if missing > 0 or not ball.is_finite():
        raise PrecisionTooLow(min(max(missing, 64), 4096))


def _number(ball: arb) -> float:
    """The middle of a ball, for decisions that affect cost only."""
    return float(ball.mid())


def _from_zero_to(bound: arb) -> arb:
    """The ball [0, bound], for what is known to be positive and at most ``bound``."""
    return arb(0).union(bound.upper())


def _width(survey: Survey) -> float:
    """About how wide the peak is, from the curvature of the log integrand."""
    curvature = 1.0
    for bend in survey.majorants[0][0].bends:
        y, hazard = _number(bend.argument), _number(bend.hazard)
        slope = _number(bend.slope)
        curvature += _number(bend.power) * slope * slope * max(hazard * (y + hazard), 0.0)
    return max(1 / math.sqrt(curvature), 1e-150)


def _window_end(
    integrand: Integrand, peak: float, width: float, log_scale: arb, log_target: float, side: int
) -> tuple[float, arb]:
    """A point beyond the peak after which little is left, and a bound on that.

    Newton's method on the log of the tail bound: from outside it approaches without stepping over.
    """
    distance = width * math.sqrt(2 * max(-log_target, 1.0))
    found: tuple[float, arb] | None = None
    for _ in range(200):
        end = peak + side * distance
        tail, rate = _tail(integrand.survey(arb(end)), log_scale, side)
        if tail is None:
            distance *= 2
            continue
        excess = _number(tail.log()) - log_target if tail > 0 else -math.inf
        if excess <= 0:
            if found is None or distance < abs(found[0] - peak):
                found = (end, tail)
            if excess > -4:
                break
        # A little short of the tangent's promise from inside; from outside the tangent is already cautious.
        new = distance + excess / rate if math.isfinite(excess) else distance / 2
        if found is not None and not 0 < new < 0.95 * abs(found[0] - peak):
            break
        distance = new if new > 0 else distance * 2
    if found is None:
        raise PrecisionTooLow
    return found


def _tail(survey: Survey, log_scale: arb, side: int) -> tuple[arb | None, float]:
    """The integral from the surveyed point outward, at most; and how fast that bound falls there."""
    best: arb | None = None
    best_rate = 0.0
    for majorant in survey.majorants:
        terms = [term for term in majorant if term.on_line]
        slopes = [-side * term.slope for term in terms]
        if not all(slope > 0 for slope in slopes):
            continue
        bound = sum(
            ((term.height - log_scale).exp() / slope for term, slope in zip(terms, slopes, strict=True)),
            arb(0),
        )
        bound = bound.upper()
        if bound.is_finite() and (best is None or bound < best):
            best, best_rate = bound, min(_number(slope) for slope in slopes)
    return best, best_rate


def _panels(integrand: Integrand, left: float, right: float, log_scale: arb, tolerance: float) -> Iterator[_Panel]:
    """Halve until each panel needs few nodes, or none."""
    waiting = [(left, right)]
    log_tolerance = math.log(tolerance)
    for _ in range(_MOST_PANELS):
        if not waiting:
            return
        low, high = waiting.pop()
        middle = (low + high) / 2
        if not low < middle < high:
            raise DPSelectError(_TOO_NARROW)
        # The ends are doubles taken exactly, so neighbouring panels share them without gap or overlap.
        centre, reach = (arb(low) + arb(high)) / 2, (arb(high) - arb(low)) / 2
        panel = _settle(integrand.survey(centre), centre, reach, log_scale, log_tolerance)
        if panel is None:
            waiting += [(middle, high), (low, middle)]
        else:
            yield panel
    raise DPSelectError("the integrand needs too many panels; the parameters are too extreme")


def _settle(survey: Survey, centre: arb, reach: arb, log_scale: arb, log_tolerance: float) -> _Panel | None:
    """The panel with its order and error, or ``None`` if it should be halved first."""
    ceiling = _largest(survey, log_scale, reach, arb(0)) * 2 * reach
    if not ceiling.is_finite():
        raise PrecisionTooLow
    if ceiling == 0 or _number(ceiling.log()) < log_tolerance - 2:
        return _Panel(centre, reach, 0, _from_zero_to(ceiling))
    best_order, best_ratio, best_modulus = math.inf, arb(0), arb(0)
    for ellipse in _ELLIPSES:
        ratio = arb(ellipse)
        along, across = reach * (ratio + 1 / ratio) / 2, reach * (ratio - 1 / ratio) / 2
        modulus = _largest(survey, log_scale, along, across) * reach * arb(64) / 15 / (1 - ratio**-2)
        if not modulus.is_finite():
            break
        order = (_number(modulus.log()) - log_tolerance) / (2 * math.log(ellipse))
        if order >= best_order:
            break
        best_order, best_ratio, best_modulus = order, ratio, modulus
    if best_order > _ORDERS[-1]:
        return None
    order = next(n for n in _ORDERS if n >= best_order)
    error = (best_modulus * best_ratio ** (-2 * order)).upper()
    return _Panel(centre, reach, order, (-error).union(error))


def _largest(survey: Survey, log_scale: arb, along: arb, across: arb) -> arb:
    """At least the scaled modulus of the integrand at x + iy, |x − m| ≤ along and |y| ≤ across."""
    return min((_height(terms, log_scale, along, across) for terms in survey.majorants), key=_number_or_inf)


def _number_or_inf(ball: arb) -> arb:
    return ball if ball.is_finite() else arb.pos_inf()


def _height(terms: list[Term], log_scale: arb, along: arb, across: arb) -> arb:
    total, growth = arb(0), {}
    for term in terms:
        if across == 0 and not term.on_line:
            continue
        key = id(term.bends)
        if key not in growth:
            growth[key] = sum((_bending(bend, along, across) for bend in term.bends), across * across / 2)
        slope = term.slope.abs_upper()
        rise = slope * along - along * along / 2 if along < slope else slope * slope / 2
        total += (term.height - log_scale + rise + growth[key] + (term.density_slope * across) ** 2 / 2).exp()
    return total.upper()


def _bending(bend: Bend, along: arb, across: arb) -> arb:
    """The log of what |Φ|^count gains over Φ^count off the line, by the best of three bounds."""
    half_square = (bend.slope * across) ** 2 / 2
    gain = half_square
    lowest = bend.argument - abs(bend.slope) * along
    if lowest >= 1:
        # Beyond 1 both φ/Φ ≤ φ/Φ(1) and y·φ/Φ fall as y grows, so the lowest argument is the worst.
        hazard = (-lowest * lowest / 2).exp() / _ROOT_TWO_PI_TIMES_MASS
        swell = half_square.exp()
        sharper = half_square * swell * hazard * (lowest + swell * hazard)
        farther = (swell + 2) * hazard / lowest
        gain = min(bound for bound in (gain.upper(), sharper.upper(), farther.upper()) if bound.is_finite())
    return bend.power * gain


#: √(2π)·Φ(1) = 2.1089…, rounded down.
_ROOT_TWO_PI_TIMES_MASS = 2.1


def _gauss_legendre(integrand: Integrand, panel: _Panel, log_scale: arb) -> arb:
    total = arb(0)
    for node, weight in _rule(panel.order, ctx.prec):
        total += weight * integrand.value(panel.centre + panel.reach * node, log_scale)
    return total * panel.reach


@lru_cache(maxsize=256)
def _rule(order: int, precision: int) -> tuple[tuple[arb, arb], ...]:
    """Nodes and weights on [−1, 1]; the precision is the context's, named only to key the cache."""
    rule = tuple(arb.legendre_p_root(order, k, True) for k in range(order))
    if min(weight.rel_accuracy_bits() for _, weight in rule) < precision // 2:
        raise PrecisionTooLow  # someone else lowered flint's precision meanwhile: do not keep what it made
    return rule
