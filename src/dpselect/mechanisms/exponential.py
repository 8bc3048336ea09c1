"""The exponential mechanism, sampled exactly as a noisy max with Gumbel noise."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, one, positive
from dpselect.mechanisms.noisy_max import Ranking, Selections, peel, select, select_many
from dpselect.mechanisms.outcomes import Selection
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import GUMBEL
from dpselect.privacy.classical import bounded_hazard_scale, exponential_epsilon
from dpselect.privacy.family import QueryFamily, check_family


@dataclass(frozen=True)
class ExponentialMechanism:
    """Choose candidate i with probability proportional to exp(score_i / scale).

    The largest of score_i + scale·Gumbel_i has exactly this law, so the choice needs comparisons only and no
    exponential is ever rounded.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity Δ of the scores. For a monotone family half the noise gives the same ε.
    scale : float
        Δ-to-ε exchange rate: ε = 2Δ/scale (Δ/scale for a monotone family), less for few candidates.

    Examples
    --------
    >>> counts = QueryFamily(lower=0, upper=100, sensitivity=1, monotone=True)
    >>> mechanism = ExponentialMechanism(counts, scale=4.0)
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
        """ε of one release; tight.

        Without ``candidates`` the bound that holds for any number of them.
        """
        return exponential_epsilon(self.family, scale=self.scale, candidates=candidates)

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Selection:
        """The index of the winner, and what naming it cost."""
        return select(self, values, scale=self.scale, law=GUMBEL, entropy=entropy, outside=outside)

    def release_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Selections:
        """The winners of many independent releases of the same values: for simulations."""
        return select_many(self, values, times=times, scale=self.scale, law=GUMBEL, entropy=entropy, outside=outside)

    def top(
        self,
        values: PrivateValues,
        k: int,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
    ) -> Ranking:
        """``k`` winners by peeling: a release over all, one over the rest, and so on; the costs add."""
        return peel(self, values, k, scale=self.scale, law=GUMBEL, entropy=entropy, outside=outside)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, epsilon: float) -> ExponentialMechanism:
        """The least noise with which any number of candidates costs at most ``epsilon``.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> ExponentialMechanism.calibrated(family, epsilon=0.1).epsilon() <= 0.1
        True
        """
        return cls(family, scale=bounded_hazard_scale(family, epsilon=epsilon))
