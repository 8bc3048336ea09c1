"""How a question was kept before version 2, sentences included: frozen, to find what was paid for then.

Nothing here is shown to anybody, and no word of it may change: a question in other words would not be found.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

from dpselect.dataset.scope import Scope
from dpselect.privacy.family import QueryFamily
from dpselect.report.words import shown
from dpselect.rounding import at_most, exact_number
from dpselect.tables import Calendar, Categories

_GATHERED = {"sum": "sum", "mean": "mean", "max": "largest"}


def peak_1(
    scope: Scope,
    *,
    mechanism: str,
    noise: dict[str, float],
    goal: str,
    top: int,
    value_scale: float | None,
    epsilon: float,
) -> dict[str, Any]:
    """A peak."""
    return {
        **_parameters(scope),
        "verb": "peak",
        **_named(scope),
        "mechanism": mechanism,
        **noise,
        **({} if goal == "largest" else {"goal": goal}),
        **({} if top == 1 else {"top": top}),
        **({} if value_scale is None else {"value_scale": value_scale}),
        "epsilon": epsilon,
        "labels": hashlib.sha256("\n".join(scope.candidates.labels).encode()).hexdigest(),
    }


def watch_1(
    scope: Scope | None,
    family: QueryFamily,
    *,
    threshold: float,
    unit: Fraction,
    noise: str,
    by_hand: dict[str, Any],
    how_much: bool,
    budget: float,
    delta: float,
) -> dict[str, Any]:
    """A watch, of a data set or of a stream."""
    line = f"{threshold * float(unit):.10g}"
    if scope is None:
        moves = at_most(family.sensitivity)
        about = {"Data": "questions on standard input", "One person": f"changes each value by at most {moves}"}
    else:
        about = {**_parameters(scope), **_named(scope)}
    return {
        **about,
        "Line": line if scope is None else scope.facts.with_unit(line),
        "verb": "watch",
        "family": [family.lower, family.upper, family.sensitivity, family.monotone],
        "threshold": threshold,
        "noise": noise,
        **by_hand,
        **({"how_much": True} if how_much else {}),
        "budget": budget,
        "delta": delta,
    }


def _parameters(scope: Scope) -> dict[str, str]:
    facts, public = scope.facts, scope.public
    found = {"Data": facts.name, "Candidates": f"{len(scope.candidates):,}, {_candidates(scope)}"}
    if facts.population is not None:
        found["Population"] = f"at most {facts.population:,} persons (public)"
    if facts.cap is not None:
        found["Cap per person"] = _cap(scope)
    if facts.maximum is not None:
        found["Maximum"] = f"{_cap(scope)} (public)"
    moved = facts.with_unit(at_most(public.family.sensitivity * float(public.natural_unit)))
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
    if scope.facts.is_series:
        return f"{over}, by the mean of all its values (a missing one counts as 0)"
    return f"{over}, by each person's {_GATHERED[scope.per_user]} of the readings there are"


def _cap(scope: Scope) -> str:
    facts, times = scope.facts, scope.times_cap
    stated = _exact(facts.maximum if facts.is_series else facts.cap)
    whole = facts.with_unit(shown(times * stated))
    if times > 1:
        length = facts.cap_length
        article = "an" if length == "hour" else "a"
        return f"{whole}: {times:,} times {facts.with_unit(shown(stated))}, that of {article} {length}"
    return whole if scope.parts_of_cap == 1 else f"{whole}, that of a whole {facts.cap_length}"


def _named(scope: Scope) -> dict[str, str]:
    facts = scope.facts
    cap = "" if facts.cap is None else facts.with_unit(shown(scope.times_cap * _exact(facts.cap)))
    reading = facts.value or "the reading"
    measured = f"the {facts.measure} of {reading} over the population (each person counted up to {cap})"
    if facts.is_series:
        measured = str(facts.value)
    elif facts.measure == "count":
        measured = "the number of persons with a reading"
    return {"measured": measured, "reading": scope.reading_digest()}


def _exact(value: Any) -> Fraction:
    return exact_number("number", value)
