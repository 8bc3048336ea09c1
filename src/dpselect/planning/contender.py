"""The ways to answer a job, by name, and what is predicted of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpselect.checks import FloatArray
from dpselect.planning.stream_simulation import NoiseLaw

FilterName: TypeAlias = Literal["pure", "repaired", "advanced", "renyi", "zcdp", "gaussian"]

#: Stated uncertainties reach so many standard errors of a mean over the simulated passes. Another simulation of as many
#: passes has an error of its own, so its mean differs by more about once in two thousand times.
_REACH = 5.0


@dataclass(frozen=True, kw_only=True)
class SparseContender:
    """A sparse vector: whose noise, which threshold, clipped or not, under which filter."""

    key: str
    title: str
    law: NoiseLaw = "normal"
    resample: bool = True
    clipped: bool = False
    filter: FilterName = "pure"

    @property
    def capped(self) -> bool:
        """Whether runs end at a horizon: filters that are paid before a run starts need one."""
        return self.filter != "pure"

    @property
    def paid_before(self) -> bool:
        """Whether runs are paid before they start, whatever they answer."""
        return self.filter not in ("pure", "repaired")

    @property
    def approximate(self) -> bool:
        """Whether the guarantee has a δ."""
        return self.filter != "pure"

    @property
    def dimensions(self) -> int:
        """How many numbers are tuned."""
        return 2 + 2 * self.clipped + self.capped


SPARSE: tuple[SparseContender, ...] = (
    SparseContender(key="sparse-fresh", title="Gaussian sparse vector, new threshold after ⊤"),
    SparseContender(key="sparse-fresh-clipped", title="Gaussian sparse vector, new threshold, clipped", clipped=True),
    SparseContender(key="sparse-kept", title="Gaussian sparse vector, one threshold", resample=False),
    SparseContender(
        key="sparse-kept-clipped", title="Gaussian sparse vector, one threshold, clipped", resample=False, clipped=True
    ),
    SparseContender(key="laplace-fresh", title="Laplace above threshold, paid per ⊤", law="laplace"),
    SparseContender(key="laplace-kept", title="Laplace above threshold, known cap on ⊤", law="laplace", resample=False),
    SparseContender(
        key="sparse-repaired",
        title="Gaussian sparse vector, repaired reporting filter",
        clipped=True,
        filter="repaired",
    ),
    SparseContender(
        key="sparse-advanced", title="Gaussian sparse vector, advanced composition", clipped=True, filter="advanced"
    ),
    SparseContender(key="sparse-renyi", title="Gaussian sparse vector, Rényi filter", clipped=True, filter="renyi"),
    SparseContender(key="sparse-zcdp", title="Gaussian sparse vector, zCDP filter", clipped=True, filter="zcdp"),
    SparseContender(
        key="sparse-gaussian", title="Gaussian sparse vector, Gaussian-DP filter", clipped=True, filter="gaussian"
    ),
)

#: Contenders of one release: which candidate is largest.
SELECTIONS: dict[str, str] = {
    "gaussian-noisy-max": "Gaussian noisy max, pure",
    "gaussian-noisy-max-profile": "Gaussian noisy max, profile bound",
    "exponential": "Exponential mechanism",
    "permute-and-flip": "Permute-and-flip",
    "laplace-noisy-max": "Laplace noisy max",
}
#: Contenders that publish every value, whatever is read off them afterwards.
RELEASES: dict[str, str] = {
    "gaussian-release": "Release of every value, Gaussian noise",
    "laplace-release": "Release of every value, Laplace noise",
}
TITLES: dict[str, str] = {**{one.key: one.title for one in SPARSE}, **SELECTIONS, **RELEASES}


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a contender is expected to do, from simulation on noise that its tuning has not seen.

    Attributes
    ----------
    score, uncertainty : float
        Mean F1 (crossings) or accuracy (largest) if values are as expected; the mean over as many fresh passes lies
        within the uncertainty but for about once in two thousand times.
    cautious : float
        The same averaged over the job's scenarios, with their weights: what settings are chosen and ranked by.
    worst : float
        The score in the worst scenario.
    answered, answered_uncertainty : float
        Questions answered before the budget ends.
    spent : float
        ε spent at the end of the stream, on average.
    passes : int
        How many passes were simulated.
    """

    score: float
    uncertainty: float
    cautious: float
    worst: float
    answered: float
    answered_uncertainty: float
    spent: float
    passes: int


def mean_and_reach(sample: FloatArray, *, span: float) -> tuple[float, float]:
    """A mean and its stated uncertainty; ``span`` is the most that one pass can differ by.

    What no pass has shown may still happen now and then: hence the second term.

    >>> import numpy as np
    >>> mean_and_reach(np.array([1.0, 1.0, 1.0, 1.0]), span=1.0)
    (1.0, 1.0)
    """
    number = len(sample)
    error = float(sample.std()) / math.sqrt(number)
    return float(sample.mean()), min(span, _REACH * error + 4.0 * span / number)
