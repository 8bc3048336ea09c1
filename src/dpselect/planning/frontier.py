"""How much accuracy each further ε buys: the frontier of every contender over a range of budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import positive
from dpselect.errors import DPSelectError
from dpselect.planning.budgets import Entrant
from dpselect.planning.job import Job, guess_score
from dpselect.planning.plan import Plan
from dpselect.planning.planner import promising

#: A frontier is drawn for these, which cover every kind, unless others are named.
_SHOWN = (
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
    centre = job.epsilon or 1.0
    chosen = np.asarray(epsilons if epsilons is not None else centre * np.exp2(np.arange(-3.0, 4.0)))
    budgets = sorted(float(one) for one in np.atleast_1d(positive("epsilons", chosen)))
    possible = promising(job)
    keys = [key for key in (contenders or _SHOWN) if key in possible]
    lines: dict[str, tuple[Plan, ...]] = {}
    for place, key in enumerate(keys):
        entrant, line = Entrant(job, key, seed=seed), []
        for step, epsilon in enumerate(budgets):
            try:
                line.append(entrant.at(epsilon, passes=_PASSES))
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
