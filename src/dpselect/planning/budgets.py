"""One contender at any budget: the least ε that will do, and how much accuracy each further ε buys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray, positive, refuse
from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.planning.advice import shown
from dpselect.planning.contender import BY_KEY, RELEASES, SELECTIONS, SETS, SPARSE, TITLES, SparseContender
from dpselect.planning.job import Job, guess_score
from dpselect.planning.one_release import calibrated, needs_delta, predict_one, tuned_set
from dpselect.planning.plan import Plan
from dpselect.planning.tuning import StreamTuner

_SMALLEST = 2.0**-40
#: The largest budget that is tried.
LARGEST_EPSILON = 1024.0
#: How close the answer comes: within so many parts of the least ε.
_CLOSE = 1.05
#: A search from scratch may need a little more than one that started from budgets nearby.
_FROM_SCRATCH = 1.15
#: Contenders that clipping, or rationing, improves on; looked at only by name.
DOMINATED = {
    "sparse-fresh": "sparse-fresh-clipped",
    "sparse-kept": "sparse-kept-clipped",
    "exponential-kept": "exponential-rationed",
    "laplace-kept": "exponential-rationed",
}
#: Sparse vectors that do most with little.
_FRUGAL = ("exponential-rationed", "sparse-kept-clipped")

#: A frontier is drawn for these, which cover every kind, unless others are named.
_SHOWN = (
    *SETS,
    "sparse-fresh-clipped",
    "sparse-kept-clipped",
    "exponential-rationed",
    "gaussian-release",
    "laplace-release",
    "gaussian-noisy-max",
    "gaussian-noisy-max-profile",
    "exponential",
    "permute-and-flip",
    "laplace-noisy-max",
)
_PASSES = 400


class Contender:
    """One contender for one job, planned at any budget; later plans start from what earlier ones found."""

    def __init__(self, job: Job, key: str, *, seed: int = 1) -> None:
        if key not in TITLES:
            raise refuse("contender", key, "one of " + ", ".join(TITLES))
        self._job, self._key, self._seed = job, key, seed
        #: The best points of the last search, or of a similar one: the next search starts around them.
        self.points: FloatArray | None = None

    def at(
        self, epsilon: float, *, passes: int | None = None, on_progress: Callable[[float], None] = lambda share: None
    ) -> Plan:
        """The plan at a budget; raises where the contender does not work at it."""
        job = self._job
        sparse = BY_KEY.get(self._key)
        if sparse is not None:
            return self._tuned(sparse, epsilon, passes, on_progress)
        if self._key in SETS:
            parameters, prediction = tuned_set(job, epsilon=epsilon, seed=self._seed, passes=passes)
            return self._plan(epsilon=epsilon, parameters=parameters, prediction=prediction)
        found = calibrated(self._key, family=job.family, count=job.count, epsilon=epsilon, delta=job.delta)
        delta = job.delta if needs_delta(self._key) else 0.0
        return self._plan(
            epsilon=epsilon,
            delta=delta,
            parameters={"scale": found.scales[0]},
            prediction=predict_one(job, self._key, found, epsilon=epsilon, seed=self._seed),
        )

    def _tuned(
        self, sparse: SparseContender, epsilon: float, passes: int | None, on_progress: Callable[[float], None]
    ) -> Plan:
        tuner = StreamTuner(self._job, sparse, epsilon=epsilon, seed=self._seed)
        tuned = tuner.tune(starts=self.points, on_progress=on_progress)
        self.points = tuned.points
        return self._plan(
            epsilon=epsilon,
            delta=self._job.delta if sparse.approximate else 0.0,
            parameters=tuned.parameters.named(),
            prediction=tuner.predict(tuned.parameters, passes=passes),
        )

    def _plan(self, **given: Any) -> Plan:
        job = self._job
        return Plan(
            contender=self._key,
            asked=job.asked,
            family=job.family,
            count=job.count,
            threshold=job.threshold,
            **given,
        )


def beats(plan: Plan, guess: float) -> bool:
    """Whether the plan surely does better than a guess."""
    found = plan.prediction
    return found is not None and found.answered > 0 and found.score - found.uncertainty > guess


def least_epsilon(
    contender: Contender, will_do: Callable[[Plan], bool], *, start: float, most: float = LARGEST_EPSILON
) -> Plan | None:
    """The plan at the least ε (within 5%) that will do; None where none up to ``most`` does.

    Looked for by factors of four, then by halves on the logarithmic scale. Better settings for more budget make this
    a matter of more or less, up to a few percent of noise from the simulation.
    """
    low, high, best = _SMALLEST, math.inf, None
    epsilon = min(start, most)
    while True:
        try:
            plan = contender.at(epsilon)
        except DPSelectError:
            plan = None
        if plan is not None and will_do(plan):
            high, best = epsilon, plan
        else:
            low = epsilon
        if math.isinf(high):
            if epsilon >= most:
                return None
            epsilon = min(4.0 * epsilon, most)
        elif low == _SMALLEST:
            epsilon = high / 4.0
            if epsilon <= _SMALLEST:
                return best
        elif high > _CLOSE * low:
            epsilon = math.sqrt(low * high)
        else:
            return best


def cheapest_plans(
    job: Job, contenders: Sequence[str], *, seed: int, on_progress: Callable[[float], None] = lambda share: None
) -> tuple[Plan, ...]:
    """The least ε of every contender for the wanted score, cheapest first."""
    wanted = float(job.wanted or 0.0)
    most = LARGEST_EPSILON if job.epsilon is None else job.epsilon
    looked_at = [key for key in contenders if DOMINATED.get(key) not in contenders]

    def will_do(plan: Plan) -> bool:
        return plan.prediction is not None and plan.prediction.cautious >= wanted

    found = []
    for place, key in enumerate(looked_at):
        plan = least_epsilon(Contender(job, key, seed=seed), will_do, start=min(1.0, most), most=most)
        if plan is not None:
            found.append(plan)
        on_progress((place + 1) / len(looked_at))
    if found:
        return tuple(sorted(found, key=lambda plan: plan.epsilon))
    what = "accuracy" if job.asked == "largest" else "F1"
    if job.epsilon is None or job.epsilon >= LARGEST_EPSILON:
        raise InvalidParameter(f"no contender reaches {what} {wanted!r} at any epsilon up to {LARGEST_EPSILON:g}")
    quick = [key for key in looked_at if key not in BY_KEY or key in _FRUGAL] or looked_at
    beyond = [least_epsilon(Contender(job, key, seed=seed), will_do, start=job.epsilon) for key in quick]
    reached = [plan.epsilon for plan in beyond if plan is not None]
    more = f"the least that does is about {shown(min(reached), digits=2)}" if reached else "no larger one does either"
    raise InvalidParameter(f"epsilon must allow {what} {wanted!r}; {more}; got {job.epsilon!r}")


def smallest_useful_epsilon(job: Job, contenders: Sequence[str], guess: float, *, seed: int) -> float | None:
    """The least ε at which some contender surely does better than a guess."""
    # One release is quick to plan. Of the sparse vectors only those that need least are tried, last.
    quick = [key for key in contenders if key not in BY_KEY]
    quick += [key for key in _FRUGAL if key in contenders] or [key for key in contenders if key in BY_KEY]
    # Starting from what the first one needs saves trying budgets at which none is useful.
    start, best = float(job.epsilon or 1.0), math.inf
    for key in quick:
        most = min(LARGEST_EPSILON, best / _CLOSE)
        plan = least_epsilon(Contender(job, key, seed=seed), lambda plan: beats(plan, guess), start=start, most=most)
        if plan is not None:
            # From here on only a contender that needs less is of interest.
            start = best = plan.epsilon
    return None if math.isinf(best) else _FROM_SCRATCH * best


def enough(will_do: Callable[[float], bool], *, start: float, doublings: int = 12) -> float | None:
    """An ε that will do, at most a fifth above the least: twice as much until it does, then by halves.

    >>> round(enough(lambda epsilon: epsilon >= 3.0, start=1.0), 2), enough(lambda epsilon: False, start=1.0)
    (3.36, None)
    """
    for step in range(1, doublings + 1):
        high = start * 2.0**step
        if not will_do(high):
            continue
        low = 0.5 * high
        for _ in range(2):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if will_do(middle) else (middle, high)
        return high
    return None


def promising(job: Job) -> tuple[str, ...]:
    """All that can promise it: what may be asked for by name."""
    if not isinstance(job, Job):
        raise refuse("job", job, "a Job, which says what is asked")
    approximate = job.delta > 0
    if job.asked == "largest":
        return tuple(key for key in (*SELECTIONS, *RELEASES) if approximate or not needs_delta(key))
    sparse = [one.key for one in SPARSE if approximate or not one.approximate]
    at_once = SETS if job.whole else ()
    return (*at_once, *sparse, *(key for key in RELEASES if approximate or not needs_delta(key)))


def check_names(contenders: Sequence[str] | None) -> tuple[str, ...]:
    """Names of contenders; none where nothing was said."""
    named = () if contenders is None else contenders
    if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
        raise refuse("contenders", contenders, "a list of names, such as ['permute-and-flip']")
    return tuple(named)


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Plans by contender, each at rising budgets; contenders in the order of their best score at the job's budget."""

    job: Job
    guess: float
    lines: dict[str, tuple[Plan, ...]]

    def as_document(self) -> dict[str, Any]:
        """Plain values for JSON: (ε, score, uncertainty) by contender."""
        return {
            key: [
                [plan.epsilon, plan.prediction.score, plan.prediction.uncertainty] for plan in line if plan.prediction
            ]
            for key, line in self.lines.items()
        }


def frontier(
    job: Job,
    *,
    epsilons: Sequence[float] | None = None,
    contenders: Sequence[str] | None = None,
    seed: int = 1,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Frontier:
    """Tune every contender at every budget.

    Parameters
    ----------
    job : Job
        What is asked.
    epsilons : sequence of float, optional
        The budgets; seven from an eighth of the job's to eight times it, if left out.
    contenders : sequence of str, optional
        Only these.
    seed : int
        Of the simulations.
    on_progress
        Called with the share done.
    """
    possible = promising(job)
    keys = [key for key in (check_names(contenders) or _SHOWN) if key in possible]
    centre = job.epsilon or 1.0
    chosen = epsilons if epsilons is not None else centre * np.exp2(np.arange(-3.0, 4.0))
    budgets = sorted(float(one) for one in np.atleast_1d(positive("epsilons", chosen)))
    lines: dict[str, tuple[Plan, ...]] = {}
    for place, key in enumerate(keys):
        contender, line = Contender(job, key, seed=seed), []
        for step, epsilon in enumerate(budgets):
            try:
                line.append(contender.at(epsilon, passes=_PASSES))
            except DPSelectError:
                continue
            finally:
                on_progress((place + (step + 1) / len(budgets)) / len(keys))
        lines[key] = tuple(line)
    middle = len(budgets) // 2

    def rank(key: str) -> float:
        line = lines[key]
        found = line[min(middle, len(line) - 1)].prediction if line else None
        return 0.0 if found is None else -found.score

    return Frontier(job=job, guess=guess_score(job), lines={key: lines[key] for key in sorted(keys, key=rank)})
