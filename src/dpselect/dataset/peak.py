"""Which one is largest: the plan before anything is read, and the answer after it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.dataset.answer import Answer
from dpselect.dataset.book import NOBODY_REMEMBERS
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.facts import period_word
from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.catalogue import Entry, find
from dpselect.privacy.loss import Loss
from dpselect.report.guarantee import Guarantee
from dpselect.report.record import NOTHING_TO_ADD, Finding, Report, Spending
from dpselect.report.rounding import at_most, no_more_than
from dpselect.report.words import percent

if TYPE_CHECKING:
    from dpselect.mechanisms.outcomes import Noise
    from dpselect.planning.trial import ExpectedAccuracy, Tried
    from dpselect.tables import BoundedQuery, Candidates, CuratorReport


#: An answer that falls short by more than this share of what a blind guess does is not worth its cost.
_HARDLY_BETTER = 0.75

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
    """

    dataset: Dataset
    candidates: Candidates
    public: BoundedQuery
    mechanism: str
    tried: dict[str, Tried]
    guess: ExpectedAccuracy
    forced: bool

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
        return f"the very largest {percent(accuracy.hits)} of the time, {in_unit} short of it on average"

    @property
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than a blind guess."""
        return _is_useful(self.chosen.accuracy, self.guess)

    @property
    def futility(self) -> str:
        """What to say, and what to do, where it is not."""
        from dpselect.planning.trial import try_selections

        epsilon, wanted = self.cost(self.mechanism), None
        for _ in range(24):
            epsilon *= 2
            found = try_selections(
                self.public.family, candidates=len(self.candidates), epsilon=epsilon, names=[NAMES[self.mechanism]]
            )
            if _is_useful(found[NAMES[self.mechanism]].accuracy, self.guess):
                wanted = at_most(epsilon, digits=2)
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
        """The pure ε of an answer by this mechanism."""
        return float(self.tried[name].mechanism.epsilon(candidates=len(self.candidates)))

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
        if not anyway and not self.useful:
            raise InvalidParameter(self.futility, parameter="epsilon")
        self.dataset.check(self.candidates)
        book, read = self.dataset.book, functools.cache(lambda: self.dataset.read(self.candidates, progress=progress))
        if book is None:
            refuse_given("a question without a ledger, which is always drawn anew", key=key, afresh=afresh or None)
            self.dataset.budget.charge(self.cost(self.mechanism))
            return Peak(plan=self, **self._draw(read), examine=lambda: read().curator_report)
        answered = book.ask(
            self.question(),
            cost=Loss(epsilon=self.cost(self.mechanism)),
            draw=lambda: self._draw(read),
            key=key,
            afresh=afresh,
        )
        return Peak(
            plan=self,
            **answered.answer,
            entry=answered.number,
            repeated=answered.repeated,
            examine=lambda: read().curator_report,
        )

    def question(self) -> dict[str, Any]:
        """The question as a ledger keeps it: public, and without places."""
        return {
            **dict(self.dataset.parameters(self.candidates)),
            "verb": "peak",
            "measured": self.dataset.measured,
            "mechanism": self.mechanism,
            **_scale(self.chosen),
            "epsilon": self.cost(self.mechanism),
            # A public list of categories may be longer than an entry.
            "labels": hashlib.sha256("\n".join(self.candidates.labels).encode()).hexdigest(),
        }

    def _draw(self, read: Callable[[], BoundedQuery]) -> dict[str, Any]:
        from dpselect.noise.entropy import SYSTEM_ENTROPY

        queries = read()
        # Values outside the range are cut to it: refusing them would say something about the data.
        found = self.chosen.mechanism.release(
            queries.values, entropy=self.dataset.entropy or SYSTEM_ENTROPY, outside="clip"
        )
        return {
            "label": queries.labels[found.index],
            "index": int(found.index),
            "epsilon": float(found.loss.epsilon),
            "delta": float(found.loss.delta),
            "noise": found.noise,
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each mechanism that was tried, as plain values."""
        return [
            {
                "dry_run": True,
                "mechanism": name,
                "chosen": name == self.mechanism,
                "candidates": len(self.candidates),
                "epsilon": self.cost(name),
                **_scale(one),
                "unit": self.unit,
                "expected_shortfall": one.accuracy.shortfall,
                "expected_hits": one.accuracy.hits,
                "guess_shortfall": self.guess.shortfall,
                "guess_hits": self.guess.hits,
                **({"advice": self.advice} if name == self.mechanism else {}),
                **_note(self.weakness),
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
                _noise_in_words(one),
                *(at_most(_scale_of(one) * self.unit) for _ in in_unit),
                percent(one.accuracy.shortfall),
                percent(one.accuracy.hits),
            ]
            for name, one in self.tried.items()
        ]
        return ["mechanism", "pure ε ≤", "noise", *in_unit, "falls short", "best found"], rows


def _is_useful(accuracy: ExpectedAccuracy, guess: ExpectedAccuracy) -> bool:
    return accuracy.shortfall <= _HARDLY_BETTER * guess.shortfall


def plan_peak(
    dataset: Dataset, candidates: Candidates, *, epsilon: Fraction | float, mechanism: str | None, compare: bool
) -> PeakPlan:
    """See :meth:`Dataset.plan_peak`."""
    from dpselect.planning.trial import blind_accuracy, try_selections

    if mechanism is not None and mechanism not in NAMES:
        raise refuse("mechanism", mechanism, "one of " + ", ".join(NAMES))
    public = dataset.public_side(candidates)
    # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
    whole = compare or mechanism in (None, "gaussian")
    short = {NAMES[name]: name for name in NAMES if whole or name != "gaussian"}
    found = try_selections(public.family, candidates=len(public), epsilon=no_more_than(epsilon), names=short)
    tried = {short[name]: replace(one, name=short[name]) for name, one in found.items()}
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
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Peak(Answer):
    """The winner after noise, what it cost and how good such an answer is expected to be.

    Attributes
    ----------
    label, index : str, int
        The winner, and its place among the candidates.
    epsilon, delta : float
        What the answer cost.
    noise : {"private", "reproducible"}
        Whether the noise can be repeated by someone who knows a seed.
    plan : PeakPlan
        The mechanism, its noise and its expected accuracy.
    """

    plan: PeakPlan
    label: str
    index: int
    epsilon: float
    delta: float
    noise: Noise
    examine: Callable[[], CuratorReport]
    entry: int | None = None
    repeated: bool = False

    def __repr__(self) -> str:
        return f"<Peak {self.label!r} at ε = {at_most(self.epsilon)}, {self.plan.mechanism}>"

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values, ready for JSON."""
        plan = self.plan
        return {
            "answer": self.label,
            "index": self.index,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise,
            "mechanism": plan.mechanism,
            **_scale(plan.chosen),
            "unit": plan.unit,
            "candidates": len(plan.candidates),
            "expected_shortfall": plan.chosen.accuracy.shortfall,
            "expected_hits": plan.chosen.accuracy.hits,
            "guess_shortfall": plan.guess.shortfall,
            "guess_hits": plan.guess.hits,
            "reason": plan.reason,
            "advice": plan.advice,
            **({} if self.entry is None else {"ledger_entry": self.entry, "repeated": self.repeated}),
            **_note(plan.weakness),
        }

    def as_report(self) -> Report:
        """The answer for people."""
        plan, dataset, chosen = self.plan, self.plan.dataset, self.plan.chosen
        what = period_word(plan.candidates)
        in_unit = ""
        if plan.unit != 1:
            scale = _scale_of(chosen) * plan.unit
            unit = dataset.unit or f"in the unit of {dataset.value or 'the reading'}"
            in_unit = f" ({at_most(scale)} {unit})"
        notes = [
            "The answer is the winner after noise: one of the largest, not surely the largest. Expected on a simulated "
            f"seasonal series over a third of the range: {plan.expectation}.",
            NOTHING_TO_ADD
            if self.noise == "reproducible"
            else f"Into the running sum of all answers about the same people goes ε = {at_most(self.epsilon)}.",
        ]
        if self.entry is None and self.noise != "reproducible":
            notes.append(NOBODY_REMEMBERS)
        if self.repeated:
            notes.append("The question was asked before: this is its first answer, and it cost nothing now.")
        if dataset.is_series:
            notes.append("The rows were added up beforehand: the curator vouches for what one person can change.")
        found = Finding(
            question=f"For which {what} is {dataset.measured} largest?",
            answer=self.label,
            spending=Spending(spent=(self.epsilon,), above=(), budget=self.epsilon),
        )
        return Report(
            title=f"The {what} with the largest value",
            findings=(found,),
            guarantee=Guarantee(epsilon=self.epsilon, neighbours=dataset.neighbours, noise=self.noise),
            parameters=(
                *dataset.parameters(plan.candidates),
                ("Mechanism", plan.reason),
                ("Noise", _noise_in_words(chosen) + in_unit),
                *(() if self.entry is None else (("Ledger entry", f"{self.entry:,}"),)),
            ),
            notes=tuple(notes),
            made=datetime.now(UTC).astimezone(),
        )


def _note(weakness: str | None) -> dict[str, str]:
    return {} if weakness is None else {"note": weakness}


def _entry(tried: Tried) -> Entry:
    return find(NAMES[tried.name])


def _scale_of(tried: Tried) -> float:
    """σ, or the scale of the other laws, in the queries' unit."""
    return _entry(tried).noise_of(tried.mechanism)[0]


def _scale(tried: Tried) -> dict[str, float]:
    return {_entry(tried).noise_names[0]: _scale_of(tried)}


def _noise_in_words(tried: Tried) -> str:
    """The law of the noise and its scale, in the queries' unit."""
    symbol = "σ =" if _entry(tried).noise == "Gaussian" else "scale"
    return f"{_entry(tried).noise}, {symbol} {at_most(_scale_of(tried))}"
