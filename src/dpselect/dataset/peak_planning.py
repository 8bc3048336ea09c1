"""How a peak is planned: each mechanism at the same cost, tried on what is publicly known of the values."""

from __future__ import annotations

from dataclasses import replace

from dpselect.checks import counts, one
from dpselect.dataset.known import Known, Number
from dpselect.dataset.peak import NAMES, PeakPlan, expected_of, with_room
from dpselect.dataset.scope import Scope
from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.release import LaplaceRelease
from dpselect.mechanisms.selection import Goal
from dpselect.planning.job import Job
from dpselect.planning.knowledge import USUAL_SPAN, Model, Profile
from dpselect.planning.plan import Plan
from dpselect.planning.prediction import predict_choice
from dpselect.planning.ways import equal_part
from dpselect.rounding import no_more_than

#: How far weekdays are apart where nothing is known, as shares of the cap: a tenth of the usual mean, 0.156 of the cap
#: (planning.knowledge.USUAL_SPAN), either way. A season moves days by far more, but every weekday has all of it.
_WEEKDAYS = (0.14, 0.172)


def plan_peak(
    scope: Scope,
    *,
    epsilon: Number | None = None,
    mechanism: str | None = None,
    goal: Goal = "largest",
    top: int = 1,
    how_much: bool = False,
    known: Known | None = None,
    plan: Plan | None = None,
    compare: bool = False,
) -> PeakPlan:
    """See :meth:`Dataset.plan_peak`."""
    if mechanism is not None and mechanism not in NAMES:
        raise refuse("mechanism", mechanism, "one of " + ", ".join(NAMES))
    if goal not in ("largest", "smallest"):
        raise refuse("goal", goal, '"largest" or "smallest"')
    said = known or Known()
    if plan is not None:
        given = {"epsilon": epsilon, "mechanism": mechanism, "between": said.between, "like": said.like}
        given |= {"top": None if top == 1 else top, "how_much": how_much or None}
        refuse_given("‹plan›, which says what is asked and what it costs", **given)
    elif epsilon is None:
        raise refuse("epsilon", None, "given: the most the answer may cost (or ‹plan›, which says it)")
    public = scope.public
    number = int(one(counts, "top", top, least=1))
    if number > len(public):
        raise refuse("top", top, f"at most the number of candidates, {len(public)}")
    if len(public) == 1:
        raise InvalidParameter("there is only one candidate, so there is nothing to choose; ask about more")
    if isinstance(epsilon, str):
        raise refuse("epsilon", epsilon, "a number such as 0.1, not a text")
    whole = plan.epsilon if plan is not None else no_more_than(epsilon or 0)
    job = Job(
        asked="largest",
        family=public.family,
        count=len(public),
        epsilon=equal_part(whole, 2) if how_much else whole,
        public=_supposed(said, scope),
        goal=goal,
        top=number,
    )
    if plan is not None:
        plans = _planned(plan, scope, job)
    else:
        # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
        every = compare or mechanism in (None, "gaussian")
        names = [name for name in NAMES if every or name != "gaussian"]
        plans = {name: Plan.made(job, NAMES[name], epsilon=float(job.epsilon or 0.0)) for name in names}
    # On equal terms the first in the catalogue's order is used.
    best = mechanism or min(plans, key=lambda name: expected_of(plans[name]).shortfall)
    value, narrow = None, None
    if how_much:
        room = with_room(public.family)
        value = LaplaceRelease.calibrated(room, candidates=number, epsilon=equal_part(whole, 2))
    if said.nothing:
        tenth = [(values - values.min()) / 10 + values.min() for values in job.series()]
        narrow = predict_choice(replace(job, top=1), plans[best].mechanism(), epsilon=whole, series=tenth).hits
    return PeakPlan(
        scope=scope,
        job=job,
        plans=plans,
        mechanism=best,
        forced="planned" if plan is not None else None if mechanism is None else "asked",
        value=value,
        known=said,
        narrow_hits=narrow,
    )


def _planned(plan: Plan, scope: Scope, job: Job) -> dict[str, Plan]:
    """The mechanism of a plan at the noise it states, on this table; what it costs is that of this table."""
    short, public = {name: key for key, name in NAMES.items()}, scope.public
    if plan.asked != "largest":
        raise InvalidParameter("‹plan› must be for a peak; this one is for a line to be reached: use it with watch")
    if plan.name not in short:
        raise InvalidParameter(f"‹plan› must be for one of {', '.join(short)}; this one is for {plan.name}")
    fitted = plan.fitted(public.family, unit=float(public.natural_unit), count=len(public))
    prediction = predict_choice(job, fitted.mechanism(), epsilon=fitted.epsilon)
    return {short[plan.name]: replace(fitted, prediction=prediction)}


def _supposed(known: Known, scope: Scope) -> Profile | Model:
    """What was said of the values, on the scale of the queries; where nothing was, what is usual.

    Under a cap that was stated for a longer period, what is usual is so many times less: an hour of a day's cap.
    """
    weekdays, family = scope.period == "weekday", scope.public.family
    if not known.nothing or not (weekdays or scope.parts_of_cap > 1):
        return known.public(unit=scope.public.natural_unit)
    shares = _WEEKDAYS if weekdays else (0.0, USUAL_SPAN)
    low, high = (family.lower + end * family.width / scope.parts_of_cap for end in shares)
    return Model(low=low, high=high)
