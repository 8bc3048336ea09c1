"""Wide tables, with one column per candidate, turned long. Column names, not rows, say whose candidate a cell is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.candidates import Candidates, Cycle
from dpselect.tables.engines import quoted
from dpselect.tables.parts import ONE_ARM, Table, bytewise, engine_of
from dpselect.tables.passes import files_under
from dpselect.tables.question import Question
from dpselect.tables.readings import is_written, person_of, reading


def turned_long(table: Table, question: Question, candidates: Candidates) -> Table:
    """One row per person and cell: ``person``, ``stamp``, ``key``, ``reading`` and ``written``."""
    places = column_places(table, question, candidates)
    # A column's own number stands in for the raw time: candidate and copy in one integer.
    each = max(Counter(places.values()).values()) + 1
    stamps, seen = dict[str, int](), Counter[int]()
    for column, place in places.items():
        stamps[column] = place * each + seen[place]
        seen[place] += 1
    kinds = dict(table.schema())
    alike = len({kind.copy(nullable=True) for kind in {kinds[column] for column in places}}) == 1
    if alike and engine_of(table) == "duckdb":
        import ibis.expr.operations as ops

        # The files are turned as they are: not where somebody changed the table that was made of them.
        turn = files_under(table.get_backend()).turn_long if isinstance(table.op(), ops.DatabaseTable) else None
        long = _in_sql(table, question, stamps) if turn is None else turn(question.user, stamps)
    else:
        long = _in_ibis(table, question, stamps, alike=alike)
    cell = long["cell"]
    return long.select(
        person=person_of(bytewise(long["person"])).or_null(),
        stamp="stamp",
        key=(long["stamp"] - long["stamp"] % each) // each,  # exact where an engine divides in doubles, too
        reading=reading(bytewise(cell), decimal=question.decimal).or_null() if alike else cell,
        written=is_written(cell),
    )


def stated_columns(question: Question, candidates: Candidates) -> tuple[str, ...]:
    """The columns that a question uses, as far as it names them: for tables whose names stand in their rows.

    Those of a wide table are named after the candidates: a category as it is, a period in ``time_format`` or as its
    label, and the days of a week or a month as dates.

    >>> from dpselect.tables.calendar import Calendar
    >>> wide = Question(user="meter", shape="wide", cap=50, population=9)
    >>> stated_columns(wide, Calendar("2013-01-01", "2013-01-02"))
    ('meter', '2013-01-01', '2013-01-02')
    """
    if question.shape == "long":
        named = (question.user, question.time, question.category, question.value)
        return tuple(dict.fromkeys(name for name in named if name is not None))
    if isinstance(candidates, Categories):
        return tuple(dict.fromkeys((question.user, *candidates.labels)))
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    moments, labels = [calendar.begins(place) for place in range(len(calendar))], calendar.labels
    if calendar.every in ("week", "month"):
        days = Calendar(calendar.first.date(), calendar.past.date() - timedelta(days=1))
        moments, labels = moments + [days.begins(place) for place in range(len(days))], labels + days.labels
    if question.time_format is not None:
        labels = tuple(moment.strftime(question.time_format) for moment in moments)
    return tuple(dict.fromkeys((question.user, *labels)))


def column_places(table: Table, question: Question, candidates: Candidates) -> dict[str, int]:
    """Which candidate each column belongs to; columns that belong to none are left out."""
    if isinstance(candidates, Categories):
        numbers = {label: number for number, label in enumerate(candidates.labels)}
        found = {column: numbers.get(column) for column in table.columns}
    else:
        found = {column: _period(column, question, candidates) for column in table.columns}
    places = {column: place for column, place in found.items() if place is not None and column != question.user}
    if not places:
        raise SourceError(
            "no column of the wide table is named after a candidate; check the calendar, or give ‹time_format›"
        )
    return places


def _period(column: str, question: Question, candidates: Candidates) -> int | None:
    if isinstance(candidates, Categories):
        return None
    text = column.strip()
    try:
        if question.time_format is not None:
            # Python reads one digit or two in any case, and knows no %-m.
            return candidates.index(datetime.strptime(text, question.time_format.replace("%-", "%")))
        return candidates.index(datetime.strptime(text, "%Y-%m") if len(text) == 7 else datetime.fromisoformat(text))
    except ValueError:
        return None


def _in_sql(table: Table, question: Question, stamps: Mapping[str, int]) -> Table:
    """``person``, ``stamp`` and ``cell`` on DuckDB, of columns that are alike.

    Ten thousand columns are ten thousand objects to Ibis, each looked at many times, and one list to DuckDB.
    """
    kinds, backend = dict(table.schema()), table.get_backend()
    cells, numbers = ", ".join(map(quoted, stamps)), ", ".join(map(str, stamps.values()))
    rows = f"SELECT {quoted(question.user)} AS person, [{cells}] AS cells FROM ({backend.compile(table)})"  # noqa: S608
    query = f"SELECT person, unnest([{numbers}]::BIGINT[]) AS stamp, unnest(cells) AS cell FROM ({rows})"  # noqa: S608
    kind = kinds[next(iter(stamps))].copy(nullable=True)
    return backend.sql(query, schema={"person": kinds[question.user], "stamp": "int64", "cell": kind})


def _in_ibis(table: Table, question: Question, stamps: Mapping[str, int], *, alike: bool) -> Table:
    """``person``, ``stamp`` and ``cell`` on any engine; ``cell`` is the reading where columns are not alike."""
    cells = {}
    for column, number in stamps.items():
        cell = bytewise(table[column])
        cells[f"stamp_{number}"] = cell if alike else reading(cell, decimal=question.decimal).or_null()
    narrow = table.select(person=table[question.user], **cells)
    if engine_of(table) in ONE_ARM:
        return _union(narrow, cells)
    return narrow.pivot_longer(
        list(cells), names_to="stamp", names_pattern=r"stamp_(\d+)", names_transform=int, values_to="cell"
    ).mutate(lambda long: long["stamp"].cast("int64").name("stamp"))


def _union(narrow: Table, cells: Iterable[str]) -> Table:
    import ibis

    parts = []
    for name in cells:
        stamp = ibis.literal(int(name.removeprefix("stamp_")), "int64")
        parts.append(narrow.select("person", stamp=stamp, cell=name))
    while len(parts) > 1:  # in halves: engines and compilers limit how deep a union may lie
        parts = [
            ibis.union(*parts[place : place + 2]) if parts[place + 1 :] else parts[place]
            for place in range(0, len(parts), 2)
        ]
    return parts[0]
