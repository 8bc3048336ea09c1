"""Release every value: rounded to a public grid, with integer noise, and what that cost.

What a selection competes with. Gaussian noise costs (ε, δ), Laplace noise is pure and costs more when there are many.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray, counts, one, positive, probability, unwrap
from dpselect.mechanisms.mechanism import Mechanism, Noise, noise_of
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.discrete import discrete_gaussian, discrete_laplace
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import LAPLACE, NORMAL, Law
from dpselect.privacy.classical import calibrated_scale
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss
from dpselect.privacy.release import (
    Grid,
    gaussian_release_delta,
    gaussian_release_epsilon,
    gaussian_release_rho,
    gaussian_release_sigma,
)
from dpselect.rounding import upward


@dataclass(frozen=True, eq=False)
class Release:
    """Every value with its noise, and what publishing them cost.

    Attributes
    ----------
    values : ndarray
        Multiples of ``step``, noise included. They may fall outside the family's range; cutting them to it is
        free (post-processing).
    step : float
        The public grid step, a power of two.
    loss : Loss
        What the whole array cost.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows the seed.
    rho : float, optional
        The cost as ρ of zero-concentrated differential privacy, where it is known apart from ``loss``.
    """

    values: FloatArray
    step: float
    loss: Loss
    noise: Noise = "private"
    rho: float | None = None


@dataclass(frozen=True)
class GridRelease(Mechanism):
    """All values, rounded to a public grid, each with integer noise: on a fine grid, of the law."""

    @property
    def grid(self) -> Grid:
        """Where released numbers lie; a function of the public parameters."""
        return Grid.for_release(self.family, scale=self.scales[0])

    @abstractmethod
    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """ε of releasing so many values, at this mechanism's ``delta`` where it has one."""

    def approximate_epsilon(self, delta: float, candidates: ArrayLike) -> float | FloatArray:
        """ε at another δ: the pure one, where no δ makes it smaller."""
        return self.epsilon(candidates)

    @abstractmethod
    def _draw(self, size: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
        """Integer noise of this scale, in grid steps."""

    def _rho(self, candidates: int) -> float | None:
        return None

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Release:
        """The values with noise, on the grid."""
        kind, grid = noise_of(entropy), self.grid
        admitted = admit(values, family=self.family, outside=outside)
        # The cost comes first: if it cannot be stated, nothing is drawn.
        loss = Loss(epsilon=float(self.epsilon(len(admitted))), delta=getattr(self, "delta", 0.0))
        noise = self._draw(len(admitted), grid.in_steps(self.scales[0]), entropy)
        noisy = on_grid(admitted, grid=grid, noise=noise)
        return Release(values=noisy, step=grid.step, loss=loss, noise=kind, rho=self._rho(len(admitted)))


@dataclass(frozen=True)
class GaussianRelease(GridRelease):
    """All values, rounded to a public grid, each with discrete Gaussian noise.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity of the values. Monotonicity does not help here.
    sigma : float
        σ, in the values' own unit.
    delta : float
        The δ at which :meth:`epsilon` and :meth:`release` state the cost; Gaussian noise has no pure ε.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> mechanism = GaussianRelease(family, sigma=0.1, delta=1e-5)
    >>> round(mechanism.epsilon(candidates=365), 3)
    0.69
    >>> release = mechanism.release([0.2, 0.5, 0.9])
    >>> release.values.shape, release.step, (release.values / release.step % 1 == 0).all()
    ((3,), 1.49...e-08, np.True_)
    """

    law: ClassVar[Law] = NORMAL
    noise_names: ClassVar[tuple[str, ...]] = ("sigma",)

    _: KW_ONLY
    sigma: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", one(probability, "delta", self.delta))

    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """ε of releasing so many values at this mechanism's ``delta``."""
        return self.approximate_epsilon(self.delta, candidates)

    def approximate_epsilon(self, delta: float, candidates: ArrayLike) -> float | FloatArray:
        """ε at another δ."""
        numbers = counts("candidates", candidates, least=1)
        found = [
            gaussian_release_epsilon(self.family, sigma=self.sigma, candidates=int(d), delta=delta)
            for d in numbers.flat
        ]
        return unwrap(np.array(found).reshape(numbers.shape))

    def profile(self, epsilon: float, candidates: int) -> float:
        """δ at a given ε."""
        return gaussian_release_delta(self.family, sigma=self.sigma, candidates=candidates, epsilon=epsilon)

    def rho(self, candidates: int) -> float:
        """ρ of zero-concentrated differential privacy."""
        return gaussian_release_rho(self.family, sigma=self.sigma, candidates=candidates)

    def renyi(self, alpha: ArrayLike, candidates: int) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` between neighbours, at most."""
        orders = positive("alpha", alpha)
        rho = Fraction(self.rho(candidates))
        return unwrap(np.array([upward(Fraction(order) * rho) for order in orders.flat]).reshape(orders.shape))

    def _draw(self, size: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
        return discrete_gaussian(size, sigma=scale, entropy=entropy)

    def _rho(self, candidates: int) -> float:
        return self.rho(candidates)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, candidates: int, epsilon: float, delta: float) -> GaussianRelease:
        """The least noise that releases ``candidates`` values at (ε, δ).

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> GaussianRelease.calibrated(family, candidates=365, epsilon=0.5, delta=1e-5).epsilon(365) <= 0.5
        True
        """
        sigma = gaussian_release_sigma(family, candidates=candidates, epsilon=epsilon, delta=delta)
        # ε is found by a search of its own, from above to 1e-12: allow for that, on the private side.
        found = cls(family, sigma=sigma, delta=delta)
        while float(found.epsilon(candidates)) > epsilon:
            found = cls(family, sigma=found.sigma * (1.0 + 1e-12), delta=delta)
        return found


@dataclass(frozen=True)
class LaplaceRelease(GridRelease):
    """All values, rounded to a public grid, each with discrete Laplace noise.

    The ratio of two probabilities is at most e^(n/t) per value, where n is the sensitivity and t the scale in
    grid steps, so d values cost d·n/t. Monotonicity does not help here.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity of the values.
    scale : float
        b, in the values' own unit.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=2**-10)
    >>> mechanism = LaplaceRelease(family, scale=0.125)
    >>> mechanism.epsilon(candidates=[1, 16]).tolist()
    [0.0078125, 0.125]
    >>> mechanism.release([0.2, 0.5, 0.9]).loss
    Loss(epsilon=0.0234375, delta=0.0)
    """

    law: ClassVar[Law] = LAPLACE

    scale: float

    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """Pure ε of releasing so many values."""
        numbers = counts("candidates", candidates, least=1)
        each = Fraction(self.grid.sensitivity(self.family)) / self.grid.in_steps(self.scale)
        return unwrap(np.array([upward(int(d) * each) for d in numbers.flat]).reshape(numbers.shape))

    def _draw(self, size: int, scale: Fraction, entropy: Entropy) -> NDArray[np.int64]:
        return discrete_laplace(size, scale=scale, entropy=entropy)

    @classmethod
    def calibrated(cls, family: QueryFamily, *, candidates: int, epsilon: float) -> LaplaceRelease:
        """The least noise that releases ``candidates`` values at a pure ε (to the fineness of the grid).

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> 0.49999 < LaplaceRelease.calibrated(family, candidates=365, epsilon=0.5).epsilon(365) <= 0.5
        True
        """
        target = Fraction(one(positive, "epsilon", epsilon))
        number = int(one(counts, "candidates", candidates, least=1))
        scale = calibrated_scale("scale", number * Fraction(family.sensitivity) / target, epsilon=epsilon)
        # Rounding to the grid may raise the sensitivity, and the grid follows the scale: two or three rounds.
        while (found := cls(family, scale=scale)).epsilon(number) > epsilon:
            rounded = found.grid.sensitivity(family) * Fraction(2) ** found.grid.exponent
            scale = max(math.nextafter(scale, math.inf), upward(number * rounded / target))
        return found


def on_grid(values: FloatArray | Sequence[Fraction], *, grid: Grid, noise: NDArray[np.int64]) -> FloatArray:
    """(rounded values + noise)·step. Turning the sum into doubles is post-processing and exact up to 2^53
    steps.

    >>> on_grid(np.array([0.26, 0.74]), grid=Grid(-2), noise=np.array([0, -1])).tolist()
    [0.25, 0.5]
    """
    return np.ldexp((grid.round(values) + noise).astype(np.float64), grid.exponent)
