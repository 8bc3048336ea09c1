"""Columns under conditions: a value and where it may be used, text that must look a certain way, text by its bytes.

Under a collation that ignores case (MariaDB's default), accents or trailing spaces, an engine takes ``TEA`` and ``tea``
for one candidate, and for one person. Which of the spellings it then hands back depends on the rows, so one row of one
person could turn everybody's count of ``tea`` to nothing. Every text that is grouped, compared or matched goes through
here first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, TypeAlias

from dpselect.errors import SourceError

#: An Ibis expression, and an Ibis table; Ibis is imported only when one is read.
Expression: TypeAlias = Any
Table: TypeAlias = Any
_NUMBERED = count()


def fresh_name() -> str:
    """A name for a table that no other has."""
    return f"dpselect_source_{next(_NUMBERED)}"


@dataclass(frozen=True)
class Part:
    """What a row holds of one thing, and the condition under which it is usable: that it is there, if none is given.

    Filtering on ``usable`` is much cheaper for an engine than carrying nulls along, so both forms are kept.
    """

    value: Expression
    condition: Expression | None = None

    @property
    def usable(self) -> Expression:
        """Whether the value may be used."""
        return self.value.notnull() if self.condition is None else self.condition

    def or_null(self) -> Expression:
        """The value where it is usable, else null."""
        import ibis

        if self.condition is None:  # already so; asking again would make an engine work the value out twice
            return self.value
        return ibis.ifelse(self.condition, self.value, ibis.null(self.value.type()))


#: Engines that work out every mention of a text anew, and of a choice only the arm that is taken. Others share work.
ONE_ARM = ("mysql", "postgres", "sqlite")


def engine_of(expression: Expression) -> str:
    """What the engine of an expression is called; nothing where the table is only described."""
    try:
        return str(expression.get_backend().name)
    except Exception:  # an unbound table has none; Ibis has changed what it raises
        return ""


def converted(column: Expression, pattern: str, convert: Callable[[Expression], Expression]) -> Expression:
    """What a text without the spaces around it is converted to, where the whole of it matches; else null.

    What matches is chosen so that the conversion cannot fail, on engines that look at both arms of a choice too. The
    bar at the end is there because engines disagree about ``$`` before a final line break.
    """
    import ibis

    fits = column.concat("|").re_search(f"^ *({pattern}) *[|]$")
    if engine_of(column) in ONE_ARM:
        number = convert(_undecoded(column).strip())
        return ibis.ifelse(fits, number, ibis.null(number.type()))
    return convert(ibis.ifelse(fits, column, ibis.null("string")).strip())


def _undecoded(column: Expression) -> Expression:
    """A text column of SQLite as it is stored: what matched was decoded, and its parser allows little nesting."""
    stored = _bytewise_of(column)
    return stored if engine_of(column) == "sqlite" and stored is not None and stored.type().is_string() else column


def _bytewise_of(column: Expression) -> Expression | None:
    """The column that this one is made of, where it was made to compare by its bytes before."""
    import ibis.expr.operations as ops

    operation = column.op()
    while isinstance(operation, ops.Alias):
        operation = operation.arg
    return operation.arg.to_expr() if isinstance(operation, _operation()) else None


#: Engines without collations, or whose collations only touch sorting.
_BYTES_ALREADY = {"athena", "clickhouse", "datafusion", "druid", "exasol", "flink", "impala", "materialize"} | {
    "pyspark",
    "risingwave",
    "trino",
}


def bytewise(column: Expression) -> Expression:
    """The column, made to compare by its bytes alone where the engine might do otherwise.

    >>> import ibis
    >>> column = ibis.table({"shop": "string"}, name="visits")["shop"]
    >>> print(ibis.to_sql(bytewise(column), dialect="postgres"))
    SELECT
      "t0"."shop" COLLATE "C" AS "shop"
    FROM "visits" AS "t0"
    """
    if not column.type().is_string() or _bytewise_of(column) is not None:
        return column
    engine = engine_of(column)
    if engine == "sqlite":
        return sqlite_text(column)
    operation = _operation()
    if engine in ("", "polars"):
        _teach_polars(operation)
    return operation(column).to_expr().name(column.get_name())


def sqlite_text(column: Expression) -> Expression:
    """A column of SQLite as text, whatever its values are; null where one is no text in the database's encoding.

    A column there may hold any value, whatever type it was declared with. A function of Python's that is given a text
    which cannot be decoded stops the whole query, so this one is given bytes.
    """
    connection = column.get_backend().con
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    connection.create_function(_DECODED, 1, _decoder(str(encoding)), deterministic=True)
    return _operation()(column).to_expr().name(column.get_name())


#: What the function is called that SQLite decodes bytes with.
_DECODED = "dpselect_decoded"


def _decoder(encoding: str) -> Callable[[object], str | None]:
    """
    >>> _decoder("UTF-8")(b"tea"), _decoder("UTF-8")(b"\\xff"), _decoder("UTF-16le")(b"t\\x00"), _decoder("UTF-8")(None)
    ('tea', None, 't', None)
    """

    def decoded(value: object) -> str | None:
        try:
            return value.decode(encoding) if isinstance(value, bytes) else None
        except UnicodeDecodeError:
            return None

    return decoded


@cache
def _operation() -> Any:
    """The operation, made known to the compilers of Ibis on first use, because Ibis is imported late."""
    import ibis.expr.datatypes as dt
    import ibis.expr.operations as ops
    from ibis.backends.sql.compilers.base import SQLGlotCompiler
    from ibis.expr import rules

    class Bytewise(ops.Unary):  # type: ignore[misc]
        """A text column under the binary collation."""

        dtype = dt.string
        shape = rules.shape_like("arg")

    def visit(compiler: Any, operation: Any, *, arg: Any) -> Any:
        engine = type(compiler).__name__.removesuffix("Compiler").lower()
        if engine in _BYTES_ALREADY:
            return arg
        if engine not in _WRITTEN:
            raise SourceError(
                f"text cannot be compared byte by byte on {engine}; use numbers, or copy the table to Parquet"
            )
        return _WRITTEN[engine](arg)

    SQLGlotCompiler.visit_Bytewise = visit
    return Bytewise


@cache
def _teach_polars(operation: Any) -> None:
    try:
        from ibis.backends.polars.compiler import translate
    except ImportError:
        return

    @translate.register(operation)  # type: ignore[untyped-decorator,unused-ignore]
    def plain(op: Any, **context: Any) -> Any:
        return translate(op.arg, **context)


def _collated(name: str, *, quoted: bool = True) -> Callable[[Any], Any]:
    def written(arg: Any) -> Any:
        import sqlglot.expressions as sge

        return sge.Collate(this=arg, expression=sge.to_identifier(name, quoted=quoted))

    return written


def _mysql(arg: Any) -> Any:
    # The binary collations of MariaDB and of MySQL that heed trailing spaces have different names; bytes do.
    import sqlglot.expressions as sge

    kind = sge.DataType.Type
    text = sge.Cast(this=arg, to=sge.DataType(this=kind.CHARACTER_SET, kind=sge.Var(this="utf8mb4")))
    return sge.Cast(this=text, to=sge.DataType(this=kind.BINARY))


def _decoded(arg: Any) -> Any:
    import sqlglot.expressions as sge

    text = sge.Anonymous(this=_DECODED, expressions=[sge.Cast(this=arg, to=sge.DataType.build("BLOB"))])
    return sge.Collate(this=text, expression=sge.to_identifier("BINARY", quoted=False))


def _called(function: str, *more: str) -> Callable[[Any], Any]:
    def written(arg: Any) -> Any:
        import sqlglot.expressions as sge

        return sge.Anonymous(this=function, expressions=[arg, *(sge.Literal.string(text) for text in more)])

    return written


#: How each engine with collations is told. Those missing here and above (SQL Server and Oracle pad text with spaces
#: before comparing it, under every collation) are refused for text columns.
_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "bigquery": _called("COLLATE", ""),
    "databricks": _collated("UTF8_BINARY", quoted=False),
    "duckdb": _collated("binary"),
    "mysql": _mysql,
    "postgres": _collated("C"),
    "singlestoredb": _mysql,
    "snowflake": _called("COLLATE", ""),
    "sqlite": _decoded,
}
