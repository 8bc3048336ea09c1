"""A watch whose questions are all paid for together, with the first of them: a whole set, or every value released."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.mechanism import Noise, noise_of
from dpselect.mechanisms.release import GaussianRelease
from dpselect.mechanisms.run import Verdict
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.noise.entropy import Entropy
from dpselect.ownership import owned_here, process


class WholeVector:
    """Answers to a number of questions that is known beforehand, at one price whatever they are.

    Either the whole set above the line is drawn at once, or every value is released with noise and compared with the
    line. To whoever asks it looks like a sparse vector.

    Parameters
    ----------
    watcher : SetAboveThreshold or GaussianRelease
        How the set is drawn, or how each value is released at which δ.
    threshold : float
        ρ, public.
    count : int
        How many questions are paid for; no more are answered.
    entropy : Entropy
        Where the noise comes from.

    Examples
    --------
    >>> from dpselect import GaussianRelease, QueryFamily, SeededEntropy
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4)
    >>> release = GaussianRelease.calibrated(family, candidates=2, epsilon=1.0, delta=1e-6)
    >>> vector = WholeVector(release, threshold=0.5, count=2, entropy=SeededEntropy(1))
    >>> vector.spent, vector.ask(0.1), vector.ask(0.9), vector.can_ask, 0.99 < vector.spent <= 1.0
    (0.0, <Verdict.BELOW: 'below'>, <Verdict.ABOVE: 'above'>, False, True)
    """

    #: There are no runs: nothing is charged later than at the first question.
    open_run = None

    def __init__(
        self, watcher: GaussianRelease | SetAboveThreshold, *, threshold: float, count: int, entropy: Entropy
    ) -> None:
        self.watcher: Any = watcher
        self._threshold, self._count, self._entropy = threshold, count, entropy
        self._epsilon = float(watcher.epsilon(count))
        #: The places that are paid for and not taken yet. Taking one is a single call, which no signal handler can
        #: divide: a place is never taken twice, and no more are taken than there are.
        self._places = iter(range(count))
        #: Where all values are, if they are there: looked at when the first question is asked, and all are answered.
        self.all_values: Callable[[], Any] | None = None
        self._above: NDArray[np.bool_] | None = None
        self._open = True
        self.noise: Noise = noise_of(entropy)
        self._lock = threading.RLock()
        self._process = owned_here(self)

    def __reduce__(self) -> str:
        raise StateRefused("a watch that is paid for as a whole is not copied or pickled: its copy would answer again")

    @property
    def _asked(self) -> int:
        """How many places were taken."""
        return self._count - operator.length_hint(self._places)

    @property
    def spent(self) -> float:
        """ε of all answers, from the first on."""
        return self._epsilon if self._asked else 0.0

    @property
    def remaining(self) -> float:
        """What may still be spent: all of it before the first question, nothing after it."""
        return 0.0 if self._asked else self._epsilon

    @property
    def can_ask(self) -> bool:
        """Whether one more question may be asked."""
        return self._open and self._asked < self._count

    def ask(self, value: float | Fraction) -> Verdict:
        """⊥ or ⊤ for one value; one outside the range is cut to it."""
        if self._process != process():
            raise StateRefused("this watch belongs to the process that started it; a forked child must start its own")
        with self._lock:
            return self._ask(value)

    def _ask(self, value: float | Fraction) -> Verdict:
        if not self._open:
            raise StateRefused("this watch is closed; nothing more can be asked")
        # Counted before it is drawn: whatever interrupts it, no more values are released than are paid for.
        place = next(self._places, None)
        if place is None:
            raise BudgetExhausted(
                f"all {self._count} questions that were paid for are answered; nothing was spent on this one",
                spent=self.spent,
                budget=self._epsilon,
                next_cost=self._epsilon,
            )
        if self.all_values is not None:
            above = self._above if self._above is not None else self._draw(self.all_values())
            # In one step: where a signal handler has drawn in the meantime, that set is the answer and this one is not.
            if self._above is None: self._above = above  # noqa: E701 # fmt: skip
            return Verdict.ABOVE if self._above[place] else Verdict.BELOW
        if self.needs_all:
            raise StateRefused("this answers all questions at once: give it all values, or plan for a stream")
        found = self.watcher.release([value], entropy=self._entropy, outside="clip").values
        return Verdict.ABOVE if float(found[0]) >= self._threshold else Verdict.BELOW

    @property
    def needs_all(self) -> bool:
        """Whether nothing can be answered before all values are there."""
        return isinstance(self.watcher, SetAboveThreshold)

    def _draw(self, values: Any) -> NDArray[np.bool_]:
        found = self.watcher.release(values[: self._count], entropy=self._entropy, outside="clip")
        above: NDArray[np.bool_] = found.above if self.needs_all else found.values >= self._threshold
        return above

    def close(self) -> None:
        """Refuse all further questions."""
        self._open = False
