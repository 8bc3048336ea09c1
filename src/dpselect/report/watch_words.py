"""A watch in words: why this noise, what to expect, what to do where that is too little, how to read its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dpselect.mechanisms.mechanism import Noise
from dpselect.planning.plan import Plan
from dpselect.planning.prediction import Prediction
from dpselect.planning.ways import Rationed
from dpselect.report.record import NOTHING_TO_ADD, Entry
from dpselect.report.words import f1_in_words, percent, plural, with_margin
from dpselect.rounding import at_most

#: Less than this part of the questions answered is worth a word.
_TO_THE_END = 0.98


def question(*, period: str, measured: str, line: str) -> str:
    """What is asked."""
    return f"For which {plural(period)} is {measured} at or above {line}?"


def reason(settings: Plan, *, law: str, period: str, ways: int, planned: bool, delta_asked: bool) -> str:
    """Which mechanism is used, and why, in a sentence; ``ways`` says how many were compared."""
    sparse = settings.one_by_one
    if sparse is None:
        where = f" on every {period}'s value, which is then compared with the line"
    elif sparse.resample:
        where = f", around the line drawn anew after each {period} that is named"
    else:
        where = f", around the line drawn once for all {plural(period)}"
    title = f"{law[0].upper()}{law[1:]} noise{where}"
    if settings.at_once:
        title = f"All {plural(period)} named together, at one price however many they are"
    if planned:
        return f"{title}: as planned."
    if not ways:
        return f"{title}: as asked."
    if settings.at_once and ways == 1:
        return f"{title}."
    if ways == 1:
        return f"{title}: what is left is shared out anew before each question, so that it lasts for all."
    promise = "a guarantee within the same ε and δ" if delta_asked else "the same pure guarantee"
    unused = delta_asked and not settings.delta
    why = " δ is not used: a way without it is expected to do best." if unused else ""
    return f"{title}: of {ways} ways with {promise} it is expected to do best.{why}"


def expectation(settings: Plan, *, period: str, unit: float, with_unit: Callable[[str], str]) -> str:
    """How good the answers are expected to be, beside a guess, in the readings' unit."""
    found = settings.prediction
    if found is None:
        return "nothing: no value can be on both sides of the line"
    told, answered = f1_in_words(found), found.answered / settings.count
    if answered <= _TO_THE_END:
        told += (
            f"; the budget is expected to end after {percent(answered)} of the {plural(period)}, sooner where many "
            "come early"
        )
    if settings.at_once:
        return f"{told}. If more {plural(period)} lie close to the line than supposed, the answer can be much worse"
    # Noise that changes from question to question is told as it is at the start.
    about = "about " if isinstance(settings.way, Rationed) else ""
    blur = with_unit(at_most(settings.noise_spread * unit, digits=3))
    return f"{told}. Noise blurs the line by {about}{blur} (one standard deviation)"


def values_expected(named: int, within: str) -> str:
    """How near the values of so many would be."""
    return f"; were {named:,} named, their values would be given to within ± {within}"


def in_figures(found: Prediction) -> str:
    """Expected F1, its 80% range, and the F1 of a blind guess."""
    told = f"F1 {found.score:.2f}"
    if found.low is not None and found.high is not None:
        told += f" ({found.low:.2f} to {found.high:.2f} four times of five)"
    return f"{told}; the guess {found.guess or 0.0:.2f}"


def futility(settings: Plan, *, unit: float, line: str) -> str | None:
    """What to say where no value can be on both sides of the line."""
    family, threshold = settings.family, float(settings.threshold or 0.0)
    if family.lower <= threshold <= family.upper:
        return None
    side, every = ("above", "below") if threshold > family.upper else ("below", "above")
    ends = f"[{family.lower * unit:.10g}, {family.upper * unit:.10g}]"
    return (
        f"the line at {line} lies {side} everything a question can be, {ends}: without noise every answer "
        f"would be {every}, and the budget is spent on noise alone"
    )


def refusal(*, expected: str, figures: str, remedy: str) -> str:
    """What to say, and what to do, where the answers would hardly be better than a guess."""
    return (
        f"the answers would hardly be better than a guess: {expected}. In figures: {figures}. "
        f"{remedy[0].upper()}{remedy[1:]}; nothing was spent (‹anyway› to insist)"
    )


def remedy(budget: float | None, coarser: tuple[str, int, str] | None) -> str:
    """Which budget would do, and which coarser question (periods, how many times longer, their line) at the same."""
    told = [] if budget is None else [f"a budget of {at_most(budget, digits=2)} would do on such data"]
    if coarser is not None:
        periods, number, longer = coarser
        told.append(f"at this budget {periods} would do, with a line of {number} times that, {longer}")
    return "; ".join(told or ["ask about longer periods"]) + ", or ask about more people"


def noise(
    settings: Plan, *, law: str, scales: tuple[float, float], period: str, unit: float, with_unit: Callable[[str], str]
) -> list[Entry]:
    """How the answers are drawn, as a ledger keeps it beside them; ``scales`` of the line and of a question."""
    of_line, of_question = scales
    word, rows = "standard deviation" if law == "Gaussian" else "scale", []
    found = settings.one_by_one
    if found is not None and found.clip is not None:
        low, high = (width * unit for width in found.clip)
        rows.append(("Values cut to", f"{low:.4g} below and {with_unit(f'{high:.4g}')} above the line"))
    if of_line:
        rows.append(("Noise of the line", f"{law}, {word} {with_unit(at_most(of_line))}"))
    if settings.at_once:
        scale = with_unit(at_most(of_question))
        rows.append(("Scale of distances", f"{scale}: a set is likelier the nearer its worst mistake is to the line"))
    else:
        rows.append((f"Noise of each {period}", f"{law}, {word} {with_unit(at_most(of_question))}"))
    if isinstance(found, Rationed):
        about = f"for about {sum(found.expected):.3g} {found.rare} the line"
        rows.append(("Rationed", f"{about}; the noise stated is that of the first {period}"))
    return rows


def drawn(
    now: Sequence[Entry], reason: str, *, before: dict[str, str] | None, repeated: int, answered: int
) -> list[Entry]:
    """How the answers were drawn: not as planned ``now``, where some are repeated and were drawn otherwise."""
    planned = [("Mechanism", reason), *now]
    if before is None:
        return planned
    if repeated >= answered > 0:
        order = [name for name, _ in now]  # as a ledger gives them back they stand by name
        return sorted(before.items(), key=lambda entry: order.index(entry[0]) if entry[0] in order else len(order))
    return [*planned, *((f"{name}, the first {repeated:,}", text) for name, text in before.items())]


def listed(names: Sequence[str], amounts: Sequence[float], *, within: float, marked: Sequence[bool]) -> tuple[str, ...]:
    """Names with their values, those ``marked`` with a star."""
    values = [with_margin(one, within).partition(" ± ")[0] for one in amounts]
    wide, marks = max(map(len, values)), ["*" if one else "" for one in marked]
    return tuple(f"{name} {value:>{wide}}{mark}" for name, value, mark in zip(names, values, marks, strict=True))


def repeated_answers(*, repeated: int, answered: int, since: str | None, otherwise: bool) -> Iterator[str]:
    """What to say of answers that the ledger had; ``otherwise`` says that they would be drawn otherwise now."""
    which = "These answers" if repeated >= answered else f"The first {repeated:,} answers"
    when = "" if since is None else f" on {since[:10]} at {since[11:16]} UTC"
    yield f"{which} were first given{when}: they are repeated, and cost nothing now. The rows may have changed since."
    if otherwise:
        yield "Asked for the first time now, they would be drawn with other noise than they were."


def into_the_sum(*, noise: Noise, cost: float, budget: float, delta: float) -> str:
    """Which of the two numbers counts beside other answers about the same people (THEORY §4)."""
    if noise == "reproducible":
        return NOTHING_TO_ADD
    if delta > 0:
        return "Into the running sum of all answers about the same people go ε and δ of the guarantee, not the cost."
    if at_most(cost) == at_most(budget):
        return f"Into the running sum goes ε = {at_most(budget)}."
    return (
        f"Into the running sum goes the guarantee, ε = {at_most(budget)}, even if these answers cost less: "
        "that smaller number counts only under a limit that was set beforehand and had room for the whole budget."
    )
