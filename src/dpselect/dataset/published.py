"""A watch that gives every value noise of its own and compares it with the line: the whole is paid for at its first."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.outcomes import Noise, Verdict, noise_of

if TYPE_CHECKING:
    from dpselect.mechanisms.release import GaussianRelease
    from dpselect.noise.entropy import Entropy


class PublishedVector:
    """Answers read off values that are released with noise, for a number of questions that is known beforehand.

    Where a δ is allowed and many are above the line this beats every sparse vector, which pays for each of them: here
    the price is that of all values, whatever the answers are. To whoever asks it looks like a sparse vector.

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
    >>> vector = PublishedVector(release, threshold=0.5, count=2, entropy=SeededEntropy(1))
    >>> vector.spent, vector.ask(0.1), vector.ask(0.9), vector.fits, 0.99 < vector.spent <= 1.0
    (0.0, <Verdict.BELOW: 'below'>, <Verdict.ABOVE: 'above'>, False, True)
    """

    #: There are no runs: nothing is charged later than at the first question.
    open_run = None

    def __init__(self, watcher: GaussianRelease, *, threshold: float, count: int, entropy: Entropy) -> None:
        self.watcher: Any = watcher
        self._threshold, self._count, self._entropy = threshold, count, entropy
        self._epsilon = float(watcher.epsilon(count))
        self._asked = 0
        self._open = True
        self.noise: Noise = noise_of(entropy)

    @property
    def spent(self) -> float:
        """ε of all answers, from the first on."""
        return self._epsilon if self._asked else 0.0

    @property
    def remaining(self) -> float:
        """What may still be spent: all of it before the first question, nothing after it."""
        return 0.0 if self._asked else self._epsilon

    @property
    def fits(self) -> bool:
        """Whether one more question may be asked."""
        return self._open and self._asked < self._count

    def ask(self, value: float | Fraction) -> Verdict:
        """⊥ or ⊤ for one value; one outside the range is cut to it."""
        if not self._open:
            raise StateRefused("this watch is closed; nothing more can be asked")
        if not self.fits:
            raise BudgetExhausted(
                f"all {self._count} questions that were paid for are answered; nothing was spent on this one",
                spent=self.spent,
                budget=self._epsilon,
                next_cost=self._epsilon,
            )
        # Counted before it is drawn: whatever interrupts it, no more values are released than are paid for.
        self._asked += 1
        found = self.watcher.release([value], entropy=self._entropy, outside="clip").values
        return Verdict.ABOVE if float(found[0]) >= self._threshold else Verdict.BELOW

    def close(self) -> None:
        """Refuse all further questions."""
        self._open = False
