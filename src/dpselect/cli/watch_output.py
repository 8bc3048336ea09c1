"""What ``watch`` shows: verdicts, the plan of a dry run, the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpselect.cli import screen
from dpselect.cli.asking import TableAsked
from dpselect.cli.epsilon import family_in_words
from dpselect.cli.picking import percent
from dpselect.cli.watching import Watching, simulate
from dpselect.report.rounding import at_least, at_most

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.report.record import Entry, Report
    from dpselect.tables import BoundedQuery

#: So many ⊤ are named in the terminal where a page names them all. Without a page none is left out: answers are paid
#: for once, and asking again would cost again.
_NAMED = 60


@dataclass(kw_only=True)
class Told:
    """A watch and what it has released so far."""

    watching: Watching
    unit: Fraction = Fraction(1)
    asked: TableAsked | None = None
    labels: Sequence[str] = ()
    keep: bool = False
    spent: list[float] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    answered: int = 0

    @property
    def line(self) -> str:
        """The threshold in the readings' unit."""
        return f"{self.watching.threshold * float(self.unit):.10g}"

    def add(self, above: bool, vector: SparseVector) -> None:
        """Note one answer, where a report will want it."""
        if self.keep:
            if above:
                self.above.append(self.answered)
            self.spent.append(vector.spent)
        self.answered += 1

    def warn(self, vector: SparseVector) -> None:
        """Say on standard error when a seed was used."""
        if vector.noise == "reproducible":
            from dpselect.report.record import NOT_PRIVATE

            screen.notice(NOT_PRIVATE, style="bold red")

    def warn_of_the_line(self, *, as_json: bool) -> None:
        """Say on standard error when no value can be on both sides of the line."""
        from dpselect.cli.failures import say

        family, unit = self.watching.family, float(self.unit)
        if family.lower <= self.watching.threshold <= family.upper:
            return
        side, every = ("above", "below") if self.watching.threshold > family.upper else ("below", "above")
        ends = f"[{family.lower * unit:.10g}, {family.upper * unit:.10g}]"
        say(
            f"--threshold {self.line} lies {side} everything a question can be, {ends}: without noise every answer "
            f"would be {every}, and the budget is spent on noise alone",
            as_json=as_json,
            kind="warning",
        )

    @property
    def weakness(self) -> str | None:
        """What to say of a budget too large to promise much."""
        from dpselect.report.guarantee import Guarantee

        return Guarantee(epsilon=self.watching.budget, delta=self.watching.delta).weakness

    def say_ended(self, vector: SparseVector) -> None:
        """The clear line that goes with exit code 3."""
        screen.notice(
            f"budget exhausted: ε = {at_most(vector.spent)} of {at_most(self.watching.budget)} spent after "
            f"{vector.questions:,} answers; the next question does not fit and was not asked",
            style="red",
        )

    def summary(self, vector: SparseVector, *, ended: bool) -> dict[str, Any]:
        """The last JSON line."""
        return {
            "stopped": "budget exhausted" if ended else "end of input",
            "questions": vector.questions,
            "above": len(vector.tops),
            "spent": vector.spent,
            "budget": self.watching.budget,
            "noise": vector.noise,
            **({} if self.weakness is None else {"note": self.weakness}),
        }

    def name(self, place: int) -> str:
        """What question ``place`` is called."""
        return self.labels[place] if self.labels else f"question {place + 1}"

    def parameters(self) -> tuple[Entry, ...]:
        """The public parameters, for people."""
        unit = float(self.unit)
        law, of_line, of_question = self.watching.noise
        if self.asked is not None:
            entries = [*self.asked.parameters(self.watching.family, candidates=len(self.labels))]
        else:
            entries = [("Data", "questions on standard input"), ("Queries", family_in_words(self.watching.family))]
        entries.append(("Line", self.line))
        if self.watching.clip is not None:
            low, high = (width * unit for width in self.watching.clip)
            entries.append(("Questions cut to", f"{low:g} below and {high:g} above the line"))
        entries += [
            ("Noise of the line", f"{law}, {'σ_X =' if law == 'Gaussian' else 'scale'} {at_most(of_line * unit)}"),
            (
                "Noise of a question",
                f"{law}, {'σ_Z =' if law == 'Gaussian' else 'scale'} {at_most(of_question * unit)}",
            ),
            ("After ⊤", "a new noisy line" if self.watching.resample else "the same noisy line"),
        ]
        return tuple(entries)


def show_verdicts(told: Told, vector: SparseVector, answer: BoundedQuery, *, as_json: bool, page: bool) -> None:
    """Asks about each period in turn, until the end or until nothing more fits; long lists are for a ``page``."""
    from dpselect.mechanisms.outcomes import Verdict

    for label, value in zip(answer.labels, answer.values.tolist(), strict=True):
        if not vector.fits:
            break
        verdict = vector.ask(value)
        told.add(verdict is Verdict.ABOVE, vector)
        if as_json:
            screen.emit({"period": label, "answer": verdict.value, "spent": vector.spent})
    ended = vector.questions < len(answer)
    if as_json:
        screen.emit(told.summary(vector, ended=ended))
        return
    from dpselect.report.text import print_report

    print_report(report_of(told, vector, ended=ended, named=_NAMED if page else None))


def report_of(told: Told, vector: SparseVector, *, ended: bool, named: int | None = None) -> Report:
    """The report; with ``named``, only so many ⊤ are listed by name."""
    from dpselect.report.guarantee import Guarantee
    from dpselect.report.record import Finding, Report, Spending

    asked = told.asked
    period = asked.every if asked else "question"
    names = [told.name(place) for place in told.above]
    rest = 0 if named is None else max(0, len(names) - named)
    listed = ", ".join(names[:named]) + (f" and {rest} more, all of them on the page" if rest else "")
    what = asked.measured if asked else "the value"
    details = [("Above", listed)] if names else []
    if ended:
        details.append(("Not asked", f"everything from {told.name(told.answered)} on: the budget ended"))
    details.append(("Cost of these answers", f"ε = {at_most(vector.spent)} of {at_most(told.watching.budget)}"))
    plural = f"{period}s"
    notes = ["Near the line an answer may fall on the wrong side: that is what protects people."]
    if asked is None or asked.is_series:
        notes.append("The curator vouches for what one person can change.")
    notes.append("The budget holds for this command alone: earlier answers from the same data add to it.")
    notes.append(_into_the_sum(told))
    return Report(
        title=f"When is {told.line} crossed?",
        findings=(
            Finding(
                question=f"For which {plural} is {what} at or above {told.line}?",
                answer=f"{len(names):,} of {told.answered:,} {plural}",
                details=tuple(details),
                spending=Spending(
                    spent=tuple(told.spent),
                    above=tuple(told.above),
                    budget=told.watching.budget,
                    first=told.name(0),
                    last=told.name(max(0, told.answered - 1)),
                ),
            ),
        ),
        guarantee=Guarantee(
            epsilon=told.watching.budget,
            delta=told.watching.delta,
            neighbours=asked.neighbours if asked else "declared",
            noise=vector.noise,
        ),
        parameters=told.parameters(),
        notes=tuple(notes),
        made=datetime.now(UTC).astimezone(),
    )


def _into_the_sum(told: Told) -> str:
    """Which of the two numbers counts beside other answers about the same people (THEORY §4)."""
    if told.watching.delta > 0:
        return "Into the running sum go the ε and δ of the guarantee, not the cost of these answers."
    return (
        f"Into the running sum goes the guarantee, ε = {at_most(told.watching.budget)}; the smaller cost of these "
        "answers only under a limit set beforehand in which the whole budget still fitted."
    )


def ready_for_report(path: Path | None, *, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuses a place where no page can be written, or that is read from, before anything is asked."""
    if path is not None:
        from dpselect import files

        files.check(path, files.PAGE, inputs=[one for one in inputs if one is not None])


def write_report(told: Told, vector: SparseVector, path: Path, *, ended: bool) -> None:
    """Writes the page and says where."""
    keep_page(report_of(told, vector, ended=ended), path)


def keep_page(report: Report, path: Path) -> None:
    """Writes the page of answers already drawn, and says where; a failure now is not one of the input."""
    from dpselect.cli.output import SPENT, NotWritten
    from dpselect.errors import SourceError
    from dpselect.report.page import write_page

    try:
        place = write_page(report, path)
    except SourceError as failure:
        raise NotWritten(f"{failure}; {SPENT}") from None
    screen.notice(f"Report: {place}", style="green")


def show_plan(told: Told, *, as_json: bool) -> None:
    """What a watch would cost and how good it would be; nothing is asked."""
    watching = told.watching
    _, of_line, of_question = watching.noise
    gap = max(1, round(watching.questions / watching.expected_above))
    silent = float(watching.watcher.loss(below=watching.questions, above=0))
    crossing = float(watching.watcher.loss(below=gap - 1, above=1))
    with screen.progress("Trying it on simulated data"):
        trial = simulate(watching)
    if as_json:
        screen.emit(
            {
                "dry_run": True,
                "budget": watching.budget,
                "questions": watching.questions,
                "noise_threshold": of_line * float(told.unit),
                "noise_query": of_question * float(told.unit),
                "epsilon_without_crossing": silent,
                "epsilon_of_a_crossing": crossing,
                "expected_f1": trial.f1,
                "expected_answered": trial.answered,
                "expected_spent": trial.spent,
                **({} if told.weakness is None else {"note": told.weakness}),
            }
        )
        return
    rows = [
        *told.parameters(),
        ("Budget", f"ε = {at_most(watching.budget)}"),
        *(() if told.weakness is None else (("Mind", told.weakness),)),
        (f"Cost of {watching.questions:,} ⊥ and no ⊤", f"ε = {at_most(silent)}"),
        (f"Cost of {gap - 1:,} ⊥ and a ⊤", f"ε = {at_most(crossing)}"),
        (
            f"On simulated data, ⊤ {watching.expected_above:,} times",
            f"F1 {at_least(trial.f1, digits=2)}; {percent(trial.answered)} of the questions answered; "
            f"ε = {at_most(trial.spent)} spent",
        ),
    ]
    screen.entries(
        "Dry run",
        rows,
        note="No value was read, nothing was spent. F1 compares with the answers without noise; 1 is perfect.",
    )
