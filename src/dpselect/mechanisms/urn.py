"""A prior over sets in which the order of values does not matter: an urn.

Each value is above the line with the share of those above among all that came before it, ``above`` and ``below`` being
in the urn at first. So a set of k among d values has probability B(a + k, b + d − k)/B(a, b), B the beta function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import Entropy
from dpselect.noise.quantiles import GUMBEL

#: Distances are cut at the most the prior can make up for, and this much more.
_BEYOND = 64.0


class Urn(NamedTuple):
    """An urn as a prior of :class:`~dpselect.mechanisms.set_above_threshold.SetAboveThreshold`.

    Parameters
    ----------
    above, below : int
        How many are in the urn at first.
    """

    above: int
    below: int

    @staticmethod
    def of(number: int, seen: tuple[int, int]) -> UrnTable:
        """The log weights of so many values."""
        return UrnTable.of(number, (seen[0], seen[1]))

    def doubt(self, number: int) -> Fraction:
        """The most that the log probability of any answer is off, for so many values: twice that of a log weight."""
        return 2 * Urn.of(number, self).doubt

    def draw(self, over: NDArray[np.int64], *, scale: float, entropy: Entropy) -> NDArray[np.bool_]:
        """A set, from how far each value is above the line, in steps."""
        order = np.argsort(np.abs(over), kind="stable")
        drawn = over[order] >= 0
        distances = np.abs(over[order]).astype(np.float64) / scale
        weights, above = Urn.of(len(over), self).log_weights(drawn, distances)
        wrong = noisy_argmax(weights, scale=1.0, law=GUMBEL, entropy=entropy) - 1
        if wrong >= 0:
            drawn[wrong] ^= True
        tally = int(above[max(wrong, 0)]) + self.above
        total = len(over) - max(wrong, 0) + sum(self)
        # The same steps for every value whatever was chosen, so that the time they take tells nothing of it: past the
        # free values the share is that of the set that is drawn. (Sorting does tell of the order values came in.)
        coins = []
        for place, word in enumerate(entropy.words(len(over), dtype=np.uint64).tolist()):
            named, free = _less(word, tally, total, entropy), place < wrong
            tally, total = tally + (named & free), total + free
            coins.append(named)
        found = np.empty_like(drawn)
        found[order] = np.where(np.arange(len(over)) < wrong, coins, drawn)
        return found


@dataclass(frozen=True, eq=False)
class UrnTable:
    """The log weights of an urn for so many values."""

    #: log Γ(n) at n = 0, 1, 2, … (at 0 it is never asked for).
    log_gamma: FloatArray
    #: The most a log weight may be off.
    doubt: Fraction
    #: Where distances are cut, in scales: beyond all that a prior can make up for.
    most: float
    seen: tuple[int, int]

    @classmethod
    @lru_cache(maxsize=32)
    def of(cls, number: int, seen: tuple[int, int]) -> UrnTable:
        """The prior of so many values."""
        size = number + sum(seen) + 1
        logs = np.log(np.arange(1, size, dtype=np.float64))
        # High parts are multiples of 2^-27 whose sums, below 2^26, are exact; sums of low parts are below 1/50.
        high = np.rint(logs * 2.0**27) * 2.0**-27
        table = np.concatenate([[0.0, 0.0], np.cumsum(high) + np.cumsum(logs - high)])
        # A logarithm below 16 is off by 4 units at most, of 2^-49 each; a sum of so many, by their number times that
        # and its own last unit. Three sums, a distance of at most 65 + 16·size and four roundings make a log weight.
        doubt = Fraction(size, 2**43)
        found = cls(table, doubt=doubt, most=0.0, seen=seen)
        above = np.arange(number + 1)
        whole = found.log_weight(above, number - above) - float(found.log_weight(np.array(0), np.array(0)))
        return cls(table, doubt=doubt, most=math.ceil(_BEYOND - float(whole.min())), seen=seen)

    def log_weights(self, right: NDArray[np.bool_], distances: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
        """Log weights of the classes, from which of the values are above the line, nearest first, and their distances.

        All sets whose farthest wrong value is the same are a class: what is farther is right, what is nearer is free.
        First comes the set in which all are right. Then, how many are above from each place on, that one being wrong.
        """
        from_here: NDArray[np.int64] = np.cumsum(right[..., ::-1], axis=-1, dtype=np.int64)[..., ::-1]
        left = np.arange(right.shape[-1], 0, -1)
        above = from_here + np.where(right, -1, 1)
        wrong = self.log_weight(above, left - above) - np.minimum(distances, self.most)
        first = from_here[..., :1]
        return np.concatenate([self.log_weight(first, left[:1] - first), wrong], axis=-1), above

    def log_weight(self, above: NDArray[Any], below: NDArray[Any]) -> FloatArray:
        """log B(a + above, b + below), of all sets together that have these fixed."""
        first, second = above + self.seen[0], below + self.seen[1]
        return np.asarray(self.log_gamma[first] + self.log_gamma[second] - self.log_gamma[first + second])


def _less(word: int, tally: int, total: int, entropy: Entropy) -> bool:
    """Whether U < tally/total, for a uniform U that starts with the 64 bits of ``word``: exactly that often."""
    bits = 64
    while True:
        if (word + 1) * total <= tally << bits:
            return True
        if word * total >= tally << bits:
            return False
        word, bits = (word << 64) | entropy.bits(64), bits + 64
