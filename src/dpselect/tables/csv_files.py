"""CSV files, read the same way by every engine.

Engines guess a file's separator, types and header from its rows. A guess made from rows lets one person's rows change
how everybody's are read. So nothing is guessed: the first line names the columns, the curator names the separator, and
every column is text.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, TextIO

from dpselect.checks import refuse
from dpselect.errors import SourceError


def read_csv(files: list[str], *, engine: str, settings: dict[str, Any], delimiter: str) -> Any:
    """The files as one Ibis table of text columns."""
    import ibis

    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n\r':
        raise refuse("delimiter", delimiter, "one character, such as , or ;")
    names = _column_names(files, delimiter)
    if engine == "duckdb":
        return ibis.duckdb.connect(**settings).read_csv(
            files,
            auto_detect=False,
            header=True,
            delim=delimiter,
            quote='"',
            escape='"',
            columns=dict.fromkeys(names, "VARCHAR"),
        )
    if engine == "polars":
        import polars

        frame = polars.scan_csv(files, separator=delimiter, schema=dict.fromkeys(names, polars.String))
        return ibis.polars.connect().create_table("dpselect_csv", frame)
    if engine == "pyspark":
        from pyspark.sql.types import StringType, StructField, StructType

        from dpselect.tables.spark import spark_table

        schema = StructType([StructField(name, StringType()) for name in names])
        return spark_table(
            lambda session: session.read.csv(
                files, schema=schema, header=True, sep=delimiter, quote='"', escape='"', mode="FAILFAST"
            ),
            settings,
        )
    raise SourceError(f"CSV files are read with duckdb, polars or spark, not with {engine}; change the backend")


def _column_names(files: list[str], delimiter: str) -> list[str]:
    """The names in the first line, which all files must share: engines match columns each their own way."""
    lines = [_first_line(path) for path in files]
    for path, line in zip(files, lines, strict=True):
        if line != lines[0]:
            raise SourceError(f"the first line of {path!r} differs from the other files'; give them one header")
    try:
        names = next(csv.reader([lines[0]], delimiter=delimiter, strict=True), [])
    except csv.Error:
        names = []
    if not any(names):
        raise SourceError(f"{files[0]!r} has no header; a CSV file needs a first line with the column names")
    if len(set(names)) != len(names) or not all(names):
        raise SourceError(f"the column names in {files[0]!r} must be distinct and not empty; mend the first line")
    return names


def _first_line(path: str) -> str:
    try:
        with gzip.open(path, "rt", encoding="utf-8-sig") if path.endswith(".gz") else _plain(path) as file:
            return str(file.readline()).rstrip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError):
        raise SourceError(f"cannot read {path!r}; check that it is a UTF-8 text or gzip file here") from None


def _plain(path: str) -> TextIO:
    return Path(path).open(encoding="utf-8-sig")
