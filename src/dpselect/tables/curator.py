"""What the curator, and nobody else, is told about the rows: counts of what was left out, and why nothing was read.

Whether a table is refused here depends on its rows. Like every error of this room, it is for the curator only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar
from dpselect.tables.candidates import Candidates, Cycle
from dpselect.tables.instants import carries_zone
from dpselect.tables.parts import Table
from dpselect.tables.passes import fetched
from dpselect.tables.question import Question
from dpselect.tables.readings import gathered_steps, is_written, may_merge
from dpselect.tables.rows import described_rows, listed, usable_rows

#: Stands in front of every curator's report.
SENSITIVE = "sensitive: for the curator only"
#: How many times too large a cap may be called. Steps this far apart say little of the rows.
_TIMES = (5, 10, 20, 50, 100, 200, 500, 1000)
#: Fewer contributions than this have no hundredth.
_FEW = 100


@dataclass(frozen=True, kw_only=True, repr=False)
class CuratorReport:
    """Exact counts of what was left out or cut: private data without noise, not to be published.

    Attributes
    ----------
    rows
        Rows of the table (cells with a candidate's name, for a wide one).
    without_user
        Left out: no person named.
    without_candidate
        Left out: no time or category, or a time that cannot be read.
    outside_candidates
        Left out: a time outside the calendar, or a category that is not listed.
    without_reading
        Left out: no reading, or NaN, infinite, or not a number.
    used
        Rows that count.
    negative
        Of those, readings below 0, which count as 0.
    above_cap
        Of those, single readings above the cap, which count as the cap.
    duplicates
        Of those, rows beyond the first of the same person and the same time (or category, or column).
    users
        Persons with at least one row that counts.
    contributions
        Pairs of a person and a candidate with at least one row that counts.
    contributions_at_cap
        Of those, the ones that reached the cap.
    cap_times_most
        How many times what 99 of 100 contributions come to the cap is at least: 1, 5, 10, 20, 50 ...
    merged
        Rows whose person is a number in floating point so large that whole numbers beside it are the same: two persons
        may count as one.
    totals_cut
        Candidates whose total was cut because more persons came than the public population.

    Examples
    --------
    >>> print(repr(CuratorReport(rows=3, used=3, users=2))[:38])
    CuratorReport(sensitive: for the curat
    """

    rows: int = 0
    without_user: int = 0
    without_candidate: int = 0
    outside_candidates: int = 0
    without_reading: int = 0
    used: int = 0
    negative: int = 0
    above_cap: int = 0
    duplicates: int = 0
    users: int = 0
    contributions: int = 0
    contributions_at_cap: int = 0
    cap_times_most: int = 1
    merged: int = 0
    totals_cut: int = 0

    def lines(self) -> tuple[str, ...]:
        """The report as lines of text, the warning first."""
        counts = tuple(f"{field.name.replace('_', ' ')}: {getattr(self, field.name):,}" for field in fields(self))
        return (SENSITIVE, *counts)

    def __repr__(self) -> str:
        counts = ", ".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))
        return f"CuratorReport({SENSITIVE}; {counts})"


def examine(table: Table, question: Question, candidates: Candidates, *, totals_cut: int) -> CuratorReport:
    """Counts what was left out or cut; each row is counted under the first reason that applies."""
    rows = described_rows(table, question, candidates)
    person, key, number = rows["person"].notnull(), rows["key"].notnull(), rows["reading"].notnull()
    inside = listed(rows["key"], question, candidates)
    counts = person & key & inside & number
    used = usable_rows(table, question, candidates)
    gathered = gathered_steps(used, question)
    distinct = used.select("person", "stamp").distinct()
    passes = [
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
            **{f"within {times}": (gathered["steps"] * times <= question.grid).sum() for times in _TIMES},
        ),
        distinct.agg(unique=distinct.count()),
    ]
    if table[question.user].type().is_floating():
        passes.append(table.agg(merged=may_merge(table[question.user]).sum()))
    found: dict[str, int] = {}
    for part in passes:
        counted = fetched(part, doing="counting rows for the curator").to_pylist()[0]
        found |= {name: int(number or 0) for name, number in counted.items()}
    found["duplicates"] = found["used"] - found.pop("unique")
    within = {times: found.pop(f"within {times}") for times in _TIMES}
    many = found["contributions"] >= _FEW and question.measure != "count"
    # A grid too coarse to tell such amounts from 0 tells nothing.
    far = [t for t, held in within.items() if 100 * held >= 99 * found["contributions"] and 10 * t <= question.grid]
    found["cap_times_most"] = max(far, default=1) if many else 1
    if question.measure == "count":
        found["above_cap"] = found["negative"] = found["contributions_at_cap"] = 0
    return CuratorReport(**found, totals_cut=totals_cut)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How many rows came how far: private counts, of which only zero or more than zero matters here.

    Attributes
    ----------
    times, read, zoned
        Times that are there, that can be read, and that are text with a time zone.
    inside
        Rows of a candidate.
    written, numbers
        Of those, readings given as text that is not empty, and readings that are numbers.
    """

    times: int
    read: int
    zoned: int
    inside: int
    written: int
    numbers: int


def refuse_unread(seen: Seen, *, place: str | None, value: str | None, candidates: Candidates) -> None:
    """One line for the first thing of which nothing could be used; ``None`` names the columns of a wide table."""
    if seen.times and not seen.read and isinstance(candidates, Calendar | Cycle):
        if seen.zoned and candidates.timezone is None:
            raise SourceError(
                f"no time in column {place!r} can be placed: they carry a time zone; give ‹timezone›, "
                "e.g. Europe/London"
            )
        raise SourceError(
            f"no time in column {place!r} can be read; write 2013-01-31 14:00 or give ‹time_format›, such as %d.%m.%Y"
        )
    if seen.read and not seen.inside:
        if isinstance(candidates, Calendar | Cycle):
            days = candidates if isinstance(candidates, Calendar) else candidates.calendar
            raise SourceError(
                f"no time in column {place!r} lies in the calendar, {days.labels[0]} to {days.labels[-1]}; check its "
                "dates and the column"
            )
        raise SourceError(f"no row of column {place!r} is of a listed category; check the list and the column")
    if seen.written and not seen.numbers:
        where = "the candidates' columns" if value is None else f"column {value!r}"
        raise SourceError(
            f"no reading in {where} is a number; write 12.5, with a point and without units, or give ‹decimal› ',' "
            "where they are written 12,5"
        )


def refuse_unread_table(table: Table, question: Question, candidates: Candidates) -> None:
    """Looks again at a table of which no row counted. A table without rows is fine, and answered with zeros."""
    rows = described_rows(table, question, candidates)
    stamp = rows["stamp"]
    inside = listed(rows["key"], question, candidates).fill_null(False)
    text = stamp.type().is_string()
    counted = rows.agg(
        times=is_written(stamp).sum() if text else stamp.count(),
        read=rows["key"].count(),
        zoned=carries_zone(stamp).sum() if text else stamp.count() * 0,
        inside=inside.sum(),
        written=(inside & rows["written"]).sum(),
        numbers=(inside & rows["reading"].notnull()).sum(),
    )
    found = fetched(counted, doing="finding out why no row counted").to_pylist()[0]
    seen = Seen(**{name: int(number or 0) for name, number in found.items()})
    refuse_unread(seen, place=question.time or question.category, value=question.value, candidates=candidates)
