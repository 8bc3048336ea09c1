"""From a table and a question to bounded, fixed-point queries (THEORY §8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpselect.checks import FloatArray
from dpselect.errors import InvalidParameter
from dpselect.privacy.family import QueryFamily
from dpselect.tables.candidates import Candidates
from dpselect.tables.curator import CuratorReport, examine, refuse_unread_table
from dpselect.tables.parts import Table
from dpselect.tables.passes import Progress, fetched, watched
from dpselect.tables.question import Question
from dpselect.tables.readings import contributions
from dpselect.tables.rows import slot_keys, slotted_rows
from dpselect.tables.source import open_source
from dpselect.tables.wide import stated_columns

#: Uncut values end at so many times the range, or less where the population is large.
_FARTHEST = 2**20
#: η, by how much they are drawn together beyond the range.
_DRAWN_TOGETHER = Fraction(1, 2**10)


@dataclass(frozen=True, kw_only=True, repr=False)
class BoundedQuery:
    """One query per candidate, each within the family's range. The values are private: for mechanisms only.

    Attributes
    ----------
    labels : tuple of str
        The public candidates.
    family : QueryFamily
        The public range, Δ and direction.
    totals : tuple of int
        The exact integers, in steps.
    step : Fraction
        What one step is worth: query = total · step. For a series it follows the data, and is private.
    natural_unit : Fraction
        What a query of 1 is in the readings' unit.
    uncut : tuple of int, optional
        The integers before they were cut to the range; left out where nothing was cut.
    """

    labels: tuple[str, ...]
    family: QueryFamily
    totals: tuple[int, ...]
    step: Fraction
    natural_unit: Fraction = Fraction(1)
    uncut: tuple[int, ...] | None = None
    examine: Callable[[], CuratorReport] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"BoundedQuery({len(self)} candidates, {self.family!r}, values withheld)"

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def exact_values(self) -> tuple[Fraction, ...]:
        """The queries as exact fractions."""
        return tuple(total * self.step for total in self.totals)

    @cached_property
    def values(self) -> FloatArray:
        """The queries as the nearest doubles. The family's Δ allows for this rounding."""
        return np.array([float(value) for value in self.exact_values], dtype=np.float64)

    @cached_property
    def uncut_values(self) -> FloatArray:
        """The same without the cut at the range: for a mechanism whose cost asks for Δ and not for the range.

        One person still moves each by at most Δ, and all of them one way where the family is monotone. Every query goes
        through one rising function: the nearest double up to the range's end, as above. What lies beyond it is first
        drawn together by a factor of 1 - η, and then rounded down. Of two numbers beyond, Δ apart, rounding adds less
        than the ulp of the largest, and η·Δ is at least that; where one of them is within the range, rounding down the
        other adds nothing. Not where Δ is the whole range, or where so many persons leave no room for η.

        The work is the same for every table, so that its time does not tell whether the range was exceeded.
        """
        upper, delta = Fraction(self.family.upper), Fraction(self.family.sensitivity)
        most = _FARTHEST
        while most > 1 and Fraction(math.ulp(float(most * upper))) > delta * _DRAWN_TOGETHER:
            most //= 2
        if most == 1 or self.family.sensitivity >= self.family.width:
            return self.values
        found = []
        for total in self.totals if self.uncut is None else self.uncut:
            exact = total * self.step
            within = float(min(exact, upper))
            beyond = upper + (min(exact, most * upper) - upper) * (1 - _DRAWN_TOGETHER)
            nearest = float(beyond)
            below = math.nextafter(nearest, 0.0)
            found.append((within, below if Fraction(nearest) > beyond else nearest)[exact > upper])
        return np.array(found, dtype=np.float64)

    def query_at(self, natural: int | float | Fraction) -> float:
        """A number in the readings' unit (a threshold, say) on the scale of the queries."""
        return float(Fraction(natural) / self.natural_unit)

    @cached_property
    def curator_report(self) -> CuratorReport:
        """Counts of the rows left out or cut, sensitive; taken when first asked for, in extra passes."""
        if self.examine is None:
            return CuratorReport()
        return self.examine()


def bounded_query(
    source: object, question: Question, candidates: Candidates, *, progress: Progress | None = None
) -> BoundedQuery:
    """Asks a question of a table: one bounded query per public candidate.

    The same rows give the same integers on every engine, in any order and any partitioning.

    Parameters
    ----------
    source : ibis.Table or object
        A table, or anything :func:`~dpselect.tables.open_source` opens with its defaults.
    question : Question
        What is asked.
    candidates : Calendar or Categories
        The public periods or categories.
    progress : callable, optional
        Called now and then with the share done, from 0 to 1, where the engine tells (DuckDB does).

    Examples
    --------
    >>> import pyarrow
    >>> from dpselect.tables import Calendar
    >>> readings = pyarrow.table({
    ...     "meter": ["a", "a", "b"],
    ...     "at": ["2013-01-01", "2013-01-01", "2013-01-02"],
    ...     "kwh": [1.5, 99.0, 2.0],
    ... })
    >>> question = Question(user="meter", time="at", value="kwh", cap=10, grid=100, population=4)
    >>> answer = bounded_query(readings, question, Calendar("2013-01-01", "2013-01-03"))
    >>> answer.totals
    (100, 20, 0)
    >>> answer.values.tolist()
    [0.25, 0.05, 0.0]
    >>> answer.family.sensitivity  # 1/4, and a little more for rounding the values to doubles
    0.25000000000000...
    """
    if not isinstance(question, Question):
        raise InvalidParameter(f"question must be a Question; got {type(question).__name__}")
    table = open_source(source, columns=stated_columns(question, candidates))
    totals_asked = candidate_totals(table, question, candidates)
    with watched(table, progress):
        counted = fetched(totals_asked, doing="answering the question").to_pydict()
    found = zip(counted["key"], counted["total"], strict=True)
    by_key = {key: total for key, total in found if key is not None and 0 <= key < len(candidates)}
    if not by_key:
        refuse_unread_table(table, question, candidates)
    # More persons than the public N must not push a query out of its range; the cut keeps Δ and direction.
    uncut = tuple(max(0, int(by_key.get(key, 0))) for key in range(len(candidates)))
    totals = tuple(min(total, question.most_steps) for total in uncut)
    cut = sum(total > question.most_steps for total in uncut)
    return BoundedQuery(
        labels=candidates.labels,
        family=question.family,
        totals=totals,
        step=question.step,
        natural_unit=question.natural_unit,
        uncut=uncut,
        examine=lambda: examine(table, question, candidates, totals_cut=cut),
    )


def candidate_totals(table: Table, question: Question, candidates: Candidates) -> Table:
    """``key`` and ``total``: the steps of all persons, for each candidate that has any.

    What has another key than a candidate's number is made of rows that do not count.
    """
    each = contributions(slotted_rows(table, question, candidates), question)
    summed = each.group_by("slot").agg(total=each["steps"].sum())
    return summed.select(key=slot_keys(summed["slot"], candidates), total="total")
