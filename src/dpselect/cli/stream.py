"""Questions on standard input, one JSON value a line; an answer for each, as soon as it is known."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from cyclopts import Group, Parameter

from dpselect.cli import screen, spent
from dpselect.cli.failures import BAD_INPUT, BUDGET_EXHAUSTED, DONE
from dpselect.cli.numbers import Count, Number
from dpselect.cli.options import Again, Family, RunOptions
from dpselect.cli.table import Periods, Table
from dpselect.errors import InvalidData, InvalidParameter, refuse_given

if TYPE_CHECKING:
    from dpselect.dataset import WatchPlan, WatchRequest
    from dpselect.dataset.watch_run import WatchRun
    from dpselect.ledger import Ledger

#: How many questions a stream is planned for by default.
_LENGTH = 365
#: The data set of a ledger that an earlier version made for questions on standard input.
_OLD_NAMES = ("standard input",)
#: A line longer than this is no question.
_LONGEST_LINE, _LONGEST_ID = 4096, 200
_NUMBER = re.compile(r"(?P<digits>[+-]?(\d+/\d+|\d+\.?\d*|\.\d+))([eE](?P<exponent>[+-]?\d+))?")
_INFINITE = re.compile(r"[+-]?(inf(inity)?|∞)", re.IGNORECASE)
#: Powers of ten up to here are worked out exactly.
_LARGEST_EXPONENT = 20_000
_RULE = 'a line must be a number, or {"value": number} with an optional "id"; it was refused and nothing was spent'


@Parameter(name="*", group=Group("Questions on standard input", sort_key=6))
@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """What is public about questions on standard input, beside --sensitivity and --monotone.

    Parameters
    ----------
    lower
        Least value; 0 if left out.
    upper
        Largest value; 1 if left out.
    questions
        How many questions the noise is planned for; 365 if left out.
    onward
        With --ledger: the input goes on after the answers the ledger has, instead of starting again.
    """

    lower: Number | None = None
    upper: Number | None = None
    questions: Count | None = None
    onward: bool = False

    def plan(self, request: WatchRequest, table: Table) -> WatchPlan:
        """The plan for questions on standard input: as typed, or as planned before."""
        from dpselect.dataset.watch import plan_watch

        length = _LENGTH if self.questions is None else self.questions
        said = Family(sensitivity=table.sensitivity, lower=self.lower, upper=self.upper, monotone=table.monotone)
        if request.plan is None:
            with screen.progress("Trying the mechanisms on simulated data") as move:
                return plan_watch(said.family(), request, questions=length, progress=move)
        given = {"sensitivity": said.sensitivity, "lower": said.lower, "upper": said.upper}
        refuse_given("--plan, which says it", **given, monotone=said.monotone or None)
        return plan_watch(request.plan.family, request, questions=length)

    @staticmethod
    def refuse(table: Table, periods: Periods, run: RunOptions) -> None:
        """Options about a table mean nothing where none was named."""
        own = ("sensitivity", "monotone", "ledger", "total", "anchor")
        given = {name: value for name, value in table.given().items() if name not in own}
        sensitive = run.show_sensitive or None
        here = "questions on standard input (no table was named)"
        refuse_given(here, **given, start=periods.start, end=periods.end, every=periods.every, show_sensitive=sensitive)


@contextmanager
def _book(table: Table, run: RunOptions) -> Iterator[Ledger | None]:
    """The ledger for questions on standard input, where one is named."""
    from dpselect.dataset.budget import open_book
    from dpselect.ledger import PrivacyUnit

    if table.ledger is None:
        refuse_given("questions without a ledger", total=table.total, anchor=table.anchor)
        yield None
        return
    if run.seed is not None:
        raise InvalidParameter("‹ledger› does not go with seeded noise: such answers are not private; leave it out")
    unit = PrivacyUnit(user=None, adjacency="declared")
    with open_book(table.ledger, total=table.total, anchor=table.anchor, unit=unit, old_names=_OLD_NAMES) as found:
        yield found


def answer_stream(plan: WatchPlan, table: Table, options: StreamOptions, again: Again, run: RunOptions) -> int:
    """Answers the lines on standard input until they or the budget end, and then says how it ended."""
    if sys.stderr.isatty() and not run.as_json:  # a machine finds it in the last record
        screen.notice(f"{plan.reason} Expected: {plan.expectation}.", style="dim")
    spent.begin(plan.promise, ledger=table.ledger is not None, book=lambda: None)  # opening charges nothing
    with _book(table, run) as book:
        spent.begin(plan.promise, ledger=book is not None, book=lambda: book)
        watch = plan.start(run.entropy, book=book, key=again.key, afresh=again.afresh, onward=options.onward)
        watch.keep = run.report is not None
        run.warn_of_a_seed()
        if watch.kept is not None and (repeated := watch.kept.repeated):
            before = f"{repeated:,} answer{'s are' if repeated > 1 else ' is'} in the ledger already"
            goes_on = f"{before}: the input goes on with question {repeated + 1:,}"
            starts = f"{before} and repeated for the first lines, at no cost (--onward if the input goes on instead)"
            screen.notice(goes_on if options.onward else starts, style="dim")
        # Also where the reader or the person has left: answers that are out are known, and so is their cost.
        with watch.abandoned_with_care():
            refused = answer_lines(_standard_input(), watch, write=screen.emit)
        watch.settle(ended=watch.ended)
        if not run.as_json:
            spent.say_left(book, plan.promise, at_most=True)
    answer = plan.answer(watch)
    screen.emit(answer.to_dict())
    run.keep(answer, verb="watch")
    if answer.ended:
        screen.notice(answer.exhaustion, style="red")
        return BUDGET_EXHAUSTED
    if refused:
        lines = "1 line was" if refused == 1 else f"{refused:,} lines were"
        screen.notice(f"error: {lines} refused; nothing was spent on what was refused", style="red")
        return BAD_INPUT
    return DONE


def answer_lines(lines: Iterable[str], watch: WatchRun, *, write: Callable[[Mapping[str, Any]], None]) -> int:
    """Answers until the input or the budget ends, and says how many lines were refused.

    Empty lines are skipped. Once nothing more fits no further line is waited for.
    """
    refused, vector = 0, watch.vector
    watch.ended = not watch.can_ask
    if watch.ended:
        return refused
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            question = read_line(text.strip())
            repeated = watch.repeating
            above = watch.ask(question.value, name=question.identity)
        except InvalidData as failure:
            refused += 1
            write({"line": number, "error": str(failure)})
            continue
        named = {} if question.identity is None else {"id": question.identity}
        write(
            {
                "line": number,
                **named,
                "answer": "above" if above else "below",
                "spent": watch.cost,
                "remaining": vector.remaining,
                "noise": vector.noise,
                **({"repeated": True} if repeated else {}),
            }
        )
        watch.ended = not watch.can_ask
        if watch.ended:
            break
    return refused


def _standard_input() -> Iterable[str]:
    """Lines as they come, whatever bytes they hold; a line without end is cut where no question is so long."""
    if sys.stdin.isatty():
        screen.notice("Reading questions from the keyboard, one number a line; end with Ctrl-D.", style="dim")
    source = getattr(sys.stdin, "buffer", None)
    if source is None:
        yield from sys.stdin
        return
    while chunk := source.readline(1 << 16):
        text = chunk.decode("utf-8", errors="replace")
        yield text
        while chunk and not chunk.endswith(b"\n"):
            chunk = source.readline(1 << 16)


class StreamQuestion(NamedTuple):
    """One question: its private value, and the caller's own name for it, which is given back."""

    value: float | Fraction
    identity: str | int | None = None


def read_line(text: str) -> StreamQuestion:
    """Reads one line; what is wrong with it is never quoted, since values are private.

    >>> line = read_line('{"value": 0.25, "id": "monday"}')
    >>> line.value, line.identity
    (0.25, 'monday')
    >>> read_line("1/3").value
    Fraction(1, 3)
    >>> read_line('{"valu": 1}')
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidData: a line must be a number, or {"value": number} with an optional "id"; ...
    """
    if len(text) > _LONGEST_LINE:
        raise InvalidData(_RULE)
    if not text.lstrip().startswith("{"):
        return StreamQuestion(_number(text))
    try:
        # Numbers are kept as they were written: neighbours must not be pushed apart by rounding.
        found = json.loads(
            text, parse_float=_Written, parse_int=_Written, parse_constant=_Written, object_pairs_hook=list
        )
    except (ValueError, RecursionError):
        raise InvalidData(_RULE) from None
    if not isinstance(found, list) or not all(isinstance(pair, tuple) for pair in found):
        raise InvalidData(_RULE)
    record = dict(found)
    if len(record) != len(found) or not {"value"} <= set(record) <= {"value", "id"}:
        raise InvalidData(_RULE)
    if not isinstance(record["value"], _Written):
        raise InvalidData(_RULE)
    return StreamQuestion(_number(record["value"]), _identity(record.get("id")))


class _Written(str):
    """A JSON number as it was written."""


def _number(text: str) -> float | Fraction:
    """The number as written, exactly, whatever its length: refusing some would tell, without noise, how large they are.

    >>> _number("1e-5") == Fraction(1, 100000), _number("-1e999999") == _number("-inf") == -sys.float_info.max
    (True, True)
    """
    written = text.strip().replace("_", "")
    found = _NUMBER.fullmatch(written)
    if found is None:
        if _INFINITE.fullmatch(written):
            return -sys.float_info.max if written.startswith("-") else sys.float_info.max
        raise InvalidData(_RULE)
    exponent = int(found["exponent"] or 0)
    if abs(exponent) > _LARGEST_EXPONENT:
        # Beyond every range, and cut to it; or, with no more digits than a line has, below 10^-15000, which is zero to
        # any noise there is.
        digits = found["digits"].strip("+-0.")
        if exponent < 0 or not digits:
            return 0.0
        return -sys.float_info.max if written.startswith("-") else sys.float_info.max
    try:
        number = Fraction(written)
    except (ValueError, ZeroDivisionError):  # a fraction with an exponent; one over nothing
        raise InvalidData(_RULE) from None
    try:
        nearest = float(number)
    except OverflowError:
        return -sys.float_info.max if number < 0 else sys.float_info.max
    # A double where that is exact: the quick way through the sampler.
    return nearest if Fraction(nearest) == number else number


def _identity(found: object) -> str | int | None:
    if isinstance(found, _Written):
        return int(found) if found.lstrip("-").isdigit() and len(found) < 20 else str(found)
    if found is None or (isinstance(found, str) and len(found) <= _LONGEST_ID):
        return found
    raise InvalidData(_RULE)
