"""Questions against one noisy threshold: exact verdicts, one at a time or by the million.

The noisy threshold is drawn once, to 64 bits, and kept. Its ends come from the table of cells
(:meth:`~dpselect.noise.quantiles.Law.enclose_by_chords`), or from ball arithmetic where that is not sharp enough. Each
question gets 16 random bits that name a cell of its noise. A verdict needs more bits only where the threshold falls
into the very cell that was drawn. All cells have the same probability, so that happens once in 65,536 questions
*whatever the values are* (the threshold's own width adds at most a hundredth to that): the rare slow answer (about 0.1
ms) tells nothing about them (THEORY §7).
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import refuse
from dpselect.errors import InvalidData, StateRefused
from dpselect.noise.draw import LazyDraw, NoisyValue, compare, exact_ball
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.inputs import (
    Exact,
    FloatScores,
    Scores,
    Values,
    check_scale,
    exactly,
    nearest_double,
    private_rational,
    scores,
)
from dpselect.noise.quantiles import NORMAL, Law, double_above, double_below
from dpselect.ownership import process
from dpselect.precision import working_precision

#: Stop after the first ⊤, or answer everything.
Until: TypeAlias = Literal["first", "all"]

_WORD = np.dtype(np.uint16)
_FIRST_BLOCK = 1 << 10
_BLOCK = 1 << 15
# Differences of doubles up to here do not overflow.
_LARGEST_QUICK = 2.0**1022


class _Parameters(NamedTuple):
    threshold: Fraction
    scale_threshold: Fraction
    scale_query: Fraction


class NoisyThreshold:
    """A threshold with noise drawn once: is ``value + scale_query · z ≥ threshold + scale_threshold · x``?

    Single questions and arrays may be mixed freely: all meet the same noisy threshold.

    Parameters
    ----------
    threshold
        ρ, public, taken at its exact value.
    scale_threshold, scale_query
        What the draws x and z are multiplied by (σ_X and σ_Z for the normal law).
    law
        The law of both draws.
    entropy
        Where the random bits come from.
    draw
        The threshold's own draw x, where a run continues one; otherwise it is drawn here.

    Examples
    --------
    >>> run = NoisyThreshold(10.0, scale_threshold=0.1, scale_query=0.2)
    >>> run.ask(5.0), run.ask(15.0)
    (False, True)
    >>> run.ask_many(np.array([5.0, 5.0, 15.0, 5.0])).tolist()
    [False, False, True]
    >>> run.ask_many(np.array([5.0, 15.0, 5.0]), until="all").tolist()
    [False, True, False]
    """

    def __init__(
        self,
        threshold: Exact,
        *,
        scale_threshold: Exact,
        scale_query: Exact,
        law: Law = NORMAL,
        entropy: Entropy = SYSTEM_ENTROPY,
        draw: LazyDraw | None = None,
    ) -> None:
        # Checked now; made fractions when a comparison needs them.
        usual = type(threshold) is float and math.isfinite(threshold)
        self._threshold = threshold if usual else exactly("threshold", threshold)
        self._scale_threshold = check_scale("scale_threshold", scale_threshold)
        self._scale_query = check_scale("scale_query", scale_query)
        self._law = law
        self._entropy = entropy
        self._process = process()
        self._lock = threading.RLock()
        self._cell = entropy.cell
        self._lower_ends, self._upper_ends = law.cell_lists
        if draw is None:
            draw = LazyDraw(law, entropy=entropy)
            draw.refine()
        self._draw = draw
        self._cuts: dict[Fraction, tuple[float, float]] = {}
        # For questions that are doubles: the origin, the factor from differences to distances, and the cuts.
        self._zero = nearest_double(self._threshold, clip=True)
        self._unit = nearest_double(self._scale_query)
        self._quick = _LARGEST_QUICK if abs(self._zero) <= _LARGEST_QUICK else -1.0
        self._below, self._above = self._quick_cut() or self._cut(Fraction(self._zero))

    def __repr__(self) -> str:
        return f"NoisyThreshold(law={self._law.name})"

    def __reduce__(self) -> str:
        raise StateRefused("a noisy threshold holds secret noise and is not copied or pickled; start a new run")

    def ask(self, value: Exact) -> bool:
        """Whether one noisy value reaches the noisy threshold (⊤ is ``True``).

        >>> NoisyThreshold(0, scale_threshold=1, scale_query=1).ask(1e9)
        True
        """
        if type(value) is not float or not -self._quick <= value <= self._quick:
            return self._ask_exactly(value)
        if self._process != process():
            raise self._forked()
        distance = (value - self._zero) / self._unit
        cell = self._cell()
        if distance + self._upper_ends[cell] < self._below:
            return False
        if distance + self._lower_ends[cell] > self._above:
            return True
        return self._settle(Fraction(value), cell)

    def rescaled(self, threshold: Exact, *, scale_query: Exact) -> NoisyThreshold:
        """The same draw x for questions with noise of another scale, against another public threshold.

        >>> NoisyThreshold(0, scale_threshold=1, scale_query=1).rescaled(5.0, scale_query=0.1).ask(1e9)
        True
        """
        return NoisyThreshold(
            threshold,
            scale_threshold=self._scale_threshold,
            scale_query=scale_query,
            law=self._law,
            entropy=self._entropy,
            draw=self._draw,
        )

    def ask_many(self, values: Values, *, until: Until = "first") -> NDArray[np.bool_]:
        """Verdicts in order, up to and including the first ⊤ (``until="first"``) or for all values.

        With ``until="first"`` the result is shorter than the values where a ⊤ was met; what came after it
        was not asked.
        """
        if until not in ("first", "all"):
            raise refuse("until", until, "'first' or 'all'")
        if self._process != process():
            raise self._forked()
        questions = scores(values)
        if type(questions) is FloatScores:
            distances = questions.distances(origin=self._zero, scale=self._unit)
            cut = self._below, self._above
        else:
            nearest = questions.near(self._exact.threshold)
            distances = questions.distances(origin=nearest, scale=self._scale_query)
            cut = self._cut(Fraction(nearest))
        verdicts = np.empty(len(questions), dtype=np.bool_)
        start, size = 0, _FIRST_BLOCK if until == "first" else _BLOCK
        while start < len(questions):
            stop = min(start + size, len(questions))
            answered = self._ask_block(distances(start, stop), start, questions, cut=cut, until=until)
            if start == 0 and (stop == len(questions) or (until == "first" and answered[-1])):
                return answered
            verdicts[start : start + len(answered)] = answered
            if until == "first" and answered[-1]:
                return verdicts[: start + len(answered)].copy()
            start, size = stop, _BLOCK
        return verdicts

    # Distances beyond the doubles meet infinite ends as NaN, for which every comparison fails: undecided.
    @np.errstate(invalid="ignore")
    def _ask_block(
        self,
        distance: NDArray[np.float64],
        start: int,
        questions: Scores,
        *,
        cut: tuple[float, float],
        until: Until,
    ) -> NDArray[np.bool_]:
        below, above = cut
        cells = self._entropy.words(len(distance), dtype=_WORD)
        score = self._law.cells.upper.take(cells)
        score += distance
        surely_below = score < below
        if until == "first":
            return self._up_to_the_first(surely_below, cells, distance, start, questions, above=above)
        score = self._law.cells.lower.take(cells)
        score += distance
        surely_above: NDArray[np.bool_] = score > above
        for at in (~(surely_above | surely_below)).nonzero()[0].tolist():
            surely_above[at] = self._settle(questions.exact(start + at), int(cells[at]))
        return surely_above

    def _up_to_the_first(
        self,
        surely_below: NDArray[np.bool_],
        cells: NDArray[np.uint16],
        distance: NDArray[np.float64],
        start: int,
        questions: Scores,
        *,
        above: float,
    ) -> NDArray[np.bool_]:
        """The verdicts up to the first ⊤; only those that are not ⊥ for certain are looked at again."""
        lower = self._law.cells.lower
        at = int(surely_below.argmin())
        while not surely_below[at]:
            cell = cells.item(at)
            if distance.item(at) + lower.item(cell) > above or self._settle(questions.exact(start + at), cell):
                verdicts = np.zeros(at + 1, dtype=np.bool_)
                verdicts[at] = True
                return verdicts
            surely_below[at] = True
            at += int(surely_below[at:].argmin())
        return np.zeros(len(cells), dtype=np.bool_)

    def _ask_exactly(self, value: Exact) -> bool:
        """The same question for ints, Fractions and other numbers, none of them rounded."""
        if isinstance(value, np.float64) and -self._quick <= value <= self._quick:
            return self.ask(float(value))
        try:
            number = private_rational(value)
        except InvalidData:
            raise InvalidData("value must be a finite number") from None
        if self._process != process():
            raise self._forked()
        exact = self._exact
        below, above = self._cut(exact.threshold)
        distance = nearest_double((number - exact.threshold) / exact.scale_query)
        cell = self._cell()
        if distance + self._upper_ends[cell] < below:
            return False
        if distance + self._lower_ends[cell] > above:
            return True
        return self._settle(number, cell)

    def _settle(self, value: Fraction, cell: int) -> bool:
        """The verdict where 16 bits do not decide."""
        exact = self._exact
        question = NoisyValue(
            value,
            scale=exact.scale_query,
            draw=LazyDraw(self._law, entropy=self._entropy, prefix=cell, length=16),
        )
        threshold = NoisyValue(exact.threshold, scale=exact.scale_threshold, draw=self._draw)
        with self._lock:
            return compare(question, threshold) > 0

    @cached_property
    def _exact(self) -> _Parameters:
        return _Parameters(Fraction(self._threshold), Fraction(self._scale_threshold), Fraction(self._scale_query))

    def _quick_cut(self) -> tuple[float, float] | None:
        """:meth:`_cut` for doubles measured from a threshold that is one of them, without ball arithmetic.

        ``None`` where the draw's enclosure by chords would leave a hundredth more questions undecided than a point:
        no cell is narrower than 2^-16.
        """
        law, draw = self._law, self._draw
        if not (type(self._threshold) is float and draw.length == 64 and type(self._scale_threshold) is float):
            return None
        ratio = self._scale_threshold / self._unit
        ends = law.enclose_by_chords(draw.prefix)
        if ends is None or type(self._scale_query) is not float or not 2.0**-100 < ratio < 2.0**100:
            return None
        least, most = ratio * ends[0], ratio * ends[1]
        if most - least > 2.0**-23:
            return None
        # Of this a score near t needs less than a quarter, and the two roundings of t less than a sixteenth.
        room = 2.0**-46 * (max(abs(least), abs(most)) + 65536.0)
        return least - room, most + room

    def _cut(self, origin: Fraction) -> tuple[float, float]:
        """Scores below the first are ⊥ for certain, scores above the second ⊤, rounding errors included.

        In distances from ``origin`` the noisy threshold is t = (threshold − origin + scale_threshold · x)
        / scale_query. The errors of a score near t are below 2^-46 (|t| + 2^16), as for the noisy
        maximum; a score more than twice that far out cannot be mistaken.
        """
        if origin not in self._cuts:
            with self._lock:
                while None in self._draw.balls() or self._draw.length < 64:
                    self._draw.refine()
                while True:
                    least, most = self._enclose(origin)
                    room = 2.0**-46 * (max(abs(least), abs(most)) + 65536.0)
                    # Where the threshold's noise is far wider than a question's, 64 bits are not enough.
                    if not most - least > room:
                        break
                    self._draw.refine()
            self._cuts[origin] = (least - room, most + room)
        return self._cuts[origin]

    def _enclose(self, origin: Fraction) -> tuple[float, float]:
        """Doubles around the noisy threshold, as a distance from ``origin``."""
        lower, upper = self._draw.balls()
        with working_precision(self._draw.length + 80):
            shift, scale = exact_ball(self._exact.threshold - origin), exact_ball(self._exact.scale_threshold)
            unit = exact_ball(self._exact.scale_query)
            return double_below((shift + scale * lower) / unit), double_above((shift + scale * upper) / unit)

    def _forked(self) -> StateRefused:
        return StateRefused(
            "this noisy threshold belongs to the process that drew it; a forked child must start its own"
        )
