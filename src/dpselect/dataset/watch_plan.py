"""What asking which ones reach the line would cost and how good it would be, before anything is read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpselect.dataset import how_much, watch, watch_words
from dpselect.dataset.answer import AnswerPlan
from dpselect.dataset.identity import Facts, question_facts
from dpselect.dataset.whole import WholeVector
from dpselect.errors import refuse, refuse_given
from dpselect.mechanisms.catalogue import entry_of
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.planning.ways import Rationed
from dpselect.privacy.loss import Loss
from dpselect.report.words import plural
from dpselect.rounding import no_more_than, rounded_up

if TYPE_CHECKING:
    from dpselect.composition.filter import Filter
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.dataset.request import WatchRequest
    from dpselect.dataset.scope import Scope
    from dpselect.noise.entropy import Entropy
    from dpselect.planning import Plan, Prediction
    from dpselect.privacy.family import QueryFamily

#: An answer must take away at least this part of what a guess gets wrong. A convention: below it most of what is named
#: is what a guess names, and the budget is better kept.
CLEARLY_BETTER = 0.25


def is_useful(expected: Prediction | None) -> bool:
    """Whether the answers are expected to be clearly better than naming everything, a guess that looks at no data."""
    guess = 0.0 if expected is None else float(expected.guess or 0.0)
    return expected is not None and expected.score - guess >= CLEARLY_BETTER * (1.0 - guess)


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
    # How it is run, and in words.
    start = watch.start
    ask = watch.ask_about_each
    reason = property(watch_words.reason)
    expectation = property(watch_words.expectation)
    refusal = watch_words.refusal

    def __repr__(self) -> str:
        asked = f"{self.questions:,} {plural(self.period)} at {self.line}"
        return f"<WatchPlan: {asked}, {self.settings.name} within ε = {self.shown_budget:g}>"

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
        return number if self.scope is None else self.scope.dataset.with_unit(number)

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
        return watch_words.futility(self) or (None if self.scope is None else self.scope.long_cap)

    def vector(
        self, entropy: Entropy, *, filter: Filter | None = None, before: tuple[int, int] = (0, 0)
    ) -> SparseVector | WholeVector:
        """What answers, with this source of noise: a sparse vector, on its own budget or another ``filter``'s.

        ``before`` says how many questions were answered before, and how many of them ⊤.
        """
        # Values outside the range are cut to it: refusing them would say something about the data.
        made: Any = self.settings.mechanism(entropy=entropy, outside="clip", filter=filter, before=before)
        if self.whole:
            return WholeVector(made, threshold=self.threshold, count=self.settings.count, entropy=entropy)
        return cast("SparseVector", made)

    @functools.cached_property
    def noise(self) -> tuple[str, float, float]:
        """The law, and the scales of the noise of the line, if it has any, and of a question, in the readings' unit."""
        watcher, unit = self.vector(SYSTEM_ENTROPY).watcher, float(self.unit)
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
        watcher = self.vector(SYSTEM_ENTROPY).watcher
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

    def question(self) -> Facts:
        """The question as a ledger keeps it.

        What was known beforehand, and the scales that the planner chose for it, are no part of it: whoever asks the
        same again finds the first answer. Noise that was stated by hand is, and so is whether all are named at once or
        one by one, which are charged in different ways.
        """
        family = self.settings.family
        scope = {"data": None, "family": [family.lower, family.upper, family.sensitivity, family.monotone]}
        return question_facts(
            "watch",
            **(scope if self.scope is None else self.scope.facts()),
            threshold=float(f"{self.threshold * float(self.unit):.12g}"),
            noise="set" if self.settings.at_once else self.noise[0],
            **self.by_hand_facts(),
            values=self.asked.how_much,
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
        return {"question": watch_words.question(self), **where, **line}

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
