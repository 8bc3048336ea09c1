"""``dpselect ledger``: what a data set may cost, what was asked, and whether the record holds."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from dpselect.cli import screen
from dpselect.cli.options import AsJson, Number, ReportFile
from dpselect.errors import InvalidParameter, LedgerError, SourceError, refuse_given
from dpselect.report.rounding import at_least, at_most, no_more_than

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, Total
    from dpselect.ledger.history import Asked

_BAR = 40


def ledger(
    action: Annotated[
        Literal["create", "show", "history", "plot", "verify", "export", "retire"],
        Parameter(help="What to do with it.", metavar="ACTION"),
    ],
    place: Annotated[str, Parameter(help="Its file, or postgresql://user@host/name.", metavar="LEDGER")],
    /,
    *,
    dataset: Annotated[str | None, Parameter(help="Which data set, where there are several.")] = None,
    total: Annotated[Number | None, Parameter(help="create: the most all answers may cost (ε).", metavar="ε")] = None,
    rho: Annotated[Number | None, Parameter(help="create: the same as zCDP, with --delta.", metavar="ρ")] = None,
    delta: Annotated[Number | None, Parameter(help="create: δ of the total.", metavar="δ")] = None,
    anchor: Annotated[str | None, Parameter(help="An anchor kept elsewhere: an older copy is refused.")] = None,
    out: Annotated[Path | None, Parameter(help="plot: the drawing to write.", metavar="FILE.svg")] = None,
    as_csv: Annotated[bool, Parameter(name="--csv", help="history: as CSV.")] = False,
    reason: Annotated[str, Parameter(help="retire: why, for the record.")] = "",
    who: Annotated[str | None, Parameter(help="Whom the record names; your user name if left out.")] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """A budget that survives: make it, look at it, check it.

      $ dpselect ledger create homes.ledger --dataset homes --total 2
      $ dpselect ledger show homes.ledger
      $ dpselect ledger history homes.ledger --csv
      $ dpselect ledger verify homes.ledger --anchor 17:9c1f…

    create chooses the total, once. show: what is left. history: what was asked. plot: the spend over time. verify:
    whether an entry was altered, and the anchor to keep elsewhere. export: every entry as JSON. retire: refuse all
    questions from now on.

    In Python: dpselect.ledger.Ledger.create, .open, .balance, .verify, .retire.
    """
    if action == "create":
        _create(place, dataset, _total(total, rho, delta), who, as_json=as_json)
        return
    refuse_given(f"ledger {action}; a total is chosen when a ledger is made", total=total, rho=rho, delta=delta)
    if action != "plot":
        refuse_given(f"ledger {action}", out=out)
    if action != "history":
        refuse_given(f"ledger {action}", csv=as_csv or None)
    if action not in ("show", "history"):
        refuse_given(f"ledger {action}", report=report)
    with _opened(place, dataset, who, anchor=None if action == "verify" else anchor) as found:
        if action == "show":
            _show(found, as_json=as_json)
        elif action == "history":
            _history(found, as_csv=as_csv, as_json=as_json)
        elif action == "plot":
            _plot(found, out)
        elif action == "verify":
            _verify(found, anchor, as_json=as_json)
        elif action == "export":
            for entry in found.entries():
                screen.emit(entry.row())
        else:
            found.retire(reason)
            screen.notice(f"{found.dataset} is retired: nothing more is answered", style="green")
        if report is not None:
            screen.notice(f"Report: {_page(found, report)}", style="green")


@contextmanager
def _opened(place: str, dataset: str | None, who: str | None, *, anchor: str | None) -> Iterator[Ledger]:
    try:
        from dpselect.ledger import Ledger
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    with Ledger.open(place, dataset=dataset, who=who, anchor=anchor) as found:
        yield found


def _total(epsilon: Any, rho: Any, delta: Any) -> Total:
    from dpselect.ledger import Total

    if (epsilon is None) == (rho is None):
        raise InvalidParameter(
            "give one of --total (ε) and --rho (zCDP, with --delta): it is chosen once", parameter=None
        )
    if rho is not None:
        if delta is None:
            raise InvalidParameter("--rho needs --delta, at which it is shown as an ε", parameter="delta")
        return Total.zcdp(no_more_than(rho), delta=no_more_than(delta))
    if delta is None:
        return Total.pure(no_more_than(epsilon))
    return Total.approximate(no_more_than(epsilon), delta=no_more_than(delta))


def _create(place: str, dataset: str | None, total: Total, who: str | None, *, as_json: bool) -> None:
    from dpselect.ledger import Ledger

    if dataset is None:
        raise InvalidParameter("--dataset must name the data set whose budget this is", parameter="dataset")
    with Ledger.create(place, dataset=dataset, total=total, who=who) as made:
        anchor = str(made.balance().anchor)
    if as_json:
        screen.emit({"dataset": dataset, "total": str(total), "anchor": anchor})
    else:
        screen.entries(f"Ledger of {dataset}", [("Total", str(total)), ("Anchor", anchor)])


def _facts(found: Ledger) -> dict[str, Any]:
    from dpselect.ledger.history import questions_left

    balance = found.balance()
    return {
        "dataset": found.dataset,
        "total": found.total.limit,
        "unit": found.total.unit,
        "delta": found.total.delta,
        "spent": balance.spent,
        "spent_delta": found.total.spent_delta(balance.charged),
        "remaining": balance.remaining,
        "questions_left": questions_left(found),
        "retired": balance.retired,
        "anchor": str(balance.anchor),
    }


def _in_words(found: Ledger) -> list[tuple[str, str]]:
    facts = _facts(found)
    share = min(1.0, facts["spent"] / facts["total"])
    # Rounded up: a bar that shows room where there is none would be believed.
    full = min(_BAR, -int(-_BAR * share // 1))
    left = facts["questions_left"]
    return [
        ("Total", str(found.total)),
        ("Charged", f"{at_most(facts['spent'])}  [{'█' * full}{'·' * (_BAR - full)}]"),
        ("Left", at_least(facts["remaining"]) + (" (retired)" if facts["retired"] else "")),
        ("Questions left", "nothing was asked yet" if left is None else f"{left:,} at the average cost so far"),
        ("Anchor", facts["anchor"]),
    ]


def _show(found: Ledger, *, as_json: bool) -> None:
    if as_json:
        screen.emit(_facts(found))
    else:
        screen.entries(f"Ledger of {found.dataset}", _in_words(found))


def _cells(one: Asked) -> list[str]:
    return [str(one.number), one.at, one.who, _short(one.question), one.state, _short(one.answer), at_most(one.cost)]


_COLUMNS = ["entry", "when", "who", "question", "state", "answer", "cost ≤"]


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _history(found: Ledger, *, as_csv: bool, as_json: bool) -> None:
    from dpselect.ledger.history import history

    rows = history(found)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["entry", "when", "who", "question", "state", "answer", "cost", "delta"])
        for one in rows:
            question, answer = (json.dumps(text, ensure_ascii=False) for text in (one.question, one.answer))
            writer.writerow([one.number, one.at, one.who, question, one.state, answer, one.cost, one.delta])
    elif as_json:
        for one in rows:
            screen.emit(one.as_dict())
    else:
        screen.table(f"Questions to {found.dataset}", _COLUMNS, [_cells(one) for one in rows])


def _drawing(found: Ledger) -> str:
    from dpselect.ledger.history import spending
    from dpselect.report.plots import spending_svg
    from dpselect.report.record import Spending

    points = list(spending(found))
    spent = tuple(value for _, value in points)
    return spending_svg(
        Spending(spent=spent, above=(), budget=found.total.limit, first=points[0][0], last=points[-1][0])
    )


def _plot(found: Ledger, out: Path | None) -> None:
    from dpselect import files
    from dpselect.report.page import house_style

    if out is None or out.suffix.lower() != ".svg":
        raise InvalidParameter("--out must name the drawing to write, such as spend.svg", parameter="out")
    drawing = (
        _drawing(found)
        .replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        .replace(">", f"><style>{house_style()}</style>", 1)
    )
    screen.notice(f"Drawing: {files.write(out, drawing, files.DRAWING)}", style="green")


def _verify(found: Ledger, anchor: str | None, *, as_json: bool) -> None:
    result = found.verify(anchor=anchor)
    facts = {"holds": result.holds, "entries": result.entries, "problems": result.problems}
    if as_json:
        screen.emit({**facts, "anchor": str(result.anchor)})
    elif result.holds:
        kept = "" if anchor is None else ", and the anchor is in it"
        screen.entries(
            f"The chain of {found.dataset} holds",
            [("Entries", f"{result.entries:,}{kept}"), ("Anchor", str(result.anchor))],
            note="Keep the anchor elsewhere: it shows when an older copy is put in this one's place.",
        )
    if not result.holds:
        more = "" if len(result.problems) == 1 else f" (and {len(result.problems) - 1} more)"
        raise LedgerError(f"the ledger does not hold: {result.problems[0]}{more}")


def _page(found: Ledger, path: Path) -> Path:
    from html import escape

    from dpselect import files
    from dpselect.ledger.history import history
    from dpselect.report.page import document

    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in _in_words(found))
    head = "".join(f"<th>{escape(column)}</th>" for column in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(one)) + "</tr>" for one in history(found)
    )
    body = (
        f"<h1>Ledger of {escape(found.dataset)}</h1><dl>{facts}</dl>{_drawing(found)}"
        f"<h2>Questions</h2><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return files.write(path, document(f"Ledger of {found.dataset}", body), files.PAGE)
