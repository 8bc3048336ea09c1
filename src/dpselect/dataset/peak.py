"""Which one is largest (or smallest), how much it is where that was asked: asked, and the answer."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much, peak_words, rows
from dpselect.dataset.answer import Answer
from dpselect.dataset.budget import unpayable
from dpselect.errors import BudgetExhausted, InvalidParameter, refuse_given
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.dataset.peak_plan import PeakPlan
    from dpselect.mechanisms.mechanism import Noise
    from dpselect.tables import BoundedQuery, CuratorReport

#: What of an answer its places say as well.
_NAMES_IN_ANSWER = ("label", "labels")


@dataclass(frozen=True, kw_only=True, repr=False)
class Peak(Answer):
    """The winner after noise, what it cost and how good such an answer is expected to be.

    Attributes
    ----------
    label, index : str, int
        The winner, and its place among the candidates.
    labels, indices : sequences
        All that were named, the first first.
    amounts : sequence of float or None
        Their values with noise, in the readings' unit, where they were asked for.
    epsilon, delta : float
        What the answer cost.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows a seed.
    plan : PeakPlan
        The mechanism, its noise and its expected accuracy.
    entry, repeated, given : int, bool, str
        With a ledger: the entry, whether it was there before, and since when.
    """

    plan: PeakPlan
    label: str
    index: int
    epsilon: float
    delta: float
    noise: Noise
    examine: Callable[[], CuratorReport]
    labels: Sequence[str] = ()
    indices: Sequence[int] = ()
    amounts: Sequence[float] | None = None
    entry: int | None = None
    repeated: bool = False
    given: str | None = None

    as_report = peak_words.report

    def __post_init__(self) -> None:
        # Of one winner a ledger keeps only the name and the place.
        if not self.labels:
            object.__setattr__(self, "labels", [self.label])
            object.__setattr__(self, "indices", [self.index])

    def __repr__(self) -> str:
        return f"<Peak {self.label!r} at ε = {at_most(self.epsilon)}, {self.plan.mechanism}>"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, ready for JSON."""
        plan = self.plan
        return {
            "question": peak_words.question(plan),
            **plan.scope.to_dict(),
            "answer": self.label,
            "index": self.index,
            **({} if plan.top == 1 else {"answers": list(self.labels), "indices": list(self.indices), "rho": plan.rho}),
            **({} if self.amounts is None else {"amounts": list(self.amounts), "amount_margin": plan.margin}),
            **({} if plan.goal == "largest" else {"goal": plan.goal}),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "mechanism": plan.mechanism,
            **peak_words.scale(plan.chosen),
            "query_unit": plan.unit,
            "candidates": len(plan.scope.candidates),
            **plan.expected_values(plan.mechanism),
            "reason": plan.reason,
            "advice": plan.advice,
            **(
                {}
                if self.entry is None
                else {"ledger_entry": self.entry, "repeated": self.repeated, "given": self.given}
            ),
            **({} if plan.weakness is None else {"note": plan.weakness}),
        }


def ask(
    plan: PeakPlan,
    *,
    anyway: bool = False,
    progress: Callable[[float], None] | None = None,
    key: str | None = None,
    afresh: bool = False,
) -> Peak:
    """Charges the budget, adds up the table, draws the noise: the answer.

    Columns that are not there are refused before the charge. An answer that would hardly be better than a guess is
    refused and costs nothing, unless asked for ``anyway``. With a ledger the charge is on disk before the table is
    touched, and the answer before it is shown; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`.
    """
    rows.check(plan.scope)  # first: no ε helps where the columns cannot answer
    plan.insist(anyway=anyway)
    read = functools.cache(lambda: rows.read(plan.scope, progress=progress))
    dataset, book = plan.scope.dataset, plan.scope.dataset.book
    if book is None:
        refuse_given("a question without a ledger, which is always drawn anew", key=key, afresh=afresh or None)
        dataset.budget.charge(plan.promise, parameter=plan.priced_by)
        return Peak(plan=plan, **_draw(plan, read), examine=lambda: read().curator_report)
    left_out = () if _names_kept(plan) else _NAMES_IN_ANSWER

    def draw() -> dict[str, Any]:
        return {name: one for name, one in _draw(plan, read).items() if name not in left_out}

    try:
        answered = book.ask(plan.question(), cost=plan.promise, draw=draw, key=key, afresh=afresh, read=read)
    except BudgetExhausted:
        raise unpayable(book, plan.shown_cost(), parameter=plan.priced_by) from None
    return Peak(
        plan=plan,
        **{**_named(plan, answered.answer), **answered.answer},
        entry=answered.number,
        repeated=answered.repeated,
        given=answered.entry.at,
        examine=lambda: read().curator_report,
    )


def _names_kept(plan: PeakPlan) -> bool:
    """Whether a ledger keeps the names in the answer, or their places among the candidates alone.

    Decided for every answer there can be, before one is drawn: that a drawn one is refused would tell of it.
    """
    from dpselect.ledger.wording import written

    labels, family = plan.scope.candidates.labels, plan.scope.public.family
    longest = sorted(labels, key=lambda label: len(json.dumps(label)))[-plan.top :]
    worst: dict[str, Any] = {
        "index": len(labels),
        "indices": [len(labels)] * plan.top,
        "epsilon": plan.shown_cost(),
        "delta": 0.0,
        "noise": "reproducible",
    }
    if plan.value is not None:
        # The ends, which must be finite, and no number is written longer than this one.
        ends = [float(family.lower) * plan.unit, float(plan.value.family.upper) * plan.unit]
        worst["amounts"] = [*ends, *[-sys.float_info.max] * plan.top]
    for names in (True, False):
        try:
            if names:
                for label in labels:
                    written("answer", label)
            written("answer", {"answer": worst | ({"label": longest[-1], "labels": longest} if names else {})})
        except InvalidParameter:
            continue
        return names
    raise InvalidParameter(
        "the answer may be more than an entry of a ledger holds; give a smaller ‹top›; nothing was spent",
        parameter="top",
    )


def _named(plan: PeakPlan, answer: dict[str, Any]) -> dict[str, Any]:
    """The names in an answer, by their places."""
    names = [plan.scope.candidates.labels[index] for index in answer.get("indices", [answer["index"]])]
    return {"label": names[0], **({} if plan.top == 1 else {"labels": names})}


def _draw(plan: PeakPlan, read: Callable[[], BoundedQuery]) -> dict[str, Any]:
    from dpselect.noise.entropy import SYSTEM_ENTROPY

    queries, entropy = read(), plan.scope.dataset.entropy or SYSTEM_ENTROPY
    values = queries.values if plan.is_cut else queries.uncut_values
    # Values outside the range are cut to it: refusing them would say something about the data.
    found = plan.drawing.top(values, plan.top, goal=plan.goal, entropy=entropy, outside="clip")
    amounts = None
    if plan.value is not None:
        named = [values[index] for index in found.indices]
        drawn = how_much.draw(plan.value, named, entropy=entropy, within=plan.scope.public.family)
        amounts = [value * plan.unit for value in drawn]
    return {
        "label": queries.labels[found.indices[0]],
        "index": int(found.indices[0]),
        **({} if plan.top == 1 else {"labels": [queries.labels[index] for index in found.indices]}),
        **({} if plan.top == 1 else {"indices": [int(index) for index in found.indices]}),
        "epsilon": plan.shown_cost(),
        "delta": 0.0,
        "noise": found.noise,
        **({} if amounts is None else {"amounts": amounts}),
    }
