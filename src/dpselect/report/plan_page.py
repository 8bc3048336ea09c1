"""A comparison of ways as a report: what to use, what to expect, and the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.plan import Plan
from dpselect.planning.planner import Comparison, Frontier
from dpselect.planning.ways import TITLES
from dpselect.report.guarantee import Guarantee
from dpselect.report.plots import LINES, MARKS, PALE, axes_of, rendered
from dpselect.report.record import Entry, Finding, Report
from dpselect.report.words import choice_in_words, f1_in_words, family_in_words, percent
from dpselect.rounding import at_most


@dataclass(frozen=True)
class Unit:
    """What a value of one in the plan is in the readings: ``Unit(20.0, "kWh")`` where values are shares of 20 kWh."""

    size: float = 1.0
    name: str = ""

    def of(self, value: float) -> str:
        """A value in the readings, rounded up."""
        return f"{at_most(value * self.size)} {self.name}".rstrip()


def plan_report(comparison: Comparison, *, frontier: Frontier | None = None, unit: Unit = Unit()) -> Report:
    """The report of a comparison; nothing private is in it, because nothing private was looked at.

    >>> from dpselect import QueryFamily
    >>> from dpselect.planning import Job, compare
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> plan_report(compare(Job(asked="largest", family=family, count=50, epsilon=0.5))).findings[0].answer
    'Permute-and-flip'
    """
    job, best = comparison.job, comparison.best
    parameters = ("Parameters", parameters_in_words(best, unit))
    first = Finding(
        question=f"How to answer: {asked_in_words(job, unit)}",
        answer=best.title,
        details=(("Advice", comparison.advice), *expected(job, best), parameters),
    )
    others = Finding(
        question="And the others?",
        answer="Every way, best first",
        table=ways_table(comparison, unit),
        figure=None if frontier is None else frontier_svg(frontier),
        caption="Score against budget; bars show the stated uncertainty of the prediction.",
    )
    meaning = (
        "F1 is one number for both kinds of mistakes: 1 where exactly those above are named, 0 where none of them is."
        if job.asked == "crossings"
        else "What is chosen may fall short of the very largest: by how much is a share of the range."
    )
    return Report(
        title="A plan",
        findings=(first, others),
        guarantee=Guarantee(epsilon=best.epsilon, delta=best.delta, neighbours="declared"),
        parameters=public_parameters(job),
        notes=(
            "Nothing was released and nothing was spent: a plan looks at public knowledge only.",
            f"{meaning} Expected: {expectation(best, unit)}.",
            "Predictions come from simulation on noise that the tuning has not seen; the mean of as many fresh runs "
            "lies within the stated ±.",
        ),
    )


def asked_in_words(job: Job, unit: Unit) -> str:
    """The question of a job."""
    if job.threshold is None:
        return f"which of {job.count:,} candidates is largest?"
    return f"which of {job.count:,} questions reach {job.threshold * unit.size:.6g} {unit.name}".rstrip() + "?"


def ways_table(comparison: Comparison, unit: Unit) -> tuple[tuple[str, ...], ...]:
    """The names of the columns, then a row for each way, best first."""
    job = comparison.job
    head = ("Way", "Guarantee", *(name for name, _ in expected(job, comparison.best)), "Parameters")
    told = ((guarantee_in_words(plan), *dict(expected(job, plan)).values()) for plan in comparison.plans)
    rows = zip(comparison.plans, told, strict=True)
    return (head, *((plan.title, *texts, parameters_in_words(plan, unit)) for plan, texts in rows))


def guarantee_in_words(plan: Plan) -> str:
    """ε and δ, rounded up.

    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> from dpselect.planning.ways import OneShot
    >>> guarantee_in_words(Plan(way=OneShot(name="exponential", scale=0.02), asked="largest", family=family, count=9,
    ...                         epsilon=0.1))
    'ε = 0.1, pure'
    """
    return f"ε = {at_most(plan.epsilon)}, " + (f"δ = {at_most(plan.delta)}" if plan.delta else "pure")


def expected(job: Job, plan: Plan) -> tuple[Entry, ...]:
    """What to expect, in the words of a dry run, in columns."""
    found = plan.prediction
    if found is None:
        return ()
    if found.hits is not None:
        return (("Best found", percent(found.hits)), ("Falls short", percent(1.0 - found.score)))
    rows = [("F1", f"{found.score:.2f} ± {found.uncertainty:.2f}")]
    if found.low is not None and found.high is not None:
        rows.append(("Four times of five", f"{found.low:.2f} to {found.high:.2f}"))
    if len(job.scenarios()) > 1:
        rows.append(("F1, cautious", f"{found.cautious:.2f}"))
    return (*rows, ("Answered", percent(found.answered / job.count)))


def expectation(plan: Plan, unit: Unit) -> str:
    """The sentence that a dry run of the plan has, beside a guess that looks at no data."""
    found = plan.prediction
    if found is None:
        return "nothing is known of it"
    if found.hits is None or found.guess is None or found.guess_hits is None:
        return f1_in_words(found)
    few, many = found.fewest_hits or 0.0, found.most_hits or 0.0
    width = plan.family.width * unit.size
    short, guess = (f"{(1.0 - score) * width:.3g} {unit.name}".rstrip() for score in (found.score, found.guess))
    return choice_in_words(found.hits, short, few=few, many=many, guess=found.guess_hits, guess_short=guess)


#: What each tuned number is.
_NAMES = {
    "scale_threshold": "noise of the line",
    "scale_query": "noise of each question",
    "clip_below": "cut below the line by",
    "clip_above": "cut above the line by",
    "scale": "noise",
}


def parameters_in_words(plan: Plan, unit: Unit) -> str:
    """The tuned numbers."""
    shown = []
    for name, value in plan.way.parameters.items():
        if name in ("rare", "together", "hold", "lean"):
            continue
        if name == "line_share" and isinstance(value, float):
            shown.append(f"{percent(value)} of ε for the line")
        elif name == "chains" and isinstance(value, tuple | list):
            told = [f"{percent(chain[0])} above, correlation {chain[1]:g}" for chain in value]  # type: ignore[index]
            shown.append("prior of " + " or ".join(told))
        elif isinstance(value, tuple | list):
            shown.append(f"for {np.sum(value):.3g} answers {plan.way.parameters.get('rare', 'below')} the line")
        else:
            shown.append(f"{_NAMES[name]} {unit.of(float(value))}")
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


def draw_frontier(found: Frontier) -> Any:
    """Score against ε, one line per way, as a Matplotlib figure; bars show the stated uncertainty."""
    figure, axes = axes_of(width=7.6, height=4.6)
    for place, (key, line) in enumerate(found.lines.items()):
        points = [(plan.epsilon, plan.prediction) for plan in line if plan.prediction is not None]
        if not points:
            continue
        delta = line[0].delta
        axes.errorbar(
            [epsilon for epsilon, _ in points],
            [prediction.score for _, prediction in points],
            yerr=[prediction.uncertainty for _, prediction in points],
            color=LINES[place % len(LINES)],
            marker=MARKS[place % len(MARKS)],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.8,
            label=TITLES[key] + (f" (δ = {at_most(delta, digits=3)})" if delta else ""),
        )
    axes.axhline(found.guess, color=PALE, linestyle=":", linewidth=1.2, label="a guess that looks at no data")
    if found.job.epsilon is not None:
        axes.axvline(found.job.epsilon, color=PALE, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    budgets = sorted({plan.epsilon for line in found.lines.values() for plan in line})
    axes.set_xticks(budgets, [at_most(budget, digits=3) for budget in budgets])
    axes.minorticks_off()
    axes.set_ylim(None, 1.02)
    axes.set(xlabel="privacy budget ε", ylabel="1 − shortfall" if found.job.asked == "largest" else "F1")
    axes.legend(fontsize=7.5, loc="best")
    return figure


def frontier_svg(found: Frontier) -> str:
    """The frontier as SVG whose words are text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):
        return rendered(draw_frontier(found), "svg").decode()
