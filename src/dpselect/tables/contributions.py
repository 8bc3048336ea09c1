"""What each person adds to each candidate, and what the curator may know of the rows."""

from __future__ import annotations

from dpselect.tables.candidates import Candidates
from dpselect.tables.curator import CuratorReport
from dpselect.tables.passes import fetched
from dpselect.tables.question import Question
from dpselect.tables.readings import rounded_quotient, steps
from dpselect.tables.rows import described_rows, listed, slot_keys, slotted_rows, usable_rows
from dpselect.tables.source import Table


def candidate_totals(table: Table, question: Question, candidates: Candidates) -> Table:
    """``key`` and ``total``: the steps of all persons, for each candidate that has any.

    What has another key than a candidate's number is made of rows that do not count.
    """
    each = contributions(slotted_rows(table, question, candidates), question)
    summed = each.group_by("slot").agg(total=each["steps"].sum())
    return summed.select(key=slot_keys(summed["slot"], candidates), total="total")


def contributions(rows: Table, question: Question) -> Table:
    """What each person adds to each candidate: ``person``, ``slot``, ``steps`` between 0 and the grid.

    Whatever one person's rows hold, and wherever they lie, they end in one number in [0, grid] per candidate.
    This is where the sensitivity comes from.
    """
    import ibis

    gathered = gathered_steps(rows, question)
    # Below 0 only if an engine's 64-bit sum wrapped around, after some four billion rows of one person.
    cut = ibis.least(ibis.greatest(gathered["steps"], 0), question.grid)
    return gathered.mutate(steps=cut)


def gathered_steps(rows: Table, question: Question) -> Table:
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


def examine(table: Table, question: Question, candidates: Candidates, *, totals_cut: int) -> CuratorReport:
    """Counts what was left out or cut; each row is counted under the first reason that applies."""
    rows = described_rows(table, question, candidates)
    person, key, number = rows["person"].notnull(), rows["key"].notnull(), rows["reading"].notnull()
    inside = listed(rows["key"], question, candidates)
    counts = person & key & inside & number
    used = usable_rows(table, question, candidates)
    gathered = gathered_steps(used, question)
    distinct = used.select("person", "stamp").distinct()
    passes = (
        rows.agg(
            rows=rows.count(),
            without_user=(~person).sum(),
            without_candidate=(person & ~key).sum(),
            outside_candidates=(person & key & ~inside).sum(),
            without_reading=(person & key & inside & ~number).sum(),
            used=counts.sum(),
            negative=(counts & (rows["reading"] < 0)).sum(),
            above_cap=(counts & (rows["reading"] > float(question.exact_cap))).sum(),
        ),
        gathered.agg(
            users=gathered["person"].nunique(),
            contributions=gathered.count(),
            contributions_at_cap=(gathered["steps"] >= question.grid).sum(),
        ),
        distinct.agg(unique=distinct.count()),
    )
    found: dict[str, int] = {}
    for part in passes:
        counted = fetched(part, doing="counting rows for the curator").to_pylist()[0]
        found |= {name: int(number or 0) for name, number in counted.items()}
    found["duplicates"] = found["used"] - found.pop("unique")
    if question.measure == "count":
        found["above_cap"] = found["negative"] = found["contributions_at_cap"] = 0
    return CuratorReport(**found, totals_cut=totals_cut)
