"""Each row's person, candidate and reading, and each person's contribution, as Ibis expressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter, SourceError
from dpselect.tables.calendar import Calendar, Candidates, Categories
from dpselect.tables.curator import CuratorReport
from dpselect.tables.instants import period_index
from dpselect.tables.question import Question
from dpselect.tables.readings import INFINITE, reading, rounded_quotient, steps
from dpselect.tables.source import Table, engine_failures
from dpselect.tables.texts import Expression


def usable_rows(table: Table, question: Question, candidates: Candidates) -> Table:
    """The rows that count: a person, a public candidate, a finite reading."""
    if question.time is not None and isinstance(candidates, Calendar) and question.time in table.columns:
        table = _within(table, question.time, candidates)
    rows = described_rows(table, question, candidates)
    return rows.filter(rows["person"].notnull(), _listed(rows["key"], question, candidates), rows["reading"].notnull())


def described_rows(table: Table, question: Question, candidates: Candidates) -> Table:
    """Every row as ``person``, ``stamp`` (the raw time, category or column), ``key`` and ``reading``.

    ``key`` is a listed category's name or a candidate's number; a null says that there is nothing usable.
    """
    _check_candidates(question, candidates)
    check_columns(table, [question.user, question.time, question.category, question.value])
    if question.shape == "wide":
        return _from_wide(table, question, candidates)
    value = reading(table[question.value]) if question.value else table[question.user].notnull().cast("int64")
    if isinstance(candidates, Calendar):
        stamp = table[question.time]
        key = period_index(stamp, calendar=candidates, time_format=question.time_format)
    else:
        stamp = key = _category(table[question.category])
    return table.select(person=_person(table[question.user]), stamp=stamp, key=key, reading=value)


def check_columns(table: Table, names: Iterable[str | None]) -> None:
    """Refuses a name that is no column of the table."""
    for name in filter(None, names):
        if name not in table.columns:
            shown = ", ".join(table.columns[:12]) + (", ..." if len(table.columns) > 12 else "")
            raise SourceError(f"the table has no column {name!r}; it has {shown}")


def contributions(rows: Table, question: Question) -> Table:
    """What each person adds to each candidate: ``person``, ``key``, ``steps`` between 0 and the grid.

    Whatever one person's rows hold, and wherever they lie, they end in one number in [0, grid] per candidate.
    This is where the sensitivity comes from.
    """
    import ibis

    gathered = gathered_steps(rows, question)
    cut = ibis.ifelse(gathered["steps"] > question.grid, question.grid, gathered["steps"])
    # Below 0 only if an engine's 64-bit sum wrapped around, after some four billion rows of one person.
    return gathered.mutate(steps=ibis.ifelse(cut < 0, 0, cut))


def gathered_steps(rows: Table, question: Question) -> Table:
    """Each person's readings for each candidate as one number of steps, not yet cut."""
    if question.duplicates == "largest":
        rows = rows.group_by("person", "stamp", "key").agg(reading=rows["reading"].max())
    if question.measure == "count":
        # Each row is one step, and the cut at one step makes presence of it.
        stepped = rows.select("person", "key", steps=rows["person"].notnull().cast("int64"))
    else:
        stepped = rows.select("person", "key", steps=steps(rows["reading"], cap=question.exact_cap, grid=question.grid))
    each = stepped["steps"]
    combined = {"sum": each.sum, "max": each.max, "mean": lambda: rounded_quotient(each.sum(), each.count())}
    how = "sum" if question.measure == "count" else question.per_user
    return stepped.group_by("person", "key").agg(steps=combined[how]())


def readable_times(table: Table, question: Question, candidates: Candidates) -> bool:
    """False when times are text and not one can be read: a wrong format rather than a few bad rows."""
    if question.time is None or not table[question.time].type().is_string():
        return True
    rows = described_rows(table, question, candidates)
    with engine_failures("reading the times"):
        found = rows.agg(texts=rows["stamp"].count(), read=rows["key"].count()).to_pyarrow().to_pylist()[0]
    return bool(found["read"] or not found["texts"])


def examine(table: Table, question: Question, candidates: Candidates, *, totals_cut: int) -> CuratorReport:
    """Counts what was left out or cut; each row is counted under the first reason that applies."""
    rows = described_rows(table, question, candidates)
    person, key, value = rows["person"].notnull(), rows["key"].notnull(), rows["reading"].notnull()
    listed = _listed(rows["key"], question, candidates)
    used = usable_rows(table, question, candidates)
    gathered = gathered_steps(used, question)
    distinct = used.select("person", "stamp").distinct()
    over_cap = used["reading"] > float(question.exact_cap)
    with engine_failures("counting rows for the curator"):
        seen = rows.agg(
            rows=rows.count(),
            without_user=(~person).sum(),
            without_candidate=(person & ~key).sum(),
            outside_candidates=(person & key & ~listed).sum(),
            without_reading=(person & key & listed & ~value).sum(),
        )
        kept = used.agg(
            used=used.count(),
            negative=(used["reading"] < 0).sum(),
            above_cap=over_cap.sum(),
            users=used["person"].nunique(),
        )
        cut = gathered.agg(contributions_at_cap=(gathered["steps"] >= question.grid).sum())
        unique = distinct.agg(unique=distinct.count())
        found: dict[str, int] = {}
        for part in (seen, kept, cut, unique):
            found |= {name: int(number or 0) for name, number in part.to_pyarrow().to_pylist()[0].items()}
    found["duplicates"] = found["used"] - found.pop("unique")
    if question.measure == "count":
        found["above_cap"] = found["negative"] = found["contributions_at_cap"] = 0
    return CuratorReport(**found, totals_cut=totals_cut)


def _check_candidates(question: Question, candidates: object) -> None:
    if not isinstance(candidates, Calendar | Categories):
        raise refuse("candidates", candidates, "a Calendar or Categories, given by the curator")
    if question.time is not None and not isinstance(candidates, Calendar):
        raise InvalidParameter("a question with a time column needs a Calendar of candidates")
    if question.category is not None and not isinstance(candidates, Categories):
        raise InvalidParameter("a question with a category column needs Categories as candidates")


def _within(table: Table, time: str, calendar: Calendar) -> Table:
    """Only rows near the calendar, by plain comparisons that engines use to skip parts of files."""
    import ibis

    kind = table[time].type()
    if kind.is_date():
        first, past = ibis.literal(calendar.first.date()), ibis.literal(calendar.past.date())
        return table.filter(table[time] >= first, table[time] <= past)
    if kind.is_timestamp() and kind.timezone is None:
        return table.filter(table[time] >= ibis.literal(calendar.first), table[time] < ibis.literal(calendar.past))
    return table


def _listed(key: Expression, question: Question, candidates: Candidates) -> Expression:
    if question.category is not None:
        return key.isin(candidates.labels)
    return key.between(0, len(candidates) - 1)


def _person(column: Expression) -> Expression:
    """Who a row belongs to, null when it does not say: an empty text and NaN name nobody."""
    import ibis

    kind = column.type()
    if kind.is_string():
        return column.nullif("")
    if kind.is_floating():
        # Adding 0.0 makes one person of 0.0 and -0.0.
        return ibis.ifelse((column > -INFINITE) & (column < INFINITE), column + 0.0, ibis.null(kind))
    return column


def _category(column: Expression) -> Expression:
    kind = column.type()
    if kind.is_string():
        return column.nullif("")
    if kind.is_integer():
        return column.cast("string")
    raise SourceError(
        f"category column {column.get_name()!r} must hold text or whole numbers; it holds {kind}: convert it"
    )


def _from_wide(table: Table, question: Question, candidates: Candidates) -> Table:
    """A wide table turned long; column names, not rows, say which candidate a cell belongs to."""
    places: dict[str, int] = {}
    for column in table.columns:
        place = _column_index(column, question, candidates)
        if column != question.user and place is not None:
            places[column] = place
    if not places:
        raise SourceError(
            "no column of the wide table is named after a candidate; check the calendar, or give time_format"
        )
    kinds = {table[column].type().copy(nullable=True) for column in places}
    alike = len(kinds) == 1
    cells, seen = {}, Counter[int]()
    for column, place in places.items():
        cells[f"{place}_{seen[place]}"] = table[column] if alike else reading(table[column])
        seen[place] += 1
    narrow = table.select(person=_person(table[question.user]), **cells)
    long = narrow.pivot_longer(
        list(cells),
        names_to=["key", "copy"],
        names_pattern=r"(\d+)_(\d+)",
        names_transform=int,
        values_to="cell",
    )
    # The column's own number stands in for the raw time: candidate and copy in one integer.
    stamp = long["key"].cast("int64") * (max(seen.values()) + 1) + long["copy"].cast("int64")
    value = reading(long["cell"]) if alike else long["cell"]
    return long.select("person", stamp=stamp, key=long["key"].cast("int64"), reading=value)


def _column_index(column: str, question: Question, candidates: Candidates) -> int | None:
    if isinstance(candidates, Categories):
        return candidates.labels.index(column) if column in candidates.labels else None
    text = column.strip()
    try:
        if question.time_format is not None:
            return candidates.index(datetime.strptime(text, question.time_format))
        return candidates.index(datetime.strptime(text, "%Y-%m") if len(text) == 7 else datetime.fromisoformat(text))
    except ValueError:
        return None
