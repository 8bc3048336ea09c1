"""Above threshold with Gaussian noise: the loss of a transcript, pure and ex post (THEORY §2).

A transcript of ``below`` ⊥ and ``above`` ⊤ under one noisy threshold ρ + σ_X·x costs

    log J(m, k; Δ, Δ) - log J(m, k; 0, 0),
    J(m, k; s, t) = E_x[Φ((σ_X·x + ρ - b + s)/σ_Z)^m · Φ((a - ρ - σ_X·x + t)/σ_Z)^k].

For a monotone family only one kind of answer can have become likelier, so one of the shifts is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, counts, finite, non_negative, one, positive, refuse, unwrap
from dpselect.errors import InvalidParameter
from dpselect.numerics.careful import LogEstimate
from dpselect.numerics.enclosure import Enclosure, enclose_log_ratio
from dpselect.numerics.integral import log_ratio, single_cell


def _worst(
    below_counts: FloatArray,
    above_counts: FloatArray,
    below: tuple[FloatArray, FloatArray, FloatArray],
    above: tuple[FloatArray, FloatArray, FloatArray],
    monotone: bool,
) -> LogEstimate:
    """The loss from (slope, offset, shift) of the ⊥ and of the ⊤ factors, along the last axis."""
    powers = np.concatenate([below_counts, above_counts], axis=-1)
    slopes, offsets, shifts = (np.concatenate(pair, axis=-1) for pair in zip(below, above, strict=True))
    if not monotone:
        return log_ratio(powers, slopes, offsets, shifts)
    only_below = np.concatenate([below[2], np.zeros_like(above[2])], axis=-1)
    only_above = np.concatenate([np.zeros_like(below[2]), above[2]], axis=-1)
    both = log_ratio(powers, slopes, offsets, np.stack([only_below, only_above]))
    larger = np.argmax(both.value + both.error, axis=0)[None, ...]
    pick = [np.take_along_axis(array, larger, axis=0)[0] for array in (both.value, both.error)]
    return LogEstimate(*pick)


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
        # One transcript: plain floats all the way.
        noise, slope = float(sigma_z), float(sigma_x / sigma_z)
        shift = min(float(delta), float(b - a)) / noise
        factors = ((float(m), float(k)), (slope, -slope), (float(rho - b) / noise, float(a - rho) / noise))
        moves = [(shift, 0.0), (0.0, shift)] if monotone else [(shift, shift)]
        return max((single_cell(*factors, move) for move in moves), key=lambda loss: float(loss.value + loss.error))
    slopes = (sigma_x / sigma_z)[..., None]
    shifts = (np.minimum(delta, b - a) / sigma_z)[..., None]
    return _worst(
        m[..., None],
        k[..., None],
        (slopes, ((rho - b) / sigma_z)[..., None], shifts),
        (-slopes, ((a - rho) / sigma_z)[..., None], shifts),
        monotone,
    )


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


@dataclass(frozen=True, kw_only=True)
class Question:
    """The public side of one question in a run whose questions differ: range, threshold and noise.

    The sensitivity is not here: it must be one number for the whole run (THEORY §2).
    """

    lower: float
    upper: float
    threshold: float
    sigma_query: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "threshold"):
            finite(name, getattr(self, name))
        positive("sigma_query", self.sigma_query)
        if not self.lower < self.upper:
            raise refuse("upper", self.upper, f"above lower = {self.lower!r}")


def mixed_run_loss(
    *,
    sensitivity: float,
    sigma_threshold: float,
    below: Iterable[Question],
    above: Iterable[Question] = (),
    monotone: bool = False,
) -> LogEstimate:
    """The loss of one run whose questions differ in range, threshold and noise; each listed under its answer.

    The power in the integral becomes a product. One noisy threshold offset σ_X·x serves all, one Δ holds for all.

    >>> easy = Question(lower=0, upper=1, threshold=0.5, sigma_query=0.3)
    >>> strict = Question(lower=0, upper=0.8, threshold=0.6, sigma_query=0.2)
    >>> loss = mixed_run_loss(sensitivity=1e-3, sigma_threshold=0.2, below=[easy] * 3 + [strict], above=[easy])
    >>> float(loss.value.round(5))
    0.02616
    """
    asked = [Counter(below), Counter(above)]
    if not asked[0] and not asked[1]:
        raise InvalidParameter("a run must hold at least one question; got none")
    questions = [question for side in asked for question in side]
    delta = one(non_negative, "sensitivity", sensitivity)
    narrowest = min(question.upper - question.lower for question in questions)
    if delta > narrowest:
        raise refuse("sensitivity", sensitivity, f"at most the narrowest range in the run, {narrowest!r}")
    sigma_x = one(positive, "sigma_threshold", sigma_threshold)
    sides = []
    for sign, side in zip((1.0, -1.0), asked, strict=True):
        noise = np.array([question.sigma_query for question in side])
        ends = [q.threshold - q.upper if sign > 0 else q.lower - q.threshold for q in side]
        sides.append((sign * sigma_x / noise, np.array(ends) / noise, delta / noise))
    powers = [np.array(list(side.values()), dtype=np.float64) for side in asked]
    return _worst(powers[0], powers[1], sides[0], sides[1], monotone)


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
    a, b, rho = (Fraction(value) for value in (lower, upper, threshold))
    noise = Fraction(one(positive, "sigma_query", sigma_query))
    slope = Fraction(one(positive, "sigma_threshold", sigma_threshold)) / noise
    shift = min(Fraction(one(non_negative, "sensitivity", sensitivity)), b - a) / noise
    slopes, offsets = [slope, -slope], [(rho - b) / noise, (a - rho) / noise]
    moves = [[shift, Fraction(0)], [Fraction(0), shift]] if monotone else [[shift, shift]]
    found = [enclose_log_ratio(powers, slopes, offsets, shifts) for shifts in moves]
    return Enclosure(max(one.lower for one in found), max(one.upper for one in found))
