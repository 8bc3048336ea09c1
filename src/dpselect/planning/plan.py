"""A plan: one way with its settings, its promise and what to expect; it builds the mechanism and is kept in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpselect.checks import counts, finite, positive, refuse
from dpselect.composition.filter import Filter
from dpselect.errors import InvalidParameter, StateRefused
from dpselect.files import as_toml, read_document, write_document
from dpselect.mechanisms.values import OutsidePolicy
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.planning.job import Asked, Job, family_from
from dpselect.planning.prediction import Prediction
from dpselect.planning.ways import WAYS, OneByOne, OneShot, Promise, Way, WholeSet
from dpselect.privacy.family import QueryFamily

#: What a plan file is, so that another document is not taken for one.
_FORMAT = "dpselect-plan-1"
#: A table's Δ may exceed the plan's by what rounding to doubles does to it.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A way with its settings, its promise, and what to expect of it.

    Attributes
    ----------
    way : Way
        The mechanism and its settings.
    asked : {"largest", "crossings"}
        What the job asks.
    family : QueryFamily
        What the queries promise, before clipping.
    count : int
        Candidates, or expected questions.
    epsilon, delta : float
        What is promised, at most.
    threshold : float, optional
        ρ, for crossings.
    prediction : Prediction, optional
        What to expect.
    unit : float, optional
        What a query of 1 is in the readings' unit, for a plan made from the description of a table.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> plan = Plan(way=OneShot(name="permute-and-flip", scale=0.02), asked="largest", family=family, count=365,
    ...             epsilon=0.1)
    >>> plan.mechanism().release([0.1, 0.9, 0.3]).index
    1
    >>> Plan.from_document(plan.as_document()) == plan
    True
    """

    way: Way
    asked: Asked
    family: QueryFamily
    count: int
    epsilon: float
    delta: float = 0.0
    threshold: float | None = None
    prediction: Prediction | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.way, Way):
            raise refuse("way", self.way, "a Way")
        if (self.asked == "crossings") != (self.threshold is not None):
            raise refuse("threshold", self.threshold, "given for crossings, and only then")
        if self.threshold is None and not isinstance(self.way, OneShot):
            raise refuse("asked", self.asked, f"crossings for {self.way.name}")
        positive("epsilon", self.epsilon)
        counts("count", self.count, least=1)
        if self.way.approximate != (float(finite("delta", self.delta)) > 0.0):
            needed = self.way.approximate
            rule = "positive: this way has no pure guarantee" if needed else "0: the guarantee is pure"
            raise refuse("delta", self.delta, rule)

    @classmethod
    def made(cls, job: Job, name: str, *, epsilon: float, seed: int = 1, passes: int | None = None) -> Plan:
        """The plan of one way for a job at a budget; raises where the way does not work at it."""
        if name not in WAYS:
            raise refuse("way", name, "one of " + ", ".join(WAYS))
        way = WAYS[name].chosen(name, job, epsilon=epsilon, seed=seed)
        return cls(
            way=way,
            asked=job.asked,
            family=job.family,
            count=job.count,
            epsilon=epsilon,
            delta=job.delta if way.approximate else 0.0,
            threshold=job.threshold,
            prediction=way.predict(job, epsilon=epsilon, seed=seed, passes=passes),
        )

    def __str__(self) -> str:
        """What it is, in a line or two.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> print(Plan(way=OneShot(name="permute-and-flip", scale=0.02), asked="largest", family=family, count=365,
        ...            epsilon=0.1))
        Permute-and-flip for the largest of 365, ε = 0.1
        """
        what = f"the largest of {self.count}"
        if self.threshold is not None:
            what = f"{self.count} questions at {self.threshold * (self.unit or 1.0):.6g}"
        promise = f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        told = f"{self.way.title} for {what}, {promise}"
        if self.prediction is not None:
            score = "accuracy" if self.threshold is None else "F1"
            told += f"\nexpected: {score} {self.prediction.score:.3f} ± {self.prediction.uncertainty:.3f}"
        return told

    @property
    def name(self) -> str:
        """The name of the way."""
        return self.way.name

    @property
    def title(self) -> str:
        """The way in words."""
        return self.way.title

    @property
    def one_by_one(self) -> OneByOne | None:
        """The way, where it answers one question at a time and pays as it goes; None where all are paid together."""
        return self.way if isinstance(self.way, OneByOne) else None

    @property
    def at_once(self) -> bool:
        """Whether all questions are answered at once, as a whole set."""
        return isinstance(self.way, WholeSet)

    @property
    def promise(self) -> Promise:
        """What the mechanism is built for."""
        return Promise(
            family=self.family, count=self.count, epsilon=self.epsilon, delta=self.delta, threshold=self.threshold
        )

    @property
    def noise_spread(self) -> float:
        """Standard deviation of the noise: of one value, or of a question and its threshold together."""
        return self.way.spread(self.promise)

    def mechanism(
        self,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
        filter: Filter | None = None,
        before: tuple[int, int] = (0, 0),
    ) -> Any:
        """The mechanism, ready to use: a :class:`~dpselect.composition.sparse_vector.SparseVector` with its budget, or
        a mechanism with ``release``, whose cost was checked against the plan's promise.

        Parameters
        ----------
        entropy : Entropy
            Where a sparse vector's noise comes from; one release takes its own.
        outside : {"refuse", "clip"}
            What a sparse vector does with a value outside the family's range.
        filter : Filter, optional
            What a sparse vector is charged to, instead of a budget of its own.
        before : (int, int)
            How many questions an earlier part of the same stream answered, and how many of them ⊤.
        """
        if isinstance(self.way, OneByOne):
            return self.way.build(self.promise, entropy=entropy, outside=outside, filter=filter, before=before)
        return self.way.build(self.promise)

    def fitted(self, family: QueryFamily, *, unit: float, count: int | None = None) -> Plan:
        """The same plan for the queries of a table: of the same range and unit, with Δ at most the plan's.

        What is charged is the table's own: its Δ and its number of candidates, never the plan's.

        >>> made = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> plan = Plan(way=OneShot(name="permute-and-flip", scale=0.02), asked="largest", family=made, count=365,
        ...             epsilon=0.1)
        >>> plan.fitted(QueryFamily(lower=0, upper=1, sensitivity=1e-4), unit=50.0, count=31).count
        31
        >>> plan.fitted(QueryFamily(lower=0, upper=1, sensitivity=1e-2), unit=50.0)
        Traceback (most recent call last):
        ...
        dpselect.errors.InvalidParameter: the plan is for values that one person moves by up to 0.05, ...
        """
        own = self._in_unit(family, unit=unit)
        unfit = own._misfit(family, unit=unit)
        if unfit is not None:
            raise InvalidParameter(f"the plan is for {unfit}; make the plan again from this description of the table")
        here = replace(own, family=family)
        here = replace(here, way=here.way.adjusted(here.promise))
        return replace(here, count=self.count if count is None else count)

    def _in_unit(self, family: QueryFamily, *, unit: float) -> Plan:
        """A plan of one release in the readings' unit, on the scale of the queries."""
        made = self.family
        if not isinstance(self.way, OneShot) or self.unit is not None:
            return self
        if math.isclose(made.upper, family.upper) or not math.isclose(made.upper, family.upper * unit):
            return self
        ends = {name: getattr(made, name) / unit for name in ("lower", "upper", "sensitivity")}
        return replace(self, family=replace(made, **ends), way=self.way.in_unit(unit), unit=unit)

    def _misfit(self, family: QueryFamily, *, unit: float) -> str | None:
        """In which way the plan is for something else, in words that differ where the two do."""
        made = self.family
        if not (math.isclose(made.lower, family.lower, abs_tol=1e-12) and math.isclose(made.upper, family.upper)):
            then, here = (f"{one.lower:.10g} to {one.upper:.10g}" for one in (made, family))
            return f"values from {then}, but here they go from {here}"
        if family.sensitivity > made.sensitivity * (1.0 + _ROUNDING):
            then, here = (f"{one.sensitivity * unit:.6g}" for one in (made, family))
            return f"values that one person moves by up to {then}, but here it is up to {here}"
        if made.monotone and not family.monotone:
            return "people who are added or taken out, but here they may be replaced, or may lower a value"
        if self.unit is not None and not math.isclose(self.unit, unit):
            return f"values up to {made.upper * self.unit:g}, but here they go up to {family.upper * unit:g}"
        return None

    def as_document(self) -> dict[str, Any]:
        """Plain values for TOML and JSON."""
        names = ("asked", "count", "epsilon", "delta", "threshold", "unit")
        plain = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        way = {"contender": self.way.name}
        found = {"format": _FORMAT, **way, **plain, "family": asdict(self.family), "parameters": self.way.parameters}
        if self.prediction is not None:
            found["prediction"] = {name: value for name, value in asdict(self.prediction).items() if value is not None}
        return found

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Plan:
        """The plan that :meth:`as_document` described; an unknown name is refused."""
        described = dict(document)
        if described.pop("format", None) != _FORMAT:
            raise StateRefused(f"not a plan of this version: it must say format = {_FORMAT!r}")
        needed = {"contender", "asked", "family", "count", "epsilon", "parameters"}
        known = {one.name for one in fields(cls)} - {"way"} | needed
        wrong = sorted((needed - set(described)) | (set(described) - known))
        if wrong:
            raise StateRefused(f"a plan must hold exactly what plans hold; missing or unknown: {', '.join(wrong)}")
        described["family"] = family_from(described["family"])
        described["way"] = _way_from(described.pop("contender"), described.pop("parameters"))
        try:
            if "prediction" in described:
                described["prediction"] = Prediction(**described["prediction"])
            return cls(**described)
        except TypeError:
            raise StateRefused("a plan's tables must hold names and numbers as a plan writes them") from None

    def to_toml(self) -> str:
        """The document as TOML."""
        return as_toml(self.as_document())

    def save(self, path: Path | str) -> Path:
        """Writes TOML, or JSON where the name ends so."""
        return write_document(self.as_document(), path)


def _way_from(name: Any, parameters: Any) -> Way:
    if not isinstance(name, str) or name not in WAYS:
        raise refuse("contender", name, "one of " + ", ".join(WAYS) + ": make the plan again")
    if not isinstance(parameters, Mapping):
        raise StateRefused("a plan's tables must hold names and numbers as a plan writes them")
    return WAYS[name].from_parameters(name, parameters)


def load_plan(path: Path | str) -> Plan:
    """A plan from a TOML or JSON file: ``load_plan("plan.toml").mechanism()`` is ready to use."""
    return Plan.from_document(read_document(path))
