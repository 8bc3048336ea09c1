"""Refusing a table of which nothing at all was read: a wrong column or format rather than a few bad rows.

Whether a table is refused here depends on its rows. Like every error of this room, it is for the curator only.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpselect.errors import SourceError
from dpselect.tables.calendar import Calendar
from dpselect.tables.candidates import Candidates
from dpselect.tables.cycles import Cycle
from dpselect.tables.instants import carries_zone
from dpselect.tables.passes import fetched
from dpselect.tables.persons import person_of
from dpselect.tables.question import Question
from dpselect.tables.readings import INFINITE, is_written
from dpselect.tables.rows import described_rows, listed
from dpselect.tables.source import Table


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
    if table[question.user].type().is_floating():
        _refuse_merged(table, question.user)
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


def _refuse_merged(table: Table, name: str) -> None:
    """Refuses persons of whom all are numbers that may have merged, as pandas makes of whole numbers beside a gap."""
    column = table[name]
    named = (column > -INFINITE) & (column < INFINITE)  # NaN is none of them on any engine
    counted = table.agg(named=named.sum(), apart=person_of(column).usable.sum())
    found = fetched(counted, doing="finding out why no row counted").to_pylist()[0]
    if found["named"] and not found["apart"]:
        raise SourceError(
            f"the numbers in column {name!r} are too large for floating point, where whole numbers merge; convert them "
            "to text or to whole numbers (in pandas: Int64) where they are read"
        )
