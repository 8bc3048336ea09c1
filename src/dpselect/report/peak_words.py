"""A peak in words: which mechanism and why, what to expect, what to do where that is too little, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from dpselect.mechanisms.mechanism import Noise
from dpselect.planning.prediction import Prediction
from dpselect.report.record import NOTHING_TO_ADD
from dpselect.report.words import choice_in_words, often, plural
from dpselect.rounding import at_most


def question(*, period: str, measured: str, goal: str, top: int) -> str:
    """What is asked."""
    if top > 1:
        return f"For which {top} {plural(period)} is {measured} {goal}, in order?"
    return f"For which {period} is {measured} {goal}?"


def reason(title: str, *, forced: str | None, ways: int) -> str:
    """Which mechanism is used, and why, in a sentence."""
    if forced is not None:
        return f"{title}, as {forced}."
    return f"{title}: of {ways} that give this guarantee, the one expected to come closest."


def noise(law: str, scale: float) -> str:
    """The law of the noise and its scale.

    >>> noise("Gaussian", 0.5), noise("exponential", 0.5)
    ('Gaussian, σ = 0.5', 'exponential, scale 0.5')
    """
    return f"{law}, {'σ =' if law == 'Gaussian' else 'scale'} {at_most(scale)}"


def expectation(found: Prediction, *, goal: str, top: int, shortfall: Callable[[float], str], rests_on: str) -> str:
    """How good the answer is expected to be beside a blind guess, and what that rests on.

    ``shortfall`` gives a share of the range in the readings' unit.
    """
    told = choice_in_words(
        found.hits or 0.0,
        shortfall(found.shortfall),
        few=found.fewest_hits or 0.0,
        many=found.most_hits or 0.0,
        guess=found.guess_hits or 0.0,
        guess_short=shortfall(found.guess_shortfall),
        which="the " + goal if top == 1 else "the right one in each place",
        side=_side(goal),
    )
    if found.overlap is not None:
        told += f"; of the {top} named, {top * found.overlap:.1f} are among the {top} {goal}"
    return f"{told}; {rests_on}"


def supposed(span: str, narrow_hits: float | None) -> str:
    """What an expectation rests on where nothing is known beforehand."""
    narrow = "" if narrow_hits is None else f" (over a tenth of that: right {often(narrow_hits)})"
    return f"supposing that values range over about {span}{narrow}"


def advice(short: Mapping[str, float], *, chosen: str, goal: str, shortfall: Callable[[float], str]) -> str | None:
    """One sentence where another mechanism, by its expected shortfall, does clearly better at the same cost."""
    best, mine = min(short, key=lambda name: short[name]), short[chosen]
    # A tenth of a percent of the range is within what the simulated runs cannot tell apart.
    if best == chosen or short[best] > 0.8 * mine or mine - short[best] < 0.001:
        return None
    return (
        f"{best} is more accurate at the same ε: on simulated data what it names is {shortfall(short[best])} "
        f"{_side(goal)} the {goal} on average, against {shortfall(mine)}."
    )


def refusal(
    *, expected: str, top: int, beats_a_guess: bool, enough: float | None, coarser: str | None, cap: str | None
) -> str:
    """What to say, and what to do, where the answer would hardly be better than a guess.

    ``enough`` is an ε that would do, and ``coarser`` names longer periods that would.
    """
    told = [] if enough is None else [f"‹epsilon› {at_most(enough, digits=2)} would do on such data"]
    if coarser is not None:
        told.append(f"{coarser} would do at this ‹epsilon›, were they as far apart")
    remedy = "; ".join(told or ["ask about fewer and longer periods"])
    what = "the answer would hardly be better than a guess"
    if beats_a_guess:
        what = f"fewer than half of the {top} named would belong there"
    return (
        f"{what}; expected: {expected}; {remedy}, or ask about more people{'' if cap is None else f'; {cap}'}; nothing "
        "was spent (‹anyway› to insist)"
    )


def doubt(found: Prediction, *, goal: str, shortfall: Callable[[float], str], enough: float | None) -> str:
    """What to say where what is named is probably not the largest; ``enough`` is an ε at which it would be."""
    remedy = "" if enough is None else f"; ‹epsilon› {at_most(enough, digits=2)} would do"
    near = f"what is named lies {shortfall(found.shortfall)} {_side(goal)} it on average"
    return f"{_improbable(found, goal)}, and {near}{remedy}"


def _improbable(found: Prediction, goal: str) -> str:
    return f"Probably not the {goal}: that is named {often(found.hits or 0.0)}"


def _side(goal: str) -> str:
    """Where a wrong winner lies."""
    return "below" if goal == "largest" else "above"


def notes(
    found: Prediction,
    *,
    goal: str,
    probable: bool,
    epsilon: float,
    noise: Noise,
    unrecorded: str | None,
    repeated_from: str | None,
) -> Iterator[str]:
    """How to read an answer, and what it adds to a running sum.

    ``unrecorded`` says that no ledger has it; ``repeated_from`` is the time of the first answer, where this repeats it.
    """
    if probable:
        yield f"The answer is the winner after noise: one of the {goal}, not surely the {goal}."
    else:
        yield f"{_improbable(found, goal)}; the answer is the winner after noise, one of the {goal}."
    if noise == "reproducible":
        yield NOTHING_TO_ADD
    elif repeated_from is None:
        yield f"Into the running sum of all answers about the same people goes ε = {at_most(epsilon)}."
    if unrecorded is not None and noise != "reproducible":
        yield unrecorded
    if repeated_from is not None:
        when = datetime.fromisoformat(repeated_from).astimezone(UTC)
        yield (
            f"The question was asked before: this is its first answer, given {when:%Y-%m-%d at %H:%M} UTC. It cost "
            "nothing now, and says nothing of rows that came or changed since; to ask about them, draw it afresh "
            "and pay again."
        )


def doubts_of_a_series(cap: str) -> str:
    """What to say of a maximum that may not hold."""
    return (
        f"A value above the maximum, {cap}, would be cut to it and the answer could be wrong; "
        "describing the table shows it."
    )


def doubts_of_a_population(population: int, *, is_cut: bool, beyond: str | None, divided: bool) -> str | None:
    """What to say of a population that may not hold; ``beyond`` is the range's end where a value is above it."""
    if is_cut:
        return (
            f"With rows of more than {population:,} persons the totals would be cut and the answer could be "
            "wrong; describing the table shows it."
        )
    if beyond is None:
        return None
    return (
        f"More than {population:,} persons must have rows, for a value above {beyond} is more than so many can come "
        "to. The choice does not suffer"
        + (", but the values are too large: they are divided by that number." if divided else ".")
        + " Describe the table and give a population that holds."
    )


def doubts_of_ends(labels: Sequence[str], amounts: Iterable[float], ends: tuple[float, float]) -> str | None:
    """What to say of values at an end of their range."""
    cut = [label for label, amount in zip(labels, amounts, strict=False) if amount in ends]
    return f"The value of {', '.join(cut)} is an end of the range: check cap, population and dates." if cut else None
