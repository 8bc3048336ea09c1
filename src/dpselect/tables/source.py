"""Opening a table wherever it lives: files, databases, objects in memory, on the engine of choice."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.files import from_url, is_there
from dpselect.secrets import shown
from dpselect.tables.csv_files import check_delimiter, read_csv
from dpselect.tables.engines import (
    duckdb_settings,
    engine_name,
    from_database,
    ibis_or_refuse,
    refuse_untyped,
)
from dpselect.tables.failures import BROKEN_FILE, engine_failures
from dpselect.tables.frames import Loadable, from_frame
from dpselect.tables.parquet_files import REMOTE, read_parquet
from dpselect.tables.parts import Table, fresh_name
from dpselect.tables.passes import make_on_demand
from dpselect.tables.whole_files import Piped, from_excel, from_json_files, from_zip, usual_delimiter

_ENDINGS = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"), "csv"),
    **dict.fromkeys((".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), "json"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".xlsx": "excel",
    ".zip": "zip",
}

#: The engine of a database file, by its ending.
_DATABASES = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".duckdb": "duckdb"}


def open_source(
    data: object,
    *,
    backend: str = "duckdb",
    table: str | None = None,
    delimiter: str | None = None,
    options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """Opens a table on an engine, as an Ibis table. No row is read yet, only names and types.

    Parameters
    ----------
    data : str or Path or list or DataFrame or pyarrow.Table or ibis.Table
        A file, a pattern (``readings/*.parquet``), a folder or a list of files: CSV (``.csv``, ``.tsv``, ``.txt``, also
        with ``.gz``, or one inside a ``.zip``), JSON lines (``.jsonl``), Excel (``.xlsx``) or Parquet; a database URL
        (``duckdb://``, ``sqlite://``, ``postgres://``, whatever Ibis connects to) with ``table``; a pandas or Polars
        frame or an Arrow table; or an Ibis table, returned as it is. Columns of CSV, JSON and Excel are read as text
        on every engine, so that none of them guesses from the rows.
    backend : str
        The engine for files and objects: ``"duckdb"``, ``"polars"``, ``"spark"``, or another that Ibis has.
    table : str, optional
        The table's name, for a database URL; or the sheet's, for an Excel file of several.
    delimiter : str, optional
        What stands between the fields of a CSV file: a comma, or in a ``.tsv`` file a tab, if left out.
    options : mapping, optional
        Settings for the engine, e.g. ``{"memory_limit": "3GiB"}`` for DuckDB.
    columns : sequence of str, optional
        The names of the columns that will be used. JSON lines need them: their names stand in the rows, so that without
        ``columns`` all rows are read at once, and one person's object can add a column. With ``columns`` no row is
        looked at: a name that no object has is a column of nulls, and other names are ignored. Every other kind of
        table names its columns outside its rows; there ``columns`` changes nothing.

    Examples
    --------
    >>> import pyarrow
    >>> readings = pyarrow.table({"meter": ["a"], "at": ["2013-01-01"], "kwh": [1.5]})
    >>> open_source(readings).columns
    ('meter', 'at', 'kwh')
    >>> open_source("no/such/file.csv")
    Traceback (most recent call last):
        ...
    dpselect.errors.SourceError: no file matches 'no/such/file.csv'; check the path
    """
    _check_columns(columns)
    ibis = ibis_or_refuse()
    if isinstance(data, ibis.Table):
        refuse_untyped(data)
        return data
    if options is not None and not isinstance(options, Mapping):
        raise refuse("options", options, "a mapping of an engine's settings, such as {'memory_limit': '3GiB'}")
    if table is not None and not isinstance(table, str):
        raise refuse("table", table, "the name of a table")
    settings = dict(options or {})
    check_delimiter(delimiter)
    data = from_url(data)
    if isinstance(data, str) and "://" in data and not data.startswith(REMOTE):
        return from_database(data, table, settings)
    if table is not None and not (isinstance(data, str | Path) and _kind(str(data)) == "excel"):
        raise refuse("table", table, "left out unless the data is a database URL")
    engine = engine_name(backend)
    if engine == "duckdb":
        settings = duckdb_settings() | settings
    if isinstance(data, str | Path | list | tuple):
        files = _files(data)
        likely = "a broken or unfinished file" if _kind(files[0]) == "parquet" else BROKEN_FILE
        name = shown(Path(files[0]).name)
        if files[0].startswith(REMOTE):
            name = shown(files[0])
            likely = "the address, or what you may read there"
            if engine == "duckdb":
                likely += ", or DuckDB's httpfs extension, which it fetches once"
        with engine_failures(f"reading {name} with {backend}", likely=likely):
            return _from_files(files, engine, settings, delimiter, sheet=table, columns=columns)
    loadable = data.loadable(columns) if isinstance(data, Piped) else from_frame(data)
    return _from_memory(loadable, engine, settings)


def _check_columns(columns: object) -> None:
    if columns is None:
        return
    rule = "a list of names, not empty, that differ in more than upper and lower case"
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise refuse("columns", columns, rule)
    # DuckDB and Spark take such names for one, and rename or refuse the column that comes second.
    words = [name.casefold() for name in columns if isinstance(name, str) and name]
    if len(set(words)) < len(columns):
        raise refuse("columns", list(columns), rule)


def _files(data: str | Path | list[Any] | tuple[Any, ...]) -> list[str]:
    """The files meant, in name order, all of one kind."""
    found: list[str] = []
    for place in data if isinstance(data, list | tuple) else [data]:
        text = str(place)
        if text.startswith(REMOTE):
            found.append(text)
        elif is_there(text, Path.is_dir):
            found += _inside(text)
        elif is_there(text, Path.is_file):
            found.append(text)
        else:
            found += _matching(text)
    if not found:
        raise SourceError(f"no file matches {shown(data)}; check the path")
    kinds = {_kind(name) for name in found}
    if len(kinds) == 1:
        _refuse_unreadable(found, *kinds)
    if None in kinds or len(kinds) != 1:
        engine = _DATABASES.get(Path(found[0]).suffix.lower())
        if engine is not None:
            raise SourceError(f"write {engine}:// before {shown(found[0])}, which is a database, and name its ‹table›")
        raise SourceError(
            f"cannot tell how to read {shown(data)}; files must end in .csv, .csv.gz, .tsv, .txt, .zip, .xlsx, .jsonl "
            "or .parquet, all alike"
        )
    return found


def _inside(folder: str) -> list[str]:
    """The files in a folder. What other programs leave beside theirs begins with a dot or an underscore."""
    try:
        inside = [path for path in Path(folder).rglob("*") if path.name[0] not in "._" and not path.is_dir()]
    except OSError:
        raise SourceError(f"a folder in {shown(folder)} cannot be read; check the path and your rights") from None
    return sorted(str(path) for path in inside if _kind(path.name))


def _matching(pattern: str) -> list[str]:
    try:
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - patterns may be absolute
    except (OSError, ValueError):  # a name too long, or with a null in it
        return []


def _refuse_unreadable(files: list[str], kind: str | None) -> None:
    """Refuses what would hang or mislead: pipes and devices, and CSV files whose first line cannot be read here."""
    for place in files:
        remote = place.startswith(REMOTE)
        if not remote and not Path(place).is_file():
            raise SourceError(f"{shown(place)} is not a plain file; write what comes through it to a file first")
        if remote and kind != "parquet":
            raise SourceError(
                f"only Parquet files are read from elsewhere; download {shown(place)} first, or store Parquet there"
            )


def _kind(name: str) -> str | None:
    name = name.partition("?")[0] if name.startswith(REMOTE) else name
    return next((kind for ending, kind in _ENDINGS.items() if name.lower().endswith(ending)), None)


def _from_files(
    files: list[str],
    engine: str,
    settings: dict[str, Any],
    delimiter: str | None,
    *,
    sheet: str | None,
    columns: Sequence[str] | None,
) -> Table:
    kind = _kind(files[0])
    if kind == "csv":
        between = delimiter or usual_delimiter(files[0])
        return read_csv(files, engine=engine, settings=settings, delimiter=between)
    if kind == "json":
        return _from_memory(from_json_files(files, columns), engine, settings)
    if kind in ("zip", "excel"):
        if len(files) > 1:
            raise SourceError(f"several {kind} files cannot be read as one table; name one, or save them as CSV")
        found = from_zip(files[0], delimiter=delimiter) if kind == "zip" else from_excel(files[0], sheet=sheet)
        return _from_memory(found, engine, settings)
    return read_parquet(files, engine=engine, settings=settings, columns=columns)


def _from_memory(found: Loadable, engine: str, settings: dict[str, Any]) -> Table:
    """The table on an engine, which loads the rows for the first expression that needs them."""
    import ibis
    import ibis.expr.operations as ops

    with engine_failures(f"loading the data into {engine}", likely="a column of a kind it does not know; convert it"):
        if engine == "pyspark":
            from dpselect.tables.spark import spark_table

            zoned = {field.name for field in found.schema if getattr(field.type, "tz", None)}
            return spark_table(lambda session: session.createDataFrame(found.load()), settings, instants=zoned)
        connection = getattr(ibis_or_refuse(), engine).connect(**settings)
        name = fresh_name()

        def load() -> None:
            if engine == "duckdb":
                connection.con.register(name, found.load())
            else:
                connection.create_table(name, found.load(), temp=None if engine == "polars" else True)

        make_on_demand(connection, name, load)
        return ops.DatabaseTable(name=name, schema=ibis.Schema.from_pyarrow(found.schema), source=connection).to_expr()
