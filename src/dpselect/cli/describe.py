"""``dpselect describe``: what a table holds and what looks wrong, for the curator; then the data-set file."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from dpselect.cli import screen
from dpselect.cli.options import AsJson
from dpselect.cli.table import CategoryOptions, Data, Periods, Table, places, standard_input
from dpselect.errors import InvalidParameter, LedgerError
from dpselect.secrets import without_secrets

if TYPE_CHECKING:
    from dpselect.dataset.describe import Description
    from dpselect.ledger import Ledger


@Parameter(name="*", group=Group("What is kept", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where the facts go.

    Parameters
    ----------
    write
        Write the data-set file that later commands take in place of these options.
    accept
        With --write: also write the facts that were guessed from the rows. The file is public, and marks them.
    """

    write: Annotated[Path | None, Parameter(metavar="homes.toml")] = None
    accept: bool = False


def describe(
    data: Data,
    /,
    *,
    kept: Kept = Kept(),
    periods: Periods = Periods(),  # noqa: B008
    categories: CategoryOptions = CategoryOptions(),  # noqa: B008
    table: Table = Table(),  # noqa: B008
    as_json: AsJson = False,
) -> None:
    """Look at a table before anything is spent: what can be read, what looks wrong, and which option fixes it.

    What is shown is exact, for the curator only. Columns and formats that are not named are guessed from the rows:

      $ dpselect describe readings.csv --cap 50 --population 5566 --unit kWh
        --from 2013-01-01 --to 2013-12-31

    Then write the facts down. The file is public, so a guess is written only with --accept, or once it is typed:

      $ dpselect describe readings.csv --cap 50 --population 5566 --unit kWh
        --from 2013-01-01 --to 2013-12-31 --accept --write homes.toml --total 2

      $ dpselect peak homes.toml --epsilon 0.1

    With --total a ledger is made beside the file, and everything asked through the file is charged to it.

    In Python: dp.Dataset("readings.csv", …).describe().
    """
    from dpselect.dataset.describe import describe as look
    from dpselect.dataset.file import accepted_facts, is_file, laid_over, read_file

    facts: dict[str, Any] = {}
    named, earlier = data, tuple[str, ...]()
    if is_file(data):
        facts, earlier = read_file(data), accepted_facts(data)  # type: ignore[arg-type]
        data = facts.pop("source")
    changes = table.given() | {
        name: value
        for name, value in {
            "start": periods.start,
            "end": periods.end,
            "every": periods.every,
            "category": categories.category,
            "categories": categories.listed(),
        }.items()
        if value is not None
    }
    facts = laid_over(facts, changes)
    total, ledger, anchor = (facts.pop(name, None) for name in ("total", "ledger", "anchor"))
    if table.ledger is not None and table.anchor is None:
        anchor = None  # that of the file's own ledger
    if kept.write is None and (table.total is not None or table.ledger is not None):
        raise InvalidParameter(
            "‹total› and ‹ledger› need ‹write›, the data-set file that names them", parameter="write"
        )
    if kept.write is None and kept.accept:
        raise InvalidParameter("‹accept› needs ‹write›, the data-set file that takes the guesses", parameter="write")
    with screen.progress("Looking at the rows") as move:
        found = look(standard_input(table.delimiter) if data == "-" else data, facts, progress=move)
    next_command = None
    if data != "-" and (kept.write is None or (found.guessed and not kept.accept)):
        typed = changes if categories.categories is None else changes | {"categories": categories.categories}
        next_command = _next(named, typed, found, write=kept.write)
    _show(found, next_command, as_json=as_json)
    place, accepted = kept.write, kept.accept
    if place is None:
        place = _asked(data, found, as_json=as_json)
        accepted = place is not None  # whoever names a file has read the guesses above the question
    if place is not None:
        marked = {name for name in earlier if name not in changes and name in facts} | set(found.guessed)
        unaccepted = () if accepted else found.guessed
        # A ledger that a data-set file names is never made again: it may have had charges.
        make = table.total is not None and (ledger is None or table.ledger is not None)
        purse = _Purse(ledger, total, anchor, make)
        _keep(place, data, found, purse, accepted=sorted(marked), unaccepted=unaccepted)


def _listed(names: Sequence[str]) -> str:
    """``‹user›, ‹time› and ‹value›``."""
    *first, last = (f"‹{name}›" for name in names)
    return f"{', '.join(first)} and {last}" if first else last


def _next(data: str | tuple[str, ...], changes: Mapping[str, Any], found: Description, *, write: Path | None) -> str:
    """The command that writes the file, with what was typed, what was guessed, and what is missing in capitals."""
    from dpselect.cli.application import option_words
    from dpselect.cli.demo import program
    from dpselect.report.words import shown

    word = option_words(["describe"])
    guessed = {name: found.facts[name] for name in found.guessed}
    missing = {name: name.upper() for name in found.missing}
    options: list[str] = []
    given: dict[str, Any] = {**changes, **guessed, **missing}
    for name, value in given.items():
        text = shown(value) if isinstance(value, Fraction) else str(value)
        options += [word(name)] if value is True else [word(name), shlex.quote(text)]
    first = Path(places(data)[0])
    place = write or (
        first if str(first).endswith(".toml") else Path(first.name.split(".")[0] or "data").with_suffix(".toml")
    )
    named = [shlex.quote(one) for one in places(data)]
    return without_secrets(" ".join([program(), "describe", *named, *options, "--write", shlex.quote(str(place))]))


def _show(found: Description, next_command: str | None, *, as_json: bool) -> None:
    from dpselect.cli.application import option_words
    from dpselect.errors import DPSelectError

    word = option_words(["describe"])
    told = [(DPSelectError(remark.text).told(word), remark.parameter) for remark in found.remarks]
    if as_json:
        facts = {name: value if isinstance(value, bool | int) else str(value) for name, value in found.facts.items()}
        facts.pop("source")
        screen.emit(
            {
                "sensitive": "for the curator only",
                "columns": found.columns,
                "facts": facts,
                "guessed": list(found.guessed),
                "counts": found.counts,
                "remarks": [{"text": text, "option": name and word(name)} for text, name in told],
                **({} if next_command is None else {"next": next_command}),
            }
        )
        return
    for line in found.lines():
        print(textwrap.fill(line, screen.width(), subsequent_indent="    ", break_long_words=False))
    for text, _ in told:
        screen.notice(f"! {text}")
    if not told:
        screen.notice("Nothing looks wrong.", style="green")
    if next_command is not None:
        print(f"To write these facts to a data-set file, check them and type:\n  {next_command}")


def _asked(data: Any, found: Description, *, as_json: bool) -> Path | None:
    """Asks whether to keep the facts, where somebody is there to answer and nothing is missing."""
    if as_json or data == "-" or found.missing or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    name = Path(str(data)).name.split(".")[0] or "data"
    guesses = ", and accept the guessed ones," if found.guessed else ""
    answer = input(
        f"Write these facts{guesses} to a data-set file? Its name, or nothing to leave it [e.g. {name}.toml]: "
    ).strip()
    return Path(answer) if answer else None


@dataclass(frozen=True)
class _Purse:
    """The ledger that the file will name, what it was or will be made with, and whether it may be made."""

    ledger: Any
    total: Any
    anchor: Any
    make: bool


def _keep(
    place: Path,
    data: Any,
    found: Description,
    purse: _Purse,
    *,
    accepted: Sequence[str],
    unaccepted: Sequence[str],
) -> None:
    """Writes the data-set file, and makes a ledger where that is asked for and there is none."""
    from dpselect import files
    from dpselect.dataset.budget import left_of, open_for_curator
    from dpselect.dataset.file import FILE, write_file
    from dpselect.report.words import shown

    if data == "-":
        raise InvalidParameter(
            "‹write› needs a table that is still there next time; save it to a file first", parameter="write"
        )
    if found.missing:
        lacking = " and ".join(f"‹{name}›" for name in found.missing)
        raise InvalidParameter(
            f"nothing was written: without {lacking} nothing can be asked; give what is missing and describe it again",
            parameter="write",
        )
    if unaccepted:
        raise InvalidParameter(
            f"nothing was written: {_listed(unaccepted)} {'were' if len(unaccepted) > 1 else 'was'} guessed from the "
            "rows, and the file is public: check the guesses above, then add ‹accept›, or type what is right",
            parameter="accept",
        )
    files.check(place, FILE, inputs=places(data))
    facts, left = dict(found.facts), None
    if place.exists():
        _refuse_charged(place)
    ledger = purse.ledger
    if purse.make and ledger is None:
        ledger = str(place.with_suffix(".ledger"))
        if _charged(ledger, None, place.stem, gone=False):
            raise LedgerError(
                f"a ledger with charges is there: {Path(ledger).name!r}; name it with ‹ledger›, without ‹total›"
            )
    if ledger is not None:
        if purse.total is not None:
            _warn_of_another(place, facts["source"], ledger)
        stated = facts | {"anchor": purse.anchor}
        with open_for_curator(ledger, name=place.stem, total=purse.total, facts=stated, make=purse.make) as book:
            left = left_of(book) if _asked_of(book) else None
            facts |= {"ledger": ledger, "anchor": str(book.identity) if purse.anchor is None else purse.anchor}
    facts |= {} if purse.total is None else {"total": purse.total}
    written = write_file(place, facts, accepted=accepted)
    screen.notice(f"Wrote: {written}", style="green")
    if purse.total is not None and ledger is not None:
        spent = "" if left is None else f"; {left} is left"
        screen.notice(
            f"Ledger: {facts['ledger']}, for answers that cost at most ε = {shown(purse.total)} together{spent}",
            style="green",
        )


def _refuse_charged(place: Path) -> None:
    """Facts may be corrected until something was asked under them."""
    from dpselect import files
    from dpselect.dataset.file import FILE, read_file

    facts = read_file(place)
    ledger = facts.get("ledger")
    if ledger is not None and _charged(ledger, facts.get("anchor"), place.stem, gone=True):
        raise files.refused_place(
            FILE.what, place, f"a file is there already, and its ledger {Path(ledger).name!r} has charges"
        )


def _charged(ledger: Any, anchor: str | None, name: str, *, gone: bool) -> bool:
    """Whether anything was asked through a ledger; one that is not there is refused where it may be ``gone``."""
    from dpselect.dataset.budget import open_book
    from dpselect.ledger.database import NoLedger

    try:
        with open_book(ledger, anchor=anchor, old_names=(name,)) as book:
            return _asked_of(book)
    except NoLedger:
        if gone:
            raise
        return False


def _asked_of(book: Ledger) -> bool:
    """Whether anything was asked, and not released."""
    from dpselect.ledger.history import history

    return any(one.state != "released" for one in history(book))


def _warn_of_another(place: Path, source: Any, ledger: str) -> None:
    """Says so where another data-set file in the same folder keeps a budget for the same rows."""
    from dpselect.dataset.file import read_file
    from dpselect.errors import DPSelectError
    from dpselect.ledger.database import same_place

    def whole(rows: Any) -> list[str]:
        return [str(Path(one).resolve()) if "://" not in str(one) else str(one) for one in places(rows)]

    for other in sorted(place.absolute().parent.glob("*.toml")):
        if other.name == place.name:
            continue
        try:
            facts = read_file(other)
        except DPSelectError:
            continue  # somebody else's
        book = facts.get("ledger")
        if book is not None and not same_place(book, ledger) and whole(facts["source"]) == whole(source):
            screen.notice(
                f"! {other.name} already keeps a budget for these rows: with a second one the same people may be asked "
                f"twice as much. To use the first, leave --total out and give --ledger {Path(book).name}"
            )
