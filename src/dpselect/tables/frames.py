"""Tables in memory: pandas and Polars frames, Arrow tables, and what else speaks Arrow.

The types of a frame's columns are public; its rows are not. A column of Python objects has no type of its own, and
Arrow would choose one by looking at all rows: one person's ``bytes`` would make everybody's texts binary. Such columns
are text here, each value written by a rule that sees nothing but that value.
"""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from dpselect.errors import SourceError
from dpselect.tables.failures import engine_failures

#: What to change where a column has a type that no engine knows.
_MIXED = "a column of a kind that Arrow does not know; convert it"
#: Microseconds since 1970 that begin the year 1000 and end the year 9999: what every engine can hold, and no infinity.
FIRST_MICROSECOND, LAST_MICROSECOND = -30_610_224_000_000_000, 253_402_300_799_999_999


@dataclass(frozen=True, eq=False)
class Loadable:
    """A table that goes into memory as a whole: names and types are public, and rows are read by ``load`` alone.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns, as every engine can hold them.
    load : callable
        Reads the rows, as an Arrow table of that schema.
    """

    schema: Any
    load: Callable[[], Any]


def of_texts(names: tuple[str, ...] | list[str], load: Callable[[], Any]) -> Loadable:
    """A table of nothing but text."""
    import pyarrow

    return Loadable(pyarrow.schema([(name, pyarrow.string()) for name in names]), load)


def from_frame(data: object) -> Loadable:
    """A frame, an Arrow table, or anything that speaks Arrow; no row is looked at before it is loaded."""
    import pyarrow

    with engine_failures("converting the data to Arrow", likely=_MIXED):
        if hasattr(data, "collect_schema"):
            return _from_polars(data)
        if hasattr(data, "iloc"):
            return _from_pandas(data)
        if not isinstance(data, pyarrow.Table) and hasattr(data, "__arrow_c_stream__"):
            data = pyarrow.table(data)
        if not isinstance(data, pyarrow.Table):
            raise SourceError(
                f"cannot open a {type(data).__name__} as a table; give a path, a database URL, a data frame, "
                "an Arrow table or an Ibis table"
            )
        return from_arrow(data)


def from_arrow(table: Any) -> Loadable:
    """An Arrow table, in types that every engine can hold."""
    schema = usual_schema(table.schema)
    return Loadable(schema, lambda: fitted(table, schema))


def _from_pandas(frame: Any) -> Loadable:
    import pyarrow

    kinds = dict[int, Any]()
    for number in range(len(frame.columns)):
        column = frame.iloc[:0, number]
        objects = column.dtype.kind == "O" and _is_untyped(column.dtype)
        kinds[number] = pyarrow.string() if objects else pyarrow.Array.from_pandas(column).type
    named = [(str(name), kinds[number]) for number, name in enumerate(frame.columns)]
    schema = usual_schema(pyarrow.schema(named))

    def load() -> Any:
        columns = []
        for number, (_, kind) in enumerate(named):
            column = frame.iloc[:, number]
            if column.dtype.kind == "O" and _is_untyped(column.dtype):
                columns.append(pyarrow.array([text_of(value) for value in column], pyarrow.string()))
            else:
                columns.append(pyarrow.Array.from_pandas(column, type=kind))
        return fitted(pyarrow.Table.from_arrays(columns, names=schema.names), schema)

    return Loadable(schema, load)


def _is_untyped(kind: Any) -> bool:
    """Whether a column of pandas holds objects: plain ones, or categories that are objects."""
    categories = getattr(kind, "categories", None)
    return str(kind if categories is None else categories.dtype) == "object"


def _from_polars(frame: Any) -> Loadable:
    import pyarrow

    kinds = frame.collect_schema()
    objects = {name for name, kind in kinds.items() if str(kind).startswith("Object")}
    typed = [name for name in kinds if name not in objects]
    empty = frame.select(typed).clear()
    known = (empty.collect() if hasattr(empty, "collect") else empty).to_arrow().schema
    schema = usual_schema(
        pyarrow.schema([(name, pyarrow.string() if name in objects else known.field(name).type) for name in kinds])
    )

    def load() -> Any:
        rows = frame.collect() if hasattr(frame, "collect") else frame
        columns = {name: rows[name].to_arrow() for name in typed}
        for name in objects:
            columns[name] = pyarrow.array([text_of(value) for value in rows[name].to_list()], pyarrow.string())
        return fitted(pyarrow.table({name: columns[name] for name in kinds}), schema)

    return Loadable(schema, load)


def usual_schema(schema: Any) -> Any:
    """A schema in types that every engine can hold."""
    import pyarrow

    fields = []
    for field in schema:
        kind = field.type
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if _is_text(kind) or pyarrow.types.is_null(kind):
            kind = pyarrow.string()
        if pyarrow.types.is_timestamp(kind):
            kind = pyarrow.timestamp("us", tz=kind.tz)
        fields.append(pyarrow.field(field.name, kind))
    return pyarrow.schema(fields)


def _is_text(kind: Any) -> bool:
    import pyarrow

    return bool(
        pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    )


def fitted(table: Any, schema: Any) -> Any:
    """The rows of a table or batch in the types of ``schema``; a value that these cannot hold becomes null."""
    import pyarrow

    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pyarrow.types.is_timestamp(field.type):
            columns.append(_microseconds(column, field.type))
        elif _is_text(column.type):
            columns.append(readable_text(column))
        else:
            columns.append(column.cast(field.type, safe=False))
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _microseconds(column: Any, kind: Any) -> Any:
    """Times in microseconds, rounded down; null outside the years 1000 to 9999."""
    import numpy as np
    import pyarrow

    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    times, divisor = max(1, 10**6 // per_second), max(1, per_second // 10**6)
    least, most = FIRST_MICROSECOND * divisor // times, LAST_MICROSECOND * divisor // times
    parts = []
    for chunk in column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]:
        raw = np.asarray(chunk.cast(pyarrow.int64()).fill_null(0))
        missing = np.asarray(chunk.is_null()) | (raw < max(least, -(2**63))) | (raw > min(most, 2**63 - 1))
        moved = np.where(missing, 0, raw) // divisor * times
        parts.append(pyarrow.array(moved, pyarrow.int64(), mask=missing).cast(kind))
    return pyarrow.chunked_array(parts, type=kind)


def readable_text(column: Any) -> Any:
    """Texts in UTF-8; null where the bytes are none, which Arrow holds and engines refuse."""
    import pyarrow

    parts = []
    for chunk in column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]:
        try:
            chunk.validate(full=True)
            parts.append(chunk.cast(pyarrow.string()))
        except (pyarrow.ArrowInvalid, UnicodeDecodeError):
            raw = chunk.cast(pyarrow.string(), safe=False).cast(pyarrow.binary(), safe=False)
            parts.append(pyarrow.array([_decoded(value) for value in raw.to_pylist()], pyarrow.string()))
    return pyarrow.chunked_array(parts, type=pyarrow.string())


def _decoded(value: bytes | None) -> str | None:
    """
    >>> _decoded(b"caf\\xc3\\xa9"), _decoded(b"caf\\xe9")
    ('café', None)
    """
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def text_of(value: Any) -> str | None:
    """One Python object as text, as it would stand in a CSV file; None where it is missing or has no such form.

    >>> from datetime import timedelta, timezone
    >>> text_of(3.0), text_of(-0.0), text_of(0.1), text_of(True), text_of(float("nan")), text_of("\\ud800")
    ('3', '0', '0.1', 'true', None, None)
    >>> text_of(datetime(2013, 1, 31, 14)), text_of(date(2013, 1, 31)), text_of(2**70)
    ('2013-01-31 14:00:00', '2013-01-31', '1180591620717411303424')
    >>> text_of(datetime(2013, 1, 31, 14, tzinfo=timezone(timedelta(hours=9)))), text_of(b"a"), text_of(b"\\xff")
    ('2013-01-31 05:00:00+00:00', 'a', '0xff')
    """
    try:
        text = _written(value)
        if text is not None:
            text.encode()
    except Exception:  # objects are anybody's: whatever one does when it is compared or written, it is this row's alone
        return None
    return text


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        plain = bytes(value)
        decoded = _decoded(plain)
        return f"0x{plain.hex()}" if decoded is None else decoded
    if type(value).__name__ == "datetime64":
        import pandas

        value = pandas.Timestamp(value)
    elif hasattr(value, "dtype"):  # a scalar of NumPy
        value = value.item()
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, sort_keys=True)
    if value != value:  # NaN, and pandas' NaT; its NA refuses to be asked
        return None
    return _written_scalar(value)


def _written_scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(float(value))
    if isinstance(value, datetime):
        instant = value if value.utcoffset() is None else value.astimezone(UTC)
        return instant.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, numbers.Integral | Decimal | UUID):
        return str(value)
    return None
