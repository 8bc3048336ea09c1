"""Where in a CSV file something is wrong: the number of the line, for the curator, and never what it says."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpselect.secrets import shown


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
            with _opened(path, delimiter) as rows:
                names = next(rows, [])
                for row in rows:
                    if row and len(row) != len(names):
                        return _told(path, rows.line_num)  # type: ignore[attr-defined]
                    line = rows.line_num + 1  # type: ignore[attr-defined]
        except (csv.Error, UnicodeDecodeError):
            return _told(path, line)
        except (OSError, EOFError):
            return None
    return None


def first_unread(files: list[str], delimiter: str, column: str, reads: Callable[[str], bool]) -> str | None:
    """The first row whose field in a column cannot be read; None where there is none, or no such file."""
    try:
        for path in files:
            with _opened(path, delimiter) as rows:
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


def _told(path: str, line: int) -> str:
    return f"line {line:,} of {shown(Path(path).name)}"


@contextmanager
def _opened(path: str, delimiter: str) -> Iterator[Iterator[list[str]]]:
    with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        yield csv.reader(text, delimiter=delimiter, strict=True)
