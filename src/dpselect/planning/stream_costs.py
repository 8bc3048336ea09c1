"""What one contender's runs cost and when they may go on, for many settings at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.planning.contender import SparseContender
from dpselect.planning.filter_budgets import count_runs, make_filter, runs_allowed
from dpselect.planning.job import Job
from dpselect.planning.run_costs import (
    Detail,
    Losses,
    counted_rule,
    exact_kept_limits,
    gaussian_losses,
    horizon_costs,
    kept_limits,
    laplace_losses,
    pure_rule,
    repaired_rule,
)
from dpselect.planning.sparse_parameters import SparseParameters, watcher_for
from dpselect.planning.stream_simulation import RunRule, Settings


class StreamCosts:
    """Losses and rules of one contender for one job at one budget."""

    def __init__(self, job: Job, contender: SparseContender, *, epsilon: float) -> None:
        assert job.threshold is not None  # noqa: S101  # a job about crossings has one
        self._job, self._contender, self._epsilon = job, contender, epsilon
        self._family, self._threshold = job.family, job.threshold

    def losses(self, settings: Settings) -> Losses:
        """Losses of transcripts, for all settings at once."""
        make = gaussian_losses if self._contender.law == "normal" else laplace_losses
        return make(self._family, settings)

    def shifts(self, settings: Settings) -> FloatArray:
        """μ of the profile bound of a capped run (THEORY §3)."""
        moves = 1.0 if self._family.monotone else 4.0
        inverse = 1.0 / np.square(settings.line_scale) + moves / np.square(settings.question_scale)
        return self._family.sensitivity * np.sqrt(inverse)

    def rule(
        self,
        settings: Settings,
        horizon: NDArray[np.int64] | None,
        *,
        detail: Detail,
        found: SparseParameters | None = None,
    ) -> RunRule | NDArray[np.int64]:
        """When runs may go on: a rule by run length, or the limits of a kept threshold.

        With ``found``, the parameters of the one setting at hand, a filter that is paid before each run is asked itself
        how many it lets through.
        """
        losses, length, epsilon = self.losses(settings), self._job.count, self._epsilon
        name = self._contender.filter
        if not self._contender.resample:
            if detail == "exact":
                return exact_kept_limits(losses, longest=length, epsilon=epsilon)
            return kept_limits(losses, longest=length, epsilon=epsilon, detail=detail)
        if name == "pure":
            return pure_rule(losses, longest=length, epsilon=epsilon, detail=detail)
        caps = needed(horizon)
        if name == "repaired":
            return repaired_rule(
                losses,
                settings,
                horizon=caps,
                longest=length,
                epsilon=epsilon,
                delta=self._job.delta,
                detail=detail,
            )
        if found is not None:
            runs = np.array([float(self._counted(found))])
        else:
            runs = runs_allowed(
                name,
                horizon_costs(losses, caps),
                shifts=self.shifts(settings),
                horizon=caps.astype(np.float64),
                epsilon=epsilon,
                delta=self._job.delta,
            )
        return counted_rule(np.minimum(runs, length + 1.0), caps, longest=length)

    def _counted(self, found: SparseParameters) -> int:
        """How many runs the filter itself lets through."""
        family = self._family
        if found.clip is not None:
            family = family.near(self._threshold, below=found.clip[0], above=found.clip[1])
        watcher = watcher_for(self._contender, family, self._threshold, found)
        budget = make_filter(self._contender.filter, epsilon=self._epsilon, delta=self._job.delta, order=found.order)
        return count_runs(budget, watcher, horizon=int(found.horizon or 1), most=self._job.count + 1)


def needed(horizon: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The horizon of a capped contender."""
    assert horizon is not None  # noqa: S101  # capped contenders have one
    return horizon
