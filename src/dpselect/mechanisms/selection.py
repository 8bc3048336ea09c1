"""What every selection does with private values; each mechanism adds its law, its noise and its cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray, counts, one, refuse, unwrap
from dpselect.errors import InvalidData
from dpselect.mechanisms.mechanism import Mechanism, Noise, noise_of
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit, admit_scores
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.inputs import FloatScores
from dpselect.noise.rows import noisy_argmax_rows
from dpselect.privacy.conversions import range_renyi, range_rho
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss
from dpselect.rounding import added

#: Which end is looked for.
Goal: TypeAlias = Literal["largest", "smallest"]

#: Names of the candidates, in the order of the values: a sequence, an array, a pandas index or series, a Polars column.
Labels: TypeAlias = Sequence[Any] | Any


@dataclass(frozen=True)
class Selection:
    """Which candidate was chosen, by place and (where candidates have names) by label, and what saying so cost.

    >>> Selection(index=3, loss=Loss(epsilon=0.1), label="Thursday").label
    'Thursday'
    """

    index: int
    loss: Loss
    noise: Noise = "private"
    label: Any = None


@dataclass(frozen=True)
class Ranking:
    """The chosen candidates, first winner first, and what naming them all cost: pure, and as ρ of zCDP."""

    indices: tuple[int, ...]
    loss: Loss
    rho: float
    noise: Noise = "private"
    labels: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class Selections:
    """Many independent selections among the same candidates, and what showing all of them would cost."""

    indices: NDArray[np.int64]
    loss: Loss
    noise: Noise = "private"


@dataclass(frozen=True)
class NoisyMax(Mechanism):
    """A mechanism that adds noise of one law to every value and names the largest; it adds its cost."""

    @abstractmethod
    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """Pure ε of one selection among so many; without a number, of any number where there is such a bound."""

    def approximate_epsilon(self, delta: ArrayLike, candidates: ArrayLike) -> float | FloatArray:
        """ε at ``delta``: the pure one, where no δ makes it smaller."""
        return self.epsilon(candidates)

    @classmethod
    @abstractmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float, candidates: int | None = None) -> Self:
        """The least noise with which a selection among so many costs at most ``epsilon``."""

    def spread(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """η: the log ratios of all winners, for one pair of neighbours, lie in an interval of this length.

        2ε, where nothing more than the pure guarantee is known (THEORY §11).
        """
        return unwrap(2.0 * np.asarray(self.epsilon(candidates)))

    def rho(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ρ of zero-concentrated differential privacy of one selection: η²/8, at most ε²/2 (THEORY §11).

        >>> from dpselect import PermuteAndFlip
        >>> PermuteAndFlip(QueryFamily(lower=0, upper=1, sensitivity=0.25), scale=1.0).rho(candidates=9)
        0.125
        """
        return range_rho(self.spread(candidates))

    def renyi(self, alpha: ArrayLike, candidates: float | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most."""
        return unwrap(np.minimum(range_renyi(alpha, self.spread(candidates)), self.epsilon(candidates)))

    def release(
        self,
        values: PrivateValues,
        labels: Labels | None = None,
        *,
        goal: Goal = "largest",
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Selection:
        """The winner, and what naming it cost; the noise is exactly of its law.

        Parameters
        ----------
        values
            One private value per candidate.
        labels
            The candidates' public names in the same order; a pandas series brings its index.
        goal : {"largest", "smallest"}
            Which end is looked for; the cost is the same.
        entropy
            Where the random bits come from.
        outside : {"refuse", "clip"}
            What happens to a value outside the family's range.

        Examples
        --------
        >>> from dpselect import GaussianNoisyMax
        >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=100, sensitivity=1), sigma=4.0)
        >>> picker.release([3, 90, 12]).index
        1
        >>> picker.release([50, 90, 2], labels=["Mon", "Tue", "Wed"], goal="smallest").label
        'Wed'
        """
        noise = noise_of(entropy)
        names = _names(values, labels)
        admitted = _towards(goal, admit_scores(values, family=self.family, outside=outside))
        _check_labels(names, len(admitted))
        # The cost comes first: if it cannot be stated, nothing is drawn.
        loss = one_loss(self, len(admitted))
        index = noisy_argmax(admitted, scale=self.scales[0], law=self.law, entropy=entropy)
        return Selection(index=index, loss=loss, noise=noise, label=None if names is None else names[index])

    def release_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        goal: Goal = "largest",
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Selections:
        """The winners of ``times`` independent releases of the same values, doubles only: for simulations."""
        noise = noise_of(entropy)
        admitted = _towards(goal, admit(values, family=self.family, outside=outside))
        number = int(one(counts, "times", times, least=1))
        if not isinstance(admitted, np.ndarray):
            raise InvalidData("values must be doubles, or integers within ±2**53, to be released many times at once")
        each = one_loss(self, len(admitted)).epsilon
        rows = np.broadcast_to(admitted, (number, len(admitted)))
        indices = noisy_argmax_rows(rows, scale=self.scales[0], law=self.law, entropy=entropy)
        return Selections(indices=indices, loss=Loss(epsilon=added([(number, each)])), noise=noise)

    def top(
        self,
        values: PrivateValues,
        k: int,
        labels: Labels | None = None,
        *,
        goal: Goal = "largest",
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Ranking:
        """``k`` winners by peeling: a release over all, one over the rest, and so on; the costs add.

        Who is left is a function of the answers so far, so every round is a noisy max over public candidates. The
        ranking states its cost both ways: :meth:`top_epsilon` in its ``loss``, and :meth:`top_rho`, which is
        the cheaper one at a small δ when there are many rounds.
        """
        noise = noise_of(entropy)
        names = _names(values, labels)
        admitted = _towards(goal, admit(values, family=self.family, outside=outside))
        _check_labels(names, len(admitted))
        rounds = int(one(counts, "k", k, least=1))
        if rounds > len(admitted):
            raise refuse("k", k, f"at most the number of candidates, {len(admitted)}")
        loss = Loss(epsilon=self.top_epsilon(len(admitted), rounds))
        rho = self.top_rho(len(admitted), rounds)
        remaining = np.arange(len(admitted))
        chosen: list[int] = []
        for _ in range(rounds):
            won = noisy_argmax(admitted, scale=self.scales[0], law=self.law, entropy=entropy)
            chosen.append(int(remaining[won]))
            remaining = np.delete(remaining, won)
            if isinstance(admitted, list):
                del admitted[won]
            else:
                admitted = np.delete(admitted, won)
        named = None if names is None else tuple(names[index] for index in chosen)
        return Ranking(indices=tuple(chosen), loss=loss, rho=rho, noise=noise, labels=named)

    def top_epsilon(self, candidates: int, k: int) -> float:
        """Pure ε of naming ``k`` winners: the sum over d, d − 1, …, d − k + 1 candidates, rounded up."""
        return _peeled(self, "epsilon", int(one(counts, "candidates", candidates, least=1)), int(one(counts, "k", k)))

    def top_rho(self, candidates: int, k: int) -> float:
        """ρ of naming ``k`` winners: the sum over d, d − 1, …, d − k + 1 candidates, rounded up."""
        return _peeled(self, "rho", int(one(counts, "candidates", candidates, least=1)), int(one(counts, "k", k)))


Numbers = TypeVar("Numbers", FloatArray | list[Fraction], FloatScores | list[Fraction])


def _towards(goal: Goal, values: Numbers) -> Numbers:
    """The values, negated (exactly) where the smallest is looked for."""
    if goal == "largest":
        return values
    if goal != "smallest":
        raise refuse("goal", goal, '"largest" or "smallest"')
    return [-value for value in values] if isinstance(values, list) else -values


def _names(values: PrivateValues, labels: Labels | None) -> Any | None:
    """Something that gives the name of a place; a pandas series is read by place, not by its own index."""
    if labels is None:
        return getattr(values, "index", None) if hasattr(values, "iloc") else None
    return getattr(labels, "iloc", labels)


def _check_labels(names: Any | None, candidates: int) -> None:
    if names is None:
        return
    # What .iloc reads by place has no length of its own; its owner does.
    owner = getattr(names, "obj", names)
    if not hasattr(owner, "__getitem__") or not hasattr(owner, "__len__") or isinstance(owner, (str, bytes, dict)):
        raise refuse("labels", owner, "a sequence, an array, a pandas index or a column, with one name per candidate")
    if len(owner) != candidates:
        raise refuse("labels", f"{len(owner)} of them", "as many as there are candidates")


# Costs depend on public parameters only and can take milliseconds to integrate: remember them.
@lru_cache(maxsize=4096)
def one_loss(mechanism: NoisyMax, candidates: int) -> Loss:
    """The cost of one selection; naming the only candidate says nothing."""
    return Loss(epsilon=float(mechanism.epsilon(candidates=candidates)) if candidates > 1 else 0.0)


@lru_cache(maxsize=4096)
def _peeled(mechanism: NoisyMax, unit: Literal["epsilon", "rho"], candidates: int, k: int) -> float:
    """The cost of naming ``k`` winners in one unit, summed over the rounds and rounded upward."""
    left = np.arange(candidates, max(candidates - k, 1), -1)
    if left.size == 0:
        return 0.0
    rounds = np.atleast_1d(mechanism.epsilon(left) if unit == "epsilon" else mechanism.rho(left))
    return added((1, cost) for cost in rounds.tolist())
