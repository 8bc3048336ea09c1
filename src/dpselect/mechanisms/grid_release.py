"""Numbers made public: values rounded to a grid, integer noise added, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.outcomes import Noise
from dpselect.noise.entropy import Entropy
from dpselect.privacy.grid import Grid
from dpselect.privacy.loss import Loss


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
    """

    values: FloatArray
    step: float
    loss: Loss
    noise: Noise = "private"


def on_grid(values: FloatArray | Sequence[Fraction], *, grid: Grid, noise: NDArray[np.int64]) -> FloatArray:
    """(rounded values + noise)·step. Turning the sum into doubles is post-processing and exact up to 2^53
    steps.

    >>> on_grid(np.array([0.26, 0.74]), grid=Grid(-2), noise=np.array([0, -1])).tolist()
    [0.25, 0.5]
    """
    return np.ldexp((grid.round(values) + noise).astype(np.float64), grid.exponent)


def noise_of(entropy: Entropy) -> Noise:
    """What noise from this source may be called.

    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noise_of(SeededEntropy(1))
    'reproducible'
    """
    if isinstance(entropy, type) or not hasattr(entropy, "words"):
        raise refuse("entropy", entropy, "left out, or SeededEntropy(seed) for a reproducible answer")
    return "private" if entropy.private else "reproducible"
