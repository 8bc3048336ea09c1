"""A state on paper: versioned JSON with a digest.

The digest is SHA-256 over everything else in the file. It catches damage and careless edits. With ``key`` it is
HMAC-SHA256, which also catches deliberate edits by anyone without the key. Neither can tell an old file from the
newest one: restoring the same file twice spends the same budget twice. Where that matters, keep the newest state in a
place that only moves forward, such as a ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from dpselect.checks import refuse
from dpselect.errors import StateRefused

FORMAT = "dpselect sparse vector"
VERSION = 1


def signed(state: dict[str, Any], *, key: bytes | None) -> str:
    """The state as JSON, with its format and its digest.

    >>> verified(signed({"spent": 0.5}, key=None), key=None)
    {'spent': 0.5}
    """
    body = {"format": FORMAT, "version": VERSION, **state}
    return json.dumps({**body, "digest": digest(body, key)}, indent=2, allow_nan=False)


def verified(text: str, *, key: bytes | None) -> dict[str, Any]:
    """The state that :func:`signed` wrote; anything else is refused."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (TypeError, ValueError, RecursionError):
        raise StateRefused("the saved state is not JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateRefused(f"the saved state must have format {FORMAT!r}")
    if found.get("version") != VERSION or isinstance(found.get("version"), bool):
        raise StateRefused(f"the saved state must have version {VERSION}; got {found.get('version')!r}")
    told = found.pop("digest", None)
    _check_key(key)
    try:
        expected = digest(found, key)
    except ValueError:
        # A number such as 1e999, which reads as infinity and cannot be written.
        raise StateRefused("the saved state holds a number that is not finite") from None
    if not (isinstance(told, str) and told.isascii() and hmac.compare_digest(told, expected)):
        raise StateRefused("the saved state does not match its digest: it was damaged, altered, or has another key")
    return {name: value for name, value in found.items() if name not in ("format", "version")}


def digest(body: dict[str, Any], key: bytes | None) -> str:
    """SHA-256, or HMAC-SHA256 with ``key``, of everything but the digest."""
    _check_key(key)
    written = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if key is None:
        return "sha256:" + hashlib.sha256(written).hexdigest()
    return "hmac-sha256:" + hmac.new(key, written, hashlib.sha256).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _check_key(key: bytes | None) -> None:
    if key is not None and (not isinstance(key, bytes) or not key):
        raise refuse("key", "(not shown)", "non-empty bytes")
