"""Where to look, for one cell of floats: the peak, a good half-width, how far to go.

The same as :func:`dpselect.numerics.factors.peaks`, :func:`dpselect.numerics.strip.half_width` and the window of
:mod:`dpselect.numerics.rule` for arrays, at a fraction of the calls. Nothing here bears on the truth of a bound, only
on how many nodes it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from dpselect.numerics.factors import Factor
from dpselect.numerics.plain import hazard, log_cdf_and_hazard, swelling
from dpselect.numerics.rule import DROP
from dpselect.numerics.strip import EFFORT, TRIED

#: y, log Φ(y) and h(y) of a factor.
Point: TypeAlias = tuple[float, float, float]

_MOST_REACH = math.sqrt(2.0 * DROP) + 0.2
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


def peak_of_one(factors: Sequence[Factor]) -> float:
    """About where the integrand is largest, to a fiftieth of the peak's width; all counts are positive.

    >>> from dpselect.numerics.pair import exact
    >>> round(peak_of_one([Factor(364.0, exact(1.0), exact(-5.0), 0.0)]), 2)
    7.44
    """
    terms = [(factor.count, factor.slope.high, factor.offset.high) for factor in factors]
    start = terms[0][1]
    if len(terms) > 1:
        start = sum([count * slope * hazard(offset) for count, slope, offset in terms])
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
            here = hazard(y)
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


def good_half_width(factors: Sequence[Factor], x: float, points: Sequence[Point], bend: float) -> tuple[float, float]:
    """``(a, lean)``: see :func:`dpselect.numerics.strip.half_width`."""
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
                bound, rate = swelling(y, log_cdf, here, steep * a)
                cost += count * bound
                lean += (1.0 - rate) * pull
            score = a / (EFFORT + 3.0 + cost + 0.5 * lean * lean / bend)
            if not score > best_score:
                break
            best, best_score, best_lean = a, score, lean
        if best > TRIED[2] * first:
            break
    return best, best_lean


def reach_of_one(factors: Sequence[Factor], x: float, points: Sequence[Point], start: float, side: float) -> float:
    """How far on one side the integrand has dropped by about exp(-DROP)."""
    distance = start
    for _ in range(2):
        at = side * distance
        drop, slope = at * (x + 0.5 * at), x + at
        for factor, (y, log_cdf, _) in zip(factors, points, strict=True):
            along = factor.slope.high
            there, here = log_cdf_and_hazard(y + along * at)
            drop -= factor.count * (there - log_cdf)
            slope -= factor.count * along * here
        if 0.9 * DROP < drop < 1.3 * DROP:
            break
        drop = max(drop, 1e-3)
        power = max(side * slope * distance / drop, 1.0)
        distance = min(distance * math.exp(math.log(DROP / drop) / power), _MOST_REACH)
    return distance
