"""Report noisy max with Gaussian noise: its pure cost (THEORY §2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

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
from dpselect.numerics.integral import LogEstimate, log_ratio, single_cell, upper_end
from dpselect.numerics.pair import exact, negative, quotient, shift_by


def relative_shift(monotone: bool) -> float:
    """How many Δ the winner's lead can change by: both ends move, or, in a monotone family, only one."""
    return 1.0 if monotone else 2.0


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
        return _exact_factor(extent, change, noise, int(moves))

    offsets = negative(quotient(exact(c[..., None]), s[..., None]))
    shifts = shift_by(moves * np.minimum(delta, c), s)[..., None]
    return log_ratio((d - 1.0)[..., None], np.ones(1), offsets, shifts, exact=exact_inputs)


def _one_loss(
    width: float, sensitivity: float, sigma: float, candidates: float, *, monotone: bool
) -> tuple[float, float]:
    """One setting: the loss and a bound on its error."""
    moves = relative_shift(monotone)
    return single_cell(
        (candidates - 1.0,),
        (1.0,),
        (negative(quotient(exact(width), sigma)),),
        (shift_by(moves * min(sensitivity, width), sigma),),
        exact=lambda _: _exact_factor(Fraction(width), Fraction(sensitivity), Fraction(sigma), int(moves)),
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
    factor = _exact_factor(Fraction(upper) - Fraction(lower), delta, noise, int(relative_shift(monotone)))
    return enclose_log_ratio([int(d) - 1], *factor)
