"""The Gaussian integrands in ball arithmetic, with what bounds them on and off the real line.

Three integrands over x (THEORY §2), each positive on the line and entire, with y_g = slope_g·x + offset_g:

* the product F(x) = φ(x)·∏ Φ(y_g)^count_g, whose integral is J;
* its growth under shifts, φ(x)·(∏ Φ(y_g + shift_g)^count_g − ∏ Φ(y_g)^count_g), whose integral is K;
* its shortfall, φ(x)·(1 − ∏ Φ(y_g)^count_g), whose integral is 1 − J: the growth under endless shifts.

A *majorant* is a list of terms exp(height + slope·(x − m) − (x − m)²/2) whose sum lies above the integrand on
the whole line: log-concavity makes every tangent such a term. Off the line, for real y and t:

* |Φ(y + it)| ≤ Φ(y)·exp(t²/2), because Φ(z) = ∫ φ(z − u) du over u > 0 and |φ(v + it)| = φ(v)·exp(t²/2);
* for y ≥ 0, with λ = φ(y)/Φ(y) and E = exp(t²/2), |Φ(y + it)| ≤ Φ(y)·exp((E·yλ + E²λ²)t²/2), because the way
  from y to y + it adds at most φ(y)·E·yt²/2 to the real part and φ(y)·E·t to the imaginary one;
* for y ≥ 1, |Φ(y + it)| ≤ Φ(y)·exp((E + 2)λ/y), because 1 − Φ(y) is at most φ(y)/y and grows at most E-fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from flint import arb, ctx


class BallFactor(NamedTuple):
    """Φ(slope·x + offset)^power, and the shift its argument takes (``None``: an endless one)."""

    power: arb
    slope: arb
    offset: arb
    shift: arb | None


class Term(NamedTuple):
    """exp(height + slope·(x − m) − (x − m)²/2), and what it grows by off the real line."""

    height: arb
    slope: arb
    #: The slope of a further factor φ(slope·x + …) inside the term; 0 where there is none.
    density_slope: arb
    bends: tuple[Bend, ...]
    #: Whether the term is needed on the real line, or only off it.
    on_line: bool = True


class Bend(NamedTuple):
    """A power of Φ at the point surveyed, from which its growth off the line is bounded."""

    power: arb
    slope: arb
    argument: arb
    hazard: arb


class Survey(NamedTuple):
    """An integrand at one point: its log, the derivative of that, and majorants touching there."""

    log_value: arb
    log_slope: arb
    majorants: list[list[Term]]


class Integrand(Protocol):
    """What the quadrature needs to know."""

    def value(self, x: arb, log_scale: arb) -> arb:
        """The integrand at ``x``, divided by exp(log_scale)."""

    def survey(self, x: arb) -> Survey:
        """The integrand around ``x``."""


class _Normal(NamedTuple):
    """Φ(y), 1 − Φ(y) and log Φ(y), each to full relative accuracy where it is small."""

    below: arb
    above: arb
    log_below: arb


def _normal(y: arb) -> _Normal:
    if y > 0:
        above = _upper_tail(y)
        return _Normal(1 - above, above, (-above).log1p())
    below = _upper_tail(-y)
    return _Normal(below, 1 - below, below.log())


def _upper_tail(y: arb) -> arb:
    """1 − Φ(y) for y that is not far below 0."""
    z = y / _root_two(ctx.prec)
    if not z > 100:
        return z.erfc() / 2
    # flint's erfc loses all accuracy on a far ball with a radius, not on its exact middle. Around that the
    # log of erfc has a derivative between 0 and −(2z + 2/√π): the normal hazard at t is at most t + √(2/π).
    spread = z.rad() * (2 * z + 2)
    return arb(z.mid()).erfc() * (-spread).union(spread).exp() / 2


@lru_cache(maxsize=64)
def _root_two(_precision: int) -> arb:
    return arb(2).sqrt()


@lru_cache(maxsize=64)
def _half_log_two_pi(_precision: int) -> arb:
    return (2 * arb.pi()).log() / 2


def _log_density(y: arb) -> arb:
    return -y * y / 2 - _half_log_two_pi(ctx.prec)


@dataclass(frozen=True)
class Product:
    """φ(x)·∏ Φ(y_g)^count_g; the shifts are not looked at."""

    factors: Sequence[BallFactor]

    def value(self, x: arb, log_scale: arb) -> arb:
        """The product at ``x``, divided by exp(log_scale)."""
        log_value = _log_density(x)
        for factor in self.factors:
            log_value += factor.power * _normal(factor.slope * x + factor.offset).log_below
        return (log_value - log_scale).exp()

    def survey(self, x: arb) -> Survey:
        """The product around ``x``: it is log-concave, so its tangent is a majorant."""
        log_value, log_slope, bends = _log_density(x), -x, []
        for factor in self.factors:
            y = factor.slope * x + factor.offset
            log_below = _normal(y).log_below
            hazard = (_log_density(y) - log_below).exp()
            log_value += factor.power * log_below
            log_slope += factor.power * factor.slope * hazard
            bends.append(Bend(factor.power, factor.slope, y, hazard))
        return Survey(log_value, log_slope, [[Term(log_value, log_slope, arb(0), tuple(bends))]])


@dataclass(frozen=True)
class Growth:
    """φ(x)·(∏ Φ(y_g + shift_g)^count_g − ∏ Φ(y_g)^count_g), never formed as a difference of near equals.

    The shifts are all finite (and ``endless`` is false) or all endless, which gives the shortfall.
    """

    factors: Sequence[BallFactor]
    endless: bool = False

    def value(self, x: arb, log_scale: arb) -> arb:
        """The growth at ``x``, divided by exp(log_scale)."""
        log_top, gain = _log_density(x), arb(0)
        for factor in self.factors:
            start = _normal(factor.slope * x + factor.offset)
            top, step = _gain(factor, x, start)
            log_top += top
            gain += step
        return -(log_top - log_scale).exp() * (-gain).expm1()

    def survey(self, x: arb) -> Survey:
        """The growth around ``x``, with two majorants: one sharp for large shifts, one for small.

        The first is the shifted product itself (plus, off the line, the unshifted one). The second writes
        the growth as ∫ Σ_g count_g·shift_g·exp(q_g(x, τ)) dτ over the way τ from no shift to the whole; each
        q_g is the log of a product of φ and whole powers of Φ, jointly concave in (x, τ), so below its tangent
        plane, taken at either end of the way.
        """
        log_bottom = log_top = _log_density(x)
        slope_bottom = slope_top = -x
        gain, slope_gain, drift_bottom, drift_top = arb(0), arb(0), arb(0), arb(0)
        bends_bottom: list[Bend] = []
        bends_top: list[Bend] = []
        for factor in self.factors:
            y = factor.slope * x + factor.offset
            start = _normal(y)
            hazard = (_log_density(y) - start.log_below).exp()
            top, step = _gain(factor, x, start)
            gain += step
            log_bottom += factor.power * start.log_below
            slope_bottom += factor.power * factor.slope * hazard
            bends_bottom.append(Bend(factor.power, factor.slope, y, hazard))
            drift_bottom += factor.power * hazard * (1 if factor.shift is None else factor.shift)
            if factor.shift is None:
                slope_gain -= factor.power * factor.slope * hazard
            else:
                log_top += top
                y_top = y + factor.shift
                hazard_top = (_log_density(y_top) - top / factor.power).exp()
                slope_top += factor.power * factor.slope * hazard_top
                if factor.shift != 0:  # or rounding would drown what the other factors gain
                    slope_gain += factor.power * factor.slope * (hazard_top - hazard)
                drift_top += factor.power * factor.shift * hazard_top
                bends_top.append(Bend(factor.power, factor.slope, y_top, hazard_top))
        log_value = log_top + (-(-gain).expm1()).log()
        log_slope = slope_top + slope_gain / gain.expm1()
        whole = [
            Term(log_top, slope_top, arb(0), tuple(bends_top)),
            Term(log_bottom, slope_bottom, arb(0), tuple(bends_bottom), on_line=False),
        ]
        at_start = _way(self.factors, log_bottom, slope_bottom, drift_bottom, bends_bottom, tuple(bends_bottom), 1)
        majorants = [whole, at_start]
        if not self.endless:
            majorants.append(_way(self.factors, log_top, slope_top, drift_top, bends_top, tuple(bends_bottom), -1))
        return Survey(log_value, log_slope, [terms for terms in majorants if terms])


def _gain(factor: BallFactor, x: arb, start: _Normal) -> tuple[arb, arb]:
    """count·log Φ(y + shift), and how far that is above count·log Φ(y), relatively accurate when tiny."""
    if factor.shift is None:
        return arb(0), -factor.power * start.log_below
    if factor.shift == 0:
        return factor.power * start.log_below, arb(0)
    y = factor.slope * x + factor.offset
    end = _normal(y + factor.shift)
    gap = start.above - end.above if y > 0 else end.below - start.below
    return factor.power * end.log_below, factor.power * (gap / start.below).log1p()


def _way(
    factors: Sequence[BallFactor],
    log_product: arb,
    slope_product: arb,
    drift: arb,
    points: Sequence[Bend],
    bends: tuple[Bend, ...],
    direction: int,
) -> list[Term]:
    """The tangent-plane terms of the growth, taken where the way starts (1) or ends (−1); empty if of no use.

    Going ``direction`` along the way, q_g rises at most at the rate of its tangent there, so its exponential
    integrates to at most min(1, 1/|rate|) where that is negative and to exp(rate) where it is not.
    """
    terms = []
    for factor, point in zip(factors, points, strict=True):
        endless = factor.shift is None
        pace = arb(1) if factor.shift is None else factor.shift
        if pace == 0:
            continue
        lean = -point.argument - point.hazard  # the derivative of log(φ/Φ)
        rate = direction * (drift + pace * lean)
        height = log_product + point.hazard.log() + (factor.power * pace).log()
        if rate < 0:
            shrink = (-rate).log()
            if endless or shrink > 0:
                height -= shrink
        elif endless:
            return []
        else:
            height += rate.upper()
        terms.append(Term(height, slope_product + factor.slope * lean, factor.slope, bends))
    return terms
