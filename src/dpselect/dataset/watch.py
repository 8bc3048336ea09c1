"""Which ones reach the line: what answers would cost and how good they would be, and asking for them."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpselect.composition.filter import Filter
from dpselect.composition.sparse_vector import SparseVector
from dpselect.dataset import how_much, rows
from dpselect.dataset.answer import COARSER, AnswerPlan
from dpselect.dataset.identity import known_form, question_facts
from dpselect.dataset.identity_1 import watch_1
from dpselect.dataset.request import WatchRequest, is_useful
from dpselect.dataset.scope import Scope
from dpselect.dataset.watch_answer import Watch
from dpselect.dataset.watch_run import WatchRun
from dpselect.dataset.whole import WholeVector
from dpselect.errors import (
    BudgetExhausted,
    InvalidData,
    InvalidParameter,
    StateRefused,
    refuse,
    refuse_given,
)
from dpselect.mechanisms.catalogue import entry_of
from dpselect.mechanisms.mechanism import noise_of
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.planning.plan import Plan
from dpselect.planning.prediction import Prediction
from dpselect.planning.ways import Rationed
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.loss import Loss
from dpselect.report import watch_words as words
from dpselect.report.record import Entry
from dpselect.report.words import plural
from dpselect.rounding import added, at_most, no_more_than, rounded_up
from dpselect.tables import BoundedQuery

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

#: So many values fit an entry of a ledger, however long their numbers are.
MOST_VALUES = 2000


@dataclass(frozen=True)
class Values:
    """The values of those named: what they cost beside the names, or why they are missing."""

    amounts: list[float] | None
    cost: float = 0.0
    missing: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class WatchPlan(AnswerPlan):
    """What a watch would cost and how good it would be, from public knowledge alone.

    Attributes
    ----------
    settings : Plan
        Mechanism, line, budget and noise of the names, on the scale of the queries, and what is expected of them: no
        prediction where no value can be on both sides of the line.
    asked : WatchRequest
        What was asked for.
    questions, expected_above : int
        How many are expected, and how many of them ⊤.
    ways : int
        How many ways the planner weighed; 0 where the way was asked for.
    scope : Scope, optional
        What is watched; None for questions that come one by one from elsewhere.
    """

    settings: Plan
    asked: WatchRequest
    questions: int
    expected_above: int
    ways: int = 0
    scope: Scope | None = None

    verb, priced_by = "watch", "budget"

    def __repr__(self) -> str:
        asked = f"{self.questions:,} {plural(self.period)} at {self.line}"
        return f"<WatchPlan: {asked}, {self.settings.name} within ε = {self.shown_budget:g}>"

    @property
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        return words.reason(
            self.settings,
            law=self.noise[0],
            period=self.period,
            ways=self.ways,
            planned=self.asked.plan is not None,
            delta_asked=bool(self.asked.delta),
        )

    @property
    def expectation(self) -> str:
        """How good the answers are expected to be, beside a guess, in the readings' unit."""
        told = words.expectation(self.settings, period=self.period, unit=float(self.unit), with_unit=self.with_unit)
        if self.expected is None or not self.asked.how_much:
            return told
        within = self.with_unit(at_most(self.margin_of(self.expected_above), digits=2))
        return told + words.values_expected(self.expected_above, within)

    def refusal(self) -> str:
        """What to say, and what to do, where the answers would hardly be better than a guess."""
        if self.expected is None:
            return f"{self._futility}; nothing was spent (‹anyway› to insist)"
        figures = words.in_figures(self.expected)
        return words.refusal(expected=self.expectation, figures=figures, remedy=self.remedy())

    def remedy(self) -> str:
        """Which budget would do, and which coarser question at the same budget, in words."""
        family, whole = self.settings.family, self.scope is not None
        longer = COARSER.get(self.period, ())
        found = self.asked.sufficient(family, questions=self.questions, unit=self.unit, whole=whole, longer=longer)
        if found is None:
            return "ask about longer periods, or about more people"
        budget, coarser = found
        if coarser is None:
            return words.remedy(budget, None)
        # What is counted is the total of a period, and so is its line.
        line = self.with_unit(f"{coarser[1] * self.threshold * float(self.unit):.4g}")
        return words.remedy(budget, (*coarser, line))

    @property
    def _futility(self) -> str | None:
        return words.futility(self.settings, unit=float(self.unit), line=self.line)

    @property
    def asked_in_words(self) -> str:
        """What is asked."""
        measured = "the value" if self.scope is None else self.scope.measured
        return words.question(period=self.period, measured=measured, line=self.line)

    def noise_entries(self) -> list[Entry]:
        """How the answers are drawn, as a ledger keeps it beside them."""
        law, *scales = self.noise
        return words.noise(
            self.settings,
            law=law,
            scales=(scales[0], scales[1]),
            period=self.period,
            unit=float(self.unit),
            with_unit=self.with_unit,
        )

    def asked_entries(self) -> list[Entry]:
        """What is watched, as far as it is public, and the line."""
        family, unit = self.settings.family, float(self.unit)
        if self.scope is None:
            moves = f"changes each value by at most {at_most(family.sensitivity)}"
            about = [("Data", "questions on standard input"), ("One person", moves)]
        else:
            about = list(self.scope.parameters())
        ends = f"from {family.lower * unit:.10g} to {self.with_unit(f'{family.upper * unit:.10g}')}"
        return [*about, ("Values", ends), ("Line", self.line)]

    def expected_entries(self) -> list[Entry]:
        """How good the answers will be: in plain words, and on a line of its own in figures."""
        said = f"{self.expectation}."
        figures = [] if self.expected is None else [("In figures", f"{words.in_figures(self.expected)}.")]
        return [("Expected", f"{said[0].upper()}{said[1:]}"), *figures]

    @property
    def expected(self) -> Prediction | None:
        """How good the answers are expected to be."""
        return self.settings.prediction

    @property
    def unit(self) -> Fraction:
        """What a query of 1 is in the readings' unit."""
        return Fraction(1) if self.scope is None else self.scope.public.natural_unit

    @property
    def promise(self) -> Loss:
        """The most all answers may cost."""
        return Loss(epsilon=self.budget, delta=self.settings.delta)

    @property
    def budget(self) -> float:
        """The most all answers may cost, the values of those named included."""
        return self.settings.epsilon if not self.asked.how_much else no_more_than(self.asked.stated("budget"))

    @property
    def shown_budget(self) -> float:
        """The same as it was typed: 0.1, not the largest double that is not above one tenth."""
        return rounded_up(self.budget, digits=15)

    @property
    def period(self) -> str:
        """What one question is about."""
        return "question" if self.scope is None else self.scope.period

    @property
    def threshold(self) -> float:
        """The line on the scale of the queries."""
        return float(self.settings.threshold or 0.0)

    @property
    def line(self) -> str:
        """The threshold in the readings' unit."""
        return self.with_unit(f"{self.threshold * float(self.unit):.10g}")

    def with_unit(self, number: str) -> str:
        """A number with the readings' unit behind it, where that is known."""
        return number if self.scope is None else self.scope.facts.with_unit(number)

    @property
    def whole(self) -> bool:
        """Whether all questions are paid for together, instead of by a sparse vector that pays for each ⊤."""
        return self.settings.one_by_one is None

    @property
    def useful(self) -> bool:
        """Whether the answers are expected to be clearly better than a guess that looks at no data."""
        return is_useful(self.expected)

    @property
    def caution(self) -> str | None:
        """What to know before paying, if anything."""
        return self._futility or (None if self.scope is None else self.scope.long_cap)

    def vector(
        self, entropy: Entropy, *, filter: Filter | None = None, before: tuple[int, int] = (0, 0)
    ) -> SparseVector | WholeVector:
        """What answers, with this source of noise: a sparse vector, on its own budget or another ``filter``'s.

        ``before`` says how many questions were answered before, and how many of them ⊤.
        """
        made = self._mechanism(entropy, filter=filter, before=before)
        if self.whole:
            return WholeVector(made, threshold=self.threshold, count=self.settings.count, entropy=entropy)
        return cast("SparseVector", made)

    def _mechanism(self, entropy: Entropy, *, filter: Filter | None = None, before: tuple[int, int] = (0, 0)) -> Any:
        # Values outside the range are cut to it: refusing them would say something about the data.
        return self.settings.mechanism(entropy=entropy, outside="clip", filter=filter, before=before)

    @functools.cached_property
    def noise(self) -> tuple[str, float, float]:
        """The law, and the scales of the noise of the line, if it has any, and of a question, in the readings' unit."""
        made, unit = self._mechanism(SYSTEM_ENTROPY), float(self.unit)
        watcher = made if self.whole else made.watcher
        *of_line, of_question = watcher.scales
        return entry_of(watcher).noise, sum(of_line) * unit, of_question * unit

    @property
    def gap(self) -> int:
        """How many questions the usual run has up to a ⊤."""
        return max(1, round(self.questions / self.expected_above))

    @property
    def costs(self) -> dict[str, float]:
        """What the usual answers cost, by the names they have in a record, where that is known and differs."""
        if self.settings.one_by_one is None or isinstance(self.settings.way, Rationed):
            return {}
        watcher = self._mechanism(SYSTEM_ENTROPY).watcher
        return {
            "epsilon_without_crossing": float(watcher.loss(below=self.questions, above=0)),
            "epsilon_of_a_crossing": float(watcher.loss(below=self.gap - 1, above=1)),
        }

    def release(self, named: int) -> LaplaceRelease:
        """How the values of so many are released, at the part of the budget that is for values."""
        # How many were named is public by then, so the noise may depend on it: each run costs the same part in all.
        return LaplaceRelease.calibrated(self.settings.family, candidates=named, epsilon=self.asked.part)

    def margin_of(self, named: int) -> float:
        """Each of so many values lies within this of the truth 95 times of 100, in the readings' unit."""
        return how_much.margin(self.release(named)) * float(self.unit)

    def save(self, path: Path | str) -> Path:
        """Keeps the plan in a file, for this table or another of the same range whose Δ is no larger."""
        refuse_given("a plan in a file, whose whole budget names those above", how_much=self.asked.how_much or None)
        return replace(self.settings, unit=float(self.unit)).save(path)

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it.

        What was known beforehand, and the scales that the planner chose for it, are no part of it: whoever asks the
        same again finds the first answer. Noise that was stated by hand is, and so is whether all are named at once or
        one by one, which are charged in different ways.
        """
        family = self.settings.family
        scope = {"data": None, "family": [family.lower, family.upper, family.sensitivity, family.monotone]}
        return question_facts(
            "watch",
            **(scope if self.scope is None else self.scope.identity()),
            threshold=float(f"{self.threshold * float(self.unit):.12g}"),
            noise="set" if self.settings.at_once else self.noise[0],
            **self.by_hand_facts(),
            values=self.asked.how_much,
            budget=self.shown_budget,
            delta=self.settings.delta,
        )

    def question_1(self) -> dict[str, Any]:
        """The question as a ledger kept it before version 2."""
        return watch_1(
            self.scope,
            self.settings.family,
            threshold=self.threshold,
            unit=self.unit,
            noise="set" if self.settings.at_once else self.noise[0],
            by_hand=self.by_hand_facts(),
            how_much=self.asked.how_much,
            budget=self.shown_budget,
            delta=self.settings.delta,
        )

    def by_hand_facts(self) -> dict[str, Any]:
        """Noise that was stated by hand, or how it is used."""
        way = self.settings.one_by_one
        if way is None or not self.asked.by_hand:
            return {}
        scales = {} if self.asked.noise is None else {"scales": (way.scale_threshold, way.scale_query)}
        return {"clip": way.clip, "resample": way.resample, **scales}

    def asked_about(self) -> dict[str, Any]:
        """The question as plain values, for a record."""
        where = {} if self.scope is None else self.scope.to_dict()
        line = {"threshold": float(f"{self.threshold * float(self.unit):.10g}"), "line": self.line}
        return {"question": self.asked_in_words, **where, **line}

    def noise_chosen(self) -> dict[str, Any]:
        """Who answers, why, and how well that is expected to do, as plain values."""
        expected = {} if self.expected is None else self.expected.as_expected(self.settings.count)
        return {"mechanism": self.settings.name, "reason": self.reason, **expected}

    def to_dict(self) -> dict[str, Any]:
        """Costs and expected accuracy as plain values."""
        _, of_line, of_question = self.noise
        return {
            "dry_run": True,
            **self.asked_about(),
            **self.noise_chosen(),
            "useful": self.useful,
            "budget": self.shown_budget,
            "questions": self.questions,
            "noise_threshold": of_line,
            "noise_query": of_question,
            **self.costs,
            **({"expected_amount_margin": self.margin_of(self.expected_above)} if self.asked.how_much else {}),
            **({} if self.weakness is None else {"note": self.weakness}),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """The plan as plain values, ready for JSON."""
        return [self.to_dict()]

    @property
    def _costs(self) -> tuple[Loss, Loss | None]:
        """The most that the names may cost, and the values where they are asked for."""
        names = Loss(epsilon=self.settings.epsilon, delta=self.settings.delta)
        return names, Loss(epsilon=self.asked.part) if self.asked.how_much else None

    def _asked_of(self, book: Ledger, *, key: str | None, afresh: bool) -> tuple[dict[str, Any], str | None]:
        """The question as the ledger knows it, and what tells it from the same one asked before."""
        if afresh:  # a key nobody can have: the watch is another one, and paid again
            return self.question(), f"afresh {secrets.token_hex(16)}"
        return known_form(book, self.question(), self.question_1(), key=key), key

    def start(
        self,
        entropy: Entropy | None = None,
        *,
        book: Ledger | None = None,
        key: str | None = None,
        afresh: bool = False,
        onward: bool = False,
    ) -> WatchRun:
        """Charges the budget and starts a watch of a stream, whose answers are shown one by one; nothing is asked yet.

        With a ledger, ``book``, what the first questions can cost is charged now, and the same watch asked again finds
        its answers; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`. With ``onward`` the questions to come go
        on after those that were answered before.
        """
        if self.scope is not None:
            # Its ledger counts on nobody having seen an answer before all are written.
            raise StateRefused("a plan about a data set is asked as a whole, with ask(); nothing was spent")
        source = entropy or SYSTEM_ENTROPY
        if book is not None and noise_of(source) == "reproducible":
            raise InvalidParameter("‹book› does not go with seeded noise: such answers are not private; leave it out")
        return self._begin(source, book=book, key=key, afresh=afresh, onward=onward, shown_at_once=True)

    def _begin(
        self,
        source: Entropy,
        *,
        book: Ledger | None,
        key: str | None,
        afresh: bool,
        onward: bool = False,
        shown_at_once: bool = False,
    ) -> WatchRun:
        """Charges the budget; ``shown_at_once`` says that answers are seen before all of them are there."""
        if book is None:
            refuse_given("a watch without a ledger, which is always asked anew", key=key, afresh=afresh or None)
            refuse_given("a watch without a ledger", onward=onward or None)
            if self.scope is not None:
                self.scope.account.budget.charge(self.promise, parameter=self.priced_by)
            return WatchRun(self.vector(source))
        from dpselect.dataset.kept import KeptWatch  # brings SQLAlchemy

        question, mark = self._asked_of(book, key=key, afresh=afresh)
        kept = KeptWatch(
            book,
            question,
            cost=self._costs[0],
            values=self._costs[1],
            key=mark,
            onward=onward,
            shown_at_once=shown_at_once,
            by=dict(self.noise_entries()),
        )
        run = WatchRun(self.vector(source, filter=kept.filter, before=kept.answers.before), kept=kept)
        if self.scope is None or kept.repeated < len(self.scope.candidates):
            kept.make_ready(run.vector)
        return run

    def ask(
        self,
        *,
        progress: Callable[[float], None] | None = None,
        key: str | None = None,
        afresh: bool = False,
        anyway: bool = False,
    ) -> Watch:
        """Charges the budget, adds up the table and names the periods that reach the line.

        All at once where they are paid together; otherwise each period in turn, until the end or the budget's.

        Answers that would hardly be better than a guess are refused and cost nothing, unless asked for ``anyway``.
        Columns that are not there are refused before the charge. ``key`` and ``afresh`` are those of :meth:`start`.
        With a ledger nothing comes back before the ledger has all of it. Asked in turn, what is interrupted keeps the
        answers that were drawn: asked again, the watch goes on behind them.
        """
        scope = self.scope
        if scope is None:
            raise InvalidData("a plan without a data set has nothing to ask; start() it and ask value by value")
        rows.check(scope)  # first: no budget helps where the columns cannot answer
        self.insist(anyway=anyway)
        account = scope.account
        read = functools.cache(lambda: rows.read(scope, progress=progress))
        if self.whole:
            return replace(
                self._ask_together(scope, read, key=key, afresh=afresh), examine=lambda: read().curator_report
            )
        run = self._begin(account.entropy, book=account.book, key=key, afresh=afresh)
        with run.abandoned_with_care():
            while run.answered < len(scope.candidates) and run.can_ask:
                run.ask(0.0 if run.repeating else read().values[run.answered].item())
            run.ended = run.answered < len(scope.candidates)
            run.settle(ended=True)
            keep = None if run.kept is None else run.kept.values
            values = self._values(run.above, account.entropy, read, keep=keep)
        return replace(self.answer(run, values), examine=lambda: read().curator_report)

    def _ask_together(self, scope: Scope, read: Callable[[], BoundedQuery], *, key: str | None, afresh: bool) -> Watch:
        """All answers at one price: charged, read, drawn once and settled, as a peak is."""
        account, book, made = scope.account, scope.account.book, self._mechanism(scope.account.entropy)
        count, cost = min(self.settings.count, len(scope.candidates)), float(made.epsilon(self.settings.count))

        def draw() -> list[int]:
            # Values outside the range are cut to it: refusing them would say something about the data.
            found = made.release(read().values[:count], entropy=account.entropy, outside="clip")
            above = found.above if self.settings.at_once else found.values >= self.threshold
            return [int(place) for place in above.nonzero()[0]]

        kept: dict[str, Any] = {}
        if book is None:
            refuse_given("a watch without a ledger, which is always asked anew", key=key, afresh=afresh or None)
            account.budget.charge(self.promise, parameter=self.priced_by)
            drawn = draw()
            values = self._values(drawn, account.entropy, read)
        else:
            from dpselect.dataset.kept import about_values, named_together, values_of  # bring SQLAlchemy

            question, mark = self._asked_of(book, key=key, afresh=afresh)
            costs = [cost for cost in self._costs if cost is not None]
            content = {"count": count, "by": dict(self.noise_entries()), "spent": cost}
            drawn, found = named_together(book, question, costs=costs, key=mark, draw=draw, read=read, content=content)
            answer = found.answer
            count, cost, by = answer["count"], answer["spent"], answer.get("by", content["by"])
            kept = {"recorded": True, "entry": found.number}
            if found.repeated:
                kept |= {"repeats": count, "since": found.entry.at, "drawn_before": by if by != content["by"] else None}
            keep = functools.partial(values_of, book, question, cost=costs[-1], key=mark)
            try:
                values = self._values(drawn, account.entropy, read, keep=keep)
            except BaseException as failure:
                failure.add_note(f"the ledger has the names{about_values(book, self._costs[1])}")
                raise
        return Watch(
            plan=self,
            noise=noise_of(account.entropy),
            above=drawn,
            spent=[cost] * count,
            answered=count,
            count=len(drawn),
            cost=added([(1, cost), (1, values.cost)]),
            ended=count < len(scope.candidates),
            amounts=values.amounts,
            without_values=values.missing,
            **kept,
        )

    def _values(
        self,
        named: list[int],
        entropy: Entropy,
        read: Callable[[], BoundedQuery],
        *,
        keep: Callable[..., list[float]] | None = None,
    ) -> Values:
        """The values of those named, with noise that is drawn once all names are there; ``keep`` is the ledger's."""
        if not self.asked.how_much:
            return Values(None)
        if not named:
            return Values([])

        def draw() -> list[float]:
            drawn = how_much.draw(self.release(len(named)), read().values[named], entropy=entropy)
            return [one * float(self.unit) for one in drawn]

        if keep is None:
            return Values(draw(), cost=self.asked.part)
        if len(named) > MOST_VALUES:  # known before they are drawn: that drawn ones are refused would tell of them
            return Values(None, missing="they are more than an entry of the ledger holds")
        try:
            return Values(keep(draw, read=read), cost=self.asked.part)
        except BudgetExhausted:  # the names stand
            return Values(None, missing="others have used what was left in the ledger")

    def answer(self, run: WatchRun, values: Values = Values(None)) -> Watch:
        """What was answered so far."""
        kept = run.kept
        before = None
        if kept is not None and kept.repeated and kept.answers.by_then != kept.answers.by:
            before = kept.answers.by_then
        return Watch(
            plan=self,
            noise=run.noise,
            above=run.above,
            spent=run.spent,
            answered=run.answered,
            count=run.count,
            cost=added([(1, run.cost), (1, values.cost)]),
            ended=run.ended,
            amounts=values.amounts,
            without_values=values.missing,
            recorded=kept is not None,
            entry=None if kept is None else kept.number,
            repeats=0 if kept is None else kept.repeated,
            since=None if kept is None else kept.since,
            drawn_before=before,
            run=run,
        )


def plan_watch(
    family: QueryFamily,
    request: WatchRequest,
    *,
    questions: int,
    scope: Scope | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> WatchPlan:
    """The plan for a data set's candidates or, without a ``scope``, for questions that come one by one."""
    if scope is None:
        request.refuse_streams()
    expected_above = request.expected_above(questions=questions)
    # With a table all questions are there; otherwise more may come.
    unit, whole = Fraction(1) if scope is None else scope.public.natural_unit, scope is not None
    plans: Sequence[Plan] = ()
    if request.plan is None and not request.by_hand:
        plans = request.ranked(family, questions=questions, unit=unit, whole=whole, progress=progress)
    if plans:
        settings = replace(plans[0], unit=float(unit))
    elif request.mechanism == "set":
        raise refuse("mechanism", "set", "left out where the line lies outside everything a question can be")
    else:
        # As stated by hand or in a plan; or by the plain rule, where the line leaves the planner nothing to weigh.
        settings = request.stated_noise(family, questions=questions, unit=unit)
        settings = replace(settings, prediction=request.predicted(settings, unit=unit))
    return WatchPlan(
        settings=settings,
        asked=request,
        questions=questions,
        expected_above=expected_above,
        ways=len(plans) if request.mechanism is None else 0,
        scope=scope,
    )
