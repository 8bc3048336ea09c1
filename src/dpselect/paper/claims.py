"""One line of the claims table: what the paper says, where, the rule it is judged by, and what was found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["held", "did not hold", "depends", "not judged: simulated data"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper with its verdict.

    Parameters
    ----------
    where : str
        The place in the paper that is judged.
    claim : str
        What it says, in our words.
    rule : str
        When it counts as held, in one sentence.
    verdict : str
        "held", "did not hold", or "depends": on a reading that the paper leaves open, named in ``found``.
    found, setting : str
        The numbers, and where they were found.
    """

    where: str
    claim: str
    rule: str
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


def over_readings(*held: bool) -> Verdict:
    """Held under every reading that the paper leaves open, under none, or it depends.

    >>> over_readings(True, True), over_readings(True, False), over_readings(False)
    ('held', 'depends', 'did not hold')
    """
    return "held" if all(held) else "depends" if any(held) else "did not hold"
