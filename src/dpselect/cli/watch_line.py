"""The line, the budget and the noise of a watch, as typed or as planned, on the scale of the queries."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dpselect.cli.epsilon import family_in_words, needed, refuse_given
from dpselect.cli.numbers import no_more_than, shown
from dpselect.cli.watching import ONE_ABOVE_IN, Watching, usual_noise, usual_ratio
from dpselect.errors import InvalidParameter

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.noise.entropy import Entropy
    from dpselect.planning import Plan
    from dpselect.privacy.family import QueryFamily


def read_plan(path: Path) -> Plan:
    """A plan for crossings; refuses plans for other jobs."""
    from dpselect.planning import load_plan

    plan = load_plan(path)
    if plan.sparse is None:
        raise InvalidParameter(f"--plan must hold a plan for a sparse vector; this one is for {plan.contender}")
    return plan


@dataclass(frozen=True, kw_only=True)
class Line:
    """The options of the same names, in the readings' unit; with a plan, only the plan."""

    threshold: Fraction | None
    budget: Fraction | None
    clip: tuple[Fraction, Fraction] | None
    sigma_threshold: Fraction | None
    sigma_query: Fraction | None
    expect: int | None
    keep_threshold: bool
    plan: Plan | None

    def __post_init__(self) -> None:
        if self.plan is not None:
            refuse_given(
                "--plan, which says it",
                threshold=self.threshold,
                budget=self.budget,
                clip=self.clip,
                sigma_threshold=self.sigma_threshold,
                sigma_query=self.sigma_query,
                expect=self.expect,
                keep_threshold=self.keep_threshold or None,
            )
            return
        needed("threshold", self.threshold)
        if needed("budget", self.budget) <= 0:
            raise InvalidParameter("--budget must be positive")
        if self.sigma_query is not None and self.sigma_threshold is None:
            raise InvalidParameter("--sigma-query needs --sigma-threshold beside it; give both or neither")

    def stream_family(
        self, *, lower: Fraction | None, upper: Fraction | None, sensitivity: Fraction | None, monotone: bool
    ) -> QueryFamily:
        """What questions on standard input promise: as typed, or as planned."""
        from dpselect.privacy.family import QueryFamily

        if self.plan is not None:
            refuse_given(
                "--plan, which says it", lower=lower, upper=upper, sensitivity=sensitivity, monotone=monotone or None
            )
            return self.plan.family
        return QueryFamily(
            lower=Fraction(0) if lower is None else lower,  # type: ignore[arg-type]  # rounded to the safe side
            upper=Fraction(1) if upper is None else upper,  # type: ignore[arg-type]
            sensitivity=needed("sensitivity", sensitivity),  # type: ignore[arg-type]
            monotone=monotone,
        )

    def watching(self, family: QueryFamily, *, questions: int, unit: Fraction = Fraction(1)) -> Watching:
        """The watch in the queries' unit, of which one is ``unit`` in the readings'."""
        if questions < 1:
            raise InvalidParameter(f"--questions must be 1 or more; got {questions}")
        expect = max(1, questions // ONE_ABOVE_IN) if self.expect is None else self.expect
        if not 1 <= expect <= questions:
            raise InvalidParameter(f"--expect must be from 1 to the number of questions, {questions}; got {expect}")
        if self.plan is not None:
            return _planned(self.plan, family, questions=questions, expect=expect)
        return self._typed(family, questions=questions, expect=expect, unit=unit)

    def _near(self, family: QueryFamily, threshold: float, clip: tuple[float, float], *, unit: Fraction) -> QueryFamily:
        """The family cut around the line; a refusal speaks of the options, in the readings' unit."""
        try:
            return family.near(threshold, below=clip[0], above=clip[1])
        except InvalidParameter:
            ends = " to ".join(f"{end * float(unit):.10g}" for end in (family.lower, family.upper))
            widths = ",".join(shown(width) for width in self.clip or ())
            raise InvalidParameter(
                f"--clip must be wide enough to leave a range around the threshold, {shown(self.threshold or unit)}, "
                f"within {ends}; got {widths}"
            ) from None

    def _typed(self, family: QueryFamily, *, questions: int, expect: int, unit: Fraction) -> Watching:
        from dpselect.composition.sparse_vector import SparseVector
        from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold

        threshold = float(needed("threshold", self.threshold) / unit)
        budget = no_more_than(needed("budget", self.budget))
        clip = None if self.clip is None else (float(self.clip[0] / unit), float(self.clip[1] / unit))
        near = family if clip is None else self._near(family, threshold, clip, unit=unit)
        resample = not self.keep_threshold
        if self.sigma_threshold is None:
            found = usual_noise(
                near, threshold=threshold, budget=budget, questions=questions, above=expect, resample=resample
            )
            noise = found.sigma_threshold, found.sigma_query
        else:
            line = float(self.sigma_threshold / unit)
            noise = line, usual_ratio(family) * line if self.sigma_query is None else float(self.sigma_query / unit)
        watcher = GaussianAboveThreshold(family, threshold=threshold, sigma_threshold=noise[0], sigma_query=noise[1])

        def build(entropy: Entropy) -> SparseVector:
            # Values outside the range are cut to it: refusing them would say something about the data.
            return SparseVector(watcher, budget=budget, resample=resample, clip=clip, outside="clip", entropy=entropy)

        return Watching(
            family=family,
            threshold=threshold,
            budget=budget,
            clip=clip,
            questions=questions,
            expected_above=expect,
            resample=resample,
            build=build,
        )


def _planned(plan: Plan, family: QueryFamily, *, questions: int, expect: int) -> Watching:
    if plan.family != family:
        raise InvalidParameter(
            f"the plan is for {family_in_words(plan.family)}, but these are {family_in_words(family)}; "
            "make the plan again for this question"
        )

    def build(entropy: Entropy) -> SparseVector:
        from dpselect.composition.sparse_vector import SparseVector

        found = plan.mechanism(entropy=entropy, outside="clip")
        if not isinstance(found, SparseVector):
            raise InvalidParameter(f"--plan must hold a plan for a sparse vector; this one is for {plan.contender}")
        return found

    return Watching(
        family=family,
        threshold=float(plan.threshold or 0.0),
        budget=plan.epsilon,
        delta=plan.delta,
        clip=plan.sparse_parameters.clip,
        questions=questions,
        expected_above=expect,
        resample=plan.sparse is not None and plan.sparse.resample,
        build=build,
    )
