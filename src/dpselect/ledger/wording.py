"""What may be written into a ledger: plain public values, and no place that tells something."""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import re
from typing import Any

from dpselect.checks import refuse
from dpselect.errors import DPSelectError

#: A question or an answer is a few lines, not a table.
_LONGEST = 65536
#: URLs (which can hold passwords) and the ways in which an absolute or relative path starts; inside a sentence, where a
#: stroke may be a stroke, with a folder at least.
_PLACE = re.compile(
    r"://|^\s*(/|~|\.{1,2}[/\\]|\\\\|[A-Za-z]:[/\\])"
    r"|[\s\"'(\[{=,;:](~?/[^\s/]+/|~/|\.{1,2}[/\\]|\\\\|[A-Za-z]:[/\\])"
)


def written(name: str, value: Any) -> str:
    """A public question or answer as JSON in one form; what a ledger must not hold is refused.

    >>> written("question", {"epsilon": 0.1, "verb": "peak"})
    '{"epsilon":0.1,"verb":"peak"}'
    >>> written("question", {"table": "postgresql://ann:secret@host/db"})
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidParameter: question must be without paths and URLs, ...
    """
    _check(name, value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if len(text) > _LONGEST:
        raise refuse(name, f"{len(text)} characters", f"at most {_LONGEST} characters long")
    return text


def _check(name: str, value: Any) -> None:
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse(name, value, "made of finite numbers")
    elif isinstance(value, str):
        if _PLACE.search(value):
            # Not repeated: this is how a password would come into a log.
            raise refuse(name, "(not shown)", "without paths and URLs, which a ledger does not keep")
    elif isinstance(value, list | tuple):
        for one in value:
            _check(name, one)
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for key, one in value.items():
            _check(name, key)
            _check(name, one)
    else:
        raise refuse(name, type(value).__name__, "made of text, numbers, lists and dictionaries")


def label(name: str, value: str) -> str:
    """A short name on one line: of a data set, or of who asks."""
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable() or value != value.strip():
        raise refuse(name, value, "1 to 200 printable characters")
    if _PLACE.search(value):
        raise refuse(name, "(not shown)", "a name, not a path or a URL")
    return value


def user_name(who: str | None) -> str:
    """Whom the entries name: ``who``, or the user's name where it is left out and known."""
    if who is not None:
        return label("who", who)
    try:
        return label("who", getpass.getuser())
    except (OSError, KeyError, DPSelectError):
        return "unknown"


def key_of(question: str, key: str | None) -> str:
    """The key of a written question; with another ``key`` the same question is another one.

    >>> key_of('{"verb":"peak"}', None) == key_of('{"verb":"peak"}', "again")
    False
    """
    if key is not None and not isinstance(key, str):
        raise refuse("key", key, "a text")
    return hashlib.sha256(json.dumps([question, key]).encode()).hexdigest()


def stretch_key(question: str, key: str | None, place: int) -> str:
    """The key of a stretch of a stream: the first, second and so on of a written question."""
    return hashlib.sha256(f"{json.dumps([question, key, 'stretch'])}{place}".encode()).hexdigest()
