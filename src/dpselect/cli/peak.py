"""``dpselect peak``: which period or category is largest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dpselect.cli import screen, spent
from dpselect.cli.knowledge import Knowledge
from dpselect.cli.options import Categories, Count, Data, Number, Periods, Run, Selection, Table
from dpselect.errors import DPSelectError, InvalidParameter

#: Said of facts that were typed: an answer must not say what the rows hold, so it cannot say that they are wrong.
UNCHECKED = (
    "Nothing has checked these facts: dpselect describe, with the same options, shows what they leave out or cut, for "
    "you alone and at no cost."
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked.

    Parameters
    ----------
    epsilon
        The most the answer may cost, pure.
    smallest
        Which is smallest, not largest.
    top
        Name so many, in order; each costs an equal part of ε.
    how_much
        Also the values of those named, with their ±, from half of ε.
    mechanism
        How the winner is picked; the one expected to do best if left out. All cost ε.
    plan
        All of this, and the noise, from a plan that was saved.
    anyway
        Ask also where the answer would hardly be better than a guess.
    key
        With --ledger: tells it from the same question asked before.
    afresh
        With --ledger: draw the same question again, and pay again.
    """

    epsilon: Annotated[Number | None, Parameter(metavar="ε")] = None
    smallest: bool = False
    top: Annotated[Count, Parameter(metavar="K")] = 1
    how_much: bool = False
    mechanism: Selection | None = None
    plan: Annotated[Path | None, Parameter(metavar="FILE.toml")] = None
    anyway: bool = False
    key: str | None = None
    afresh: bool = False

    def given(self) -> dict[str, Any]:
        """As a data set takes it."""
        from dpselect.planning import load_plan

        if self.plan is None and self.epsilon is None:
            raise InvalidParameter(
                "‹epsilon› must be given: the most the answer may cost, such as 0.1",
                parameter="epsilon",
            )
        goal = "smallest" if self.smallest else "largest"
        given = {"epsilon": self.epsilon, "top": self.top, "how_much": self.how_much, "mechanism": self.mechanism}
        return {"goal": goal, **given, "plan": None if self.plan is None else load_plan(self.plan)}


def peak(
    data: Data,
    /,
    *,
    asked: Asked = Asked(),  # noqa: B008 - frozen
    knowledge: Knowledge = Knowledge(),  # noqa: B008
    periods: Periods = Periods(),  # noqa: B008 - frozen
    categories: Categories = Categories(),  # noqa: B008
    table: Table = Table(),  # noqa: B008
    run: Run = Run(),  # noqa: B008
) -> None:
    """Which day (hour, week, month, category) is largest?

    Rows of persons:

      $ dpselect peak readings.parquet --user meter --time at --value kwh
        --cap 50 --population 5564 --from 2013-01-01 --to 2013-12-31 --epsilon 0.1

    A series already added up, for which you vouch:

      $ dpselect peak days.csv --time day --value trips --maximum 6946
        --population 6946 --from 2011-01-01 --to 2011-12-31 --epsilon 0.1

    The five coldest days and what they used, or the busiest weekday:

      $ dpselect peak homes.toml --top 5 --how-much --epsilon 0.5

      $ dpselect peak homes.toml --every weekday --epsilon 0.1

    In Python: dp.Dataset("readings.parquet", user=…, …).peak(epsilon=0.1, start=…, end=…).
    """
    from dpselect.cli.application import option_words
    from dpselect.cli.failures import say
    from dpselect.dataset.file import is_file

    dataset = table.dataset(data, run, category=categories.category, every=periods.every)
    run.check(inputs=(*dataset.inputs, *categories.inputs, asked.plan, *knowledge.inputs))
    candidates = categories.of(dataset, periods)
    with screen.progress("Trying the mechanisms on simulated data"):
        plan = dataset.plan_peak(candidates, compare=run.dry_run, known=knowledge.known(), **asked.given())
    cost, word = plan.cost(plan.mechanism), option_words(["peak"])
    for caution in plan.cautions if plan.useful or run.dry_run else ():
        say(DPSelectError(caution).told(word), as_json=run.as_json, kind="warning")
    if run.dry_run:
        dataset.check(candidates)
        screen.show_peak_plan(plan, as_json=run.as_json)
        if not run.as_json:
            spent.say_would_be_left(dataset, cost)
        return
    spent.begin(
        cost,
        ledger=dataset.ledger is not None,
        book=lambda: vars(dataset).get("book"),
        charged=lambda: dataset.budget.spent > 0,
    )
    with screen.progress("Adding up the table") as move:
        answer = plan.ask(anyway=asked.anyway, progress=move, key=asked.key, afresh=asked.afresh)
    screen.show_answer(answer, as_json=run.as_json)
    if run.as_json:
        run.warn_of_a_seed()
    elif plan.advice:
        screen.notice(plan.advice)
    run.keep(answer)
    run.show_curator(answer)
    if not run.as_json:
        spent.say_left(dataset.book, cost)
        if not is_file(data):
            screen.notice(UNCHECKED, style="dim")
