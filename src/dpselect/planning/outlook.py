"""How a stream may turn out: it stays as it is known, ⊤ become more frequent, or rarer.

A sparse vector does badly not when values move but when the *number of ⊤* differs: it pays for each of them.
So the outlook speaks of the rate of ⊤, in odds, and not of standard deviations, which say little about skewed values.
Other rates come from the known stream itself: its blocks are drawn again, those with many ⊤ more often or less, so
that values keep the shape, the bursts and the distances from the line that they have. Only where a stream has no block
of the wanted kind is its level moved.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dpselect.checks import FloatArray
from dpselect.planning.knowledge import moved_to_share
from dpselect.privacy.family import QueryFamily

#: What is chosen for: the mean over the cases, and to this part the worst of them.
GUARD = 0.1
#: How much each case counts: stays, rises, falls.
WEIGHTS = (0.6, 0.2, 0.2)
#: The odds of ⊤ may rise or fall by this factor: where the rate is only supposed, and where it is known.
SUPPOSED, KNOWN = 3.0, 2.0
#: Blocks last about so long, a week of days, and there are at least so many.
_BLOCK, _BLOCKS = 7, 30
_SEED = 20240611


class Scenario(NamedTuple):
    """One way the stream may turn out, and how much it counts when settings are chosen."""

    name: str
    weight: float
    values: FloatArray


def scenarios(values: FloatArray, family: QueryFamily, *, threshold: float, factor: float) -> tuple[Scenario, ...]:
    """The stream as known, with the odds of ⊤ raised by a factor, and with them lowered by it.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> cases = scenarios(np.linspace(0, 1, 200), family, threshold=0.9, factor=3.0)
    >>> [(one.name, round(float((one.values >= 0.9).mean()), 1)) for one in cases]
    [('as expected', 0.1), ('⊤ more often', 0.2), ('⊤ less often', 0.0)]
    """
    share = float((values >= threshold).mean())
    # Never or always is what was seen so far: half a question stands for what was not.
    least = 0.5 / len(values)
    odds = min(max(share, least), 1.0 - least)
    odds /= 1.0 - odds
    names = ("as expected", "⊤ more often", "⊤ less often")
    found = [values]
    for moved in (odds * factor, odds / factor):
        found.append(with_share(values, family, threshold=threshold, share=moved / (1.0 + moved)))
    return tuple(Scenario(*one) for one in zip(names, WEIGHTS, found, strict=True))


def with_share(values: FloatArray, family: QueryFamily, *, threshold: float, share: float) -> FloatArray:
    """The stream with another share of ⊤: blocks drawn again, each as often as brings the share about.

    Of all ways to weigh the blocks this is the one nearest to drawing them alike (an exponential tilt). Where no
    weights bring the share about, the level is moved.
    """
    length = len(values)
    size = max(1, min(_BLOCK, length // _BLOCKS))
    number = math.ceil(length / size)
    blocks = np.resize(values, number * size).reshape(number, size)
    rates = (blocks >= threshold).mean(axis=1)
    if not rates.min() < share < rates.max():
        return moved_to_share(values, family, threshold=threshold, share=share)
    low, high = -200.0, 200.0
    for _ in range(60):
        tilt = 0.5 * (low + high)
        weights = np.exp(tilt * rates - np.max(tilt * rates))
        weights /= weights.sum()
        low, high = (tilt, high) if weights @ rates < share else (low, tilt)
    generator = np.random.default_rng(_SEED)
    # One draw in each n-th of the weights, blocks of similar rate side by side: the share is met to within a block.
    order = np.lexsort((generator.random(number), rates))
    places = np.searchsorted(np.cumsum(weights[order]), (np.arange(number) + generator.random()) / number)
    drawn = generator.permutation(order[np.minimum(places, number - 1)])
    return np.asarray(blocks[drawn].ravel()[:length])


def guarded(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """What settings are chosen by, from scores of shape (cases, settings): the mean, held back by the worst case."""
    return np.asarray((1.0 - GUARD) * (weights @ scores) + GUARD * scores.min(axis=0))


#: What is known of a stream beforehand.
KnownOf: TypeAlias = Literal["nothing", "share", "range", "range and share", "series"]
#: What a watch gets wrong (1 − F1) was so many times what was predicted, but for the luckiest and unluckiest tenths, on
#: made-up streams of a dozen kinds; a little is added to both, so that next to nothing can be compared.
_WRONG: dict[KnownOf, tuple[float, float]] = {
    "nothing": (0.06, 1.9),
    "share": (0.12, 1.1),
    "range": (0.13, 1.9),
    "range and share": (0.16, 1.35),
    "series": (0.65, 1.85),
}
_LITTLE = 0.02


def stated_range(score: float, known: KnownOf) -> tuple[float, float]:
    """Between what F1 of a single watch lies four times of five, where a mean of ``score`` was predicted.

    >>> [round(end, 2) for end in stated_range(0.7, "share")]
    [0.67, 0.98]
    """
    wrong = 1.0 - score + _LITTLE
    few, many = (factor * wrong - _LITTLE for factor in _WRONG[known])
    return max(0.0, 1.0 - many), min(1.0, 1.0 - few)
