"""Release every value with Laplace noise: pure, and dear when there are many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, counts, one, positive, unwrap
from dpselect.mechanisms.grid_release import Release, noise_of, on_grid
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.discrete import discrete_laplace
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.privacy.classical import calibrated_scale, upward
from dpselect.privacy.family import QueryFamily, check_family
from dpselect.privacy.grid import Grid
from dpselect.privacy.loss import Loss


@dataclass(frozen=True)
class LaplaceRelease:
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

    family: QueryFamily
    scale: float

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "scale", one(positive, "scale", self.scale))

    @property
    def grid(self) -> Grid:
        """Where released numbers lie; a function of the public parameters."""
        return Grid.for_release(self.family, scale=self.scale)

    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """Pure ε of releasing so many values."""
        numbers = counts("candidates", candidates, least=1)
        each = Fraction(self.grid.sensitivity(self.family)) / self.grid.in_steps(self.scale)
        return unwrap(np.array([upward(int(d) * each) for d in numbers.flat]).reshape(numbers.shape))

    def release(
        self, values: PrivateValues, *, entropy: Entropy = SYSTEM_ENTROPY, outside: OutsidePolicy = "refuse"
    ) -> Release:
        """The values with noise, on the grid."""
        kind = noise_of(entropy)
        admitted = admit(values, family=self.family, outside=outside)
        loss = Loss(epsilon=float(self.epsilon(len(admitted))))
        noise = discrete_laplace(len(admitted), scale=self.grid.in_steps(self.scale), entropy=entropy)
        return Release(
            values=on_grid(admitted, grid=self.grid, noise=noise),
            step=self.grid.step,
            loss=loss,
            noise=kind,
        )

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
