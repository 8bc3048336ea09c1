"""What asking for the largest (or smallest) would cost and how good it would be, before anything is read."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect.checks import FloatArray, counts, one
from dpselect.dataset import how_much as values_named
from dpselect.dataset.dataset import Dataset
from dpselect.dataset.facts import period_word
from dpselect.dataset.known import Known
from dpselect.dataset.outlook import COARSER
from dpselect.errors import InvalidParameter, refuse, refuse_given
from dpselect.mechanisms.catalogue import by_short_name
from dpselect.privacy.classical import upward
from dpselect.report.guarantee import Guarantee
from dpselect.report.rounding import at_most, no_more_than, rounded_up
from dpselect.report.words import choice_in_words, percent

if TYPE_CHECKING:
    from dpselect.dataset.peak import Peak
    from dpselect.mechanisms.release import LaplaceRelease
    from dpselect.mechanisms.selection import Goal, NoisyMax
    from dpselect.planning import Model, Plan, Profile
    from dpselect.planning.one_release import Tried
    from dpselect.planning.prediction import ExpectedAccuracy
    from dpselect.privacy.family import QueryFamily
    from dpselect.tables import BoundedQuery, Candidates

#: An answer that falls short by more than this share of what a blind guess does is not worth its cost.
_HARDLY_BETTER = 0.75
#: Of several that are named at least this share must be expected to belong there: below it most of the list is wrong.
_HALF = 0.5
#: How far weekdays are apart where nothing is known, as shares of the cap: a tenth of the usual mean, 0.156 of the cap
#: (planning.knowledge.USUAL_SPAN), either way. A season moves days by far more, but every weekday has all of it.
_WEEKDAYS = (0.14, 0.172)
#: So many times as many persons as the population says are added up before totals are cut.
_ROOM = 1024

#: The selections by the short names a person types: their names in the catalogue.
NAMES = {name: entry.name for name, entry in by_short_name("selection").items()}


@dataclass(frozen=True, kw_only=True, repr=False)
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
    forced : str or None
        "asked" or "planned" where the mechanism was not chosen here.
    goal : {"largest", "smallest"}
        Which end is looked for.
    top : int
        How many are named, in order, one after the other; each costs an equal part.
    value : LaplaceRelease or None
        How the values of those named are released, where that is asked for, too: at half of ε.
    known : Known
        What was said of the values beforehand.
    narrow : ExpectedAccuracy or None
        Where nothing was said: how the mechanism does on values that move over a tenth of what is usual.
    overlap : float
        Which share of several that are named is expected to belong to the true ones.
    """

    dataset: Dataset
    candidates: Candidates
    public: BoundedQuery
    mechanism: str
    tried: dict[str, Tried]
    guess: ExpectedAccuracy
    series: list[FloatArray] = field(repr=False)
    forced: str | None = None
    goal: Goal = "largest"
    top: int = 1
    value: LaplaceRelease | None = None
    known: Known = field(default_factory=Known)
    narrow: ExpectedAccuracy | None = None
    overlap: float = 1.0

    def __repr__(self) -> str:
        asked = f"{self.goal} of {len(self.candidates):,}" if self.top == 1 else f"{self.top} {self.goal}"
        return f"<PeakPlan: the {asked}, {self.mechanism} at ε = {at_most(self.shown_cost(self.mechanism))}>"

    def __str__(self) -> str:
        lines = [
            f"{self.reason} It costs ε = {at_most(self.shown_cost(self.mechanism))}.",
            f"Expected: {self.expectation}.",
        ]
        return "\n".join([*lines, *filter(None, [self.weakness, self.advice, None if self.useful else self.futility])])

    def save(self, path: Path | str) -> Path:
        """Keeps the plan in a file, for this table or another of the same range whose Δ is no larger."""
        from dpselect.planning import Plan

        if self.top > 1 or self.value is not None:
            raise InvalidParameter("a plan in a file is for one name: leave ‹top› and ‹how_much› out", parameter="top")
        said: dict[str, Any] = {"contender": NAMES[self.mechanism], "asked": "largest", "unit": self.unit}
        cost, noise = self.shown_cost(self.mechanism), {"scale": self.chosen.scale}
        kept = Plan(**said, family=self.public.family, count=len(self.public), epsilon=cost, parameters=noise)
        return kept.save(path)

    @property
    def chosen(self) -> Tried:
        """The mechanism that will be used."""
        return self.tried[self.mechanism]

    @functools.cached_property
    def drawing(self) -> NoisyMax:
        """The mechanism as it draws: for values beyond the range as well, where that costs no more.

        Most selections pay for Δ alone. Then a population that is too small cuts nothing, and the winner is right.
        """
        made: NoisyMax = self.chosen.mechanism
        roomy = replace(made, family=_with_room(made.family))
        free = roomy.top_epsilon(len(self.candidates), self.top) <= made.top_epsilon(len(self.candidates), self.top)
        return roomy if free and not self.dataset.is_series else made

    @property
    def is_cut(self) -> bool:
        """Whether values beyond the range are cut to it."""
        return self.drawing is self.chosen.mechanism

    @property
    def advice(self) -> str | None:
        """One sentence where another mechanism does clearly better at the same cost."""
        from dpselect.planning.one_release import clearly_better

        best = clearly_better(self.mechanism, self.tried)
        if best is None:
            return None
        theirs, ours = (self._shortfall(one.accuracy) for one in (best, self.chosen))
        return (
            f"{best.name} is more accurate at the same ε: on simulated data what it names is {theirs} "
            f"{self._side} the {self.goal} on average, against {ours}."
        )

    @property
    def reason(self) -> str:
        """Which mechanism is used, and why, in a sentence."""
        title = self.chosen.entry.title
        if self.forced is not None:
            return f"{title}, as {self.forced}."
        return f"{title}: of {len(self.tried)} that give this guarantee, the one expected to come closest."

    @property
    def expectation(self) -> str:
        """How good the answer is expected to be beside a blind guess, in the readings' unit, and what that rests on."""
        told = f"{self._told(self.chosen.accuracy)}{self._together}"
        guess = f"a guess that looks at no data: {self._told(self.guess)}"
        if self.known.like is not None:
            return f"{told}; {guess} (if it goes like the public series given)"
        if self.known.between is not None:
            low, high = (self.dataset.with_unit(f"{float(end):g}") for end in self.known.between)
            return f"{told}; {guess} (on simulated series between {low} and {high}, as stated)"
        span = self.dataset.with_unit(f"{float(np.ptp(self.series[0])) * self.unit:.3g}")
        narrow = "" if self.narrow is None else f"; if over a tenth of that: {self._told(self.narrow)}"
        return f"if the values move over about {span} (nothing was said of them): {told}; {guess}{narrow}"

    @property
    def _together(self) -> str:
        """How many of several are expected to be right, whatever their order."""
        if self.top == 1:
            return ""
        return f"; of the {self.top} named, {self.top * self.overlap:.1f} are among the {self.top} {self.goal}"

    def _told(self, accuracy: ExpectedAccuracy) -> str:
        which = "the " + self.goal if self.top == 1 else "the right one in each place"
        spread = {"few": accuracy.fewest_hits, "many": accuracy.most_hits}
        return choice_in_words(accuracy.hits, self._shortfall(accuracy), **spread, which=which, side=self._side)

    def _shortfall(self, accuracy: ExpectedAccuracy) -> str:
        return self.dataset.with_unit(f"{accuracy.shortfall * self.public.family.width * self.unit:.3g}")

    @property
    def _side(self) -> str:
        """Where a wrong winner lies."""
        return "below" if self.goal == "largest" else "above"

    @property
    def useful(self) -> bool:
        """Whether the answer is expected to be clearly better than a blind guess."""
        return _is_useful(self.chosen.accuracy, self.guess) and self.overlap >= _HALF

    @property
    def futility(self) -> str:
        """What to say, and what to do, where it is not."""
        from dpselect.planning.budgets import enough

        whole = self.cost(self.mechanism)
        each = float(self.chosen.mechanism.epsilon(candidates=len(self.candidates)))
        more = enough(lambda times: self._will_do(times * each, self.series), start=1.0, doublings=24)
        told = [] if more is None else [f"‹epsilon› {at_most(more * whole, digits=2)} would do on such data"]
        for periods, number in COARSER.get(period_word(self.candidates), ()):
            fewer = [values[:: max(1, number)] for values in self.series]
            if len(fewer[0]) > 1 and self._will_do(each, fewer):
                told.append(f"{periods} would do at this ‹epsilon›, were they as far apart")
                break
        remedy = "; ".join(told or ["ask about fewer and longer periods"])
        what = "the answer would hardly be better than a guess"
        if _is_useful(self.chosen.accuracy, self.guess):
            what = f"fewer than half of the {self.top} named would belong there"
        cap = "".join(f"; {caution}" for caution in self.cautions)
        return (
            f"{what}; expected: {self.expectation}; {remedy}, or ask about more people{cap}; nothing was spent "
            "(‹anyway› to insist)"
        )

    def _will_do(self, epsilon: float, series: list[FloatArray]) -> bool:
        """Whether a choice at this ε is clearly better than a guess on these series."""
        from dpselect.planning.one_release import try_selections
        from dpselect.planning.prediction import blind_accuracy, expected_overlap

        family, name = self.public.family, NAMES[self.mechanism]
        found = try_selections(family, series, epsilon=epsilon, names=[name], goal=self.goal)[name]
        if not _is_useful(found.accuracy, blind_accuracy(family, series, goal=self.goal)):
            return False
        if self.top == 1:
            return True
        top = min(self.top, len(series[0]))
        return expected_overlap(found.mechanism, series, top=top, goal=self.goal) >= _HALF

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to know before paying."""
        told = self.dataset.long_cap(self.candidates)
        return () if told is None else (told,)

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
        return None if self.value is None else values_named.margin(self.value) * self.unit

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
        from dpselect.dataset.peak import ask

        if not anyway and not self.useful:
            raise InvalidParameter(self.futility, parameter="epsilon")
        return ask(self, progress=progress, key=key, afresh=afresh)

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

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each mechanism that was tried, as plain values."""
        return [
            {
                "dry_run": True,
                "mechanism": name,
                "chosen": name == self.mechanism,
                "candidates": len(self.candidates),
                "epsilon": self.shown_cost(name),
                **scale(tried),
                **self.dataset.asked_about(self.candidates),
                "query_unit": self.unit,
                **self.expected(tried.accuracy),
                **({} if self.margin is None else {"amount_margin": self.margin}),
                **({"advice": self.advice} if name == self.mechanism else {}),
                **note(self.weakness),
            }
            for name, tried in self.tried.items()
        ]

    def expected(self, accuracy: ExpectedAccuracy) -> dict[str, float]:
        """What is expected, beside a guess, as plain values."""
        return {
            "expected_shortfall": accuracy.shortfall,
            "expected_hits": accuracy.hits,
            "expected_hits_fewest": accuracy.fewest_hits,
            "expected_hits_most": accuracy.most_hits,
            "guess_shortfall": self.guess.shortfall,
            "guess_hits": self.guess.hits,
            **({} if self.narrow is None else {"expected_hits_over_a_tenth": self.narrow.hits}),
            **({} if self.top == 1 else {"expected_overlap": self.overlap}),
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Each mechanism that was tried, as headings and rows of a table."""
        in_unit = ["in the reading's unit"] if self.unit != 1 else []
        rows = [
            [
                f"→ {name}" if name == self.mechanism else f"  {name}",
                at_most(self.shown_cost(name)),
                noise_in_words(one),
                *(at_most(one.scale * self.unit) for _ in in_unit),
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
    epsilon: Fraction | float | None = None,
    mechanism: str | None = None,
    goal: Goal = "largest",
    top: int = 1,
    how_much: bool = False,
    known: Known | None = None,
    plan: Plan | None = None,
    compare: bool = False,
) -> PeakPlan:
    """See :meth:`Dataset.plan_peak`."""
    from dpselect.mechanisms.release import LaplaceRelease
    from dpselect.planning.knowledge import made_up
    from dpselect.planning.one_release import try_selections
    from dpselect.planning.prediction import blind_accuracy, expected_accuracy, expected_overlap, with_flat_ends

    if mechanism is not None and mechanism not in NAMES:
        raise refuse("mechanism", mechanism, "one of " + ", ".join(NAMES))
    if goal not in ("largest", "smallest"):
        raise refuse("goal", goal, '"largest" or "smallest"')
    said = known or Known()
    if plan is not None:
        given = {"epsilon": epsilon, "mechanism": mechanism, "between": said.between, "like": said.like}
        given |= {"top": None if top == 1 else top, "how_much": how_much or None}
        refuse_given("‹plan›, which says what is asked and what it costs", **given)
    elif epsilon is None:
        raise refuse("epsilon", None, "given: the most the answer may cost (or ‹plan›, which says it)")
    refuse_given("a peak, where no line is to be reached: say ‹between› or ‹like›, or", expect=said.expect)
    public = dataset.public_side(candidates)
    number = int(one(counts, "top", top, least=1))
    if number > len(public):
        raise refuse("top", top, f"at most the number of candidates, {len(public)}")
    if isinstance(epsilon, str):
        raise refuse("epsilon", epsilon, "a number such as 0.1, not a text")
    whole = 0.0 if epsilon is None else no_more_than(epsilon)
    supposed = _supposed(said, dataset, public, candidates)
    series = made_up(public.family, count=len(public), public=supposed)
    if goal == "smallest" and said.like is None:
        series = with_flat_ends(series, goal=goal)
    if plan is not None:
        tried = _planned(plan, public, series, goal=goal)
    else:
        # Where a classical mechanism is asked for, the integral behind the Gaussian one need not be solved.
        every = compare or mechanism in (None, "gaussian")
        short = {NAMES[name]: name for name in NAMES if every or name != "gaussian"}
        each = values_named.share(whole, (2 if how_much else 1) * number)
        found = try_selections(public.family, series, epsilon=each, names=short, goal=goal)
        tried = {short[name]: replace(made, name=short[name]) for name, made in found.items()}
    half = values_named.share(whole, 2)
    # On equal terms the first in the catalogue's order is used.
    best = mechanism or min(tried, key=lambda name: tried[name].accuracy.shortfall)
    picker = tried[best].mechanism
    tenth = [(values - values.min()) / 10 + values.min() for values in series]
    return PeakPlan(
        dataset=dataset,
        candidates=candidates,
        public=public,
        mechanism=best,
        tried=tried,
        guess=blind_accuracy(public.family, series, goal=goal),
        series=series,
        forced="planned" if plan is not None else None if mechanism is None else "asked",
        goal=goal,
        top=number,
        value=LaplaceRelease.calibrated(_with_room(public.family), candidates=number, epsilon=half)
        if how_much
        else None,
        known=said,
        narrow=expected_accuracy(picker, tenth, goal=goal) if said.nothing else None,
        overlap=expected_overlap(picker, series, top=number, goal=goal) if number > 1 else 1.0,
    )


def _planned(plan: Plan, public: BoundedQuery, series: list[FloatArray], *, goal: Goal) -> dict[str, Tried]:
    """The mechanism of a plan at the noise it states, on this table; what it costs is that of this table."""
    from dpselect.planning.one_release import Tried
    from dpselect.planning.prediction import expected_accuracy

    short = {name: key for key, name in NAMES.items()}
    if plan.asked != "largest":
        raise InvalidParameter("‹plan› must be for a peak; this one is for a line to be reached: use it with watch")
    if plan.contender not in short:
        raise InvalidParameter(f"‹plan› must be for one of {', '.join(short)}; this one is for {plan.contender}")
    made: Any = plan.fitted(public.family, unit=float(public.natural_unit), count=len(public)).mechanism()
    name = short[plan.contender]
    return {name: Tried(name=name, mechanism=made, accuracy=expected_accuracy(made, series, goal=goal))}


def _supposed(known: Known, dataset: Dataset, public: BoundedQuery, candidates: Candidates) -> Profile | Model:
    """What was said of the values, on the scale of the queries; where nothing was, what is usual.

    Under a cap that was stated for a longer period, what is usual is so many times less: an hour of a day's cap.
    """
    from dpselect.planning import Model
    from dpselect.planning.knowledge import USUAL_SPAN
    from dpselect.tables import Cycle

    weekdays, parts = isinstance(candidates, Cycle) and candidates.every == "weekday", dataset.parts_of_cap(candidates)
    if not known.nothing or not (weekdays or parts > 1):
        return known.public(unit=public.natural_unit)
    shares = _WEEKDAYS if weekdays else (0.0, USUAL_SPAN)
    low, high = (public.family.lower + end * public.family.width / parts for end in shares)
    return Model(low=low, high=high)


def _with_room(family: QueryFamily) -> QueryFamily:
    """The same family over a range so much longer that totals of a great many more persons fit."""
    upper = family.lower + _ROOM * family.width
    return replace(family, upper=upper) if math.isfinite(upper) else family


def note(weakness: str | None) -> dict[str, str]:
    """A weak promise called weak, for a record."""
    return {} if weakness is None else {"note": weakness}


def scale(tried: Tried) -> dict[str, float]:
    """The scale of the noise, under the name the mechanism has for it."""
    return {tried.mechanism.noise_names[0]: tried.scale}


def noise_in_words(tried: Tried, *, unit: float = 1.0) -> str:
    """The law of the noise and its scale, in the queries' unit or another."""
    symbol = "σ =" if tried.entry.noise == "Gaussian" else "scale"
    return f"{tried.entry.noise}, {symbol} {at_most(tried.scale * unit)}"
