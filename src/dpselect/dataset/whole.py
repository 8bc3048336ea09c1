"""A stream of known length whose values are all released, at one price that the first question pays."""

from __future__ import annotations

import operator
import threading
from fractions import Fraction

from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.mechanism import Noise, noise_of
from dpselect.mechanisms.release import GaussianRelease
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import Entropy
from dpselect.ownership import owned_here, process


class WholeVector:
    """Answers to a number of questions that is known beforehand, at one price whatever they are.

    Every value is released with noise and compared with the line. To whoever asks it looks like a sparse vector.

    Parameters
    ----------
    watcher : GaussianRelease
        How each value is released, at which δ.
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

    def __init__(self, watcher: GaussianRelease, *, threshold: float, count: int, entropy: Entropy) -> None:
        self.watcher = watcher
        self._threshold, self._count, self._entropy = threshold, count, entropy
        self._epsilon = float(watcher.epsilon(count))
        #: The places that are paid for and not taken yet. Taking one is a single call, which no signal handler can
        #: divide: a place is never taken twice, and no more are taken than there are.
        self._places = iter(range(count))
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
            if not self._open:
                raise StateRefused("this watch is closed; nothing more can be asked")
            # Counted before it is drawn: whatever interrupts it, no more values are released than are paid for.
            if next(self._places, None) is None:
                raise BudgetExhausted(
                    f"all {self._count} questions that were paid for are answered; nothing was spent on this one",
                    spent=self.spent,
                    budget=self._epsilon,
                    next_cost=self._epsilon,
                )
            found = self.watcher.release([value], entropy=self._entropy, outside="clip").values
            return Verdict.ABOVE if float(found[0]) >= self._threshold else Verdict.BELOW

    def close(self) -> None:
        """Refuse all further questions."""
        self._open = False
