"""A prior over sets that expects neighbouring values to be on the same side of a line: a mixture of two-state chains.

A *chain* labels d values above (⊤) or below (⊥), from left to right. Any one value is ⊤ with probability p, its
``share``; λ, its ``correlation``, is how strongly neighbours agree: P(y follows x) = π_y + λ·(1[x = y] − π_y) with
π_⊤ = p, π_⊥ = 1 − p. Runs of ⊤ are 1/((1 − p)(1 − λ)) long on average, and λ = 0 labels every value independently. A
mixture draws one of its chains first, by weight.

**Class weights** (docs/theory.md §15). k values after x the label is y with probability π_y·t, where the *tie* t is
1 + λ^k·(1 − π_y)/π_y if x = y and 1 − λ^k if not. So the labels of any part of the values, others left free, have
probability ∏π(label)·∏t(labels of consecutive ones, their distance). Where values are freed one by one, each
freed value changes three ties. All d + 1 class weights are one cumulative sum.

**Numbers.** Logarithms are rounded to multiples of a public power of two and added as whole numbers, so sums are exact
and a term that is taken away cancels the one that was added. Free values are drawn by comparing 64 random bits with a
whole number, so their law is known exactly too. :meth:`Chains.doubt` bounds what is left: how far each table entry
and each such chance can be from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, finite, one, positive, refuse
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import Entropy
from dpselect.noise.quantiles import GUMBEL

Integers = NDArray[np.int64]

#: The limits of a chain: within them every number below has the accuracy that ``doubt`` counts on.
LEAST_SHARE, MOST_CORRELATION, MOST_WEIGHT = 2.0**-20, 1.0 - 2.0**-10, 2.0**64
#: More chains than this are refused.
MOST_CHAINS = 64
#: Ties are counted as 1 where λ^k is below 2^-80.
_FORGOTTEN = 80.0
#: A distance beyond every table: no neighbour on that side.
_NONE = 1 << 40
#: The most that the logarithm of a probability in a table, or of the chance of a coin, is off by computing it in
#: doubles: 306 roundings of 2^-53 (docs/theory.md §15).
_TABLE_DOUBT = Fraction(1, 2**44)
#: Distances are cut at the most the prior can make up for and this much more, ...
_BEYOND = 64
#: ... but never beyond this: a line that its noise carried as far as that noise goes is farther from every value.
FARTHEST = 1 << 21


class Chain(NamedTuple):
    """One chain of a mixture.

    Parameters
    ----------
    share : float
        p, how likely a value is above the line if nothing else is known; at least 2^-20 from 0 and 1.
    correlation : float
        λ of neighbours, from 0 (independent) to 1 − 2^-10.
    weight : float
        How likely this chain is, relative to the others of the mixture.
    """

    share: float
    correlation: float = 0.0
    weight: float = 1.0

    def checked(self) -> Chain:
        """The same with plain floats; anything outside the limits is refused."""
        share = float(one(finite, "share", self.share))
        correlation = float(one(finite, "correlation", self.correlation))
        weight = float(one(positive, "weight", self.weight))
        if not LEAST_SHARE <= share <= 1.0 - LEAST_SHARE:
            raise refuse("share", share, "between 2**-20 and 1 - 2**-20")
        if not 0.0 <= correlation <= MOST_CORRELATION:
            raise refuse("correlation", correlation, "between 0 and 1 - 2**-10")
        if not 1.0 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
            raise refuse("weight", weight, "between 2**-64 and 2**64")
        return Chain(share, correlation, weight)

    @property
    def least(self) -> Fraction:
        """No coin that draws a free value comes up on either side less often than this: p(1 − p)(1 − λ)²."""
        share, change = Fraction(self.share), 1 - Fraction(self.correlation)
        return share * (1 - share) * change**2

    def steps(self) -> tuple[FloatArray, FloatArray]:
        """P(⊤ follows x) and P(⊥ follows x), for x = ⊥ and ⊤."""
        above, below, change = self.share, 1.0 - self.share, 1.0 - self.correlation
        return (
            np.array([above * change, above + self.correlation * below]),
            np.array([below + self.correlation * above, below * change]),
        )


@lru_cache(maxsize=256)
def _ties(chain: Chain) -> FloatArray:
    """The tie of two labels by how many of them are ⊤ (0, 1, 2) and their distance; in the last column it is 1.

    Column 0 is never read: no two values are at a distance of 0.
    """
    log_correlation = math.log(chain.correlation) if chain.correlation else -math.inf
    last = 1 + math.ceil(_FORGOTTEN * math.log(2.0) / -log_correlation)
    faded = np.arange(1, last) * log_correlation if chain.correlation else np.empty(0)
    odds = (1.0 - chain.share) / chain.share
    ties = np.ones((3, last + 1))
    ties[:, 1:last] = 1.0 + np.exp(faded) / odds, -np.expm1(faded), 1.0 + np.exp(faded) * odds
    ties.setflags(write=False)
    return ties


@lru_cache(maxsize=256)
def _tables(chain: Chain, bits: int) -> tuple[Integers, Integers]:
    """Logarithms of both labels' shares and of the ties, in units of 2^-bits."""
    logs = np.log([1.0 - chain.share, chain.share]), np.log(_ties(chain))
    labels, ties = (np.rint(np.ldexp(part, bits)).astype(np.int64) for part in logs)
    return labels, ties


@dataclass(frozen=True)
class Chains:
    """A mixture of chains, as a prior of :class:`~dpselect.mechanisms.set_above_threshold.SetAboveThreshold`.

    Parameters
    ----------
    chains : sequence of Chain
        The chains; a plain ``(share, correlation)`` or ``(share, correlation, weight)`` will do for each.

    Examples
    --------
    >>> Chains([(0.5, 0.8)])
    Chains(chains=(Chain(share=0.5, correlation=0.8, weight=1.0),))
    >>> float(Chains([(0.5, 0.8)]).doubt(365)) < 1e-9
    True
    """

    chains: tuple[Chain, ...]

    def __init__(self, chains: Sequence[Chain | tuple[float, ...]]) -> None:
        if not isinstance(chains, tuple | list) or not 1 <= len(chains) <= MOST_CHAINS:
            raise refuse("chains", chains, f"a list of 1 to {MOST_CHAINS} chains")
        for row in chains:
            if not isinstance(row, tuple | list) or not 1 <= len(row) <= 3:
                raise refuse("chains", row, "made of (share, correlation) or (share, correlation, weight)")
        object.__setattr__(self, "chains", tuple(Chain(*row).checked() for row in chains))

    def doubt(self, number: int) -> Fraction:
        """The most that the log probability of any answer is off, for so many values.

        A log weight is a sum of at most ``2·number + 3`` table entries, each off by ``_TABLE_DOUBT`` and half a unit,
        less a distance up to ``reach``; both are rounded to doubles a few times. A log weight off by τ makes a
        probability off by a factor of e^(2τ). Up to ``number`` coins follow. Each side of one, of chance q, is off by
        ``_TABLE_DOUBT`` and by half of 2^-64 relative to q (doubled, for the logarithm).
        """
        bits, most = _sizes(self, number)
        weights = (2 * number + 3) * (_TABLE_DOUBT + Fraction(1, 2 ** (bits + 1))) + Fraction(_BEYOND + most, 2**50)
        coins = number * (_TABLE_DOUBT + Fraction(1, 2**64) / min(chain.least for chain in self.chains))
        return 2 * weights + coins

    def draw(self, over: Integers, *, scale: float, entropy: Entropy) -> NDArray[np.bool_]:
        """A set, from how far each value is above the line, in steps.

        The same steps and the same number of random words for every value, whatever is drawn. (The time that sorting
        and looking up take does tell something of the order of the values.)
        """
        number = len(over)
        above, away = (over >= 0).astype(np.int64), np.abs(over)
        order = np.argsort(away, kind="stable")
        rank = ranks(order)
        weights = self.log_weights(above, order=order, rank=rank)
        weights[:, 1:] -= np.minimum(away[order].astype(np.float64) / scale, self.reach(number))
        chosen = noisy_argmax(weights.ravel(), scale=1.0, law=GUMBEL, entropy=entropy)
        member, wrong = divmod(chosen, number + 1)
        words = entropy.words(number, dtype=np.uint64)
        return self.filled(above ^ (rank == wrong), rank < wrong, member=member, words=words)

    def reach(self, number: int) -> float:
        """Where distances are cut, in scales: beyond all that the prior can make up for."""
        return float(min(_BEYOND + _sizes(self, number)[1], FARTHEST))

    def log_weights(self, above: Integers, *, order: Integers, rank: Integers) -> FloatArray:
        """Log prior weights of the classes, one row for every chain; axes before the last are kept behind it.

        Parameters
        ----------
        above : ndarray of 0 and 1
            Which values are above the line.
        order : ndarray of int
            Their places, nearest to the line first.
        rank : ndarray of int
            For every place when it comes in that order, from 1 on.

        Returns
        -------
        ndarray
            First the set in which all are right, then for every value, nearest first, all sets together in which it is
            the farthest wrong one: what is farther is right, what is nearer is free.
        """
        number = above.shape[-1]
        bits, _ = _sizes(self, number)
        place = np.arange(number)
        # The nearest values on both sides that are farther from the line: they are fixed when this one is freed.
        left, right = _left_fence(rank), number - 1 - _left_fence(rank[..., ::-1])[..., ::-1]
        no_left, no_right = left < 0, right >= number
        before = np.take_along_axis(above, np.where(no_left, 0, left), axis=-1)
        after = np.take_along_axis(above, np.where(no_right, 0, right), axis=-1)
        back = np.where(no_left, _NONE, place - left)
        ahead = np.where(no_right, _NONE, right - place)
        across = np.where(no_left | no_right, _NONE, right - left)
        found = np.empty((len(self.chains), *above.shape[:-1], number + 1))
        for chain, row in zip(self.chains, found, strict=True):
            labels, ties = _tables(chain, bits)
            last = ties.shape[1] - 1
            near, far, over_gap = (np.minimum(part, last) for part in (back, ahead, across))
            kept = labels[above] + ties[before + above, near] + ties[above + after, far]
            other = 1 - above
            changed = labels[other] + ties[before + other, near] + ties[other + after, far]
            freed = np.take_along_axis(ties[before + after, over_gap] - kept, order, axis=-1)
            # Once all are free the weight is 1 and its logarithm 0, exactly: every entry was taken away again.
            fixed = -np.cumsum(freed[..., ::-1], axis=-1)[..., ::-1]
            wrong = fixed + np.take_along_axis(changed - kept, order, axis=-1)
            weight = round(math.ldexp(math.log(chain.weight), bits))
            row[...] = np.ldexp((np.concatenate([fixed[..., :1], wrong], axis=-1) + weight).astype(np.float64), -bits)
        return found

    def filled(
        self, above: Integers, free: NDArray[np.bool_], *, member: int, words: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """Labels for the free values given the others, by one of the chains; along the last axis.

        With one word for both, a value is ⊤ whatever comes before it, ⊥ whatever does, or the same as what comes
        before it: its label is that of the last one before it of the first two kinds.
        """
        after_below, after_above = self.coins(above, free, member=member)
        named = np.where(free, words < after_below, above == 1)
        settled = ~free | (words < after_below) | (words >= after_above)
        source = np.maximum.accumulate(np.where(settled, np.arange(above.shape[-1]), 0), axis=-1)
        return np.take_along_axis(named, source, axis=-1)

    def coins(
        self, above: Integers, free: NDArray[np.bool_], *, member: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """How many of all 2^64 words make each value ⊤ if it is free, after a ⊥ and after a ⊤.

        A free value after x with the next fixed label y at a distance of n is ⊤ with chance P(⊤ follows x)·t(⊤, y; n)
        against P(⊥ follows x)·t(⊥, y; n). The chance after ⊤ is never the smaller one.
        """
        chain, number = self.chains[member], above.shape[-1]
        ties, place = _ties(chain), np.arange(number)
        following = np.minimum.accumulate(np.where(free, number, place)[..., ::-1], axis=-1)[..., ::-1]
        label = np.take_along_axis(above, np.minimum(following, number - 1), axis=-1)
        gap = np.minimum(np.where(following < number, following - place, _NONE), ties.shape[1] - 1)
        to_above, to_below = ties[1 + label, gap], ties[label, gap]
        sides = []
        for rise, fall in zip(*chain.steps(), strict=True):
            # The first value comes after none.
            rises, falls = np.full(number, rise), np.full(number, fall)
            rises[0], falls[0] = chain.share, 1.0 - chain.share
            sides.append(_of_words(rises * to_above, falls * to_below))
        return sides[0], np.maximum(*sides)


def ranks(order: Integers) -> Integers:
    """When each place comes in the order, from 1 on; along the last axis.

    >>> ranks(np.array([2, 0, 1])).tolist()
    [2, 3, 1]
    """
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.broadcast_to(np.arange(1, order.shape[-1] + 1), order.shape), axis=-1)
    return found


@lru_cache(maxsize=256)
def _sizes(prior: Chains, number: int) -> tuple[int, int]:
    """How many bits after the point the tables have, and the most that a log weight of so many values can be."""
    # The largest logarithm in any table: of a share, of a tie between unlike neighbours, of a weight. Ties between like
    # ones are at most 1/π.
    logs = [
        (-math.log(min(chain.share, 1.0 - chain.share)), -math.log1p(-chain.correlation), abs(math.log(chain.weight)))
        for chain in prior.chains
    ]
    largest = max(map(max, logs))
    most = math.ceil((2 * number + 4) * (largest + 2.0**-20))
    return 62 - most.bit_length(), most


def _left_fence(rank: Integers) -> Integers:
    """For every place the nearest one to the left with a larger rank, −1 where there is none; along the last axis."""
    beyond = np.full((*rank.shape[:-1], 1), rank.shape[-1] + 1, dtype=np.int32)
    padded = np.concatenate([beyond, rank.astype(np.int32)], axis=-1)
    # The largest of the 1, 2, 4, … ranks up to and including each place.
    windows, width = [padded], 1
    while width < rank.shape[-1]:
        longer = windows[-1].copy()
        np.maximum(longer[..., width:], windows[-1][..., :-width], out=longer[..., width:])
        windows.append(longer)
        width *= 2
    # All between ``at`` and the place itself have smaller ranks. Whole windows of such are passed, the longest first.
    at = np.broadcast_to(np.arange(rank.shape[-1]), rank.shape)
    for window in reversed(windows):
        at = at - width * (np.take_along_axis(window, at, axis=-1) < padded[..., 1:])
        width //= 2
    return at - 1


def _of_words(first: FloatArray, second: FloatArray) -> NDArray[np.uint64]:
    """How many of all 2^64 words stand for the first of two weights; the smaller part keeps its relative accuracy."""
    small = np.rint(np.ldexp(np.minimum(first, second) / (first + second), 64)).astype(np.uint64)
    # Unsigned numbers wrap around: 0 less these is 2^64 less these.
    rest: NDArray[np.uint64] = np.uint64(0) - small
    return np.where(first <= second, small, rest)
