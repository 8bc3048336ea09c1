"""What asking which ones reach the line would cost and how good it would be, before anything is read."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.facts import period_word
from dpselect.dataset.line import Line, Settings, planned
from dpselect.dataset.outlook import Outlook, choose, foresee, remedy
from dpselect.errors import InvalidData, InvalidParameter, refuse_given
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.rounding import at_most, no_more_than, rounded_up
from dpselect.report.words import percent, plural

if TYPE_CHECKING:
    from dpselect.dataset.watch import Watch
    from dpselect.ledger import Ledger
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily
    from dpselect.report.record import Entry
    from dpselect.tables import Candidates


@dataclass(frozen=True, kw_only=True)
class WatchPlan:
    """What a watch would cost and how good it would be, from public knowledge alone.

    Attributes
    ----------
    settings : Settings
        Line, budget and noise of the names, on the scale of the queries.
    asked : Line
        What was asked for.
    questions, expected_above : int
        How many are expected, and how many of them ⊤.
    outlook : Outlook, optional
        How good the answers are expected to be; None where no value can be on both sides of the line.
    unit : Fraction
        What a query of 1 is in the readings' unit.
    dataset, candidates
        What is watched; None for questions that come from elsewhere.
    """

    settings: Settings
    asked: Line
    questions: int
    expected_above: int
    outlook: Outlook | None = None
    unit: Fraction = Fraction(1)
    dataset: Dataset | None = None
    candidates: Candidates | None = None

    @property
    def budget(self) -> float:
        """The most all answers may cost, the values of those named included."""
        return self.settings.budget if not self.asked.how_much else no_more_than(self.asked.stated("budget"))

    @property
    def shown_budget(self) -> float:
        """The same as it was typed: 0.1, not the largest double that is not above one tenth."""
        return rounded_up(self.budget, digits=15)

    @property
    def period(self) -> str:
        """What one question is about."""
        return "question" if self.candidates is None else period_word(self.candidates)

    @property
    def line(self) -> str:
        """The threshold in the readings' unit."""
        return self.with_unit(f"{self.settings.threshold * float(self.unit):.10g}")

    @property
    def weakness(self) -> str | None:
        """What to say of a budget too large to promise much."""
        return Guarantee(epsilon=self.budget, delta=self.settings.delta).weakness

    @property
    def futility(self) -> str | None:
        """What to say where no value can be on both sides of the line."""
        family, unit, threshold = self.settings.family, float(self.unit), self.settings.threshold
        if family.lower <= threshold <= family.upper:
            return None
        side, every = ("above", "below") if threshold > family.upper else ("below", "above")
        ends = f"[{family.lower * unit:.10g}, {family.upper * unit:.10g}]"
        return (
            f"the line at {self.line} lies {side} everything a question can be, {ends}: without noise every answer "
            f"would be {every}, and the budget is spent on noise alone"
        )

    @property
    def useful(self) -> bool:
        """Whether the answers are expected to be clearly better than a guess that looks at no data."""
        return self.outlook is not None and self.outlook.useful

    @property
    def mechanism(self) -> str:
        """The contender that answers, for machines."""
        return self.settings.as_plan(questions=self.questions).contender

    @property
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        law, _, _ = self.noise()
        title = f"{law[0].upper()}{law[1:]} noise{' ' if self._published else ', '}{self._after}"
        if self.asked.plan is not None:
            return f"{title}: as planned."
        if self.outlook is None or not self.outlook.chosen:
            return f"{title}: as asked."
        if self.outlook.tried == 1:
            return f"{title}: what is left is shared out anew before each question, so that it lasts for all."
        promise = "the same pure guarantee" if not self.asked.delta else "a guarantee within the same ε and δ"
        unused = self.asked.delta and not self.settings.delta
        why = " δ is not used: a way without it is expected to do best." if unused else ""
        return f"{title}: of {self.outlook.tried} ways with {promise} it is expected to do best.{why}"

    @property
    def _after(self) -> str:
        if self._published:
            return f"on every {self.period}'s value, which is then compared with the line"
        if self.settings.resample:
            return f"around the line drawn anew after each {self.period} that is named"
        return f"around the line drawn once for all {plural(self.period)}"

    @property
    def expectation(self) -> str:
        """How good the answers are expected to be, beside a guess, in the readings' unit."""
        if self.outlook is None:
            return "nothing: no value can be on both sides of the line"
        spread = self.settings.as_plan(questions=self.questions).noise_spread * float(self.unit)
        blurred = ("about " if self._varies else "") + self.with_unit(at_most(spread, digits=3))
        told = f"{self.outlook.in_words}. The noise around the line has a standard deviation of {blurred}"
        if not self.asked.how_much:
            return told
        within = self.with_unit(at_most(self.margin(self.expected_above), digits=2))
        return f"{told}; were {self.expected_above:,} named, their values would be given to within ± {within}"

    def with_unit(self, number: str) -> str:
        """A number with the readings' unit behind it, where that is known."""
        return number if self.dataset is None else self.dataset.with_unit(number)

    def release(self, named: int) -> LaplaceRelease:
        """How the values of so many are released, at the part of the budget that is for values."""
        # How many were named is public by then, so the noise may depend on it: each run costs the same part in all.
        return LaplaceRelease.calibrated(self.settings.family, candidates=named, epsilon=self.asked.part)

    def margin(self, named: int) -> float:
        """Each of so many values lies within this of the truth 95 times of 100, in the readings' unit."""
        return how_much.margin(self.release(named)) * float(self.unit)

    @property
    def refusal(self) -> str:
        """What to say, and what to do, where the answers would hardly be better than a guess."""
        if self.outlook is None:
            return f"{self.futility}; nothing was spent (‹anyway› to insist)"
        told = remedy(self.asked, self.settings.family, questions=self.questions, unit=self.unit)
        return (
            f"the answers would hardly be better than a guess: expected is {self.expectation}. {told[0].upper()}"
            f"{told[1:]}; nothing was spent (‹anyway› to insist)"
        )

    def save(self, path: Path | str) -> Path:
        """Keeps the plan in a file, for this table or another of the same range whose Δ is no larger."""
        refuse_given("a plan in a file, whose whole budget names those above", how_much=self.asked.how_much or None)
        plan = replace(self.settings.as_plan(questions=self.questions), unit=float(self.unit))
        if plan.prediction is None and self.outlook is not None:
            plan = replace(plan, prediction=self.outlook.prediction)
        return plan.save(path)

    def insist(self, *, anyway: bool) -> None:
        """Refuses what would hardly be better than a guess, unless it is wanted ``anyway``."""
        if not anyway and not self.useful:
            raise InvalidParameter(self.refusal, parameter="budget")

    def start(
        self,
        entropy: Entropy | None = None,
        *,
        book: Ledger | None = None,
        key: str | None = None,
        afresh: bool = False,
        onward: bool = False,
        at_once: bool = True,
    ) -> Watch:
        """Charges the budget and starts the watch; nothing is asked yet.

        With a ledger (the data set's, or ``book``) what the first questions can cost is charged now, and the same watch
        asked again finds its answers; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`. With ``onward`` the
        questions to come go on after those that were answered before. ``at_once`` says that answers are shown before
        all of them are there.
        """
        from dpselect.dataset.kept import KeptWatch
        from dpselect.dataset.watch import Watch

        source = entropy or SYSTEM_ENTROPY
        if self.dataset is not None:
            source, book = self.dataset.entropy or source, self.dataset.book
        if book is None:
            refuse_given("a watch without a ledger, which is always asked anew", key=key, afresh=afresh or None)
            refuse_given("a watch without a ledger", onward=onward or None)
            if self.dataset is not None:
                self.dataset.budget.charge(self.budget, self.settings.delta)
            return Watch(plan=self, vector=self.settings.build(source))
        # A key nobody can have: the watch is another one, and paid again.
        mark = f"afresh {secrets.token_hex(16)}" if afresh else key
        worst = Loss(epsilon=self.settings.budget, delta=self.settings.delta)
        values = Loss(epsilon=self.asked.part) if self.asked.how_much else None
        kept = KeptWatch(
            book, self.question(), cost=worst, values=values, key=mark, onward=onward, at_once=at_once, by=self.by()
        )
        watch = Watch(plan=self, vector=self.settings.build(source, filter=kept.filter), kept=kept)
        if self.candidates is None or kept.repeated < len(self.candidates):
            kept.make_ready(watch.vector)
        return watch

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it: public, without places, and the same however it was typed.

        What was known beforehand, and the noise that the planner chose for it, are no part of the question: whoever
        asks the same again finds the first answer. Noise that was stated by hand is.
        """
        settings, family, dataset = self.settings, self.settings.family, self.dataset
        return {
            **dict(self._data()),
            "Line": self.line,
            "verb": "watch",
            **({} if dataset is None else dataset.named(self.candidates)),
            "family": [family.lower, family.upper, family.sensitivity, family.monotone],
            "threshold": settings.threshold,
            "noise": self.noise()[0],
            **({"clip": settings.clip, "resample": settings.resample} if self.asked.by_hand else {}),
            **({} if self.asked.noise is None else {"scales": settings.noise}),
            **({"how_much": True} if self.asked.how_much else {}),
            "budget": self.shown_budget,
            "delta": settings.delta,
        }

    def by(self) -> dict[str, str]:
        """How the answers are drawn, as a ledger keeps it beside them."""
        return dict(entry for entry in self._means() if entry[0] != "Mechanism")

    def ask(
        self,
        *,
        progress: Callable[[float], None] | None = None,
        each: Callable[[str, bool, float], None] = lambda _name, _above, _spent: None,
        key: str | None = None,
        afresh: bool = False,
        anyway: bool = False,
    ) -> Watch:
        """Charges the budget, adds up the table and asks about each period in turn, until the end or the budget's.

        Answers that would hardly be better than a guess are refused and cost nothing, unless asked for ``anyway``.
        Columns that are not there are refused before the charge. ``each`` is told the period, whether it is above, and
        what was spent by then, as soon as it may be shown: with a ledger, once the ledger has it. ``key`` and
        ``afresh`` are those of :meth:`start`. What is interrupted keeps the answers that were drawn: asked again, the
        watch goes on behind them.
        """
        if self.dataset is None or self.candidates is None:
            raise InvalidData("a plan without a data set has nothing to ask; start() it and ask value by value")
        dataset, candidates = self.dataset, self.candidates
        self.insist(anyway=anyway)
        dataset.check(candidates)
        # Nothing is shown before the ledger has all of it.
        watch = self.start(key=key, afresh=afresh, at_once=False)
        read = functools.cache(lambda: dataset.read(candidates, progress=progress))
        watch.examine = lambda: read().curator_report
        with watch.abandoned_with_care():
            while watch.answered < len(candidates) and watch.fits:
                place = watch.answered
                above = watch.ask(0.0 if watch.repeating else read().values[place].item())
                if watch.kept is None:
                    each(watch.name(place), above, watch.spent[place])
            watch.ended = watch.answered < len(candidates)
            watch.settle(ended=True)
            if self.asked.how_much:
                watch.add_amounts(read, entropy=dataset.entropy or SYSTEM_ENTROPY)
        if watch.kept is not None:
            tops = set(watch.above)
            for place in range(watch.answered):
                each(watch.name(place), place in tops, watch.spent[place])
        return watch

    @property
    def _varies(self) -> bool:
        """Whether each question has noise of its own, from what is left before it."""
        plan = self.settings.plan
        return plan is not None and plan.sparse is not None and plan.sparse.rationed

    @property
    def _published(self) -> bool:
        """Whether every value gets noise, instead of a sparse vector that pays for each ⊤."""
        return self.settings.plan is not None and self.settings.plan.sparse is None

    def _costs(self) -> dict[str, float]:
        """What the usual answers cost, by the names they have in a record, where that is known and differs."""
        if self._varies or self._published:
            return {}
        watcher, gap = self.settings.build(SYSTEM_ENTROPY).watcher, self._gap
        return {
            "epsilon_without_crossing": float(watcher.loss(below=self.questions, above=0)),
            "epsilon_of_a_crossing": float(watcher.loss(below=gap - 1, above=1)),
        }

    @property
    def _gap(self) -> int:
        """How many questions the usual run has up to a ⊤."""
        return max(1, round(self.questions / self.expected_above))

    def noise(self) -> tuple[str, float, float]:
        """The law, and the scales of the noise of the line, if it has any, and of a question, in the readings' unit."""
        from dpselect.mechanisms.catalogue import entry_of

        watcher, unit = self.settings.build(SYSTEM_ENTROPY).watcher, float(self.unit)
        *of_line, of_question = entry_of(watcher).noise_of(watcher)
        return entry_of(watcher).noise, sum(of_line) * unit, of_question * unit

    def to_dict(self) -> dict[str, Any]:
        """Costs and expected accuracy as plain values."""
        _, of_line, of_question = self.noise()
        return {
            "dry_run": True,
            "mechanism": self.mechanism,
            "reason": self.reason,
            "useful": self.useful,
            "budget": self.shown_budget,
            "questions": self.questions,
            "noise_threshold": of_line,
            "noise_query": of_question,
            **self._costs(),
            **({"expected_amount_margin": self.margin(self.expected_above)} if self.asked.how_much else {}),
            **({} if self.outlook is None else self.outlook.to_dict()),
            **({} if self.weakness is None else {"note": self.weakness}),
        }

    def entries(self) -> list[Entry]:
        """Costs and expected accuracy for people."""
        said = (f"Cost if no {self.period} is above", f"Cost of {self._gap - 1:,} below and 1 above")
        return [
            *self.parameters(),
            ("Budget", self._spendable),
            *(() if self.weakness is None else (("Note", self.weakness),)),
            *((name, f"ε = {at_most(cost)}") for name, cost in zip(said, self._costs().values(), strict=False)),
            ("Expected", f"{self.expectation}."),
            *(() if self.outlook is None else (("Of it answered", self._answered(self.outlook)),)),
            ("On the grounds that", self._grounds()),
            *(() if self.useful else (("Advice", "Hardly better than a guess: refused, unless insisted on."),)),
        ]

    @property
    def _spendable(self) -> str:
        delta = f", δ = {at_most(self.settings.delta)}" if self.settings.delta else ""
        return f"ε = {at_most(self.budget)}{delta}" + (", half of ε for values" if self.asked.how_much else "")

    def _answered(self, outlook: Outlook) -> str:
        found = outlook.prediction
        return f"{percent(found.answered / outlook.questions)} of the questions, for ε = {at_most(found.spent)}"

    def _grounds(self) -> str:
        return "the plan says so" if self.asked.plan is not None else self.asked.known.in_words(period=self.period)

    def _data(self) -> list[Entry]:
        if self.dataset is not None and self.candidates is not None:
            return list(self.dataset.parameters(self.candidates))
        moves = at_most(self.settings.family.sensitivity)
        return [("Data", "questions on standard input"), ("One person", f"changes each value by at most {moves}")]

    def parameters(self) -> tuple[Entry, ...]:
        """The public parameters, for people."""
        family, unit = self.settings.family, float(self.unit)
        ends = f"from {family.lower * unit:.10g} to {self.with_unit(f'{family.upper * unit:.10g}')}"
        return (*self._data(), ("Values", ends), ("Line", self.line), *self._means())

    def _means(self) -> tuple[Entry, ...]:
        """How it is answered, for people."""
        law, of_line, of_question = self.noise()
        word = "standard deviation" if law == "Gaussian" else "scale"
        cut: tuple[Entry, ...] = ()
        if self.settings.clip is not None:
            low, high = (width * float(self.unit) for width in self.settings.clip)
            cut = (("Values cut to", f"{low:.4g} below and {self.with_unit(f'{high:.4g}')} above the line"),)
        return (
            *cut,
            ("Mechanism", self.reason),
            *((("Noise of the line", f"{law}, {word} {self.with_unit(at_most(of_line))}"),) if of_line else ()),
            (f"Noise of each {self.period}", f"{law}, {word} {self.with_unit(at_most(of_question))}"),
            *self._rationed(),
        )

    def _rationed(self) -> tuple[Entry, ...]:
        plan = self.settings.plan
        expected = None if plan is None or plan.sparse is None else plan.sparse_parameters.expected
        if plan is None or expected is None:
            return ()
        side = plan.parameters["rare"]
        told = f"for about {sum(expected):.3g} {side} the line; the noise stated is that of the first {self.period}"
        return (("Rationed", told),)


def plan_watch(
    dataset: Dataset, line: Line, candidates: Candidates, *, progress: Callable[[float], None] = lambda share: None
) -> WatchPlan:
    """See :meth:`Dataset.plan_watch`."""
    public = dataset.public_side(candidates)
    where: dict[str, Any] = {"questions": len(public), "unit": public.natural_unit, "whole": True}
    found = _plan(line, public.family, **where, progress=progress)
    return replace(found, dataset=dataset, candidates=candidates)


def plan_stream(
    family: QueryFamily, line: Line, *, questions: int, progress: Callable[[float], None] = lambda share: None
) -> WatchPlan:
    """The plan for questions that come one by one, from anywhere."""
    refuse_given("questions that come one by one, whose values are gone by then", how_much=line.how_much or None)
    return _plan(line, family, questions=questions, unit=Fraction(1), whole=False, progress=progress)


def _plan(
    line: Line, family: QueryFamily, *, questions: int, unit: Fraction, whole: bool, progress: Callable[[float], None]
) -> WatchPlan:
    expected = line.expected_above(questions=questions)
    found = None
    if line.plan is None and not line.by_hand:
        found = choose(line, family, questions=questions, unit=unit, whole=whole, progress=progress)
    outlook: Outlook | None
    if found is not None:
        settings, outlook = planned(found[0], family, unit=unit), found[1]
    else:
        # As stated by hand or in a plan; or by the plain rule, where the line leaves the planner nothing to weigh.
        settings = line.settings(family, questions=questions, unit=unit)
        outlook = foresee(line, settings, questions=questions, unit=unit)
    return WatchPlan(
        settings=settings, asked=line, questions=questions, expected_above=expected, outlook=outlook, unit=unit
    )
