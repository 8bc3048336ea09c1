"""Above threshold with Gaussian noise: the loss of a transcript, pure and ex post (THEORY §2).

A transcript of ``below`` ⊥ and ``above`` ⊤ under one noisy threshold ρ + σ_X·x costs

    log J(m, k; Δ, Δ) - log J(m, k; 0, 0),
    J(m, k; s, t) = E_x[Φ((σ_X·x + ρ - b + s)/σ_Z)^m · Φ((a - ρ - σ_X·x + t)/σ_Z)^k].

For a monotone family only one kind of answer can have become likelier, so one of the shifts is 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import (
    FloatArray,
    broadcast,
    counts,
    finite,
    non_negative,
    one,
    plain_counts,
    plain_floats,
    positive,
    refuse,
    unwrap,
)
from dpselect.numerics.enclosure import Enclosure, enclose_log_ratio
from dpselect.numerics.factors import Factor
from dpselect.numerics.integral import ExactInputs, LogEstimate, log_integral, log_ratio, one_cell, upper_end
from dpselect.numerics.pair import Number, Pair, difference, exact, negative, quotient, shift_by

#: Slopes, offsets and shifts in full, of each factor.
_Exact: TypeAlias = tuple[list[Fraction], list[Fraction], list[Fraction]]


def _exact_factors(
    lower: Fraction,
    upper: Fraction,
    sensitivity: Fraction,
    threshold: Fraction,
    sigma_threshold: Fraction,
    sigma_query: Fraction,
    *,
    moves: tuple[int, int],
) -> _Exact:
    """The ⊥ and the ⊤ factor; ``moves`` says which of them the neighbour shifts."""
    slope, shift = sigma_threshold / sigma_query, min(sensitivity, upper - lower) / sigma_query
    offsets = [(threshold - upper) / sigma_query, (lower - threshold) / sigma_query]
    return [slope, -slope], offsets, [move * shift for move in moves]


def _pairs(
    lower: Number, upper: Number, threshold: Number, sigma_threshold: Number, sigma_query: Number
) -> tuple[list[Pair], list[Pair]]:
    """Slopes and offsets of the ⊥ and the ⊤ factor, to twice the precision of doubles; floats or arrays."""
    slope = quotient(exact(sigma_threshold), sigma_query)
    gaps = difference(threshold, upper), difference(lower, threshold)
    return [slope, negative(slope)], [quotient(gap, sigma_query) for gap in gaps]


def _moves(monotone: bool) -> list[tuple[int, int]]:
    """Which answers can have become likelier: in a monotone family only one kind at a time."""
    return [(1, 0), (0, 1)] if monotone else [(1, 1)]


def _larger(first: LogEstimate, second: LogEstimate) -> LogEstimate:
    """Elementwise the one with the larger upper end."""
    keep = first.upper >= second.upper
    return LogEstimate(np.where(keep, first.value, second.value), np.where(keep, first.error, second.error))


@np.errstate(all="ignore")
def transcript_loss(
    *,
    lower: ArrayLike,
    upper: ArrayLike,
    sensitivity: ArrayLike,
    threshold: ArrayLike,
    sigma_threshold: ArrayLike,
    sigma_query: ArrayLike,
    below: ArrayLike,
    above: ArrayLike,
    monotone: bool = False,
) -> LogEstimate:
    """The tight loss of a transcript with its error bound; arrays broadcast.

    >>> loss = transcript_loss(lower=0, upper=1, sensitivity=1e-3, threshold=0.5, sigma_threshold=0.2,
    ...                        sigma_query=0.2 * 3**0.5, below=[2, 9, 49], above=1)
    >>> loss.value.round(5).tolist()
    [0.01564, 0.03051, 0.04693]
    """
    a, b, delta, rho, sigma_x, sigma_z, m, k = broadcast(
        lower=finite("lower", lower),
        upper=finite("upper", upper),
        sensitivity=non_negative("sensitivity", sensitivity),
        threshold=finite("threshold", threshold),
        sigma_threshold=positive("sigma_threshold", sigma_threshold),
        sigma_query=positive("sigma_query", sigma_query),
        below=counts("below", below),
        above=counts("above", above),
    )
    if not (a < b).all():
        raise refuse("lower", lower, f"below upper = {upper!r}")

    if m.ndim == 0:
        value, error = _one_loss(*map(float, (a, b, delta, rho, sigma_x, sigma_z, m, k)), monotone=monotone)
        return LogEstimate(np.asarray(value), np.asarray(error))

    def exact_inputs(moves: tuple[int, int]) -> ExactInputs:
        def inputs(cell: int) -> _Exact:
            given = [Fraction(float(array.flat[cell])) for array in (a, b, delta, rho, sigma_x, sigma_z)]
            return _exact_factors(*given, moves=moves)

        return inputs

    slopes, offsets = map(_stacked, _pairs(a, b, rho, sigma_x, sigma_z))
    shifts = shift_by(np.minimum(delta, b - a), sigma_z)
    estimates = [
        log_ratio(
            np.stack([m, k], axis=-1),
            slopes,
            offsets,
            np.stack([move * shifts for move in moves], axis=-1),
            exact=exact_inputs(moves),
        )
        for moves in _moves(monotone)
    ]
    return reduce(_larger, estimates)


def _one_loss(
    lower: float,
    upper: float,
    sensitivity: float,
    threshold: float,
    sigma_threshold: float,
    sigma_query: float,
    below: float,
    above: float,
    *,
    monotone: bool,
) -> tuple[float, float]:
    """One transcript, plain floats all the way: its loss and a bound on its error."""
    slopes, offsets = _pairs(lower, upper, threshold, sigma_threshold, sigma_query)
    shift = shift_by(min(sensitivity, upper - lower), sigma_query)

    def loss(moves: tuple[int, int]) -> tuple[float, float]:
        def inputs(_: int) -> _Exact:
            given = map(Fraction, (lower, upper, sensitivity, threshold, sigma_threshold, sigma_query))
            return _exact_factors(*given, moves=moves)

        cell = [
            Factor(below, slopes[0], offsets[0], moves[0] * shift),
            Factor(above, slopes[1], offsets[1], moves[1] * shift),
        ]
        return one_cell(cell, exact=inputs)

    if not monotone:
        return loss((1, 1))
    return max(map(loss, _moves(monotone)), key=lambda found: upper_end(*found))


def _stacked(pairs: list[Pair]) -> Pair:
    """One pair of arrays, the factors along the last axis."""
    return Pair(*(np.stack(part, axis=-1) for part in zip(*pairs, strict=True)))


def transcript_epsilon(
    *,
    lower: ArrayLike,
    upper: ArrayLike,
    sensitivity: ArrayLike,
    threshold: ArrayLike,
    sigma_threshold: ArrayLike,
    sigma_query: ArrayLike,
    below: ArrayLike,
    above: ArrayLike,
    monotone: bool = False,
) -> float | FloatArray:
    """:func:`transcript_loss` rounded up: never below the truth."""
    given = plain_floats(lower, upper, sensitivity, threshold, sigma_threshold, sigma_query)
    answers = plain_counts(below, above)
    if given and answers and given[0] < given[1] and given[2] >= 0.0 < given[4] and given[5] > 0.0:
        return upper_end(*_one_loss(*given, *answers, monotone=monotone))
    loss = transcript_loss(
        lower=lower,
        upper=upper,
        sensitivity=sensitivity,
        threshold=threshold,
        sigma_threshold=sigma_threshold,
        sigma_query=sigma_query,
        below=below,
        above=above,
        monotone=monotone,
    )
    return unwrap(loss.upper)


def certify_transcript(
    *,
    lower: float,
    upper: float,
    sensitivity: float,
    threshold: float,
    sigma_threshold: float,
    sigma_query: float,
    below: int,
    above: int,
    monotone: bool = False,
) -> Enclosure:
    """A rigorous enclosure of a transcript's loss, from exact rationals in ball arithmetic."""
    powers = [int(one(counts, "below", below)), int(one(counts, "above", above))]
    given = [
        Fraction(lower),
        Fraction(upper),
        Fraction(one(non_negative, "sensitivity", sensitivity)),
        Fraction(threshold),
        Fraction(one(positive, "sigma_threshold", sigma_threshold)),
        Fraction(one(positive, "sigma_query", sigma_query)),
    ]
    found = [enclose_log_ratio(powers, *_exact_factors(*given, moves=moves)) for moves in _moves(monotone)]
    return Enclosure(max(one.lower for one in found), max(one.upper for one in found))


def silent_probability(
    *, lower: float, threshold: float, sigma_threshold: float, sigma_query: float, questions: int
) -> float:
    """How likely the first ``questions`` answers are all ⊥, at most: E_x[Φ((σ_X·x + ρ - a)/σ_Z)^n] (THEORY §4), upward.

    Queries are at least ``lower`` (a), and the lowest ones are the likeliest to stay below.

    >>> round(silent_probability(lower=3, threshold=0, sigma_threshold=0.5, sigma_query=0.75**0.5, questions=1), 8)
    0.0013499
    """
    number = one(counts, "questions", questions)
    if number == 0.0:
        return 1.0
    noise = one(positive, "sigma_query", sigma_query)
    spread = one(positive, "sigma_threshold", sigma_threshold)
    line, low = one(finite, "threshold", threshold), one(finite, "lower", lower)
    slope, offset = quotient(exact(spread), noise), quotient(difference(line, low), noise)

    def inputs(_: int) -> _Exact:
        scale = Fraction(noise)
        return [Fraction(spread) / scale], [(Fraction(line) - Fraction(low)) / scale], [Fraction(0)]

    chance = log_integral([number], _stacked([slope]), _stacked([offset]), exact=inputs)
    # The exponential is within a unit in its last place; next to 0 that is all of it.
    return min(1.0, math.nextafter(math.exp(float(chance.upper)) * (1.0 + 2.0**-51), math.inf))
