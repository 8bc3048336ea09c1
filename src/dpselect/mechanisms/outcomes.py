"""What selections and questions give back."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import refuse
from dpselect.noise.entropy import Entropy
from dpselect.privacy.loss import Loss

#: ``private`` when the noise came from the operating system, ``reproducible`` when a seed was passed: a
#: reproducible answer can be undone by whoever knows the seed and must not be shown as private.
Noise: TypeAlias = Literal["private", "reproducible"]


def noise_of(entropy: Entropy) -> Noise:
    """What noise from this source may be called.

    >>> from dpselect.noise.entropy import SeededEntropy
    >>> noise_of(SeededEntropy(1))
    'reproducible'
    """
    if isinstance(entropy, type) or not hasattr(entropy, "words"):
        raise refuse("entropy", entropy, "left out, or SeededEntropy(seed) for a reproducible answer")
    return "private" if entropy.private else "reproducible"


class Verdict(enum.Enum):
    """The answer to one question of above threshold: ⊥ (``BELOW``) or ⊤ (``ABOVE``)."""

    BELOW = "below"
    ABOVE = "above"


@dataclass(frozen=True)
class Selection:
    """Which candidate was chosen, by place and (where candidates have names) by label, and what saying so cost.

    >>> Selection(index=3, loss=Loss(epsilon=0.1), label="Thursday").label
    'Thursday'
    """

    index: int
    loss: Loss
    noise: Noise = "private"
    label: Any = None


@dataclass(frozen=True)
class Ranking:
    """The chosen candidates, first winner first, and what naming them all cost: pure, and as ρ of zCDP."""

    indices: tuple[int, ...]
    loss: Loss
    rho: float
    noise: Noise = "private"
    labels: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class Selections:
    """Many independent selections among the same candidates, and what showing all of them would cost."""

    indices: NDArray[np.int64]
    loss: Loss
    noise: Noise = "private"
