"""CSV files whose last quote stays open, which some readers take for one that closes at the end of the file.

Arrow's and Spark's readers make one long last field of the rows after such a quote, and DuckDB's reader on one thread
drops them. Either way people's rows are lost in silence.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path

#: The rest of a quoted field, where it ends in this line; two quotes in a row stand for one inside it.
_CLOSING = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')


class OpenQuoteError(ValueError):
    """A file ends inside quotes."""


def refuse_open_quotes(files: list[str], delimiter: str) -> None:
    """Raises where one of the files ends inside quotes; it says nothing of the rows."""
    for path in files:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as lines:
            if ends_open(lines, delimiter):
                raise OpenQuoteError("a file ends inside quotes")


def ends_open(lines: Iterable[bytes], delimiter: str) -> bool:
    r"""Whether the lines of a file end inside quotes; a quote in the middle of a field is only a sign.

    >>> ends_open([b'a,"b\n', b'c\n'], ","), ends_open([b'a,"b\n', b'c"\n'], ","), ends_open([b'a,b"c\n'], ",")
    (True, False, False)
    """
    opening = re.compile(rb'(?:\A|\r|%b)"' % re.escape(delimiter.encode()))
    inside = False
    for line in lines:
        if b'"' not in line:
            continue
        position = 0
        while True:
            if not inside:
                opened = opening.search(line, position)
                if opened is None:
                    break
                position = opened.end()
            closed = _CLOSING.match(line, position)
            inside = closed is None
            if closed is None:
                break
            position = closed.end()
    return inside
