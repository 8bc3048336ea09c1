"""How large the integrand can be off the real line: the bound that makes the trapezoidal rule a theorem.

docs/theory.md §6 has the proofs. With y_j = slope_j·x + offset_j, b_j = |slope_j|·a, h = φ/Φ, E = exp(b²/2):

* |Φ(y + ib)| ≤ Φ(y)·exp(λ), λ = b²/2 for every y, and λ = (E - 1)·h·y + b²E²h²/2 for y ≥ 0.
* As a function of L = -log Φ(y) the second is concave for b ≤ 0.85, so it lies below its tangents, and a tangent that
  is at least b²/2 at L = log 2 lies above λ everywhere.
* A tangent in L is a power of Φ. So log f + Σ count·λ lies below log f + Σ count·(tangents), which is concave in x with
  curvature at least 1, and so below any of *its* tangents minus w²/2: a Gaussian, whose integral is known. That is M.

The trapezoidal sum with step η then misses the integral by at most 2M/(exp(2πa/η) - 1). log M as returned is raised by
a bound on its own rounding, wherever the majorant is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpselect.numerics.factors import Factor, Point, Spot
from dpselect.numerics.normal import LOG_CDF_UNITS, log_cdf_and_hazard
from dpselect.numerics.pair import LEFT_OFF, Number, U

#: The logarithm of one over the relative error that the step is chosen for.
EFFORT = 30.0
#: The sharper λ is concave in -log Φ up to this b.
CONCAVE_UP_TO = 0.85
LOG_2 = math.log(2.0)
_ROOT_2PI = math.sqrt(2.0 * math.pi)
#: Half-widths tried, as multiples of a first guess.
TRIED = (0.7, 1.0, 1.4, 2.0, 2.8)
#: Covers the last few operations of log M, and heights at the nodes that are off by up to 1e-3.
SLACK = 0.01
#: A hazard below this is not nothing, though it may come out as 0.
TINY = 1e-300
#: Below this argument log Φ is nearly a square, and squares are subtracted before they are rounded.
DEEP = -4.0
#: The hazard is bounded by tangents of a Gaussian at this argument and above (lemma 3).
LEAST_TANGENT = 0.8
#: Units by which a computed shift δ - slope·τ may be off, relative to the sizes of both terms: six for δ, two more.
LEFT_UNITS = 8.0


class Move(NamedTuple):
    """How the gain is formed: x moves by ``translation`` (τ), which leaves the shift δ_j - slope_j·τ of each factor,
    ``None`` where that is nothing in every cell."""

    translation: Number
    left: list[Number | None]


class Strip(NamedTuple):
    """The half-width a, and log M of the integrand and of the gain, relative to the integrand at its peak."""

    half_width: Number
    log_whole: Number
    log_gain: Number
    #: How far from the peak the majorant was taken.
    away: Number


def swelling(y: Number, log_cdf: Number, hazard: Number, b: Number) -> tuple[Number, Number]:
    """``(bound, rate)``: log|Φ(y' + ib)/Φ(y')| ≤ bound + rate·(log Φ(y) - log Φ(y')) for every y', 0 ≤ rate < 1.

    >>> y = np.array([2.0])
    >>> bound, rate = swelling(y, *log_cdf_and_hazard(y), 0.3)
    >>> bound.round(6).tolist(), rate.round(6).tolist(), 0.3**2 / 2
    ([0.005236], [0.154351], 0.045)
    """
    half = 0.5 * b * b
    grown = np.expm1(half)
    spread = 2.0 * half * (1.0 + grown) * (1.0 + grown)
    rate = grown * (y * (y + hazard) - 1.0) + spread * hazard * (hazard + y)
    sharp = grown * hazard * y + 0.5 * spread * hazard * hazard
    # The tangent must also cover y' < 0, where log Φ ≤ -log 2.
    sharp = sharp + np.maximum(half - (sharp + rate * (LOG_2 + log_cdf)), 0.0)
    better = (y >= 0.0) & (b <= CONCAVE_UP_TO) & (rate < 0.9) & (sharp < half)
    return np.where(better, sharp, half), np.where(better, rate, 0.0)


def swelling_of_one(y: float, log_cdf: float, hazard: float, b: float) -> tuple[float, float]:
    """:func:`swelling` for plain floats.

    >>> from dpselect.numerics.normal import log_cdf_and_hazard_of_one
    >>> bound, rate = swelling_of_one(2.0, *log_cdf_and_hazard_of_one(2.0), 0.3)
    >>> round(bound, 6), round(rate, 6), 0.3**2 / 2
    (0.005236, 0.154351, 0.045)
    """
    half = 0.5 * b * b
    if y >= 0.0 and b <= CONCAVE_UP_TO:
        grown = math.expm1(half)
        spread = 2.0 * half * (1.0 + grown) * (1.0 + grown)
        rate = grown * (y * (y + hazard) - 1.0) + spread * hazard * (hazard + y)
        if rate < 0.9:
            sharp = grown * hazard * y + 0.5 * spread * hazard * hazard
            # The tangent must also cover y' < 0, where log Φ ≤ -log 2.
            sharp = max(sharp, half - rate * (LOG_2 + log_cdf))
            if sharp < half:
                return sharp, rate
    return half, 0.0


def curvature(factors: Sequence[Factor], spot: Spot) -> Number:
    """-(log f)'' there: 1 + Σ count·slope²·h·(h + y)."""
    bend = 1.0
    for factor, y, hazard in zip(factors, spot.arguments, spot.hazards, strict=True):
        square = factor.slope.high * factor.slope.high
        bend = bend + factor.count * square * hazard * np.maximum(hazard + y, 0.0)
    return bend


def half_width(factors: Sequence[Factor], spot: Spot, bend: Number) -> tuple[Number, Number]:
    """``(a, lean)``: an a that needs few nodes, and the slope of the majorant's logarithm at the peak. Any a is right.

    It is nearly the largest a/(effort + log M).
    """
    first = 8.0 / np.sqrt(bend)
    for factor, y in zip(factors, spot.arguments, strict=True):
        steep = np.where(factor.count > 0.0, abs(factor.slope.high), 1e-300)
        first = np.minimum(first, 0.7 / (steep * np.maximum(y, 1.0)) + 3.0 / (1.0 + factor.count) / steep)
    best, best_score, best_lean = first, first * 0.0, first * 0.0
    for multiple in TRIED:
        a = multiple * first
        cost, lean = 0.5 * a * a, -spot.x
        for factor, (y, log_cdf, hazard) in zip(factors, spot.values(), strict=True):
            bound, rate = swelling(y, log_cdf, hazard, abs(factor.slope.high) * a)
            cost = cost + factor.count * bound
            lean = lean + (1.0 - rate) * factor.count * factor.slope.high * hazard
        score = a / (EFFORT + 3.0 + cost + 0.5 * lean * lean / bend)
        better = score > best_score
        best, best_lean = np.where(better, a, best), np.where(better, lean, best_lean)
        best_score = np.maximum(score, best_score)
    return best, best_lean


def half_width_of_one(factors: Sequence[Factor], x: float, points: Sequence[Point], bend: float) -> tuple[float, float]:
    """:func:`half_width` for one cell of floats."""
    first = 8.0 / math.sqrt(bend)
    terms = []
    for factor, (y, log_cdf, here) in zip(factors, points, strict=True):
        count, slope = factor.count, factor.slope.high
        if slope != 0.0:
            steep = abs(slope)
            first = min(first, (0.7 / max(y, 1.0) + 3.0 / (1.0 + count)) / steep)
            terms.append((count, steep, count * slope * here, y, log_cdf, here))
    best, best_score, best_lean = first, 0.0, 0.0
    # One hill, nearly: what falls goes on falling. From the middle upwards, and downwards if that is no better.
    for multiples in (TRIED[2:], TRIED[1::-1]):
        for multiple in multiples:
            a = multiple * first
            cost, lean = 0.5 * a * a, -x
            for count, steep, pull, y, log_cdf, here in terms:
                bound, rate = swelling_of_one(y, log_cdf, here, steep * a)
                cost += count * bound
                lean += (1.0 - rate) * pull
            score = a / (EFFORT + 3.0 + cost + 0.5 * lean * lean / bend)
            if not score > best_score:
                break
            best, best_score, best_lean = a, score, lean
        if best > TRIED[2] * first:
            break
    return best, best_lean


def unsure(
    factor: Factor, x: Number, y: Number, moves: Number, half: Number, pull: Number, units: float
) -> tuple[Number, Number, Number]:
    """How far y = (that at the peak) + ``moves``, the swelling's bound and ``pull`` may be off; ``half`` is b²/2.

    ``units`` are those that the sum of everything adds. The constants are derived in docs/theory.md §6.
    """
    blur = U * (2.0 * abs(y) + 4.0 * abs(moves)) + factor.slack
    blur = blur + LEFT_OFF * (abs(factor.slope.high * x) + abs(factor.offset.high))
    upper = np.maximum(y, 0.0)
    bound = half * (U * (200.0 + units + 20.0 * upper * upper) + 10.0 * (1.0 + upper) * blur)
    # The hazard's logarithm changes by at most 2/(1 + |y|) per unit of y below 0, by 1 + y above.
    relative = 8000.0 * U + (31.0 + upper) / (1.0 + upper - y) * blur
    return blur, bound, pull * relative + factor.count * TINY


def unsure_rise(log_low: Number, hazard_low: Number, blur: Number, units: float) -> Number:
    """How far log Φ(y) - log Φ(peak) may be off; -log Φ and the hazard are given at the lower of the two."""
    return U * ((2.0 * LOG_CDF_UNITS + units) * log_low + 2.0) + 2.0 * hazard_low * blur


def unsure_deep_rise(base: Number, moves: Number, blur: Number, units: float) -> Number:
    """The same where squares were subtracted: deep in the lower tail."""
    size = abs(moves)
    squares = U * ((6.0 + units) * size * (abs(base) + size) + 2.0 * LOG_CDF_UNITS + 8.0 + units)
    return squares + 2.0 * blur + size * (2.0 * blur + U * abs(base))


def strip(factors: Sequence[Factor], spot: Spot, away: Number, move: Move | None, a: Number) -> Strip:
    """The bounds M for one half-width; the majorant is taken ``away`` from the peak, which may be anything."""
    x = spot.x + away
    height = 0.5 * a * a - away * (spot.x + 0.5 * away)
    # How far the height, the lean and the rise may be off.
    units = len(factors) + 6.0
    heights = units * U * (0.5 * a * a + abs(away) * (abs(spot.x) + abs(away)))
    leans, rises = 8000.0 * U * abs(x), 0.0
    lean, rise, brackets = -x, 0.0, []
    for factor, (base, log_cdf_at_peak, hazard_at_peak) in zip(factors, spot.values(), strict=True):
        count, slope = factor.count, factor.slope.high
        moves = slope * away
        y = base + moves
        log_cdf, hazard = log_cdf_and_hazard(y)
        b = abs(slope) * a
        half = 0.5 * b * b
        bound, rate = swelling(y, log_cdf, hazard, b)
        pull = (1.0 - rate) * count * hazard
        blur, off, pull_off = unsure(factor, x, y, moves, half, pull, units)
        climb = log_cdf - log_cdf_at_peak
        rise_off = unsure_rise(-np.minimum(log_cdf, log_cdf_at_peak), np.maximum(hazard, hazard_at_peak), blur, units)
        deep = base < DEEP
        if deep.any():
            deep &= y < -1.0
            # log Φ = log φ - log h.
            climb = np.where(deep, np.log(hazard_at_peak / hazard) - moves * (base + 0.5 * moves), climb)
            rise_off = np.where(deep, unsure_deep_rise(base, moves, blur, units), rise_off)
        height = height + count * (bound + climb)
        heights = heights + count * (off + rise_off)
        lean = lean + pull * slope
        leans = leans + pull_off * abs(slope)
        if move is not None:
            rise = rise + pull * factor.shift
            rises = rises + pull_off * factor.shift + 60.0 * blur
            brackets.append((y, hazard, half))
    bell = _ROOT_2PI * np.exp(0.5 * lean * lean)
    # The lean enters as lean²/2, and through peaks at most 60 from x wherever a term is not negligible.
    height = height + (heights + leans * (60.0 + leans) + SLACK)
    log_whole = height + np.log(bell)
    if move is None:
        return Strip(a, log_whole, log_whole, away)
    # ∫|w|·exp(lean·w - w²/2) dw is at most this; the first term of the gain's derivative is τ·(x + ia).
    wide = 2.0 * (1.0 + abs(lean) * bell)
    size = abs(move.translation) * ((abs(x) + a) * bell + wide)
    for factor, left, (y, hazard, half) in zip(factors, move.left, brackets, strict=True):
        slope = factor.slope.high
        flat = (hazard + TINY) * bell + abs(slope) * wide
        most = LEFT_UNITS * U * (factor.shift + abs(slope * move.translation)) * flat
        if left is not None:
            tangent = np.maximum((y + slope * lean) / (1.0 + slope * slope), LEAST_TANGENT)
            tilt = lean - slope * tangent
            near = 2.0 * np.exp(tangent * (0.5 * tangent - y) + 0.5 * tilt * tilt)
            most = most + abs(left) * np.minimum(near, flat)
        size = size + factor.count * np.exp(half) * most
    return Strip(a, log_whole, height + rise + rises + np.log(size), away)
