"""Opening a table wherever it lives: files, databases, objects in memory, on the engine of choice."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from datetime import date, datetime
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
from dpselect.tables.parquet_files import REMOTE, read_parquet
from dpselect.tables.parts import Table, fresh_name
from dpselect.tables.whole_files import from_excel, from_json_files, from_zip, usual_delimiter

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
) -> Table:
    """Opens a table on an engine, as an Ibis table. Nothing is read yet beyond names and types.

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
            return _from_files(files, engine, settings, delimiter, sheet=table)
    return _from_memory(_arrow(data), engine, settings)


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
    files: list[str], engine: str, settings: dict[str, Any], delimiter: str | None, *, sheet: str | None
) -> Table:
    kind = _kind(files[0])
    if kind == "csv":
        between = delimiter or usual_delimiter(files[0])
        return read_csv(files, engine=engine, settings=settings, delimiter=between)
    if kind == "json":
        return _from_memory(from_json_files(files), engine, settings)
    if kind in ("zip", "excel"):
        if len(files) > 1:
            raise SourceError(f"several {kind} files cannot be read as one table; name one, or save them as CSV")
        loaded = from_zip(files[0], delimiter=delimiter) if kind == "zip" else from_excel(files[0], sheet=sheet)
        return _from_memory(loaded, engine, settings)
    return read_parquet(files, engine=engine, settings=settings)


def _arrow(data: object) -> Any:
    """A pandas or Polars frame, or anything that speaks Arrow, as a plain Arrow table."""
    import pyarrow

    with engine_failures("converting the data to Arrow", likely="a column of mixed kinds; convert it"):
        if hasattr(data, "collect") and hasattr(data, "lazy"):
            data = data.collect()
        if isinstance(data, pyarrow.Table):
            arrow = data
        elif hasattr(data, "iloc"):
            arrow = pyarrow.Table.from_pandas(data, preserve_index=False)
            _refuse_mixed_times(data, arrow)
        elif hasattr(data, "to_arrow"):
            arrow = data.to_arrow()
        elif hasattr(data, "__arrow_c_stream__"):
            arrow = pyarrow.table(data)
        else:
            raise SourceError(
                f"cannot open a {type(data).__name__} as a table; give a path, a database URL, a data frame, "
                "an Arrow table or an Ibis table"
            )
        fields = []
        for field in arrow.schema:
            kind = field.type
            kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
            if pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind):
                kind = pyarrow.string()
            if pyarrow.types.is_timestamp(kind):
                kind = pyarrow.timestamp("us", tz=kind.tz)  # what every engine can hold
            if pyarrow.types.is_null(kind):
                kind = pyarrow.string()
            fields.append(pyarrow.field(field.name, kind))
        return arrow.cast(pyarrow.schema(fields), safe=False)


def _refuse_mixed_times(frame: Any, arrow: Any) -> None:
    """Refuses objects of which some are times in a zone and some are not: Arrow reads all as it reads the first."""
    import pyarrow

    for number, field in enumerate(arrow.schema):
        times = pyarrow.types.is_timestamp(field.type) or pyarrow.types.is_date(field.type)
        if times and frame.dtypes.iloc[number].kind == "O":
            found = {_time_kind(value) for value in frame.iloc[:, number]} - {None}
            if len(found) > 1:
                raise SourceError(
                    "a column mixes dates, times in a zone or times without one; convert it with pandas.to_datetime"
                )


def _time_kind(value: Any) -> str | None:
    if type(value).__name__ == "datetime64":  # NumPy's, which Arrow reads among others or not, as the first one is
        return "numpy" if value == value else None
    if not isinstance(value, date) or value != value:
        return None
    if not isinstance(value, datetime):
        return "date"
    return "wall" if value.utcoffset() is None else "instant"


def _from_memory(arrow: Any, engine: str, settings: dict[str, Any]) -> Table:
    with engine_failures(f"loading the data into {engine}", likely="a column of a kind it does not know; convert it"):
        if engine == "pyspark":
            from dpselect.tables.spark import spark_table

            zoned = {field.name for field in arrow.schema if getattr(field.type, "tz", None)}
            return spark_table(lambda session: session.createDataFrame(arrow), settings, instants=zoned)
        connection = getattr(ibis_or_refuse(), engine).connect(**settings)
        name = fresh_name()
        if engine == "duckdb":
            connection.con.register(name, arrow)
            return connection.table(name)
        return connection.create_table(name, arrow, temp=None if engine == "polars" else True)
