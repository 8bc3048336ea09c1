"""SQLite columns without a declared type: those declared without one, and most expressions in views.

Each of their values has a type of its own, and Ibis takes the first row's for the column's: one person's row would
decide how everybody's are read. Here they are text, whatever they hold.
"""

from __future__ import annotations

from typing import Any

from dpselect.errors import SourceError

#: The attribute of a connection with the queries below, whose types do not come from rows.
_OURS = "dpselect_typed_queries"


def table_or_text(connection: Any, name: str, *, database: str | tuple[str, ...] | None = None) -> Any:
    """A table of a database, as Ibis opens it; in SQLite, columns without a declared type are cast to text."""
    within = {} if database is None else {"database": database}
    if connection.name != "sqlite" or isinstance(database, tuple):
        return connection.table(name, **within)
    declared = _declared(connection, name, database)
    if all(declared.values()):
        return connection.table(name, **within)
    columns = ", ".join(
        _quoted(column) if kind else f"CAST({_quoted(column)} AS TEXT) AS {_quoted(column)}"
        for column, kind in declared.items()
    )
    place = _quoted(name) if database is None else f"{_quoted(database)}.{_quoted(name)}"
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
