"""What makes two questions the same question to a ledger: typed facts, never sentences.

A question is kept as the facts below, in one canonical form, and found again by them; how it is worded to people, and
in which unit, makes no difference. Until version 2 it was kept with sentences in it. Those forms are frozen in
:mod:`dpselect.dataset.identity_1`, so that what was paid for then is still found.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

from dpselect.tables import Candidates, Categories, Cycle

if TYPE_CHECKING:
    from dpselect.ledger import Ledger

VERSION = 2


def candidate_facts(candidates: Candidates) -> dict[str, Any]:
    """The candidates of a question. Their names are a digest: a public list may be longer than an entry.

    >>> from dpselect.tables import Calendar
    >>> found = candidate_facts(Calendar("2013-01-01", "2013-01-31"))
    >>> found["every"], found["first"], found["last"], found["count"]
    ('day', '2013-01-01', '2013-01-31', 31)
    """
    labels = candidates.labels
    found: dict[str, Any] = {"count": len(labels), "digest": hashlib.sha256("\n".join(labels).encode()).hexdigest()}
    if isinstance(candidates, Categories):
        return {"kind": "categories", **found}
    calendar = candidates.calendar if isinstance(candidates, Cycle) else candidates
    return {
        "kind": "cycle" if isinstance(candidates, Cycle) else "calendar",
        "every": candidates.every,
        "first": calendar.labels[0],
        "last": calendar.labels[-1],
        "timezone": calendar.timezone,
        **found,
    }


def question_facts(verb: str, **facts: Any) -> dict[str, Any]:
    """The question of a verb."""
    return {"version": VERSION, "verb": verb, **facts}


def known_form(ledger: Ledger, question: dict[str, Any], *older: dict[str, Any], key: str | None) -> dict[str, Any]:
    """The form under which the ledger knows a question already; the present one where it knows none."""
    if ledger.knows(question, key=key):
        return question
    known = next((one for one in older if ledger.knows(one, key=key)), None)
    if known is None and key is None:
        known = next((found for one in older if "sigma" in one and (found := _but_for_rounding(ledger, one))), None)
    return question if known is None else known


def _but_for_rounding(ledger: Ledger, older: dict[str, Any]) -> dict[str, Any] | None:
    """A question that the ledger knows with another last digit of its noise: bounds have become tighter since."""
    facts, sigma = {**older, "sigma": None}, float(older["sigma"])
    for entry in ledger.entries():
        kept = entry.content if entry.kind == "reserve" else {}
        if "sigma" in kept and {**kept, "sigma": None} == facts and math.isclose(kept["sigma"], sigma, rel_tol=1e-9):
            return kept if ledger.knows(kept) else None
    return None
