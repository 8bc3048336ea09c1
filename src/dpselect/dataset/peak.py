"""Which one is largest (or smallest): what an answer would cost and how good it would be, asking for it, the answer."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.checks import FloatArray
from dpselect.dataset import how_much as named_values
from dpselect.dataset import rows
from dpselect.dataset.answer import COARSER, Answer, AnswerPlan
from dpselect.dataset.budget import not_remembered, unpayable
from dpselect.dataset.identity import known_form, question_facts
from dpselect.dataset.identity_1 import peak_1
from dpselect.dataset.known import Known
from dpselect.dataset.scope import Scope
from dpselect.errors import BudgetExhausted, DPSelectError, InvalidParameter, refuse_given
from dpselect.mechanisms.catalogue import by_short_name, entry_of
from dpselect.mechanisms.mechanism import Noise
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.mechanisms.selection import Goal, NoisyMax
from dpselect.planning.job import Job
from dpselect.planning.plan import Plan
from dpselect.planning.planner import enough
from dpselect.planning.prediction import Prediction, predict_choice
from dpselect.planning.ways import OneShot, Promise
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss
from dpselect.report import peak_words as words
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import Entry, Finding, Report, Spending
from dpselect.report.words import CUT, UNCUT, three_digits, with_margin
from dpselect.rounding import at_most, rounded_up, upward
from dpselect.tables import BoundedQuery, CuratorReport

#: An answer that falls short by more than this share of what a blind guess does is not worth its cost.
_HARDLY_BETTER = 0.75
#: Of several that are named at least this share must be expected to belong there: below it most of the list is wrong.
_HALF = 0.5
#: So many times as many persons as the population says are added up before totals are cut.
_ROOM = 1024

#: The selections by the short names a person types: their names in the catalogue.
NAMES = {name: entry.name for name, entry in by_short_name("selection").items()}
#: What of an answer its places say as well.
_NAMES_IN_ANSWER = ("label", "labels")


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
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        return words.reason(entry_of(self.chosen.mechanism()).title, forced=self.forced, ways=len(self.plans))

    @property
    def expectation(self) -> str:
        """How good the answer is expected to be beside a blind guess, in the readings' unit, and what that rests on."""
        stated, with_unit = self.known.stated_in_words(self.scope.facts.with_unit), self.scope.facts.with_unit
        span = with_unit(three_digits(float(np.ptp(self.series[0])) * self.unit))
        return words.expectation(
            self.expected,
            goal=self.goal,
            top=self.top,
            shortfall=self.shortfall,
            rests_on=words.supposed(span, self.narrow_hits) if stated is None else stated,
        )

    @property
    def advice(self) -> str | None:
        """One sentence where another mechanism does clearly better at the same cost."""
        short = {name: made.prediction.shortfall for name, made in self.plans.items() if made.prediction is not None}
        return words.advice(short, chosen=self.mechanism, goal=self.goal, shortfall=self.shortfall)

    def refusal(self) -> str:
        """What to say, and what to do, where the answer would hardly be better than a guess."""
        more, longer = self.enough(), COARSER.get(self.scope.period, ())
        return words.refusal(
            expected=self.expectation,
            top=self.top,
            beats_a_guess=self.beats_a_guess,
            enough=None if more is None else more * self.cost(),
            coarser=next((periods for periods, number in longer if self.would_do_with(number)), None),
            cap=self.scope.long_cap,
        )

    @functools.cached_property
    def doubt(self) -> str | None:
        """What to say where what is named is probably not the largest; None where it probably is."""
        if self.probable or not self.useful:  # what is of no use is refused
            return None
        more = self.enough_to_be_right()
        costs = None if more is None else more * self.cost()
        return words.doubt(self.expected, goal=self.goal, shortfall=self.shortfall, enough=costs)

    def shortfall(self, share: float) -> str:
        """A share of the range in the readings' unit."""
        return self.scope.facts.with_unit(three_digits(share * self.scope.public.family.width * self.unit))

    @property
    def asked_in_words(self) -> str:
        """What is asked."""
        scope = self.scope
        return words.question(period=scope.period, measured=scope.measured, goal=self.goal, top=self.top)

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
        roomy, count = replace(made, family=with_room(made.family)), len(self.scope.candidates)
        free = roomy.top_epsilon(count, self.top) <= made.top_epsilon(count, self.top)
        return roomy if free and not self.scope.facts.is_series else made

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
        return None if self.value is None else named_values.margin(self.value) * self.unit

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

    def ask(
        self,
        *,
        anyway: bool = False,
        progress: Callable[[float], None] | None = None,
        key: str | None = None,
        afresh: bool = False,
    ) -> Peak:
        """Charges the budget, adds up the table, draws the noise: the answer.

        Columns that are not there are refused before the charge. An answer that would hardly be better than a guess is
        refused and costs nothing, unless asked for ``anyway``. With a ledger the charge is on disk before the table is
        touched, and the answer before it is shown; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`.
        """
        rows.check(self.scope)  # first: no ε helps where the columns cannot answer
        self.insist(anyway=anyway)
        read = functools.cache(lambda: rows.read(self.scope, progress=progress))
        account, book = self.scope.account, self.scope.account.book
        if book is None:
            refuse_given("a question without a ledger, which is always drawn anew", key=key, afresh=afresh or None)
            account.budget.charge(self.promise, parameter=self.priced_by)
            return Peak(plan=self, **_draw(self, read), examine=lambda: read().curator_report)
        left_out = () if _names_kept(self) else _NAMES_IN_ANSWER

        def draw() -> dict[str, Any]:
            return {name: one for name, one in _draw(self, read).items() if name not in left_out}

        question = self.question() if afresh else known_form(book, self.question(), self.question_1(), key=key)
        try:
            answered = book.ask(question, cost=self.promise, draw=draw, key=key, afresh=afresh, read=read)
        except BudgetExhausted:
            raise unpayable(book, self.shown_cost(), parameter=self.priced_by) from None
        return Peak(
            plan=self,
            **{**_named(self, answered.answer), **answered.answer},
            entry=answered.number,
            repeated=answered.repeated,
            given=answered.entry.at,
            examine=lambda: read().curator_report,
        )

    def save(self, path: Path | str) -> Path:
        """Keeps the plan in a file, for this table or another of the same range whose Δ is no larger."""
        if self.top > 1 or self.value is not None:
            raise InvalidParameter("a plan in a file is for one name: leave ‹top› and ‹how_much› out", parameter="top")
        if self.goal != "largest":
            raise InvalidParameter("a plan in a file is for the largest: leave ‹goal› out", parameter="goal")
        return replace(self.chosen, epsilon=self.shown_cost(), prediction=None, unit=self.unit).save(path)

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it. Noise is a part of it only where a plan states it."""
        return question_facts(
            "peak",
            **self.scope.identity(),
            goal=self.goal,
            top=self.top,
            values=self.value is not None,
            mechanism=self.mechanism,
            epsilon=rounded_up((2 if self.value is not None else 1) * float(self.job.epsilon or 0.0), digits=15),
            **({"scale": float(self.chosen.mechanism().scales[0])} if self.forced == "planned" else {}),
        )

    def question_1(self) -> dict[str, Any]:
        """The question as a ledger kept it before version 2."""
        return peak_1(
            self.scope,
            mechanism=self.mechanism,
            noise=noise_scale(self.chosen),
            goal=self.goal,
            top=self.top,
            value_scale=None if self.value is None else self.value.scale,
            epsilon=self.shown_cost(),
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
                **noise_scale(plan),
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


def noise_scale(plan: Plan) -> dict[str, float]:
    """The scale of the noise, under the name the mechanism has for it."""
    made = plan.mechanism()
    return {made.noise_names[0]: float(made.scales[0])}


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


def with_room(family: QueryFamily) -> QueryFamily:
    """The same family over a range so much longer that totals of a great many more persons fit."""
    upper = family.lower + _ROOM * family.width
    return replace(family, upper=upper) if math.isfinite(upper) else family


@dataclass(frozen=True, kw_only=True, repr=False)
class Peak(Answer):
    """The winner after noise, what it cost and how good such an answer is expected to be.

    Attributes
    ----------
    label, index : str, int
        The winner, and its place among the candidates.
    labels, indices : sequences
        All that were named, the first first.
    amounts : sequence of float or None
        Their values with noise, in the readings' unit, where they were asked for.
    epsilon, delta : float
        What the answer cost.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows a seed.
    plan : PeakPlan
        The mechanism, its noise and its expected accuracy.
    entry, repeated, given : int, bool, str
        With a ledger: the entry, whether it was there before, and since when.
    """

    plan: PeakPlan
    label: str
    index: int
    epsilon: float
    delta: float
    noise: Noise
    examine: Callable[[], CuratorReport]
    labels: Sequence[str] = ()
    indices: Sequence[int] = ()
    amounts: Sequence[float] | None = None
    entry: int | None = None
    repeated: bool = False
    given: str | None = None

    def __post_init__(self) -> None:
        # Of one winner a ledger keeps only the name and the place.
        if not self.labels:
            object.__setattr__(self, "labels", [self.label])
            object.__setattr__(self, "indices", [self.index])

    def __repr__(self) -> str:
        return f"<Peak {self.label!r} at ε = {at_most(self.epsilon)}, {self.plan.mechanism}>"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, ready for JSON."""
        plan = self.plan
        return {
            "question": plan.asked_in_words,
            **plan.scope.to_dict(),
            "answer": self.label,
            "index": self.index,
            **({} if plan.top == 1 else {"answers": list(self.labels), "indices": list(self.indices), "rho": plan.rho}),
            **({} if self.amounts is None else {"amounts": list(self.amounts), "amount_margin": plan.margin}),
            **({} if plan.goal == "largest" else {"goal": plan.goal}),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "mechanism": plan.mechanism,
            **noise_scale(plan.chosen),
            "query_unit": plan.unit,
            "candidates": len(plan.scope.candidates),
            **plan.expected_values(plan.mechanism),
            "reason": plan.reason,
            "advice": plan.advice,
            **(
                {}
                if self.entry is None
                else {"ledger_entry": self.entry, "repeated": self.repeated, "given": self.given}
            ),
            **({} if plan.weakness is None else {"note": plan.weakness}),
        }

    def as_report(self) -> Report:
        """The answer for people."""
        plan, facts = self.plan, self.plan.scope.facts
        several, law = plan.top > 1, entry_of(plan.chosen.mechanism()).noise
        unit = facts.with_unit("")
        if facts.unit is None and plan.unit != 1:
            unit = f" in the unit of {facts.value or 'the reading'}"
        said = plan.expectation
        details: list[Entry] = [(f"Place {place + 1}", self._told(place)) for place in range(1, len(self.labels))]
        if self.amounts is not None:
            details.append(("How much", CUT if plan.is_cut else UNCUT))
        found = Finding(
            question=plan.asked_in_words,
            answer=f"Place 1: {self._told(0)}" if several else self._told(0),
            details=(*details, ("Expected", f"{said[0].upper()}{said[1:]}.")),
            spending=Spending(spent=(self.epsilon,), above=(), budget=self.epsilon),
        )
        rho = (
            f"a ledger that adds up ρ (zCDP) takes ρ = {at_most(plan.rho)} for this one: many answers then come to less"
        )
        return Report(
            title=f"The {plan.top} {plan.goal}" if several else f"The {plan.scope.period} with the {plan.goal} value",
            findings=(found,),
            guarantee=Guarantee(epsilon=self.epsilon, neighbours=facts.neighbours, noise=self.noise),
            parameters=(
                *plan.scope.parameters(),
                ("Mechanism", plan.reason),
                ("Noise", words.noise(law, sum(noise_scale(plan.chosen).values()) * plan.unit) + unit),
                *((("For many answers", rho),) if several else ()),
                *(() if self.entry is None else (("Ledger entry", f"{self.entry:,}"),)),
            ),
            notes=tuple(self._notes()),
            made=datetime.now(UTC).astimezone(),
        )

    def _told(self, place: int) -> str:
        if self.amounts is None:
            return self.labels[place]
        amount = with_margin(self.amounts[place], self.plan.margin or 0.0)
        return f"{self.labels[place]} ({self.plan.scope.facts.with_unit(amount)})"

    def _notes(self) -> Iterator[str]:
        plan, scope = self.plan, self.plan.scope
        yield from words.notes(
            plan.expected,
            goal=plan.goal,
            probable=plan.probable,
            epsilon=self.epsilon,
            noise=self.noise,
            unrecorded=not_remembered(scope.account.budget) if self.entry is None else None,
            repeated_from=self.given if self.repeated else None,
        )
        yield from self._doubts()
        if plan.top > 1:
            yield "Places are uncertain: each is drawn with noise of its own, and the order most of all."
        if scope.facts.is_series:
            yield "The rows were added up beforehand: the curator vouches for what one person can change."
        yield from scope.cautions

    def _doubts(self) -> Iterator[str]:
        """What to say of a population that may not hold, and of values at an end of their range."""
        plan, facts, family = self.plan, self.plan.scope.facts, self.plan.scope.public.family
        lower, upper = (float(end) * plan.unit for end in (family.lower, family.upper))
        amounts = self.amounts or ()
        if facts.is_series:
            yield words.doubts_of_a_series(plan.scope.cap_in_words)
        elif facts.population is not None:
            beyond = facts.with_unit(f"{upper:g}") if max(amounts, default=upper) > upper else None
            said = words.doubts_of_a_population(
                facts.population, is_cut=plan.is_cut, beyond=beyond, divided=plan.unit != 1
            )
            yield from () if said is None else (said,)
        cut = words.doubts_of_ends(self.labels, amounts, (lower, upper))
        yield from () if cut is None else (cut,)


def _names_kept(plan: PeakPlan) -> bool:
    """Whether a ledger keeps the names in the answer, or their places among the candidates alone."""
    from dpselect.dataset.kept import names_fit  # brings SQLAlchemy

    labels, family = plan.scope.candidates.labels, plan.scope.public.family
    worst: dict[str, Any] = {
        "index": len(labels),
        "indices": [len(labels)] * plan.top,
        "epsilon": plan.shown_cost(),
        "delta": 0.0,
        "noise": "reproducible",
    }
    if plan.value is not None:
        # The ends, which must be finite, and no number is written longer than this one.
        ends = [float(family.lower) * plan.unit, float(plan.value.family.upper) * plan.unit]
        worst["amounts"] = [*ends, *[-sys.float_info.max] * plan.top]
    return names_fit(labels, worst, top=plan.top)


def _named(plan: PeakPlan, answer: dict[str, Any]) -> dict[str, Any]:
    """The names in an answer, by their places."""
    names = [plan.scope.candidates.labels[index] for index in answer.get("indices", [answer["index"]])]
    return {"label": names[0], **({} if plan.top == 1 else {"labels": names})}


def _draw(plan: PeakPlan, read: Callable[[], BoundedQuery]) -> dict[str, Any]:
    queries, entropy = read(), plan.scope.account.entropy
    values = queries.values if plan.is_cut else queries.uncut_values
    # Values outside the range are cut to it: refusing them would say something about the data.
    found = plan.drawing.top(values, plan.top, goal=plan.goal, entropy=entropy, outside="clip")
    amounts = None
    if plan.value is not None:
        named = [values[index] for index in found.indices]
        drawn = named_values.draw(plan.value, named, entropy=entropy, within=plan.scope.public.family)
        amounts = [value * plan.unit for value in drawn]
    return {
        "label": queries.labels[found.indices[0]],
        "index": int(found.indices[0]),
        **({} if plan.top == 1 else {"labels": [queries.labels[index] for index in found.indices]}),
        **({} if plan.top == 1 else {"indices": [int(index) for index in found.indices]}),
        "epsilon": plan.shown_cost(),
        "delta": 0.0,
        "noise": found.noise,
        **({} if amounts is None else {"amounts": amounts}),
    }
