"""Report noisy max with Gaussian noise: its pure cost (THEORY §2), and how far apart its log ratios lie (THEORY §11).

The range η of one pair of neighbours is at most

    η = (2Δ/σ) · max over 0 ≤ u ≤ c/σ of [S(c/σ − u) + e(u)]        (monotone family: Δ/σ)

    S(g) = −d/dg log E[Φ(x − g)^(d−1)],   e(u) = −d/dy log E[Φ(x − y)·Φ(x + u)^(d−2)] at y = 0.

Both logarithms are concave, so S and e are at most the fall along a chord to the right: an ordinary log ratio over a
small step, which :func:`~dpselect.numerics.integral.log_ratio` bounds from above. S rises in g and e rises in u, so
over a cell of u the bracket is at most S at the cell's left end plus e at its right end. Cells are split until their
bound is next to a value of the bracket; what is returned is the largest bound of a cell, however far that went.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import (
    FloatArray,
    broadcast,
    counts,
    non_negative,
    one,
    plain_counts,
    plain_floats,
    positive,
    unwrap,
)
from dpselect.numerics.enclosure import Enclosure, enclose_log_ratio
from dpselect.numerics.factors import Factor
from dpselect.numerics.integral import LogEstimate, log_ratio, one_cell, upper_end
from dpselect.numerics.pair import exact, quotient, shift_by
from dpselect.privacy.family import relative_shift
from dpselect.rounding import upward

#: The chords' step, relative to c/σ where that is above 1: it costs 1e-9 of the result and keeps all inputs exact.
_STEP = 2.0**-30
#: Cells are split until their bound is within this of an attained value.
_CLOSE = 1e-6
#: How far a log ratio may be off: far less than the cells are. Without it 1e11 candidates and more take enclosures.
_FINE = 1e-7
_ROUNDS = 40
_ONE = exact(1.0)
_PIECES = 8


@np.errstate(all="ignore")
def noisy_max_loss(
    *,
    width: ArrayLike,
    sensitivity: ArrayLike,
    sigma: ArrayLike,
    candidates: ArrayLike,
    monotone: bool = False,
) -> LogEstimate:
    """The tight pure ε of noisy max with its error bound; arrays broadcast.

    ``width`` is c = b - a, rounded up where it is not a double; a sensitivity above it is cut to it.

    >>> loss = noisy_max_loss(width=1, sensitivity=1e-3, sigma=[0.1, 0.3], candidates=16)
    >>> loss.value.round(5).tolist()
    [0.20405, 0.02921]
    """
    c, delta, s, d = broadcast(
        width=positive("width", width),
        sensitivity=non_negative("sensitivity", sensitivity),
        sigma=positive("sigma", sigma),
        candidates=counts("candidates", candidates, least=2),
    )
    if d.ndim == 0:
        value, error = _one_loss(float(c), float(delta), float(s), float(d), monotone=monotone)
        return LogEstimate(np.asarray(value), np.asarray(error))
    moves = relative_shift(monotone)

    def exact_inputs(cell: int) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
        extent, change, noise = (Fraction(float(array.flat[cell])) for array in (c, delta, s))
        return _exact_factor(extent, change, noise, moves)

    offsets = quotient(exact(-c[..., None]), s[..., None])
    shifts = shift_by(moves * np.minimum(delta, c), s)[..., None]
    return log_ratio((d - 1.0)[..., None], np.ones(1), offsets, shifts, exact=exact_inputs)


def _one_loss(
    width: float, sensitivity: float, sigma: float, candidates: float, *, monotone: bool
) -> tuple[float, float]:
    """One setting: the loss and a bound on its error."""
    moves = relative_shift(monotone)
    shift = shift_by(moves * min(sensitivity, width), sigma)
    return one_cell(
        [Factor(candidates - 1.0, _ONE, quotient(exact(-width), sigma), shift)],
        exact=lambda _: _exact_factor(Fraction(width), Fraction(sensitivity), Fraction(sigma), moves),
    )


def _exact_factor(
    width: Fraction, sensitivity: Fraction, sigma: Fraction, moves: int
) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Slope, offset and shift of the one kind of factor."""
    return [Fraction(1)], [-width / sigma], [moves * min(sensitivity, width) / sigma]


def noisy_max_epsilon(
    *,
    width: ArrayLike,
    sensitivity: ArrayLike,
    sigma: ArrayLike,
    candidates: ArrayLike,
    monotone: bool = False,
) -> float | FloatArray:
    """Pure ε of noisy max, rounded up: never below the truth.

    >>> noisy_max_epsilon(width=1, sensitivity=1 / 6946, sigma=0.2, candidates=365)
    0.0107883852364...
    """
    given, number = plain_floats(width, sensitivity, sigma), plain_counts(candidates)
    if given and number and given[0] > 0.0 <= given[1] and given[2] > 0.0 and number[0] >= 2.0:
        return upper_end(*_one_loss(*given, *number, monotone=monotone))
    loss = noisy_max_loss(width=width, sensitivity=sensitivity, sigma=sigma, candidates=candidates, monotone=monotone)
    return unwrap(loss.upper)


def certify_noisy_max(
    *, lower: float, upper: float, sensitivity: float, sigma: float, candidates: int, monotone: bool = False
) -> Enclosure:
    """A rigorous enclosure of the same ε, from exact rationals in ball arithmetic."""
    d = one(counts, "candidates", candidates, least=2)
    noise = Fraction(one(positive, "sigma", sigma))
    delta = Fraction(one(non_negative, "sensitivity", sensitivity))
    factor = _exact_factor(Fraction(upper) - Fraction(lower), delta, noise, relative_shift(monotone))
    return enclose_log_ratio([int(d) - 1], *factor)


def noisy_max_range(
    *, width: float, sensitivity: float, sigma: float, candidates: ArrayLike, monotone: bool = False
) -> float | FloatArray:
    """The range η of Gaussian noisy max, never below the truth; ``candidates`` broadcasts.

    >>> noisy_max_range(width=1, sensitivity=1e-3, sigma=0.1, candidates=365)
    0.24541...
    """
    noise = Fraction(one(positive, "sigma", sigma))
    span = Fraction(one(positive, "width", width))
    moved = min(Fraction(one(non_negative, "sensitivity", sensitivity)), span) * relative_shift(monotone) / noise
    numbers = counts("candidates", candidates, least=2)
    kinds, places = np.unique(numbers, return_inverse=True)
    rates = _rates(upward(span / noise), tuple(kinds.tolist()))
    found = [upward(moved * Fraction(rate)) if math.isfinite(rate) else math.inf for rate in rates]
    return unwrap(np.array(found)[places].reshape(numbers.shape))


@lru_cache(maxsize=512)
def _rates(gap: float, candidates: tuple[float, ...]) -> tuple[float, ...]:
    """The maximum of S(gap − u) + e(u), from above, for each number of candidates."""
    exponent = max(math.frexp(gap)[1], 0) if math.isfinite(gap) else 0
    step = math.ldexp(_STEP, exponent)
    # Everything below is a whole number of steps, exact in doubles; rounding the gap up raises S and so the bound.
    last = math.ceil(gap / step) if gap / step < 2.0**40 else 0
    if last <= 0:
        return (math.inf,) * len(candidates)
    edges = np.unique(np.append(np.ceil(last * 2.0 ** -np.arange(25.0)), 0.0))
    owner = np.repeat(np.arange(len(candidates)), len(edges) - 1)
    left, right = (np.tile(part, len(candidates)) for part in (edges[:-1], edges[1:]))
    others = np.array(candidates) - 1.0
    settled = np.zeros(len(candidates))
    attained = np.zeros(len(candidates))
    for _ in range(_ROUNDS):
        falling, rising, at_left = _parts(others[owner], left, right, last=last, step=step)
        bound = falling + rising
        np.maximum.at(attained, owner, falling + at_left)
        close = (bound <= attained[owner] * (1.0 + _CLOSE)) | (right - left <= 1.0) | np.isinf(bound)
        np.maximum.at(settled, owner[close], bound[close])
        if close.all():
            break
        owner, left, right = _split(owner[~close], left[~close], right[~close])
    else:
        np.maximum.at(settled, owner, np.inf)
    return tuple(settled.tolist())


def _parts(
    others: FloatArray, left: FloatArray, right: FloatArray, *, last: int, step: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Per cell: S at its left end and e at its right end, from above, and e at its left end for comparison."""
    ones, nothing, steps = np.ones_like(others), np.zeros_like(others), np.full_like(others, step)
    lead = log_ratio(
        others[:, None], ones[:, None], (-(last - left + 1.0) * step)[:, None], steps[:, None], tolerance=_FINE
    )
    both = [np.concatenate(pair) for pair in ((others, others), (right, left))]
    twice = [np.tile(part, 2) for part in (ones, nothing, steps)]
    rival = log_ratio(
        np.stack([twice[0], both[0] - 1.0], axis=1),
        np.stack([twice[0], twice[0]], axis=1),
        np.stack([-twice[2], both[1] * step], axis=1),
        np.stack([twice[2], twice[1]], axis=1),
        tolerance=_FINE,
    )
    # The step is a power of two and divides exactly. Adding the two rounds once, by 2^-53 of a sum that is at most
    # twice S, since e ≤ 1/√π ≤ S: that is in here.
    falling, rising = lead.upper / step * (1.0 + 2.0**-50), rival.upper / step
    return falling, rising[: len(others)], rising[len(others) :]


def _split(
    owner: NDArray[np.intp], left: FloatArray, right: FloatArray
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Every cell in pieces that end on whole steps; empty ones are left out."""
    ends = np.ceil(left[:, None] + (right - left)[:, None] * (np.arange(_PIECES + 1) / _PIECES))
    lower, upper = ends[:, :-1].ravel(), ends[:, 1:].ravel()
    kept = lower < upper
    return np.repeat(owner, _PIECES)[kept], lower[kept], upper[kept]
