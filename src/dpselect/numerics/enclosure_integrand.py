"""The Gaussian integrands in ball arithmetic, with what bounds them on and off the real line.

Three integrands over x (THEORY §2), each positive on the line and entire, with y_g = slope_g·x + offset_g:

* the product F(x) = φ(x)·∏ Φ(y_g)^count_g, whose integral is J;
* its growth under shifts, φ(x)·(∏ Φ(y_g + shift_g)^count_g − ∏ Φ(y_g)^count_g), whose integral is K;
* its shortfall, φ(x)·(1 − ∏ Φ(y_g)^count_g), whose integral is 1 − J: the growth under endless shifts.

A *majorant* is a list of terms exp(height + slope·(x − m) − (x − m)²/2) whose sum lies above the integrand on the
whole line: log-concavity makes every tangent such a term. Off the line the two facts used are, for y, t real,

* |Φ(y + it)| ≤ Φ(y)·exp(t²/2), because Φ(z) = ∫ φ(z − u) du over u > 0 and |φ(v + it)| = φ(v)·exp(t²/2);
* for y ≥ 0, |Φ(y + it)| ≤ Φ(y)·exp(κt²/2) with κ = E·yλ + E²λ², λ = φ(y)/Φ(y), E = exp(t²/2): the path from y to
  y + it adds at most φ(y)·E·yt²/2 to the real part and φ(y)·E·t to the imaginary one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from flint import arb


class Factor(NamedTuple):
    """Φ(slope·x + offset)^count, and the shift its argument takes (``None``: an endless one)."""

    count: arb
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


class Bend(NamedTuple):
    """A power of Φ at the point surveyed, from which its growth off the line is bounded."""

    count: arb
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
    root_two = arb(2).sqrt()
    if y > 0:
        above = (y / root_two).erfc() / 2
        return _Normal(1 - above, above, (-above).log1p())
    below = (-y / root_two).erfc() / 2
    return _Normal(below, 1 - below, below.log())


def _half_log_two_pi() -> arb:
    return (2 * arb.pi()).log() / 2


def _log_density(y: arb) -> arb:
    return -y * y / 2 - _half_log_two_pi()


@dataclass(frozen=True)
class Product:
    """φ(x)·∏ Φ(y_g)^count_g; the shifts are not looked at."""

    factors: Sequence[Factor]

    def value(self, x: arb, log_scale: arb) -> arb:
        """The product at ``x``, divided by exp(log_scale)."""
        log_value = _log_density(x)
        for factor in self.factors:
            log_value += factor.count * _normal(factor.slope * x + factor.offset).log_below
        return (log_value - log_scale).exp()

    def survey(self, x: arb) -> Survey:
        """The product around ``x``: it is log-concave, so its tangent is a majorant."""
        log_value, log_slope, bends = _log_density(x), -x, []
        for factor in self.factors:
            y = factor.slope * x + factor.offset
            log_below = _normal(y).log_below
            hazard = (_log_density(y) - log_below).exp()
            log_value += factor.count * log_below
            log_slope += factor.count * factor.slope * hazard
            bends.append(Bend(factor.count, factor.slope, y, hazard))
        return Survey(log_value, log_slope, [[Term(log_value, log_slope, arb(0), tuple(bends))]])


@dataclass(frozen=True)
class Growth:
    """φ(x)·(∏ Φ(y_g + shift_g)^count_g − ∏ Φ(y_g)^count_g), never formed as a difference of near equals.

    The shifts are all finite (and ``endless`` is false) or all endless, which gives the shortfall.
    """

    factors: Sequence[Factor]
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

        The first is the shifted product itself (plus, off the line, the unshifted one). The second writes the growth
        as ∫ Σ_g count_g·shift_g·exp(q_g(x, τ)) dτ over the way τ from no shift to the whole; each q_g is the log of a
        product of φ and whole powers of Φ, jointly concave in (x, τ), and so under its tangent plane.
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
            log_bottom += factor.count * start.log_below
            slope_bottom += factor.count * factor.slope * hazard
            bends_bottom.append(Bend(factor.count, factor.slope, y, hazard))
            drift_bottom += factor.count * hazard * (1 if factor.shift is None else factor.shift)
            if factor.shift is None:
                slope_gain -= factor.count * factor.slope * hazard
            else:
                log_top += top
                y_top = y + factor.shift
                hazard_top = (_log_density(y_top) - top / factor.count).exp()
                slope_top += factor.count * factor.slope * hazard_top
                slope_gain += factor.count * factor.slope * (hazard_top - hazard)
                drift_top += factor.count * factor.shift * hazard_top
                bends_top.append(Bend(factor.count, factor.slope, y_top, hazard_top))
        log_value = log_top + (-(-gain).expm1()).log()
        log_slope = slope_top + slope_gain / gain.expm1()
        whole = [
            Term(log_top, slope_top, arb(0), tuple(bends_top)),
            Term(log_bottom, slope_bottom, arb(0), tuple(bends_bottom)),
        ]
        at_start = _way(
            self.factors, log_bottom, slope_bottom, drift_bottom, bends_bottom, tuple(bends_bottom), 1
        )
        majorants = [whole, at_start]
        if not self.endless:
            majorants.append(
                _way(self.factors, log_top, slope_top, drift_top, bends_top, tuple(bends_bottom), -1)
            )
        return Survey(log_value, log_slope, [terms for terms in majorants if terms])


def _gain(factor: Factor, x: arb, start: _Normal) -> tuple[arb, arb]:
    """count·log Φ(y + shift), and how far that is above count·log Φ(y), relatively accurate when tiny."""
    if factor.shift is None:
        return arb(0), -factor.count * start.log_below
    if factor.shift == 0:
        return factor.count * start.log_below, arb(0)
    y = factor.slope * x + factor.offset
    end = _normal(y + factor.shift)
    gap = start.above - end.above if y > 0 else end.below - start.below
    return factor.count * end.log_below, factor.count * (gap / start.below).log1p()


def _way(
    factors: Sequence[Factor],
    log_product: arb,
    slope_product: arb,
    drift: arb,
    points: Sequence[Bend],
    bends: tuple[Bend, ...],
    direction: int,
) -> list[Term]:
    """The tangent-plane terms of the growth, taken where the way starts (1) or ends (−1); empty if of no use.

    Going ``direction`` along the way, q_g changes at most at the rate of its tangent there, so its exponential
    integrates to at most min(1, 1/|rate|) where that is negative and to exp(rate) where it is not.
    """
    terms = []
    for factor, point in zip(factors, points, strict=True):
        endless = factor.shift is None
        pace = arb(1) if endless else factor.shift
        if pace == 0:
            continue
        lean = -point.argument - point.hazard  # the derivative of log(φ/Φ)
        rate = direction * (drift + pace * lean)
        height = log_product + point.hazard.log() + (factor.count * pace).log()
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
