"""The guarantee in words that need no mathematics, each number on the safe side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpselect.checks import non_negative, refuse
from dpselect.mechanisms.mechanism import Noise
from dpselect.rounding import at_most

#: What a neighbouring dataset is; ``declared`` where the curator vouches for what one person can change.
Neighbours: TypeAlias = Literal["add-remove", "replace", "declared"]

_PERSON = {
    "add-remove": "Take any one person out of the data, or add one",
    "replace": "Replace any one person's data by anything else",
    "declared": "Change the data by as much as one person can, as the curator declared it",
}
#: Beyond this the sentences would promise something that nobody should rely on.
_WEAK, _HARDLY_ANY = 3.0, 10.0


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a release promises to each person in the data.

    Parameters
    ----------
    epsilon, delta : float
        (ε, δ), upper bounds; δ = 0 is pure differential privacy.
    neighbours : {"add-remove", "replace", "declared"}
        What a neighbouring dataset is.
    noise : {"private", "reproducible"}
        A reproducible release promises nothing to whoever knows the seed.

    Examples
    --------
    >>> promise = Guarantee(epsilon=0.1)
    >>> promise.headline
    'pure ε = 0.1'
    >>> print(promise.sentences[0])
    Take any one person out of the data, or add one: the chance of every possible answer changes by at most a factor
    of 1.106.
    >>> promise.beliefs
    (('1%', '1.105%'), ('10%', '10.94%'), ('50%', '52.5%'))
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "add-remove"
    noise: Noise = "private"

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        non_negative("delta", self.delta)
        if self.neighbours not in _PERSON:
            raise refuse("neighbours", self.neighbours, "one of " + ", ".join(_PERSON))

    @property
    def headline(self) -> str:
        """ε (and δ) in one phrase; with a seed, that there is none.

        >>> Guarantee(epsilon=0.1, noise="reproducible").headline
        'none: a seed was used (with private noise: pure ε = 0.1)'
        """
        pure = f"pure ε = {at_most(self.epsilon)}"
        bound = pure if self.delta == 0 else f"ε = {at_most(self.epsilon)} up to δ = {at_most(self.delta)}"
        return bound if self.holds else f"none: a seed was used (with private noise: {bound})"

    @property
    def holds(self) -> bool:
        """Whether anything is promised: not to those who know the seed."""
        return self.noise == "private"

    @property
    def factor(self) -> float:
        """e^ε, rounded up."""
        if self.epsilon > 700:
            return math.inf
        return math.nextafter(math.exp(self.epsilon) * (1 + 2**-51), math.inf) if self.epsilon > 0 else 1.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """The promise, then how far it reaches."""
        weakness = () if self.weakness is None else (self.weakness,)
        if not self.holds:
            return (self._promise, *weakness)
        return (self._promise, *weakness, self._several_people, self._more_answers)

    @property
    def _promise(self) -> str:
        what = "the chance of every possible answer changes by at most a factor of " + at_most(self.factor)
        if self.epsilon == 0 and self.delta == 0:
            what = "the chance of every possible answer stays the same"
        if self.delta > 0:
            what += f", and beyond that by at most {at_most(self.delta)}"
        person = _PERSON[self.neighbours]
        if not self.holds:
            return f"With private noise this would hold: {person[0].lower()}{person[1:]}, and {what}."
        return f"{person}: {what}."

    @property
    def weakness(self) -> str | None:
        """What to say when ε is so large that the promise should not be relied on; else nothing.

        >>> Guarantee(epsilon=1).weakness
        >>> Guarantee(epsilon=4).weakness
        'This is a weak promise: an answer can turn a suspicion about a person into near certainty.'
        """
        if self.epsilon > _HARDLY_ANY:
            return "At this ε the promise protects hardly anyone: an answer can all but prove a suspicion."
        if self.epsilon > _WEAK:
            return "This is a weak promise: an answer can turn a suspicion about a person into near certainty."
        return None

    @property
    def _several_people(self) -> str:
        return (
            "It holds whatever else anyone knows, now or later. For a group of k people acting as one (a household, "
            "say) ε counts k times."
        )

    @property
    def _more_answers(self) -> str:
        return "Every further answer from the same data costs more: the ε of all answers add up."

    @property
    def beliefs(self) -> tuple[tuple[str, str], ...]:
        """What someone may believe about a person before the answer, and at most after it; empty when δ > 0, or
        when a seed was used.
        """
        if self.delta > 0 or not self.holds:
            return ()
        return tuple((f"{prior}%", _belief(prior, self.factor)) for prior in (1, 10, 50))


def _belief(prior: int, factor: float) -> str:
    """The largest posterior, from odds multiplied by e^ε."""
    if math.isinf(factor):
        return "100%"
    posterior = 100.0 * prior * factor / (100.0 - prior + prior * factor)
    # Six digits keep 99.9999% apart from 100%; the last one is rounded up.
    return f"{at_most(min(100.0, math.nextafter(posterior, 100.0)), digits=4 if posterior < 99 else 6)}%"
