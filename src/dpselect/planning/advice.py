"""One sentence of advice: what to use, and when to use something else (THEORY §5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from dpselect.planning.job import Job
from dpselect.planning.plan import Plan

_GAUSSIAN_ONLY_IF = "take Gaussian noise only where it is there already, as in summed shares or votes"


def advice(job: Job, plans: Sequence[Plan]) -> str:
    """What the ranking means.

    Parameters
    ----------
    job : Job
        What was asked.
    plans : sequence of Plan
        Best first.
    """
    return _about_largest(job, plans) if job.asked == "largest" else _about_crossings(job, plans)


def _first(plans: Sequence[Plan], suits: Callable[[Plan], bool]) -> Plan | None:
    return next((plan for plan in plans if suits(plan)), None)


def _about_largest(job: Job, plans: Sequence[Plan]) -> str:
    best = plans[0]
    gaussian = _first(plans, lambda plan: plan.name == "gaussian-noisy-max")
    pure = _first(plans, lambda plan: not plan.delta)
    opening = f"{best.title} answers this best: {_reached(job, best)}"
    if best.delta:
        if pure is None:
            return f"{opening}, at δ = {shown(best.delta)}."
        return (
            f"{opening}, at δ = {shown(best.delta)}; where δ must be 0, {_lower(pure.title)} has {_reached(job, pure)}"
            f"{_draw(best, pure)}."
        )
    if gaussian is None or gaussian is best:
        return f"{opening}."
    share = best.noise_spread / gaussian.noise_spread
    return (
        f"{opening}, with noise {_part(share)} of what Gaussian noisy max needs ({_reached(job, gaussian)})"
        f"{_draw(best, gaussian)}; {_GAUSSIAN_ONLY_IF}."
    )


def _about_crossings(job: Job, plans: Sequence[Plan]) -> str:
    best = plans[0]
    sparse = _first(plans, lambda plan: plan.one_by_one is not None)
    opening = f"{best.title} does best: {_reached(job, best)}"
    if best.one_by_one is not None:
        return f"{opening}; it stays within the budget whatever the stream does, and δ is 0."
    opening += f", at δ = {shown(best.delta)}" if best.delta else ""
    if sparse is None:
        return f"{opening}."
    when = "δ must be 0 or " if best.delta else ""
    return (
        f"{opening}, against {_reached(job, sparse)} of the best pure sparse vector ({_lower(sparse.title)})"
        f"{_draw(best, sparse)}; take the sparse vector only if {when}the stream may go on beyond "
        f"{job.count} questions."
    )


def _lower(title: str) -> str:
    # Names of people keep their capitals.
    return title if title.split()[0] in ("Gaussian", "Laplace") else title[0].lower() + title[1:]


def _reached(job: Job, plan: Plan) -> str:
    found = plan.prediction
    if found is None:
        return "nothing known of it"
    told = f"F1 {found.score if job.wanted is None else found.cautious:.2f}"
    if found.hits is not None:
        told = f"the very largest {100 * found.hits:.0f}% of the time"
    return told if job.wanted is None else f"{told} at ε = {shown(plan.epsilon)}"


def _draw(best: Plan, other: Plan) -> str:
    """Words for a difference that the simulation cannot be sure of."""
    first, second = best.prediction, other.prediction
    if first is None or second is None or best.epsilon != other.epsilon:
        return ""
    unsure = abs(first.score - second.score) <= first.uncertainty + second.uncertainty
    return " (no sure difference)" if unsure else ""


def _part(share: float) -> str:
    """A share in words.

    >>> _part(0.34), _part(0.5), _part(0.013), _part(0.87), _part(0.09)
    ('about a third', 'about a half', 'a 77th', '87%', 'an 11th')
    """
    if share >= 0.7:
        return f"{100 * share:.0f}%"
    words = {2: "about a half", 3: "about a third", 4: "about a quarter", 5: "about a fifth"}
    number = round(1.0 / share)
    article = "an" if number in (8, 11, 18) or 80 <= number < 90 or 800 <= number < 900 else "a"
    return words.get(number, f"{article} {_ordinal(number)}")


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if 10 <= number % 100 <= 20 else endings.get(number % 10, "th")
    return f"{number}{ending}"


def shown(budget: float, *, digits: int = 3) -> str:
    """ε or δ in a few digits, rounded up.

    >>> shown(0.01205), shown(1 / 6946), shown(0.1), shown(3.0), shown(0.999, digits=2)
    ('0.0121', '0.000144', '0.1', '3', '1')
    """
    # repr is the shortest decimal that reads back as the same double: 0.1 stays 0.1.
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(Decimal(repr(float(budget))))):g}"
