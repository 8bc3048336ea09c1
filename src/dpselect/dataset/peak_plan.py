"""What asking for the largest (or smallest) would cost and how good it would be, before anything is read."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.checks import FloatArray, counts, one
from dpselect.dataset import how_much as values_named
from dpselect.dataset import peak, peak_words
from dpselect.dataset.answer import AnswerPlan
from dpselect.dataset.identity import Facts, question_facts
from dpselect.dataset.known import Known
from dpselect.errors import DPSelectError, InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.catalogue import by_short_name
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.planning.job import Job
from dpselect.planning.knowledge import USUAL_SPAN, Model, Profile
from dpselect.planning.plan import Plan
from dpselect.planning.planner import enough
from dpselect.planning.prediction import Prediction, predict_choice
from dpselect.planning.ways import OneShot, Promise, equal_part
from dpselect.privacy.loss import Loss
from dpselect.rounding import at_most, no_more_than, rounded_up, upward

if TYPE_CHECKING:
    from dpselect.dataset.scope import Scope
    from dpselect.mechanisms.selection import Goal, NoisyMax
    from dpselect.privacy.family import QueryFamily

#: An answer that falls short by more than this share of what a blind guess does is not worth its cost.
_HARDLY_BETTER = 0.75
#: Of several that are named at least this share must be expected to belong there: below it most of the list is wrong.
_HALF = 0.5
#: How far weekdays are apart where nothing is known, as shares of the cap: a tenth of the usual mean, 0.156 of the cap
#: (planning.knowledge.USUAL_SPAN), either way. A season moves days by far more, but every weekday has all of it.
_WEEKDAYS = (0.14, 0.172)
#: So many times as many persons as the population says are added up before totals are cut.
_ROOM = 1024

#: The selections by the short names a person types: their names in the catalogue.
NAMES = {name: entry.name for name, entry in by_short_name("selection").items()}


@dataclass(frozen=True, kw_only=True, repr=False)
class PeakPlan(AnswerPlan):
    """What asking for a peak would cost and how good it would be, from public knowledge alone.

    Attributes
    ----------
    scope : Scope
        What is asked about: the data set and the candidates.
    job : Job
        What is asked of the names alone, and what is supposed.
    plans : dict
        Each mechanism that was tried, by its short name: its noise, and how it does on simulated data.
    mechanism : str
        The one that will be used.
    forced : str or None
        "asked" or "planned" where the mechanism was not chosen here.
    value : LaplaceRelease or None
        How the values of those named are released, where that is asked for, too: at half of ε.
    known : Known
        What was said of the values beforehand.
    narrow_hits : float or None
        Where nothing was said: how often the answer is right on values that move over a tenth of what is usual.
    """

    scope: Scope
    job: Job
    plans: dict[str, Plan]
    mechanism: str
    forced: str | None = None
    value: LaplaceRelease | None = None
    known: Known = field(default_factory=Known)
    narrow_hits: float | None = None

    verb, priced_by = "peak", "epsilon"
    # How it is asked, and in words.
    ask = peak.ask
    reason = property(peak_words.reason)
    expectation = property(peak_words.expectation)
    advice = property(peak_words.advice)
    refusal = peak_words.refusal
    doubt = functools.cached_property(peak_words.doubt)

    def __repr__(self) -> str:
        asked = f"{self.goal} of {len(self.scope.candidates):,}" if self.top == 1 else f"{self.top} {self.goal}"
        return f"<PeakPlan: the {asked}, {self.mechanism} at ε = {at_most(self.shown_cost())}>"

    def __str__(self) -> str:
        told = [f"{self.reason} It costs ε = {at_most(self.shown_cost())}.", f"Expected: {self.expectation}."]
        doubt = self.doubt if self.useful else self.refusal()
        return "\n".join([*told, *(str(DPSelectError(one)) for one in (self.weakness, self.advice, doubt) if one)])

    @property
    def caution(self) -> str | None:
        """What to know before paying, if anything."""
        return self.scope.long_cap

    @property
    def goal(self) -> Goal:
        """Which end is looked for."""
        return self.job.goal

    @property
    def top(self) -> int:
        """How many are named, in order."""
        return self.job.top

    @property
    def chosen(self) -> Plan:
        """The mechanism that will be used."""
        return self.plans[self.mechanism]

    @property
    def expected(self) -> Prediction:
        """How good the answer is expected to be."""
        return expected_of(self.chosen)

    @functools.cached_property
    def series(self) -> list[FloatArray]:
        """What the mechanisms were tried on."""
        return self.job.series()

    @property
    def unit(self) -> float:
        """What a query of 1 is in the readings' unit."""
        return float(self.scope.public.natural_unit)

    @functools.cached_property
    def drawing(self) -> NoisyMax:
        """The mechanism as it draws: for values beyond the range as well, where that costs no more.

        Most selections pay for Δ alone. Then a population that is too small cuts nothing, and the winner is right.
        """
        made: NoisyMax = self.chosen.mechanism()
        roomy, count = replace(made, family=_with_room(made.family)), len(self.scope.candidates)
        free = roomy.top_epsilon(count, self.top) <= made.top_epsilon(count, self.top)
        return roomy if free and not self.scope.dataset.is_series else made

    @property
    def is_cut(self) -> bool:
        """Whether values beyond the range are cut to it."""
        return self.drawing.family == self.chosen.family

    def cost(self, name: str | None = None) -> float:
        """The pure ε of an answer, with the values where they are asked for; by another mechanism, if one is named."""
        made = self.plans[name or self.mechanism].mechanism()
        parts = [made.top_epsilon(len(self.scope.candidates), self.top)]
        if self.value is not None:
            parts.append(float(self.value.epsilon(self.top)))
        return upward(sum(map(Fraction, parts), Fraction(0)))

    def shown_cost(self, name: str | None = None) -> float:
        """The same as it was typed where it comes to that: 0.1, not the largest double that is not above one tenth."""
        return rounded_up(self.cost(name), digits=15)

    @property
    def promise(self) -> Loss:
        """The most the answer may cost."""
        return Loss(epsilon=self.cost())

    @property
    def rho(self) -> float:
        """The cost as ρ of zero-concentrated differential privacy, which adds up to less in many answers."""
        named = self.chosen.mechanism().top_rho(len(self.scope.candidates), self.top)
        # A pure ε is ε²/2 (THEORY §11).
        shown = 0.0 if self.value is None else float(self.value.epsilon(self.top))
        return upward(Fraction(named) + Fraction(shown) ** 2 / 2)

    @property
    def margin(self) -> float | None:
        """The values lie within this of the truth 95 times of 100, in the readings' unit; None without values."""
        return None if self.value is None else values_named.margin(self.value) * self.unit

    @property
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than a blind guess."""
        return self.beats_a_guess and _belong(self.expected)

    @property
    def beats_a_guess(self) -> bool:
        """Whether what is named falls clearly less short than a blind guess, whether or not most of a list is right."""
        return _is_better(self.expected)

    @property
    def probable(self) -> bool:
        """Whether what is named is more often than not the largest; of several, what :attr:`useful` says counts."""
        return self.top > 1 or _mostly_right(self.expected)

    def enough(self) -> float | None:
        """How many times the cost would be clearly better than a guess."""
        return enough(lambda times: self._will_do(times, self.series), start=1.0, doublings=24)

    def enough_to_be_right(self) -> float | None:
        """How many times the cost would make the answer more often right than not."""
        return enough(lambda times: _mostly_right(self._foreseen(times, self.series)), start=1.0)

    def would_do_with(self, each: int) -> bool:
        """Whether candidates so many times as long, as far apart, would do at the same cost."""
        fewer = [values[::each] for values in self.series]
        return len(fewer[0]) > 1 and self._will_do(1.0, fewer)

    def _will_do(self, times: float, series: list[FloatArray]) -> bool:
        found = self._foreseen(times, series)
        return _is_better(found) and _belong(found)

    def _foreseen(self, times: float, series: list[FloatArray]) -> Prediction:
        """What so many times the cost brings on these series."""
        epsilon, count = times * float(self.job.epsilon or 1.0), len(series[0])
        job = replace(self.job, count=count, top=min(self.top, count))
        way = OneShot.chosen(NAMES[self.mechanism], job, epsilon=epsilon, seed=1)
        made = way.build(Promise.of(job, epsilon=epsilon))
        return predict_choice(job, made, epsilon=epsilon, series=series)

    def save(self, path: Path | str) -> Path:
        """Keeps the plan in a file, for this table or another of the same range whose Δ is no larger."""
        if self.top > 1 or self.value is not None:
            raise InvalidParameter("a plan in a file is for one name: leave ‹top› and ‹how_much› out", parameter="top")
        if self.goal != "largest":
            raise InvalidParameter("a plan in a file is for the largest: leave ‹goal› out", parameter="goal")
        return replace(self.chosen, epsilon=self.shown_cost(), prediction=None, unit=self.unit).save(path)

    def question(self) -> Facts:
        """The question as a ledger keeps it. Noise is a part of it only where a plan states it."""
        return question_facts(
            "peak",
            **self.scope.facts(),
            goal=self.goal,
            top=self.top,
            values=self.value is not None,
            mechanism=self.mechanism,
            epsilon=rounded_up((2 if self.value is not None else 1) * float(self.job.epsilon or 0.0), digits=15),
            **({"scale": float(self.chosen.mechanism().scales[0])} if self.forced == "planned" else {}),
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each mechanism that was tried, as plain values."""
        return [
            {
                "dry_run": True,
                "mechanism": name,
                "chosen": name == self.mechanism,
                "candidates": len(self.scope.candidates),
                "epsilon": self.shown_cost(name),
                **peak_words.scale(plan),
                **self.scope.to_dict(),
                "query_unit": self.unit,
                **self.expected_values(name),
                **({} if self.margin is None else {"amount_margin": self.margin}),
                **({"advice": self.advice} if name == self.mechanism else {}),
                **({} if self.weakness is None else {"note": self.weakness}),
            }
            for name, plan in self.plans.items()
        ]

    def expected_values(self, name: str) -> dict[str, Any]:
        """What is expected of a mechanism, beside a guess, as plain values; some of it of the chosen one alone."""
        found, chosen = expected_of(self.plans[name]), name == self.mechanism
        return {
            **found.as_expected(len(self.scope.candidates)),
            **({"expected_hits_over_a_tenth": self.narrow_hits} if chosen and self.narrow_hits is not None else {}),
            **({"expected_overlap": found.overlap} if chosen and found.overlap is not None else {}),
        }


def expected_of(plan: Plan) -> Prediction:
    """The prediction, which every plan here has."""
    if plan.prediction is None:
        raise InvalidParameter("‹plan› must say what to expect; make the plan again", parameter="plan")
    return plan.prediction


def _is_better(found: Prediction) -> bool:
    return found.shortfall <= _HARDLY_BETTER * found.guess_shortfall


def _belong(found: Prediction) -> bool:
    """Whether at least half of several that are named are expected to belong there."""
    return found.overlap is None or found.overlap >= _HALF


def _mostly_right(found: Prediction) -> bool:
    return (found.hits or 0.0) >= _HALF


def plan_peak(
    scope: Scope,
    *,
    epsilon: Fraction | float | None = None,
    mechanism: str | None = None,
    goal: Goal = "largest",
    top: int = 1,
    how_much: bool = False,
    known: Known | None = None,
    plan: Plan | None = None,
    compare: bool = False,
) -> PeakPlan:
    """See :meth:`Dataset.plan_peak`."""
    if mechanism is not None and mechanism not in NAMES:
        raise refuse("mechanism", mechanism, "one of " + ", ".join(NAMES))
    if goal not in ("largest", "smallest"):
        raise refuse("goal", goal, '"largest" or "smallest"')
    said = known or Known()
    if plan is not None:
        given = {"epsilon": epsilon, "mechanism": mechanism, "between": said.between, "like": said.like}
        given |= {"top": None if top == 1 else top, "how_much": how_much or None}
        refuse_given("‹plan›, which says what is asked and what it costs", **given)
    elif epsilon is None:
        raise refuse("epsilon", None, "given: the most the answer may cost (or ‹plan›, which says it)")
    public = scope.public
    number = int(one(counts, "top", top, least=1))
    if number > len(public):
        raise refuse("top", top, f"at most the number of candidates, {len(public)}")
    if len(public) == 1:
        raise InvalidParameter("there is only one candidate, so there is nothing to choose; ask about more")
    if isinstance(epsilon, str):
        raise refuse("epsilon", epsilon, "a number such as 0.1, not a text")
    whole = plan.epsilon if plan is not None else no_more_than(epsilon or 0)
    job = Job(
        asked="largest",
        family=public.family,
        count=len(public),
        epsilon=equal_part(whole, 2) if how_much else whole,
        public=_supposed(said, scope),
        goal=goal,
        top=number,
    )
    if plan is not None:
        plans = _planned(plan, scope, job)
    else:
        # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
        every = compare or mechanism in (None, "gaussian")
        names = [name for name in NAMES if every or name != "gaussian"]
        plans = {name: Plan.made(job, NAMES[name], epsilon=float(job.epsilon or 0.0)) for name in names}
    # On equal terms the first in the catalogue's order is used.
    best = mechanism or min(plans, key=lambda name: expected_of(plans[name]).shortfall)
    value, narrow = None, None
    if how_much:
        room = _with_room(public.family)
        value = LaplaceRelease.calibrated(room, candidates=number, epsilon=equal_part(whole, 2))
    if said.nothing:
        tenth = [(values - values.min()) / 10 + values.min() for values in job.series()]
        narrow = predict_choice(replace(job, top=1), plans[best].mechanism(), epsilon=whole, series=tenth).hits
    return PeakPlan(
        scope=scope,
        job=job,
        plans=plans,
        mechanism=best,
        forced="planned" if plan is not None else None if mechanism is None else "asked",
        value=value,
        known=said,
        narrow_hits=narrow,
    )


def _planned(plan: Plan, scope: Scope, job: Job) -> dict[str, Plan]:
    """The mechanism of a plan at the noise it states, on this table; what it costs is that of this table."""
    short, public = {name: key for key, name in NAMES.items()}, scope.public
    if plan.asked != "largest":
        raise InvalidParameter("‹plan› must be for a peak; this one is for a line to be reached: use it with watch")
    if plan.name not in short:
        raise InvalidParameter(f"‹plan› must be for one of {', '.join(short)}; this one is for {plan.name}")
    fitted = plan.fitted(public.family, unit=float(public.natural_unit), count=len(public))
    prediction = predict_choice(job, fitted.mechanism(), epsilon=fitted.epsilon)
    return {short[plan.name]: replace(fitted, prediction=prediction)}


def _supposed(known: Known, scope: Scope) -> Profile | Model:
    """What was said of the values, on the scale of the queries; where nothing was, what is usual.

    Under a cap that was stated for a longer period, what is usual is so many times less: an hour of a day's cap.
    """
    weekdays, family = scope.period == "weekday", scope.public.family
    if not known.nothing or not (weekdays or scope.parts_of_cap > 1):
        return known.public(unit=scope.public.natural_unit)
    shares = _WEEKDAYS if weekdays else (0.0, USUAL_SPAN)
    low, high = (family.lower + end * family.width / scope.parts_of_cap for end in shares)
    return Model(low=low, high=high)


def _with_room(family: QueryFamily) -> QueryFamily:
    """The same family over a range so much longer that totals of a great many more persons fit."""
    upper = family.lower + _ROOM * family.width
    return replace(family, upper=upper) if math.isfinite(upper) else family
