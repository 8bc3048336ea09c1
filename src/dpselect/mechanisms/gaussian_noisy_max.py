"""Report noisy max with Gaussian noise: which candidate is largest?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, counts, non_negative, one, positive, probability, refuse, unwrap
from dpselect.mechanisms.selection import NoisyMax
from dpselect.noise.quantiles import NORMAL, Law
from dpselect.numerics.enclosure import Enclosure
from dpselect.numerics.roots import smallest_safe
from dpselect.privacy.family import QueryFamily, relative_shift
from dpselect.privacy.noisy_max import certify_noisy_max, noisy_max_epsilon, noisy_max_range
from dpselect.privacy.profiles import selection_delta, selection_epsilon, selection_renyi, total_shift


@dataclass(frozen=True)
class GaussianNoisyMax(NoisyMax):
    """Adds N(0, σ²) to every candidate's value and says which one came out on top.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity of the candidates' values.
    sigma : float
        σ, the standard deviation of the noise.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.1)
    >>> picker.epsilon(candidates=365)
    0.245060...
    >>> picker.epsilon(candidates=[16, 95, 1024]).round(5).tolist()
    [0.20405, 0.23183, 0.25323]
    >>> picker.approximate_epsilon(delta=1e-5, candidates=365)
    0.087...
    """

    law: ClassVar[Law] = NORMAL
    noise_names: ClassVar[tuple[str, ...]] = ("sigma",)

    sigma: float

    @cached_property
    def _setting(self) -> dict[str, Any]:
        family = self.family
        return {
            "width": family.width,
            "sensitivity": family.sensitivity,
            "sigma": self.sigma,
            "monotone": family.monotone,
        }

    @property
    def _shift(self) -> float:
        return float(total_shift((relative_shift(self.family.monotone) * self.family.sensitivity, self.sigma)))

    def epsilon(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """Pure ε for ``candidates`` (d) candidates: tight, and never below the truth."""
        return noisy_max_epsilon(**self._setting, candidates=_given(candidates))

    def certify(self, candidates: int) -> Enclosure:
        """A rigorous enclosure of the same ε, in ball arithmetic.

        >>> from dpselect import QueryFamily
        >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1 / 6946), sigma=0.2)
        >>> enclosure = picker.certify(candidates=365)
        >>> enclosure.lower <= 0.010788385236438306 <= enclosure.upper
        True
        """
        return certify_noisy_max(**vars(self.family), sigma=self.sigma, candidates=candidates)

    def profile(self, epsilon: ArrayLike, candidates: ArrayLike) -> float | FloatArray:
        """An upper bound on δ at ε: 0 where the pure bound already holds."""
        eps, d = broadcast(
            epsilon=non_negative("epsilon", epsilon), candidates=counts("candidates", candidates, least=2)
        )
        bound = np.asarray(selection_delta(eps, shift=self._shift, outputs=d))
        return unwrap(np.where(eps >= self.epsilon(d), 0.0, bound))

    def approximate_epsilon(self, delta: ArrayLike, candidates: ArrayLike) -> float | FloatArray:
        """The smaller of the pure ε and the profile bound's ε at ``delta``."""
        target, d = broadcast(delta=probability("delta", delta), candidates=counts("candidates", candidates, least=2))
        return unwrap(np.minimum(self.epsilon(d), selection_epsilon(target, shift=self._shift, outputs=d)))

    def renyi(self, alpha: ArrayLike, candidates: float | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most: the best of the three bounds known.

        Many outputs moved by one shift (THEORY §3), the range of the log ratios (THEORY §11), and the pure ε.
        """
        d = one(counts, "candidates", _given(candidates), least=2)
        return unwrap(np.minimum(selection_renyi(alpha, shift=self._shift, outputs=d), super().renyi(alpha, d)))

    def spread(self, candidates: ArrayLike | None = None) -> float | FloatArray:
        """η: the log ratios of all winners, for one pair of neighbours, lie in an interval of this length (THEORY §11).

        ρ of zero-concentrated differential privacy, η²/8, is then about a quarter of ε²/2 and never more.

        >>> from dpselect import QueryFamily
        >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.1)
        >>> picker.epsilon(candidates=365), picker.spread(candidates=365)
        (0.24506..., 0.24541...)
        >>> picker.rho(candidates=365), picker.epsilon(candidates=365) ** 2 / 2
        (0.00752..., 0.03002...)
        """
        found = noisy_max_range(**self._setting, candidates=_given(candidates))
        return unwrap(np.minimum(found, super().spread(candidates)))

    @classmethod
    def calibrated(
        cls, family: QueryFamily, *, epsilon: float, candidates: int | None = None, delta: float = 0.0
    ) -> Self:
        """The smallest noise whose pure ε among ``candidates``, or ε at ``delta``, is at most ``epsilon``.

        >>> from dpselect import QueryFamily
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> picker = GaussianNoisyMax.calibrated(family, candidates=365, epsilon=0.1)
        >>> picker.epsilon(candidates=365) <= 0.1, round(picker.sigma, 4)
        (True, 0.1679)
        >>> GaussianNoisyMax.calibrated(family, candidates=365, epsilon=0.1, delta=1e-5).sigma < 0.1
        True
        """
        target = one(positive, "epsilon", epsilon)
        d = one(counts, "candidates", _given(candidates), least=2)
        if family.sensitivity == 0:
            raise refuse("sensitivity", 0.0, "positive: with none, no noise is needed and there is no smallest one")
        if one(non_negative, "delta", delta) > 0:
            sigma = smallest_safe(
                lambda trial: float(np.asarray(cls(family, trial).approximate_epsilon(delta, d))),
                target,
                start=family.width,
                tolerance=1e-6,
            )
        else:
            sigma = smallest_safe(
                lambda trial: float(np.asarray(cls(family, trial).epsilon(d))), target, start=family.width
            )
        return cls(family, sigma)


def _given(candidates: ArrayLike | None) -> ArrayLike:
    if candidates is None:
        raise refuse("candidates", None, "given: the cost of Gaussian noise depends on how many there are")
    return candidates
