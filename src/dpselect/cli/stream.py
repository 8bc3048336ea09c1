"""Questions on standard input, one JSON value a line; an answer for each, as soon as it is known."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from dpselect.cli.numbers import read_number
from dpselect.errors import InvalidData

if TYPE_CHECKING:
    from dpselect.dataset.watch import Watch

#: A line longer than this is no question.
_LONGEST_LINE, _LONGEST_ID = 4096, 200
_PERHAPS_BEYOND = re.compile(r"[+-]?(inf(inity)?|(\d{1,60}(\.\d{0,60})?|\.\d{1,60})e\+?\d{1,20})", re.IGNORECASE)
_RULE = 'a line must be a number, or {"value": number} with an optional "id"; it was refused and nothing was spent'


class Question(NamedTuple):
    """One question: its private value, and the caller's own name for it, which is given back."""

    value: float | Fraction
    identity: str | int | None = None


def read_line(text: str) -> Question:
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
        return Question(_number(text))
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
    return Question(_number(record["value"]), _identity(record.get("id")))


class _Written(str):
    """A JSON number as it was written."""


def _number(text: str) -> float | Fraction:
    if (beyond := _beyond(text)) is not None:
        return beyond
    try:
        number = read_number(text)
    except ValueError:
        raise InvalidData(_RULE) from None
    # A double where that is exact: the quick way through the sampler.
    nearest = float(number)
    return nearest if Fraction(nearest) == number else number


def _beyond(text: str) -> float | None:
    """The outermost double for an infinity, or a number too large for doubles: outside every range, so it is cut.

    Refusing it would tell, without noise, which side of the range a private value was on.

    >>> _beyond("-inf") == -_beyond("1e999") == -sys.float_info.max, _beyond("nan"), _beyond("0.5")
    (True, None, None)
    """
    written = text.strip()
    if not _PERHAPS_BEYOND.fullmatch(written):
        return None
    number = float(written)
    return math.copysign(sys.float_info.max, number) if math.isinf(number) else None


def _identity(found: object) -> str | int | None:
    if isinstance(found, _Written):
        return int(found) if found.lstrip("-").isdigit() and len(found) < 20 else str(found)
    if found is None or (isinstance(found, str) and len(found) <= _LONGEST_ID):
        return found
    raise InvalidData(_RULE)


def answer_lines(lines: Iterable[str], watch: Watch, *, write: Callable[[Mapping[str, Any]], None]) -> int:
    """Answers until the input or the budget ends, and says how many lines were refused.

    Empty lines are skipped. Once nothing more fits no further line is waited for.
    """
    refused, vector = 0, watch.vector
    watch.ended = not vector.fits
    if watch.ended:
        return refused
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            question = read_line(text.strip())
            above = watch.ask(question.value)
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
                "spent": vector.spent,
                "remaining": vector.remaining,
                "noise": vector.noise,
            }
        )
        watch.ended = not vector.fits
        if watch.ended:
            break
    return refused
