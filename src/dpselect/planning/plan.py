"""A plan: one contender with its numbers, which builds the mechanism and can be kept in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpselect.checks import counts, finite, positive, refuse
from dpselect.composition.filter import Filter
from dpselect.composition.sparse_vector import SparseVector
from dpselect.errors import InvalidParameter, StateRefused
from dpselect.files import as_toml, read_document, write_document
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.mechanisms.values import OutsidePolicy
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.quantiles import LAPLACE
from dpselect.planning.contender import BY_KEY, SETS, TITLES, Parameter, SparseContender, SparseParameters, make_filter
from dpselect.planning.job import Asked, family_from
from dpselect.planning.one_release import calibrated, cost_of, needs_delta, rebuilt, rebuilt_set, spread_of
from dpselect.planning.prediction import OneRelease, Prediction
from dpselect.privacy.family import QueryFamily

#: What a plan file is, so that another document is not taken for one.
_FORMAT = "dpselect-plan-1"

#: A table's Δ may exceed the plan's by what rounding to doubles does to it.
_ROUNDING = 1e-9

_SPARSE_NAMES = {one.name for one in fields(SparseParameters)}
_SET_NAMES = {"line_share", "prior"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A contender with tuned numbers, its promise, and what to expect of it.

    Attributes
    ----------
    contender : str
        Which one, such as ``"sparse-kept-clipped"`` or ``"permute-and-flip"``.
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
    parameters : mapping
        ``scale_threshold`` (σ_X or b_X), ``scale_query`` (σ_Z or b_Z), ``clip_below``, ``clip_above``, ``horizon``,
        ``order``, and those of :class:`~dpselect.composition.ration.Ration` for a sparse vector; ``line_share`` and
        ``prior`` for a whole set; ``scale`` for one release.
    prediction : Prediction, optional
        What to expect.
    unit : float, optional
        What a query of 1 is in the readings' unit, for a plan made from the description of a table.

    Examples
    --------
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> plan = Plan(contender="permute-and-flip", asked="largest", family=family, count=365, epsilon=0.1,
    ...             parameters={"scale": 0.02})
    >>> plan.mechanism().release([0.1, 0.9, 0.3]).index
    1
    >>> Plan.from_document(plan.as_document()) == plan
    True
    """

    contender: str
    asked: Asked
    family: QueryFamily
    count: int
    epsilon: float
    delta: float = 0.0
    threshold: float | None = None
    parameters: Mapping[str, Parameter]
    prediction: Prediction | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.contender, str) or self.contender not in TITLES:
            raise refuse("contender", self.contender, "one that contenders_for names, such as permute-and-flip")
        if (self.asked == "crossings") != (self.threshold is not None):
            raise refuse("threshold", self.threshold, "given for crossings, and only then")
        if self.sparse is not None and self.threshold is None:
            raise refuse("asked", self.asked, "crossings for a sparse vector")
        positive("epsilon", self.epsilon)
        counts("count", self.count, least=1)
        if self.approximate != (float(finite("delta", self.delta)) > 0.0):
            rule = "positive: this contender has no pure guarantee" if self.approximate else "0: the guarantee is pure"
            raise refuse("delta", self.delta, rule)
        if self.at_once and self.threshold is None:
            raise refuse("asked", self.asked, "crossings for a whole set")
        known = _SPARSE_NAMES if self.sparse is not None else _SET_NAMES if self.at_once else {"scale"}
        strangers = sorted(set(self.parameters) - known)
        if strangers:
            raise refuse("parameters", strangers, "among " + ", ".join(sorted(known)))
        # Lists of a document become tuples, so that a plan equals the one that was written.
        kept = {name: tuple(value) if isinstance(value, list) else value for name, value in self.parameters.items()}
        object.__setattr__(self, "parameters", kept)

    def __str__(self) -> str:
        """What it is, in a line or two.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> print(Plan(contender="permute-and-flip", asked="largest", family=family, count=365, epsilon=0.1,
        ...            parameters={"scale": 0.02}))
        Permute-and-flip for the largest of 365, ε = 0.1
        """
        what = f"the largest of {self.count}"
        if self.threshold is not None:
            what = f"{self.count} questions at {self.threshold * (self.unit or 1.0):.6g}"
        promise = f"ε = {self.epsilon:g}" + (f", δ = {self.delta:g}" if self.delta else "")
        told = f"{self.title} for {what}, {promise}"
        if self.prediction is not None:
            score = "accuracy" if self.threshold is None else "F1"
            told += f"\nexpected: {score} {self.prediction.score:.3f} ± {self.prediction.uncertainty:.3f}"
        return told

    @property
    def sparse(self) -> SparseContender | None:
        """The sparse vector's kind, or None for one release."""
        return BY_KEY.get(self.contender)

    @property
    def at_once(self) -> bool:
        """Whether all questions are answered at once, as a whole set."""
        return self.contender in SETS

    @property
    def approximate(self) -> bool:
        """Whether the guarantee has a δ."""
        if self.sparse is not None:
            return self.sparse.approximate
        return not self.at_once and needs_delta(self.contender)

    @property
    def title(self) -> str:
        """The contender in words."""
        return TITLES[self.contender]

    @property
    def noise_spread(self) -> float:
        """Standard deviation of the noise: of one value, or of a question and its threshold together."""
        if self.at_once:
            found = self._whole_set()
            return math.hypot(LAPLACE.deviation * found.scale_threshold, found.scale)
        if self.sparse is None:
            return spread_of(self.contender, self._number("scale"))
        both = (self._number("scale_threshold") ** 2 + self._number("scale_query") ** 2) ** 0.5
        return float(both * self.sparse.kind.law.deviation)

    def _number(self, name: str) -> float:
        if name not in self.parameters:
            raise refuse(name, None, f"among the parameters of {self.contender}")
        return float(positive(name, self.parameters[name]))

    def mechanism(
        self,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
        filter: Filter | None = None,
        before: tuple[int, int] = (0, 0),
    ) -> SparseVector | OneRelease | SetAboveThreshold:
        """The mechanism, ready to use: a :class:`~dpselect.composition.sparse_vector.SparseVector` with its budget, or
        a mechanism with ``release``, whose cost was checked against the plan's promise.

        Parameters
        ----------
        entropy : Entropy
            Where a sparse vector's noise comes from; one release takes its own.
        outside : {"refuse", "clip"}
            What a sparse vector does with a value outside the family's range.
        filter : Filter, optional
            What a sparse vector is charged to, instead of a budget of its own; for plans without δ.
        before : (int, int)
            How many questions an earlier part of the same stream answered, and how many of them ⊤.
        """
        if self.at_once:
            return self._whole_set()
        if self.sparse is None:
            found = rebuilt(self.contender, family=self.family, scale=self._number("scale"), delta=self.delta)
            cost = cost_of(self.contender, found, count=self.count, delta=self.delta)
            if cost > self.epsilon:
                raise StateRefused(
                    f"the plan promises epsilon = {self.epsilon!r}, but its noise costs {cost!r}; make the plan again"
                )
            return found
        given = self.sparse_parameters
        if filter is not None and self.sparse.filter != "pure":
            raise refuse("filter", filter, "left out: this plan promises a delta, which its own filter keeps")
        budget = filter or make_filter(self.sparse.filter, epsilon=self.epsilon, delta=self.delta, order=given.order)
        return SparseVector(
            self.sparse.watcher(self.family, threshold=float(self.threshold or 0.0), found=given),
            filter=budget,
            resample=self.sparse.resample,
            clip=given.clip,
            horizon=given.horizon,
            ration=given.ration(self.count, before=before),
            outside=outside,
            entropy=entropy,
        )

    def _whole_set(self) -> SetAboveThreshold:
        for name in sorted(_SET_NAMES - set(self.parameters)):
            raise refuse(name, None, f"among the parameters of {self.contender}")
        promise = {"threshold": float(self.threshold or 0.0), "epsilon": self.epsilon}
        return rebuilt_set(self.parameters, family=self.family, count=self.count, **promise)

    def fitted(self, family: QueryFamily, *, unit: float, count: int | None = None) -> Plan:
        """The same plan for the queries of a table: of the same range and unit, with Δ at most the plan's.

        What is charged is the table's own: its Δ and its number of candidates, never the plan's.

        >>> made = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> plan = Plan(contender="permute-and-flip", asked="largest", family=made, count=365, epsilon=0.1,
        ...             parameters={"scale": 0.02})
        >>> plan.fitted(QueryFamily(lower=0, upper=1, sensitivity=1e-4), unit=50.0, count=31).count
        31
        >>> plan.fitted(QueryFamily(lower=0, upper=1, sensitivity=1e-2), unit=50.0)
        Traceback (most recent call last):
        ...
        dpselect.errors.InvalidParameter: the plan is for values that one person moves by up to 0.05, ...
        """
        by_itself = self.sparse is not None or self.at_once or self.unit is not None
        own = self if by_itself else self._in_unit(family, unit=unit)
        unfit = own._misfit(family, unit=unit)
        if unfit is not None:
            raise InvalidParameter(f"the plan is for {unfit}; make the plan again from this description of the table")
        here = replace(own, family=family)._keeping_its_promise()
        return replace(here, count=self.count if count is None else count)

    def _in_unit(self, family: QueryFamily, *, unit: float) -> Plan:
        """A plan of one release in the readings' unit, on the scale of the queries."""
        made = self.family
        if math.isclose(made.upper, family.upper) or not math.isclose(made.upper, family.upper * unit):
            return self
        ends = {name: getattr(made, name) / unit for name in ("lower", "upper", "sensitivity")}
        scale = self._number("scale") / unit
        return replace(self, family=replace(made, **ends), parameters={"scale": scale}, unit=unit)

    def _keeping_its_promise(self) -> Plan:
        """With a little more noise, where a Δ that was rounded differently makes it cost more than promised."""
        if self.sparse is not None or self.at_once:
            return self
        scale, count, delta = self._number("scale"), self.count, self.delta
        found = rebuilt(self.contender, family=self.family, scale=scale, delta=delta)
        if cost_of(self.contender, found, count=count, delta=delta) <= self.epsilon:
            return self
        again = calibrated(self.contender, family=self.family, count=count, epsilon=self.epsilon, delta=delta)
        least = again.scales[0]
        # Noise that never was enough is no matter of rounding: the mechanism refuses it.
        return replace(self, parameters={"scale": least}) if least <= scale * (1.0 + 1e-6) else self

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

    @property
    def sparse_parameters(self) -> SparseParameters:
        """The numbers of a sparse vector."""
        clipped = self.sparse is not None and self.sparse.clipped
        horizon = self.parameters.get("horizon")
        return SparseParameters(
            scale_threshold=self._number("scale_threshold"),
            scale_query=self._number("scale_query"),
            clip_below=self._number("clip_below") if clipped else None,
            clip_above=self._number("clip_above") if clipped else None,
            horizon=None if horizon is None else int(counts("horizon", horizon, least=1)),
            order=self._number("order") if "order" in self.parameters else None,
            **(self._rationing() if self.sparse is not None and self.sparse.rationed else {}),
        )

    def _rationing(self) -> dict[str, Any]:
        names = ("rare", "expected", "together", "hold", "lean")
        for name in names:
            if name not in self.parameters:
                raise refuse(name, None, f"among the parameters of {self.contender}")
        return {name: self.parameters[name] for name in names}

    def as_document(self) -> dict[str, Any]:
        """Plain values for TOML and JSON."""
        names = ("contender", "asked", "count", "epsilon", "delta", "threshold", "unit")
        plain = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        found = {"format": _FORMAT, **plain, "family": asdict(self.family), "parameters": dict(self.parameters)}
        if self.prediction is not None:
            found["prediction"] = {name: value for name, value in asdict(self.prediction).items() if value is not None}
        return found

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Plan:
        """The plan that :meth:`as_document` described; an unknown name is refused."""
        described = dict(document)
        if described.pop("format", None) != _FORMAT:
            raise StateRefused(f"not a plan of this version: it must say format = {_FORMAT!r}")
        names = {one.name for one in fields(cls)}
        missing = {"contender", "asked", "family", "count", "epsilon", "parameters"} - set(described)
        if missing or set(described) - names:
            wrong = sorted(missing | (set(described) - names))
            raise StateRefused(f"a plan must hold exactly what plans hold; missing or unknown: {', '.join(wrong)}")
        described["family"] = family_from(described["family"])
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


def load_plan(path: Path | str) -> Plan:
    """A plan from a TOML or JSON file: ``load_plan("plan.toml").mechanism()`` is ready to use."""
    return Plan.from_document(read_document(path))
