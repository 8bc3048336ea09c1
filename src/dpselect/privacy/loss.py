"""What a release cost."""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.checks import refuse


@dataclass(frozen=True, eq=False)
class Loss:
    """(ε, δ) of one release, never below the truth. δ = 0 is pure differential privacy.

    >>> Loss(epsilon=0.1)
    Loss(epsilon=0.1, delta=0.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not (isinstance(value, float | int) and value >= 0):
                raise refuse(name, value, "a number, zero or more")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return (self.epsilon, self.delta) == (other.epsilon, other.delta)

    def __hash__(self) -> int:
        return hash((self.epsilon, self.delta))


class RealisedLoss(Loss):
    """What answers turned out to cost: a function of the answers, known only afterwards (ex post).

    It may be published and added up (an odometer), but no filter takes it: a filter decides before the release.

    >>> RealisedLoss(epsilon=0.1) == Loss(epsilon=0.1)
    True
    """
