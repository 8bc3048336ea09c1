"""The private side of a data set: the table is opened, checked and added up here, and nowhere else in this room."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from dpselect.dataset.facts import Facts
from dpselect.dataset.scope import Scope
from dpselect.errors import DPSelectWarning, InvalidParameter, NothingRead, SourceError
from dpselect.files import is_there
from dpselect.tables import BoundedQuery, Categories, Cycle, bounded_query, open_source
from dpselect.tables.rows import check_columns, usable_rows, with_hours
from dpselect.tables.wide import column_places, stated_columns

#: What the address of a database server begins with: opening a table there reads no row.
_SERVERS = ("postgres", "postgresql", "mysql", "mariadb")


def check(scope: Scope) -> None:
    """Opens the table for its column names and types only, and refuses what is missing."""
    facts = scope.facts
    scope.account.refuse_children()
    table = _open(scope)
    if facts.is_series:
        check_columns(table, [facts.place, facts.value])
    else:
        usable_rows(table, scope.question, scope.candidates)
    if scope.needs_hours and not _may_hold_hours(facts, table):
        raise InvalidParameter(
            "the times of this table are dates without an hour, and all of them would count as 00:00: "
            + ("ask per day" if facts.wide else "name the column of hours with ‹hour›, or ask per day")
            + " (‹every› day)",
            parameter="every" if facts.wide else "hour",
        )
    if facts.wide:
        _refuse_days_without_column(scope, table)


def _refuse_days_without_column(scope: Scope, table: Any) -> None:
    """Refuses dates before the first column or after the last, and warns of gaps: they count as 0. Names are public."""
    candidates = scope.candidates
    if isinstance(candidates, Categories):
        return
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    named = set(column_places(table, scope.question, calendar).values())
    labels, first, last = calendar.labels, min(named), max(named)
    remedies = [f"begin with ‹start› {labels[first]}"] if first else []
    remedies += [f"end with ‹end› {labels[last]}"] if last < len(labels) - 1 else []
    ends = _in_words(labels, [*range(first), *range(last + 1, len(labels))])
    if remedies:
        raise SourceError(f"{ends} no column, and would count as 0: {' and '.join(remedies)}")
    gaps = [place for place in range(first, last) if place not in named]
    if gaps:
        warnings.warn(f"{_in_words(labels, gaps)} no column: there every value is 0", DPSelectWarning, stacklevel=4)


def _in_words(labels: Sequence[str], places: Sequence[int]) -> str:
    """Stretches of places by their first and last labels, and the verb.

    >>> _in_words("abcdef", [0, 1, 2, 4]), _in_words("abcdef", [3])
    ('a to c and e have', 'd has')
    """
    there = set(places)
    begins, ends = ([place for place in places if place + step not in there] for step in (-1, 1))
    told = [labels[a] if a == z else f"{labels[a]} to {labels[z]}" for a, z in zip(begins, ends, strict=True)]
    more = [f"{len(told) - 3:,} more gaps"] if len(told) > 4 else []
    told = told[:3] + more if more else told
    return f"{', '.join(told[:-1])}{' and ' if told[1:] else ''}{told[-1] if told else ''} " + (
        "has" if len(places) == 1 else "have"
    )


def _may_hold_hours(facts: Facts, table: Any) -> bool:
    """Whether the times can say an hour, as far as names, types and formats tell, which are public."""
    if facts.time_format is not None:
        return any(sign in facts.time_format.replace("%-", "%") for sign in ("%H", "%I", "%T", "%R", "%X", "%c", "%s"))
    if facts.wide:
        # No date alone is written longer than 2013-01-31.
        return any(len(name.strip()) > len("2013-01-31") for name in table.columns if name != facts.user)
    return not table[facts.place].type().is_date()


def read(scope: Scope, *, progress: Callable[[float], None] | None = None) -> BoundedQuery:
    """The private queries, one for each candidate. Not an answer: nothing protects them."""
    try:
        table = _open(scope)
    except SourceError as failure:
        if _rows_play_no_part(scope.facts):
            raise NothingRead(failure.args[0]) from None
        raise
    if scope.facts.is_series:
        return scope.series(table)
    return bounded_query(table, scope.question, scope.candidates, progress=progress)


def _rows_play_no_part(facts: Facts) -> bool:
    """Whether that a source cannot be opened is the same whatever rows it holds.

    A server is asked for the names and types of the columns, and a file that is gone has no rows. Any other file is
    looked into to open it, and what is wrong with it may be one person's row.
    """
    if isinstance(facts.source, str) and facts.source.partition("://")[0].lower() in _SERVERS:
        return True
    return bool(facts.inputs) and not any(set(one) & set("*?[") or is_there(one) for one in facts.inputs)


def _open(scope: Scope) -> Any:
    """The table, as Ibis sees it. No row is read: names of columns that stand in the rows are those of the question."""
    facts = scope.facts
    if facts.is_series:
        used: tuple[str | None, ...] = (facts.place, facts.value, facts.hour)
    else:
        used = (*stated_columns(scope.question, scope.candidates), facts.hour)
    table = open_table(
        facts.source,
        backend=facts.backend,
        table=facts.table,
        delimiter=facts.delimiter,
        columns=[name for name in dict.fromkeys(used) if name],
    )
    return table if facts.hour is None else with_hours(table, date=facts.time or "", hour=facts.hour)


def open_table(
    source: Any,
    *,
    backend: str | None,
    table: str | None,
    delimiter: str | None,
    columns: Sequence[str] | None = None,
) -> Any:
    """The table where it is. Without ``columns`` rows may be read to find their names: for the curator alone."""
    between = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    return open_source(source, backend=backend or "duckdb", table=table, delimiter=between, columns=columns)
