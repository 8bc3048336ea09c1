"""``dpselect peak``: which period or category is largest."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from dpselect.cli import screen
from dpselect.cli.options import Categories, Data, Number, Periods, Run, Table


def peak(
    data: Data,
    /,
    *,
    epsilon: Annotated[Number, Parameter(help="The most the answer may cost, pure.", metavar="ε")],
    mechanism: Annotated[
        Literal["gaussian", "permute-and-flip", "exponential", "laplace"] | None,
        Parameter(help="How the winner is picked; the one expected to do best if left out. All cost ε."),
    ] = None,
    anyway: Annotated[bool, Parameter(help="Ask also where the answer would hardly be better than a guess.")] = False,
    key: Annotated[str | None, Parameter(help="With --ledger: tells it from the same question asked before.")] = None,
    afresh: Annotated[bool, Parameter(help="With --ledger: draw the same question again, and pay again.")] = False,
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

    In Python: dp.Dataset("readings.parquet", user=…, …).peak(epsilon=0.1, start=…, end=…).
    """
    dataset = table.dataset(data, run, category=categories.category)
    run.check(inputs=(*dataset.inputs, *categories.inputs))
    candidates = categories.of(dataset, periods)
    with screen.progress("Trying the mechanisms on simulated data"):
        plan = dataset.plan_peak(candidates, epsilon=epsilon, mechanism=mechanism, compare=run.dry_run)
    if run.dry_run:
        dataset.check(candidates)
        screen.show_peak_plan(plan, as_json=run.as_json)
        return
    with screen.progress("Adding up the table") as move:
        answer = plan.ask(anyway=anyway, progress=move, key=key, afresh=afresh)
    screen.show_answer(answer, as_json=run.as_json)
    if run.as_json:
        run.warn_of_a_seed()
    elif plan.advice:
        screen.notice(plan.advice)
    run.keep(answer)
    run.show_curator(answer)
