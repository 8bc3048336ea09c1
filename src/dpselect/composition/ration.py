"""A budget rationed among the ⊤ to come: each question has a price of its own, set from what was answered before it.

With exponential noise a transcript under one noisy threshold costs Δ/scale_threshold, and each ⊤ Δ/scale_query (twice
that where the family is not monotone; THEORY §12). The proof looks at one question at a time: moving the threshold by Δ
serves all ⊥, and each ⊤ pays for its own noise. So every question may have a scale of its own, chosen after seeing the
answers before it, for a transcript says which scales were used: its loss is at most Δ/scale_threshold plus the prices
of its ⊤. A budget that is shared out again before each question never ends before the questions do: where ⊤ come more
often than expected, each of them gets less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, counts, finite, non_negative, one, pair, positive, refuse
from dpselect.composition.budgeted_run import BudgetedRun, RunPlan
from dpselect.composition.filter import Filter
from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.run import Reach, worst_loss
from dpselect.noise.entropy import Entropy
from dpselect.noise.inputs import FloatScores
from dpselect.noise.scan import NoisyThreshold
from dpselect.privacy.family import relative_shift
from dpselect.rounding import in_units, round_down, round_up, upward

#: Which answer is paid for: the one that is expected to be the rarer.
Rare: TypeAlias = Literal["above", "below"]

#: A stream that goes on beyond what was expected is rationed for so much more of the same.
_BEYOND = 0.1


@dataclass(frozen=True, kw_only=True)
class Ration:
    """How many ⊤ are still to be expected, and so what one of them may cost.

    Parameters
    ----------
    questions : int
        How many are expected.
    expected : tuple of float
        How many ⊤ are expected in each of equal stretches of them.
    together : float
        How many ⊤ come in a row, on average: the more, the more their number may vary.
    hold : (float, float)
        How far below and above the ⊤ expected by their rate, as factors, those may lie that are left of the expected
        total: (1, 1) goes by the rate alone, (0.5, 2) mostly holds on to the total, as for a season that comes once.
    lean : float
        How far a value must be beyond the threshold to be ⊤ half of the time, in scales of its noise: the more, the
        fewer ⊤ are wrong, and the fewer are paid for.
    rare : {"above", "below"}
        Which answer is paid for: ⊤, or ⊥ where that is the rarer one. Then the same is done with all values negated,
        and ⊥ takes the place of ⊤ in what follows.
    before : (int, int)
        How many questions an earlier part of the same stream answered, and how many of them ⊤: the ration goes on from
        there.

    Examples
    --------
    >>> ration = Ration(questions=100, expected=(8.0, 2.0))
    >>> [float(ration.still(asked, above)) for asked, above in ((0, 0), (50, 8), (50, 35))]
    [10.0, 2.0, 4.0]
    >>> float(ration.price(50, 35, left=0.875))
    0.125
    >>> float(Ration(questions=100, expected=(8.0, 2.0), before=(40, 30)).price(10, 5, left=0.875))
    0.125
    """

    questions: int
    expected: tuple[float, ...]
    together: float = 1.0
    hold: tuple[float, float] = (1.0, 1.0)
    lean: float = 0.0
    rare: Rare = "above"
    before: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", int(one(counts, "questions", self.questions, least=1)))
        numbers = non_negative("expected", np.asarray(self.expected))
        if numbers.ndim != 1 or not len(numbers) or not float(numbers.sum()) > 0.0:
            raise refuse("expected", self.expected, "a list of numbers, some of them above 0")
        object.__setattr__(self, "expected", tuple(numbers.tolist()))
        if not (together := float(one(positive, "together", self.together))) >= 1.0:
            raise refuse("together", self.together, "1 or more")
        object.__setattr__(self, "together", together)
        below, above = pair(positive, "hold", self.hold)
        if not below <= 1.0 <= above:
            raise refuse("hold", self.hold, "a factor of at most 1 and one of at least 1")
        object.__setattr__(self, "hold", (below, above))
        object.__setattr__(self, "lean", float(one(finite, "lean", self.lean)))
        if self.rare not in get_args(Rare):
            raise refuse("rare", self.rare, "one of " + ", ".join(get_args(Rare)))
        asked, answered = map(int, pair(counts, "before", self.before))
        if answered > asked:
            raise refuse("before", self.before, "a number of questions and the ⊤ among them")
        object.__setattr__(self, "before", (asked, answered))

    @cached_property
    def course(self) -> FloatArray:
        """How many ⊤ are expected in the first 0, 1, …, ``questions`` questions."""
        ends = np.concatenate([[0.0], np.cumsum(self.expected)])
        places = np.linspace(0.0, len(self.expected), self.questions + 1)
        return np.asarray(np.interp(places, np.arange(len(ends), dtype=np.float64), ends))

    def still(self, asked: int, above: Any) -> Any:
        """How many ⊤ are to be expected after so many questions and ⊤; elementwise on arrays of ⊤.

        More than expected so far may mean that the year has more, or that they came early: the geometric mean of the
        rest in proportion to what came and the rest as it was expected, where the expectation counts as one ⊤ itself.
        """
        course = self.course
        so_far = float(course[min(asked, self.questions)])
        rest, most = float(course[-1]) - so_far, float(self.questions - asked)
        if asked >= self.questions:
            rest, most = _BEYOND * float(course[-1]), max(1.0, _BEYOND * self.questions)
        return np.minimum(rest * np.sqrt((above + 1.0) / (so_far + 1.0)), most)

    def price(self, asked: int, above: Any, *, left: Any) -> Any:
        """ε of the next ⊤, if it comes: what is left, shared among those expected, as many more as they may well vary
        by (the standard deviation of a number of which ``together`` come at a time), and one for what comes after.
        """
        asked, above = asked + self.before[0], above + self.before[1]
        shares = by_rate = self._with_room(self.still(asked, above))
        if asked < self.questions and self.hold != (1.0, 1.0):
            whole = self._with_room(float(self.course[-1])) - above
            shares = np.clip(whole, self.hold[0] * by_rate, self.hold[1] * by_rate)
        # Never more than half of what is left, so that something remains for what was not expected.
        return left / np.maximum(shares, 2.0)

    def _with_room(self, number: Any) -> Any:
        return number + np.sqrt(self.together * number) + 1.0


class RationedRun(BudgetedRun):
    """A run in which each question has a scale of its own; otherwise like any other run under a filter."""

    def __init__(self, plan: RunPlan, ration: Ration, *, filter: Filter) -> None:
        super().__init__(plan, filter=filter)
        self._ration, watcher = ration, plan.watcher
        each = relative_shift(watcher.family.monotone)
        self._delta = Fraction(watcher.family.sensitivity) * each
        self._first = in_units(upward(Fraction(watcher.family.sensitivity) / Fraction(watcher.scales[0])))
        self._purse = 0
        #: What the first 0, 1, … ⊤ cost together; the last of them is the one that may come next.
        self._ladder: tuple[int, ...] = (0,)
        #: The counts that the next question was priced for, and the noisy threshold at that price.
        self._offer: tuple[Any, NoisyThreshold] | None = None
        self._entropy: Entropy | None = None

    def begin(self, *, entropy: Entropy) -> None:
        """Take hold of the filter's budget, draw the noise of the threshold and price the first question."""
        self._purse = in_units(self._filter.remaining)
        self._entropy = entropy
        super().begin(entropy=entropy)
        self._reach = Reach(below=-1, above=-1, final=False)
        self.make_room()

    def _price(self, below: int, above: int) -> float:
        if below + above == 0:
            return 0.0
        rare = above if self._ration.rare == "above" else below
        return round_up(self._first + self._ladder[rare])

    def make_room(self) -> None:
        """Price the next question and make sure that it fits; raises ``BudgetExhausted`` where it does not."""
        counts = self._counts
        below, above, due, _ = counts
        if due:
            raise StateRefused("this run was interrupted and answers no more; start a new one")
        rare = above if self._ration.rare == "above" else below
        paid = self._ladder[rare]
        left = round_down(max(0, self._purse - self._first - paid))
        price = float(self._ration.price(below + above, rare, left=left))
        scale = float(self._delta) / price if price > 0.0 else math.inf
        if not 0.0 < scale < math.inf:
            raise self._over(math.nextafter(0.0, 1.0))
        ladder = (*self._ladder[: rare + 1], paid + in_units(upward(self._delta / Fraction(scale))))
        offer = counts, self._at(scale)
        # In one step: a signal handler that asked in the meantime has its own price in the sums.
        if self._counts is counts: self._ladder, self._offer = ladder, offer  # noqa: E701 # fmt: skip
        worst = worst_loss(self._price, below, above, 1, 1)
        if not self.held.reach_for(worst):
            raise self._over(worst)
        self._reach = Reach(below=below, above=above, final=False)

    def _at(self, scale: float) -> NoisyThreshold:
        """The same noisy threshold, for questions with noise of this scale."""
        watcher, line = self.plan.watcher, self._line
        if line is None or self._entropy is None:
            raise StateRefused("this run has not begun")
        of_line = watcher.scales[0]
        moved = float(watcher.offset(of_line, scale)) + self._ration.lean * scale
        level = watcher.threshold if self._ration.rare == "above" else -watcher.threshold
        return line.rescaled(level + moved, scale_query=scale)

    def put(self, number: float | Fraction) -> bool:
        """One answer, at the price that was set for it."""
        counts, offer = self._counts, self._offer
        below, above, _, _ = counts
        if offer is None or offer[0] is not counts:
            raise StateRefused("no room was made for this question; it was not asked")
        self._in_service(counts, 1, 1)
        found = offer[1].ask(number) if self._ration.rare == "above" else not offer[1].ask(-number)
        self._answered(below + (not found), above + found)
        return found

    def put_many(self, numbers: FloatArray | FloatScores | Sequence[Fraction]) -> tuple[NDArray[np.bool_], int]:
        """The answer to the first: the price of the next depends on it."""
        number: Any = numbers.exact(0) if isinstance(numbers, FloatScores) else numbers[0]
        found = self.put(number if isinstance(number, Fraction) else float(number))
        return np.array([found]), int(found)

    def _over(self, worst: float) -> BudgetExhausted:
        spent = self.spent
        return BudgetExhausted(
            f"the next question could bring this run to {worst!r} and does not fit: {self._filter.spent!r} of "
            f"{self._filter.limit!r} is spent outside it, and {spent!r} in it; nothing was spent on it",
            spent=min(self._filter.limit, self._filter.spent + spent),
            budget=self._filter.limit,
            next_cost=worst,
        )
