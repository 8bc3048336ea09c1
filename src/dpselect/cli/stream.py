"""Questions on standard input, one JSON value a line; an answer for each, as soon as it is known."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from dpselect.errors import InvalidData

if TYPE_CHECKING:
    from dpselect.dataset.watch import Watch

#: A line longer than this is no question.
_LONGEST_LINE, _LONGEST_ID = 4096, 200
_NUMBER = re.compile(r"(?P<digits>[+-]?(\d+/\d+|\d+\.?\d*|\.\d+))([eE](?P<exponent>[+-]?\d+))?")
_INFINITE = re.compile(r"[+-]?(inf(inity)?|∞)", re.IGNORECASE)
#: Powers of ten up to here are worked out exactly.
_LARGEST_EXPONENT = 20_000
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


def answer_lines(lines: Iterable[str], watch: Watch, *, write: Callable[[Mapping[str, Any]], None]) -> int:
    """Answers until the input or the budget ends, and says how many lines were refused.

    Empty lines are skipped. Once nothing more fits no further line is waited for.
    """
    refused, vector = 0, watch.vector
    watch.ended = not watch.fits
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
        watch.ended = not watch.fits
        if watch.ended:
            break
    return refused
