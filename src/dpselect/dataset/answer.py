"""What every answer can do: print itself, stand in a notebook, become a page or a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from dpselect.report.record import Report


class Answer(ABC):
    """An answer that was released, with its guarantee. Holds nothing private but what it answers."""

    @abstractmethod
    def as_report(self) -> Report:
        """The answer as questions, findings, guarantee and public parameters."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, ready for JSON."""

    def report(self, path: Path | str) -> Path:
        """Writes a page to read offline; an earlier page is replaced, any other file is refused."""
        from dpselect.report.page import write_page

        return write_page(self.as_report(), path)

    def __str__(self) -> str:
        from dpselect.report.words import report_text

        return report_text(self.as_report())

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from dpselect.report.page import fragment

        return fragment(self.as_report())
