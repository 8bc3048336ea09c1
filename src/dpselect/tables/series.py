"""Queries from a series that somebody already added up over persons: one row per period, nobody named."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import cast

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter
from dpselect.privacy.family import QueryFamily
from dpselect.rounding import exact_number
from dpselect.tables.answer import BoundedQuery
from dpselect.tables.calendar import Calendar, Categories
from dpselect.tables.candidates import Candidates, Cycle
from dpselect.tables.curator import CuratorReport, Seen, refuse_unread
from dpselect.tables.failures import engine_failures
from dpselect.tables.instants import carries_zone, period_index, stamp_of
from dpselect.tables.parts import Expression, bytewise
from dpselect.tables.passes import fetched
from dpselect.tables.question import DecimalSign, choice, whole_number, written_sensitivity
from dpselect.tables.readings import is_written, reading
from dpselect.tables.rows import category_text, check_columns, slot_keys
from dpselect.tables.source import open_source


def series_query(
    source: object,
    *,
    time: str,
    value: str,
    candidates: Candidates,
    maximum: int | float | str | Fraction | Decimal,
    population: int | None = None,
    sensitivity: int | float | str | Fraction | Decimal | None = None,
    monotone: bool = False,
    time_format: str | None = None,
    decimal: DecimalSign = ".",
) -> BoundedQuery:
    """Queries in [0, 1] from an aggregate series: each period's value as a share of a public maximum.

    Nothing in such a table says what one person did, so nothing here can bound it: **the curator vouches for
    Δ**. If one person can move a period's value by more than declared, the guarantee does not hold.

    Parameters
    ----------
    source : ibis.Table or object
        A table, or anything :func:`~dpselect.tables.open_source` opens with its defaults.
    time, value : str
        The columns: the time (or the category), and the value. Rows of one period are added up, exactly; a period
        without rows has value 0.
    candidates : Calendar, Cycle or Categories
        The public periods or categories. The value of a weekday, or of another part of a cycle, is the mean over all
        that lie within the dates: a public number divides the sum, so that Δ is that of one of them.
    maximum : number or str
        A public number; values above it count as it, values below 0 as 0.
    population : int
        Declares Δ = 1/population: no person moves a value by more than maximum / population.
    sensitivity : number or str
        Or declares it in the series' own unit: no person moves a value by more than this.
    monotone : bool
        Declares that adding a person never lowers any value (as for counts of trips) and neighbours differ by
        adding or removing one person.
    time_format, decimal : str, optional
        As in :class:`~dpselect.tables.Question`.

    Examples
    --------
    >>> import pyarrow
    >>> days = pyarrow.table({"day": ["2011-01-01", "2011-01-02"], "trips": [654, 670]})
    >>> january = Calendar("2011-01-01", "2011-01-03")
    >>> answer = series_query(
    ...     days, time="day", value="trips", candidates=january, maximum=1000, population=1000)
    >>> answer.values.tolist()
    [0.654, 0.67, 0.0]
    """
    if not isinstance(candidates, Calendar | Cycle | Categories):
        raise refuse("candidates", candidates, "a Calendar, a Cycle or Categories, given by the curator")
    top = exact_number("maximum", maximum)
    if top <= 0:
        raise refuse("maximum", maximum, "positive")
    choice("decimal", decimal, DecimalSign)
    delta = _declared(top, population, sensitivity)
    table = open_source(source, columns=(time, value))
    check_columns(table, [time, value])
    with engine_failures("reading the series"):
        stamp, number = stamp_of(table[time]), bytewise(table[value])
        rows = table.select(
            there=is_written(stamp) if stamp.type().is_string() else stamp.notnull(),
            key=_key(stamp, candidates, time_format),
            reading=reading(number, decimal=decimal).or_null(),
            zoned=carries_zone(stamp) if stamp.type().is_string() else stamp.notnull() & False,
            written=is_written(number),
        )
        found = fetched(rows, doing="reading the series").to_pydict()
    sums: defaultdict[int, Fraction] = defaultdict(Fraction)
    used = 0
    for key, number in zip(found["key"], found["reading"], strict=True):
        if key is not None and 0 <= key < len(candidates) and number is not None:
            sums[int(key)] += Fraction(number)
            used += 1
    inside = [key is not None and 0 <= key < len(candidates) for key in found["key"]]
    if not used:
        seen = Seen(
            times=sum(bool(there) for there in found["there"]),
            read=sum(key is not None for key in found["key"]),
            zoned=sum(bool(zoned) for zoned in found["zoned"]),
            inside=sum(inside),
            written=sum(bool(written) and within for written, within in zip(found["written"], inside, strict=True)),
            numbers=0,
        )
        refuse_unread(seen, place=time, value=value, candidates=candidates)
    # A weekday that never comes within the dates has no rows either: any number divides its 0.
    often = [max(1, one) for one in candidates.occurrences] if isinstance(candidates, Cycle) else [1] * len(candidates)
    means = [sums[index] / often[index] for index in range(len(candidates))]
    shares = [min(Fraction(1), max(Fraction(0), mean / top)) for mean in means]
    step = Fraction(1, lcm(*(share.denominator for share in shares)))
    family = QueryFamily(
        lower=0.0,
        upper=1.0,
        # The step of this table is private, so Δ allows for rounding whether or not it happens.
        sensitivity=cast(float, min(written_sensitivity(delta, step=Fraction(1, 3), upper=Fraction(1)), Fraction(1))),
        monotone=monotone,
    )
    report = CuratorReport(
        rows=len(found["key"]),
        without_candidate=sum(key is None for key in found["key"]),
        outside_candidates=sum(key is not None and not 0 <= key < len(candidates) for key in found["key"]),
        without_reading=sum(number is None for number in found["reading"]),
        used=used,
        totals_cut=sum(mean > top for mean in means),
    )
    return BoundedQuery(
        labels=candidates.labels,
        family=family,
        totals=tuple(int(share / step) for share in shares),
        step=step,
        natural_unit=top,
        examine=lambda: report,
    )


def _key(stamp: Expression, candidates: Candidates, time_format: str | None) -> Expression:
    """The number of the candidate a row belongs to."""
    if isinstance(candidates, Cycle):
        return candidates.of_period(period_index(stamp, calendar=candidates.calendar, time_format=time_format))
    if isinstance(candidates, Calendar):
        return period_index(stamp, calendar=candidates, time_format=time_format)
    return slot_keys(category_text(stamp), candidates)


def _declared(top: Fraction, population: int | None, sensitivity: object) -> Fraction:
    if (population is None) == (sensitivity is None):
        raise InvalidParameter("declare what one person can change: give ‹population› or ‹sensitivity›, one of them")
    if population is not None:
        return Fraction(1, whole_number("population", population, most=2**53))
    declared = exact_number("sensitivity", sensitivity)
    if declared <= 0:
        raise refuse("sensitivity", sensitivity, "positive")
    return declared / top
