"""What to expect of a watch before anything is spent: how good, beside a guess, and what would do where it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset.line import Line
    from dpselect.planning import Plan, Prediction
    from dpselect.privacy.family import QueryFamily

#: An answer must take away at least this part of what a guess gets wrong. A convention: below it most of what is named
#: is what a guess names, and the budget is better kept.
CLEARLY_BETTER = 0.25
#: Cautious scores nearer than this are not told apart by the simulation.
_CLOSE = 0.01
#: A remedy is looked for up to so many doublings of the budget.
_DOUBLINGS = 12


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """How a watch is expected to do on what is known, and how a guess that looks at no data does.

    Attributes
    ----------
    prediction : Prediction
        F1, precision and recall, also where the line is reached more often or less.
    questions : int
        How many are asked.
    chosen : bool
        Whether the planner chose the mechanism, among ``tried``.
    """

    prediction: Prediction
    questions: int
    chosen: bool = False
    tried: int = 1

    @property
    def guess(self) -> float:
        """F1 of answering ⊤ to everything."""
        return float(self.prediction.guess or 0.0)

    @property
    def share(self) -> float:
        """The share above the line in the expected case."""
        return float(self.prediction.share or 0.0)

    @property
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than the guess."""
        return self.prediction.score - self.guess >= CLEARLY_BETTER * (1.0 - self.guess)

    @property
    def in_words(self) -> str:
        """How good the answers are expected to be, beside the guess, in plain words."""
        found, guess = (
            self.prediction,
            f"a guess that looks at no data and names all is right {_of(self.share)} of the time",
        )
        if found.precision is None or found.recall is None:
            return f"if {_of(self.share)} are above, {self.in_figures}; {guess}"
        return (
            f"if {_of(self.share)} are above, {_of(found.precision)} of those named are right, and {_of(found.recall)} "
            f"of those above are named; {guess}"
        )

    @property
    def in_figures(self) -> str:
        """The same as F1: the expected one, the least and the best that is weighed, and that of the guess."""
        found = self.prediction
        told = f"F1 {found.score:.2f}"
        if found.best is not None and found.best - found.worst >= 0.005:
            told += f" ({found.worst:.2f} to {found.best:.2f} as fewer or more are above, or values move less or more)"
        return f"{told}; the guess {self.guess:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        found = self.prediction
        return {
            "expected_f1": found.score,
            "expected_precision": found.precision,
            "expected_recall": found.recall,
            "expected_f1_worst": found.worst,
            "expected_f1_best": found.best,
            "expected_answered": found.answered / self.questions,
            "expected_spent": found.spent,
            "expected_share": self.share,
            "guess_f1": self.guess,
        }


def _of(share: float) -> str:
    return f"{100 * share:.0f}%"


def choose(
    line: Line,
    family: QueryFamily,
    *,
    questions: int,
    unit: Fraction,
    whole: bool,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[Plan, Outlook] | None:
    """The contender that is expected to do best under the promise; None where no value can be on both sides.

    ``whole`` says that all questions are there: a table's, not those of a stream that may go on.
    """
    from dpselect.planning.planner import ranked

    job = line.job(family, questions=questions, unit=unit, whole=whole)
    if job is None:
        return None
    plans = ranked(job, line.contenders(whole=whole), on_progress=progress)
    if not plans or plans[0].prediction is None:
        return None
    first = max(plans, key=_promise(plans[0].prediction.cautious))
    assert first.prediction is not None  # noqa: S101  # the first has one, and one without is not taken before it
    chosen = line.mechanism is None
    outlook = Outlook(prediction=first.prediction, questions=questions, chosen=chosen, tried=len(plans))
    return replace(first, unit=float(unit)), outlook


def _promise(best: float) -> Callable[[Plan], tuple[bool, float]]:
    """Of those that the simulation cannot tell from the best, the one that does best if all is as expected."""

    def key(plan: Plan) -> tuple[bool, float]:
        found = plan.prediction
        return (False, 0.0) if found is None else (found.cautious >= best - _CLOSE, found.score)

    return key


def foresee(line: Line, plan: Plan, *, questions: int, unit: Fraction) -> Outlook | None:
    """How noise that was stated by hand, or planned before, is expected to do on what is known."""
    from dpselect.planning import Job
    from dpselect.planning.tuning import StreamTuner

    if plan.prediction is not None and plan.prediction.guess is not None:
        return Outlook(prediction=plan.prediction, questions=plan.count)
    if line.plan is None:
        job = line.job(plan.family, questions=questions, unit=unit)
    else:
        promise: dict[str, Any] = {"epsilon": plan.epsilon, "delta": plan.delta, "threshold": plan.threshold}
        job = Job(asked="crossings", family=plan.family, count=questions, **promise)
    if job is None or plan.sparse is None:
        return None
    found = StreamTuner(job, plan.sparse, epsilon=plan.epsilon).predict(plan.sparse_parameters)
    return Outlook(prediction=found, questions=questions)


def remedy(line: Line, family: QueryFamily, *, questions: int, unit: Fraction, whole: bool) -> str:
    """What budget would do, in words."""
    from dpselect.errors import DPSelectError
    from dpselect.planning.budgets import Entrant

    job = None if line.plan is not None else line.job(family, questions=questions, unit=unit, whole=whole)
    if job is not None:
        epsilon = float(job.epsilon or 1.0)
        # The first two: a whole set, where there can be one, and what rations its budget.
        entrants = [Entrant(job, key) for key in line.contenders(whole=whole)[: 1 + whole]]
        for _ in range(_DOUBLINGS):
            epsilon *= 2.0
            for entrant in entrants:
                try:
                    found = entrant.at(epsilon, passes=60).prediction
                except DPSelectError:
                    continue
                if found is not None and Outlook(prediction=found, questions=questions).useful:
                    enough = at_most(epsilon * line.parts, digits=2)
                    return f"a budget of {enough} would do on such data; so may longer periods, or more people"
    return "ask about longer periods, or about more people"
