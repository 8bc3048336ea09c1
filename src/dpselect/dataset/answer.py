"""What peaks and watches share: a plan says what may be spent and what to expect, an answer prints itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

from dpselect.errors import InvalidParameter
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.page import fragment, write_page
from dpselect.report.record import Report
from dpselect.report.words import report_text
from dpselect.tables import CuratorReport

#: Longer periods to ask about instead, and how many of the shorter ones each holds.
COARSER = {"hour": (("days", 24),), "day": (("weeks", 7), ("months", 30)), "week": (("months", 4),)}


class AnswerPlan(ABC):
    """What an answer would cost and how good it would be, from public knowledge alone."""

    #: Which question it is: ``peak`` or ``watch``; and the parameter that says what its answer may cost.
    verb: ClassVar[str]
    priced_by: ClassVar[str]

    @property
    @abstractmethod
    def promise(self) -> Loss:
        """The most the answer may cost."""

    @property
    @abstractmethod
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than a guess that looks at no data."""

    @abstractmethod
    def refusal(self) -> str:
        """What to say, and what to do, where it is not."""

    @property
    @abstractmethod
    def caution(self) -> str | None:
        """What to know before paying, if anything."""

    @property
    def doubt(self) -> str | None:
        """What to say beside an answer that is better than a guess, and yet probably wrong."""
        return None

    @abstractmethod
    def to_dicts(self) -> list[dict[str, Any]]:
        """The plan as plain values, ready for JSON: one record, or one for each mechanism that was tried."""

    @property
    def weakness(self) -> str | None:
        """What to say of an ε too large to promise much."""
        return Guarantee(epsilon=self.promise.epsilon, delta=self.promise.delta).weakness

    def insist(self, *, anyway: bool) -> None:
        """Refuses what would hardly be better than a guess, unless it is wanted ``anyway``."""
        if not anyway and not self.useful:
            raise InvalidParameter(self.refusal(), parameter=self.priced_by)


class Answer(ABC):
    """An answer that was released, with its guarantee. Nothing private is printed or stored; ``examine`` reaches it."""

    #: For the curator only: exact counts of what was used, left out or cut.
    examine: Callable[[], CuratorReport] | None
    #: Whether the budget ended before the questions did.
    ended: bool = False

    @property
    def exhaustion(self) -> str:
        """What to say where the budget ended first."""
        return ""

    @abstractmethod
    def as_report(self) -> Report:
        """The answer as questions, findings, guarantee and public parameters."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, ready for JSON."""

    def records(self) -> Iterable[dict[str, Any]]:
        """The same as records, one a line: for a watch each verdict, and then how it ended."""
        return [self.to_dict()]

    def report(self, path: Path | str) -> Path:
        """Writes a page to read offline; an earlier page is replaced, any other file is refused."""
        return write_page(self.as_report(), path)

    def __str__(self) -> str:
        return report_text(self.as_report())

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return fragment(self.as_report())
