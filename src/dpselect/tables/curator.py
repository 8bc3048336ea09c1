"""What the curator, and nobody else, is told about the rows."""

from __future__ import annotations

from dataclasses import dataclass, fields

#: Stands in front of every curator's report.
SENSITIVE = "sensitive: for the curator only"


@dataclass(frozen=True, kw_only=True, repr=False)
class CuratorReport:
    """Exact counts of what was left out or cut: private data without noise, not to be published.

    Attributes
    ----------
    rows
        Rows of the table (cells with a candidate's name, for a wide one).
    without_user
        Left out: no person named, or by a floating-point number from 2^53 on, where whole numbers merge (2^24 in single
        precision).
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
    totals_cut: int = 0

    def lines(self) -> tuple[str, ...]:
        """The report as lines of text, the warning first."""
        counts = tuple(f"{field.name.replace('_', ' ')}: {getattr(self, field.name):,}" for field in fields(self))
        return (SENSITIVE, *counts)

    def __repr__(self) -> str:
        counts = ", ".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))
        return f"CuratorReport({SENSITIVE}; {counts})"
