"""Which one is largest (or smallest), how much it is where that was asked: asked, and the answer."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much
from dpselect.dataset.answer import Answer
from dpselect.dataset.book import NOBODY_REMEMBERS, unpayable
from dpselect.dataset.facts import period_word
from dpselect.dataset.peak_plan import PeakPlan, noise_in_words, note, plan_peak, scale
from dpselect.errors import BudgetExhausted, InvalidParameter, refuse_given
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.rounding import at_most
from dpselect.report.words import plural

if TYPE_CHECKING:
    from dpselect.mechanisms.mechanism import Noise
    from dpselect.report.record import Entry
    from dpselect.tables import BoundedQuery, CuratorReport

#: What of an answer its places say as well.
_NAMES_IN_ANSWER = ("label", "labels")

__all__ = ["Peak", "PeakPlan", "plan_peak"]


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
            "question": self.question,
            **plan.dataset.asked_about(plan.candidates),
            "answer": self.label,
            "index": self.index,
            **({} if plan.top == 1 else {"answers": list(self.labels), "indices": list(self.indices), "rho": plan.rho}),
            **({} if self.amounts is None else {"amounts": list(self.amounts), "amount_margin": plan.margin}),
            **({} if plan.goal == "largest" else {"goal": plan.goal}),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "mechanism": plan.mechanism,
            **scale(plan.chosen),
            "query_unit": plan.unit,
            "candidates": len(plan.candidates),
            **plan.expected(plan.chosen.accuracy),
            "reason": plan.reason,
            "advice": plan.advice,
            **(
                {}
                if self.entry is None
                else {"ledger_entry": self.entry, "repeated": self.repeated, "given": self.given}
            ),
            **note(plan.weakness),
        }

    @property
    def question(self) -> str:
        """What was asked, in words."""
        plan = self.plan
        what, measured = period_word(plan.candidates), plan.dataset.measured(plan.candidates)
        if plan.top > 1:
            return f"For which {plan.top} {plural(what)} is {measured} {plan.goal}, in order?"
        return f"For which {what} is {measured} {plan.goal}?"

    def as_report(self) -> Report:
        """The answer for people."""
        plan, dataset = self.plan, self.plan.dataset
        what, several = period_word(plan.candidates), plan.top > 1
        notes = [
            f"The answer is the winner after noise: one of the {plan.goal}, not surely the {plan.goal}.",
        ]
        if self.noise == "reproducible":
            notes.append(NOTHING_TO_ADD)
        elif not self.repeated:
            notes.append(f"Into the running sum of all answers about the same people goes ε = {at_most(self.epsilon)}.")
        if self.entry is None and self.noise != "reproducible":
            notes.append(NOBODY_REMEMBERS)
        if self.repeated and self.given is not None:
            when = datetime.fromisoformat(self.given).astimezone(UTC)
            notes.append(
                f"The question was asked before: this is its first answer, given {when:%Y-%m-%d at %H:%M} UTC. It cost "
                "nothing now, and says nothing of rows that came or changed since; to ask about them, draw it afresh "
                "and pay again."
            )
        notes.extend(self._doubts())
        notes.extend(self._at_an_end())
        if several:
            notes.append("Places are uncertain: each is drawn with noise of its own, and the order most of all.")
        if dataset.is_series:
            notes.append("The rows were added up beforehand: the curator vouches for what one person can change.")
        notes.extend(dataset.cautions(plan.candidates))
        found = Finding(
            question=self.question,
            answer=f"Place 1: {self._told(0)}" if several else self._told(0),
            details=self._details(),
            spending=Spending(spent=(self.epsilon,), above=(), budget=self.epsilon),
        )
        return Report(
            title=f"The {plan.top} {plan.goal}" if several else f"The {what} with the {plan.goal} value",
            findings=(found,),
            guarantee=Guarantee(epsilon=self.epsilon, neighbours=dataset.neighbours, noise=self.noise),
            parameters=(
                *dataset.parameters(plan.candidates),
                ("Mechanism", plan.reason),
                ("Noise", noise_in_words(plan.chosen, unit=plan.unit) + self._unit),
                *((("For many answers", f"a ledger that adds up ρ (zCDP) takes {_rho(plan)}"),) if several else ()),
                *(() if self.entry is None else (("Ledger entry", f"{self.entry:,}"),)),
            ),
            notes=tuple(notes),
            made=datetime.now(UTC).astimezone(),
        )

    def _at_an_end(self) -> list[str]:
        """What to say of values with noise that lie at an end of their range."""
        family = self.plan.public.family
        ends = {float(end) * self.plan.unit for end in (family.lower, family.upper)}
        cut = [label for label, amount in zip(self.labels, self.amounts or (), strict=False) if amount in ends]
        if not cut:
            return []
        return [f"The value of {', '.join(cut)} is an end of the range: check cap, population and dates."]

    def _doubts(self) -> list[str]:
        """What to say of a population that may not hold; private data is not looked at."""
        plan = self.plan
        if plan.dataset.population is None:
            return []
        most = f"{plan.dataset.population:,} persons"
        if plan.is_cut:
            return [
                f"With rows of more than {most} the totals would be cut and the answer could be wrong; describing the "
                "table shows it."
            ]
        end = float(plan.public.family.upper) * plan.unit
        if self.amounts is None or max(self.amounts) <= end:
            return []
        return [
            f"More than {most} must have rows, for a value above {plan.dataset.with_unit(f'{end:g}')} is more than so "
            f"many can come to. The choice does not suffer"
            + (", but the values are too large: they are divided by that number." if plan.unit != 1 else ".")
            + " Describe the table and give a population that holds."
        ]

    @property
    def _unit(self) -> str:
        """What stands behind a noise scale."""
        dataset = self.plan.dataset
        if dataset.unit is not None or self.plan.unit == 1:
            return dataset.with_unit("")
        return f" in the unit of {dataset.value or 'the reading'}"

    def _told(self, place: int) -> str:
        if self.amounts is None:
            return self.labels[place]
        amount = how_much.told(self.amounts[place], self.plan.margin or 0.0)
        return f"{self.labels[place]} ({self.plan.dataset.with_unit(amount)})"

    def _details(self) -> tuple[Entry, ...]:
        entries = [(f"Place {place + 1}", self._told(place)) for place in range(1, len(self.labels))]
        if self.amounts is not None:
            entries.append(("How much", how_much.MEANING))
        said = self.plan.expectation
        return (*entries, ("Expected", f"{said[0].upper()}{said[1:]}."))


def ask(plan: PeakPlan, *, progress: Callable[[float], None] | None, key: str | None, afresh: bool) -> Peak:
    """Charges the budget, adds up the table, draws the noise; see :meth:`PeakPlan.ask`."""
    dataset, candidates, cost = plan.dataset, plan.candidates, plan.cost(plan.mechanism)
    dataset.check(candidates)
    read = functools.cache(lambda: dataset.read(candidates, progress=progress))
    if dataset.book is None:
        refuse_given("a question without a ledger, which is always drawn anew", key=key, afresh=afresh or None)
        dataset.budget.charge(cost)
        return Peak(plan=plan, **_draw(plan, read), examine=lambda: read().curator_report)
    names = _names_kept(plan)
    try:
        answered = dataset.book.ask(
            plan.question(),
            cost=Loss(epsilon=cost),
            draw=lambda: {
                name: one for name, one in _draw(plan, read).items() if names or name not in _NAMES_IN_ANSWER
            },
            key=key,
            afresh=afresh,
            read=read,
        )
    except BudgetExhausted:
        raise unpayable(dataset.book, plan.shown_cost(plan.mechanism)) from None
    return Peak(
        plan=plan,
        **{**_named(plan, answered.answer), **answered.answer},
        entry=answered.number,
        repeated=answered.repeated,
        given=answered.entry.at,
        examine=lambda: read().curator_report,
    )


def _rho(plan: PeakPlan) -> str:
    return f"ρ = {at_most(plan.rho)} for this one: many answers then come to less"


def _names_kept(plan: PeakPlan) -> bool:
    """Whether a ledger keeps the names in the answer, or their places among the candidates alone.

    Decided for every answer there can be, before one is drawn: that a drawn one is refused would tell of it.
    """
    from dpselect.ledger.wording import written

    labels, family = plan.candidates.labels, plan.public.family
    longest = sorted(labels, key=lambda label: len(json.dumps(label)))[-plan.top :]
    worst: dict[str, Any] = {
        "index": len(labels),
        "indices": [len(labels)] * plan.top,
        "epsilon": plan.shown_cost(plan.mechanism),
        "delta": 0.0,
        "noise": "reproducible",
    }
    if plan.value is not None:
        # The ends, which must be finite, and no number is written longer than this one.
        ends = [float(family.lower) * plan.unit, float(plan.value.family.upper) * plan.unit]
        worst["amounts"] = [*ends, *[-sys.float_info.max] * plan.top]
    for names in (True, False):
        try:
            if names:
                for label in labels:
                    written("answer", label)
            written("answer", {"answer": worst | ({"label": longest[-1], "labels": longest} if names else {})})
        except InvalidParameter:
            continue
        return names
    raise InvalidParameter(
        "the answer may be more than an entry of a ledger holds; give a smaller ‹top›; nothing was spent",
        parameter="top",
    )


def _named(plan: PeakPlan, answer: dict[str, Any]) -> dict[str, Any]:
    """The names in an answer, by their places."""
    names = [plan.candidates.labels[index] for index in answer.get("indices", [answer["index"]])]
    return {"label": names[0], **({} if plan.top == 1 else {"labels": names})}


def _draw(plan: PeakPlan, read: Callable[[], BoundedQuery]) -> dict[str, Any]:
    from dpselect.noise.entropy import SYSTEM_ENTROPY

    queries, entropy = read(), plan.dataset.entropy or SYSTEM_ENTROPY
    values = queries.values if plan.is_cut else queries.uncut_values
    # Values outside the range are cut to it: refusing them would say something about the data.
    found = plan.drawing.top(values, plan.top, goal=plan.goal, entropy=entropy, outside="clip")
    amounts = None
    if plan.value is not None:
        named = [values[index] for index in found.indices]
        drawn = how_much.draw(plan.value, named, entropy=entropy, within=plan.public.family)
        amounts = [value * plan.unit for value in drawn]
    return {
        "label": queries.labels[found.indices[0]],
        "index": int(found.indices[0]),
        **({} if plan.top == 1 else {"labels": [queries.labels[index] for index in found.indices]}),
        **({} if plan.top == 1 else {"indices": [int(index) for index in found.indices]}),
        "epsilon": plan.shown_cost(plan.mechanism),
        "delta": 0.0,
        "noise": found.noise,
        **({} if amounts is None else {"amounts": amounts}),
    }
