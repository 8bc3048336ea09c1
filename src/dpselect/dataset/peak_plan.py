"""What asking for the largest (or smallest) would cost and how good it would be, before anything is read."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.checks import counts, one
from dpselect.dataset import how_much
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.how_much import share
from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.catalogue import Entry, find
from dpselect.privacy.classical import upward
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.rounding import at_most, no_more_than, rounded_up
from dpselect.report.words import percent

if TYPE_CHECKING:
    from dpselect.dataset.peak import Peak
    from dpselect.mechanisms.release import LaplaceRelease
    from dpselect.mechanisms.selection import Goal
    from dpselect.planning.trial import ExpectedAccuracy, Tried
    from dpselect.tables import BoundedQuery, Candidates

#: An answer that falls short by more than this share of what a blind guess does is not worth its cost.
_HARDLY_BETTER = 0.75

#: What of an answer its places say as well.
_NAMES_IN_ANSWER = ("label", "labels")

#: The selections by the short names a person types, and by their names in the catalogue.
NAMES = {
    "gaussian": "gaussian-noisy-max",
    "permute-and-flip": "permute-and-flip",
    "exponential": "exponential",
    "laplace": "laplace-noisy-max",
}


@dataclass(frozen=True, kw_only=True)
class PeakPlan:
    """What asking for a peak would cost and how good it would be, from public knowledge alone.

    Attributes
    ----------
    tried : dict
        Each mechanism that was tried: at what noise, and how it does on simulated data.
    mechanism : str
        The one that will be used.
    guess : ExpectedAccuracy
        What a guess that looks at no data gets on the same simulated data.
    forced : bool
        Whether the mechanism was asked for, not chosen.
    goal : {"largest", "smallest"}
        Which end is looked for.
    top : int
        How many are named, in order, one after the other; each costs an equal part.
    value : LaplaceRelease or None
        How the values of those named are released, where that is asked for, too: at half of ε.
    """

    dataset: Dataset
    candidates: Candidates
    public: BoundedQuery
    mechanism: str
    tried: dict[str, Tried]
    guess: ExpectedAccuracy
    forced: bool
    goal: Goal = "largest"
    top: int = 1
    value: LaplaceRelease | None = None

    @property
    def chosen(self) -> Tried:
        """The mechanism that will be used."""
        return self.tried[self.mechanism]

    @property
    def advice(self) -> str | None:
        """One sentence where another mechanism does clearly better at the same cost."""
        from dpselect.planning.trial import clearly_better

        best = clearly_better(self.mechanism, self.tried)
        if best is None:
            return None
        return (
            f"{best.name} is more accurate at the same ε: on simulated data its pick falls "
            f"{percent(best.accuracy.shortfall)} of the range short of the best, against "
            f"{percent(self.chosen.accuracy.shortfall)}."
        )

    @property
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        title = _entry(self.chosen).title
        if self.forced:
            return f"{title}, as asked."
        return f"{title}: of {len(self.tried)} with the same pure guarantee it is expected to fall short the least."

    @property
    def expectation(self) -> str:
        """How good the answer is expected to be, beside a guess that looks at no data, in the readings' unit."""
        return f"{self._told(self.chosen.accuracy)}; a guess that looks at no data: {self._told(self.guess)}"

    def _told(self, accuracy: ExpectedAccuracy) -> str:
        short = accuracy.shortfall * self.public.family.width * self.unit
        in_unit = self.dataset.with_unit(f"{short:.3g}")
        which = "the very " + self.goal if self.top == 1 else f"each time the {self.goal} of those left"
        return f"{which} {percent(accuracy.hits)} of the time, {in_unit} short of it on average"

    @property
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than a blind guess."""
        return _is_useful(self.chosen.accuracy, self.guess)

    @property
    def futility(self) -> str:
        """What to say, and what to do, where it is not."""
        from dpselect.planning.trial import try_selections

        whole, wanted = self.cost(self.mechanism), None
        epsilon = float(self.chosen.mechanism.epsilon(candidates=len(self.candidates)))
        for _ in range(24):
            whole, epsilon = 2 * whole, 2 * epsilon
            found = try_selections(
                self.public.family, candidates=len(self.candidates), epsilon=epsilon, names=[NAMES[self.mechanism]]
            )
            if _is_useful(found[NAMES[self.mechanism]].accuracy, self.guess):
                wanted = at_most(whole, digits=2)
                break
        remedy = f"‹epsilon› {wanted} would do on such data, or fewer" if wanted else "ask about fewer"
        return (
            f"the answer would hardly be better than a guess: expected is {self.expectation}; {remedy} and longer "
            "periods, or more people; nothing was spent (‹anyway› to insist)"
        )

    @property
    def unit(self) -> float:
        """What a query of 1 is in the readings' unit."""
        return float(self.public.natural_unit)

    def cost(self, name: str) -> float:
        """The pure ε of an answer by this mechanism, with the values where they are asked for."""
        parts = [self.tried[name].mechanism.top_epsilon(len(self.candidates), self.top)]
        if self.value is not None:
            parts.append(float(self.value.epsilon(self.top)))
        return upward(sum(map(Fraction, parts), Fraction(0)))

    def shown_cost(self, name: str) -> float:
        """The same as it was typed where it comes to that: 0.1, not the largest double that is not above one tenth."""
        return rounded_up(self.cost(name), digits=15)

    @property
    def rho(self) -> float:
        """The cost as ρ of zero-concentrated differential privacy, which adds up to less in many answers."""
        named = self.chosen.mechanism.top_rho(len(self.candidates), self.top)
        # A pure ε is ε²/2 (THEORY §11).
        shown = 0.0 if self.value is None else float(self.value.epsilon(self.top))
        return upward(Fraction(named) + Fraction(shown) ** 2 / 2)

    @property
    def margin(self) -> float | None:
        """The values lie within this of the truth 95 times of 100, in the readings' unit; None without values."""
        return None if self.value is None else how_much.margin(self.value) * self.unit

    @property
    def weakness(self) -> str | None:
        """What to say of an ε too large to promise much."""
        return Guarantee(epsilon=self.cost(self.mechanism)).weakness

    def ask(
        self,
        *,
        anyway: bool = False,
        progress: Callable[[float], None] | None = None,
        key: str | None = None,
        afresh: bool = False,
    ) -> Peak:
        """Charges the budget, adds up the table, draws the noise: the answer.

        Columns that are not there are refused before the charge.

        An answer that would hardly be better than a guess is refused and costs nothing, unless asked for ``anyway``.
        With a ledger the charge is on disk before the table is touched, and the answer before it is shown; ``key`` and
        ``afresh`` are those of :meth:`Dataset.peak`.
        """
        from dpselect.dataset.peak import Peak

        if not anyway and not self.useful:
            raise InvalidParameter(self.futility, parameter="epsilon")
        self.dataset.check(self.candidates)
        book, read = self.dataset.book, functools.cache(lambda: self.dataset.read(self.candidates, progress=progress))
        if book is None:
            refuse_given("a question without a ledger, which is always drawn anew", key=key, afresh=afresh or None)
            self.dataset.budget.charge(self.cost(self.mechanism))
            return Peak(plan=self, **self._draw(read), examine=lambda: read().curator_report)
        names = self._names_kept()
        answered = book.ask(
            self.question(),
            cost=Loss(epsilon=self.cost(self.mechanism)),
            draw=lambda: {name: one for name, one in self._draw(read).items() if names or name not in _NAMES_IN_ANSWER},
            key=key,
            afresh=afresh,
            read=read,
        )
        return Peak(
            plan=self,
            **{**self._named(answered.answer), **answered.answer},
            entry=answered.number,
            repeated=answered.repeated,
            examine=lambda: read().curator_report,
        )

    def _names_kept(self) -> bool:
        """Whether a ledger keeps the names in the answer, or their places among the candidates alone.

        Decided for every answer there can be, before one is drawn: that a drawn one is refused would tell of it.
        """
        from dpselect.ledger.wording import written

        labels, family = self.candidates.labels, self.public.family
        longest = sorted(labels, key=lambda label: len(json.dumps(label)))[-self.top :]
        worst: dict[str, Any] = {
            "index": len(labels),
            "indices": [len(labels)] * self.top,
            "epsilon": self.shown_cost(self.mechanism),
            "delta": 0.0,
            "noise": "reproducible",
        }
        if self.value is not None:
            # The ends, which must be finite, and no number is written longer than this one.
            ends = [float(family.lower) * self.unit, float(family.upper) * self.unit]
            worst["amounts"] = [*ends, *[-sys.float_info.max] * self.top]
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

    def _named(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The names in an answer, by their places."""
        names = [self.candidates.labels[index] for index in answer.get("indices", [answer["index"]])]
        return {"label": names[0], **({} if self.top == 1 else {"labels": names})}

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it: public, and without places."""
        return {
            **dict(self.dataset.parameters(self.candidates)),
            "verb": "peak",
            **self.dataset.named(self.candidates),
            "mechanism": self.mechanism,
            **scale(self.chosen),
            **({} if self.goal == "largest" else {"goal": self.goal}),
            **({} if self.top == 1 else {"top": self.top}),
            **({} if self.value is None else {"value_scale": self.value.scale}),
            "epsilon": self.shown_cost(self.mechanism),
            # A public list of categories may be longer than an entry.
            "labels": hashlib.sha256("\n".join(self.candidates.labels).encode()).hexdigest(),
        }

    def _draw(self, read: Callable[[], BoundedQuery]) -> dict[str, Any]:
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        queries, entropy = read(), self.dataset.entropy or SYSTEM_ENTROPY
        # Values outside the range are cut to it: refusing them would say something about the data.
        found = self.chosen.mechanism.top(queries.values, self.top, goal=self.goal, entropy=entropy, outside="clip")
        amounts = None
        if self.value is not None:
            drawn = how_much.draw(self.value, queries.values[list(found.indices)], entropy=entropy)
            amounts = [one * self.unit for one in drawn]
        return {
            "label": queries.labels[found.indices[0]],
            "index": int(found.indices[0]),
            **({} if self.top == 1 else {"labels": [queries.labels[index] for index in found.indices]}),
            **({} if self.top == 1 else {"indices": [int(index) for index in found.indices]}),
            "epsilon": self.shown_cost(self.mechanism),
            "delta": 0.0,
            "noise": found.noise,
            **({} if amounts is None else {"amounts": amounts}),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each mechanism that was tried, as plain values."""
        return [
            {
                "dry_run": True,
                "mechanism": name,
                "chosen": name == self.mechanism,
                "candidates": len(self.candidates),
                "epsilon": self.shown_cost(name),
                **scale(one),
                "unit": self.unit,
                "expected_shortfall": one.accuracy.shortfall,
                "expected_hits": one.accuracy.hits,
                "guess_shortfall": self.guess.shortfall,
                "guess_hits": self.guess.hits,
                **({"advice": self.advice} if name == self.mechanism else {}),
                **note(self.weakness),
            }
            for name, one in self.tried.items()
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Each mechanism that was tried, as headings and rows of a table."""
        in_unit = ["in the reading's unit"] if self.unit != 1 else []
        rows = [
            [
                f"→ {name}" if name == self.mechanism else f"  {name}",
                at_most(self.cost(name)),
                noise_in_words(one),
                *(at_most(scale_of(one) * self.unit) for _ in in_unit),
                percent(one.accuracy.shortfall),
                percent(one.accuracy.hits),
            ]
            for name, one in self.tried.items()
        ]
        return ["mechanism", "pure ε ≤", "noise", *in_unit, "falls short", "best found"], rows


def _is_useful(accuracy: ExpectedAccuracy, guess: ExpectedAccuracy) -> bool:
    return accuracy.shortfall <= _HARDLY_BETTER * guess.shortfall


def plan_peak(
    dataset: Dataset,
    candidates: Candidates,
    *,
    epsilon: Fraction | float,
    mechanism: str | None = None,
    goal: Goal = "largest",
    top: int = 1,
    how_much: bool = False,
    compare: bool = False,
) -> PeakPlan:
    """See :meth:`Dataset.plan_peak`."""
    from dpselect.mechanisms.release import LaplaceRelease
    from dpselect.planning.trial import blind_accuracy, try_selections

    if mechanism is not None and mechanism not in NAMES:
        raise refuse("mechanism", mechanism, "one of " + ", ".join(NAMES))
    public = dataset.public_side(candidates)
    number = int(one(counts, "top", top, least=1))
    if number > len(public):
        raise refuse("top", top, f"at most the number of candidates, {len(public)}")
    whole = no_more_than(epsilon)
    shares = (2 if how_much else 1) * number
    # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
    every = compare or mechanism in (None, "gaussian")
    short = {NAMES[name]: name for name in NAMES if every or name != "gaussian"}
    found = try_selections(public.family, candidates=len(public), epsilon=share(whole, shares), names=short)
    tried = {short[name]: replace(made, name=short[name]) for name, made in found.items()}
    # On equal terms the first in the catalogue's order is used.
    best = min(tried, key=lambda name: tried[name].accuracy.shortfall)
    return PeakPlan(
        dataset=dataset,
        candidates=candidates,
        public=public,
        mechanism=mechanism or best,
        tried=tried,
        guess=blind_accuracy(public.family, candidates=len(public)),
        forced=mechanism is not None,
        goal=goal,
        top=number,
        value=LaplaceRelease.calibrated(public.family, candidates=number, epsilon=share(whole, 2))
        if how_much
        else None,
    )


def note(weakness: str | None) -> dict[str, str]:
    """A weak promise called weak, for a record."""
    return {} if weakness is None else {"note": weakness}


def _entry(tried: Tried) -> Entry:
    return find(NAMES[tried.name])


def scale_of(tried: Tried) -> float:
    """σ, or the scale of the other laws, in the queries' unit."""
    return _entry(tried).noise_of(tried.mechanism)[0]


def scale(tried: Tried) -> dict[str, float]:
    """The same, under the name the mechanism has for it."""
    return {_entry(tried).noise_names[0]: scale_of(tried)}


def noise_in_words(tried: Tried) -> str:
    """The law of the noise and its scale, in the queries' unit."""
    symbol = "σ =" if _entry(tried).noise == "Gaussian" else "scale"
    return f"{_entry(tried).noise}, {symbol} {at_most(scale_of(tried))}"
