"""Which mechanism, how much noise, what accuracy, at what cost: told before anything private is looked at.

>>> from dpselect import QueryFamily
>>> family = QueryFamily(lower=0, upper=1, sensitivity=1 / 6946, monotone=True)
>>> comparison = compare(Job(asked="largest", family=family, count=365, epsilon=0.1))
>>> plan = comparison.best
>>> plan.contender, plan.mechanism()
('permute-and-flip', PermuteAndFlip(family=..., scale=0.0014...))
"""

from dpselect.planning.budgets import Frontier, frontier
from dpselect.planning.job import Job, load_job
from dpselect.planning.knowledge import Model, Profile, read_profile
from dpselect.planning.plan import Plan, load_plan
from dpselect.planning.planner import Comparison, compare, contenders_for
from dpselect.planning.prediction import Prediction

__all__ = [
    "Comparison",
    "Frontier",
    "Job",
    "Model",
    "Plan",
    "Prediction",
    "Profile",
    "compare",
    "contenders_for",
    "frontier",
    "load_job",
    "load_plan",
    "read_profile",
]
