"""A number with a bound on its error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpselect.checks import FloatArray


def upper_end(value: float, error: float) -> float:
    """value + error rounded up, infinite where the value could not be had; the value itself where it is exact."""
    if error == 0.0:
        return value
    top = value + error
    return math.nextafter(top, math.inf) if top < math.inf else math.inf


@dataclass(frozen=True)
class LogEstimate:
    """A logarithm with a bound on its absolute error: the truth is within ``error`` of ``value``, by theorem.

    >>> float(LogEstimate(np.array(0.5), np.array(0.25)).upper)
    0.7500000000000001
    """

    value: FloatArray
    error: FloatArray

    @property
    def upper(self) -> FloatArray:
        """Never below the truth; infinite where the value could not be had."""
        if self.value.ndim == 0:
            return np.asarray(upper_end(float(self.value), float(self.error)))
        top = np.nextafter(self.value + self.error, np.inf)
        return np.where(np.isnan(top), np.inf, np.where(self.error == 0, self.value, top))
