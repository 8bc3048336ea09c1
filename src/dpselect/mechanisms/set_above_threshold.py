"""All that reach a line, named at once: for a table, whose values are all there before the first answer.

A sparse vector answers one question after the other and pays for every ⊤. Here the whole set is drawn at once, with
probability proportional to π(S)·exp(−len(S)/scale), where π is a public prior and len(S) is how far values would have
to move, all at once, for S to be right: the largest distance from the line of any value that S has on the wrong side.
One person moves all values together by Δ at most and so every len(S) by Δ at most, however many values reach the line:
that is why nothing is paid per ⊤ (an exponential mechanism whose score is the distance to where the answer is right,
known as inverse sensitivity; Asi and Duchi 2020).

**Cost.** In a monotone family all values move one way, by s_i ∈ [0, Δ]. The line is θ = threshold + noise. Compare θ at
one of two neighbours with θ + Δ/2 at the other: that costs Δ/(2·scale_threshold) by the density of the noise, and the
distances from the line now differ by s_i − Δ/2 only, so every weight and their sum change by at most exp(Δ/(2·scale))
each. Together ε = Δ/(2·scale_threshold) + Δ/scale. Where neighbours may move values both ways the line needs no noise,
and ε = 2Δ/scale.

**Exactly.** Values are rounded to a public grid, which keeps their order, and Δ is rounded up to whole steps. The noise
of the line is discrete Laplace. A set is described by the farthest value it has wrong: farther ones are right, nearer
ones free. The weight of all sets with the same farthest one is known in closed form, one of these classes is drawn as
the largest of log weight + Gumbel noise, by comparisons alone, and the free values by an urn in whole numbers. The only
rounding is that of the log weights; :meth:`SetAboveThreshold.epsilon` pays for it.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, counts, finite, non_negative, one, pair, positive, refuse
from dpselect.mechanisms.mechanism import Mechanism, Noise, noise_of
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.discrete import LARGEST_MAGNITUDE, LARGEST_SCALE, discrete_laplace
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import GUMBEL, LAPLACE, Law
from dpselect.privacy.classical import calibrated_scale
from dpselect.privacy.family import QueryFamily, check_family
from dpselect.privacy.loss import Loss
from dpselect.privacy.release import Grid
from dpselect.rounding import upward

#: Which part of ε goes to the noise of the line, if left out.
LINE_SHARE = 0.15
#: The prior, if left out: as if so many had been seen above the line before, and as many below.
EVEN = (20, 20)
#: More values than this are refused.
MOST_VALUES = 1 << 20
#: Sets that are wrong by more than their prior can make up for, and this much more, are all alike.
_BEYOND = 64.0
#: Where the line is cut before its noise is added, in steps; the noise is cut at LARGEST_MAGNITUDE.
FARTHEST_LINE = LARGEST_MAGNITUDE // 2
#: No rounded value is farther than this from 0, in steps; half a person's Δ is no more steps than this either.
FARTHEST_VALUE = 2**53
#: No distance that counts is larger, in scales: a prior makes up for 2^(d + MOST_VALUES)·(d + 1) at most (theory §14).
LARGEST_CUT = math.ceil(2 * MOST_VALUES * math.log(2.0) + math.log(MOST_VALUES + 1)) + math.ceil(_BEYOND) + 1
# Where the noise is cut, at either of two neighbours, all values lie beyond every distance that counts, at both: only
# then is the cut harmless (theory §14).
assert LARGEST_MAGNITUDE - FARTHEST_LINE - 2 * FARTHEST_VALUE > LARGEST_CUT * LARGEST_SCALE  # noqa: S101
# And differences of a value and the line fit 64 bits.
assert LARGEST_MAGNITUDE + FARTHEST_LINE + FARTHEST_VALUE < 2**63  # noqa: S101


@dataclass(frozen=True, eq=False)
class Crossings:
    """Which values reach the line, and what saying so cost.

    Attributes
    ----------
    above : ndarray of bool
        For every value, whether it is named.
    loss : Loss
        What the whole set cost.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows the seed.
    """

    above: NDArray[np.bool_]
    loss: Loss
    noise: Noise = "private"


@dataclass(frozen=True)
class SetAboveThreshold(Mechanism):
    """Name all values at or above a line, at one price for all of them.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity of the values. In a monotone family half the noise does.
    threshold : float
        The line.
    scale : float
        What a distance from the line is measured by, in the values' unit.
    scale_threshold : float
        Scale of the line's own noise: positive for a monotone family, 0 for any other.
    prior : (int, int)
        What is known beforehand of how many reach the line: as if so many above and so many below had been seen. The
        larger, the more any value is taken to be above as likely as not.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    >>> mechanism = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=1.0, candidates=5)
    >>> mechanism.release([0.1, 0.9, 0.2, 0.95, 0.3]).above.tolist()
    [False, True, False, True, False]
    >>> 0.999 < mechanism.epsilon(candidates=5) <= 1.0
    True
    """

    #: Of the line's noise.
    law: ClassVar[Law] = LAPLACE
    noise_names: ClassVar[tuple[str, ...]] = ("scale_threshold", "scale")

    _: KW_ONLY
    threshold: float
    scale: float
    scale_threshold: float = 0.0
    prior: tuple[int, int] = EVEN

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "threshold", float(one(finite, "threshold", self.threshold)))
        object.__setattr__(self, "scale", float(one(positive, "scale", self.scale)))
        line = float(one(non_negative, "scale_threshold", self.scale_threshold))
        if (line > 0.0) is not self.family.monotone:
            raise refuse("scale_threshold", line, "positive for a monotone family, and 0 for any other")
        object.__setattr__(self, "scale_threshold", line)
        above, below = pair(counts, "prior", self.prior, least=1)
        seen = int(above), int(below)
        if max(seen) > MOST_VALUES:
            raise refuse("prior", self.prior, f"of numbers up to {MOST_VALUES}")
        object.__setattr__(self, "prior", seen)
        for name in ("scale", "scale_threshold"):
            if self.grid.in_steps(getattr(self, name)) > Fraction(LARGEST_SCALE):
                raise refuse(
                    name, getattr(self, name), "at most 2**40 times the finest number the values' range leaves room for"
                )

    @property
    def grid(self) -> Grid:
        """What the values are rounded to; a function of the public parameters."""
        return Grid.for_release(self.family, scale=min(self.scale, self.scale_threshold or self.scale))

    def epsilon(self, candidates: int) -> float:
        """Pure ε of naming those of so many values that reach the line; their number hardly matters.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=2**-10)
        >>> [round(SetAboveThreshold(family, threshold=0.5, scale=0.125).epsilon(number), 6) for number in (1, 10_000)]
        [0.015625, 0.015625]
        """
        number = _checked(candidates)
        steps, grid = self.grid.sensitivity(self.family), self.grid
        if steps == 0:
            return 0.0
        each, line = 2 * steps / grid.in_steps(self.scale), Fraction(0)
        if self.scale_threshold:
            half = -(-steps // 2)
            each, line = 2 * half / grid.in_steps(self.scale), half / grid.in_steps(self.scale_threshold)
        # A log weight that is off by τ makes a probability off by a factor of e^(2τ), at each of two neighbours.
        return upward(line + each + 4 * Urn.of(number, self.prior).doubt)

    def rho(self, candidates: int) -> float:
        """ρ of zero-concentrated differential privacy: ε²/2, as for anything that is pure."""
        return upward(Fraction(self.epsilon(candidates)) ** 2 / 2)

    @classmethod
    def calibrated(
        cls,
        family: QueryFamily,
        *,
        threshold: float,
        epsilon: float,
        candidates: int,
        line_share: float = LINE_SHARE,
        prior: tuple[int, int] = EVEN,
    ) -> SetAboveThreshold:
        """The least noise that names those above at a pure ε; ``line_share`` of it for the line, where it has noise.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
        >>> found = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=0.5, candidates=365)
        >>> 0.4999 < found.epsilon(365) <= 0.5
        True
        """
        target, delta = Fraction(one(positive, "epsilon", epsilon)), Fraction(check_family(family).sensitivity)
        share = Fraction(one(positive, "line_share", line_share))
        if not share < 1:
            raise refuse("line_share", line_share, "below 1")
        # The grid rounds Δ up and the log weights cost a little: ask for a little less until it fits.
        wanted = target
        while True:
            per_step, line = 2 * delta / wanted, 0.0
            if family.monotone:
                per_step = delta / (wanted * (1 - share))
                line = calibrated_scale("scale_threshold", delta / (2 * wanted * share), epsilon=epsilon)
            scale = calibrated_scale("scale", per_step, epsilon=epsilon)
            found = cls(family, threshold=threshold, scale=scale, scale_threshold=line, prior=prior)
            cost = Fraction(found.epsilon(candidates))
            if cost <= target:
                return found
            wanted -= max(cost - target, target / 2**40)
            if wanted <= target / 2:
                raise refuse("epsilon", epsilon, "large enough for so many values: their rounding costs as much")

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Crossings:
        """Which values are named, and what that cost."""
        kind, grid = noise_of(entropy), self.grid
        admitted = admit(values, family=self.family, outside=outside)
        # The cost comes first: if it cannot be stated, nothing is drawn.
        loss = Loss(epsilon=self.epsilon(len(admitted)))
        level = math.floor(grid.in_steps(self.threshold) + Fraction(1, 2))
        # Public, so it may be cut. Cut after the noise was added, a line at 2^62 with noise of -2^62 would be at 0.
        level = max(-FARTHEST_LINE, min(level, FARTHEST_LINE))
        if self.scale_threshold:
            level += int(discrete_laplace(1, scale=grid.in_steps(self.scale_threshold), entropy=entropy)[0])
        over = grid.round(admitted) - level
        above = _draw(over, scale=float(grid.in_steps(self.scale)), prior=self.prior, entropy=entropy)
        return Crossings(above=above, loss=loss, noise=kind)


def _checked(candidates: Any) -> int:
    number = int(one(counts, "candidates", candidates, least=1))
    if number > MOST_VALUES:
        raise refuse("candidates", candidates, f"at most {MOST_VALUES}")
    return number


@dataclass(frozen=True, eq=False)
class Urn:
    """The prior, an urn: each value is above with the share of those above among all that were seen before it.

    So a set of k among d has the chance B(a + k, b + d − k)/B(a, b), whatever the order.
    """

    #: log Γ(n) at n = 0, 1, 2, … (at 0 it is never asked for).
    log_gamma: FloatArray
    #: The most a log weight may be off.
    doubt: Fraction
    #: Where distances are cut, in scales: beyond all that a prior can make up for.
    most: float
    seen: tuple[int, int]

    @classmethod
    @lru_cache(maxsize=32)
    def of(cls, number: int, seen: tuple[int, int]) -> Urn:
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


def _draw(over: NDArray[np.int64], *, scale: float, prior: tuple[int, int], entropy: Entropy) -> NDArray[np.bool_]:
    """A set, from how far each value is above the line, in steps."""
    order = np.argsort(np.abs(over), kind="stable")
    drawn = over[order] >= 0
    distances = np.abs(over[order]).astype(np.float64) / scale
    weights, above = Urn.of(len(over), prior).log_weights(drawn, distances)
    wrong = noisy_argmax(weights, scale=1.0, law=GUMBEL, entropy=entropy) - 1
    if wrong >= 0:
        drawn[wrong] ^= True
    tally = int(above[max(wrong, 0)]) + prior[0]
    total = len(over) - max(wrong, 0) + sum(prior)
    # The same steps for every value whatever was chosen, so that the time they take tells nothing of it: past the free
    # values the share is that of the set that is drawn. (What sorting takes does tell of the order values came in.)
    coins = []
    for place, word in enumerate(entropy.words(len(over), dtype=np.uint64).tolist()):
        named, free = _less(word, tally, total, entropy), place < wrong
        tally, total = tally + (named & free), total + free
        coins.append(named)
    found = np.empty_like(drawn)
    found[order] = np.where(np.arange(len(over)) < wrong, coins, drawn)
    return found


def _less(word: int, tally: int, total: int, entropy: Entropy) -> bool:
    """Whether U < tally/total, for a uniform U that starts with the 64 bits of ``word``: exactly that often."""
    bits = 64
    while True:
        if (word + 1) * total <= tally << bits:
            return True
        if word * total >= tally << bits:
            return False
        word, bits = (word << 64) | entropy.bits(64), bits + 64
