"""The job: what is asked, what it may cost, and what is publicly known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dpselect.checks import FloatArray, counts, finite, flag, positive, probability, refuse
from dpselect.files import read_document, write_document
from dpselect.mechanisms.selection import Goal
from dpselect.planning.knowledge import (
    Model,
    Profile,
    knowledge_as,
    knowledge_from,
    made_up,
    moved_to_share,
    with_flat_ends,
)
from dpselect.planning.outlook import KNOWN, SUPPOSED, Scenario, scenarios, stated_range
from dpselect.privacy.family import QueryFamily

Asked: TypeAlias = Literal["largest", "crossings"]
Outlook: TypeAlias = Literal["changing", "steady"]

#: Lines that many values reach, tried for a table of which nobody has said how many do, and what each counts.
_DENSE_LINES, DENSE = (("half above", 0.5), ("three in four above", 0.75)), 0.15
#: Streams longer than this are planned by a stretch of them.
LONGEST_STREAM = 100_000


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is asked of private values, within which budget.

    Parameters
    ----------
    asked : {"largest", "crossings"}
        Which candidate is largest, or which questions of a stream reach a threshold.
    family : QueryFamily
        What the queries promise.
    count : int, optional
        The number of candidates, or the expected length of the stream; the length of the profile if left out.
    epsilon : float, optional
        The budget. May be left out where ``wanted`` is given.
    delta : float
        δ; 0 asks for pure differential privacy.
    threshold : float, optional
        ρ, for crossings.
    share : float, optional
        The expected share of questions at or above the threshold; a profile is moved to it. Without it a profile is
        taken as it is, and a model takes one in ten.
    public : Profile or Model
        What is known beforehand.
    outlook : {"changing", "steady"}
        Whether settings must also do well when the line is reached more often or less (the default), or only if
        things stay as they are known.
    wanted : float, optional
        An F1, or accuracy, to reach at the least ε.
    whole : bool
        Whether all questions are there before the first is answered, as for a table: then they may be answered at once.
    goal : {"largest", "smallest"}
        Which end is looked for where the largest is asked for.
    top : int
        How many are named, in order; each costs an equal part of ε.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    >>> job = Job(asked="crossings", family=family, count=365, epsilon=1.0, threshold=0.6)
    >>> job.values().shape, round(float((job.values() >= 0.6).mean()), 2)
    ((365,), 0.1)
    >>> [scenario.name for scenario in job.scenarios()]
    ['as expected', '⊤ more often', '⊤ less often']
    >>> Job.from_document(job.as_document()) == job
    True
    """

    asked: Asked
    family: QueryFamily
    count: int = 0
    epsilon: float | None = None
    delta: float = 0.0
    threshold: float | None = None
    share: float | None = None
    public: Profile | Model = field(default_factory=Model)
    outlook: Outlook = "changing"
    wanted: float | None = None
    whole: bool = False
    goal: Goal = "largest"
    top: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.asked, str) or self.asked not in get_args(Asked):
            raise refuse("asked", self.asked, "one of " + ", ".join(get_args(Asked)))
        if not isinstance(self.family, QueryFamily):
            raise refuse("family", self.family, "a QueryFamily")
        if self.family.sensitivity == 0:
            raise refuse("sensitivity", 0.0, "positive: with none, no noise is needed and there is nothing to plan")
        if not isinstance(self.public, (Profile, Model)):
            raise refuse("public", self.public, "a Profile declared public, or a Model")
        flag("whole", self.whole)
        if self.goal not in get_args(Goal):
            raise refuse("goal", self.goal, '"largest" or "smallest"')
        if self.outlook not in get_args(Outlook):
            raise refuse("outlook", self.outlook, "one of " + ", ".join(get_args(Outlook)))
        self._settle_numbers()
        self._check_stream()

    def _settle_numbers(self) -> None:
        count = len(self.public.values) if self.count == 0 and isinstance(self.public, Profile) else self.count
        least = 2 if self.asked == "largest" else 1
        object.__setattr__(self, "count", int(counts("count", count, least=least)))
        object.__setattr__(self, "top", int(counts("top", self.top, least=1)))
        if self.top > self.count:
            raise refuse("top", self.top, f"at most the number of candidates, {self.count}")
        if self.epsilon is None and self.wanted is None:
            raise refuse("epsilon", None, "given, or else wanted")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", float(positive("epsilon", self.epsilon)))
        if self.wanted is not None:
            object.__setattr__(self, "wanted", float(probability("wanted", self.wanted)))
        delta = float(finite("delta", self.delta))
        if not 0.0 <= delta < 1.0:
            raise refuse("delta", self.delta, "0 or more, and below 1")
        object.__setattr__(self, "delta", delta)

    def _check_stream(self) -> None:
        if self.asked == "largest":
            for name in ("threshold", "share"):
                if getattr(self, name) is not None:
                    raise refuse(name, getattr(self, name), "left out when the largest is asked for")
            return
        if self.threshold is None:
            raise refuse("threshold", None, "given when crossings are asked for")
        threshold = float(finite("threshold", self.threshold))
        if not self.family.lower < threshold < self.family.upper:
            raise refuse("threshold", threshold, f"strictly between {self.family.lower!r} and {self.family.upper!r}")
        object.__setattr__(self, "threshold", threshold)
        if self.count > LONGEST_STREAM:
            raise refuse("count", self.count, f"at most {LONGEST_STREAM}: plan for a stretch of the stream instead")
        if self.share is not None:
            object.__setattr__(self, "share", float(probability("share", self.share)))
        elif isinstance(self.public, Profile) and max(self.public.values) < threshold:
            raise refuse("share", None, f"given, since the profile never reaches the threshold {threshold!r}")

    def values(self) -> FloatArray:
        """The values that predictions are made for: the profile, repeated or cut to ``count``, or the model's."""
        if isinstance(self.public, Profile):
            raw = np.clip(np.array(self.public.values), self.family.lower, self.family.upper)
            values = np.resize(raw, self.count)
            if self.share is None or self.threshold is None:
                return values
            return moved_to_share(values, self.family, threshold=self.threshold, share=self.share)
        if self.threshold is None:
            return self.public.candidates(self.family, count=self.count)
        return self.public.stream(self.family, count=self.count, threshold=self.threshold, share=self.share)

    def series(self) -> list[FloatArray]:
        """What a selection is tried on: the profile, or several series of the model."""
        made = made_up(self.family, count=self.count, public=self.public)
        flat = self.goal == "smallest" and isinstance(self.public, Model)
        return with_flat_ends(made, goal=self.goal) if flat else made

    def scenarios(self) -> tuple[Scenario, ...]:
        """The cases that settings are chosen for; the first is what is expected."""
        values = self.values()
        if self.threshold is None or self.outlook == "steady":
            return (Scenario("as expected", 1.0, values),)
        # A rate that nobody has stated and no profile shows may be far from what is supposed.
        supposed = self.share is None and isinstance(self.public, Model)
        factor = SUPPOSED if supposed else KNOWN
        found = scenarios(values, self.family, threshold=self.threshold, factor=factor)
        if not supposed or not self.whole or not isinstance(self.public, Model):
            return found
        # A whole set costs the same however many are above, so a line that most values reach is as likely to be asked.
        streams = [
            self.public.stream(self.family, count=self.count, threshold=self.threshold, share=share)
            for _, share in _DENSE_LINES
        ]
        dense = [Scenario(name, DENSE, stream) for (name, _), stream in zip(_DENSE_LINES, streams, strict=True)]
        rest = 1.0 - DENSE * len(dense)
        return (*(one._replace(weight=rest * one.weight) for one in found), *dense)

    def stated(self, score: float) -> tuple[float, float] | tuple[None, None]:
        """Between what F1 of a single watch lies four times of five, where so much was predicted."""
        if isinstance(self.public, Profile):
            return stated_range(score, "series")
        if self.public.kind != "seasonal":
            return None, None
        if self.public.low is not None:
            return stated_range(score, "range" if self.share is None else "range and share")
        return stated_range(score, "nothing" if self.share is None else "share")

    def as_document(self) -> dict[str, Any]:
        """Plain values for TOML and JSON."""
        names = ("asked", "count", "epsilon", "delta", "threshold", "share", "outlook", "wanted")
        found = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        usual = {"whole": False, "goal": "largest", "top": 1}
        found |= {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        return {**found, "family": asdict(self.family), "public": knowledge_as(self.public)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Job:
        """The job that :meth:`as_document` described; an unknown name is refused."""
        strangers = sorted(set(document) - {one.name for one in fields(cls)})
        if strangers:
            raise refuse("job", strangers, "described by " + ", ".join(one.name for one in fields(cls)))
        described = dict(document)
        described["family"] = family_from(described.get("family"))
        described["public"] = knowledge_from(described.get("public", {}))
        if "asked" not in described:
            raise refuse("asked", None, "given")
        return cls(**described)

    def save(self, path: Path | str) -> Path:
        """Writes TOML, or JSON where the name ends so."""
        return write_document(self.as_document(), path)


def guess_score(job: Job) -> float:
    """What can be had without looking at the data: ⊤ to everything, or any candidate."""
    if job.threshold is None:
        ends = [float(values.max() if job.goal == "largest" else values.min()) for values in job.series()]
        short = [np.abs(end - values).mean() for end, values in zip(ends, job.series(), strict=True)]
        return float(1.0 - np.mean(short) / job.family.width)
    share = float((job.values() >= job.threshold).mean())
    return 2.0 * share / (1.0 + share)


def family_from(described: Any) -> QueryFamily:
    """A family from plain values; nothing is assumed about the sensitivity."""
    if not isinstance(described, Mapping) or "sensitivity" not in described:
        raise refuse("family", described, "a table with lower, upper, sensitivity and monotone")
    strangers = sorted(set(described) - {"lower", "upper", "sensitivity", "monotone"})
    if strangers:
        raise refuse("family", strangers, "described by lower, upper, sensitivity and monotone")
    return QueryFamily(
        lower=described.get("lower", 0.0),
        upper=described.get("upper", 1.0),
        sensitivity=described["sensitivity"],
        monotone=described.get("monotone", False),
    )


def load_job(path: Path | str) -> Job:
    """A job from a TOML or JSON file."""
    return Job.from_document(read_document(path))
