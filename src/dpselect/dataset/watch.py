"""Which ones reach the line, how much they are where that was asked: the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much
from dpselect.dataset.answer import Answer
from dpselect.dataset.book import NOBODY_REMEMBERS
from dpselect.dataset.watch_plan import WatchPlan, plan_stream, plan_watch
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.outcomes import Verdict
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.rounding import at_most
from dpselect.report.words import plural

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.dataset.kept import KeptWatch
    from dpselect.dataset.published import PublishedVector
    from dpselect.noise.entropy import Entropy
    from dpselect.report.record import Entry
    from dpselect.tables import BoundedQuery, CuratorReport

#: So many values fit an entry of a ledger, however long their numbers are.
MOST_VALUES = 2000

__all__ = ["Watch", "WatchPlan", "plan_stream", "plan_watch"]


@dataclass(kw_only=True, repr=False)
class Watch(Answer):
    """A watch and what it has answered so far.

    Attributes
    ----------
    above : list of int
        Places, from 0, of the questions answered ⊤; :attr:`labels` has their names.
    amounts : list of float, optional
        Their values with noise, in the readings' unit, where they were asked for; each within ``margin`` of the truth
        95 times of 100.
    spent : list of float
        ε spent after each answer.
    answered : int
        How many questions were answered.
    ended : bool
        Whether the budget ended before the questions did.
    """

    plan: WatchPlan
    vector: SparseVector | PublishedVector
    spent: list[float] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    amounts: list[float] | None = None
    answered: int = 0
    ended: bool = False
    examine: Callable[[], CuratorReport] | None = None
    keep: bool = True
    kept: KeptWatch | None = None
    #: How many were answered ⊤.
    count: int = 0
    _spent_on_values: float = 0.0
    _without_values: str = ""

    def __repr__(self) -> str:
        return f"<Watch {self.count} of {self.answered} above {self.plan.line}>"

    @property
    def repeating(self) -> bool:
        """Whether the next answer is in the ledger already."""
        return self.kept is not None and self.kept.repeating

    @property
    def fits(self) -> bool:
        """Whether one more question may be asked."""
        return self.repeating or ((self.kept is None or not self.kept.over) and self.vector.fits)

    @property
    def cost(self) -> float:
        """What the answers cost, those before a restart included, rounded up."""
        if self.kept is not None:
            return self.kept.spent(self.vector)
        extra = self._spent_on_values
        return math.nextafter(self.vector.spent + extra, math.inf) if extra else self.vector.spent

    @property
    def margin(self) -> float | None:
        """The values lie within this of the truth 95 times of 100, in the readings' unit; None without values."""
        return self.plan.margin(self.count) if self.amounts else None

    def ask(self, value: float | Fraction, *, name: str | int | None = None) -> bool:
        """One question, with its public name if it has one: whether it is answered above the line."""
        if self.kept is not None and self.kept.repeating:
            above = self.kept.repeat(name)
        else:
            above = self.vector.ask(value) is Verdict.ABOVE
            if self.kept is not None:
                self.kept.add(above, name)
        self.count += above
        if self.keep:
            if above:
                self.above.append(self.answered)
            self.spent.append(self.cost)
        self.answered += 1
        return above

    def settle(self, *, ended: bool) -> None:
        """Ends the watch in the ledger, where there is one: down to what the answers cost.

        ``ended`` says that there is nothing more to ask; otherwise the same watch may go on later.
        """
        if self.kept is not None:
            self.kept.settle(self.vector, ended=ended)

    @contextmanager
    def abandoned_with_care(self) -> Iterator[None]:
        """Leaves the ledger as it should be where this fails or is interrupted; the failure then says what it holds."""
        try:
            yield
        except BaseException as failure:
            if self.kept is not None:
                failure.add_note(self.kept.give_up(self.vector, failure, ended=self.ended))
            raise

    def add_amounts(self, read: Callable[[], BoundedQuery], *, entropy: Entropy) -> None:
        """The values of those named, with noise that is drawn once all names are there."""
        plan, named = self.plan, list(self.above)
        if not named:
            self.amounts = []
            return

        def draw() -> list[float]:
            drawn = how_much.draw(plan.release(len(named)), read().values[named], entropy=entropy)
            return [one * float(plan.unit) for one in drawn]

        if self.kept is None:
            self._spent_on_values, self.amounts = plan.asked.part, draw()
        elif len(named) > MOST_VALUES:  # known before they are drawn: that drawn ones are refused would tell of them
            self._without_values = "they are more than an entry of the ledger holds"
        else:
            try:
                self.amounts = self.kept.values(draw, read=read)
            except BudgetExhausted:  # the names stand
                self._without_values = "others have used what was left in the ledger"

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what was answered above."""
        return tuple(self.name(place) for place in self.above)

    def name(self, place: int) -> str:
        """What question ``place`` is called."""
        names: Sequence[str] = self.plan.candidates.labels if self.plan.candidates is not None else ()
        return names[place] if names else f"question {place + 1}"

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
        if self.kept is not None:
            kept = {"ledger_entry": self.kept.number, "repeated": self.kept.repeated}
        elif self.vector.noise != "reproducible":
            kept = {"ledger": NOBODY_REMEMBERS}
        return {
            "stopped": "budget exhausted" if self.ended else "end of input",
            "questions": self.answered,
            "above": self.count,
            **({} if self.amounts is None else {"amounts": self.amounts, "amount_margin": self.margin}),
            "spent": self.cost,
            "budget": plan.shown_budget,
            "noise": self.vector.noise,
            "mechanism": plan.mechanism,
            "reason": plan.reason,
            **({} if plan.outlook is None else plan.outlook.to_dict()),
            **kept,
            **({} if weakness is None else {"note": weakness}),
        }

    def as_report(self, *, named: int | None = None) -> Report:
        """The answers for people; with ``named``, only so many of those above are listed by name."""
        plan, dataset = self.plan, self.plan.dataset
        what = "the value" if dataset is None else dataset.measured(plan.candidates)
        several = plural(plan.period)
        found = Finding(
            question=f"For which {several} is {what} at or above {plan.line}?",
            answer=f"{self.count:,} of {self.answered:,} {several}",
            details=self._details(named),
            spending=Spending(
                # The values are drawn after the last answer, and their share belongs to what is shown.
                spent=(*self.spent[:-1], max(self.spent[-1], self.cost)) if self.amounts else tuple(self.spent),
                above=tuple(self.above),
                budget=plan.budget,
                first=self.name(0),
                last=self.name(max(0, self.answered - 1)),
                labels=() if plan.candidates is None else tuple(plan.candidates.labels),
            ),
        )
        return Report(
            title=f"When is {plan.line} crossed?",
            findings=(found,),
            guarantee=Guarantee(
                epsilon=plan.budget,
                delta=plan.settings.delta,
                neighbours="declared" if dataset is None else dataset.neighbours,
                noise=self.vector.noise,
            ),
            parameters=(
                *plan.parameters(),
                *(() if self.kept is None else (("Ledger entry", f"{self.kept.number:,}"),)),
            ),
            notes=tuple(self._notes()),
            made=datetime.now(UTC).astimezone(),
        )

    def _details(self, named: int | None) -> tuple[Entry, ...]:
        plan, names = self.plan, list(self.labels)
        if self.amounts:
            within = self.margin or 0.0
            names = [f"{name} ({how_much.told(one, within)})" for name, one in zip(names, self.amounts, strict=True)]
        rest = 0 if named is None else max(0, len(names) - named)
        listed = ", ".join(names[:named]) + (f" and {rest} more, all of them on the page" if rest else "")
        details = [("Above", listed)] if names else []
        if plan.asked.how_much and names:
            unit = "" if plan.dataset is None or plan.dataset.unit is None else f"in {plan.dataset.unit}; "
            meaning = f"{unit}{how_much.MEANING}" if self.amounts else f"not given: {self._without_values}"
            details.append(("How much", meaning))
        if self.ended:
            details.append(("Not asked", f"everything from {self.name(self.answered)} on: the budget ended"))
        details.append(("Cost of these answers", f"ε = {at_most(self.cost)} of {at_most(plan.budget)}"))
        details.append(("Expected", f"{plan.expectation}."))
        return tuple(details)

    def _notes(self) -> Iterator[str]:
        plan, dataset, kept = self.plan, self.plan.dataset, self.kept
        yield "Near the line an answer may fall on the wrong side: that is what protects people."
        if not plan.useful:
            yield "Asked for although this is hardly better than a guess: do not build on these answers."
        if dataset is None or dataset.is_series:
            yield "The curator vouches for what one person can change."
        if dataset is not None and plan.candidates is not None:
            yield from dataset.cautions(plan.candidates)
        if kept is not None and kept.repeated:
            which = "These answers" if kept.repeated >= self.answered else f"The first {kept.repeated:,} answers"
            when = "" if kept.since is None else f" on {kept.since[:10]} at {kept.since[11:16]} UTC"
            yield (
                f"{which} were first given{when}: they are repeated, and cost nothing now. The rows may have changed "
                "since."
            )
            if kept.answers.by_then != kept.answers.by:
                yield "They were drawn with other noise than would be used now; what is expected is said of now."
        if kept is None:
            yield "The budget holds for this command alone: earlier answers from the same data add to it."
            yield self._into_the_sum()
            if self.vector.noise != "reproducible":
                yield NOBODY_REMEMBERS

    def _into_the_sum(self) -> str:
        """Which of the two numbers counts beside other answers about the same people (THEORY §4)."""
        if self.vector.noise == "reproducible":
            return NOTHING_TO_ADD
        if self.plan.settings.delta > 0:
            return "Into the running sum go the ε and δ of the guarantee, not the cost of these answers."
        return (
            f"Into the running sum goes the guarantee, ε = {at_most(self.plan.budget)}; the smaller cost of "
            "these answers only under a limit set beforehand in which the whole budget still fitted."
        )
