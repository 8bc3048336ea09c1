"""What every noisy max does with private values; each mechanism adds its law, its scale and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray, counts, one, refuse
from dpselect.errors import InvalidData
from dpselect.mechanisms.grid_release import noise_of
from dpselect.mechanisms.outcomes import Noise, Selection
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.entropy import Entropy
from dpselect.noise.quantiles import Law
from dpselect.noise.rows import noisy_argmax_rows
from dpselect.privacy.classical import upward
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss


class NoisyMax(Protocol):
    """The side of a mechanism that is needed here."""

    def __hash__(self) -> int: ...

    @property
    def family(self) -> QueryFamily:
        """Range and sensitivity of the values."""
        ...

    def epsilon(self, candidates: ArrayLike) -> float | FloatArray:
        """Pure ε of one selection among so many."""
        ...


@dataclass(frozen=True)
class Ranking:
    """The chosen candidates, first winner first, and what naming them all cost."""

    indices: tuple[int, ...]
    loss: Loss
    noise: Noise = "private"


@dataclass(frozen=True, eq=False)
class Selections:
    """Many independent selections among the same candidates, and what showing all of them would cost."""

    indices: NDArray[np.int64]
    loss: Loss
    noise: Noise = "private"


def select(
    mechanism: NoisyMax,
    values: PrivateValues,
    *,
    scale: float,
    law: Law,
    entropy: Entropy,
    outside: OutsidePolicy,
) -> Selection:
    """One winner."""
    noise = noise_of(entropy)
    admitted = admit(values, family=mechanism.family, outside=outside)
    # The cost comes first: if it cannot be stated, nothing is drawn.
    loss = Loss(epsilon=one_epsilon(mechanism, candidates=len(admitted)))
    index = noisy_argmax(admitted, scale=scale, law=law, entropy=entropy)
    return Selection(index=index, loss=loss, noise=noise)


def select_many(
    mechanism: NoisyMax,
    values: PrivateValues,
    *,
    times: int,
    scale: float,
    law: Law,
    entropy: Entropy,
    outside: OutsidePolicy,
) -> Selections:
    """The winners of ``times`` independent selections; doubles only."""
    noise = noise_of(entropy)
    admitted = admit(values, family=mechanism.family, outside=outside)
    number = int(one(counts, "times", times, least=1))
    if not isinstance(admitted, np.ndarray):
        raise InvalidData("values must be doubles, or integers within ±2**53, to be released many times at once")
    each = Fraction(one_epsilon(mechanism, candidates=len(admitted)))
    rows = np.broadcast_to(admitted, (number, len(admitted)))
    indices = noisy_argmax_rows(rows, scale=scale, law=law, entropy=entropy)
    return Selections(indices=indices, loss=Loss(epsilon=upward(number * each)), noise=noise)


def peel(
    mechanism: NoisyMax,
    values: PrivateValues,
    k: int,
    *,
    scale: float,
    law: Law,
    entropy: Entropy,
    outside: OutsidePolicy,
) -> Ranking:
    """``k`` winners, one after the other, each among those not yet chosen.

    Every round is a noisy max over the rest; who is left is a function of the answers so far, so the costs of
    the rounds add.
    """
    noise = noise_of(entropy)
    admitted = admit(values, family=mechanism.family, outside=outside)
    rounds = int(one(counts, "k", k, least=1))
    if rounds > len(admitted):
        raise refuse("k", k, f"at most the number of candidates, {len(admitted)}")
    loss = Loss(epsilon=peeling_epsilon(mechanism, candidates=len(admitted), k=rounds))
    remaining = list(range(len(admitted)))
    chosen: list[int] = []
    for _ in range(rounds):
        scores = admitted[remaining] if isinstance(admitted, np.ndarray) else [admitted[i] for i in remaining]
        chosen.append(remaining.pop(noisy_argmax(scores, scale=scale, law=law, entropy=entropy)))
    return Ranking(indices=tuple(chosen), loss=loss, noise=noise)


# Costs depend on public parameters only and can take milliseconds to integrate: remember them.
@lru_cache(maxsize=4096)
def one_epsilon(mechanism: NoisyMax, *, candidates: int) -> float:
    """ε of one selection; naming the only candidate says nothing."""
    return float(mechanism.epsilon(candidates=candidates)) if candidates > 1 else 0.0


@lru_cache(maxsize=4096)
def peeling_epsilon(mechanism: NoisyMax, *, candidates: int, k: int) -> float:
    """ε of naming ``k`` winners: the sum over d, d − 1, …, d − k + 1 candidates, rounded upward."""
    left = np.arange(candidates, max(candidates - k, 1), -1)
    if left.size == 0:
        return 0.0
    rounds = np.atleast_1d(mechanism.epsilon(candidates=left))
    return upward(sum((Fraction(float(epsilon)) for epsilon in rounds), Fraction(0)))
