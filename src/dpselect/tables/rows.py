"""Each row's person, candidate and reading, as Ibis expressions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import cast

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter, SourceError
from dpselect.tables.calendar import Calendar, Categories, day_number
from dpselect.tables.candidates import Candidates, Cycle
from dpselect.tables.instants import dates_of, period_index, stamp_of, with_moments
from dpselect.tables.parts import Expression, Part, Table, bytewise, engine_of
from dpselect.tables.question import Question
from dpselect.tables.readings import is_written, person_of, reading
from dpselect.tables.wide import turned_long

#: A limit no table reaches.
EVERY_ROW = 2**62
#: How a time format goes on once the hour stands behind the date.
HOUR_FORMAT = " %H:%M"
_HOUR = r"^ *([01]?[0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9])?)? *$"


def usable_rows(table: Table, question: Question, candidates: Candidates) -> Table:
    """The rows that count, as ``person``, ``stamp``, ``slot`` and ``reading``.

    ``slot`` stands for the candidate while readings are gathered, in the form an engine groups by fastest;
    :func:`slot_keys` turns it into the candidate's key.
    """
    _check(table, question, candidates)
    if question.shape == "wide":
        rows = turned_long(table, question, candidates)
        kept = rows.filter(rows["person"].notnull(), rows["reading"].notnull())
        return kept.select("person", "stamp", "reading", slot="key")
    stamp, person, value = _long_columns(table, question)
    slot = _slot(stamp, question, candidates)
    if _texts(table, question) and engine_of(table) == "postgres":
        # Without the limit, PostgreSQL would read each text anew wherever its number is mentioned.
        key = _key(stamp, question, candidates)
        read = table.select(person=person.value, stamp=stamp, slot=key, reading=value.value).limit(EVERY_ROW)
        counts = person_of(read["person"]).usable, reading(read["reading"]).usable
        return read.filter(listed(read["slot"], question, candidates), *counts)
    return table.filter(person.usable, slot.usable, value.usable).select(
        person=person.value, stamp=stamp, slot=slot.value, reading=value.value
    )


def slotted_rows(table: Table, question: Question, candidates: Candidates) -> Table:
    """The rows that count; on DuckDB, of tables with texts to read, also the others, with no slot.

    Leaving rows out, DuckDB would read each text twice: to see whether it counts, and to take it.
    """
    import ibis

    _check(table, question, candidates)
    if engine_of(table) != "duckdb" or not (_texts(table, question) or question.shape == "wide"):
        return usable_rows(table, question, candidates)
    if question.shape == "wide":
        long = turned_long(table, question, candidates)
        rows, counts = long.select("person", "stamp", "reading", slot="key"), []
    else:
        table, moment = _with_moments(table, question)
        stamp, person, value = _long_columns(table, question)
        by_date = stamp.type().is_string() and _by_date(question, candidates)
        slot = dates_of(stamp, moment) if by_date else _key(stamp, question, candidates, moment)
        rows = table.select(person=person.or_null(), stamp=stamp, slot=slot, reading=value.or_null())
        counts = [_between(rows["slot"], candidates) if by_date else listed(rows["slot"], question, candidates)]
    all_there = ibis.and_(rows["person"].notnull(), rows["reading"].notnull(), *counts)
    return rows.mutate(slot=ibis.ifelse(all_there, rows["slot"], ibis.null(rows["slot"].type())))


def slot_keys(slot: Expression, candidates: Candidates) -> Expression:
    """The number of the candidate a slot stands for, worked out in the engine: it alone knows what it grouped."""
    if slot.type().is_date() and isinstance(candidates, Calendar):
        return slot.epoch_days() - day_number(candidates.first)
    if slot.type().is_string():
        return slot.cases(*((label, number) for number, label in enumerate(candidates.labels)), else_=-1)
    return slot


def described_rows(table: Table, question: Question, candidates: Candidates) -> Table:
    """Every row as ``person``, ``stamp`` (the raw time, category or column), ``key``, ``reading`` and ``written``.

    ``key`` is a category's name or a period's number, which may lie outside; null says: nothing usable.
    ``written`` says whether the reading is given as text, be it a number or not.
    """
    _check(table, question, candidates)
    if question.shape == "wide":
        return turned_long(table, question, candidates)
    table, moment = _with_moments(table, question)
    stamp, person, value = _long_columns(table, question)
    key = _key(stamp, question, candidates, moment)
    written = is_written(table[question.value]) if question.value else person.usable & False
    return table.select(person=person.or_null(), stamp=stamp, key=key, reading=value.or_null(), written=written)


def listed(key: Expression, question: Question, candidates: Candidates) -> Expression:
    """Whether a key is one of the candidates."""
    if question.category is not None:
        return key.isin(candidates.labels)
    return key.between(0, len(candidates) - 1)


def check_columns(table: Table, names: Iterable[str | None]) -> None:
    """Refuses a name that is no column of the table.

    A table of nothing but text may be a CSV file without a header, whose "names" are somebody's row: they are
    not repeated.
    """
    for name in filter(None, names):
        if name in table.columns:
            continue
        count = len(table.columns)
        if near := _nearly(name, table.columns):
            raise SourceError(f"the table has no column {name!r}; {near}", before_rows=True)
        if not all(kind.is_string() for kind in table.schema().types):
            shown = ", ".join(table.columns[:12]) + (", ..." if count > 12 else "")
            raise SourceError(f"the table has no column {name!r}; it has {shown}", before_rows=True)
        if count == 1:
            raise SourceError(
                f"the table has no column {name!r}, and only one column in all; the separator looks wrong: "
                "give ‹delimiter›, such as ';'",
                before_rows=True,
            )
        raise SourceError(
            f"the table has no column {name!r} among its {count}; the first line of a CSV file must name the columns, "
            "and describe shows them to the curator",
            before_rows=True,
        )


def _nearly(name: str, columns: Sequence[str]) -> str | None:
    """What to say where a column is called almost so; never of one with a digit, which may be somebody's reading."""
    same = [column for column in columns if column.strip().casefold() == name.strip().casefold()]
    if same:
        return f"{same[0]!r} differs from it only in " + ("spaces" if same[0].strip() == name.strip() else "case")
    words = [column for column in columns if column.strip() and not any(sign.isdigit() for sign in column)]
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.7)
    return f"did you mean {close[0]!r}?" if close else None


def _long_columns(table: Table, question: Question) -> tuple[Expression, Part, Part]:
    import ibis

    person = person_of(bytewise(table[question.user]))
    stamp = stamp_of(table[question.time]) if question.time else category_text(bytewise(table[question.category]))
    if question.value is None:
        # A boolean is not a number everywhere.
        return stamp, person, Part(ibis.ifelse(person.usable, 1, 0).cast("int64"), person.usable)
    return stamp, person, reading(bytewise(table[question.value]), decimal=question.decimal)


def _texts(table: Table, question: Question) -> list[str]:
    """The columns whose texts have to be read as times or numbers."""
    return [name for name in (question.time, question.value) if name and table[name].type().is_string()]


def _with_moments(table: Table, question: Question) -> tuple[Table, Expression | None]:
    return with_moments(table, question.time) if question.time and not question.time_format else (table, None)


def _key(stamp: Expression, question: Question, candidates: Candidates, moment: Expression | None = None) -> Expression:
    if isinstance(candidates, Categories):
        return stamp
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    period = period_index(stamp, calendar=calendar, time_format=question.time_format, moment=moment)
    return candidates.of_period(period) if isinstance(candidates, Cycle) else period


def _by_date(question: Question, candidates: Candidates) -> bool:
    """Whether the date on the wall clock, which engines group by fastest, is all that matters of a text."""
    daily = isinstance(candidates, Calendar) and candidates.every == "day" and candidates.timezone is None
    return daily and question.time_format is None


def _between(day: Expression, candidates: Candidates) -> Expression:
    import ibis

    calendar = cast(Calendar, candidates)
    return (day >= ibis.literal(calendar.first.date())) & (day < ibis.literal(calendar.past.date()))


def _slot(stamp: Expression, question: Question, candidates: Candidates) -> Part:
    import ibis

    key = _key(stamp, question, candidates)
    kind = stamp.type()
    if isinstance(candidates, Calendar) and (kind.is_date() or (kind.is_timestamp() and kind.timezone is None)):
        # Plain comparisons of the raw column let engines skip parts of files.
        first, past = candidates.first, candidates.past
        if kind.is_date():
            # An hourly calendar may begin or end within a day, whose only moment here is midnight.
            inside = listed(key, question, candidates)
        else:
            inside = (stamp >= ibis.literal(first)) & (stamp < ibis.literal(past))
        if candidates.every == "day":
            return Part(stamp if kind.is_date() else stamp.date(), inside)
        return Part(key, inside)
    return Part(key, listed(key, question, candidates))


def _check(table: Table, question: Question, candidates: object) -> None:
    _check_candidates(question, candidates)
    check_columns(table, [question.user, question.time, question.category, question.value])


def _check_candidates(question: Question, candidates: object) -> None:
    if not isinstance(candidates, Calendar | Cycle | Categories):
        raise refuse("candidates", candidates, "a Calendar or Categories, given by the curator")
    if question.time is not None and not isinstance(candidates, Calendar | Cycle):
        raise InvalidParameter("a question with a time column needs a Calendar of candidates")
    if question.category is not None and not isinstance(candidates, Categories):
        raise InvalidParameter("a question with a category column needs Categories as candidates")


def category_text(column: Expression) -> Expression:
    """A category as text; null where there is none."""
    kind = column.type()
    if kind.is_string():
        return column.nullif("")
    if kind.is_integer():
        return column.cast("string")
    raise SourceError(
        f"category column {column.get_name()!r} must hold text or whole numbers; it holds {kind}: convert it"
    )


def with_hours(table: Table, *, date: str, hour: str) -> Table:
    """The table with the hour written behind the date, as text, in the date's column.

    >>> import pyarrow
    >>> from dpselect.tables import open_source
    >>> rows = open_source(pyarrow.table({"day": ["2011-01-01", "2011-01-02"], "hr": [0, 17]}))
    >>> with_hours(rows, date="day", hour="hr").to_pyarrow()["day"].to_pylist()
    ['2011-01-01 00:00', '2011-01-02 17:00']
    """
    check_columns(table, [date, hour])
    return table.mutate(**{date: _date(stamp_of(table[date])).concat(" ", _hours(bytewise(table[hour])), ":00")})


def _date(column: Expression) -> Expression:
    kind = column.type()
    if kind.is_string():
        return column.strip()
    if kind.is_date():
        return column.cast("string")
    if kind.is_timestamp() and kind.timezone is None:
        return column.date().cast("string")
    raise SourceError(f"the column {column.get_name()!r} must hold dates beside the hours; it holds {kind}: convert it")


def _hours(column: Expression) -> Expression:
    """Two digits; null where there is no hour of a day."""
    import ibis

    kind = column.type()
    if not (kind.is_string() or kind.is_integer()):
        raise SourceError(
            f"the column {column.get_name()!r} must hold hours, from 0 to 23; it holds {kind}: convert it"
        )
    text = column.strip() if kind.is_string() else column.cast("string")
    short = (text.length() == 1) | (text.substr(1, 1) == ":")
    digits = ibis.ifelse(short, ibis.literal("0").concat(text.substr(0, 1)), text.substr(0, 2))
    return ibis.ifelse(text.re_search(_HOUR), digits, ibis.null("string"))
