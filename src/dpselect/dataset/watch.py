"""Which ones reach the line: the plan before anything is read, and the answers after it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dpselect.dataset.answer import Answer
from dpselect.dataset.book import NOBODY_REMEMBERS, refuse_unpayable
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.facts import period_word
from dpselect.dataset.line import Line, Settings, planned
from dpselect.dataset.outlook import Outlook, choose, foresee, remedy
from dpselect.errors import InvalidData, InvalidParameter, refuse_given
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Entry, Finding, Report, Spending
from dpselect.report.rounding import at_most, rounded_up
from dpselect.report.words import family_in_words, percent

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.dataset.kept import KeptWatch
    from dpselect.ledger import Ledger
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily
    from dpselect.tables import Candidates, CuratorReport


class _Again(NamedTuple):
    """What a question to a ledger says of being asked before."""

    key: str | None
    afresh: bool
    onward: bool


@dataclass(frozen=True, kw_only=True)
class WatchPlan:
    """What a watch would cost and how good it would be, from public knowledge alone.

    Attributes
    ----------
    settings : Settings
        Line, budget and noise on the scale of the queries.
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
    def line(self) -> str:
        """The threshold in the readings' unit."""
        return self._with_unit(f"{self.settings.threshold * float(self.unit):.10g}")

    @property
    def weakness(self) -> str | None:
        """What to say of a budget too large to promise much."""
        return Guarantee(epsilon=self.settings.budget, delta=self.settings.delta).weakness

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
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        title = self.settings.as_plan(questions=self.questions).title
        if self.asked.plan is not None:
            return f"{title}, as planned."
        if self.outlook is None or not self.outlook.chosen:
            return f"{title}, as asked."
        promise = "the same pure guarantee" if self.settings.delta == 0 else "a guarantee within the same ε and δ"
        return f"{title}: of {self.outlook.tried} with {promise} it is expected to do best."

    @property
    def expectation(self) -> str:
        """How good the answers are expected to be, beside a guess, in the readings' unit."""
        if self.outlook is None:
            return "nothing: no value can be on both sides of the line"
        spread = self.settings.as_plan(questions=self.questions).noise_spread * float(self.unit)
        blurred = self._with_unit(at_most(spread, digits=3))
        return f"{self.outlook.in_words}. The noise around the line has a standard deviation of {blurred}"

    def _with_unit(self, number: str) -> str:
        return number if self.dataset is None else self.dataset.with_unit(number)

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
    ) -> Watch:
        """Charges the budget and starts the watch; nothing is asked yet.

        With a ledger (the data set's, or ``book``) what the first questions can cost is charged now, and the same watch
        asked again finds its answers; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`. With ``onward`` the
        questions to come go on after those that were answered before.
        """
        # Whoever starts it sees each answer at once.
        return self._start(entropy, book=book, again=_Again(key, afresh, onward), at_once=True)

    def _start(self, entropy: Entropy | None, *, book: Ledger | None, again: _Again, at_once: bool) -> Watch:
        from dpselect.dataset.kept import KeptWatch
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        key, afresh, onward = again
        source = entropy or SYSTEM_ENTROPY
        if self.dataset is not None:
            source, book = self.dataset.entropy or source, self.dataset.book
        if book is None:
            refuse_given("a watch without a ledger, which is always asked anew", key=key, afresh=afresh or None)
            refuse_given("a watch without a ledger", onward=onward or None)
            if self.dataset is not None:
                self.dataset.budget.charge(self.settings.budget)
            return Watch(plan=self, vector=self.settings.build(source))
        worst = Loss(epsilon=self.settings.budget, delta=self.settings.delta)
        kept = KeptWatch(book, self.question(), cost=worst, key=key, afresh=afresh, onward=onward, at_once=at_once)
        if kept.number is None:
            refuse_unpayable(book, self.settings.budget)
        watch = Watch(plan=self, vector=self.settings.build(source, filter=kept.filter), kept=kept)
        if not (self.candidates is not None and kept.repeated >= len(self.candidates)):
            kept.make_ready(watch.vector)
        return watch

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it: public, and without places."""
        return {
            # Why the planner chose as it did is no part of the question.
            **{name: text for name, text in self.parameters() if name != "Mechanism"},
            "verb": "watch",
            **({} if self.dataset is None else self.dataset.named(self.candidates)),
            "budget": rounded_up(self.settings.budget, digits=15),
            "delta": self.settings.delta,
        }

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
        ``afresh`` are those of :meth:`start`.
        """
        if self.dataset is None or self.candidates is None:
            raise InvalidData("a plan without a data set has nothing to ask; start() it and ask value by value")
        dataset, candidates = self.dataset, self.candidates
        self.insist(anyway=anyway)
        dataset.check(candidates)
        # Nothing is shown before the ledger has all of it.
        watch = self._start(None, book=None, again=_Again(key, afresh, onward=False), at_once=False)
        read = functools.cache(lambda: dataset.read(candidates, progress=progress))
        watch.examine = lambda: read().curator_report
        while watch.answered < len(candidates) and watch.fits:
            place = watch.answered
            # The table is opened for the first answer that is not there already.
            above = watch.ask(0.0 if watch.repeating else read().values[place].item())
            if watch.kept is None:
                each(watch.name(place), above, watch.spent[place])
        watch.ended = watch.answered < len(candidates)
        watch.settle(ended=True)
        if watch.kept is not None:
            tops = set(watch.above)
            for place in range(watch.answered):
                each(watch.name(place), place in tops, watch.spent[place])
        return watch

    def _costs(self) -> tuple[int, float, float]:
        """The usual run up to a ⊤, and what all ⊥ and such a run cost."""
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        watcher = self.settings.build(SYSTEM_ENTROPY).watcher
        gap = max(1, round(self.questions / self.expected_above))
        silent = float(watcher.loss(below=self.questions, above=0))
        return gap, silent, float(watcher.loss(below=gap - 1, above=1))

    def noise(self) -> tuple[str, float, float]:
        """The law, and the scales of the noise of the line and of a question, in the readings' unit."""
        from dpselect.mechanisms.catalogue import entry_of
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        watcher, unit = self.settings.build(SYSTEM_ENTROPY).watcher, float(self.unit)
        of_line, of_question = watcher.scales
        return entry_of(watcher).noise, of_line * unit, of_question * unit

    def to_dict(self) -> dict[str, Any]:
        """Costs and expected accuracy as plain values."""
        (_, silent, crossing), (_, of_line, of_question) = self._costs(), self.noise()
        return {
            "dry_run": True,
            "mechanism": self.settings.as_plan(questions=self.questions).contender,
            "reason": self.reason,
            "useful": self.useful,
            "budget": rounded_up(self.settings.budget, digits=15),
            "questions": self.questions,
            "noise_threshold": of_line,
            "noise_query": of_question,
            "epsilon_without_crossing": silent,
            "epsilon_of_a_crossing": crossing,
            **({} if self.outlook is None else self.outlook.to_dict()),
            **({} if self.weakness is None else {"note": self.weakness}),
        }

    def entries(self) -> list[Entry]:
        """Costs and expected accuracy for people."""
        gap, silent, crossing = self._costs()
        return [
            *self.parameters(),
            ("Budget", f"ε = {at_most(self.settings.budget)}"),
            *(() if self.weakness is None else (("Note", self.weakness),)),
            (f"Cost of {self.questions:,} ⊥ and no ⊤", f"ε = {at_most(silent)}"),
            (f"Cost of {gap - 1:,} ⊥ and a ⊤", f"ε = {at_most(crossing)}"),
            ("Expected", f"{self.expectation}."),
            *(() if self.outlook is None else (("Of it answered", self._answered()),)),
            ("On the grounds that", self._grounds()),
            *(() if self.useful else (("Advice", "Hardly better than a guess: refused, unless insisted on."),)),
        ]

    def _answered(self) -> str:
        assert self.outlook is not None  # noqa: S101  # asked for only where there is one
        found = self.outlook.prediction
        return f"{percent(found.answered / self.outlook.questions)} of the questions, for ε = {at_most(found.spent)}"

    def _grounds(self) -> str:
        if self.asked.plan is not None:
            return "the plan says so"
        return self.asked.known.in_words(period="question" if self.candidates is None else period_word(self.candidates))

    def parameters(self) -> tuple[Entry, ...]:
        """The public parameters, for people."""
        law, of_line, of_question = self.noise()
        if self.dataset is not None and self.candidates is not None:
            entries = [*self.dataset.parameters(self.candidates)]
        else:
            entries = [("Data", "questions on standard input"), ("Queries", family_in_words(self.settings.family))]
        entries.append(("Line", self.line))
        if self.settings.clip is not None:
            low, high = (width * float(self.unit) for width in self.settings.clip)
            entries.append(("Questions cut to", f"{low:g} below and {high:g} above the line"))
        entries += [
            ("Mechanism", self.reason),
            ("Noise of the line", f"{law}, {'σ_X =' if law == 'Gaussian' else 'scale'} {at_most(of_line)}"),
            ("Noise of a question", f"{law}, {'σ_Z =' if law == 'Gaussian' else 'scale'} {at_most(of_question)}"),
            ("After ⊤", "the same noisy line" if self.settings.keep_threshold else "a new noisy line"),
        ]
        return tuple(entries)


def plan_watch(
    dataset: Dataset, line: Line, candidates: Candidates, *, progress: Callable[[float], None] = lambda share: None
) -> WatchPlan:
    """See :meth:`Dataset.plan_watch`."""
    public = dataset.public_side(candidates)
    return _plan(
        line,
        public.family,
        questions=len(public),
        unit=public.natural_unit,
        dataset=dataset,
        candidates=candidates,
        progress=progress,
    )


def plan_stream(
    family: QueryFamily, line: Line, *, questions: int, progress: Callable[[float], None] = lambda share: None
) -> WatchPlan:
    """The plan for questions that come one by one, from anywhere."""
    return _plan(line, family, questions=questions, unit=Fraction(1), progress=progress)


def _plan(
    line: Line,
    family: QueryFamily,
    *,
    questions: int,
    unit: Fraction,
    progress: Callable[[float], None],
    **more: Any,
) -> WatchPlan:
    expected = line.expected_above(questions=questions)
    found = None
    if line.plan is None and not line.by_hand:
        found = choose(line, family, questions=questions, unit=unit, progress=progress)
    outlook: Outlook | None
    if found is not None:
        settings, outlook = planned(found[0], family, unit=unit), found[1]
    else:
        # As stated by hand or in a plan; or by the plain rule, where the line leaves the planner nothing to weigh.
        settings = line.settings(family, questions=questions, unit=unit)
        outlook = foresee(line, settings, questions=questions, unit=unit)
    return WatchPlan(
        settings=settings,
        asked=line,
        questions=questions,
        expected_above=expected,
        outlook=outlook,
        unit=unit,
        **more,
    )


@dataclass(kw_only=True, repr=False)
class Watch(Answer):
    """A watch and what it has answered so far.

    Attributes
    ----------
    above : list of int
        Places, from 0, of the questions answered ⊤; :attr:`labels` has their names.
    spent : list of float
        ε spent after each answer.
    answered : int
        How many questions were answered.
    ended : bool
        Whether the budget ended before the questions did.
    """

    plan: WatchPlan
    vector: SparseVector
    spent: list[float] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    answered: int = 0
    ended: bool = False
    examine: Callable[[], CuratorReport] | None = None
    keep: bool = True
    kept: KeptWatch | None = None
    #: How many were answered ⊤.
    count: int = 0

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
        return self.vector.spent if self.kept is None else self.kept.spent(self.vector)

    def ask(self, value: float | Fraction, *, name: str | int | None = None) -> bool:
        """One question, with its public name if it has one: whether it is answered above the line."""
        from dpselect.mechanisms.outcomes import Verdict

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
            f"budget exhausted: ε = {at_most(self.cost)} of {at_most(self.plan.settings.budget)} spent after "
            f"{self.answered:,} answers; the next question does not fit and was not asked"
        )

    def to_dict(self) -> dict[str, Any]:
        """How it ended, as plain values."""
        weakness = self.plan.weakness
        return {
            "stopped": "budget exhausted" if self.ended else "end of input",
            "questions": self.answered,
            "above": self.count,
            "spent": self.cost,
            "budget": rounded_up(self.plan.settings.budget, digits=15),
            "noise": self.vector.noise,
            "mechanism": self.plan.settings.as_plan(questions=self.plan.questions).contender,
            "reason": self.plan.reason,
            **({} if self.plan.outlook is None else self.plan.outlook.to_dict()),
            **({} if self.kept is None else {"ledger_entry": self.kept.number, "repeated": self.kept.repeated}),
            **({} if weakness is None else {"note": weakness}),
        }

    def as_report(self, *, named: int | None = None) -> Report:
        """The answers for people; with ``named``, only so many ⊤ are listed by name."""
        plan, dataset, settings = self.plan, self.plan.dataset, self.plan.settings
        period = "question" if plan.candidates is None else period_word(plan.candidates)
        names = list(self.labels)
        rest = 0 if named is None else max(0, len(names) - named)
        listed = ", ".join(names[:named]) + (f" and {rest} more, all of them on the page" if rest else "")
        details = [("Above", listed)] if names else []
        if self.ended:
            details.append(("Not asked", f"everything from {self.name(self.answered)} on: the budget ended"))
        details.append(("Cost of these answers", f"ε = {at_most(self.cost)} of {at_most(settings.budget)}"))
        details.append(("Expected", f"{plan.expectation}."))
        notes = ["Near the line an answer may fall on the wrong side: that is what protects people."]
        if not plan.useful:
            notes.append("Asked for although this is hardly better than a guess: do not build on these answers.")
        if dataset is None or dataset.is_series:
            notes.append("The curator vouches for what one person can change.")
        if self.kept is not None and self.kept.repeated:
            notes.append(
                f"{self.kept.repeated:,} of these answers were given before: they are repeated, and cost nothing now."
            )
        if self.kept is None:
            notes.append("The budget holds for this command alone: earlier answers from the same data add to it.")
            notes.append(self._into_the_sum())
            if dataset is not None and self.vector.noise != "reproducible":
                notes.append(NOBODY_REMEMBERS)
        what = "the value" if dataset is None else dataset.measured(plan.candidates)
        found = Finding(
            question=f"For which {period}s is {what} at or above {plan.line}?",
            answer=f"{len(names):,} of {self.answered:,} {period}s",
            details=tuple(details),
            spending=Spending(
                spent=tuple(self.spent),
                above=tuple(self.above),
                budget=settings.budget,
                first=self.name(0),
                last=self.name(max(0, self.answered - 1)),
                labels=() if plan.candidates is None else tuple(plan.candidates.labels),
            ),
        )
        return Report(
            title=f"When is {plan.line} crossed?",
            findings=(found,),
            guarantee=Guarantee(
                epsilon=settings.budget,
                delta=settings.delta,
                neighbours="declared" if dataset is None else dataset.neighbours,
                noise=self.vector.noise,
            ),
            parameters=(
                *plan.parameters(),
                *(() if self.kept is None else (("Ledger entry", f"{self.kept.number:,}"),)),
            ),
            notes=tuple(notes),
            made=datetime.now(UTC).astimezone(),
        )

    def _into_the_sum(self) -> str:
        """Which of the two numbers counts beside other answers about the same people (THEORY §4)."""
        if self.vector.noise == "reproducible":
            return NOTHING_TO_ADD
        if self.plan.settings.delta > 0:
            return "Into the running sum go the ε and δ of the guarantee, not the cost of these answers."
        return (
            f"Into the running sum goes the guarantee, ε = {at_most(self.plan.settings.budget)}; the smaller cost of "
            "these answers only under a limit set beforehand in which the whole budget still fitted."
        )
