"""Every contender tuned for a job, predicted on fresh noise, and ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray, refuse
from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.planning.advice import advice
from dpselect.planning.contender import RELEASES, SELECTIONS, SPARSE, TITLES, SparseContender
from dpselect.planning.job import Job
from dpselect.planning.one_release import calibrated, needs_delta, predict_one, scale_of
from dpselect.planning.plan import Plan, sparse_plan_parameters
from dpselect.planning.stream_tuning import StreamTuner

#: No budget beyond this is looked at.
_LARGEST_EPSILON = 1024.0
_BY_KEY = {one.key: one for one in SPARSE}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All contenders for a job, best first.

    Attributes
    ----------
    job : Job
        What was asked.
    plans : tuple of Plan
        Ranked by cautious score at the budget, or by ε where a score was wanted.
    guess : float
        The score of an answer that looks at no data: every question ⊤, or a candidate at random.
    """

    job: Job
    plans: tuple[Plan, ...]
    guess: float

    @property
    def best(self) -> Plan:
        """The first."""
        return self.plans[0]

    @property
    def advice(self) -> str:
        """One sentence (or two): what to use, and when to use something else."""
        return advice(self.job, self.plans)

    def plan(self, contender: str) -> Plan:
        """The plan of a contender by its name."""
        for one in self.plans:
            if one.contender == contender:
                return one
        raise refuse("contender", contender, "one of " + ", ".join(one.contender for one in self.plans))

    def as_document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "job": self.job.as_document(),
            "guess": self.guess,
            "advice": self.advice,
            "plans": [one.as_document() for one in self.plans],
        }


def contenders_for(job: Job) -> tuple[str, ...]:
    """The names of all contenders that can promise what the job asks for.

    >>> from dpselect import QueryFamily
    >>> job = Job(asked="largest", family=QueryFamily(lower=0, upper=1, sensitivity=1e-3), count=9, epsilon=1.0)
    >>> contenders_for(job)
    ('gaussian-noisy-max', 'exponential', 'permute-and-flip', 'laplace-noisy-max', 'laplace-release')
    """
    approximate = job.delta > 0
    if job.asked == "largest":
        return tuple(key for key in (*SELECTIONS, *RELEASES) if approximate or not needs_delta(key))
    sparse = [one.key for one in SPARSE if approximate or not one.approximate]
    return (*sparse, *(key for key in RELEASES if approximate or not needs_delta(key)))


def guess_score(job: Job) -> float:
    """What can be had without looking at the data."""
    values = job.values()
    if job.asked == "largest":
        return float(1.0 - (values.max() - values.mean()) / job.family.width)
    share = float((values >= float(job.threshold or 0.0)).mean())
    return 2.0 * share / (1.0 + share)


class Drawing:
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
            parameters=sparse_plan_parameters(tuned.parameters),
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


def compare(
    job: Job,
    *,
    contenders: Sequence[str] | None = None,
    seed: int = 1,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Comparison:
    """Tune, predict and rank.

    Parameters
    ----------
    job : Job
        What is asked.
    contenders : sequence of str, optional
        Only these; all that can promise what is asked, if left out.
    seed : int
        Of the simulations: the same seed gives the same plans.
    on_progress
        Called with the share done, from 0 to 1.

    Raises
    ------
    InvalidParameter
        No contender does better than a guess at this budget; the text gives the smallest budget that would do.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> found = compare(Job(asked="largest", family=family, count=365, epsilon=0.1))
    >>> found.best.contender
    'permute-and-flip'
    >>> print(found.advice)
    Permute-and-flip answers this best: accuracy 0.9..., with noise ... of what Gaussian noisy max needs ...
    """
    chosen = tuple(contenders_for(job) if contenders is None else contenders)
    refused = [key for key in chosen if key not in contenders_for(job)]
    if refused or not chosen:
        raise refuse("contenders", refused or chosen, "among " + ", ".join(contenders_for(job)))
    guess = guess_score(job)
    if job.wanted is not None:
        from dpselect.planning.least_budget import cheapest_plans

        return Comparison(job=job, plans=cheapest_plans(job, chosen, seed=seed, on_progress=on_progress), guess=guess)
    plans = []
    found_so_far: dict[str, FloatArray | None] = {}
    for place, key in enumerate(chosen):
        drawing = Drawing(job, key, seed=seed)
        drawing.start_from(_kindred(key, found_so_far))

        def moved(share: float, place: int = place) -> None:
            on_progress((place + share) / len(chosen))

        try:
            plans.append(drawing.at(float(job.epsilon or 1.0), on_progress=moved))
        except DPSelectError:
            # Not to be had at this budget, such as a scale beyond what doubles can hold.
            continue
        found_so_far[key] = drawing.points
    on_progress(1.0)
    if not any(beats(plan, guess) for plan in plans):
        raise impossible(job, chosen, guess, seed=seed)
    plans.sort(key=_rank)
    return Comparison(job=job, plans=tuple(plans), guess=guess)


def _kindred(key: str, found: Mapping[str, FloatArray | None]) -> FloatArray | None:
    """Where a search may begin, from what others found."""
    sparse = _BY_KEY.get(key)
    if sparse is None:
        return None
    if sparse.paid_before:
        # These differ in how many runs they let through and hardly in which settings suit them.
        done = [points for other, points in found.items() if other in _BY_KEY and _BY_KEY[other].paid_before]
        return done[-1] if done else None
    clipped = found.get("sparse-fresh-clipped")
    if sparse.filter == "repaired" and clipped is not None:
        # The same runs but for a horizon, which is tried from a few questions to all.
        horizons = np.linspace(0.4, 1.0, len(clipped))[:, None]
        return np.concatenate([np.concatenate([clipped, horizons], axis=1)] * 2)
    return None


def _rank(plan: Plan) -> tuple[float, float]:
    prediction = plan.prediction
    return (0.0, 0.0) if prediction is None else (-prediction.cautious, plan.noise_spread)


def beats(plan: Plan, guess: float) -> bool:
    """Whether the plan surely does better than a guess."""
    found = plan.prediction
    return found is not None and found.answered > 0 and found.score - found.uncertainty > guess


def impossible(job: Job, contenders: Sequence[str], guess: float, *, seed: int) -> InvalidParameter:
    """The error that says how much budget would do."""
    from dpselect.planning.least_budget import smallest_useful_epsilon

    least = smallest_useful_epsilon(job, contenders, guess, seed=seed)
    what = "accuracy" if job.asked == "largest" else "F1"
    if least is None:
        return InvalidParameter(
            f"no mechanism answers this better than a guess that looks at no data ({what} {guess:.3f}), at any budget "
            f"up to epsilon = {_LARGEST_EPSILON:g}; ask something else"
        )
    return InvalidParameter(
        f"epsilon must be at least {least:.2g} for any mechanism to answer better than a guess that looks at no data "
        f"({what} {guess:.3f}); got {job.epsilon!r}"
    )
