"""Several Parquet files as one table: all of one schema, so that no file decides how the others are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpselect.errors import SourceError
from dpselect.tables.engines import ibis_or_refuse
from dpselect.tables.parts import Table, fresh_name

#: Places files can live that an engine fetches by itself.
REMOTE = ("s3://", "gs://", "gcs://", "az://", "abfss://", "hdfs://", "http://", "https://")


def read_parquet(files: list[str], *, engine: str, settings: dict[str, Any]) -> Table:
    """Parquet files of one schema. Engines take it from the first file, and cast or drop what others have beyond it."""
    elsewhere = [place for place in files if place.startswith(REMOTE)]
    _refuse_other_schemas([place for place in files if not place.startswith(REMOTE)])
    if engine == "polars":  # refuses by itself what differs
        import polars

        return (
            ibis_or_refuse()
            .polars.connect()
            .create_table(fresh_name(), polars.scan_parquet(files, hive_partitioning=False))
        )
    if engine == "pyspark":
        from dpselect.tables.spark import spark_table

        return spark_table(lambda session: session.read.option("mergeSchema", "true").parquet(*files), settings)
    if engine != "duckdb":
        if elsewhere and (len(files) > 1 or "*" in files[0]):
            raise SourceError("several files from elsewhere are read with duckdb, polars or spark; change ‹backend›")
        return getattr(ibis_or_refuse(), engine).connect(**settings).read_parquet(files)
    connection = ibis_or_refuse().duckdb.connect(**settings)
    table = connection.read_parquet(files, hive_partitioning=False)
    if elsewhere:
        refuse_other_schemas_elsewhere(connection.con, files)
    return table


def _refuse_other_schemas(files: list[str]) -> None:
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
