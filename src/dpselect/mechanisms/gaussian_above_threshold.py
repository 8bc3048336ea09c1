"""Above threshold with Gaussian noise: when does a stream of queries cross a line?"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import (
    FloatArray,
    broadcast,
    counts,
    finite,
    non_negative,
    one,
    positive,
    probability,
    refuse,
    unwrap,
)
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.noise.quantiles import NORMAL, Law
from dpselect.numerics.enclosure import Enclosure
from dpselect.numerics.roots import smallest_safe
from dpselect.privacy.above_threshold import certify_transcript, silent_probability, transcript_epsilon
from dpselect.privacy.conversions import ORDERS, pure_renyi, renyi_to_approximate
from dpselect.privacy.family import QueryFamily, check_family, relative_shift
from dpselect.privacy.profiles import selection_delta, selection_epsilon, selection_renyi, total_shift
from dpselect.privacy.zhu_wang import zhu_wang_renyi

#: How far outside a calibrated threshold may lie, in widths of the range: no question would ever reach it there.
_FARTHEST = 1e6


@dataclass(frozen=True)
class GaussianAboveThreshold(AboveThreshold):
    """Compares each query, plus N(0, σ_Z²), with one threshold, plus N(0, σ_X²), and answers ⊥ or ⊤.

    Parameters
    ----------
    family : QueryFamily
        Range and sensitivity of the queries.
    threshold : float
        ρ, the public threshold.
    sigma_threshold, sigma_query : float
        σ_X, the noise of the threshold, drawn once per run, and σ_Z, the noise of each query.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.2, sigma_query=0.2 * 3**0.5)
    >>> watcher.loss(below=[2, 9, 49], above=1).round(5).tolist()
    [0.01564, 0.03051, 0.04693]
    >>> watcher.epsilon(horizon=50) >= watcher.loss(below=49, above=1)
    True
    """

    law: ClassVar[Law] = NORMAL
    noise_names: ClassVar[tuple[str, ...]] = ("sigma_threshold", "sigma_query")

    _: KW_ONLY
    sigma_threshold: float
    sigma_query: float

    @cached_property
    def _setting(self) -> dict[str, Any]:
        return {**vars(self.family), **{name: getattr(self, name) for name in ("threshold", *self.noise_names)}}

    def loss(self, below: ArrayLike, above: ArrayLike = 0) -> float | FloatArray:
        """What a transcript of ``below`` ⊥ and ``above`` ⊤ under one noisy threshold cost, known afterwards.

        Pure and tight; arrays broadcast; never below the truth. ``above=0`` is a run that ended, or was
        abandoned, with only ⊥.
        """
        return transcript_epsilon(**self._setting, below=below, above=above)

    def certify(self, below: int, above: int = 0) -> Enclosure:
        """A rigorous enclosure of :meth:`loss`, in ball arithmetic."""
        return certify_transcript(**self._setting, below=below, above=above)

    def silent_probability(self, questions: int) -> float:
        """How likely the first ``questions`` answers are all ⊥, at most (THEORY §4)."""
        given = {name: getattr(self, name) for name in ("threshold", *self.noise_names)}
        return silent_probability(lower=self.family.lower, **given, questions=questions)

    def epsilon(self, horizon: ArrayLike | None = None, *, above: int = 1) -> float | FloatArray:
        """Pure ε of a run that stops after ``above`` ⊤ or after ``horizon`` (h) questions, known before.

        The largest loss of h-k ⊥ and k ⊤, k = 0, …, ``above`` (that of h ⊥ can be the largest one when h is small).
        Without a horizon there is no bound: the loss grows with the number of ⊥ (THEORY §2).
        """
        if horizon is None:
            raise refuse("horizon", None, "given: the pure cost of a Gaussian run has no bound without one")
        h = counts("horizon", horizon, least=1)
        most = int(one(counts, "above", above, least=1))
        answers = np.minimum(np.arange(most + 1.0).reshape(-1, *(1,) * h.ndim), h)
        return unwrap(np.max(self.loss(h - answers, answers), axis=0))

    @property
    def _shift(self) -> float:
        """How far each output event of a capped run moves, in standard deviations (THEORY §3)."""
        most = relative_shift(self.family.monotone) * self.family.sensitivity
        moves = (self.family.sensitivity, self.sigma_threshold), (most, self.sigma_query)
        return float(total_shift(*moves))

    def profile(self, epsilon: ArrayLike, horizon: ArrayLike) -> float | FloatArray:
        """An upper bound on δ at ε of a run capped at ``horizon``: 0 where the pure bound already holds."""
        eps, h = broadcast(epsilon=non_negative("epsilon", epsilon), horizon=counts("horizon", horizon, least=1))
        bound = np.asarray(selection_delta(eps, shift=self._shift, outputs=h + 1.0))
        return unwrap(np.where(eps >= self.epsilon(h), 0.0, bound))

    def approximate_epsilon(self, delta: float, horizon: float | None = None) -> float:
        """ε at ``delta``: the best of the pure, profile and Rényi bounds; without a horizon, Zhu–Wang's alone."""
        target = one(probability, "delta", delta)
        unbounded = renyi_to_approximate(ORDERS, self.renyi(ORDERS), delta=target)
        if horizon is None:
            return unbounded
        h = one(counts, "horizon", horizon, least=1)
        profile = selection_epsilon(target, shift=self._shift, outputs=h + 1.0)
        return min(unbounded, _number(profile), _number(self.epsilon(h)))

    def renyi(self, alpha: ArrayLike, horizon: float | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha``, at most: Zhu–Wang's bound, or with a horizon the best of
        this, the profile's and the pure one."""
        unbounded = zhu_wang_renyi(
            alpha,
            sensitivity=self.family.sensitivity,
            threshold_gap=self.threshold - self.family.lower,
            sigma_threshold=self.sigma_threshold,
            sigma_query=self.sigma_query,
        )
        if horizon is None:
            return unbounded
        h = one(counts, "horizon", horizon, least=1)
        profile = selection_renyi(alpha, shift=self._shift, outputs=h + 1.0)
        return unwrap(np.minimum(np.minimum(unbounded, profile), pure_renyi(alpha, self.epsilon(h))))

    @classmethod
    def calibrated(
        cls,
        family: QueryFamily,
        *,
        threshold: float,
        epsilon: float,
        horizon: int | None = None,
        below: int | None = None,
        above: int | None = None,
        ratio: float = math.sqrt(3.0),
    ) -> GaussianAboveThreshold:
        """The smallest noise at ``ratio`` = σ_Z/σ_X that costs at most ``epsilon``.

        Give a ``horizon`` for a run that stops at its first ⊤, or the transcript (``below``, ``above``) that is to
        be affordable. A threshold may lie outside the range by a million times its width, no more. Outside, the cost
        need not fall with the noise; the answer still costs at most ``epsilon``, but may not be the smallest that does.

        >>> from dpselect import QueryFamily
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> watcher = GaussianAboveThreshold.calibrated(family, threshold=0.5, horizon=50, epsilon=0.05)
        >>> watcher.epsilon(horizon=50) <= 0.05, round(watcher.sigma_threshold, 4)
        (True, 0.1917)
        """
        target = one(positive, "epsilon", epsilon)
        proportion = one(positive, "ratio", ratio)
        if (horizon is None) == (below is None and above is None):
            raise refuse("horizon", horizon, "given, or else below and above, and not both")
        if check_family(family).sensitivity == 0:
            raise refuse("sensitivity", 0.0, "positive: with none, no noise is needed and there is no smallest one")
        line = one(finite, "threshold", threshold)
        if not family.lower - _FARTHEST * family.width <= line <= family.upper + _FARTHEST * family.width:
            raise refuse("threshold", threshold, f"within {_FARTHEST:,.0f} times the range of the queries")

        def at(sigma: float) -> GaussianAboveThreshold:
            return cls(family, threshold=threshold, sigma_threshold=sigma, sigma_query=proportion * sigma)

        if horizon is not None:
            h = one(counts, "horizon", horizon, least=1)
            return at(smallest_safe(lambda sigma: _number(at(sigma).epsilon(h)), target, start=family.width))
        m, k = one(counts, "below", below or 0), one(counts, "above", above or 0)
        if m + k == 0:
            raise refuse("below and above", (below, above), "a transcript of at least one answer")
        return at(smallest_safe(lambda sigma: _number(at(sigma).loss(m, k)), target, start=family.width))


def _number(value: float | FloatArray) -> float:
    return float(np.asarray(value))
