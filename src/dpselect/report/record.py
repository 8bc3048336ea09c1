"""What a report tells: a question, its answer, the guarantee, and the public parameters. Never rows or raw values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dpselect.mechanisms.mechanism import Noise
from dpselect.report.guarantee import Guarantee

#: A label and a text.
Entry = tuple[str, str]

#: What lies across a drawing of a ledger: when it was, or the number of the entry.
Across = Literal["time", "entry"]


@dataclass(frozen=True, kw_only=True)
class Spending:
    """How the budget went after each answer, and which answers were above the line. Released, so it may be shown.

    Attributes
    ----------
    spent : tuple of float
        ε spent after each answer.
    above : tuple of int
        Places, from 0, of the answers above the line.
    budget : float
        The most that could be spent.
    first, last : str
        What the first and the last question are called.
    labels : tuple of str
        What every question is called, where that is known: drawn as a calendar.
    """

    spent: tuple[float, ...]
    above: tuple[int, ...]
    budget: float
    first: str = "first question"
    last: str = "last question"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Charged:
    """What a ledger has charged from each entry on.

    Attributes
    ----------
    at : tuple of str
        When each entry was made, as it is written.
    spent : tuple of float
        What was charged from then on.
    total : float
        The most that may be charged.
    unit : str
        ``ε`` or ``ρ``.
    """

    at: tuple[str, ...]
    spent: tuple[float, ...]
    total: float
    unit: str = "ε"

    def moments(self) -> list[datetime]:
        """When, in order: a clock that was set back counts as standing still."""
        found: list[datetime] = []
        for text in self.at:
            when = datetime.fromisoformat(text).astimezone(UTC)
            found.append(max(when, found[-1]) if found else when)
        return found


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One question and its released answer.

    Attributes
    ----------
    question, answer : str
        In words.
    details : tuple of (str, str)
        What else was released.
    listed : tuple of str
        Short texts of one kind, such as days: shown in columns, below ``listed_as``.
    table : tuple of tuples of str
        Rows to compare, the names of the columns first.
    spending : Spending, optional
        For answers given one by one.
    figure : str, optional
        An SVG drawing of public things.
    """

    question: str
    answer: str
    details: tuple[Entry, ...] = ()
    listed: tuple[str, ...] = ()
    listed_as: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    spending: Spending | None = None
    figure: str | None = None
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a reader needs to know about one use of private data.

    Attributes
    ----------
    title : str
        What the report is about.
    findings : tuple of Finding
        Questions and answers.
    guarantee : Guarantee
        For all the findings together.
    parameters : tuple of (str, str)
        Public parameters, so that the cost can be computed again.
    notes : tuple of str
        What the reader should know besides.
    simulated : bool
        Whether the data were simulated, and nobody's.
    made : datetime, optional
        When; left out where the report must be repeatable.
    """

    title: str
    findings: tuple[Finding, ...]
    guarantee: Guarantee
    parameters: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    simulated: bool = False
    made: datetime | None = None

    @property
    def noise(self) -> Noise:
        """Whether the noise can be repeated by someone who knows the seed."""
        return self.guarantee.noise


#: Stands wherever a seeded answer is shown.
NOT_PRIVATE = (
    "A seed was used: whoever knows it can undo the noise. These answers are reproducible, not private; "
    "do not publish them."
)
#: Said in place of what an answer adds to a running sum.
NOTHING_TO_ADD = (
    "A seed was used, so these answers promise nothing: no ε of theirs can go into a running sum, and none of them may "
    "be shown as private."
)
