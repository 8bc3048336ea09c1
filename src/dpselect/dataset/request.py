"""What is asked of a watch: threshold, budget and noise, as stated by hand, found by the planner or saved in a plan."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpselect.dataset.known import Known, Number
from dpselect.errors import DPSelectError, InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.catalogue import by_short_name
from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.plan import Plan
from dpselect.planning.planner import enough, ranked
from dpselect.planning.prediction import Prediction
from dpselect.planning.ways import GaussianByHand, Promise, equal_part, usual_ratio
from dpselect.privacy.family import QueryFamily
from dpselect.report.words import shown
from dpselect.rounding import exact_number, no_more_than

#: By default one question in ten is expected above the line.
ONE_ABOVE_IN = 10
#: Who is tried if nobody is named: pure ones, and more where a δ is allowed. Gaussian noise without a δ pays for the
#: range as well, and is for those who ask for it.
_PURE = ("exponential-rationed",)
#: Every value released within a δ.
_PUBLISHED = "gaussian-release"
#: Where all questions are there and no δ is needed: one price, however many reach the line.
_SET = "set-above-threshold"
#: The ways of a mechanism that was asked for by its short name.
_NAMED = {
    "set": (_SET,),
    "exponential": _PURE,
    "laplace": ("laplace-kept",),
    "gaussian": ("sparse-kept", "sparse-fresh"),
}
#: What is looked for with few passes is asked for with a little more.
_MARGIN = 1.05
#: An answer must take away at least this part of what a guess gets wrong. A convention: below it most of what is named
#: is what a guess names, and the budget is better kept.
CLEARLY_BETTER = 0.25


def is_useful(expected: Prediction | None) -> bool:
    """Whether the answers are expected to be clearly better than naming everything, a guess that looks at no data."""
    guess = 0.0 if expected is None else float(expected.guess or 0.0)
    return expected is not None and expected.score - guess >= CLEARLY_BETTER * (1.0 - guess)


@dataclass(frozen=True, kw_only=True)
class WatchRequest:
    """What is asked of a watch, in the readings' unit: the parameters of :meth:`Dataset.watch`, checked.

    Parameters
    ----------
    threshold, budget : number
        The public line, and the most all answers may cost.
    delta : number
        δ of the guarantee; 0 is pure.
    mechanism : str, optional
        A short name from the catalogue (``"laplace"``); if left out, the mechanism expected to do best.
    expect, between, like
        What is known beforehand (:class:`~dpselect.dataset.known.Known`).
    clip : (number, number), optional
        Gaussian noise by hand: cut questions to within these distances below and above the line.
    noise : (number, number or None), optional
        Gaussian noise by hand: σ of the line (σ_X) and of each question (σ_Z; follows σ_X if left out).
    resample : bool, optional
        Gaussian noise by hand: whether a new noisy line is drawn after each ⊤, as it is if left out, or one for all.
    how_much : bool
        Also release the values of those above, from half of the budget.
    plan : Plan, optional
        A saved plan that replaces all of this.

    Examples
    --------
    >>> by_hand = WatchRequest(threshold=12, budget=1, noise=(0.5, 0.5), resample=False)
    >>> by_hand.by_hand, WatchRequest(threshold=12, budget=1).by_hand
    (True, False)
    """

    threshold: Number | None = None
    budget: Number | None = None
    delta: Number = 0
    mechanism: str | None = None
    expect: Number | None = None
    between: tuple[Number, Number] | None = None
    like: Profile | None = None
    clip: tuple[Number, Number] | None = None
    noise: tuple[Number, Number | None] | None = None
    resample: bool | None = None
    how_much: bool = False
    plan: Plan | None = None

    def __post_init__(self) -> None:
        self._check_kinds()
        if self.plan is not None:
            names = ("threshold", "budget", "clip", "noise", "mechanism", "resample", "expect", "between", "like")
            said = {name: getattr(self, name) for name in names} | {"delta": self.delta or None}
            refuse_given("‹plan›, which says it", **said)
            refuse_given("‹plan›, whose whole budget names those above", how_much=self.how_much or None)
            usable = self.plan.one_by_one is not None or self.plan.name in (_SET, _PUBLISHED)
            if self.plan.asked != "crossings" or not usable:
                raise InvalidParameter(
                    f"‹plan› must be for a line to be reached, by a sparse vector, {_SET} or {_PUBLISHED}; this one is "
                    f"for {self.plan.name}"
                )
            return
        for name in ("threshold", "budget"):
            if getattr(self, name) is None:
                raise refuse(name, None, "given here")
            self.stated(name)
        if self.stated("budget") <= 0:
            raise refuse("budget", self.budget, "positive")
        ways = by_short_name("above-threshold", "set")
        if self.mechanism is not None and self.mechanism not in ways:
            raise refuse("mechanism", self.mechanism, "one of " + ", ".join(ways))
        if self.by_hand and self.mechanism not in (None, "gaussian"):
            raise refuse("mechanism", self.mechanism, "gaussian, or left out, where noise or a clip is stated by hand")
        if self.by_hand and self.delta:
            raise refuse("delta", self.delta, "left out where noise or a clip is stated by hand")

    @functools.cached_property
    def known(self) -> Known:
        """What is known beforehand."""
        return Known(expect=self.expect, between=self.between, like=self.like)

    def refuse_streams(self) -> None:
        """Refuses what needs all questions at once, where they come one by one."""
        refuse_given("questions that come one by one, whose values are gone by then", how_much=self.how_much or None)
        if self.mechanism == "set" or (self.plan is not None and self.plan.at_once):
            name = "mechanism" if self.plan is None else "plan"
            rule = "for questions that come one by one: this one answers all of them at once, as a table has them"
            raise refuse(name, _SET, rule)

    def _check_kinds(self) -> None:
        for name, kind in (("plan", Plan), ("resample", bool), ("how_much", bool), ("mechanism", str)):
            value = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or name == "how_much"):
                raise refuse(name, value, f"a {kind.__name__}")
        _ = self.known  # checked there
        self.stated("delta")
        for name in ("clip", "noise"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, tuple | list) and len(value) == 2):
                raise refuse(name, value, "two numbers")
        for name, value in zip(("sigma_threshold", "sigma_query"), self.noise or (), strict=False):
            if value is not None and exact_number(name, value) <= 0:
                raise refuse(name, value, "positive")

    @property
    def by_hand(self) -> bool:
        """Whether the noise, or how it is used, was stated instead of left to the planner."""
        return self.noise is not None or self.clip is not None or self.resample is not None

    @property
    def parts(self) -> int:
        """Into how many equal parts the budget goes: one for the names, and one for the values where they are asked."""
        return 2 if self.how_much else 1

    @property
    def part(self) -> float:
        """What the names may cost, and the values as much."""
        return equal_part(no_more_than(self.stated("budget")), self.parts)

    def stated(self, name: str) -> Fraction:
        """A number as it was given, exactly."""
        return exact_number(name, getattr(self, name))

    def expected_above(self, *, questions: int) -> int:
        """How many ⊤ are expected of so many questions; refuses what cannot be."""
        if questions < 1:
            raise refuse("questions", questions, "1 or more")
        share = self.known.share(questions=questions)
        return max(1, questions // ONE_ABOVE_IN if share is None else round(share * questions))

    def job(self, family: QueryFamily, *, questions: int, unit: Fraction, whole: bool = False) -> Job | None:
        """The planner's job; None where no value can be on both sides of the line."""
        threshold = float(self.stated("threshold") / unit)
        if not family.lower < threshold < family.upper:
            return None
        share = self.known.share(questions=questions)
        public = self.known.public(unit=unit)
        return Job(
            asked="crossings",
            family=family,
            count=questions,
            epsilon=self.part,
            delta=no_more_than(self.stated("delta")) if self.delta else 0.0,
            threshold=threshold,
            share=share,
            public=public,
            whole=whole,
        )

    def ways(self, *, whole: bool) -> tuple[str, ...]:
        """Names of the ways to compare; ``whole`` says that all questions are there, and no more will come."""
        if self.mechanism is not None:
            return _NAMED[self.mechanism]
        # What a past series shows may change beyond all that is weighed, and a fixed number of ⊤ would end the answers
        # early. Where a number is stated, or supposed within a factor of three, that is tried, too.
        pure = _PURE if self.known.like is not None else (*_PURE, "exponential-kept")
        if whole:  # a stream that ends early is no answer about a table
            return (_SET, _PUBLISHED) if self.delta else (_SET,)
        return (*pure, _PUBLISHED) if self.delta else pure

    def ranked(
        self,
        family: QueryFamily,
        *,
        questions: int,
        unit: Fraction,
        whole: bool,
        progress: Callable[[float], None] = lambda share: None,
    ) -> Sequence[Plan]:
        """The ways under this promise, the one expected to do best first; none where no value can be on both
        sides of the line."""
        job = self.job(family, questions=questions, unit=unit, whole=whole)
        plans = [] if job is None else ranked(job, self.ways(whole=whole), on_progress=progress)
        return plans if plans and plans[0].prediction is not None else []

    def sufficient(
        self, family: QueryFamily, *, questions: int, unit: Fraction, whole: bool, longer: Sequence[tuple[str, int]]
    ) -> tuple[float | None, tuple[str, int] | None] | None:
        """A budget at which the answers would be of use, and the first of some longer periods that would do now.

        None where a plan says it all, or no value can be on both sides of the line.
        """
        job = None if self.plan is not None else self.job(family, questions=questions, unit=unit, whole=whole)
        if job is None:
            return None
        # The first two: a whole set, where there can be one, and what rations its budget.
        ways, epsilon = self.ways(whole=whole)[: 1 + whole], float(job.epsilon or 1.0)
        least = enough(lambda more: _will_do(job, ways, more), start=epsilon)
        # A share that was stated holds for another number of questions, too; a number does not.
        shared = self.expect is None or 0 < self.expect < 1
        coarser = None
        for periods, number in longer if shared else ():
            # The values and what one person moves grow alike; questions, and with them those above, become fewer.
            fewer = replace(job, count=max(1, questions // number))
            if fewer.count > 1 and _will_do(fewer, ways, epsilon / _MARGIN):
                coarser = periods, number
                break
        return None if least is None else _MARGIN * least * self.parts, coarser

    def predicted(self, plan: Plan, *, unit: Fraction) -> Prediction | None:
        """How noise that was stated by hand, or planned before, is expected to do on what is known."""
        if plan.prediction is not None and plan.prediction.guess is not None:
            return plan.prediction
        if self.plan is None:
            job = self.job(plan.family, questions=plan.count, unit=unit)
        else:
            promise: dict[str, Any] = {"epsilon": plan.epsilon, "delta": plan.delta, "threshold": plan.threshold}
            job = Job(asked="crossings", family=plan.family, count=plan.count, **promise)
        if job is None or plan.one_by_one is None:
            return None
        return plan.way.predict(job, epsilon=plan.epsilon, seed=1)

    def stated_noise(self, family: QueryFamily, *, questions: int, unit: Fraction) -> Plan:
        """What a plan says; otherwise Gaussian noise as stated by hand, or by the plain rule, for these queries."""
        if self.plan is not None:
            # A whole set costs the same for any number of questions; all else ends with those it was planned for.
            return self.plan.fitted(family, unit=float(unit), count=questions if self.plan.at_once else None)
        threshold, resample = float(self.stated("threshold") / unit), self.resample is not False
        clip = None if self.clip is None else (float(_exact(self.clip[0]) / unit), float(_exact(self.clip[1]) / unit))
        if clip is not None:
            self._refuse_narrow(family, threshold, clip, unit=unit)
        promise = Promise(family=family, count=questions, epsilon=self.part, threshold=threshold)
        if self.noise is None:
            above = self.expected_above(questions=questions)
            way = GaussianByHand.usual(promise, above=above, resample=resample, clip=clip)
        else:
            of_line, of_question = (None if one is None else float(_exact(one) / unit) for one in self.noise)
            scales = of_line or 0.0, usual_ratio(family) * (of_line or 0.0) if of_question is None else of_question
            way = GaussianByHand.stated(scales, resample=resample, clip=clip)
        return Plan(way=way, asked="crossings", family=family, count=questions, epsilon=self.part, threshold=threshold)

    def _refuse_narrow(
        self, family: QueryFamily, threshold: float, clip: tuple[float, float], *, unit: Fraction
    ) -> None:
        """Refuses a clip that leaves no range around the line, in the readings' unit."""
        try:
            family.near(threshold, below=clip[0], above=clip[1])
        except InvalidParameter:
            ends = " to ".join(f"{end * float(unit):.10g}" for end in (family.lower, family.upper))
            widths = ",".join(shown(_exact(width)) for width in self.clip or ())
            line = shown(self.stated("threshold"))
            raise InvalidParameter(
                f"‹clip› must be wide enough to leave a range around the threshold, {line}, within {ends}; "
                f"got {widths}",
                parameter="clip",
            ) from None


def _will_do(job: Job, ways: Sequence[str], epsilon: float) -> bool:
    for name in ways:
        with contextlib.suppress(DPSelectError):
            if is_useful(Plan.made(job, name, epsilon=epsilon, passes=60).prediction):
                return True
    return False


def _exact(value: Number) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
