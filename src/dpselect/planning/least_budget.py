"""The least ε that will do: for a wanted score, or to be better than a guess."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.planning.contender import SPARSE
from dpselect.planning.entrant import Entrant
from dpselect.planning.guess import beats
from dpselect.planning.job import Job
from dpselect.planning.plan import Plan
from dpselect.planning.shown import shown

_SMALLEST = 2.0**-40
#: No budget beyond this is looked at.
LARGEST_EPSILON = 1024.0
#: Contenders whose settings are searched for.
_TUNED = frozenset(one.key for one in SPARSE)
#: How close the answer comes: within so many parts of the least ε.
_CLOSE = 1.05
#: Contenders that clipping always improves on; looked at only by name.
_DOMINATED = {"sparse-fresh": "sparse-fresh-clipped", "sparse-kept": "sparse-kept-clipped"}
#: Sparse vectors that do most with little.
_FRUGAL = ("laplace-kept", "laplace-fresh", "sparse-kept-clipped")


def least_epsilon(
    entrant: Entrant, will_do: Callable[[Plan], bool], *, start: float, most: float = LARGEST_EPSILON
) -> Plan | None:
    """The plan at the least ε (within 5%) that will do; None where none up to ``most`` does.

    Looked for by factors of four, then by halves on the logarithmic scale. Better settings for more budget make this
    a question of more or less; simulation blurs it by a few parts in a hundred.
    """
    low, high, best = _SMALLEST, math.inf, None
    epsilon = min(start, most)
    while True:
        try:
            plan = entrant.at(epsilon)
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
    looked_at = [key for key in contenders if _DOMINATED.get(key) not in contenders]

    def will_do(plan: Plan) -> bool:
        return plan.prediction is not None and plan.prediction.cautious >= wanted

    found = []
    for place, key in enumerate(looked_at):
        plan = least_epsilon(Entrant(job, key, seed=seed), will_do, start=min(1.0, most), most=most)
        if plan is not None:
            found.append(plan)
        on_progress((place + 1) / len(looked_at))
    if found:
        return tuple(sorted(found, key=lambda plan: plan.epsilon))
    what = "accuracy" if job.asked == "largest" else "F1"
    if job.epsilon is None or job.epsilon >= LARGEST_EPSILON:
        raise InvalidParameter(f"no contender reaches {what} {wanted!r} at any epsilon up to {LARGEST_EPSILON:g}")
    quick = [key for key in looked_at if key not in _TUNED or key in _FRUGAL] or looked_at
    beyond = [least_epsilon(Entrant(job, key, seed=seed), will_do, start=job.epsilon) for key in quick]
    reached = [plan.epsilon for plan in beyond if plan is not None]
    more = f"the least that does is about {shown(min(reached), digits=2)}" if reached else "no larger one does either"
    raise InvalidParameter(f"epsilon must allow {what} {wanted!r}; {more}; got {job.epsilon!r}")


def smallest_useful_epsilon(job: Job, contenders: Sequence[str], guess: float, *, seed: int) -> float | None:
    """The least ε at which some contender surely does better than a guess."""
    # One release is planned in no time; of the sparse vectors only the frugal ones are tried, last.
    quick = [key for key in contenders if key not in _TUNED]
    quick += [key for key in _FRUGAL if key in contenders] or [key for key in contenders if key in _TUNED]
    # Starting where the first fits spares looking where no contender does anything.
    start, best = float(job.epsilon or 1.0), math.inf
    for key in quick:
        most = min(LARGEST_EPSILON, best / _CLOSE)
        plan = least_epsilon(Entrant(job, key, seed=seed), lambda plan: beats(plan, guess), start=start, most=most)
        if plan is not None:
            # Only who does it for less is of interest from here on.
            start = best = plan.epsilon
    return None if math.isinf(best) else best
