"""``dpselect ledger``: what a data set may cost, what was asked, and whether the record holds."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from dpselect import files
from dpselect.cli import screen
from dpselect.cli.numbers import Number
from dpselect.cli.options import AsJson, ReportFile
from dpselect.errors import InvalidParameter, LedgerError, SourceError, refuse_given
from dpselect.report.words import plural
from dpselect.rounding import at_least, at_most

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, Total
    from dpselect.ledger.history import HistoryRow
    from dpselect.report.record import Across, Charged

#: How wide the bar of what is charged is, and below which width a table is no longer read.
_BAR, _NARROW = 40, 64
_UNITS = {"epsilon": "ε", "rho": "ρ"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NewTotal:
    """create: the total, chosen once.

    Parameters
    ----------
    total
        create: the most all answers may cost (ε).
    rho
        create: the same as zCDP, with --delta.
    delta
        create: δ of the total.
    """

    total: Annotated[Number | None, Parameter(metavar="ε")] = None
    rho: Annotated[Number | None, Parameter(metavar="ρ")] = None
    delta: Annotated[Number | None, Parameter(metavar="δ")] = None

    def read(self) -> Total:
        """The total that is meant."""
        from dpselect.ledger import Total

        if (self.total is None) == (self.rho is None):
            raise InvalidParameter(
                "give one of --total (ε) and --rho (zCDP, with --delta): it is chosen once", parameter=None
            )
        delta: Any = self.delta
        if self.rho is not None:
            if delta is None:
                raise InvalidParameter("--rho needs --delta, at which it is shown as an ε", parameter="delta")
            return Total.zcdp(self.rho, delta=delta)
        epsilon: Any = self.total
        return Total.pure(epsilon) if delta is None else Total.approximate(epsilon, delta=delta)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the answer goes."""

    report: ReportFile = None
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Drawing:
    """plot, and the page: where it goes and what lies across.

    Parameters
    ----------
    out
        plot: the drawing to write, as SVG, PNG or PDF by its ending.
    across
        plot and --report: what lies across, the time (if left out) or the entries.
    """

    out: Annotated[Path | None, Parameter(metavar="FILE.svg")] = None
    across: Literal["time", "entry"] | None = None


def ledger(
    action: Annotated[
        Literal["create", "show", "history", "plot", "verify", "export", "release", "retire"],
        Parameter(help="What to do with it.", metavar="ACTION"),
    ],
    place: Annotated[
        str,
        Parameter(help="Its file, postgresql://user@host/name, or a data-set file.", metavar="LEDGER"),
    ],
    /,
    *,
    dataset: Annotated[str | None, Parameter(help="Which data set, where there are several.")] = None,
    new: NewTotal = NewTotal(),
    anchor: Annotated[str | None, Parameter(help="An anchor kept elsewhere: an older copy is refused.")] = None,
    drawing: Drawing = Drawing(),
    as_csv: Annotated[bool, Parameter(name="--csv", help="history: as CSV.")] = False,
    entry: Annotated[int | None, Parameter(help="release: the entry of the question, as history shows it.")] = None,
    reason: Annotated[str | None, Parameter(help="release, retire: why, for the record.")] = None,
    who: Annotated[str | None, Parameter(help="Whom the record names; your user name if left out.")] = None,
    run: Output = Output(),
) -> None:
    """The ledger that keeps a data set's budget: make it, look at it, check it.

    The actions, as they are typed:

      $ dpselect ledger create homes.ledger --dataset homes --total 2
      $ dpselect ledger show homes.toml --report ledger.html
      $ dpselect ledger history homes.ledger --csv
      $ dpselect ledger plot homes.ledger --out spend.svg
      $ dpselect ledger verify homes.ledger --anchor 17:9c1f…

    create: choose the total, once.
    show: what is left.
    history: what was asked.
    plot: what was spent over time.
    verify: whether an entry was altered, and the anchor to keep elsewhere; with --anchor, whether the end is there.
    export: every entry as JSON.
    release: give back the charge of a question that failed before any row was added up.
    retire: refuse all questions from now on.

    In Python: dpselect.ledger.Ledger.create, .open, .balance, .verify, .retire.
    """
    _refuse_elsewhere(action, new, drawing, run, csv=as_csv or None, reason=reason, entry=entry)
    place, dataset, anchors = _named(place, dataset, anchor)
    if action == "create":
        _create(place, dataset, new.read(), who, as_json=run.as_json)
        return
    with _opened(place, dataset, who, anchors=() if action == "verify" else anchors) as found:
        if action == "show":
            _show(found, as_json=run.as_json)
        elif action == "history":
            _history(found, as_csv=as_csv, as_json=run.as_json)
        elif action == "plot":
            _plot(found, drawing)
        elif action == "verify":
            _verify(found, anchors, as_json=run.as_json)
        elif action == "export":
            for one in found.entries():
                screen.emit(one.row())
        elif action == "release":
            _release(found, entry, reason)
        else:
            found.retire(reason or "")
            screen.notice(f"{found.dataset} is retired: nothing more is answered", style="green")
        if run.report is not None:
            screen.notice(f"Report: {_page(found, run.report, drawing.across or 'time')}", style="green")


def _refuse_elsewhere(action: str, new: NewTotal, drawing: Drawing, run: Output, **others: Any) -> None:
    """Options that mean nothing to this action are refused, not ignored; a page that cannot be written, before it."""
    here = f"ledger {action}"
    if action != "create":
        refuse_given(f"{here}; a total is chosen when a ledger is made", **asdict(new))
    if action != "plot":
        refuse_given(here, out=drawing.out, across=drawing.across if run.report is None else None)
    if action not in ("show", "history"):
        refuse_given(here, report=run.report)
    belongs = {"csv": ["history"], "reason": ["release", "retire"], "entry": ["release"]}
    refuse_given(here, **{name: value for name, value in others.items() if action not in belongs[name]})
    if run.report is not None:
        files.check(run.report, files.PAGE)
    if drawing.out is not None:
        files.check(drawing.out, files.DRAWING)


def _named(place: str, dataset: str | None, anchor: str | None) -> tuple[str, str | None, tuple[str, ...]]:
    """The ledger that a data-set file names, its data set there and the anchors it must have; others as they are."""
    from dpselect.dataset.file import is_file, read_file

    typed = () if anchor is None else (anchor,)
    if not is_file(place):
        return place, dataset, typed
    facts = read_file(place)
    found = facts.get("ledger")
    if found is None:
        raise SourceError(f"the data-set file {Path(place).name!r} names no ledger; describe it with --total")
    if dataset is None and facts.get("anchor") is not None:
        return str(found), None, (facts["anchor"], *typed)
    from dpselect.ledger import Ledger

    name = Path(place).stem
    return str(found), dataset or (name if name in Ledger.datasets(found) else None), typed


@contextmanager
def _opened(place: str, dataset: str | None, who: str | None, *, anchors: Sequence[str]) -> Iterator[Ledger]:
    try:
        from dpselect.ledger import Ledger
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    with Ledger.open(place, dataset=dataset, who=who, anchor=anchors) as found:
        yield found


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
        "named_by": str(found.identity),
        "anchor": str(balance.anchor),
    }


def _in_words(found: Ledger) -> list[tuple[str, str]]:
    from dpselect.ledger.history import history, questions_left, usual_cost

    balance, total, more, cost = found.balance(), found.total, questions_left(found), usual_cost(found)
    charged, sign = total.exact(balance.charged), _UNITS[total.unit]
    # What is shown as charged is rounded up: both together are no more than the total.
    left = at_least(
        min(total.exact(balance.left), max(Decimal(0), total.exact(total.amounts) - Decimal(at_most(charged))))
    )
    # Rounded up: a bar that shows room where there is none would be believed.
    full = min(_BAR, math.ceil(_BAR * charged / total.exact(total.amounts)))
    waiting = [one for one in history(found) if one.state == "reserved"]
    return [
        ("Total", str(total)),
        ("Charged", f"{sign} = {at_most(charged)}  [{'█' * full}{'·' * (_BAR - full)}]"),
        ("Left", f"{sign} = {left}" + (" (retired)" if balance.retired else "")),
        *([("Waiting", f"{len(waiting):,} charged, without an answer yet")] if waiting else []),
        (
            "Questions left",
            "nothing was asked yet" if cost is None else f"{more:,} more like the last ({sign} = {at_most(cost)} each)",
        ),
        ("Counts", _counted(found)),
        ("Named by", str(found.identity)),
        ("Anchor", str(balance.anchor)),
    ]


def _counted(found: Ledger) -> str:
    """Whose privacy is counted, in words."""
    unit = found.unit()
    if unit is None:
        return "whose privacy, the first question says"
    if unit.user is None:
        return "what is spent about one person, for whom the curator vouches"
    return f"what is spent about each {unit.user!r} ({unit.adjacency})"


def _show(found: Ledger, *, as_json: bool) -> None:
    if as_json:
        screen.emit(_facts(found))
    else:
        screen.entries(f"Ledger of {found.dataset}", _in_words(found))


_STATES = {"reserved": "(no answer yet)", "lost": "(lost)", "released": "(released)"}
_COLUMNS = ["entry", "when (UTC)", "who", "question", "answer", "cost ≤"]


def _cells(one: HistoryRow, *, longest: int = 60) -> list[str]:
    when = datetime.fromisoformat(one.at).strftime("%Y-%m-%d %H:%M")
    answer = _words(one.answer) if one.state == "settled" else _STATES[one.state]
    texts = [_cut(text, longest) for text in (_asked(one.question), answer)]
    return [str(one.number), when, one.who, *texts, at_most(one.cost)]


def _asked(question: Any) -> str:
    """A question for people: of `peak` and `watch` what a curator would say."""
    if not isinstance(question, dict) or question.get("verb") not in ("peak", "watch"):
        return _words(question)
    if question.get("version") == 2:
        return _asked_facts(question)
    if "Candidates" not in question:
        return _words(question)
    number, _, about = str(question["Candidates"]).partition(", ")
    periods = re.fullmatch(r"each (.+?) ((?:from|over) .*)", about)
    what, rest = periods.groups() if periods else ("category", about or number)
    if question["verb"] == "watch":
        words = f"{plural(what)} at or above {question.get('Line', '')}"
    else:
        goal, top = question.get("goal", "largest"), question.get("top", 1)
        words = f"{goal} {what}" if top == 1 else f"{top} {goal} {plural(what)}"
    values = ", with values" if "value_scale" in question or question.get("how_much") else ""
    return f"{words}{values}, {rest}"


def _asked_facts(question: dict[str, Any]) -> str:
    """A question for people, from the facts it is kept as."""
    candidates = question.get("candidates", {})
    what = str(candidates.get("every", "category")).replace("-", " ") if candidates else "question"
    if question["verb"] == "watch":
        words = f"{plural(what)} at or above {question['threshold']:.10g}"
    else:
        goal, top = question["goal"], question["top"]
        words = f"{goal} {what}" if top == 1 else f"{top} {goal} {plural(what)}"
    values = ", with values" if question["values"] else ""
    between = {"calendar": "from", "cycle": "over"}.get(candidates.get("kind", ""))
    where = f", {between} {candidates['first']} to {candidates['last']}" if between else ""
    return f"{words}{values}{where}"


def _words(value: Any) -> str:
    """A public question or answer for people: what was asked first, then the rest by name."""
    if isinstance(value, list) and all(isinstance(one, float) for one in value):
        return ", ".join(f"{one:.4g}" for one in value)
    if not isinstance(value, dict):
        return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "label" in value:
        names = [str(one) for one in value.get("labels", [value["label"]])]
        amounts = [f" ({one:.4g})" for one in value.get("amounts", ())] or [""] * len(names)
        return ", ".join(map("".join, zip(names, amounts, strict=True)))
    if value.keys() == {"questions", "above"}:
        return f"{value['above']:,} of {value['questions']:,} above"
    rest = [f"{name} {_words(one)}" for name, one in value.items() if name not in ("verb", "labels")]
    return "; ".join([str(value["verb"]), *rest] if "verb" in value else rest)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


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
        _list(f"Questions to {found.dataset}", [_cells(one) for one in rows])


def _list(title: str, rows: list[list[str]]) -> None:
    """The questions as a table, or on a narrow screen one below the other; who asked, where it was more than one."""
    shown = [place for place in range(len(_COLUMNS)) if place != 2 or len({row[2] for row in rows}) > 1]
    columns = [_COLUMNS[place] for place in shown]
    if screen.width() >= _NARROW or not rows:
        screen.table(title, columns, [[row[place] for place in shown] for row in rows])
        return
    for row in rows:
        cells = [(name, row[place]) for name, place in zip(columns, shown, strict=True)]
        screen.entries(f"Entry {row[0]}", cells[1:])


def _charged(found: Ledger) -> Charged:
    from dpselect.ledger.history import spending
    from dpselect.report.record import Charged

    points = list(spending(found))
    return Charged(
        at=tuple(at for at, _ in points),
        spent=tuple(spent for _, spent in points),
        total=found.total.limit,
        unit=_UNITS[found.total.unit],
    )


def _plot(found: Ledger, drawing: Drawing) -> None:
    from dpselect.report.plots import charged_chart, save_chart

    if drawing.out is None:
        raise InvalidParameter("--out must name the drawing to write, such as spend.svg", parameter="out")
    charged = _charged(found)
    title = f"{found.dataset}: {charged.unit} = {at_most(charged.spent[-1])} charged"
    place = save_chart(charged_chart(charged, across=drawing.across or "time"), drawing.out, title=title)
    screen.notice(f"Drawing: {place}", style="green")


def _verify(found: Ledger, anchors: Sequence[str], *, as_json: bool) -> None:
    from dpselect.ledger import Anchor

    reached = max((Anchor.read(anchor).number for anchor in anchors), default=None)
    results = [found.verify(anchor=anchor) for anchor in anchors] or [found.verify()]
    result, problems = results[0], list(dict.fromkeys(problem for one in results for problem in one.problems))
    facts = {"holds": not problems, "anchored": reached, "entries": result.entries, "problems": problems}
    if as_json:
        screen.emit({**facts, "anchor": str(result.anchor)})
    elif not problems:
        last = "an older copy, or entries cut off at the end, show by an --anchor alone"
        kept = last if reached is None else f"entry {reached:,}, the anchor's, is among them"
        if reached is not None and reached < result.entries:
            kept += "; whether any were cut off at the end shows by a later anchor alone"
        screen.entries(
            f"The entries of {found.dataset} hold",
            [("Entries", f"{result.entries:,}; {kept}"), ("Anchor", str(result.anchor))],
            note="Keep the anchor elsewhere: it shows when an older copy is put in this one's place.",
        )
    if problems:
        more = "" if len(problems) == 1 else f" (and {len(problems) - 1} more)"
        raise LedgerError(f"the ledger does not hold: {problems[0]}{more}")


def _release(found: Ledger, entry: int | None, reason: str | None) -> None:
    if entry is None or not reason:
        raise InvalidParameter(
            "--entry must name the question, and --reason say why, for the record", parameter="entry"
        )
    found.release(entry, reason=reason)
    screen.notice(f"the charge of entry {entry} is released, and the question can be asked again", style="green")


def _page(found: Ledger, path: Path, across: Across) -> Path:
    from dpselect.ledger.history import history
    from dpselect.report.page import write_ledger_page

    return write_ledger_page(
        path,
        dataset=found.dataset,
        # The page has a meter of its own.
        facts=[(name, text.partition("  [")[0]) for name, text in _in_words(found)],
        charged=_charged(found),
        columns=_COLUMNS,
        rows=[_cells(one, longest=400) for one in history(found)],
        across=across,
    )
