"""The line, the budget and the noise of a watch: as a person states them, or as a plan does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.report.rounding import no_more_than
from dpselect.report.words import family_in_words, shown

if TYPE_CHECKING:
    from dpselect.composition.filter import Filter
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
    from dpselect.noise.entropy import Entropy
    from dpselect.planning import Plan
    from dpselect.privacy.family import QueryFamily

#: By default one question in ten is expected above the line.
ONE_ABOVE_IN = 10

Number = Fraction | float


@dataclass(frozen=True, kw_only=True)
class Line:
    """What is watched for, in the readings' unit.

    Parameters
    ----------
    threshold, budget : number
        The line, and the most all answers may cost.
    clip : (number, number), optional
        Cut questions to within these distances below and above the line.
    noise : (number, number or None), optional
        σ of the line (σ_X) and of each question (σ_Z; follows σ_X if left out). Without it, the least noise with which
        ``expect`` answers ⊤ fit the budget.
    expect : int, optional
        How many ⊤ the noise is planned for; one question in ten if left out.
    keep_threshold : bool
        One noisy line for all questions, not a new one after each ⊤.
    plan : Plan, optional
        All of this from a plan instead.
    """

    threshold: Number | None = None
    budget: Number | None = None
    clip: tuple[Number, Number] | None = None
    noise: tuple[Number, Number | None] | None = None
    expect: int | None = None
    keep_threshold: bool = False
    plan: Plan | None = None

    def __post_init__(self) -> None:
        if self.plan is not None:
            said = {name: getattr(self, name) for name in ("threshold", "budget", "clip", "noise", "expect")}
            refuse_given("‹plan›, which says it", **said, keep_threshold=self.keep_threshold or None)
            if self.plan.sparse is None:
                raise InvalidParameter(
                    f"‹plan› must hold a plan for a sparse vector; this one is for {self.plan.contender}"
                )
            return
        for name in ("threshold", "budget"):
            if getattr(self, name) is None:
                raise refuse(name, None, "given here")
        if self._stated("budget") <= 0:
            raise refuse("budget", self.budget, "positive")

    def _stated(self, name: str) -> Fraction:
        value = getattr(self, name)
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)

    def check(self, *, questions: int) -> int:
        """How many ⊤ are expected of so many questions; refuses what cannot be."""
        if questions < 1:
            raise refuse("questions", questions, "1 or more")
        expect = max(1, questions // ONE_ABOVE_IN) if self.expect is None else self.expect
        if not 1 <= expect <= questions:
            raise refuse("expect", expect, f"from 1 to the number of questions, {questions}")
        return expect

    def settings(self, family: QueryFamily, *, questions: int, unit: Fraction) -> Settings:
        """The same on the scale of the queries, of which one is ``unit`` in the readings'."""
        expect = self.check(questions=questions)
        if self.plan is not None:
            return _planned(self.plan, family)
        threshold = float(self._stated("threshold") / unit)
        budget = no_more_than(self._stated("budget"))
        clip = None if self.clip is None else (float(_exact(self.clip[0]) / unit), float(_exact(self.clip[1]) / unit))
        near = family if clip is None else self._near(family, threshold, clip, unit=unit)
        if self.noise is None:
            found = usual_noise(
                near,
                threshold=threshold,
                budget=budget,
                questions=questions,
                above=expect,
                keep_threshold=self.keep_threshold,
            )
            noise = found.sigma_threshold, found.sigma_query
        else:
            of_line, of_question = float(_exact(self.noise[0]) / unit), self.noise[1]
            usual = usual_ratio(family) * of_line
            noise = of_line, usual if of_question is None else float(_exact(of_question) / unit)
        return Settings(
            family=family,
            threshold=threshold,
            budget=budget,
            clip=clip,
            keep_threshold=self.keep_threshold,
            noise=noise,
        )

    def _near(self, family: QueryFamily, threshold: float, clip: tuple[float, float], *, unit: Fraction) -> QueryFamily:
        """The family cut around the line; a refusal speaks in the readings' unit."""
        try:
            return family.near(threshold, below=clip[0], above=clip[1])
        except InvalidParameter:
            ends = " to ".join(f"{end * float(unit):.10g}" for end in (family.lower, family.upper))
            widths = ",".join(shown(_exact(width)) for width in self.clip or ())
            line = shown(self._stated("threshold"))
            raise InvalidParameter(
                f"‹clip› must be wide enough to leave a range around the threshold, {line}, within {ends}; "
                f"got {widths}",
                parameter="clip",
            ) from None


def _exact(value: Number) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything public about a watch, on the scale of the queries; ``noise`` or a ``plan`` says which mechanism."""

    family: QueryFamily
    threshold: float
    budget: float
    delta: float = 0.0
    clip: tuple[float, float] | None
    keep_threshold: bool
    noise: tuple[float, float] | None = None
    plan: Plan | None = None

    def build(self, entropy: Entropy, *, filter: Filter | None = None) -> SparseVector:
        """The sparse vector with this source of noise, on its own budget or another ``filter``'s."""
        from dpselect.composition.sparse_vector import SparseVector
        from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

        # Values outside the range are cut to it: refusing them would say something about the data.
        if self.plan is not None:
            made: Any = self.plan.mechanism(entropy=entropy, outside="clip", filter=filter)
            if not isinstance(made, SparseVector):
                raise InvalidParameter(f"‹plan› must hold a plan for a sparse vector, not for {self.plan.contender}")
            return made
        of_line, of_question = self.noise or (0.0, 0.0)
        watcher = GaussianAboveThreshold(
            self.family, threshold=self.threshold, sigma_threshold=of_line, sigma_query=of_question
        )
        return SparseVector(
            watcher,
            budget=self.budget if filter is None else None,
            filter=filter,
            resample=not self.keep_threshold,
            clip=self.clip,
            outside="clip",
            entropy=entropy,
        )


def _planned(plan: Plan, family: QueryFamily) -> Settings:
    if plan.family != family:
        raise InvalidParameter(
            f"the plan is for {family_in_words(plan.family)}, but these are {family_in_words(family)}; "
            "make the plan again for this question"
        )
    return Settings(
        family=family,
        threshold=float(plan.threshold or 0.0),
        budget=plan.epsilon,
        delta=plan.delta,
        clip=plan.sparse_parameters.clip,
        keep_threshold=plan.sparse is None or not plan.sparse.resample,
        plan=plan,
    )


def usual_ratio(family: QueryFamily) -> float:
    """σ_Z/σ_X if left out: 1 where monotone accounting makes ⊤ and ⊥ cost alike, otherwise the usual √3."""
    return 1.0 if family.monotone else math.sqrt(3.0)


def usual_noise(
    family: QueryFamily, *, threshold: float, budget: float, questions: int, above: int, keep_threshold: bool
) -> GaussianAboveThreshold:
    """The least noise with which the expectation fits the budget; ``family`` as it is after clipping.

    With new thresholds, ``above`` ⊤ evenly spread make as many runs and a last one without ⊤; each may cost an
    equal part of the budget. With one threshold kept, the whole transcript may cost the budget.

    >>> from dpselect.privacy.family import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
    >>> watcher = usual_noise(family, threshold=0.5, budget=1.0, questions=365, above=36, keep_threshold=False)
    >>> watcher.loss(below=11, above=1) <= 1 / 37, watcher.sigma_query == watcher.sigma_threshold
    (True, True)
    """
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

    counts = {"below": max(questions - above, 0), "above": above}
    share = budget
    if not keep_threshold:
        counts, share = {"below": math.ceil(questions / above), "above": 1}, budget / (above + 1)
    return GaussianAboveThreshold.calibrated(
        family, threshold=threshold, epsilon=share, ratio=usual_ratio(family), **counts
    )
