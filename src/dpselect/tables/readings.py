"""From readings to whole steps, and to what each person adds, the same on every engine.

Sums of floating-point numbers depend on the order of the rows, and engines choose their own order. So every
reading is first rounded to a whole number of steps by operations that IEEE 754 defines exactly (one product,
at most one quotient, one sum, one floor), and only integers are added up.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from dpselect.errors import SourceError
from dpselect.tables.parts import Expression, Part, converted, engine_of
from dpselect.tables.question import Question

#: Readings of this magnitude or more count as infinite, and are left out like NaN.
INFINITE = 1e300
_LARGE = Decimal("1e300")
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?|[+-]?[0-9](\.[0-9]*)?[eE][+-]?[12][0-9]{2}"
#: Characters. What matches and is no longer than this is below that magnitude, and so finite in double precision.
#: Counting characters is much cheaper for an engine than a pattern that counts digits.
_LONGEST_NUMBER = 120
#: Numbers as most files have them, none longer, which DuckDB reads as the pattern above does, and much faster.
_PLAIN_NUMBER = r"^[0-9]{1,60}(\.[0-9]{1,59})?$"


def reading(column: Expression, *, decimal: str = ".") -> Part:
    """The column as double precision, usable where there is a finite number.

    ``decimal`` stands before the decimals of a number given as text; the other sign is then no part of a number.
    """
    import ibis

    kind = column.type()
    if kind.is_string():
        # Engines disagree about what else is a number (hexadecimal, underscores, suffixes).
        short = ibis.ifelse(column.length() <= _LONGEST_NUMBER, column, ibis.null("string"))
        if decimal == ",":
            number = converted(short, _NUMBER.replace(r"\.", ","), lambda text: text.replace(",", ".").cast("float64"))
        else:
            number = converted(short, _NUMBER, lambda text: text.cast("float64"))
            if engine_of(column) == "duckdb":
                number = ibis.ifelse(column.re_search(_PLAIN_NUMBER), column.try_cast("float64"), number)
        return Part(number)
    if kind.is_numeric() and not kind.is_boolean():
        if engine_of(column) == "sqlite":
            # A text would count as 0.
            number = ibis.ifelse(_is_number(column), column.cast("float64"), ibis.null("float64"))
        elif kind.is_decimal():
            # Through text, because that conversion is correctly rounded everywhere.
            number = _fitting(column).cast("string").cast("float64")
        else:
            number = column.cast("float64")
    else:
        raise SourceError(
            f"the value column {column.get_name()!r} must hold numbers or text; it holds {kind}: convert it"
        )
    # SQLite keeps infinity in a column of whole numbers, too.
    return Part(number) if kind.is_integer() and engine_of(column) != "sqlite" else Part(number, _is_finite(number))


def _is_finite(number: Expression) -> Expression:
    """Whether a number is one that counts.

    NaN fails the second comparison, whether an engine leaves it unordered or holds it for the largest. But DuckDB takes
    comparisons, and ``isnan``, for decided by the statistics of a Parquet file, and these know nothing of NaN: one
    person's infinity would decide whether everybody's NaN count. It asks each value whether it is finite.
    """
    within = (number > -INFINITE) & (number < INFINITE)
    return _duckdb_is_finite()(number) & within if engine_of(number) == "duckdb" else within


@cache
def _duckdb_is_finite() -> Any:
    """A function of DuckDB's that Ibis does not have."""
    import ibis

    return ibis.udf.scalar.builtin(lambda number: None, name="isfinite", signature=(("float64",), "boolean"))


def _fitting(column: Expression) -> Expression:
    """Decimals that a double can hold, the very small ones as 0. PostgreSQL's may have NaN and 100,000 digits."""
    import ibis

    if engine_of(column) != "postgres":
        return column
    size = column.abs()  # NaN and infinity are the largest of all
    tiny, large = ibis.literal(1 / _LARGE), ibis.literal(_LARGE)
    return ibis.cases((size < tiny, column * 0), (size < large, column), else_=ibis.null(column.type()))


def is_written(column: Expression) -> Expression:
    """Whether there is text that should be a reading."""
    filled = column.notnull()
    return filled & (column != "") if column.type().is_string() else filled & False


def steps(number: Expression, *, cap: Fraction, grid: int) -> Expression:
    """A reading as whole steps of cap/grid, half a step up, cut to [0, grid].

    Nulls must have been left out: engines disagree about the larger of null and a number.

    The cut comes first: 1e300 would overflow the product on some engines and the conversion to an integer on all. Since
    readings below 0 count as 0, cutting each one at the cap does not change any sum that is cut at the cap. What two
    roundings make of a reading at the cap lies within grid · 2⁻⁵⁰ of the grid, and is rounded to it.
    """
    import ibis

    scale = Fraction(grid) / cap
    cut = ibis.least(ibis.greatest(number, 0.0), float(cap))
    scaled = cut * ibis.literal(scale.numerator, "int64").cast("float64")
    if scale.denominator > 1:
        scaled = scaled / ibis.literal(scale.denominator, "int64").cast("float64")
    return (scaled + 0.5).floor().cast("int64")


def rounded_quotient(total: Expression, count: Expression) -> Expression:
    """total / count to the nearest integer, half up, exact on every engine for non-negative integers.

    Taking the remainder off first leaves a whole quotient, which survives engines that divide in doubles.
    """
    doubled, divisor = total * 2 + count, count * 2
    return ((doubled - doubled % divisor) / divisor).round().cast("int64")


def person_of(column: Expression) -> Part:
    """Who a row belongs to, told by this row alone: null, an empty text, no bytes, NaN and infinity name nobody.

    Two persons whose numbers are one in floating point count as one, which cannot raise Δ.
    """
    import ibis

    kind, sqlite = column.type(), engine_of(column) == "sqlite"
    if kind.is_string():
        return Part(column, column != "")
    if kind.is_binary():
        return Part(column, column != ibis.literal(b""))
    if kind.is_floating():
        # Adding 0.0 makes one person of 0.0 and -0.0.
        number = column.cast("float64")
        return Part(number + 0.0, _is_finite(number) & _is_number(column) if sqlite else _is_finite(number))
    if kind.is_decimal() and engine_of(column) == "postgres":
        return Part(column, column.abs() < ibis.literal(_LARGE))  # NaN and infinity are the largest of all
    if kind.is_numeric() and sqlite:
        return Part(column, _is_number(column))
    others = kind.is_date(), kind.is_timestamp(), kind.is_time(), kind.is_uuid(), kind.is_inet(), kind.is_macaddr()
    if not kind.is_numeric() and not any(others):
        raise SourceError(
            f"the column {column.get_name()!r} must name persons by text, numbers, bytes or dates; it holds {kind}: "
            "convert it"
        )
    return Part(column)


def _is_number(column: Expression) -> Expression:
    """Whether a value of SQLite is a number: a column declared as one may hold texts and bytes, too."""
    return column.typeof().isin(["integer", "real"])


def may_merge(column: Expression) -> Expression:
    """Whether a person's number is so large in floating point that whole numbers beside it are the same."""
    merging = {"float16": 2.0**11, "float32": 2.0**24}.get(str(column.type()).removeprefix("!"), 2.0**53)
    number = column.cast("float64")
    return _is_finite(number) & ((number <= -merging) | (number >= merging))


def contributions(rows: Expression, question: Question) -> Expression:
    """What each person adds to each candidate: ``person``, ``slot``, ``steps`` between 0 and the grid.

    Whatever one person's rows hold, and wherever they lie, they end in one number in [0, grid] per candidate.
    This is where the sensitivity comes from.
    """
    import ibis

    gathered = gathered_steps(rows, question)
    # Below 0 only if an engine's 64-bit sum wrapped around, after some four billion rows of one person.
    cut = ibis.least(ibis.greatest(gathered["steps"], 0), question.grid)
    return gathered.mutate(steps=cut)


def gathered_steps(rows: Expression, question: Question) -> Expression:
    """Each person's readings for each candidate as one number of steps, not yet cut."""
    import ibis

    if question.duplicates == "largest":
        rows = rows.group_by("person", "stamp", "slot").agg(reading=rows["reading"].max())
    if question.measure == "count":
        # Each row is one step, and the cut at one step makes presence of it.
        stepped = rows.select("person", "slot", steps=ibis.literal(1, "int64"))
    else:
        stepped = rows.select(
            "person", "slot", steps=steps(rows["reading"], cap=question.exact_cap, grid=question.grid)
        )
    each = stepped["steps"]
    combined = {"sum": each.sum, "max": each.max, "mean": lambda: rounded_quotient(each.sum(), each.count())}
    how = "sum" if question.measure == "count" else question.per_user
    return stepped.group_by("person", "slot").agg(steps=combined[how]())
