"""How a question was kept before version 2, sentences included: frozen, to find what was paid for then.

Nothing here is shown to anybody, and no word of it may change: a question in other words would not be found.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.dataset.scope import Scope
from dpselect.report.words import shown
from dpselect.rounding import at_most, exact_number
from dpselect.tables import Calendar, Categories

if TYPE_CHECKING:
    from dpselect.dataset.peak_plan import PeakPlan
    from dpselect.dataset.watch_plan import WatchPlan

_GATHERED = {"sum": "sum", "mean": "mean", "max": "largest"}


def peak_1(plan: PeakPlan) -> dict[str, Any]:
    """A peak."""
    made = plan.chosen.mechanism()
    return {
        **_parameters(plan.scope),
        "verb": "peak",
        **_named(plan.scope),
        "mechanism": plan.mechanism,
        made.noise_names[0]: float(made.scales[0]),
        **({} if plan.goal == "largest" else {"goal": plan.goal}),
        **({} if plan.top == 1 else {"top": plan.top}),
        **({} if plan.value is None else {"value_scale": plan.value.scale}),
        "epsilon": plan.shown_cost(),
        "labels": hashlib.sha256("\n".join(plan.scope.candidates.labels).encode()).hexdigest(),
    }


def watch_1(plan: WatchPlan) -> dict[str, Any]:
    """A watch, of a data set or of a stream."""
    family, scope = plan.settings.family, plan.scope
    if scope is None:
        moves = at_most(family.sensitivity)
        about = {"Data": "questions on standard input", "One person": f"changes each value by at most {moves}"}
    else:
        about = {**_parameters(scope), **_named(scope)}
    line = f"{plan.threshold * float(plan.unit):.10g}"
    return {
        **about,
        "Line": line if scope is None else scope.dataset.with_unit(line),
        "verb": "watch",
        "family": [family.lower, family.upper, family.sensitivity, family.monotone],
        "threshold": plan.threshold,
        "noise": "set" if plan.settings.at_once else plan.noise[0],
        **plan.by_hand_facts(),
        **({"how_much": True} if plan.asked.how_much else {}),
        "budget": plan.shown_budget,
        "delta": plan.settings.delta,
    }


def _parameters(scope: Scope) -> dict[str, str]:
    dataset, public = scope.dataset, scope.public
    found = {"Data": dataset.name, "Candidates": f"{len(scope.candidates):,}, {_candidates(scope)}"}
    if dataset.population is not None:
        found["Population"] = f"at most {dataset.population:,} persons (public)"
    if dataset.cap is not None:
        found["Cap per person"] = _cap(scope)
    if dataset.maximum is not None:
        found["Maximum"] = f"{_cap(scope)} (public)"
    moved = dataset.with_unit(at_most(public.family.sensitivity * float(public.natural_unit)))
    way = ", all of them up or all of them down" if public.family.monotone else ""
    return found | {"One person": f"changes each value by at most {moved}{way}"}


def _candidates(scope: Scope) -> str:
    candidates = scope.candidates
    if isinstance(candidates, Categories):
        return "a public list of categories"
    if isinstance(candidates, Calendar):
        return f"each {candidates.every} from {candidates.labels[0]} to {candidates.labels[-1]}"
    days = candidates.calendar.labels
    over = f"each {candidates.every.replace('-', ' ')} over {days[0]} to {days[-1]}"
    if scope.dataset.is_series:
        return f"{over}, by the mean of all its values (a missing one counts as 0)"
    return f"{over}, by each person's {_GATHERED[scope.per_user]} of the readings there are"


def _cap(scope: Scope) -> str:
    dataset, times = scope.dataset, scope.times_cap
    stated = _exact(dataset.maximum if dataset.is_series else dataset.cap)
    whole = dataset.with_unit(shown(times * stated))
    if times > 1:
        length = dataset.cap_length
        article = "an" if length == "hour" else "a"
        return f"{whole}: {times:,} times {dataset.with_unit(shown(stated))}, that of {article} {length}"
    return whole if scope.parts_of_cap == 1 else f"{whole}, that of a whole {dataset.cap_length}"


def _named(scope: Scope) -> dict[str, str]:
    dataset = scope.dataset
    cap = "" if dataset.cap is None else dataset.with_unit(shown(scope.times_cap * _exact(dataset.cap)))
    reading = dataset.value or "the reading"
    measured = f"the {dataset.measure} of {reading} over the population (each person counted up to {cap})"
    if dataset.is_series:
        measured = str(dataset.value)
    elif dataset.measure == "count":
        measured = "the number of persons with a reading"
    return {"measured": measured, "reading": scope.reading_digest()}


def _exact(value: Any) -> Fraction:
    return exact_number("number", value)
