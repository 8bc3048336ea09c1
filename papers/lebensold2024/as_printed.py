"""Statements that do not hold as they are printed: the filter FSRC and Zhu and Wang's closed form.

**For reproducing figures only.** Neither bounds the privacy cost. What holds instead is in dpselect: its
:class:`~dpselect.composition.PureFilter` and :class:`~dpselect.composition.RepairedReportingFilter`, and
:func:`~dpselect.privacy.zhu_wang.zhu_wang_renyi`.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, one, positive, probability, refuse, unwrap
from dpselect.composition.costs import Declared, in_loss, plain_cost, probabilistic_price
from dpselect.composition.filter import RunTerms, Watcher, check_watcher
from dpselect.composition.realised import Realised, RealisedFilter
from dpselect.privacy.conversions import orders
from dpselect.privacy.loss import Loss
from dpselect.rounding import in_units

#: What must be passed to use the published filter.
ACKNOWLEDGEMENT = "not private as claimed"


class PublishedReportingFilter(RealisedFilter):
    """Filtered Self-Reporting Composition as printed, **for reproducing figures only**: its (ε, δ) does not hold.

    A run starts while Σ losses + ε_max < ε, ε_max a bound that one run's loss exceeds with probability δ. The proof
    applies that δ once, at the last run; but which run is last depends on that run's own answers, so the chances of all
    runs count. A real instance has δ ≥ .576 against a claimed .00135 (THEORY §4).

    Parameters
    ----------
    epsilon, delta : float
        What the published theorem claims.
    acknowledge : str
        Must be ``"not private as claimed"``.
    run_epsilon : float, optional
        ε_max of every run; by default from the Zhu-Wang bound at δ, as in the paper.

    Examples
    --------
    >>> PublishedReportingFilter(epsilon=1.0, delta=1e-5, acknowledge="yes")
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidParameter: acknowledge must be 'not private as claimed', ...; got 'yes'
    >>> PublishedReportingFilter(epsilon=1.0, delta=1e-5, acknowledge="not private as claimed").limit
    1.0
    """

    name = "published"
    saved_limits: ClassVar = {
        "epsilon": ("epsilon", "_limit"),
        "delta": ("delta", "_delta"),
        "acknowledge": ("acknowledge", "_acknowledged"),
        "run_epsilon": ("run_epsilon", "_run_epsilon"),
    }
    saved_sums: ClassVar = {"sum": "losses"}
    _acknowledged = ACKNOWLEDGEMENT

    def __init__(self, *, epsilon: float, delta: float, acknowledge: str, run_epsilon: float | None = None) -> None:
        if not isinstance(acknowledge, str) or acknowledge != ACKNOWLEDGEMENT:
            rule = f"{ACKNOWLEDGEMENT!r}, since the published theorem is false; use PureFilter"
            raise refuse("acknowledge", acknowledge, rule)
        super().__init__(epsilon)
        self._delta = one(probability, "delta", delta)
        self._run_epsilon = None if run_epsilon is None else one(positive, "run_epsilon", run_epsilon)

    @property
    def delta(self) -> float:
        """δ, as claimed."""
        return self._delta

    def epsilon(self, *, delta: float = 0.0) -> float:
        """Infinite: the published promise does not hold, at no δ below the chances of all runs together."""
        plain_cost("delta", delta, most=1.0)
        return math.inf

    def add_cost(self, books: Realised, cost: Declared | float) -> Realised:
        """One more ε or (ε, δ)."""
        loss = in_loss(cost)
        self._check_books(books)
        # The δ of one round is compared, not added: that is the printed rule.
        return Realised(books.losses + in_units(loss.epsilon), max(books.chances, in_units(loss.delta)))

    def holds(self, books: Realised) -> bool:
        """The printed comparison, with its strict inequality."""
        self._check_books(books)
        return books.losses < self._limit_units and books.chances <= in_units(self._delta)

    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """The printed rule, with ε_max of one run."""
        check_watcher(watcher, horizon)
        largest = self._run_epsilon
        if largest is None:
            largest = probabilistic_price(watcher, self._delta, None)
        if not self.fits(Loss(epsilon=largest, delta=self._delta)):
            raise self._exhausted(largest)
        return RunTerms(allowed=math.inf, books=self._books)


def zhu_wang_renyi_as_published(
    alpha: ArrayLike, *, sensitivity: float, threshold_gap: float, sigma_threshold: float, sigma_query: float
) -> float | FloatArray:
    """The closed form as printed (γ = 2, σ_Z ≥ √3·σ_X), **for reproducing figures only**.

    Its third term under-covers the moment when (ρ - a)/σ_X ≤ 0.35, so it is not always a bound (THEORY §3).
    """
    a = orders(alpha)
    if sigma_query < math.sqrt(3.0) * sigma_threshold * (1 - 1e-12):
        raise refuse("sigma_query", sigma_query, f"at least √3·sigma_threshold = {math.sqrt(3) * sigma_threshold!r}")
    square, r = sensitivity * sensitivity, threshold_gap / sigma_threshold
    log_moment = np.logaddexp(0.0, math.log(2 * math.sqrt(3) * math.pi * (1 + 9 * r * r)) + r * r)
    return unwrap(a * square / sigma_threshold**2 + 2.0 * a * square / sigma_query**2 + log_moment / (2.0 * (a - 1.0)))
