"""One line of the claims table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["held", "did not hold", "depends", "not judged: simulated data"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says and where, whether it held, the number found, and the setting it was found in."""

    source: str
    claim: str
    verdict: Verdict
    found: str
    setting: str

    def row(self) -> dict[str, str]:
        """As a row of a table."""
        return asdict(self)

    @classmethod
    def columns(cls) -> list[str]:
        """The table's columns."""
        return [field.name for field in fields(cls)]


def unjudged(claim: Claim) -> Claim:
    """The same line for a figure drawn from a stand-in: the numbers stay, the verdict goes."""
    return replace(claim, verdict="not judged: simulated data")


def held_if(condition: bool) -> Verdict:
    """A plain yes or no.

    >>> held_if(1 < 2)
    'held'
    """
    return "held" if condition else "did not hold"
