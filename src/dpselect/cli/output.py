"""Standard output as it is found: in any locale, closed, full, or with a reader that leaves.

An answer that was drawn has been paid for, whether or not anybody saw it. So what can be known beforehand is refused
beforehand, and what goes wrong later is told for what it is.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from dpselect.errors import DPSelectError

SPENT = "the answer may have been drawn: count its cost as spent"


class NotWritten(DPSelectError):
    """Something could not be written after an answer was drawn."""


def prepare() -> bool:
    """Makes both streams take any text, as UTF-8; whether there is a standard output at all."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # In the C locale ε would end the program after the answer was paid for.
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdout is not None


def reader_left(failure: BaseException) -> bool:
    """Whether this is about a pipe that nobody reads any more (``| head``), also when a library wrapped it."""
    return isinstance(failure, BrokenPipeError) or isinstance(failure.__context__, BrokenPipeError)


def refused_text(failure: BaseException) -> bool:
    """Whether an open stream could not take what was written to it: files that are opened by name say their name."""
    return isinstance(failure, OSError) and failure.errno is not None and failure.filename is None


def lost(failure: BaseException, *, asked: bool) -> str:
    """What to say when the output could not take the text.

    >>> lost(OSError(28, "No space left on device"), asked=False)
    'the output could not be written (No space left on device)'
    """
    why = getattr(failure, "strerror", None) or type(failure).__name__
    return f"the output could not be written ({why})" + (f"; {SPENT}" if asked else "")


def give_up() -> None:
    """Sends what is left to nowhere, so that the interpreter does not fail once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
