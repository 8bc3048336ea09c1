"""The integrand and its peak: a Gaussian weight times powers of Φ, for one cell (floats) or many (arrays).

    f(x) = exp(-x²/2) · ∏_j Φ(y_j)^count_j,   y_j = slope_j·x + offset_j

It is log-concave for counts ≥ 0: one mode, one hill.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dpselect.numerics.normal import hazard_of_one, log_cdf_and_hazard, nearest_on_lattice, rough_log_cdf_and_hazard
from dpselect.numerics.pair import Number, Pair, difference, exact, line, negative, ratio

_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


class Factor(NamedTuple):
    """Φ(slope·x + offset)^count, and the shift its argument takes. Each a float, or an array over cells."""

    count: Number
    slope: Pair
    offset: Pair
    shift: Number
    #: How far the offset may be from the true one, beyond the rounding of a pair.
    slack: Number = 0.0


#: y, log Φ(y) and h(y) of a factor, in one cell.
Point: TypeAlias = tuple[float, float, float]


class Spot(NamedTuple):
    """A point of the line with what the factors are there: y_j, log Φ(y_j), h(y_j) = φ/Φ."""

    x: Number
    arguments: list[Number]
    log_cdfs: list[Number]
    hazards: list[Number]
    #: What ``x`` leaves off: half a unit in its last place, at most.
    low: Number = 0.0
    #: Whether the one argument lies on the lattice of :mod:`dpselect.numerics.normal`.
    on_lattice: Number = False

    def values(self) -> Iterator[tuple[Number, Number, Number]]:
        """y, log Φ(y) and h(y) of each factor."""
        return zip(self.arguments, self.log_cdfs, self.hazards, strict=True)


def spot_at(factors: Sequence[Factor], x: Number) -> Spot:
    """The factors at ``x``."""
    arguments = [line(factor.slope, x, factor.offset).high for factor in factors]
    values = [log_cdf_and_hazard(y) for y in arguments]
    return Spot(x, arguments, [value[0] for value in values], [value[1] for value in values])


def lattice_spot(factor: Factor, x: Number) -> Spot:
    """The point nearest ``x`` whose argument is on the lattice, for one factor with slope 1.

    The argument is then exact, and x = y - offset is carried as a pair.
    """
    y, log_cdf, hazard = nearest_on_lattice(x + factor.offset.high)
    high, low = difference(y, factor.offset.high)
    return Spot(high, [y], [log_cdf], [hazard], low - factor.offset.low, True)


def peaks(factors: Sequence[Factor], *, steps: int, enough: float = 1.0) -> tuple[Number, Number]:
    """About where the integrands of many cells are largest, to a fiftieth of the peak's width, and which are so good.

    With x ≥ 0 (mirrored where needed) the peak solves pull(x) = x + push(x), pull falling and push rising. The
    logarithm of both sides is nearly linear even where the hazards fall like exp(-y²/2), so Newton's method on it
    needs a handful of steps; a bracket guards it. It ends when a share ``enough`` of the cells is settled. How well it
    is found decides the width of a bound, never its truth.
    Counts must be ≥ 0.

    >>> import numpy as np
    >>> found, settled = peaks([Factor(np.array([364.0]), exact(np.ones(1)), exact(np.array([-5.0])), 0.0)], steps=9)
    >>> found.round(2).tolist(), settled.tolist()
    ([7.44], [True])
    """
    start: Number = 0.0
    for factor in factors:
        start = start + factor.count * factor.slope.high * rough_log_cdf_and_hazard(factor.offset.high)[1]
    sign = np.where(start < 0.0, -1.0, 1.0)
    slopes = [factor.slope.high * sign for factor in factors]
    x: Number = start * 0.0 + 0.5
    for factor, along in zip(factors, slopes, strict=True):
        counts = (along > 0.0) & (factor.count > 0.0)
        along = np.where(counts, along, 1.0)
        at = np.maximum(-factor.offset.high / along, 0.0)
        # count·slope·φ(y) = x, nearly: far above 0 the hazard is the density.
        excess = np.log(np.maximum(factor.count * along * _INVERSE_SQRT_2PI / (at + 1.0), 1.0))
        at = np.where(excess > 0.0, (np.sqrt(2.0 * excess) - factor.offset.high) / along, at)
        x = np.maximum(x, np.where(counts, at, 0.0))
    low, high = x * 0.0, x * 0.0 + math.inf
    terms = [
        (factor.count * np.abs(along), along, np.abs(along), factor.offset.high, along > 0.0)
        for factor, along in zip(factors, slopes, strict=True)
    ]
    pull: Number
    push: Number
    bend_pull: Number
    bend_push: Number
    for _ in range(steps):
        pull, push, bend_pull, bend_push = 1e-300, x, 0.0, 1.0
        for scale, along, steep, offset, rises in terms:
            y = along * x + offset
            hazard = rough_log_cdf_and_hazard(y)[1]
            strength = scale * hazard
            bend = strength * steep * (hazard + y)
            if len(terms) == 1:
                pull, bend_pull = pull + strength, bend
                continue
            upward, bend_up = np.where(rises, strength, 0.0), np.where(rises, bend, 0.0)
            pull, push = pull + upward, push + (strength - upward)
            bend_pull, bend_push = bend_pull + bend_up, bend_push + (bend - bend_up)
        value = np.log(pull / push)
        rising = value > 0.0
        low, high = np.where(rising, x, low), np.where(rising, high, x)
        gap = value / (bend_pull / pull + bend_push / push)
        # Far downwards by a factor, so that a peak near 0 is not overshot.
        proposal = np.where(gap < -0.5 * x, x * np.exp(gap / x), x + gap)
        middle = np.where(high < math.inf, 0.5 * (low + high), 2.0 * x + 1.0)
        proposal = np.where((proposal > low) & (proposal < high), proposal, middle)
        gap = proposal - x
        x = proposal
        # Newton's method squares what is left.
        settled = gap * gap * np.maximum(bend_pull + bend_push, 1.0) < 0.01
        if settled.mean() >= enough:
            break
    return sign * x, settled


def peak_of_one(factors: Sequence[Factor]) -> float:
    """:func:`peaks` for one cell of floats, all counts positive, at a fraction of the calls.

    >>> round(peak_of_one([Factor(364.0, exact(1.0), exact(-5.0), 0.0)]), 2)
    7.44
    """
    terms = [(factor.count, factor.slope.high, factor.offset.high) for factor in factors]
    start = terms[0][1]
    if len(terms) > 1:
        start = sum([count * slope * hazard_of_one(offset) for count, slope, offset in terms])
    if start < 0.0:
        sign = -1.0
        terms = [(count, -slope, offset) for count, slope, offset in terms]
    else:
        sign = 1.0
    x = 0.5
    for count, along, offset in terms:
        if along > 0.0:
            at = max(-offset / along, 0.0)
            # count·slope·φ(y) = x, nearly: far above 0 the hazard is the density.
            excess = count * along * _INVERSE_SQRT_2PI / (at + 1.0)
            x = max(x, (math.sqrt(2.0 * math.log(excess)) - offset) / along if excess > 1.0 else at)
    low, high = 0.0, math.inf
    for _ in range(40):
        pull, push, bend_pull, bend_push = 1e-300, x, 0.0, 1.0
        for count, along, offset in terms:
            y = along * x + offset
            here = hazard_of_one(y)
            strength = count * along * here
            if along > 0.0:
                pull += strength
                bend_pull += strength * along * (here + y)
            else:
                push -= strength
                bend_push += strength * along * (here + y)
        value = math.log(pull / push)
        if value > 0.0:
            low = x
        else:
            high = x
        proposal = x + value / (bend_pull / pull + bend_push / push)
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if high < math.inf else 2.0 * x + 1.0
        gap = proposal - x
        x = proposal
        # Newton's method squares what is left.
        if gap * gap * max(bend_pull + bend_push, 1.0) < 0.01:
            break
    return sign * x


def exchanged(factor: Factor) -> list[Factor]:
    """The roles of x and of the largest z exchanged: the same integral up to a factor ``count``, without the cliff.

    E_x[Φ(sx + o)^m] = P(z_1, …, z_m ≤ sx + o) = m·∫ φ(z)·Φ(z)^(m-1)·Φ((o - z)/|s|) dz, by the law of the largest z_i
    and because -x is as normal as x. A shift of o becomes a shift of the last factor alone.
    """
    one, zero = factor.count * 0.0 + 1.0, factor.count * 0.0
    steep = abs(factor.slope.high)
    slope = Pair(steep, factor.slope.low * (2.0 * (factor.slope.high > 0.0) - 1.0))
    return [
        Factor(factor.count - 1.0, exact(one), exact(zero), zero),
        Factor(one, negative(ratio(exact(one), slope)), ratio(factor.offset, slope), factor.shift / steep),
    ]
