"""The ⊥ and ⊤ of a stream, as its ledger entries keep them.

A stream reserves budget a stretch at a time. The entry that ends a stretch holds the answers given since the entry
before, so that whoever asks the same again finds all of them.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dpselect.errors import LedgerError

#: So many answers are kept in one entry at most, which is then half as long as an entry may be.
MOST = 5000
#: So many where they are drawn at once and kept as bits.
MOST_AT_ONCE = 200_000


class AnswerLog:
    """⊥ and ⊤ in order, those of earlier stretches first; each with a short digest of its public name, if it has one.

    >>> first = AnswerLog()
    >>> for above, name in ((False, "mon"), (True, "tue")):
    ...     first.add(above, name)
    >>> again = AnswerLog()
    >>> again.restore(first.read())
    >>> again.earlier, again.at(1, "tue")
    (2, True)
    """

    def __init__(self, *, by: dict[str, str] | None = None) -> None:
        #: How the answers are drawn now, and how the earlier ones were: public, and no part of the question.
        self.by, self.by_then = by, by
        #: The answers of earlier stretches, for those who ask again.
        self._earlier: list[tuple[bool, str]] = []
        #: How many are in the ledger, and those that are not yet.
        self._kept = 0
        self._fresh: list[tuple[bool, str]] = []
        self._reading = 0
        #: Whether there is nothing more to ask.
        self.ended = False

    def __len__(self) -> int:
        return self._kept + len(self._fresh)

    @property
    def earlier(self) -> int:
        """How many answers were there already."""
        return len(self._earlier)

    @property
    def before(self) -> tuple[int, int]:
        """How many answers were there already, and how many of them were ⊤."""
        return len(self._earlier), sum(above for above, _ in self._earlier)

    @property
    def fresh(self) -> int:
        """How many answers the ledger does not have yet."""
        return len(self._fresh)

    def at(self, place: int, name: str | int | None) -> bool:
        """The answer of an earlier stretch at a place, whose question must have had this name."""
        above, short = self._earlier[place]
        if short != _short(name):
            raise LedgerError(
                f"question {place + 1} had another id when it was answered: let the input start where it started then, "
                "say that it goes on, or give another key"
            )
        return above

    def add(self, above: bool, name: str | int | None) -> None:
        """One more answer."""
        self._fresh.append((above, _short(name)))

    def restore(self, content: Any) -> None:
        """What :meth:`read` gave to a stretch that ended before."""
        if not isinstance(content, dict) or "first" not in content:
            return  # a stretch whose answers were lost
        above, names = set(places(content)), content.get("names", "")
        for place in range(len(self._earlier) - content["first"], content["count"]):
            self._earlier.append((place in above, names[4 * place : 4 * place + 4].strip()))
        self._kept = len(self._earlier)
        self.by_then = content.get("by", self.by_then)
        self.ended = self.ended or content["ended"]

    def read(self) -> Any:
        """What is not in the ledger yet."""
        self._reading = len(self._fresh)
        fresh = self._fresh[: self._reading]
        return {
            "first": self._kept,
            "count": len(fresh),
            "above": [place for place, (above, _) in enumerate(fresh) if above],
            "names": "".join(name.ljust(4) for _, name in fresh) if any(name for _, name in fresh) else "",
            "ended": self.ended,
            **({} if self.by is None else {"by": self.by}),
        }

    def as_bits(self) -> Any:
        """All answers as bits, of questions without names: as long whatever they are, so no write tells of them."""
        bits = sum(above << place for place, (above, _) in enumerate(self._fresh))
        content = self.read()
        del content["above"], content["names"]
        return {**content, "bits": f"{bits:0{-(-len(self._fresh) // 4)}x}"}

    def kept(self) -> None:
        """What was read is in the ledger now."""
        self._kept += self._reading
        del self._fresh[: self._reading]
        self._reading = 0


def places(content: Any) -> list[int]:
    """The places of ⊤ in what an entry holds.

    >>> places({"above": [0, 3]}), places({"bits": "09", "count": 6})
    ([0, 3], [0, 3])
    """
    if "bits" not in content:
        return list(content["above"])
    bits = f"{int(content['bits'], 16):b}"[::-1]
    return [place for place, bit in enumerate(bits) if bit == "1"]


def _short(name: str | int | None) -> str:
    return "" if name is None else hashlib.sha256(json.dumps(name).encode()).hexdigest()[:4]
