"""Which mechanism, how much noise, what accuracy, at what cost: told before anything private is looked at.

A :class:`Job` says what is asked, what is known and what may be spent; a :class:`Way` is a mechanism with its settings;
a :class:`Plan` is a way with its promise and its :class:`Prediction`.

>>> from dpselect import QueryFamily
>>> family = QueryFamily(lower=0, upper=1, sensitivity=1 / 6946, monotone=True)
>>> comparison = compare(Job(asked="largest", family=family, count=365, epsilon=0.1))
>>> plan = comparison.best
>>> plan.name, plan.mechanism()
('permute-and-flip', PermuteAndFlip(family=..., scale=0.0014...))
"""

from dpselect.planning.job import Job, load_job
from dpselect.planning.knowledge import Model, Profile, read_profile
from dpselect.planning.plan import Plan, load_plan
from dpselect.planning.planner import Comparison, Frontier, compare, frontier, ways_for
from dpselect.planning.prediction import Prediction
from dpselect.planning.ways import Way

__all__ = [
    "Comparison",
    "Frontier",
    "Job",
    "Model",
    "Plan",
    "Prediction",
    "Profile",
    "Way",
    "compare",
    "frontier",
    "load_job",
    "load_plan",
    "read_profile",
    "ways_for",
]
