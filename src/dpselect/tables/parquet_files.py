"""Several Parquet files as one table: all of one schema, so that no file decides how the others are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dpselect.errors import SourceError
from dpselect.tables.engines import ibis_or_refuse, quoted
from dpselect.tables.frames import fitted, usual_schema
from dpselect.tables.parts import Table, fresh_name
from dpselect.tables.passes import files_under

#: Places files can live that an engine fetches by itself.
REMOTE = ("s3://", "gs://", "gcs://", "az://", "abfss://", "hdfs://", "http://", "https://")


def read_parquet(
    files: list[str], *, engine: str, settings: dict[str, Any], columns: Sequence[str] | None = None
) -> Table:
    """Parquet files of one schema. Engines take it from the first file, and cast or drop what others have beyond it.

    DuckDB and Polars stop at a text that is not UTF-8, and DuckDB at a time it cannot hold. Then the files are read
    again through Arrow, where such a value becomes null: all columns, or those named by ``columns``.
    """
    elsewhere = [place for place in files if place.startswith(REMOTE)]
    _refuse_other_schemas([place for place in files if not place.startswith(REMOTE)])
    if engine == "polars":  # refuses by itself what differs
        import polars

        connection, name = ibis_or_refuse().polars.connect(), fresh_name()
        frame = polars.scan_parquet(files, hive_partitioning=False)
        coded = [column for column, kind in frame.collect_schema().items() if kind in (polars.Categorical, polars.Enum)]
        table = connection.create_table(
            name, frame.with_columns(polars.col(coded).cast(polars.String)) if coded else frame
        )

        def again() -> None:
            import pyarrow

            read = pyarrow.Table.from_batches(_batches(files, columns), _schema(files, columns))
            connection.create_table(name, read, overwrite=True)

        if not elsewhere:
            files_under(connection).read_otherwise = again
        return table
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
    else:
        files_under(connection).read_otherwise = lambda: _through_arrow(connection, table.get_name(), files, columns)
    return _with_known_times(connection, table)


def _with_known_times(connection: Any, table: Table) -> Table:
    """The table with instants in nanoseconds, which Ibis does not know, rounded down to microseconds."""
    name = table.get_name()
    kinds = connection.con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {quoted(name)})").fetchall()  # noqa: S608
    finest = [column for column, kind in kinds if kind == "TIMESTAMPTZ_NS"]
    if not finest:
        return table
    rounded = ", ".join(
        f"make_timestamptz((epoch_ns(c) - (epoch_ns(c) % 1000 + 1000) % 1000) // 1000) AS {quoted(column)}".replace(
            "(c)", f"({quoted(column)})"
        )
        for column in finest
    )
    view = fresh_name()
    connection.con.execute(f"CREATE TEMP VIEW {view} AS SELECT * REPLACE ({rounded}) FROM {quoted(name)}")  # noqa: S608
    return connection.table(view)


def _through_arrow(connection: Any, name: str, files: list[str], columns: Sequence[str] | None) -> None:
    """Puts the files' rows, read through Arrow, into a table that stands for the view of that name."""
    import pyarrow
    from pyarrow import parquet

    held = fresh_name()
    reader = pyarrow.RecordBatchReader.from_batches(_schema(files, columns), _batches(files, columns))
    connection.con.register(f"{held}_part", reader)
    connection.con.execute(f"CREATE TEMP TABLE {held} AS SELECT * FROM {held}_part")  # noqa: S608 - our own names
    connection.con.unregister(f"{held}_part")
    unused = [column for column in parquet.read_schema(files[0]).names if column not in reader.schema.names]
    listed = ", ".join(["*", *(f"NULL AS {quoted(column)}" for column in unused)])
    connection.con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT {listed} FROM {held}")  # noqa: S608


def _schema(files: list[str], columns: Sequence[str] | None) -> Any:
    import pyarrow
    from pyarrow import parquet

    found = usual_schema(parquet.read_schema(files[0]))
    return pyarrow.schema([field for field in found if columns is None or field.name in columns])


def _batches(files: list[str], columns: Sequence[str] | None) -> Iterator[Any]:
    """The rows in types that every engine can hold, some at a time."""
    from pyarrow import parquet

    schema = _schema(files, columns)
    for place in files:
        with parquet.ParquetFile(place) as file:
            for batch in file.iter_batches(columns=schema.names):
                yield from fitted(batch.select(schema.names), schema).to_batches()


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
