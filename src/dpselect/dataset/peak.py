"""Which one is largest (or smallest), how much it is where that was asked: the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much
from dpselect.dataset.answer import Answer
from dpselect.dataset.book import NOBODY_REMEMBERS
from dpselect.dataset.facts import period_word
from dpselect.dataset.peak_plan import PeakPlan, noise_in_words, note, plan_peak, scale, scale_of
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.rounding import at_most
from dpselect.report.words import plural

if TYPE_CHECKING:
    from dpselect.mechanisms.outcomes import Noise
    from dpselect.report.record import Entry
    from dpselect.tables import CuratorReport

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
            "unit": plan.unit,
            "candidates": len(plan.candidates),
            "expected_shortfall": plan.chosen.accuracy.shortfall,
            "expected_hits": plan.chosen.accuracy.hits,
            "guess_shortfall": plan.guess.shortfall,
            "guess_hits": plan.guess.hits,
            "reason": plan.reason,
            "advice": plan.advice,
            **({} if self.entry is None else {"ledger_entry": self.entry, "repeated": self.repeated}),
            **note(plan.weakness),
        }

    def as_report(self) -> Report:
        """The answer for people."""
        plan, dataset, chosen = self.plan, self.plan.dataset, self.plan.chosen
        what = period_word(plan.candidates)
        in_unit = ""
        if plan.unit != 1:
            scale = scale_of(chosen) * plan.unit
            unit = dataset.unit or f"in the unit of {dataset.value or 'the reading'}"
            in_unit = f" ({at_most(scale)} {unit})"
        notes = [
            f"The answer is the winner after noise: one of the {plan.goal}, not surely the {plan.goal}. Expected on a "
            f"simulated seasonal series over a ninth of the range: {plan.expectation}.",
            NOTHING_TO_ADD
            if self.noise == "reproducible"
            else f"Into the running sum of all answers about the same people goes ε = {at_most(self.epsilon)}.",
        ]
        if self.entry is None and self.noise != "reproducible":
            notes.append(NOBODY_REMEMBERS)
        if self.repeated:
            notes.append("The question was asked before: this is its first answer, and it cost nothing now.")
        if dataset.is_series:
            notes.append("The rows were added up beforehand: the curator vouches for what one person can change.")
        found = Finding(
            question=f"For which {what} is {dataset.measured(plan.candidates)} {plan.goal}?"
            if plan.top == 1
            else f"For which {plan.top} {plural(what)} is {dataset.measured(plan.candidates)} {plan.goal}, in order?",
            answer=self._told(0) if plan.top == 1 else self.label,
            details=self._details(),
            spending=Spending(spent=(self.epsilon,), above=(), budget=self.epsilon),
        )
        return Report(
            title=f"The {what} with the {plan.goal} value" if plan.top == 1 else f"The {plan.top} {plan.goal}",
            findings=(found,),
            guarantee=Guarantee(epsilon=self.epsilon, neighbours=dataset.neighbours, noise=self.noise),
            parameters=(
                *dataset.parameters(plan.candidates),
                ("Mechanism", plan.reason),
                ("Noise", noise_in_words(chosen) + in_unit),
                *(() if self.entry is None else (("Ledger entry", f"{self.entry:,}"),)),
            ),
            notes=tuple(notes),
            made=datetime.now(UTC).astimezone(),
        )

    def _told(self, place: int) -> str:
        if self.amounts is None:
            return self.labels[place]
        amount = how_much.told(self.amounts[place], self.plan.margin or 0.0)
        return f"{self.labels[place]} ({self.plan.dataset.with_unit(amount)})"

    def _details(self) -> tuple[Entry, ...]:
        plan, entries = self.plan, list[tuple[str, str]]()
        if plan.top > 1:
            entries += [(f"Place {place + 1}", self._told(place)) for place in range(len(self.labels))]
        if self.amounts is not None:
            entries.append(("How much", how_much.MEANING))
        if plan.top > 1:
            both = f"pure ε = {at_most(self.epsilon)}; as zCDP ρ = {at_most(plan.rho)}"
            entries.append(("Cost", f"{both}. The promise here is the pure one"))
        return tuple(entries)
