"""``dpselect ledger``: what a data set may cost, what was asked, and whether the record holds."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import App, Parameter

from dpselect import files
from dpselect.cli import screen
from dpselect.cli.numbers import Number
from dpselect.cli.options import AsJson, ReportFile
from dpselect.cli.verbs import VERBS
from dpselect.errors import InvalidParameter, LedgerError, SourceError, refuse_given
from dpselect.report.words import plural
from dpselect.rounding import at_least, at_most

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, Total
    from dpselect.ledger.history import HistoryRow
    from dpselect.report.record import Charged

#: How wide the bar of what is charged is, and below which width a table is no longer read.
_BAR, _NARROW = 40, 64
_UNITS = {"epsilon": "ε", "rho": "ρ"}


#: The command, with one of its own for each thing to do.
ledger = App(
    name="ledger",
    help=VERBS["ledger"].line,
    help_epilogue="""For example:

  $ dpselect ledger create homes.ledger --dataset homes --total 2
  $ dpselect ledger show homes.toml --report ledger.html
  $ dpselect ledger history homes.ledger --csv
  $ dpselect ledger plot homes.ledger --out spend.svg
  $ dpselect ledger verify homes.ledger --anchor 17:9c1f…

Each takes --json, for machines; dpselect ledger show --help explains one.
In Python: dpselect.ledger.Ledger.create, .open, .balance, .verify, .retire.""",
)

Place: TypeAlias = Annotated[
    str, Parameter(metavar="LEDGER", help="Its file, postgresql://user@host/name, or a data-set file.")
]
Who: TypeAlias = Annotated[str | None, Parameter(help="Whom the record names; your user name if left out.")]
Across: TypeAlias = Annotated[
    Literal["time", "entry"] | None, Parameter(help="What lies across: the time (if left out) or the entries.")
]
AsCsv: TypeAlias = Annotated[bool, Parameter(name="--csv", help="As CSV.")]
Drawing: TypeAlias = Annotated[
    Path, Parameter(metavar="FILE.svg", help="The drawing to write: SVG, PNG or PDF by its ending.")
]
EntryNumber: TypeAlias = Annotated[int, Parameter(help="The entry of the question, as history shows it.")]
Reason: TypeAlias = Annotated[str, Parameter(help="Why, for the record.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Opening:
    """How a ledger is opened."""

    dataset: Annotated[str | None, Parameter(help="Which data set, where there are several.")] = None
    anchor: Annotated[str | None, Parameter(help="An anchor kept elsewhere: an older copy is refused.")] = None
    who: Who = None
    as_json: AsJson = False

    def opened(self, place: str) -> Ledger:
        """The ledger, which must have the entry of each anchor."""
        from dpselect.ledger import Ledger

        where, dataset, anchors = _named(place, self.dataset, self.anchor)
        return Ledger.open(where, dataset=dataset, who=self.who, anchor=anchors)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the ledger."""

    report: ReportFile = None
    across: Across = None

    def check(self) -> None:
        """Refuse a page that cannot be written, before anything is looked at."""
        if self.report is None:
            refuse_given("this command without --report", across=self.across)
        else:
            files.check(self.report, files.PAGE)

    def write(self, found: Ledger) -> None:
        """Write the page, where one is wanted."""
        from dpselect.ledger.history import history
        from dpselect.report.page import write_ledger_page

        if self.report is None:
            return
        place = write_ledger_page(
            self.report,
            dataset=found.dataset,
            # The page has a meter of its own.
            facts=[(name, text.partition("  [")[0]) for name, text in _in_words(found)],
            charged=_charged(found),
            columns=_COLUMNS,
            rows=[_cells(one, longest=400) for one in history(found)],
            across=self.across or "time",
        )
        screen.notice(f"Report: {place}", style="green")


@ledger.command
def create(
    place: Place,
    /,
    *,
    dataset: Annotated[str, Parameter(help="The name of the data set whose budget this is.")],
    total: Annotated[Number | None, Parameter(metavar="ε", help="The most all answers may cost (ε).")] = None,
    rho: Annotated[Number | None, Parameter(metavar="ρ", help="The same as zCDP, with --delta.")] = None,
    delta: Annotated[Number | None, Parameter(metavar="δ", help="δ of the total.")] = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make a ledger and choose its total, once."""
    from dpselect.ledger import Ledger

    chosen = _total(total, rho, delta)
    where, _, _ = _named(place, dataset, None)
    with Ledger.create(where, dataset=dataset, total=chosen, who=who) as made:
        anchor = str(made.balance().anchor)
    if as_json:
        screen.emit({"dataset": dataset, "total": str(chosen), "anchor": anchor})
    else:
        screen.entries(f"Ledger of {dataset}", [("Total", str(chosen)), ("Anchor", anchor)])


@ledger.command
def show(place: Place, /, *, page: Page = Page(), opening: Opening = Opening()) -> None:
    """Show what is left."""
    page.check()
    with opening.opened(place) as found:
        if opening.as_json:
            screen.emit(_facts(found))
        else:
            screen.entries(f"Ledger of {found.dataset}", _in_words(found))
        page.write(found)


@ledger.command
def history(place: Place, /, *, as_csv: AsCsv = False, page: Page = Page(), opening: Opening = Opening()) -> None:
    """List what was asked, by whom, and what it cost."""
    from dpselect.ledger import history as room

    page.check()
    with opening.opened(place) as found:
        rows = room.history(found)
        if as_csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(["entry", "when", "who", "question", "state", "answer", "cost", "delta"])
            for one in rows:
                question, answer = (json.dumps(text, ensure_ascii=False) for text in (one.question, one.answer))
                writer.writerow([one.number, one.at, one.who, question, one.state, answer, one.cost, one.delta])
        elif opening.as_json:
            for one in rows:
                screen.emit(one.as_dict())
        else:
            _list(f"Questions to {found.dataset}", [_cells(one) for one in rows])
        page.write(found)


@ledger.command
def plot(place: Place, /, *, out: Drawing, across: Across = None, opening: Opening = Opening()) -> None:
    """Draw what was spent over time."""
    from dpselect.report.plots import charged_chart, save_chart

    files.check(out, files.DRAWING)
    with opening.opened(place) as found:
        charged = _charged(found)
        title = f"{found.dataset}: {charged.unit} = {at_most(charged.spent[-1])} charged"
        drawn = save_chart(charged_chart(charged, across=across or "time"), out, title=title)
    screen.notice(f"Drawing: {drawn}", style="green")


@ledger.command
def verify(place: Place, /, *, opening: Opening = Opening()) -> None:
    """Check that no entry was altered, and print the anchor to keep elsewhere.

    With --anchor also that the ledger has the anchor's entry: an older copy does not.
    """
    from dpselect.ledger import Ledger

    where, dataset, anchors = _named(place, opening.dataset, opening.anchor)
    with Ledger.open(where, dataset=dataset, who=opening.who) as found:
        _verify(found, anchors, as_json=opening.as_json)


@ledger.command
def export(place: Place, /, *, opening: Opening = Opening()) -> None:
    """Print every entry as JSON."""
    with opening.opened(place) as found:
        for one in found.entries():
            screen.emit(one.row())


@ledger.command
def release(place: Place, /, *, entry: EntryNumber, reason: Reason, opening: Opening = Opening()) -> None:
    """Give back the charge of a question that failed before any row was added up."""
    with opening.opened(place) as found:
        found.release(entry, reason=reason)
    screen.notice(f"the charge of entry {entry} is released, and the question can be asked again", style="green")


@ledger.command
def retire(place: Place, /, *, reason: Reason = "", opening: Opening = Opening()) -> None:
    """Refuse all questions from now on."""
    with opening.opened(place) as found:
        found.retire(reason)
    screen.notice(f"{found.dataset} is retired: nothing more is answered", style="green")


def _total(total: Any, rho: Any, delta: Any) -> Total:
    """The total that is meant."""
    from dpselect.ledger import Total

    if (total is None) == (rho is None):
        raise InvalidParameter(
            "give one of --total (ε) and --rho (zCDP, with --delta): it is chosen once", parameter=None
        )
    if rho is None:
        return Total.pure(total) if delta is None else Total.approximate(total, delta=delta)
    if delta is None:
        raise InvalidParameter("--rho needs --delta, at which it is shown as an ε", parameter="delta")
    return Total.zcdp(rho, delta=delta)


def _named(place: str, dataset: str | None, anchor: str | None) -> tuple[str, str | None, tuple[str, ...]]:
    """The ledger that a data-set file names, its data set there and the anchors it must have; others as they are."""
    from dpselect.dataset.file import is_file, read_file
    from dpselect.ledger import Ledger

    typed = () if anchor is None else (anchor,)
    if not is_file(place):
        return place, dataset, typed
    facts = read_file(place)
    found = facts.get("ledger")
    if found is None:
        raise SourceError(f"the data-set file {Path(place).name!r} names no ledger; describe it with --total")
    if dataset is None and facts.get("anchor") is not None:
        return str(found), None, (facts["anchor"], *typed)
    name = Path(place).stem
    return str(found), dataset or (name if name in Ledger.datasets(found) else None), typed


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


def _verify(found: Ledger, anchors: Sequence[str], *, as_json: bool) -> None:
    from dpselect.ledger import Anchor

    reached = max((Anchor.read(anchor).number for anchor in anchors), default=None)
    with screen.progress("Checking the entries"):
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
