"""The private side of a data set: the table is opened, checked and added up here, and nowhere else in this room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidParameter, SourceError

if TYPE_CHECKING:
    from dpselect.dataset.facts import Facts
    from dpselect.tables import BoundedQuery, Candidates


def check(facts: Facts, candidates: Candidates) -> None:
    """Opens the table for its column names and types only, and refuses what is missing."""
    from dpselect.tables.rows import check_columns, usable_rows

    table = open_rows(facts)
    if facts.is_series:
        check_columns(table, [facts.place, facts.value])
    else:
        usable_rows(table, facts.question(candidates), candidates)
    if facts.needs_hours(candidates) and not _may_hold_hours(facts, table):
        raise InvalidParameter(
            "the times of this table are dates without an hour, and all of them would count as 00:00: "
            + ("ask per day" if facts.wide else "name the column of hours with ‹hour›, or ask per day")
            + " (‹every› day)",
            parameter="every" if facts.wide else "hour",
        )
    if facts.wide:
        _refuse_days_without_column(facts, table, candidates)


def _refuse_days_without_column(facts: Facts, table: Any, candidates: Candidates) -> None:
    """Refuses dates before the first column or after the last: all of them would count as 0. Names are public."""
    from dpselect.tables import Categories, Cycle
    from dpselect.tables.wide import column_places

    if isinstance(candidates, Categories):
        return
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    named = column_places(table, facts.question(candidates), calendar).values()
    labels, first, last = calendar.labels, min(named), max(named)
    missing = [(0, first - 1, f"begin with ‹start› {labels[first]}")] if first else []
    if last < len(labels) - 1:
        missing.append((last + 1, len(labels) - 1, f"end with ‹end› {labels[last]}"))
    if missing:
        gaps = [labels[one] if one == other else f"{labels[one]} to {labels[other]}" for one, other, _ in missing]
        one = len(missing) == 1 and missing[0][0] == missing[0][1]
        raise SourceError(
            f"{' and '.join(gaps)} {'has' if one else 'have'} no column, and would count as 0: "
            + " and ".join(remedy for *_, remedy in missing)
        )


def _may_hold_hours(facts: Facts, table: Any) -> bool:
    """Whether the times can say an hour, as far as names, types and formats tell, which are public."""
    if facts.time_format is not None:
        return any(sign in facts.time_format.replace("%-", "%") for sign in ("%H", "%I", "%T", "%R", "%X", "%c", "%s"))
    if facts.wide:
        # No date alone is written longer than 2013-01-31.
        return any(len(name.strip()) > len("2013-01-31") for name in table.columns if name != facts.user)
    return not table[facts.place].type().is_date()


def read(facts: Facts, candidates: Candidates, *, progress: Callable[[float], None] | None = None) -> BoundedQuery:
    """The private queries, one for each candidate. Not an answer: nothing protects them."""
    from dpselect import tables

    table = open_rows(facts)
    if facts.is_series:
        return facts.series(table, candidates)
    return tables.bounded_query(table, facts.question(candidates), candidates, progress=progress)


def open_rows(facts: Facts) -> Any:
    """The table, as Ibis sees it; nothing is read yet beyond names and types."""
    from dpselect.tables.rows import with_hours

    table = open_table(facts.source, backend=facts.backend, table=facts.table, delimiter=facts.delimiter)
    return table if facts.hour is None else with_hours(table, date=facts.time or "", hour=facts.hour)


def open_table(source: Any, *, backend: str | None, table: str | None, delimiter: str | None) -> Any:
    """The table where it is, its columns as they are."""
    from dpselect.tables import open_source

    between = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    return open_source(source, backend=backend or "duckdb", table=table, delimiter=between)
