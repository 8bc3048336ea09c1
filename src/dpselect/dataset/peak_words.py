"""A peak in words: which mechanism and why, what to expect, what to do where that is too little; and its report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from dpselect.dataset import how_much
from dpselect.dataset.answer import COARSER
from dpselect.dataset.budget import not_remembered
from dpselect.mechanisms.catalogue import entry_of
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.words import choice_in_words, often, percent, plural
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset.peak import Peak
    from dpselect.dataset.peak_plan import PeakPlan
    from dpselect.planning import Plan
    from dpselect.report.record import Entry


def reason(plan: PeakPlan) -> str:
    """Which mechanism is used, and why, in a sentence."""
    title = entry_of(plan.chosen.mechanism()).title
    if plan.forced is not None:
        return f"{title}, as {plan.forced}."
    return f"{title}: of {len(plan.plans)} that give this guarantee, the one expected to come closest."


def expectation(plan: PeakPlan) -> str:
    """How good the answer is expected to be beside a blind guess, in the readings' unit, and what that rests on."""
    with_unit, found, known = plan.scope.dataset.with_unit, plan.expected, plan.known
    told = choice_in_words(
        found.hits or 0.0,
        _shortfall(plan, found.shortfall),
        few=found.fewest_hits or 0.0,
        many=found.most_hits or 0.0,
        guess=found.guess_hits or 0.0,
        guess_short=_shortfall(plan, found.guess_shortfall),
        which="the " + plan.goal if plan.top == 1 else "the right one in each place",
        side=_side(plan),
    )
    if found.overlap is not None:
        told += f"; of the {plan.top} named, {plan.top * found.overlap:.1f} are among the {plan.top} {plan.goal}"
    if known.like is not None:
        return f"{told}; if it follows the public series given"
    if known.between is not None:
        low, high = (with_unit(f"{float(end):g}") for end in known.between)
        return f"{told}; for values between {low} and {high}, as stated"
    span = with_unit(_short(float(np.ptp(plan.series[0])) * plan.unit))
    narrow = "" if plan.narrow_hits is None else f" (over a tenth of that: right {often(plan.narrow_hits)})"
    return f"{told}; supposing that values range over about {span}{narrow}"


def _shortfall(plan: PeakPlan, share: float) -> str:
    """A share of the range in the readings' unit."""
    width = plan.scope.public.family.width * plan.unit
    return plan.scope.dataset.with_unit(_short(share * width))


def _short(number: float) -> str:
    """To three digits, written out: 1100, not 1.1e+03."""
    return f"{float(f'{number:.3g}'):g}"


def _side(plan: PeakPlan) -> str:
    """Where a wrong winner lies."""
    return "below" if plan.goal == "largest" else "above"


def advice(plan: PeakPlan) -> str | None:
    """One sentence where another mechanism does clearly better at the same cost."""
    short = {name: one.prediction.shortfall for name, one in plan.plans.items() if one.prediction is not None}
    best, mine = min(short, key=lambda name: short[name]), short[plan.mechanism]
    # A tenth of a percent of the range is within what the simulated runs cannot tell apart.
    if best == plan.mechanism or short[best] > 0.8 * mine or mine - short[best] < 0.001:
        return None
    theirs, ours = (_shortfall(plan, one) for one in (short[best], mine))
    return (
        f"{best} is more accurate at the same ε: on simulated data what it names is {theirs} {_side(plan)} the "
        f"{plan.goal} on average, against {ours}."
    )


def refusal(plan: PeakPlan) -> str:
    """What to say, and what to do, where the answer would hardly be better than a guess."""
    more = plan.enough()
    told = [] if more is None else [f"‹epsilon› {at_most(more * plan.cost(), digits=2)} would do on such data"]
    for periods, number in COARSER.get(plan.scope.period, ()):
        if plan.would_do_with(number):
            told.append(f"{periods} would do at this ‹epsilon›, were they as far apart")
            break
    remedy = "; ".join(told or ["ask about fewer and longer periods"])
    what = "the answer would hardly be better than a guess"
    if plan.beats_a_guess:
        what = f"fewer than half of the {plan.top} named would belong there"
    cap = "" if plan.scope.long_cap is None else f"; {plan.scope.long_cap}"
    return (
        f"{what}; expected: {expectation(plan)}; {remedy}, or ask about more people{cap}; nothing was spent "
        "(‹anyway› to insist)"
    )


def doubt(plan: PeakPlan) -> str | None:
    """What to say where what is named is probably not the largest; None where it probably is."""
    if plan.probable or not plan.useful:  # what is of no use is refused
        return None
    more = plan.enough_to_be_right()
    remedy = "" if more is None else f"; ‹epsilon› {at_most(more * plan.cost(), digits=2)} would do"
    near = f"what is named lies {_shortfall(plan, plan.expected.shortfall)} {_side(plan)} it on average"
    return f"{_improbable(plan)}, and {near}{remedy}"


def _improbable(plan: PeakPlan) -> str:
    return f"Probably not the {plan.goal}: that is named {often(plan.expected.hits or 0.0)}"


def table(plan: PeakPlan) -> tuple[list[str], list[list[str]]]:
    """Each mechanism that was tried, as headings and rows of a table."""
    in_unit = ["in the reading's unit"] if plan.unit != 1 else []
    rows = [
        [
            f"→ {name}" if name == plan.mechanism else f"  {name}",
            at_most(plan.shown_cost(name)),
            _noise(one),
            *(at_most(_scale(one) * plan.unit) for _ in in_unit),
            *(
                ()
                if one.prediction is None
                else (percent(one.prediction.shortfall), percent(one.prediction.hits or 0.0))
            ),
        ]
        for name, one in plan.plans.items()
    ]
    return ["mechanism", "pure ε ≤", "noise", *in_unit, "falls short", "best found"], rows


def scale(plan: Plan) -> dict[str, float]:
    """The scale of the noise, under the name the mechanism has for it."""
    return {plan.mechanism().noise_names[0]: _scale(plan)}


def _scale(plan: Plan) -> float:
    return float(plan.mechanism().scales[0])


def _noise(plan: Plan, *, unit: float = 1.0) -> str:
    """The law of the noise and its scale, in the queries' unit or another."""
    law = entry_of(plan.mechanism()).noise
    return f"{law}, {'σ =' if law == 'Gaussian' else 'scale'} {at_most(_scale(plan) * unit)}"


def question(plan: PeakPlan) -> str:
    """What is asked, in words."""
    what, measured = plan.scope.period, plan.scope.measured
    if plan.top > 1:
        return f"For which {plan.top} {plural(what)} is {measured} {plan.goal}, in order?"
    return f"For which {what} is {measured} {plan.goal}?"


def report(peak: Peak) -> Report:
    """The answer for people."""
    plan, dataset = peak.plan, peak.plan.scope.dataset
    several = plan.top > 1
    unit = dataset.with_unit("")
    if dataset.unit is None and plan.unit != 1:
        unit = f" in the unit of {dataset.value or 'the reading'}"
    said = expectation(plan)
    details: list[Entry] = [(f"Place {place + 1}", _told(peak, place)) for place in range(1, len(peak.labels))]
    if peak.amounts is not None:
        details.append(("How much", how_much.MEANING if plan.is_cut else how_much.UNCUT))
    found = Finding(
        question=question(plan),
        answer=f"Place 1: {_told(peak, 0)}" if several else _told(peak, 0),
        details=(*details, ("Expected", f"{said[0].upper()}{said[1:]}.")),
        spending=Spending(spent=(peak.epsilon,), above=(), budget=peak.epsilon),
    )
    rho = f"a ledger that adds up ρ (zCDP) takes ρ = {at_most(plan.rho)} for this one: many answers then come to less"
    return Report(
        title=f"The {plan.top} {plan.goal}" if several else f"The {plan.scope.period} with the {plan.goal} value",
        findings=(found,),
        guarantee=Guarantee(epsilon=peak.epsilon, neighbours=dataset.neighbours, noise=peak.noise),
        parameters=(
            *plan.scope.parameters(),
            ("Mechanism", reason(plan)),
            ("Noise", _noise(plan.chosen, unit=plan.unit) + unit),
            *((("For many answers", rho),) if several else ()),
            *(() if peak.entry is None else (("Ledger entry", f"{peak.entry:,}"),)),
        ),
        notes=tuple(_notes(peak)),
        made=datetime.now(UTC).astimezone(),
    )


def _told(peak: Peak, place: int) -> str:
    if peak.amounts is None:
        return peak.labels[place]
    amount = how_much.told(peak.amounts[place], peak.plan.margin or 0.0)
    return f"{peak.labels[place]} ({peak.plan.scope.dataset.with_unit(amount)})"


def _notes(peak: Peak) -> Iterator[str]:
    plan, scope = peak.plan, peak.plan.scope
    if plan.probable:
        yield f"The answer is the winner after noise: one of the {plan.goal}, not surely the {plan.goal}."
    else:
        yield f"{_improbable(plan)}; the answer is the winner after noise, one of the {plan.goal}."
    if peak.noise == "reproducible":
        yield NOTHING_TO_ADD
    elif not peak.repeated:
        yield f"Into the running sum of all answers about the same people goes ε = {at_most(peak.epsilon)}."
    if peak.entry is None and peak.noise != "reproducible":
        yield not_remembered(scope.dataset.budget)
    if peak.repeated and peak.given is not None:
        when = datetime.fromisoformat(peak.given).astimezone(UTC)
        yield (
            f"The question was asked before: this is its first answer, given {when:%Y-%m-%d at %H:%M} UTC. It cost "
            "nothing now, and says nothing of rows that came or changed since; to ask about them, draw it afresh "
            "and pay again."
        )
    yield from _doubts(peak)
    if plan.top > 1:
        yield "Places are uncertain: each is drawn with noise of its own, and the order most of all."
    if scope.dataset.is_series:
        yield "The rows were added up beforehand: the curator vouches for what one person can change."
    yield from scope.cautions


def _doubts(peak: Peak) -> Iterator[str]:
    """What to say of a population that may not hold, and of values at an end of their range; no row is looked at."""
    plan, dataset = peak.plan, peak.plan.scope.dataset
    lower, upper = (float(end) * plan.unit for end in (plan.scope.public.family.lower, plan.scope.public.family.upper))
    amounts = peak.amounts or ()
    if dataset.is_series:
        yield (
            f"A value above the maximum, {plan.scope.cap_in_words}, would be cut to it and the answer could be wrong; "
            "describing the table shows it."
        )
    elif dataset.population is not None and plan.is_cut:
        yield (
            f"With rows of more than {dataset.population:,} persons the totals would be cut and the answer could be "
            "wrong; describing the table shows it."
        )
    elif dataset.population is not None and max(amounts, default=upper) > upper:
        yield (
            f"More than {dataset.population:,} persons must have rows, for a value above "
            f"{dataset.with_unit(f'{upper:g}')} is more than so many can come to. The choice does not suffer"
            + (", but the values are too large: they are divided by that number." if plan.unit != 1 else ".")
            + " Describe the table and give a population that holds."
        )
    cut = [label for label, amount in zip(peak.labels, amounts, strict=False) if amount in (lower, upper)]
    if cut:
        yield f"The value of {', '.join(cut)} is an end of the range: check cap, population and dates."
