"""The sparse vector's building block with Laplace noise and its standard accounting."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, finite, one, positive
from dpselect.mechanisms.threshold_run import Run, Runs, run_many, start
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import LAPLACE
from dpselect.noise.scan import Until
from dpselect.privacy.classical import (
    laplace_threshold_epsilon,
    laplace_threshold_loss,
    laplace_threshold_scales,
)
from dpselect.privacy.family import QueryFamily, check_family


@dataclass(frozen=True)
class LaplaceAboveThreshold:
    """⊤ for a value whose noisy version reaches the noisy threshold, ⊥ otherwise.

    A run of any length costs Δ/scale_threshold, and every ⊤ a further 2Δ/scale_query (Δ/scale_query for a
    monotone family). Drawing a new threshold after each ⊤ means starting a new run and paying for its
    threshold.

    Parameters
    ----------
    family : QueryFamily
        Range, sensitivity Δ and monotonicity of the questions.
    threshold : float
        ρ, public.
    scale_threshold, scale_query : float
        Scales b_X and b_Z of the two Laplace noises.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
    >>> watcher = LaplaceAboveThreshold(family, threshold=50, scale_threshold=4.0, scale_query=8.0)
    >>> watcher.epsilon(), watcher.epsilon(above=3)
    (0.5, 1.0)
    >>> watcher.loss(below=1000, above=0)
    0.25
    >>> watcher.start().ask(2)
    <Verdict.BELOW: 'below'>
    """

    family: QueryFamily
    _: KW_ONLY
    threshold: float
    scale_threshold: float
    scale_query: float

    def __post_init__(self) -> None:
        check_family(self.family)
        object.__setattr__(self, "threshold", one(finite, "threshold", self.threshold))
        for name in ("scale_threshold", "scale_query"):
            object.__setattr__(self, name, one(positive, name, getattr(self, name)))

    def epsilon(self, horizon: int | None = None, *, above: int = 1) -> float:
        """ε of a run that stops after ``above`` ⊤ under one threshold (and after ``horizon`` questions)."""
        return laplace_threshold_epsilon(
            self.family,
            scale_threshold=self.scale_threshold,
            scale_query=self.scale_query,
            above=above,
            horizon=horizon,
        )

    def loss(self, below: ArrayLike, above: ArrayLike = 0) -> float | FloatArray:
        """Ex-post ε of a transcript with so many ⊥ and ⊤ under one threshold; arrays broadcast."""
        return laplace_threshold_loss(
            self.family,
            scale_threshold=self.scale_threshold,
            scale_query=self.scale_query,
            below=below,
            above=above,
        )

    def start(
        self,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        until: Until = "first",
        outside: OutsidePolicy = "refuse",
    ) -> Run:
        """Draw the noisy threshold and open a run."""
        return start(
            self,
            scale_threshold=self.scale_threshold,
            scale_query=self.scale_query,
            law=LAPLACE,
            entropy=entropy,
            until=until,
            outside=outside,
        )

    def run_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        entropy: Entropy = SYSTEM_ENTROPY,
        until: Until = "first",
        outside: OutsidePolicy = "refuse",
    ) -> Runs:
        """Many independent runs over the same values: for simulations."""
        return run_many(
            self,
            values,
            times=times,
            scale_threshold=self.scale_threshold,
            scale_query=self.scale_query,
            law=LAPLACE,
            entropy=entropy,
            until=until,
            outside=outside,
        )

    @classmethod
    def calibrated(
        cls, family: QueryFamily, *, threshold: float, epsilon: float, above: int = 1
    ) -> LaplaceAboveThreshold:
        """The noise for runs of up to ``above`` ⊤ at ε, split so that verdicts vary least.

        >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
        >>> watcher = LaplaceAboveThreshold.calibrated(family, threshold=50, epsilon=0.7, above=3)
        >>> watcher.epsilon(above=3) <= 0.7
        True
        """
        scale_threshold, scale_query = laplace_threshold_scales(family, epsilon=epsilon, above=above)
        return cls(family, threshold=threshold, scale_threshold=scale_threshold, scale_query=scale_query)
