"""Every way chosen for a job, predicted on fresh noise and ranked; and the least ε that will do."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dpselect.checks import positive, refuse
from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.planning.advice import advice, shown
from dpselect.planning.job import Job, guess_score
from dpselect.planning.knowledge import Model
from dpselect.planning.plan import Plan
from dpselect.planning.ways import PROFILE, RELEASES, SELECTIONS, SETS, WAYS, GaussianByHand, needs_delta

#: Called with the share done, from 0 to 1.
OnProgress: TypeAlias = Callable[[float], None]

#: The simulation cannot tell cautious scores apart that are closer than this.
_CLOSE = 0.01
#: Budgets that are tried, and how close a least ε comes to the smallest that will do.
_SMALLEST, LARGEST_EPSILON, _WITHIN = 2.0**-40, 1024.0, 1.05
#: The least budget that would do is looked for over streams up to this length.
_SEARCHED = 20_000
#: Passes for each point of a frontier.
_PASSES = 400


def _quiet(share: float) -> None:
    """Nobody watches the progress."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The plans of all ways for a job, best first.

    Attributes
    ----------
    job : Job
        What was asked.
    plans : tuple of Plan
        Ranked by cautious score at the budget, but for the first: of those within .01 it is the one that does best if
        all is as expected. Ranked by ε where a score was wanted.
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

    def plan(self, name: str) -> Plan:
        """The plan of a way by its name."""
        for one in self.plans:
            if one.name == name:
                return one
        raise refuse("way", name, "one of " + ", ".join(one.name for one in self.plans))

    def as_document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "job": self.job.as_document(),
            "guess": self.guess,
            "advice": self.advice,
            "plans": [one.as_document() for one in self.plans],
        }


def possible_ways(job: Job) -> tuple[str, ...]:
    """All that can promise what the job asks for."""
    if not isinstance(job, Job):
        raise refuse("job", job, "a Job, which says what is asked")
    if job.asked == "largest":
        # Several names by the profile would each need their part of δ, which nobody splits.
        profile = (PROFILE,) if job.top == 1 else ()
        names: tuple[str, ...] = (*SELECTIONS, *profile, *RELEASES)
    else:
        others = [name for name in WAYS if name not in (*SELECTIONS, PROFILE, *SETS, *RELEASES)]
        names = (*(SETS if job.whole else ()), *others, *RELEASES)
    return tuple(name for name in names if job.delta > 0 or name not in (PROFILE, *RELEASES) or not needs_delta(name))


def ways_for(job: Job) -> tuple[str, ...]:
    """The ways compared by default: all that can promise it, less those that another one always improves on.

    >>> from dpselect import QueryFamily
    >>> job = Job(asked="largest", family=QueryFamily(lower=0, upper=1, sensitivity=1e-3), count=9, epsilon=1.0)
    >>> ways_for(job)
    ('gaussian-noisy-max', 'permute-and-flip', 'exponential', 'laplace-noisy-max', 'laplace-release')
    """
    possible = possible_ways(job)
    if job.asked == "largest":
        return possible
    wanted = [*SETS, "exponential-rationed", "gaussian-release"]
    # What a past series shows may change beyond all that is weighed, and a fixed number of ⊤ would end the answers
    # early. Where a number is stated, or supposed within a factor of three, that is tried, too.
    wanted += ["exponential-kept"] if isinstance(job.public, Model) else []
    return tuple(name for name in wanted if name in possible)


def compare(
    job: Job, *, ways: Sequence[str] | None = None, seed: int = 1, on_progress: OnProgress = _quiet
) -> Comparison:
    """Choose settings, predict and rank.

    Parameters
    ----------
    job : Job
        What is asked.
    ways : sequence of str, optional
        Names of the ways to compare; those of :func:`ways_for` if left out.
    seed : int
        Of the simulations: the same seed gives the same plans.
    on_progress
        Called with the share done, from 0 to 1.

    Raises
    ------
    InvalidParameter
        No way does better than a guess at this budget; the text gives the smallest budget that would do.

    Examples
    --------
    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> found = compare(Job(asked="largest", family=family, count=365, epsilon=0.1))
    >>> found.best.name
    'permute-and-flip'
    >>> print(found.advice)
    Permute-and-flip answers this best: the very largest 2% of the time, with noise an 8th of what ...
    """
    names = ways_for(job) if ways is None else _checked(ways)
    refused = [name for name in names if name not in possible_ways(job)]
    if refused or not names:
        raise refuse("ways", refused or names, "among " + ", ".join(possible_ways(job)))
    guess = guess_score(job)
    if guess >= 1.0:
        raise _impossible(job, (), guess, seed=seed)
    if job.wanted is not None:
        return Comparison(job=job, plans=cheapest_plans(job, names, seed=seed, on_progress=on_progress), guess=guess)
    plans = ranked(job, names, seed=seed, on_progress=on_progress)
    if not any(_beats(plan, guess) for plan in plans):
        raise _impossible(job, names, guess, seed=seed)
    return Comparison(job=job, plans=tuple(plans), guess=guess)


def ranked(job: Job, names: Sequence[str], *, seed: int = 1, on_progress: OnProgress = _quiet) -> list[Plan]:
    """The plan of every way at the job's budget, best first, whether or not any is better than a guess."""
    plans = []
    for place, name in enumerate(names):
        # A way that does not work at this budget, its scale beyond what doubles can hold, is left out.
        with contextlib.suppress(DPSelectError):
            plans.append(Plan.made(job, name, epsilon=float(job.epsilon or 1.0), seed=seed))
        on_progress((place + 1) / len(names))
    plans.sort(key=_rank)
    return sorted(plans, key=lambda plan: plan is not _first(plans))


def _rank(plan: Plan) -> tuple[float, float]:
    return (0.0, 0.0) if plan.prediction is None else (-plan.prediction.cautious, plan.noise_spread)


def _first(plans: Sequence[Plan]) -> Plan | None:
    """Of those that the simulation cannot tell from the most cautious, the one that does best if all is as expected."""
    told = [(plan, plan.prediction) for plan in plans if plan.prediction is not None]
    close = [(plan, one) for plan, one in told if one.cautious >= told[0][1].cautious - _CLOSE]
    return max(close, key=lambda both: both[1].score)[0] if close else None


def _beats(plan: Plan, guess: float) -> bool:
    """Whether the plan surely does better than a guess."""
    found = plan.prediction
    return found is not None and found.answered > 0 and found.score - found.uncertainty > guess


def least_epsilon(
    job: Job, name: str, will_do: Callable[[Plan], bool], *, start: float, most: float = LARGEST_EPSILON, seed: int = 1
) -> Plan | None:
    """The plan at the least ε (within 5%) that will do; None where none up to ``most`` does.

    Looked for by factors of four, then by halves on the logarithmic scale. Better settings for more budget make this
    a matter of more or less, up to a few percent of noise from the simulation.
    """
    low, high, best = _SMALLEST, math.inf, None
    epsilon = min(start, most)
    while True:
        try:
            plan = Plan.made(job, name, epsilon=epsilon, seed=seed)
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
        elif high > _WITHIN * low:
            epsilon = math.sqrt(low * high)
        else:
            return best


def cheapest_plans(
    job: Job, names: Sequence[str], *, seed: int = 1, on_progress: OnProgress = _quiet
) -> tuple[Plan, ...]:
    """The least ε of every way for the wanted score, cheapest first."""
    wanted = float(job.wanted or 0.0)
    most = LARGEST_EPSILON if job.epsilon is None else job.epsilon

    def will_do(plan: Plan) -> bool:
        return plan.prediction is not None and plan.prediction.cautious >= wanted

    found = []
    for place, name in enumerate(names):
        plan = least_epsilon(job, name, will_do, start=min(1.0, most), most=most, seed=seed)
        if plan is not None:
            found.append(plan)
        on_progress((place + 1) / len(names))
    if found:
        return tuple(sorted(found, key=lambda plan: plan.epsilon))
    what = "accuracy" if job.asked == "largest" else "F1"
    if job.epsilon is None or job.epsilon >= LARGEST_EPSILON:
        raise InvalidParameter(f"no way reaches {what} {wanted!r} at any epsilon up to {LARGEST_EPSILON:g}")
    beyond = [least_epsilon(job, name, will_do, start=job.epsilon, seed=seed) for name in names]
    reached = [plan.epsilon for plan in beyond if plan is not None]
    more = f"the least that does is about {shown(min(reached), digits=2)}" if reached else "no larger one does either"
    raise InvalidParameter(f"epsilon must allow {what} {wanted!r}; {more}; got {job.epsilon!r}")


def _impossible(job: Job, names: Sequence[str], guess: float, *, seed: int) -> InvalidParameter:
    """The error that says how much budget would do; over a long stream nobody waits for the search for it."""
    what = "accuracy" if job.asked == "largest" else "F1"
    if guess < 1.0 and job.threshold is not None and job.count > _SEARCHED:
        return InvalidParameter(
            f"epsilon must be larger for any mechanism to answer better than a guess that looks at no data "
            f"({what} {guess:.3f}); got {job.epsilon!r}; plan for a shorter stretch of the stream to see how much"
        )
    best = math.inf
    for name in names if guess < 1.0 else ():
        # From the first one on, only a way that needs less is of interest.
        start, most = min(best, float(job.epsilon or 1.0)), min(LARGEST_EPSILON, best / _WITHIN)
        plan = least_epsilon(job, name, lambda plan: _beats(plan, guess), start=start, most=most, seed=seed)
        best = best if plan is None else plan.epsilon
    if math.isinf(best):
        return InvalidParameter(
            f"no mechanism answers this better than a guess that looks at no data ({what} {guess:.3f}), at any budget "
            f"up to epsilon = {LARGEST_EPSILON:g}; ask something else"
        )
    return InvalidParameter(
        f"epsilon must be at least {shown(best, digits=2)} for any mechanism to answer better than a guess that looks "
        f"at no data ({what} {guess:.3f}); got {job.epsilon!r}"
    )


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


def _checked(ways: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(ways, list | tuple) or not all(isinstance(name, str) for name in ways):
        raise refuse("ways", ways, "a list of names, such as ['permute-and-flip']")
    return tuple(ways)


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Plans by way, each at rising budgets; ways in the order of their score at the middle budget."""

    job: Job
    guess: float
    lines: dict[str, tuple[Plan, ...]]

    def as_document(self) -> dict[str, Any]:
        """Plain values for JSON: (ε, score, uncertainty) by way."""
        return {
            name: [
                [plan.epsilon, plan.prediction.score, plan.prediction.uncertainty] for plan in line if plan.prediction
            ]
            for name, line in self.lines.items()
        }


def frontier(
    job: Job,
    *,
    epsilons: Sequence[float] | None = None,
    ways: Sequence[str] | None = None,
    seed: int = 1,
    on_progress: OnProgress = _quiet,
) -> Frontier:
    """The plan of every way at every budget.

    Parameters
    ----------
    job : Job
        What is asked.
    epsilons : sequence of float, optional
        The budgets; seven from an eighth of the job's to eight times it, if left out.
    ways : sequence of str, optional
        Only these; all that can promise it but Gaussian noise by hand, if left out.
    seed : int
        Of the simulations.
    on_progress
        Called with the share done.
    """
    possible = possible_ways(job)
    names = [name for name in _checked(ways or ()) or possible if name in possible]
    names = names if ways else [name for name in names if WAYS[name] is not GaussianByHand]
    chosen = epsilons if epsilons is not None else (job.epsilon or 1.0) * np.exp2(np.arange(-3.0, 4.0))
    budgets = sorted(float(one) for one in np.atleast_1d(positive("epsilons", chosen)))
    lines: dict[str, tuple[Plan, ...]] = {}
    for place, name in enumerate(names):
        line = []
        for step, epsilon in enumerate(budgets):
            with contextlib.suppress(DPSelectError):
                line.append(Plan.made(job, name, epsilon=epsilon, seed=seed, passes=_PASSES))
            on_progress((place + (step + 1) / len(budgets)) / len(names))
        lines[name] = tuple(line)
    middle = len(budgets) // 2

    def rank(name: str) -> float:
        line = lines[name]
        found = line[min(middle, len(line) - 1)].prediction if line else None
        return 0.0 if found is None else -found.score

    return Frontier(job=job, guess=guess_score(job), lines={name: lines[name] for name in sorted(names, key=rank)})
