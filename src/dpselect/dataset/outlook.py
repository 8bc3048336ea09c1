"""What to expect of a watch before anything is spent: how good, beside a guess, and what would do where it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.errors import DPSelectError
from dpselect.report.rounding import at_least, at_most
from dpselect.report.words import f1_in_words, plural

if TYPE_CHECKING:
    from dpselect.dataset.line import Line
    from dpselect.planning import Job, Plan, Prediction
    from dpselect.privacy.family import QueryFamily

#: An answer must take away at least this part of what a guess gets wrong. A convention: below it most of what is named
#: is what a guess names, and the budget is better kept.
CLEARLY_BETTER = 0.25


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
        return f1_in_words(self.prediction)

    @property
    def in_figures(self) -> str:
        """The same as F1: the expected one, between which a single watch lies, and that of the guess."""
        found = self.prediction
        told = f"F1 {found.score:.2f}"
        if found.low is not None and found.high is not None:
            told += f" ({found.low:.2f} to {found.high:.2f} four times of five)"
        return f"{told}; the guess {self.guess:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return self.prediction.as_expected(self.questions)


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
    chosen = line.mechanism is None
    outlook = Outlook(prediction=plans[0].prediction, questions=questions, chosen=chosen, tried=len(plans))
    return replace(plans[0], unit=float(unit)), outlook


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


#: The next coarser periods, and how many of the finer ones they hold.
COARSER = {"hour": (("days", 24),), "day": (("weeks", 7), ("months", 30)), "week": (("months", 4),)}
#: What is looked for with few passes is asked for with a little more.
_MARGIN = 1.05


def remedy(line: Line, family: QueryFamily, *, questions: int, unit: Fraction, whole: bool, period: str) -> str:
    """Which budget would do, and which coarser question at the same budget, in words."""
    from dpselect.planning.budgets import enough

    job = None if line.plan is not None else line.job(family, questions=questions, unit=unit, whole=whole)
    if job is None:
        return "ask about longer periods, or about more people"
    # The first two: a whole set, where there can be one, and what rations its budget.
    whose, epsilon = line.contenders(whole=whole)[: 1 + whole], float(job.epsilon or 1.0)
    told = []
    least = enough(lambda more: _will_do(job, whose, more), start=epsilon)
    if least is not None:
        told.append(f"a budget of {at_most(_MARGIN * least * line.parts, digits=2)} would do on such data")
    for periods, number in COARSER.get(period, ()):
        # The values and what one person moves grow alike; questions, and with them those above, become fewer.
        count = max(1, questions // number)
        fewer = line.job(family, questions=count, unit=unit, whole=whole) if _any_number(line) else None
        if fewer is not None and fewer.count > 1 and _will_do(fewer, whose, epsilon / _MARGIN):
            told.append(f"at this budget {periods} would do, were they as far from the line as {plural(period)} are")
            break
    return "; ".join(told or ["ask about longer periods"]) + ", or ask about more people"


def _any_number(line: Line) -> bool:
    """Whether what is known holds for another number of questions, too."""
    return line.known.expect is None or 0 < line.known.expect < 1


def _will_do(job: Job, contenders: Sequence[str], epsilon: float) -> bool:
    from dpselect.planning.budgets import Contender

    for contender in contenders:
        with contextlib.suppress(DPSelectError):
            found = Contender(job, contender).at(epsilon, passes=60).prediction
            if found is not None and Outlook(prediction=found, questions=job.count).useful:
                return True
    return False


def with_what_is_left(line: Line, family: QueryFamily, *, questions: int, unit: Fraction, left: float) -> str:
    """What a watch with all that is left of a ledger would give, in words; for a refusal of one that costs more."""
    if line.plan is not None or line.by_hand:
        return "make a plan for what is left"
    if left <= 0:
        return "nothing can be asked any more"
    found = choose(replace(line, budget=left), family, questions=questions, unit=unit, whole=True)
    if found is None:
        return "no value can be on both sides of the line"
    if found[1].useful:
        return f"a budget of {at_least(left)} would do: {found[1].in_words}"
    return f"what is left would hardly be better than a guess: {found[1].in_words}"
