"""The private side of a data set: the table is opened, checked and added up here, and nowhere else in this room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpselect.errors import InvalidParameter, SourceError

if TYPE_CHECKING:
    from dpselect.dataset.dataset import Dataset
    from dpselect.dataset.scope import Scope
    from dpselect.tables import BoundedQuery


def check(scope: Scope) -> None:
    """Opens the table for its column names and types only, and refuses what is missing."""
    from dpselect.tables.rows import check_columns, usable_rows

    dataset = scope.dataset
    dataset.refuse_children()
    table = _open(dataset)
    if dataset.is_series:
        check_columns(table, [dataset.place, dataset.value])
    else:
        usable_rows(table, scope.question, scope.candidates)
    if scope.needs_hours and not _may_hold_hours(dataset, table):
        raise InvalidParameter(
            "the times of this table are dates without an hour, and all of them would count as 00:00: "
            + ("ask per day" if dataset.wide else "name the column of hours with ‹hour›, or ask per day")
            + " (‹every› day)",
            parameter="every" if dataset.wide else "hour",
        )
    if dataset.wide:
        _refuse_days_without_column(scope, table)


def _refuse_days_without_column(scope: Scope, table: Any) -> None:
    """Refuses dates before the first column or after the last: all of them would count as 0. Names are public."""
    from dpselect.tables import Categories, Cycle
    from dpselect.tables.wide import column_places

    candidates = scope.candidates
    if isinstance(candidates, Categories):
        return
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    named = column_places(table, scope.question, calendar).values()
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


def _may_hold_hours(facts: Dataset, table: Any) -> bool:
    """Whether the times can say an hour, as far as names, types and formats tell, which are public."""
    if facts.time_format is not None:
        return any(sign in facts.time_format.replace("%-", "%") for sign in ("%H", "%I", "%T", "%R", "%X", "%c", "%s"))
    if facts.wide:
        # No date alone is written longer than 2013-01-31.
        return any(len(name.strip()) > len("2013-01-31") for name in table.columns if name != facts.user)
    return not table[facts.place].type().is_date()


def read(scope: Scope, *, progress: Callable[[float], None] | None = None) -> BoundedQuery:
    """The private queries, one for each candidate. Not an answer: nothing protects them."""
    from dpselect.tables import bounded_query

    table = _open(scope.dataset)
    if scope.dataset.is_series:
        return scope.series(table)
    return bounded_query(table, scope.question, scope.candidates, progress=progress)


def _open(dataset: Dataset) -> Any:
    """The table, as Ibis sees it; nothing is read yet beyond names and types."""
    from dpselect.tables.rows import with_hours

    table = open_table(dataset.source, backend=dataset.backend, table=dataset.table, delimiter=dataset.delimiter)
    return table if dataset.hour is None else with_hours(table, date=dataset.time or "", hour=dataset.hour)


def open_table(source: Any, *, backend: str | None, table: str | None, delimiter: str | None) -> Any:
    """The table where it is, its columns as they are."""
    from dpselect.tables import open_source

    between = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    return open_source(source, backend=backend or "duckdb", table=table, delimiter=between)
