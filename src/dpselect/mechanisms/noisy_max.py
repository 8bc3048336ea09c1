"""What every noisy max does with private values; each mechanism adds its law, its scale and its cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray, counts, one, positive, refuse
from dpselect.errors import InvalidData
from dpselect.mechanisms.grid_release import noise_of
from dpselect.mechanisms.outcomes import Noise, Selection
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import Law
from dpselect.noise.rows import noisy_argmax_rows
from dpselect.privacy.classical import bounded_hazard_epsilon, bounded_hazard_scale, upward
from dpselect.privacy.concentrated import pure_renyi, pure_rho
from dpselect.privacy.family import QueryFamily, check_family
from dpselect.privacy.loss import Loss


@dataclass(frozen=True)
class Ranking:
    """The chosen candidates, first winner first, and what naming them all cost: pure, and as ρ of zCDP."""

    indices: tuple[int, ...]
    loss: Loss
    rho: float
    noise: Noise = "private"


@dataclass(frozen=True, eq=False)
class Selections:
    """Many independent selections among the same candidates, and what showing all of them would cost."""

    indices: NDArray[np.int64]
    loss: Loss
    noise: Noise = "private"


class NoisyMax(ABC):
    """A mechanism that adds noise of one law to every value and names the largest; it adds its cost."""

    #: The law of the noise, at scale 1.
    law: ClassVar[Law]
    family: QueryFamily

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """What the noise is multiplied by."""

    @abstractmethod
    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """Pure ε of one selection among so many."""

    @abstractmethod
    def rho(self, candidates: ArrayLike) -> float | FloatArray:
        """ρ of zero-concentrated differential privacy of one selection among so many (THEORY §11)."""

    @abstractmethod
    def renyi(self, alpha: ArrayLike, candidates: float) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most."""

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Selection:
        """The index of the winner, and what naming it cost; the noise is exactly of its law.

        >>> from dpselect import GaussianNoisyMax
        >>> GaussianNoisyMax(QueryFamily(lower=0, upper=100, sensitivity=1), sigma=4.0).release([3, 90, 12]).index
        1
        """
        noise = noise_of(entropy)
        admitted = admit(values, family=self.family, outside=outside)
        # The cost comes first: if it cannot be stated, nothing is drawn.
        loss = Loss(epsilon=one_epsilon(self, candidates=len(admitted)))
        index = noisy_argmax(admitted, scale=self.noise_scale, law=self.law, entropy=entropy)
        return Selection(index=index, loss=loss, noise=noise)

    def release_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Selections:
        """The winners of ``times`` independent releases of the same values, doubles only: for simulations."""
        noise = noise_of(entropy)
        admitted = admit(values, family=self.family, outside=outside)
        number = int(one(counts, "times", times, least=1))
        if not isinstance(admitted, np.ndarray):
            raise InvalidData("values must be doubles, or integers within ±2**53, to be released many times at once")
        each = Fraction(one_epsilon(self, candidates=len(admitted)))
        rows = np.broadcast_to(admitted, (number, len(admitted)))
        indices = noisy_argmax_rows(rows, scale=self.noise_scale, law=self.law, entropy=entropy)
        return Selections(indices=indices, loss=Loss(epsilon=upward(number * each)), noise=noise)

    def top(
        self,
        values: PrivateValues,
        k: int,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Ranking:
        """``k`` winners by peeling: a release over all, one over the rest, and so on; the costs add.

        Who is left is a function of the answers so far, so every round is a noisy max over public candidates. The
        ranking states its cost both ways: :meth:`top_epsilon` in its ``loss``, and :meth:`top_rho`, which many
        rounds make the cheaper one at a small δ.
        """
        noise = noise_of(entropy)
        admitted = admit(values, family=self.family, outside=outside)
        rounds = int(one(counts, "k", k, least=1))
        if rounds > len(admitted):
            raise refuse("k", k, f"at most the number of candidates, {len(admitted)}")
        loss = Loss(epsilon=self.top_epsilon(len(admitted), rounds))
        rho = self.top_rho(len(admitted), rounds)
        remaining = list(range(len(admitted)))
        chosen: list[int] = []
        for _ in range(rounds):
            scores = admitted[remaining] if isinstance(admitted, np.ndarray) else [admitted[i] for i in remaining]
            chosen.append(remaining.pop(noisy_argmax(scores, scale=self.noise_scale, law=self.law, entropy=entropy)))
        return Ranking(indices=tuple(chosen), loss=loss, rho=rho, noise=noise)

    def top_epsilon(self, candidates: int, k: int) -> float:
        """Pure ε of naming ``k`` winners: the sum over d, d − 1, …, d − k + 1 candidates, rounded up."""
        return _peeled(self, "epsilon", int(one(counts, "candidates", candidates, least=1)), int(one(counts, "k", k)))

    def top_rho(self, candidates: int, k: int) -> float:
        """ρ of naming ``k`` winners: the sum over d, d − 1, …, d − k + 1 candidates, rounded up."""
        return _peeled(self, "rho", int(one(counts, "candidates", candidates, least=1)), int(one(counts, "k", k)))


@dataclass(frozen=True)
class BoundedHazardNoisyMax(NoisyMax):
    """A noisy max whose noise has hazard rate at most 1/scale: Gumbel, exponential or Laplace (see its cost)."""

    family: QueryFamily
    scale: float

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "scale", one(positive, "scale", self.scale))

    @property
    def noise_scale(self) -> float:
        """The scale."""
        return self.scale

    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ε of one release: the same for every number of candidates above one."""
        return bounded_hazard_epsilon(self.family, scale=self.scale, candidates=candidates)

    def rho(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ρ of zCDP of one release: ε²/2, since nothing more than the pure guarantee is known."""
        return pure_rho(self.epsilon(candidates))

    def renyi(self, alpha: ArrayLike, candidates: ArrayLike | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most."""
        return pure_renyi(alpha, self.epsilon(candidates))

    @classmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float) -> Self:
        """The least noise with which any number of candidates costs at most ``epsilon``.

        >>> from dpselect import PermuteAndFlip
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> PermuteAndFlip.calibrated(family, epsilon=0.1).epsilon() <= 0.1
        True
        """
        return cls(check_family(family), scale=bounded_hazard_scale(family, epsilon=epsilon))


# Costs depend on public parameters only and can take milliseconds to integrate: remember them.
@lru_cache(maxsize=4096)
def one_epsilon(mechanism: NoisyMax, *, candidates: int) -> float:
    """ε of one selection; naming the only candidate says nothing."""
    return float(mechanism.epsilon(candidates=candidates)) if candidates > 1 else 0.0


@lru_cache(maxsize=4096)
def _peeled(mechanism: NoisyMax, unit: Literal["epsilon", "rho"], candidates: int, k: int) -> float:
    """The cost of naming ``k`` winners in one unit, summed over the rounds and rounded upward."""
    left = np.arange(candidates, max(candidates - k, 1), -1)
    if left.size == 0:
        return 0.0
    rounds = np.atleast_1d(mechanism.epsilon(left) if unit == "epsilon" else mechanism.rho(left))
    return upward(sum((Fraction(float(cost)) for cost in rounds), Fraction(0)))
