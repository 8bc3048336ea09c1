"""A comparison of contenders as a report: what to use, what to expect, and the frontier."""

from __future__ import annotations

from dpselect.planning.budgets import Frontier
from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.plan import Plan
from dpselect.planning.planner import Comparison
from dpselect.report.guarantee import Guarantee
from dpselect.report.plots import frontier_svg
from dpselect.report.record import Entry, Finding, Report
from dpselect.report.rounding import at_most
from dpselect.report.words import family_in_words


def plan_report(comparison: Comparison, *, frontier: Frontier | None = None) -> Report:
    """The report of a comparison; nothing private is in it, because nothing private was looked at.

    >>> from dpselect import QueryFamily
    >>> from dpselect.planning import Job, compare
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> plan_report(compare(Job(asked="largest", family=family, count=50, epsilon=0.5))).findings[0].answer
    'Permute-and-flip'
    """
    job, best = comparison.job, comparison.best
    asked = f"Which of {job.count} candidates is largest?"
    if job.asked == "crossings":
        asked = f"Which of {job.count} questions reach {job.threshold:g}?"
    first = Finding(
        question=asked,
        answer=best.title,
        details=(("Advice", comparison.advice), ("Parameters", parameters_in_words(best)), *expected(job, best)),
    )
    table = Finding(
        question="And the others?",
        answer="Every contender, best first",
        details=tuple(
            (f"{place}. {plan.title}", in_words(job, plan)) for place, plan in enumerate(comparison.plans, 1)
        ),
        figure=None if frontier is None else frontier_svg(frontier),
        caption="Score against budget; bars show the stated uncertainty of the prediction.",
    )
    return Report(
        title="A plan",
        findings=(first, table),
        guarantee=Guarantee(epsilon=best.epsilon, delta=best.delta, neighbours="declared"),
        parameters=public_parameters(job),
        notes=(
            "Nothing was released and nothing was spent: a plan looks at public knowledge only.",
            f"An answer that looks at no data would score {comparison.guess:.3f}.",
            "Predictions come from simulation on noise that the tuning has not seen; the mean of as many fresh runs "
            "lies within the stated uncertainty.",
        ),
    )


def in_words(job: Job, plan: Plan) -> str:
    """One line about a contender."""
    told = (f"{name if name[:2] == 'F1' else name.lower()} {text}" for name, text in expected(job, plan))
    return "; ".join([guarantee_in_words(plan), *told, parameters_in_words(plan)])


def guarantee_in_words(plan: Plan) -> str:
    """ε and δ, rounded up.

    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> guarantee_in_words(Plan(contender="exponential", asked="largest", family=family, count=9, epsilon=0.1,
    ...                         parameters={"scale": 0.02}))
    'ε = 0.1, pure'
    """
    return f"ε = {at_most(plan.epsilon)}, " + (f"δ = {at_most(plan.delta)}" if plan.delta else "pure")


def expected(job: Job, plan: Plan) -> tuple[Entry, ...]:
    """Score and questions answered, each with its uncertainty."""
    found = plan.prediction
    if found is None:
        return ()
    score = f"{found.score:.3f} ± {found.uncertainty:.3f}"
    if job.asked == "largest":
        return (("Accuracy", score),)
    answered = f"{found.answered:.0f} ± {found.answered_uncertainty:.0f} of {job.count}"
    rows = [("F1", score), ("Answered", answered)]
    if len(job.scenarios()) > 1:
        rows.insert(1, ("F1 over all scenarios", f"{found.cautious:.3f}"))
    return tuple(rows)


#: What each tuned number is.
_NAMES = {
    "scale_threshold": "noise of the line",
    "scale_query": "noise of each question",
    "clip_below": "cut below the line by",
    "clip_above": "cut above the line by",
    "horizon": "longest run",
    "order": "order",
    "scale": "noise",
}


def parameters_in_words(plan: Plan) -> str:
    """The tuned numbers."""
    shown = []
    for name, value in plan.parameters.items():
        if name in ("rare", "together", "hold", "lean"):
            continue
        if isinstance(value, tuple | list):
            shown.append(f"for {sum(value):.3g} answers {plan.parameters.get('rare', 'below')} the line")
        else:
            shown.append(f"{_NAMES[name]} {at_most(float(value))}")
    return ", ".join(shown)


def public_parameters(job: Job) -> tuple[Entry, ...]:
    """What the plan was made from."""
    family = job.family
    known = (
        f"a public profile of {len(job.public.values)} values"
        if isinstance(job.public, Profile)
        else f"a {job.public.kind} model"
    )
    scenarios = "; ".join(f"{one.name} ({one.weight:.0%})" for one in job.scenarios())
    return (
        ("Values", family_in_words(family)),
        ("Known beforehand", known),
        ("Scenarios", scenarios),
    )
