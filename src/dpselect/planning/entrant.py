"""One contender for one job, planned at any budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpselect.checks import FloatArray, refuse
from dpselect.planning.contender import SPARSE, TITLES, SparseContender
from dpselect.planning.job import Job
from dpselect.planning.one_release import calibrated, needs_delta, predict_one, scale_of
from dpselect.planning.plan import Plan
from dpselect.planning.sparse_parameters import named_parameters
from dpselect.planning.stream_tuning import StreamTuner

_BY_KEY = {one.key: one for one in SPARSE}


class Entrant:
    """One contender for one job, planned at any budget; later plans start from what earlier ones found."""

    def __init__(self, job: Job, contender: str, *, seed: int = 1) -> None:
        if contender not in TITLES:
            raise refuse("contender", contender, "one of " + ", ".join(TITLES))
        self._job, self._contender, self._seed = job, contender, seed
        self._points: FloatArray | None = None

    def start_from(self, points: FloatArray | None) -> None:
        """Begin around the points of a kindred search."""
        self._points = points

    @property
    def points(self) -> FloatArray | None:
        """The best points of the last search."""
        return self._points

    def at(
        self, epsilon: float, *, passes: int | None = None, on_progress: Callable[[float], None] = lambda share: None
    ) -> Plan:
        """The plan at a budget; raises where the contender cannot be had at it."""
        job = self._job
        sparse = _BY_KEY.get(self._contender)
        if sparse is not None:
            return self._tuned(sparse, epsilon, passes, on_progress)
        found = calibrated(self._contender, family=job.family, count=job.count, epsilon=epsilon, delta=job.delta)
        delta = job.delta if needs_delta(self._contender) else 0.0
        return self._plan(
            epsilon=epsilon,
            delta=delta,
            parameters={"scale": scale_of(found)},
            prediction=predict_one(job, self._contender, found, epsilon=epsilon, seed=self._seed),
        )

    def _tuned(
        self, sparse: SparseContender, epsilon: float, passes: int | None, on_progress: Callable[[float], None]
    ) -> Plan:
        tuner = StreamTuner(self._job, sparse, epsilon=epsilon, seed=self._seed)
        tuned = tuner.tune(starts=self._points, on_progress=on_progress)
        self._points = tuned.points
        return self._plan(
            epsilon=epsilon,
            delta=self._job.delta if sparse.approximate else 0.0,
            parameters=named_parameters(tuned.parameters),
            prediction=tuner.predict(tuned.parameters, passes=passes),
        )

    def _plan(self, **given: Any) -> Plan:
        job = self._job
        return Plan(
            contender=self._contender,
            asked=job.asked,
            family=job.family,
            count=job.count,
            threshold=job.threshold,
            **given,
        )
