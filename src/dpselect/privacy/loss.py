"""What a release cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Loss:
    """(ε, δ) of one release, never below the truth. δ = 0 is pure differential privacy.

    >>> Loss(epsilon=0.1)
    Loss(epsilon=0.1, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0
