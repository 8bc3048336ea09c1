"""Files that are loaded whole: a CSV file inside a zip, an Excel sheet, JSON lines, a table on standard input.

Every column becomes text, as in a CSV file, so that the same rows give the same integers by every route and nobody's
row decides how the others are read.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

from dpselect.errors import SourceError
from dpselect.secrets import shown
from dpselect.tables.csv_files import LONGEST_HEADER, NOT_UTF_8, arrow_options, header_names
from dpselect.tables.csv_lines import OpenQuoteError, ends_open, opened
from dpselect.tables.failures import BROKEN_FILE, engine_failures

#: What ends in this inside a zip is a CSV file.
_INSIDE = (".csv", ".tsv", ".txt")
_JSON_OBJECT = 2**24


def from_stream(stream: IO[bytes], *, delimiter: str | None = None) -> Any:
    """A table that comes through a pipe, held in memory: CSV (also gzipped), JSON lines or Parquet."""
    content = stream.read()
    with engine_failures("reading standard input", likely=BROKEN_FILE):
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        if content[:4] == b"PAR1":
            from pyarrow import parquet

            return parquet.read_table(io.BytesIO(content))
        if content.lstrip()[:1] == b"{":
            objects = _Objects()
            objects.add(content.splitlines(), "standard input")
            return objects.table("standard input")
        if not content.strip():
            raise SourceError("standard input is empty; a table begins with the names of its columns")
        return _from_csv(lambda: io.BytesIO(content), delimiter or ",", "standard input")


def from_zip(path: str, *, delimiter: str | None) -> Any:
    """The one CSV file inside a zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _is_content(name)]
            if len(names) != 1 or not names[0].lower().endswith(_INSIDE):
                raise SourceError(
                    f"{shown(path)} must hold one CSV file and nothing else (it holds {len(names)} files); unpack it "
                    "and name what you need"
                )
            if archive.getinfo(names[0]).flag_bits & 1:
                raise SourceError(f"{shown(path)} is locked with a password; unpack it first")
            between = delimiter or usual_delimiter(names[0])
            return _from_csv(lambda: archive.open(names[0]), between, shown(path))
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise SourceError(f"cannot read {shown(path)}; it is no zip file, or an unfinished one") from None


def _is_content(name: str) -> bool:
    return not (name.endswith("/") or name.startswith("__MACOSX/") or Path(name).name.startswith("."))


def usual_delimiter(name: str) -> str:
    """What stands between the fields of a file of this name, where nobody says."""
    return "\t" if ".tsv" in Path(name).suffixes[-2:] or Path(name).suffix.lower() == ".tsv" else ","


def _from_csv(opened: Any, delimiter: str, where: str) -> Any:
    from pyarrow import csv as arrow_csv

    with opened() as file:
        if ends_open(file, delimiter):
            raise OpenQuoteError("it ends inside quotes")
    with opened() as file:
        try:
            line = b"".join(file.readline(LONGEST_HEADER).splitlines()[:1]).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SourceError(f"cannot read {where}: {NOT_UTF_8}") from None
    names = header_names(line, delimiter, where)
    with opened() as file:
        return arrow_csv.read_csv(file, **arrow_options(names, delimiter))


def from_excel(path: str, *, sheet: str | None) -> Any:
    """A sheet of an Excel file, the only one unless it is named; its first row names the columns."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise SourceError("Excel files need python-calamine; install dpselect[excel]") from None
    with engine_failures(
        f"reading {shown(Path(path).name)}", likely="a file that is no Excel workbook, or a locked one"
    ):
        book = CalamineWorkbook.from_path(path)
        names = list(book.sheet_names)
        if sheet is None and len(names) > 1:
            raise SourceError(f"{shown(path)} has {len(names)} sheets; name one with ‹table›")
        if sheet is not None and sheet not in names:
            raise SourceError(f"{shown(path)} has no sheet {sheet!r}; check the name")
        rows = book.get_sheet_by_name(sheet or names[0]).to_python(skip_empty_area=True)
    header, *cells = rows or [[]]
    names = header_names([_cell(one) for one in header], ",", shown(path))
    texts = [[_cell(cell) for cell in row] for row in cells if any(cell != "" for cell in row)]
    return _table(names, texts)


def _cell(value: Any) -> str:
    """A cell as it would stand in a CSV file; a whole number without decimals, a date as ISO 8601.

    >>> _cell(3.0), _cell(0.1), _cell(datetime(2013, 1, 31, 14)), _cell(date(2013, 1, 31)), _cell(True)
    ('3', '0.1', '2013-01-31 14:00:00', '2013-01-31', 'true')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def from_json_files(files: list[str]) -> Any:
    """Files of JSON lines; all their objects together name the columns."""
    objects = _Objects()
    for path in files:
        name = shown(Path(path).name)
        with (
            engine_failures(f"reading {name}", likely="a line that is no JSON object, or a broken gzip"),
            opened(path) as lines,
        ):
            objects.add(lines, name)
    return objects.table(name)


class _Objects:
    """Columns of text, one for every name that some object has; null where an object lacks it."""

    def __init__(self) -> None:
        self._columns: dict[str, list[str | None]] = {}
        self._count = 0

    def add(self, lines: Iterable[bytes], where: str) -> None:
        for line in lines:
            if not line.strip():
                continue
            # Numbers stay as they were written: as in a CSV file, nothing is rounded before it is read.
            found = json.loads(line, parse_float=str, parse_int=str) if len(line) <= _JSON_OBJECT else None
            if not isinstance(found, dict):
                raise SourceError(f'every line of {where} must be a JSON object, such as {{"meter": "a", "kwh": 1.5}}')
            for name, value in found.items():
                column = self._columns.setdefault(name, [])
                column.extend([None] * (self._count - len(column)))
                column.append(_json_text(value))
            self._count += 1

    def table(self, where: str) -> Any:
        names = list(self._columns)
        if not names:
            raise SourceError(f"{where} is empty; its lines must be JSON objects that name the columns")
        # DuckDB and Spark take such names for one, and rename or refuse the column that comes second.
        if len({name.casefold() for name in names}) != len(names) or not all(names):
            raise SourceError("names in JSON objects must not be empty, nor differ in upper and lower case alone")
        import pyarrow

        for column in self._columns.values():
            column.extend([None] * (self._count - len(column)))
        return pyarrow.table({name: pyarrow.array(self._columns[name], pyarrow.string()) for name in names})


def _json_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _table(names: list[str], rows: list[list[str]]) -> Any:
    import pyarrow

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pyarrow.table(
        {name: pyarrow.array(column, pyarrow.string()) for name, column in zip(names, columns, strict=True)}
    )
