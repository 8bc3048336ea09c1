"""CSV files, read the same way by every engine.

Engines guess a file's separator, types and header from its rows. A guess made from rows lets one person's rows change
how everybody's are read. So nothing is guessed: the first line names the columns, the curator names the separator, and
every column is text.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.secrets import shown
from dpselect.tables.csv_lines import first_misfit, long_cells, refuse_open_quotes
from dpselect.tables.parts import fresh_name
from dpselect.tables.passes import files_under, make_on_demand

#: Bytes; more in the first line is no header but a file without line breaks.
LONGEST_HEADER = 2**24
#: Columns. DuckDB's own time grows with their square: beyond so many, its view waits until somebody asks for it.
_WIDEST = 16_384
#: What to do with letters written otherwise.
NOT_UTF_8 = "it is not UTF-8 text; convert it (iconv -f latin1 -t utf-8), or save it again as CSV UTF-8"
_VIEW = "dpselect_csv"
#: Bytes; what Arrow reads at once, and so the longest row for Polars.
_LONGEST_ROW = 2**22


def check_delimiter(delimiter: object) -> None:
    """Refuses what cannot stand between fields."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\n\r'):
        raise refuse("delimiter", delimiter, "one character, such as , or ;")


def read_csv(files: list[str], *, engine: str, settings: dict[str, Any], delimiter: str) -> Any:
    """The files as one Ibis table of text columns."""
    table = _read(files, engine=engine, settings=settings, delimiter=delimiter)
    files_under(table.get_backend()).find_misfit = lambda: first_misfit(files, delimiter)
    return table


def _read(files: list[str], *, engine: str, settings: dict[str, Any], delimiter: str) -> Any:
    import ibis

    names = _column_names(files, delimiter)
    if engine == "duckdb":
        connection = ibis.duckdb.connect(**settings)
        if len(names) > _WIDEST:
            make_on_demand(connection, _VIEW, lambda: _duckdb_view(connection, files, names, delimiter))
            files_under(connection).turn_long = _long_form(connection, files, delimiter)
        else:
            _duckdb_view(connection, files, names, delimiter)
        table = _duckdb_table(connection, _VIEW, dict.fromkeys(names, "string"))

        def again() -> None:
            refuse_open_quotes(files, delimiter)  # on one thread DuckDB drops what follows such a quote
            _duckdb_view(connection, files, names, delimiter, parallel=False)

        files_under(connection).read_otherwise = again
        return table
    if engine == "polars":
        import polars

        # Polars' own reader takes a short row for one with nulls; Arrow's refuses it, as the other engines do.
        frame = polars.scan_pyarrow_dataset(_arrow_dataset(files, names, delimiter))
        connection = ibis.polars.connect()
        files_under(connection).look_first = lambda: refuse_open_quotes(files, delimiter)
        return connection.create_table(_VIEW, frame)
    if engine == "pyspark":
        from pyspark.sql.types import StringType, StructField, StructType

        from dpselect.tables.spark import spark_table

        schema = StructType([StructField(name, StringType()) for name in names])
        table = spark_table(
            lambda session: session.read.csv(
                files,
                schema=schema,
                header=True,
                sep=delimiter,
                quote='"',
                escape='"',
                mode="FAILFAST",
                multiLine=True,
                unescapedQuoteHandling="RAISE_ERROR",
            ),
            settings,
        )
        files_under(table.get_backend()).look_first = lambda: refuse_open_quotes(files, delimiter)
        return table
    raise SourceError(f"CSV files are read with duckdb, polars or spark, not with {engine}; change ‹backend›")


def _duckdb_view(connection: Any, files: list[str], names: list[str], delimiter: str, *, parallel: bool = True) -> None:
    """The files as a view of text columns."""
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in names)
    options = f"header=true, delim={_literal(delimiter)}, quote='\"', escape='\"', parallel={parallel}"
    read = f"read_csv([{', '.join(map(_literal, files))}], auto_detect=false, columns={{{columns}}}, {options})"
    connection.con.execute(f"CREATE OR REPLACE TEMP VIEW {_VIEW} AS SELECT * FROM {read}")  # noqa: S608 - quoted


def _duckdb_table(connection: Any, name: str, columns: dict[str, str]) -> Any:
    """A table by its name and columns. Ibis would ask DuckDB for the columns, and take seconds for thousands."""
    import ibis
    import ibis.expr.operations as ops

    return ops.DatabaseTable(name=name, schema=ibis.schema(columns), source=connection).to_expr()


def _long_form(connection: Any, files: list[str], delimiter: str) -> Callable[[str, Mapping[str, int]], Any]:
    """Wide files turned long by Python, into a table that DuckDB fills when it is asked for, and can spill to disk."""
    kept: dict[str, tuple[Mapping[str, int], Any]] = {}

    def turned(user: str, stamps: Mapping[str, int]) -> Any:
        if user not in kept or kept[user][0] != stamps:
            name = fresh_name()
            make_on_demand(connection, name, lambda: fill(name, user, stamps))
            columns = {"person": "string", "stamp": "int64", "cell": "string"}
            kept[user] = stamps, _duckdb_table(connection, name, columns)
        return kept[user][1]

    def fill(name: str, user: str, stamps: Mapping[str, int]) -> None:
        run = connection.con.execute
        run(f"CREATE OR REPLACE TEMP TABLE {name} (person VARCHAR, stamp BIGINT, cell VARCHAR)")
        for part in long_cells(files, delimiter, user, stamps):
            connection.con.register(f"{name}_part", part)
            run(f"INSERT INTO {name} SELECT * FROM {name}_part")  # noqa: S608 - our own names
            connection.con.unregister(f"{name}_part")

    return turned


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def arrow_options(names: list[str], delimiter: str) -> dict[str, Any]:
    """How Arrow reads a CSV file: the names given, the first line skipped, every column text."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    return {
        "parse_options": arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "read_options": arrow_csv.ReadOptions(column_names=names, skip_rows=1, block_size=_LONGEST_ROW),
        "convert_options": arrow_csv.ConvertOptions(
            strings_can_be_null=False, column_types=dict.fromkeys(names, pyarrow.string())
        ),
    }


def _arrow_dataset(files: list[str], names: list[str], delimiter: str) -> Any:
    import pyarrow
    from pyarrow import dataset

    schema = pyarrow.schema([pyarrow.field(name, pyarrow.string()) for name in names])
    return dataset.dataset(files, format=dataset.CsvFileFormat(**arrow_options(names, delimiter)), schema=schema)


def _column_names(files: list[str], delimiter: str) -> list[str]:
    """The names in the first line, which all files must share: engines match columns each their own way."""
    lines = [_first_line(path) for path in files]
    for path, line in zip(files, lines, strict=True):
        if line != lines[0]:
            raise SourceError(f"the first line of {shown(path)} differs from the other files'; give them one header")
    return header_names(lines[0], delimiter, shown(files[0]))


def header_names(line: str | list[str], delimiter: str, where: str) -> list[str]:
    """The column names in a first line, or in its cells: distinct, and none of them empty."""
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True), []) if isinstance(line, str) else line
    except csv.Error:
        names = []
    if not any(names):
        raise SourceError(f"{where} has no header; a CSV file needs a first line with the column names")
    if len(set(names)) != len(names) or not all(names):
        raise SourceError(f"the column names in {where} must be distinct and not empty; fix the first line")
    return names


def _first_line(path: str) -> str:
    """The bytes up to the first line break and nothing after them, so that no row decides whether a file opens."""
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            line = file.readline(LONGEST_HEADER).splitlines()[:1]
            return b"".join(line).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"cannot read {shown(path)}: {NOT_UTF_8}") from None
    except (OSError, EOFError, zlib.error):
        raise SourceError(f"cannot read {shown(path)}; check that it is a UTF-8 text or gzip file here") from None
