"""What mechanisms give back."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpselect.privacy.loss import Loss

#: ``private`` when the noise came from the operating system, ``reproducible`` when a seed was passed: a
#: reproducible answer can be undone by whoever knows the seed and must not be shown as private.
Noise: TypeAlias = Literal["private", "reproducible"]


class Verdict(enum.Enum):
    """The answer to one question of above threshold: ⊥ (``BELOW``) or ⊤ (``ABOVE``)."""

    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True)
class Selection:
    """Which candidate was chosen, and what saying so cost.

    >>> Selection(index=3, loss=Loss(epsilon=0.1)).index
    3
    """

    index: int
    loss: Loss
    noise: Noise = "private"
