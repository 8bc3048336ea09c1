"""A budget rationed among the ⊤ to come: each question has a price of its own, set from what was answered before it.

With exponential noise a transcript under one noisy threshold costs Δ/scale_threshold, and each ⊤ Δ/scale_query (twice
that where the family is not monotone; THEORY §12). The proof looks at one question at a time: moving the threshold by Δ
serves all ⊥, and each ⊤ pays for its own noise. So every question may have a scale of its own, chosen after seeing the
answers before it, for a transcript says which scales were used: its loss is at most Δ/scale_threshold plus the prices
of its ⊤. A budget that is shared out again before each question never ends before the questions do: where ⊤ come more
often than expected, each of them gets less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dpselect.checks import FloatArray, counts, finite, non_negative, one, pair, positive, refuse

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
