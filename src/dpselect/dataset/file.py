"""The data-set file, such as ``homes.toml``: where the rows are and what is public about them, each fact explained.

Later questions take it in place of ten options. Nothing in it is secret: a password belongs in the environment.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpselect import files
from dpselect.dataset.facts import whole_weeks_apart
from dpselect.errors import InvalidParameter, SourceError
from dpselect.report import words
from dpselect.rounding import exact_number
from dpselect.secrets import shown, without_secrets
from dpselect.tables.candidates import length_of

#: How the name of every data-set file ends, and how one begins that this package wrote.
ENDING, _FIRST_LINE = ".toml", "# A data set of dpselect: "
FILE = files.Kind("data-set file", (ENDING,), (_FIRST_LINE.encode(),))

#: Every fact a file may hold, in the order in which they are written, and what is said about it.
FACTS: dict[str, str] = {
    "rows": "Where the rows are: a file, a pattern or a folder, beside this file unless the path is absolute; or a\n"
    'database URL. An address with a password is kept in the environment: rows = "$HOMES_URL".',
    "table": "The table of the database.",
    "backend": "The engine that reads files: duckdb, polars or spark.",
    "delimiter": "What stands between the fields of a CSV file.",
    "decimal": "What stands before the decimals of a reading.",
    "user": "The column that says whose row it is. The promise is made to each such person.",
    "time": "The column with the time.",
    "hour": "The column with the hour, where the date stands in a column of its own.",
    "value": "The column with the reading.",
    "category": "The column with the category.",
    "wide": "One row per person, one column per period or category.",
    "time_format": "How times are written; ISO 8601 (2013-01-31 14:00) without this.",
    "timezone": "The zone whose clock the periods follow.",
    "duplicates": "Rows of one person at one time: keep them all, or the largest.",
    "measure": "What is compared over all persons: their mean, sum or count.",
    "per_user": "How one person's readings in a period become one number: sum, mean or max.",
    "cap": "The most one person counts for in a period; larger readings are cut to it. Choose it from what is known\n"
    "publicly (a fuse, a price list), never from the rows. A smaller cap means less noise.",
    "cap_every": "The period the cap (or the maximum) is meant for: hour, day, week or month. Asked about longer\n"
    "periods, a person counts for as many times the cap as one of them can hold: a daily cap 31 times in a month.",
    "population": "A public upper bound on the number of persons. Were there more, the totals would be cut.",
    "adjacency": "What the promise is about: a person added or removed, or one person's rows replaced.",
    "grid": "Steps in the cap.",
    "maximum": "The public maximum of a series that was already added up over persons.",
    "sensitivity": "You vouch: no person moves a value of the series by more than this.",
    "monotone": "You vouch: adding a person never lowers a value of the series.",
    "unit": "What the readings are measured in.",
    "start": "The first period that is asked about. The dates are public: never the first and last day of the rows.",
    "end": "The last period, included.",
    "every": "How long a period is.",
    "categories": "The public list of categories.",
    "ledger": "The ledger that remembers what was spent, beside this file; charged before the rows are read.",
    "anchor": "An entry of the ledger: it names this data set there, so that a copy of this file spends the same\n"
    "budget, and a ledger without it is refused. A later one, as dpselect ledger verify prints, refuses older copies.",
    "total": "The most all answers together may ever cost (ε), as chosen when the ledger was made.",
    "accepted": "The facts above that dpselect describe read off the rows and the curator accepted (--accept). All\n"
    "others were typed.",
}
#: What a file says about its own facts: for whoever reads or rewrites the file, not for a data set.
_ABOUT_FACTS = "accepted"
_LISTS = ("categories", _ABOUT_FACTS)
_FLAGS, _COUNTS = ("wide", "monotone"), ("population", "grid")
_NUMBERS = ("cap", "maximum", "sensitivity", "total")
#: What a curator vouches for of a series already added up, and what it is vouched for about: all of it goes together.
_VOUCHERS = ("maximum", "sensitivity", "population")
#: Read otherwise, a value may be another number or none, and rows of many days may lie in one.
_READ_BY = ("time_format", "decimal", "delimiter")
_ABOUT = ("monotone", "value", "time", "hour", "category", "source", "table", "timezone", "cap_every", "start")
_VOUCHED = (*_VOUCHERS, *_ABOUT, *_READ_BY)


def is_file(place: object) -> bool:
    """Whether a place is named like a data-set file."""
    return isinstance(place, str | Path) and str(place).lower().endswith(ENDING) and "://" not in str(place)


def read_file(path: Path | str) -> dict[str, Any]:
    """The facts in a data-set file, as a :class:`~dpselect.Dataset` takes them; places made whole."""
    place, found = Path(path), _checked(path)
    if "rows" not in found:
        raise SourceError(f'the data-set file {shown(path)} must say where the rows are: rows = "readings.csv"')
    facts = {name: value for name, value in found.items() if name not in ("rows", _ABOUT_FACTS)}
    facts |= {name: _number(place, name, facts[name]) for name in _NUMBERS if name in facts}
    facts["source"] = _places(place, "rows", found["rows"])
    if "ledger" in facts:
        facts["ledger"] = _places(place, "ledger", facts["ledger"])
    return facts


def accepted_facts(path: Path | str) -> tuple[str, ...]:
    """The facts in a data-set file that were read off the rows and accepted; all others were typed."""
    return tuple(_checked(path).get(_ABOUT_FACTS, ()))


def _checked(path: Path | str) -> dict[str, Any]:
    """What stands in a data-set file, each value of the right type."""
    place = files.plain_file(path)
    try:
        # Numbers stay as they were written: 0.1 is one tenth.
        found = tomllib.loads(place.read_bytes().decode("utf-8"), parse_float=str)
    except FileNotFoundError:
        raise SourceError(f"no data-set file at {shown(path)}; dpselect describe writes one") from None
    except (OSError, UnicodeDecodeError):
        raise SourceError(f"cannot read the data-set file {shown(path)}; check that it is a text file here") from None
    except tomllib.TOMLDecodeError as failure:
        where = str(failure).partition("(at ")[2].rstrip(")") or "somewhere"
        raise SourceError(f"the data-set file {shown(path)} is not TOML (at {where}); texts stand in quotes") from None
    # A date needs no quotes in TOML.
    found = {name: value.isoformat() if isinstance(value, date) else value for name, value in found.items()}
    for name, value in found.items():
        _check(place, name, value)
    return found


def _check(path: Path, name: str, value: object) -> None:
    where = f"in the data-set file {shown(path)}"
    if name not in FACTS:
        near = difflib.get_close_matches(name, FACTS, n=1)
        raise SourceError(f"{where} nothing is called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    texts = isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
    number = isinstance(value, int | str) and not isinstance(value, bool)
    if name in _LISTS:
        fits, rule = texts, "a list of texts"
    elif name in _FLAGS:
        fits, rule = isinstance(value, bool), "true or false"
    elif name in _COUNTS:
        fits, rule = number and isinstance(value, int), "a whole number"
    elif name in _NUMBERS:
        fits, rule = number, "a number"
    else:
        fits, rule = isinstance(value, str) or (name == "rows" and texts), "a text in quotes"
    if not fits:
        raise SourceError(f"{where} {name!r} must be {rule}")


def _number(path: Path, name: str, value: int | str) -> Fraction:
    try:
        return exact_number(name, value)
    except InvalidParameter:
        raise SourceError(f"in the data-set file {shown(path)} {name!r} must be a number") from None


def laid_over(facts: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file with changes that count more than they do.

    Another kind of candidates leaves the file's own behind. A cap stays that of the period it was given with. What the
    file vouches for of a series is kept whole or stated anew.

    >>> laid_over({"cap": 50, "every": "day"}, {"every": "month"})["cap_every"]
    'day'
    >>> laid_over({"cap": 50, "every": "day"}, {"cap": 900, "every": "month"})["cap_every"]
    'month'
    """
    kept = dict(facts)
    if {"category", "categories"} & set(changes):
        kept = {name: value for name, value in kept.items() if name not in ("time", "start", "end", "every")}
    if {"cap", "maximum"} & set(changes) and "every" in changes:
        kept["cap_every"] = length_of(changes["every"])
    kept |= changes
    if {"cap", "maximum"} & set(kept):
        kept.setdefault("cap_every", _length(facts))
    if facts.get("maximum") is None or kept["maximum"] is None:
        return kept
    # As the period was settled above, whether it was named or came with a new maximum.
    altered = _altered(facts, {**changes, "cap_every": kept["cap_every"]})
    if altered is not None:
        _refuse_old_vouchers(facts, changes, altered)
        # A sensitivity stands in for a population, and the other way round.
        for name in {"sensitivity", "population", "monotone"} - set(changes):
            kept.pop(name, None)
    return kept


def _length(facts: Mapping[str, Any]) -> str:
    """The period that the cap or the maximum was given for."""
    return facts.get("cap_every") or length_of(facts.get("every", "day"))


def _altered(facts: Mapping[str, Any], changes: Mapping[str, Any]) -> str | None:
    """The first fact beside which the file's vouchers were stated and that is another one now."""

    def same(name: str, old: Any, new: Any) -> bool:
        if name == "cap_every":
            return bool(new == _length(facts))
        if name == "source":  # a frame is another one in any case
            return isinstance(new, str | Path) and str(new) == str(old)
        if name == "start":
            # Days and months are where they are; weeks are counted from the first date.
            free = _length(facts) != "week" or old is None
            return free or (new is not None and whole_weeks_apart(old, new))
        if name in _NUMBERS and None not in (old, new):
            return exact_number(name, old) == exact_number(name, new)
        usual = "." if name == "decimal" else None
        return bool((old or usual) == (new or usual))

    return next(
        (name for name in _VOUCHED if name in changes and not same(name, facts.get(name), changes[name])),
        None,
    )


def _refuse_old_vouchers(facts: Mapping[str, Any], changes: Mapping[str, Any], altered: str) -> None:
    """Of a series the curator vouches for what one person changes: of a day says nothing of a category, of another
    column, or of what is now called a month."""
    stated = {name for name in _VOUCHERS if changes.get(name) is not None}
    if stated & {"sensitivity", "population"}:
        stated |= {"sensitivity", "population"}
    old = [name for name in _VOUCHERS if facts.get(name) is not None and name not in stated]
    if old:
        raise InvalidParameter(
            f"{' and '.join(f'‹{name}›' for name in old)} of the data-set file {'were' if len(old) > 1 else 'was'} "
            f"stated for another ‹{altered}›: what you vouch for goes together, so state "
            f"{'them' if len(old) > 1 else 'it'} anew",
            parameter=old[0],
        )


def _places(path: Path, name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_places(path, name, one) for one in value)
    if value.startswith("$"):
        found = os.environ.get(value[1:])
        if not found:
            raise SourceError(
                f"the data-set file {shown(path)} takes its {name} from {value}, which is not set: export it"
            )
        return found
    if "://" in value:
        _refuse_secrets(name, value)
        return value
    return str(path.parent / value)


def _refuse_secrets(name: str, address: str) -> None:
    bare = address.partition("?")[0]
    if without_secrets(bare) != bare:
        raise InvalidParameter(
            f"a data-set file holds no password, and the address of its {name} has one; put the address in the "
            f'environment and write {name} = "$HOMES_URL"',
            parameter=name,
        )


def write_file(path: Path | str, facts: Mapping[str, Any], *, accepted: Sequence[str] = ()) -> Path:
    """Writes a data-set file, every fact under a comment that explains it; a file of another kind is left alone.

    ``accepted`` names the facts that were read off the rows and that the curator accepted. The file is public, so what
    was read off the rows and not accepted must not be among the ``facts``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_file(Path(folder, "homes.toml"), {"source": "r.csv", "user": "meter", "cap": Fraction(25, 2)})
    ...     print(made.read_text().split("cap")[-1], read_file(made)["user"])
     = 12.5
     meter
    """
    place = Path(path)
    return files.write(place, file_text(place, facts, accepted=accepted), FILE)


def file_text(path: Path, facts: Mapping[str, Any], *, accepted: Sequence[str] = ()) -> str:
    """What a data-set file says."""
    if accepted:
        facts = {**facts, _ABOUT_FACTS: [name for name in FACTS if name in accepted]}
    given = {("rows" if name == "source" else name): value for name, value in facts.items() if value is not None}
    lines = [f"{_FIRST_LINE}everything here is public. Change what is not so, and ask:", *_examples(path.name, given)]
    for name, told in FACTS.items():
        if name not in given or given[name] is False:
            continue
        value = _beside(path, name, given[name])
        lines += ["", *(f"# {line}" for line in told.splitlines()), f"{name} = {_toml(value)}"]
    return "\n".join(lines) + "\n"


def _examples(name: str, given: Mapping[str, Any]) -> list[str]:
    dates = "" if {"start", "categories"} & set(given) else " --from 2013-01-01 --to 2013-12-31"
    return [f"#   dpselect peak {name}{dates} --epsilon 0.1"]


def _beside(path: Path, name: str, value: Any) -> Any:
    """A place as it is written in a file: relative to it where it lies in the same folder or below."""
    if name not in ("rows", "ledger"):
        return value
    if isinstance(value, list | tuple):
        return [_beside(path, name, one) for one in value]
    text = str(value)
    if "://" in text:
        _refuse_secrets(name, text)
        return text
    if text.startswith("$"):
        return text
    folder = path.absolute().parent
    whole = Path(os.path.normpath(Path.cwd() / text))
    return str(whole.relative_to(folder)) if whole.is_relative_to(folder) else str(whole)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        text = words.shown(value)
        return text if "/" not in text else json.dumps(text)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
