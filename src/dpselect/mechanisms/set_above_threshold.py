"""All that reach a line, named at once: for a table, whose values are all there before the first answer.

A sparse vector answers one question after the other and pays for every ⊤. Here the whole set is drawn at once, with
probability proportional to π(S)·exp(−len(S)/scale), where π is a public prior and len(S) is how far values would have
to move, all at once, for S to be right: the largest distance from the line of any value that S has on the wrong side.
One person moves all values together by Δ at most and so every len(S) by Δ at most, however many values reach the line:
that is why nothing is paid per ⊤ (an exponential mechanism whose score is the distance to where the answer is right,
known as inverse sensitivity; Asi and Duchi 2020).

**Cost** (docs/theory.md §14). Adding a person moves every value by some s_i ∈ [lo, hi], its ``moves``: [0, Δ] in a
monotone family, [−Δ, Δ] where nothing is known of the direction. The line is θ = threshold + noise. Compare θ at one of
two neighbours with θ + m at the other: that costs |m|/scale_threshold by the density of the noise, and the distances
from the line now differ by s_i − m only. With m the middle of the interval that is (hi − lo)/2 at most, so every weight
and their sum change by at most exp((hi − lo)/(2·scale)) each. Together ε = |m|/scale_threshold + (hi − lo)/scale.
Without noise of the line m = 0, and ε = 2·max(|lo|, |hi|)/scale.

**Exactly.** Values are rounded to a public grid, which keeps their order, and the moves are rounded outward to whole
steps. The noise of the line is discrete Laplace. A set is described by the farthest value it has wrong: farther ones
are right, nearer ones free. The weight of all sets with the same farthest one is known in closed form, one of these
classes is drawn as the largest of log weight + Gumbel noise, by comparisons alone, and the free values by the prior.
What rounding does to a probability is bounded by the prior's ``doubt``; :meth:`SetAboveThreshold.epsilon` pays for it.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import counts, finite, non_negative, one, pair, positive, refuse
from dpselect.mechanisms.chains import FARTHEST, Chains
from dpselect.mechanisms.mechanism import Mechanism, Noise, noise_of
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.discrete import LARGEST_MAGNITUDE, LARGEST_SCALE, discrete_laplace
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import LAPLACE, Law
from dpselect.privacy.classical import calibrated_scale
from dpselect.privacy.family import QueryFamily, check_family
from dpselect.privacy.loss import Loss
from dpselect.privacy.release import Grid
from dpselect.rounding import upward

#: Which part of ε goes to the noise of the line, if left out.
LINE_SHARE = 0.15
#: The prior, if left out; settled on made-up years (docs/theory.md §15). Three in four neighbours are on one side.
RUNS = Chains([(0.4, 0.5), (0.6, 0.5)])
#: More values than this are refused.
MOST_VALUES = 1 << 20
#: Where the line is cut before its noise is added, in grid steps; the noise is cut at LARGEST_MAGNITUDE.
FARTHEST_LINE = 1 << 60
#: No rounded value is farther than this from 0, in steps; nor does a person move one by more.
FARTHEST_VALUE = 2**53
# Where the noise is cut, at either of two neighbours, all values lie beyond every distance that counts, at both: only
# then is the cut harmless (theory §14).
assert LARGEST_MAGNITUDE - FARTHEST_LINE - 2 * FARTHEST_VALUE > FARTHEST * LARGEST_SCALE  # noqa: S101
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
        Scale of the line's own noise; 0 for none. Refused where it saves nothing: if a person can move values as far
        up as down.
    prior : Chains
        What is known beforehand: how likely a value is above the line, and how likely values in a row are on the same
        side of it. Where their order means nothing, as for categories, a correlation of 0.
    moves : (float, float), optional
        How far adding one person moves a value: at least and at most, within ±Δ. Left out, (0, Δ) for a monotone
        family and (−Δ, Δ) for any other.

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
    prior: Chains = RUNS
    moves: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "threshold", float(one(finite, "threshold", self.threshold)))
        object.__setattr__(self, "scale", float(one(positive, "scale", self.scale)))
        least, most = _moves(self.family, self.moves)
        if self.moves is not None:
            object.__setattr__(self, "moves", (least, most))
        line = float(one(non_negative, "scale_threshold", self.scale_threshold))
        if line > 0.0 and least + most == 0:
            raise refuse("scale_threshold", line, "0 where a person can move values as far up as down")
        object.__setattr__(self, "scale_threshold", line)
        if not isinstance(self.prior, Chains):
            raise refuse("prior", self.prior, "a mixture of chains, such as Chains([(0.5, 0.75)])")
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
        number, grid = _checked(candidates), self.grid
        # If y − x ∈ [lo, hi] then ⌊y + ½⌋ − ⌊x + ½⌋ ∈ [⌊lo⌋, ⌈hi⌉]; and no value moves farther than the range allows.
        widest = grid.sensitivity(self.family)
        least, most = (grid.in_steps(end) for end in _moves(self.family, self.moves))
        low, high = max(math.floor(least), -widest), min(math.ceil(most), widest)
        if low == high == 0:
            return 0.0
        costs = [2 * max(high, -low) / grid.in_steps(self.scale)]
        if self.scale_threshold:
            middle = -(-(low + high) // 2)
            each = 2 * max(high - middle, middle - low) / grid.in_steps(self.scale)
            costs.append(abs(middle) / grid.in_steps(self.scale_threshold) + each)
        # Each of two neighbours has probabilities that are off by as much.
        return upward(min(costs) + 2 * self.prior.doubt(number))

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
        prior: Chains = RUNS,
        moves: tuple[float, float] | None = None,
    ) -> SetAboveThreshold:
        """The least noise that names those above at a pure ε; ``line_share`` of it for the noise of the line.

        The line gets no noise where going without leaves more of ε for the distances.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
        >>> found = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=0.5, candidates=365)
        >>> 0.4999 < found.epsilon(365) <= 0.5
        True
        """
        target = Fraction(one(positive, "epsilon", epsilon))
        least, most = (Fraction(end) for end in _moves(check_family(family), moves))
        share = Fraction(one(non_negative, "line_share", line_share))
        if not share < 1:
            raise refuse("line_share", line_share, "below 1")
        widest, half = max(most, -least), (most - least) / 2
        with_noise = half < (1 - share) * widest and share > 0
        # The grid rounds moves outward and the log weights cost a little: ask for a little less until it fits.
        wanted = target
        while True:
            per_step, line = 2 * widest / wanted, 0.0
            if with_noise:
                per_step = 2 * half / (wanted * (1 - share))
                line = calibrated_scale("scale_threshold", abs(least + most) / (2 * wanted * share), epsilon=epsilon)
            scale = calibrated_scale("scale", per_step, epsilon=epsilon)
            found = cls(family, threshold=threshold, scale=scale, scale_threshold=line, prior=prior, moves=moves)
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
        line = math.floor(grid.in_steps(self.threshold) + Fraction(1, 2))
        # Public, so it may be cut. Cut after the noise was added, a line at 2^62 with noise of -2^62 would be at 0.
        level = max(-FARTHEST_LINE, min(line, FARTHEST_LINE))
        if self.scale_threshold:
            # At most 2^62 either way: differences fit 64 bits. Where the noise is cut there, every value is more than
            # 2^61 steps from the line, beyond what any prior makes up for, and the law depends on the values no more.
            level += int(discrete_laplace(1, scale=grid.in_steps(self.scale_threshold), entropy=entropy)[0])
        over = grid.round(admitted) - level
        above = self.prior.draw(over, scale=float(grid.in_steps(self.scale)), entropy=entropy)
        return Crossings(above=above, loss=loss, noise=kind)


def _moves(family: QueryFamily, moves: object) -> tuple[float, float]:
    """How far adding a person moves a value, at least and at most."""
    most = family.sensitivity
    if moves is None:
        return (0.0 if family.monotone else -most), most
    low, high = pair(finite, "moves", moves)
    if not -most <= low <= high <= most:
        raise refuse("moves", moves, f"at least and at most, within the sensitivity of {family.sensitivity!r}")
    if family.monotone and low < 0 < high:
        raise refuse("moves", moves, "all up or all down in a monotone family")
    return low, high


def _checked(candidates: Any) -> int:
    number = int(one(counts, "candidates", candidates, least=1))
    if number > MOST_VALUES:
        raise refuse("candidates", candidates, f"at most {MOST_VALUES}")
    return number
