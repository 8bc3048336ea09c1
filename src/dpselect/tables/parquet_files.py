"""Several Parquet files as one table: all of one schema, so that no file decides how the others are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpselect.errors import SourceError


def refuse_other_schemas(files: list[str]) -> None:
    """Refuses files here whose columns differ in name or type."""
    if len(files) > 1:
        from pyarrow import parquet

        _refuse_different(
            sorted((field.name, str(_plain(field.type))) for field in parquet.read_schema(place)) for place in files
        )


def refuse_other_schemas_elsewhere(connection: Any, places: list[str]) -> None:
    """Refuses files, or files that match a pattern, whose columns differ in name or type for DuckDB."""
    files: list[str] = []
    for place in places:
        if place.startswith(("http://", "https://")):  # no patterns there, and ? begins a query
            files.append(place)
        else:
            files += (file for (file,) in connection.execute("SELECT file FROM glob(?)", [place]).fetchall())
    if len(files) > 1:
        _refuse_different(_duckdb_columns(connection, file) for file in files)


def _duckdb_columns(connection: Any, file: str) -> list[tuple[str, str]]:
    read = connection.read_parquet([file], hive_partitioning=False)
    return sorted(zip(read.columns, map(str, read.types), strict=True))


def _plain(kind: Any) -> Any:
    """A type without what only Arrow tells apart."""
    import pyarrow

    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind):
        return pyarrow.string()
    return kind


def _refuse_different(schemas: Iterable[list[tuple[str, str]]]) -> None:
    first: list[tuple[str, str]] | None = None
    for schema in schemas:
        if first is None:
            first = schema
        elif schema != first:
            raise SourceError("the Parquet files differ in the names or types of columns; write them with one schema")
