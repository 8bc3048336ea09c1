"""Files that are loaded whole: a CSV file inside a zip, an Excel sheet, JSON lines, a table on standard input.

Every column becomes text, as in a CSV file, so that the same rows give the same integers by every route and nobody's
row decides how the others are read. Opening one reads the names of its columns and no row; JSON lines have no place for
names, so there the caller states them.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from dpselect.errors import SourceError
from dpselect.secrets import shown
from dpselect.tables.csv_files import LONGEST_HEADER, NOT_UTF_8, arrow_options, header_names
from dpselect.tables.csv_lines import OpenQuoteError, ends_open, opened
from dpselect.tables.failures import BROKEN_FILE, engine_failures
from dpselect.tables.frames import Loadable, from_arrow, of_texts, text_of

#: What ends in this inside a zip is a CSV file.
_INSIDE = (".csv", ".tsv", ".txt")
#: Bytes; a longer line is no object.
_JSON_OBJECT = 2**24
#: Opens the bytes of a file anew.
_Opener: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True, eq=False, repr=False)
class Piped:
    """The bytes that came through a pipe, for :func:`~dpselect.tables.open_source`: CSV, JSON lines or Parquet.

    The first bytes say which of them it is. CSV and JSON lines may be gzipped.
    """

    content: bytes
    delimiter: str | None = None

    def __repr__(self) -> str:
        return "Piped(withheld)"

    def loadable(self, columns: Sequence[str] | None) -> Loadable:
        """The table, with the columns its first line, its schema or the caller names."""
        where = "standard input"
        with engine_failures(f"reading {where}", likely=BROKEN_FILE):
            if self.content[:4] == b"PAR1":
                from pyarrow import parquet

                return from_arrow(parquet.read_table(io.BytesIO(self.content)))
            with self._opened() as file:
                begin = file.read(64).lstrip()
            if not begin:
                raise SourceError(f"{where} is empty; a table begins with the names of its columns")
            if begin[:1] == b"{":
                return from_json([self._opened], columns, where)
            return _from_csv(self._opened, self.delimiter or ",", where)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        raw = io.BytesIO(self.content)
        with gzip.open(raw) if self.content[:2] == b"\x1f\x8b" else raw as file:
            yield file  # type: ignore[misc]


def from_stream(stream: IO[bytes], *, delimiter: str | None = None) -> Piped:
    """What comes through a pipe, held in memory; no row of it is looked at."""
    return Piped(stream.read(), delimiter)


def from_zip(path: str, *, delimiter: str | None) -> Loadable:
    """The one CSV file inside a zip."""
    with _zip_failures(path), zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if _is_content(name)]
        if len(names) != 1 or not names[0].lower().endswith(_INSIDE):
            raise SourceError(
                f"{shown(path)} must hold one CSV file and nothing else (it holds {len(names)} files); unpack it "
                "and name what you need"
            )
        if archive.getinfo(names[0]).flag_bits & 1:
            raise SourceError(f"{shown(path)} is locked with a password; unpack it first")

    @contextmanager
    def inside() -> Iterator[IO[bytes]]:
        with _zip_failures(path), zipfile.ZipFile(path) as archive, archive.open(names[0]) as file:
            yield file

    return _from_csv(inside, delimiter or usual_delimiter(names[0]), shown(path))


@contextmanager
def _zip_failures(path: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise SourceError(f"cannot read {shown(path)}; it is no zip file, or an unfinished one") from None


def _is_content(name: str) -> bool:
    return not (name.endswith("/") or name.startswith("__MACOSX/") or Path(name).name.startswith("."))


def usual_delimiter(name: str) -> str:
    """What stands between the fields of a file of this name, where nobody says."""
    return "\t" if ".tsv" in Path(name).suffixes[-2:] or Path(name).suffix.lower() == ".tsv" else ","


def _from_csv(opened: _Opener, delimiter: str, where: str) -> Loadable:
    from pyarrow import csv as arrow_csv

    with opened() as file:
        try:
            line = b"".join(file.readline(LONGEST_HEADER).splitlines()[:1]).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SourceError(f"cannot read {where}: {NOT_UTF_8}") from None
    names = header_names(line, delimiter, where)

    def load() -> Any:
        with opened() as file:
            if ends_open(file, delimiter):
                raise OpenQuoteError("it ends inside quotes")
        with opened() as file:
            return arrow_csv.read_csv(file, **arrow_options(names, delimiter))

    return of_texts(names, load)


def from_excel(path: str, *, sheet: str | None) -> Loadable:
    """A sheet of an Excel file, the only one unless it is named; its first row names the columns.

    Cells without a name above them belong to no column.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise SourceError("Excel files need python-calamine; install dpselect[excel]") from None

    def rows(most: int | None) -> Any:
        with engine_failures(
            f"reading {shown(Path(path).name)}", likely="a file that is no Excel workbook, or a locked one"
        ):
            book = CalamineWorkbook.from_path(path)
            names = list(book.sheet_names)
            if sheet is None and len(names) > 1:
                raise SourceError(f"{shown(path)} has {len(names)} sheets; name one with ‹table›")
            if sheet is not None and sheet not in names:
                raise SourceError(f"{shown(path)} has no sheet {sheet!r}; check the name")
            return book.get_sheet_by_name(sheet or names[0]).to_python(skip_empty_area=True, nrows=most)

    def named(header: list[Any]) -> dict[str, int]:
        texts = [text_of(cell) or "" for cell in header]
        places = [place for place, text in enumerate(texts) if text]
        return dict(zip(header_names([texts[place] for place in places], ",", shown(path)), places, strict=True))

    def load() -> Any:
        import pyarrow

        header, *cells = rows(None)
        filled = [row for row in cells if any(cell != "" for cell in row)]
        columns = {name: [text_of(row[place]) for row in filled] for name, place in named(header).items()}
        return pyarrow.table({name: pyarrow.array(column, pyarrow.string()) for name, column in columns.items()})

    return of_texts(list(named((rows(1) or [[]])[0])), load)


def from_json_files(files: list[str], columns: Sequence[str] | None) -> Loadable:
    """Files of JSON lines."""
    names = [shown(Path(path).name) for path in files]
    openers: list[_Opener] = [lambda path=path: opened(path) for path in files]  # type: ignore[misc]
    return from_json(openers, columns, names[0] if len(names) == 1 else f"{names[0]} and the other files")


def from_json(openers: Sequence[_Opener], columns: Sequence[str] | None, where: str) -> Loadable:
    """Objects, one in each line, as columns of text; a line that is no object is left out.

    The columns are those stated. Without them every row has to be read to find the names, and so one person's object
    can add a column: that is for the curator's own look at a table. Of names that engines take for one, because they
    differ in upper and lower case alone, the most frequent is then kept.
    """
    if columns is None:
        found = Counter(name for one in _objects(openers) for name in one if name and text_of(name) is not None)
        kept: dict[str, str] = {}
        for name, _ in sorted(found.items(), key=lambda entry: (-entry[1], entry[0])):
            kept.setdefault(name.casefold(), name)
        columns = [name for name in found if kept[name.casefold()] == name]
        if not columns:
            raise SourceError(
                f'{where} has no line that is a JSON object, such as {{"meter": "a", "kwh": 1.5}}; check the file'
            )
    names = list(columns)

    def load() -> Any:
        import pyarrow

        texts: dict[str, list[str | None]] = {name: [] for name in names}
        for one in _objects(openers):
            for name, column in texts.items():
                column.append(_json_text(one.get(name)))
        return pyarrow.table({name: pyarrow.array(column, pyarrow.string()) for name, column in texts.items()})

    return of_texts(names, load)


def _objects(openers: Iterable[_Opener]) -> Iterator[dict[str, Any]]:
    for opener in openers:
        with opener() as lines:
            for line in lines:
                if len(line) > _JSON_OBJECT or not line.strip():
                    continue
                try:
                    # Numbers stay as they were written: as in a CSV file, nothing is rounded before it is read.
                    found = json.loads(line, parse_float=str, parse_int=str)
                except (ValueError, RecursionError):  # ValueError: not JSON, or not UTF-8
                    continue
                if isinstance(found, dict):
                    yield found


def _json_text(value: Any) -> str | None:
    return text_of(value if value is None or isinstance(value, str) else json.dumps(value))
