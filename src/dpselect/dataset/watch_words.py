"""A watch in words: why this noise, what to expect, what it would cost; and the report of its answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dpselect.dataset import how_much
from dpselect.dataset.answer import COARSER
from dpselect.dataset.budget import NOBODY_REMEMBERS, not_remembered
from dpselect.errors import DPSelectError
from dpselect.planning.plan import Plan
from dpselect.planning.planner import enough
from dpselect.planning.ways import Rationed
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.words import f1_in_words, percent, plural
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset.watch import Watch
    from dpselect.dataset.watch_plan import WatchPlan
    from dpselect.planning import Job, Prediction
    from dpselect.report.record import Entry


#: Less than this part of the questions answered is worth a word.
_TO_THE_END = 0.98
#: What is looked for with few passes is asked for with a little more.
_MARGIN = 1.05


def reason(plan: WatchPlan) -> str:
    """Which mechanism is used, and why, in a sentence."""
    law, sparse = plan.noise[0], plan.settings.one_by_one
    if sparse is None:
        where = f" on every {plan.period}'s value, which is then compared with the line"
    elif sparse.resample:
        where = f", around the line drawn anew after each {plan.period} that is named"
    else:
        where = f", around the line drawn once for all {plural(plan.period)}"
    title = f"{law[0].upper()}{law[1:]} noise{where}"
    if plan.settings.at_once:
        title = f"All {plural(plan.period)} named together, at one price however many they are"
    if plan.asked.plan is not None:
        return f"{title}: as planned."
    if not plan.ways:
        return f"{title}: as asked."
    if plan.settings.at_once and plan.ways == 1:
        return f"{title}."
    if plan.ways == 1:
        return f"{title}: what is left is shared out anew before each question, so that it lasts for all."
    promise = "the same pure guarantee" if not plan.asked.delta else "a guarantee within the same ε and δ"
    unused = plan.asked.delta and not plan.settings.delta
    why = " δ is not used: a way without it is expected to do best." if unused else ""
    return f"{title}: of {plan.ways} ways with {promise} it is expected to do best.{why}"


def expectation(plan: WatchPlan) -> str:
    """How good the answers are expected to be, beside a guess, in the readings' unit."""
    found, settings = plan.expected, plan.settings
    if found is None:
        return "nothing: no value can be on both sides of the line"
    told, answered = f1_in_words(found), found.answered / settings.count
    if answered <= _TO_THE_END:
        several = plural(plan.period)
        told += (
            f"; the budget is expected to end after {percent(answered)} of the {several}, sooner where many come early"
        )
    if settings.at_once:
        told += f". If more {plural(plan.period)} lie close to the line than supposed, the answer can be much worse"
    else:
        # Noise that changes from question to question is told as it is at the start.
        about = "about " if isinstance(settings.way, Rationed) else ""
        blur = plan.with_unit(at_most(settings.noise_spread * float(plan.unit), digits=3))
        told += f". Noise blurs the line by {about}{blur} (one standard deviation)"
    if not plan.asked.how_much:
        return told
    within = plan.with_unit(at_most(plan.margin_of(plan.expected_above), digits=2))
    return f"{told}; were {plan.expected_above:,} named, their values would be given to within ± {within}"


def _in_figures(found: Prediction) -> str:
    """The same as F1: the expected one, between which a single watch lies, and that of the guess."""
    told = f"F1 {found.score:.2f}"
    if found.low is not None and found.high is not None:
        told += f" ({found.low:.2f} to {found.high:.2f} four times of five)"
    return f"{told}; the guess {found.guess or 0.0:.2f}"


def futility(plan: WatchPlan) -> str | None:
    """What to say where no value can be on both sides of the line."""
    family, unit, threshold = plan.settings.family, float(plan.unit), plan.threshold
    if family.lower <= threshold <= family.upper:
        return None
    side, every = ("above", "below") if threshold > family.upper else ("below", "above")
    ends = f"[{family.lower * unit:.10g}, {family.upper * unit:.10g}]"
    return (
        f"the line at {plan.line} lies {side} everything a question can be, {ends}: without noise every answer "
        f"would be {every}, and the budget is spent on noise alone"
    )


def refusal(plan: WatchPlan) -> str:
    """What to say, and what to do, where the answers would hardly be better than a guess."""
    if plan.expected is None:
        return f"{futility(plan)}; nothing was spent (‹anyway› to insist)"
    told = remedy(plan)
    return (
        f"the answers would hardly be better than a guess: {expectation(plan)}. In figures: "
        f"{_in_figures(plan.expected)}. {told[0].upper()}{told[1:]}; nothing was spent (‹anyway› to insist)"
    )


def remedy(plan: WatchPlan) -> str:
    """Which budget would do, and which coarser question at the same budget, in words."""

    line, family, unit, whole = plan.asked, plan.settings.family, plan.unit, plan.scope is not None
    job = None if line.plan is not None else line.job(family, questions=plan.questions, unit=unit, whole=whole)
    if job is None:
        return "ask about longer periods, or about more people"
    # The first two: a whole set, where there can be one, and what rations its budget.
    whose, epsilon = line.ways(whole=whole)[: 1 + whole], float(job.epsilon or 1.0)
    told = []
    least = enough(lambda more: _will_do(job, whose, more), start=epsilon)
    if least is not None:
        told.append(f"a budget of {at_most(_MARGIN * least * line.parts, digits=2)} would do on such data")
    # A share that was stated holds for another number of questions, too; a number does not.
    shared = line.known.expect is None or 0 < line.known.expect < 1
    for periods, number in COARSER.get(plan.period, ()) if shared else ():
        # The values and what one person moves grow alike; questions, and with them those above, become fewer.
        fewer = replace(job, count=max(1, plan.questions // number))
        if fewer.count > 1 and _will_do(fewer, whose, epsilon / _MARGIN):
            # What is counted is the total of a period, and so is its line.
            longer = plan.with_unit(f"{number * plan.threshold * float(unit):.4g}")
            told.append(f"at this budget {periods} would do, with a line of {number} times that, {longer}")
            break
    return "; ".join(told or ["ask about longer periods"]) + ", or ask about more people"


def _will_do(job: Job, ways: Sequence[str], epsilon: float) -> bool:
    from dpselect.dataset.watch_plan import is_useful

    for name in ways:
        with contextlib.suppress(DPSelectError):
            if is_useful(Plan.made(job, name, epsilon=epsilon, passes=60).prediction):
                return True
    return False


def costs_and_accuracy(plan: WatchPlan) -> list[Entry]:
    """What a dry run shows."""
    said = ("Cost, none above", f"Cost, 1 above in {plan.gap:,}")
    rows = [*_asked(plan), ("Mechanism", reason(plan)), *noise(plan)]
    delta = f", δ = {at_most(plan.settings.delta)}" if plan.settings.delta else ""
    half = ", half of ε for values" if plan.asked.how_much else ""
    rows.append(("Budget", f"ε = {at_most(plan.budget)}{delta}{half}"))
    if plan.weakness is not None:
        rows.append(("Note", plan.weakness))
    rows += [(name, f"ε = {at_most(cost)}") for name, cost in zip(said, plan.costs.values(), strict=False)]
    rows += expected(plan)
    if (found := plan.expected) is not None:
        answered = percent(found.answered / plan.settings.count)
        rows.append(("Answered", f"{answered} of the {plural(plan.period)}, for ε = {at_most(found.spent)}"))
    grounds = "the plan says so" if plan.asked.plan is not None else plan.asked.known.in_words(period=plan.period)
    rows.append(("Rests on", grounds))
    if not plan.useful:
        rows.append(("Advice", "Hardly better than a guess: refused, unless insisted on."))
    return rows


def expected(plan: WatchPlan) -> list[Entry]:
    """How good the answers will be: in plain words, and on a line of its own in figures."""
    said = f"{expectation(plan)}."
    figures = [] if plan.expected is None else [("In figures", f"{_in_figures(plan.expected)}.")]
    return [("Expected", f"{said[0].upper()}{said[1:]}"), *figures]


def about(plan: WatchPlan) -> list[Entry]:
    """What is watched, as far as it is public."""
    if plan.scope is not None:
        return list(plan.scope.parameters())
    moves = at_most(plan.settings.family.sensitivity)
    return [("Data", "questions on standard input"), ("One person", f"changes each value by at most {moves}")]


def _asked(plan: WatchPlan) -> list[Entry]:
    family, unit = plan.settings.family, float(plan.unit)
    ends = f"from {family.lower * unit:.10g} to {plan.with_unit(f'{family.upper * unit:.10g}')}"
    return [*about(plan), ("Values", ends), ("Line", plan.line)]


def noise(plan: WatchPlan) -> list[Entry]:
    """How the answers are drawn, as a ledger keeps it beside them."""
    law, of_line, of_question = plan.noise
    word, rows = "standard deviation" if law == "Gaussian" else "scale", []
    found = plan.settings.one_by_one
    if found is not None and found.clip is not None:
        low, high = (width * float(plan.unit) for width in found.clip)
        rows.append(("Values cut to", f"{low:.4g} below and {plan.with_unit(f'{high:.4g}')} above the line"))
    if of_line:
        rows.append(("Noise of the line", f"{law}, {word} {plan.with_unit(at_most(of_line))}"))
    if plan.settings.at_once:
        scale = plan.with_unit(at_most(of_question))
        rows.append(("Scale of distances", f"{scale}: a set is likelier the nearer its worst mistake is to the line"))
    else:
        rows.append((f"Noise of each {plan.period}", f"{law}, {word} {plan.with_unit(at_most(of_question))}"))
    if isinstance(found, Rationed):
        about = f"for about {sum(found.expected):.3g} {found.rare} the line"
        rows.append(("Rationed", f"{about}; the noise stated is that of the first {plan.period}"))
    return rows


def question(plan: WatchPlan) -> str:
    """What is asked, in words."""
    what = "the value" if plan.scope is None else plan.scope.measured
    return f"For which {plural(plan.period)} is {what} at or above {plan.line}?"


def _drawn(watch: Watch) -> list[Entry]:
    """How the answers were drawn: not as planned now, where they are repeated and were drawn otherwise."""
    then, plan = watch.drawn_before, watch.plan
    if then is None:
        return [("Mechanism", reason(plan)), *noise(plan)]
    if watch.repeated:
        order = dict(noise(plan))  # as a ledger gives them back they stand by name
        return sorted(then.items(), key=lambda entry: list(order).index(entry[0]) if entry[0] in order else len(order))
    first = f"the first {watch.kept.repeated:,}" if watch.kept is not None else "the first"
    return [("Mechanism", reason(plan)), *noise(plan), *((f"{name}, {first}", text) for name, text in then.items())]


def report(watch: Watch) -> Report:
    """The answers for people."""
    plan, scope = watch.plan, watch.plan.scope
    listed, listed_as = _listed(watch)
    answer = f"{watch.count:,} of {watch.answered:,} {plural(plan.period)}"
    if watch.ended and watch.answered:
        answer = f"{watch.count:,} of the first {watch.answered:,} {plural(plan.period)}; the rest was not asked"
    found = Finding(
        question=question(plan),
        answer=answer,
        listed=listed,
        listed_as=listed_as,
        details=tuple(_details(watch)),
        spending=Spending(
            # The values are drawn after the last answer, and their share belongs to what is shown.
            spent=(*watch.spent[:-1], max(watch.spent[-1], watch.cost)) if watch.amounts else tuple(watch.spent),
            above=tuple(watch.above),
            budget=plan.budget,
            first=watch.name(0),
            last=watch.name(max(0, watch.answered - 1)),
            labels=() if scope is None else tuple(scope.candidates.labels),
        ),
    )
    return Report(
        title=f"When is {plan.line} crossed?",
        findings=(found,),
        guarantee=Guarantee(
            epsilon=plan.budget,
            delta=plan.settings.delta,
            neighbours="declared" if scope is None else scope.dataset.neighbours,
            noise=watch.vector.noise,
        ),
        parameters=(
            *_asked(plan),
            *_drawn(watch),
            *(() if watch.kept is None else (("Ledger entry", f"{watch.kept.number:,}"),)),
        ),
        notes=tuple(_notes(watch)),
        made=datetime.now(UTC).astimezone(),
    )


def _listed(watch: Watch) -> tuple[tuple[str, ...], str]:
    """Those above, with their values where they have any, and what stands over the list."""
    names, told = list(watch.labels), "Above"
    if watch.amounts:
        within, plan = watch.margin or 0.0, watch.plan
        values = [how_much.told(one, within).partition(" ± ")[0] for one in watch.amounts]
        wide, below = max(map(len, values)), set(watch.clearly_below)
        marks = ["*" if place in below else "" for place in watch.above]
        names = [f"{name} {value:>{wide}}{mark}" for name, value, mark in zip(names, values, marks, strict=True)]
        told += f", each ± {plan.with_unit(how_much.told(0.0, within).partition(' ± ')[2])}"
    return tuple(names), told


def _details(watch: Watch) -> Iterator[Entry]:
    plan = watch.plan
    if plan.asked.how_much and watch.above:
        yield "How much", how_much.MEANING if watch.amounts else f"not given: {watch.without_values}"
    if watch.clearly_below:
        yield "Marked *", "value below the line by more than its ±: probably named by noise"
    if watch.ended:
        yield "Not asked", f"everything from {watch.name(watch.answered)} on: the budget ended"
    yield "Cost of these answers", f"ε = {at_most(watch.cost)} of {at_most(plan.budget)}"
    if watch.drawn_before is None or not watch.repeated:
        yield from expected(plan)


def _notes(watch: Watch) -> Iterator[str]:
    plan, scope, kept = watch.plan, watch.plan.scope, watch.kept
    yield "Near the line an answer may fall on the wrong side: that is what protects people."
    if not plan.useful:
        yield "Asked for although this is hardly better than a guess: do not build on these answers."
    if scope is None or scope.dataset.is_series:
        yield "The curator vouches for what one person can change."
    if scope is not None:
        yield from scope.cautions
    if kept is not None and kept.repeated:
        which = "These answers" if kept.repeated >= watch.answered else f"The first {kept.repeated:,} answers"
        when = "" if kept.since is None else f" on {kept.since[:10]} at {kept.since[11:16]} UTC"
        yield (
            f"{which} were first given{when}: they are repeated, and cost nothing now. The rows may have changed since."
        )
        if watch.drawn_before is not None:
            yield "Asked for the first time now, they would be drawn with other noise than they were."
    if kept is None:
        yield "The budget holds for this command alone: earlier answers from the same data add to it."
        yield _into_the_sum(watch)
        if watch.vector.noise != "reproducible":
            yield NOBODY_REMEMBERS if scope is None else not_remembered(scope.dataset.budget)


def _into_the_sum(watch: Watch) -> str:
    """Which of the two numbers counts beside other answers about the same people (THEORY §4)."""
    if watch.vector.noise == "reproducible":
        return NOTHING_TO_ADD
    if not watch.plan.settings.delta and at_most(watch.cost) == at_most(watch.plan.budget):
        return f"Into the running sum goes ε = {at_most(watch.plan.budget)}."
    if watch.plan.settings.delta > 0:
        return "Into the running sum of all answers about the same people go ε and δ of the guarantee, not the cost."
    return (
        f"Into the running sum goes the guarantee, ε = {at_most(watch.plan.budget)}, even if these answers cost less: "
        "that smaller number counts only under a limit that was set beforehand and had room for the whole budget."
    )
