"""Report noisy max with Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, one, positive
from dpselect.mechanisms.noisy_max import Ranking, Selections, peel, select, select_many
from dpselect.mechanisms.outcomes import Selection
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import LAPLACE
from dpselect.privacy.classical import bounded_hazard_epsilon, bounded_hazard_scale
from dpselect.privacy.family import QueryFamily, check_family


@dataclass(frozen=True)
class LaplaceNoisyMax:
    """Add Laplace noise to every score and name the largest.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity Δ of the scores. For a monotone family half the noise gives the same ε.
    scale : float
        Scale b of the noise: ε = 2Δ/b (Δ/b for a monotone family).

    Examples
    --------
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> mechanism = LaplaceNoisyMax(counts, scale=4.0)
    >>> mechanism.epsilon()
    0.25
    >>> mechanism.release([3, 90, 12]).index
    1
    """

    family: QueryFamily
    scale: float

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "scale", one(positive, "scale", self.scale))

    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """ε of one release: the same for every number of candidates above one."""
        return bounded_hazard_epsilon(self.family, scale=self.scale, candidates=candidates)

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Selection:
        """The index of the winner, and what naming it cost."""
        return select(self, values, scale=self.scale, law=LAPLACE, entropy=entropy, outside=outside)

    def release_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Selections:
        """The winners of many independent releases of the same values: for simulations."""
        return select_many(self, values, times=times, scale=self.scale, law=LAPLACE, entropy=entropy, outside=outside)

    def top(
        self,
        values: PrivateValues,
        k: int,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Ranking:
        """``k`` winners by peeling: a release over all, one over the rest, and so on; the costs add."""
        return peel(self, values, k, scale=self.scale, law=LAPLACE, entropy=entropy, outside=outside)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float) -> LaplaceNoisyMax:
        """The least noise with which any number of candidates costs at most ``epsilon``.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> LaplaceNoisyMax.calibrated(family, epsilon=0.1).epsilon() <= 0.1
        True
        """
        return cls(family, scale=bounded_hazard_scale(family, epsilon=epsilon))
