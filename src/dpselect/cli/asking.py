"""A question that was planned for a table: shown where nothing is to be spent, otherwise asked, shown and kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from dpselect.cli import screen, spent
from dpselect.cli.application import option_words
from dpselect.cli.failures import BUDGET_EXHAUSTED, DONE, say
from dpselect.errors import DPSelectError

if TYPE_CHECKING:
    from dpselect.cli.options import Again, RunOptions
    from dpselect.dataset import Answer, PeakPlan, WatchPlan

_Plan = TypeVar("_Plan", "PeakPlan", "WatchPlan")

#: Said of facts that were typed: an answer must not say what the rows hold, so it cannot say that they are wrong.
_UNCHECKED = (
    "Nothing has checked these facts: dpselect describe, with the same options, shows what they leave out or cut, for "
    "you alone and at no cost."
)
#: The terminal lists at most this many where a page lists them all. Without a page it lists every one: answers are paid
#: for once, and asking again would cost again.
_LISTED = 60


def ask(plan: _Plan, run: RunOptions, again: Again, *, anyway: bool, show: Callable[[_Plan], None]) -> int:
    """Charges the budget, reads the table, shows the answer and keeps its page; the exit code.

    With ``--dry-run`` nothing is charged: the columns are looked for, and the plan is shown.
    """
    from dpselect.dataset import rows

    scope: Any = plan.scope  # of a table
    account = scope.account
    if plan.caution is not None and (plan.useful or anyway or run.dry_run):  # otherwise the refusal says it
        with warnings.catch_warnings():  # it looks once more before the charge, and warns then
            warnings.simplefilter("ignore")
            rows.check(scope)  # first: a warning about accuracy is no use where the columns cannot answer
        _warn(plan, plan.caution, run)
    if run.dry_run:
        rows.check(scope)
        show_plan(plan, show, as_json=run.as_json)
        _warn(plan, plan.doubt, run)
        if not run.as_json:
            spent.say_would_be_left(account, plan.promise)
        return DONE
    if run.as_json:  # otherwise the report begins with it
        run.warn_of_a_seed()
    spent.begin(
        plan.promise,
        ledger=account.ledger is not None,
        book=lambda: account.opened,
        charged=lambda: account.budget.spent > 0,
    )
    with screen.progress("Adding up the table") as move:
        answer: Answer = plan.ask(anyway=anyway, progress=move, key=again.key, afresh=again.afresh)
    _show_answer(answer, run)
    _warn(plan, plan.doubt, run)
    run.keep(answer, verb=plan.verb)
    run.show_curator(answer)
    if not run.as_json:
        spent.say_left(account.book, plan.promise, at_most=plan.verb == "watch")
        if scope.facts.described is None:
            screen.notice(_UNCHECKED, style="dim")
    if answer.ended:
        screen.notice(answer.exhaustion, style="red")
    return BUDGET_EXHAUSTED if answer.ended else DONE


def _warn(plan: _Plan, text: str | None, run: RunOptions) -> None:
    if text is not None:
        say(DPSelectError(text).told(option_words([plan.verb])), as_json=run.as_json, kind="warning")


def show_plan(plan: _Plan, show: Callable[[_Plan], None], *, as_json: bool) -> None:
    """What an answer would cost and how good it would be; nothing was asked."""
    if not as_json:
        show(plan)
        return
    for record in plan.to_dicts():
        screen.emit(record)


def _show_answer(answer: Answer, run: RunOptions) -> None:
    from dpselect.report.words import print_report

    if run.as_json:
        for record in answer.records():
            screen.emit(record)
        return
    report = answer.as_report()
    if run.report is not None:
        short = [
            replace(
                found,
                listed=found.listed[:_LISTED],
                listed_as=f"{found.listed_as}, the first {_LISTED} (all {len(found.listed):,} are on the page)",
            )
            if len(found.listed) > _LISTED
            else found
            for found in report.findings
        ]
        report = replace(report, findings=tuple(short))
    print_report(report)
