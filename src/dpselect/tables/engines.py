"""The engines of Ibis: by name, with the memory they may take, or by the address of a database.

SQLite columns without a declared type (those declared without one, and most expressions in views) have a type for each
of their values, and Ibis takes the first row's for the column's: one person's row would decide how everybody's are
read. Here they are text, whatever they hold.
"""

from __future__ import annotations

import resource
import warnings
import weakref
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dpselect.checks import refuse
from dpselect.errors import SourceError
from dpselect.files import is_there
from dpselect.secrets import shown
from dpselect.tables.failures import engine_failures
from dpselect.tables.parts import Table

#: How long to wait for a server that does not answer, unless the URL or the options say ``connect_timeout``.
CONNECT_SECONDS = 15
#: The share of what is there that DuckDB may take; the rest is for Python, Arrow and what else runs.
_SHARE = 0.6
_LEAST = 128 * 2**20
_LIMITS_OF_THE_GROUP = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
#: The attribute of a connection with the queries below, whose types do not come from rows.
_OURS = "dpselect_typed_queries"


def ibis_or_refuse() -> Any:
    """Ibis, which is imported only when a table is opened."""
    try:
        import ibis
    except ImportError:
        raise SourceError("tables need Ibis; install dpselect[tables]") from None
    return ibis


def engine_name(backend: object) -> str:
    """What Ibis calls an engine."""
    name = _known(backend)
    if name is None:
        raise refuse("backend", backend, "one of duckdb, polars, spark, or another engine of Ibis")
    return name


def _known(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    name = {"postgresql": "postgres", "spark": "pyspark"}.get(name, name)
    return name if name in {entry.name for entry in entry_points(group="ibis.backends")} else None


def memory_there() -> int | None:
    """Bytes this process may still take, by the machine, its control group and ``ulimit -v``; ``None`` if unknown."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")))
    for place in _LIMITS_OF_THE_GROUP:
        with suppress(OSError, ValueError):  # "max" is no number
            found.append(int(place.read_text()))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            found.append(max(0, limit - used))
    return min(found, default=None)


def duckdb_settings() -> dict[str, str | int]:
    """A memory limit for DuckDB, and one thread where there is little; it spills to disk beyond that.

    >>> sorted(duckdb_settings())[:1]
    ['memory_limit']
    """
    there = memory_there()
    if there is None:
        return {}
    limit = max(_LEAST, int(there * _SHARE))
    settings: dict[str, str | int] = {"memory_limit": f"{limit // 2**20}MiB"}
    if limit < 2**30:
        settings["threads"] = 1
    return settings


def from_database(url: str, table: str | None, settings: dict[str, Any]) -> Table:
    """A table of a database, named by its address."""
    scheme, _, rest = url.partition("://")
    engine = _known(scheme)
    if engine is None:
        raise SourceError(f"no engine of Ibis is called {scheme!r}; use e.g. duckdb://, sqlite:// or postgres://")
    if not table:
        raise SourceError(f"a {scheme}:// source needs the name of a table; give ‹table›")
    place = rest.partition("?")[0]
    # Connecting would create the file: a slip in the path must not end as an empty answer.
    if scheme in ("duckdb", "sqlite") and not is_there(place, Path.is_file):
        nearby = place.lstrip("/")
        hint = f": it is written {scheme}://{nearby} in this folder" if is_there(nearby, Path.is_file) else ""
        raise SourceError(f"no database file at {shown(place)}; check the path{hint}")
    # The URL may hold a password, so messages name only the scheme.
    with engine_failures(
        f"connecting to the {scheme} database",
        likely="the address, the name or password, or a server that is not running",
        package=f"ibis-framework[{engine}]",
        before_rows=True,
    ):
        if scheme == "duckdb":
            wanted = {"read_only": True, **duckdb_settings(), **dict(parse_qsl(rest.partition("?")[2])), **settings}
            connection = ibis_or_refuse().duckdb.connect(place, **wanted)
        else:
            if engine == "pyspark":
                from dpselect.tables.spark import spark_session

                spark_session(settings)  # Ibis would start one that prints
            connection = _connected(url, engine, settings)
    with engine_failures(f"opening table {table!r}", likely="the table's name, or what you may read", before_rows=True):
        try:
            return _named_table(connection, table)
        except BaseException:
            with suppress(Exception):  # what went wrong first is what counts
                connection.disconnect()
            raise


def _named_table(connection: Any, name: str) -> Table:
    """The table of that name, or of that name in a schema: ``meters.readings``, ``catalog.meters.readings``."""
    missing = ibis_or_refuse().common.exceptions.TableNotFound
    *within, last = name.split(".")
    try:
        return _table_or_text(connection, name)
    except missing:
        if within and last:
            try:
                return _table_or_text(connection, last, database=tuple(within) if len(within) > 1 else within[0])
            except missing:
                pass
    raise SourceError(f"the database has no table {name!r}; check the name, or put its schema and a dot before it")


def _connected(url: str, engine: str, settings: Mapping[str, Any]) -> Any:
    """A connection that gives up after a while when nobody answers, and that shows instants in UTC."""
    wanted: dict[str, Any] = {}
    if engine in ("postgres", "mysql"):
        wanted["connect_timeout"] = CONNECT_SECONDS
    if engine == "mysql":
        # Ibis asks for the zone 'UTC' by name, which a server without zone tables does not know.
        wanted |= {"charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
    named = dict(parse_qsl(url.partition("?")[2]))
    wanted = {name: value for name, value in wanted.items() if name not in named} | dict(settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        connection = ibis_or_refuse().connect(url, **wanted)
    if engine == "sqlite":  # Python 3.13 warns of one that nobody closed
        weakref.finalize(connection, _close, connection.con)
    return connection


def _close(connection: Any) -> None:
    with suppress(Exception):  # closed already, or opened by another thread
        connection.close()


def _table_or_text(connection: Any, name: str, *, database: str | tuple[str, ...] | None = None) -> Any:
    """A table of a database, as Ibis opens it; in SQLite, columns without a declared type are cast to text."""
    within = {} if database is None else {"database": database}
    if connection.name != "sqlite" or isinstance(database, tuple):
        return connection.table(name, **within)
    declared = _declared(connection, name, database)
    if all(declared.values()):
        return connection.table(name, **within)
    columns = ", ".join(
        quoted(column) if kind else f"CAST({quoted(column)} AS TEXT) AS {quoted(column)}"
        for column, kind in declared.items()
    )
    place = quoted(name) if database is None else f"{quoted(database)}.{quoted(name)}"
    schema = {column: connection._parse_type(kind or "text", True) for column, kind in declared.items()}
    query = f"SELECT {columns} FROM {place}"  # noqa: S608 - quoted
    vars(connection).setdefault(_OURS, set()).add(query)
    return connection.sql(query, schema=schema)


def refuse_untyped(table: Any) -> None:
    """Refuses an Ibis table on SQLite tables that have columns without a declared type."""
    import ibis.expr.operations as ops

    for written in table.op().find((ops.SQLQueryResult, ops.SQLStringView)):
        source = getattr(written, "source", None) or table.get_backend()
        if source.name == "sqlite" and written.query not in vars(source).get(_OURS, ()):
            raise SourceError(
                "the columns of a query in SQL have the types of its first row on SQLite; make a view of it, and give "
                "the database as sqlite:// with the view's name as the table"
            )
    for found in table.op().find(ops.DatabaseTable):
        if found.source.name == "sqlite" and not all(
            _declared(found.source, found.name, found.namespace.database).values()
        ):
            raise SourceError(
                "a column of the SQLite table has no declared type; declare it, or give the database as sqlite://, "
                "which reads the column as text"
            )


def _declared(connection: Any, name: str, database: str | None) -> dict[str, str]:
    """The columns of a table or view and their declared types; none where there is no such table."""
    places = [name] if database is None else [name, database]
    query = f"SELECT name, type FROM pragma_table_info({', '.join('?' * len(places))})"  # noqa: S608 - signs alone
    return dict(connection.con.execute(query, places).fetchall())


def quoted(name: str) -> str:
    """A column's or a table's name in SQL."""
    return '"' + name.replace('"', '""') + '"'
