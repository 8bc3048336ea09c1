"""Every contender tuned for a job, predicted on fresh noise, and ranked."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray, refuse
from dpselect.errors import DPSelectError, InvalidParameter
from dpselect.planning.advice import advice, shown
from dpselect.planning.budgets import (
    DOMINATED,
    LARGEST_EPSILON,
    Contender,
    beats,
    cheapest_plans,
    check_names,
    promising,
    smallest_useful_epsilon,
)
from dpselect.planning.contender import BY_KEY
from dpselect.planning.job import Job, guess_score
from dpselect.planning.knowledge import Model
from dpselect.planning.plan import Plan

#: Gaussian sparse vectors, whose losses have no closed form, are tuned for streams up to this length unless named.
_SEARCHED = 2048
#: The simulation cannot tell cautious scores apart that are closer than this.
_CLOSE = 0.01
#: Contenders are tuned so many at a time.
_WORKERS = 2


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All contenders for a job, best first.

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
    """The contenders that can promise what the job asks for, except those that others improve on.

    Over long streams Gaussian sparse vectors, whose losses have no closed form, are tuned only by name.

    >>> from dpselect import QueryFamily
    >>> job = Job(asked="largest", family=QueryFamily(lower=0, upper=1, sensitivity=1e-3), count=9, epsilon=1.0)
    >>> contenders_for(job)
    ('gaussian-noisy-max', 'permute-and-flip', 'exponential', 'laplace-noisy-max', 'laplace-release')
    """
    quick = [key for key in promising(job) if key not in DOMINATED]
    if job.asked == "crossings" and job.count > _SEARCHED:
        quick = [key for key in quick if key not in BY_KEY or BY_KEY[key].rationed]
    if job.asked == "crossings":
        # What a past series shows may change beyond all that is weighed, and a fixed number of ⊤ would end the answers
        # early. Where a number is stated, or supposed within a factor of three, that is tried, too.
        quick += ["exponential-kept"] if isinstance(job.public, Model) else []
        # A pure release pays for every value, and the rarer answers alone are never as many.
        quick = [key for key in quick if key != "laplace-release"]
    return tuple(quick)


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
    Permute-and-flip answers this best: the very largest 2% of the time, with noise an 8th of what ...
    """
    chosen = contenders_for(job) if contenders is None else check_names(contenders)
    refused = [key for key in chosen if key not in promising(job)]
    if refused or not chosen:
        raise refuse("contenders", refused or chosen, "among " + ", ".join(promising(job)))
    guess = guess_score(job)
    if guess >= 1.0:
        raise impossible(job, (), guess, seed=seed)
    if job.wanted is not None:
        return Comparison(job=job, plans=cheapest_plans(job, chosen, seed=seed, on_progress=on_progress), guess=guess)
    plans = ranked(job, chosen, seed=seed, on_progress=on_progress)
    if not any(beats(plan, guess) for plan in plans):
        raise impossible(job, chosen, guess, seed=seed)
    return Comparison(job=job, plans=tuple(plans), guess=guess)


def ranked(
    job: Job, contenders: Sequence[str], *, seed: int = 1, on_progress: Callable[[float], None] = lambda share: None
) -> list[Plan]:
    """Every contender's plan at the job's budget, best first, whether or not any is better than a guess.

    Similar ones are tuned one after the other, others side by side.
    """
    shares = dict.fromkeys(contenders, 0.0)
    lock = threading.Lock()

    def moved(key: str, share: float) -> None:
        with lock:
            shares[key] = share
            on_progress(sum(shares.values()) / len(shares))

    def follow(chain: Sequence[str]) -> list[Plan]:
        plans, points = [], None
        for key in chain:
            contender = Contender(job, key, seed=seed)
            contender.points = _kindred(key, points)
            # A contender that does not work at this budget, its scale beyond what doubles can hold, is left out.
            with contextlib.suppress(DPSelectError):
                plans.append(contender.at(float(job.epsilon or 1.0), on_progress=functools.partial(moved, key)))
                points = contender.points
            moved(key, 1.0)
        return plans

    with ThreadPoolExecutor(_WORKERS) as pool:
        found = [plan for plans in pool.map(follow, _chains(contenders)) for plan in plans]
    plans = sorted(found, key=_rank)
    return sorted(plans, key=lambda plan: plan is not _first(plans))


def _first(plans: Sequence[Plan]) -> Plan | None:
    """Of those that the simulation cannot tell from the most cautious, the one that does best if all is as expected."""
    told = [(plan, plan.prediction) for plan in plans if plan.prediction is not None]
    close = [(plan, one) for plan, one in told if one.cautious >= told[0][1].cautious - _CLOSE]
    return max(close, key=lambda both: both[1].score)[0] if close else None


def _chains(contenders: Sequence[str]) -> list[list[str]]:
    """Contenders whose searches can start from one another, together; those that take longest first."""
    chains: dict[str, list[str]] = {}
    for key in contenders:
        sparse = BY_KEY.get(key)
        kind = key
        if sparse is not None:
            fresh = "fresh" if key in ("sparse-fresh-clipped", "sparse-repaired") else key
            kind = "paid before" if sparse.paid_before else fresh
        chains.setdefault(kind, []).append(key)
    return sorted(chains.values(), key=len, reverse=True)


def _kindred(key: str, points: FloatArray | None) -> FloatArray | None:
    """Where a search may begin, from what the one before it in the chain found."""
    sparse = BY_KEY.get(key)
    if sparse is None or points is None:
        return None
    if sparse.filter == "repaired":
        # The same runs with a horizon as well, which is tried from a few questions to all.
        horizons = np.linspace(0.4, 1.0, len(points))[:, None]
        return np.concatenate([np.concatenate([points, horizons], axis=1)] * 2)
    # Filters that are paid before differ in how many runs they let through and hardly in which settings suit them.
    return points


def _rank(plan: Plan) -> tuple[float, float]:
    prediction = plan.prediction
    return (0.0, 0.0) if prediction is None else (-prediction.cautious, plan.noise_spread)


def impossible(job: Job, contenders: Sequence[str], guess: float, *, seed: int) -> InvalidParameter:
    """The error that says how much budget would do."""
    least = smallest_useful_epsilon(job, contenders, guess, seed=seed) if guess < 1.0 else None
    what = "accuracy" if job.asked == "largest" else "F1"
    if least is None:
        return InvalidParameter(
            f"no mechanism answers this better than a guess that looks at no data ({what} {guess:.3f}), at any budget "
            f"up to epsilon = {LARGEST_EPSILON:g}; ask something else"
        )
    return InvalidParameter(
        f"epsilon must be at least {shown(least, digits=2)} for any mechanism to answer better than a guess that looks "
        f"at no data ({what} {guess:.3f}); got {job.epsilon!r}"
    )
