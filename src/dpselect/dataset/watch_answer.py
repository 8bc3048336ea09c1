"""What a watch has answered: which ones reach the line, how much they are where that was asked, and its report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Protocol

from dpselect.dataset.answer import Answer
from dpselect.dataset.budget import NOBODY_REMEMBERS, not_remembered
from dpselect.dataset.request import WatchRequest
from dpselect.dataset.scope import Scope
from dpselect.dataset.watch_run import WatchRun
from dpselect.mechanisms.mechanism import Noise
from dpselect.planning.plan import Plan
from dpselect.report import watch_words as words
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import Entry, Finding, Report, Spending
from dpselect.report.words import CUT, plural, with_margin
from dpselect.rounding import at_most
from dpselect.tables import CuratorReport


class _Planned(Protocol):
    """What an answer says of its plan, a :class:`~dpselect.dataset.watch.WatchPlan`."""

    @property
    def settings(self) -> Plan: ...
    @property
    def asked(self) -> WatchRequest: ...
    @property
    def scope(self) -> Scope | None: ...
    @property
    def line(self) -> str: ...
    @property
    def period(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def asked_in_words(self) -> str: ...
    @property
    def weakness(self) -> str | None: ...
    @property
    def unit(self) -> Fraction: ...
    @property
    def threshold(self) -> float: ...
    @property
    def budget(self) -> float: ...
    @property
    def shown_budget(self) -> float: ...
    @property
    def useful(self) -> bool: ...
    def with_unit(self, number: str) -> str: ...
    def margin_of(self, named: int) -> float: ...
    def asked_about(self) -> dict[str, Any]: ...
    def noise_chosen(self) -> dict[str, Any]: ...
    def asked_entries(self) -> list[Entry]: ...
    def noise_entries(self) -> list[Entry]: ...
    def expected_entries(self) -> list[Entry]: ...


@dataclass(frozen=True, kw_only=True, repr=False)
class Watch(Answer):
    """What a watch has answered, what it cost and how good such answers are expected to be.

    Attributes
    ----------
    above : list of int
        Places, from 0, of the questions answered ⊤; :attr:`labels` has their names.
    count : int
        How many were answered ⊤.
    amounts : list of float, optional
        Their values with noise, in the readings' unit, where they were asked for; each within ``margin`` of the truth
        95 times of 100.
    without_values : str
        Why the values are missing, where they were asked for.
    spent : list of float
        ε spent after each answer.
    cost : float
        What all of it cost, rounded up.
    answered : int
        How many questions were answered.
    ended : bool
        Whether the budget ended before the questions did.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows a seed.
    recorded, entry, repeats, since
        Whether a ledger has the answers, the number of the entry, how many answers it had before, and since when.
    drawn_before : dict, optional
        How the answers that are repeated were drawn, where that is not as planned now.
    run : WatchRun, optional
        What asked the questions, where that was one by one.
    """

    plan: _Planned
    noise: Noise
    above: list[int]
    spent: list[float]
    answered: int
    count: int
    cost: float
    ended: bool = False
    amounts: list[float] | None = None
    without_values: str = ""
    recorded: bool = False
    entry: int | None = None
    repeats: int = 0
    since: str | None = None
    drawn_before: dict[str, str] | None = None
    run: WatchRun | None = None
    examine: Callable[[], CuratorReport] | None = None

    def __repr__(self) -> str:
        return f"<Watch {self.count} of {self.answered} above {self.plan.line}>"

    @property
    def margin(self) -> float | None:
        """The values lie within this of the truth 95 times of 100, in the readings' unit; None without values."""
        return self.plan.margin_of(self.count) if self.amounts else None

    @property
    def clearly_below(self) -> tuple[int, ...]:
        """Places of those named whose released value lies below the line by more than its margin."""
        line, within = self.plan.threshold * float(self.plan.unit), self.margin or 0.0
        return tuple(place for place, one in zip(self.above, self.amounts or (), strict=False) if one + within < line)

    @property
    def repeated(self) -> bool:
        """Whether every answer is one that the ledger had."""
        return self.repeats >= self.answered > 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what was answered above."""
        return tuple(self.name(place) for place in self.above)

    def name(self, place: int) -> str:
        """What question ``place`` is called."""
        scope = self.plan.scope
        return f"question {place + 1}" if scope is None else scope.candidates.labels[place]

    @property
    def exhaustion(self) -> str:
        """What to say where the budget ended first."""
        return (
            f"budget exhausted: ε = {at_most(self.cost)} of {at_most(self.plan.budget)} spent after "
            f"{self.answered:,} answers; the next question does not fit and was not asked"
        )

    def to_dict(self) -> dict[str, Any]:
        """How it ended, as plain values."""
        plan, weakness = self.plan, self.plan.weakness
        kept: dict[str, Any] = {}
        if self.recorded:
            kept = {"ledger_entry": self.entry, "repeated": self.repeats}
        elif self.noise != "reproducible":
            kept = {"ledger": self._unrecorded}
        drawn = self.drawn_before
        return {
            **plan.asked_about(),
            "stopped": "budget exhausted" if self.ended else "end of input",
            "questions": self.answered,
            "above": self.count,
            **({} if self.amounts is None else {"amounts": self.amounts, "amount_margin": self.margin}),
            **({"clearly_below": [self.name(one) for one in self.clearly_below]} if self.amounts else {}),
            "spent": self.cost,
            "budget": plan.shown_budget,
            "noise": self.noise,
            **(plan.noise_chosen() if drawn is None or not self.repeated else {}),
            **({} if drawn is None else {"drawn_before": drawn}),
            **kept,
            **({} if weakness is None else {"note": weakness}),
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Each verdict, which says whether it is private at all, and then how the watch ended."""
        tops = set(self.above)
        for place in range(self.answered):
            verdict = {"period": self.name(place), "answer": "above" if place in tops else "below"}
            yield {**verdict, "spent": self.spent[place], "noise": self.noise}
        yield self.to_dict()

    @property
    def _unrecorded(self) -> str:
        scope = self.plan.scope
        return NOBODY_REMEMBERS if scope is None else not_remembered(scope.account.budget)

    def as_report(self) -> Report:
        """The answers for people."""
        plan, scope = self.plan, self.plan.scope
        listed, listed_as = self._listed()
        answer = f"{self.count:,} of {self.answered:,} {plural(plan.period)}"
        if self.ended and self.answered:
            answer = f"{self.count:,} of the first {self.answered:,} {plural(plan.period)}; the rest was not asked"
        found = Finding(
            question=plan.asked_in_words,
            answer=answer,
            listed=listed,
            listed_as=listed_as,
            details=tuple(self._details()),
            spending=Spending(
                # The values are drawn after the last answer, and their share belongs to what is shown.
                spent=(*self.spent[:-1], max(self.spent[-1], self.cost)) if self.amounts else tuple(self.spent),
                above=tuple(self.above),
                budget=plan.budget,
                first=self.name(0),
                last=self.name(max(0, self.answered - 1)),
                labels=() if scope is None else tuple(scope.candidates.labels),
            ),
        )
        drawn = words.drawn(
            plan.noise_entries(), plan.reason, before=self.drawn_before, repeated=self.repeats, answered=self.answered
        )
        return Report(
            title=f"When is {plan.line} crossed?",
            findings=(found,),
            guarantee=Guarantee(
                epsilon=plan.budget,
                delta=plan.settings.delta,
                neighbours="declared" if scope is None else scope.facts.neighbours,
                noise=self.noise,
            ),
            parameters=(
                *plan.asked_entries(),
                *drawn,
                *(() if not self.recorded else (("Ledger entry", f"{self.entry:,}"),)),
            ),
            notes=tuple(self._notes()),
            made=datetime.now(UTC).astimezone(),
        )

    def _listed(self) -> tuple[tuple[str, ...], str]:
        """Those above, with their values where they have any, and what stands over the list."""
        if not self.amounts:
            return self.labels, "Above"
        within, below = self.margin or 0.0, set(self.clearly_below)
        reach = self.plan.with_unit(with_margin(0.0, within).partition(" ± ")[2])
        marked = [place in below for place in self.above]
        return words.listed(self.labels, self.amounts, within=within, marked=marked), f"Above, each ± {reach}"

    def _details(self) -> Iterator[Entry]:
        plan = self.plan
        if plan.asked.how_much and self.above:
            yield "How much", CUT if self.amounts else f"not given: {self.without_values}"
        if self.clearly_below:
            yield "Marked *", "value below the line by more than its ±: probably named by noise"
        if self.ended:
            yield "Not asked", f"everything from {self.name(self.answered)} on: the budget ended"
        yield "Cost of these answers", f"ε = {at_most(self.cost)} of {at_most(plan.budget)}"
        if self.drawn_before is None or not self.repeated:
            yield from plan.expected_entries()

    def _notes(self) -> Iterator[str]:
        plan, scope = self.plan, self.plan.scope
        yield "Near the line an answer may fall on the wrong side: that is what protects people."
        if not plan.useful:
            yield "Asked for although this is hardly better than a guess: do not build on these answers."
        if scope is None or scope.facts.is_series:
            yield "The curator vouches for what one person can change."
        if scope is not None:
            yield from scope.cautions
        if self.repeats:
            otherwise = self.drawn_before is not None
            yield from words.repeated_answers(
                repeated=self.repeats, answered=self.answered, since=self.since, otherwise=otherwise
            )
        if not self.recorded:
            yield "The budget holds for this command alone: earlier answers from the same data add to it."
            yield words.into_the_sum(noise=self.noise, cost=self.cost, budget=plan.budget, delta=plan.settings.delta)
            if self.noise != "reproducible":
                yield self._unrecorded
