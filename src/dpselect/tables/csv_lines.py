"""The lines of CSV files, read by Python itself: where one is wrong, whether a quote stays open, and very wide files.

What is wrong is told by the number of the line, for the curator, and never by what the line says.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from dpselect.secrets import shown

#: The rest of a quoted field, where it ends in this line; two quotes in a row stand for one inside it.
_CLOSING = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')
#: Cells that are handed on together.
_CELLS = 2**20


class OpenQuoteError(ValueError):
    """A file ends inside quotes."""


def first_misfit(files: list[str], delimiter: str) -> str | None:
    """The first row that does not have as many fields as the first line, or that cannot be read as text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "rows.csv")
    ...     _ = place.write_text("a,b\\n1,2\\n\\n3\\n")
    ...     first_misfit([str(place)], ",")
    "line 4 of 'rows.csv'"
    """
    for path in files:
        line = 1
        try:
            # Bytes that are no text are let through first: Python decodes ahead, and would not know the line.
            with _rows(path, delimiter, errors="surrogateescape") as rows:
                names = next(rows, [])
                for row in rows:
                    "".join(row).encode()
                    if row and len(row) != len(names):
                        return _told(path, rows.line_num)  # type: ignore[attr-defined]
                    line = rows.line_num + 1  # type: ignore[attr-defined]
        except (csv.Error, UnicodeEncodeError):
            return _told(path, line)
        except (OSError, EOFError):
            return None
    return None


def first_unread(files: list[str], delimiter: str, column: str, reads: Callable[[str], bool]) -> str | None:
    """The first row whose field in a column cannot be read; None where there is none, or no such file."""
    try:
        for path in files:
            with _rows(path, delimiter) as rows:
                names = next(rows, [])
                if column not in names:
                    return None
                place = names.index(column)
                for row in rows:
                    if row and (len(row) <= place or not reads(row[place])):
                        return _told(path, rows.line_num)  # type: ignore[attr-defined]
    except (csv.Error, UnicodeDecodeError, OSError, EOFError):
        return None
    return None


def long_cells(files: list[str], delimiter: str, user: str, stamps: Mapping[str, int]) -> Iterator[Any]:
    """Wide files as Arrow tables of ``person``, ``stamp`` (the column's number) and ``cell``, some rows at a time."""
    import numpy as np
    import pyarrow

    for path in files:
        with _rows(path, delimiter) as rows:
            names = next(rows, [])
            person = names.index(user)
            place = {name: number for number, name in enumerate(names)}
            cells = itemgetter(*(place[name] for name in stamps), person)  # one more, so that there are always several
            numbers = np.fromiter(stamps.values(), np.int64, len(stamps))
            persons: list[str] = []
            taken: list[str] = []

            def table(persons: list[str], taken: list[str], numbers: Any = numbers) -> Any:
                each = pyarrow.array(np.repeat(np.arange(len(persons), dtype=np.int32), len(numbers)))
                whose = pyarrow.DictionaryArray.from_arrays(each, pyarrow.array(persons, pyarrow.string()))
                stamp, cell = np.tile(numbers, len(persons)), pyarrow.array(taken, pyarrow.string())
                return pyarrow.table({"person": whose, "stamp": stamp, "cell": cell})

            for row in rows:
                if not row:
                    continue
                if len(row) != len(names):
                    raise csv.Error("a row with too many or too few fields")
                *found, whose = cells(row)
                persons.append(whose)
                taken += found
                if len(taken) >= _CELLS:
                    yield table(persons, taken)
                    persons, taken = [], []
            yield table(persons, taken)


def _told(path: str, line: int) -> str:
    return f"line {line:,} of {shown(Path(path).name)}"


@contextmanager
def _rows(path: str, delimiter: str, *, errors: str = "strict") -> Iterator[Iterator[list[str]]]:
    with opened(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors=errors, newline="")
        yield csv.reader(text, delimiter=delimiter, strict=True)


def opened(path: str) -> Any:
    """A file's bytes, unpacked where its name says so."""
    return gzip.open(path) if path.endswith(".gz") else Path(path).open("rb")


def refuse_open_quotes(files: list[str], delimiter: str) -> None:
    """Raises where one of the files ends inside quotes; it says nothing of the rows.

    Arrow's and Spark's readers make one long last field of the rows after such a quote, and DuckDB's reader on one
    thread drops them. Either way people's rows are lost in silence.
    """
    for path in files:
        with opened(path) as lines:
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
