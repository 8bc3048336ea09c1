"""What can be had without looking at the data: the line that every plan has to pass."""

from __future__ import annotations

from dpselect.planning.job import Job
from dpselect.planning.plan import Plan


def guess_score(job: Job) -> float:
    """What can be had without looking at the data."""
    values = job.values()
    if job.asked == "largest":
        return float(1.0 - (values.max() - values.mean()) / job.family.width)
    share = float((values >= float(job.threshold or 0.0)).mean())
    return 2.0 * share / (1.0 + share)


def beats(plan: Plan, guess: float) -> bool:
    """Whether the plan surely does better than a guess."""
    found = plan.prediction
    return found is not None and found.answered > 0 and found.score - found.uncertainty > guess
