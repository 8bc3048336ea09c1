"""Many passes of each way over public streams, on ordinary pseudo-random noise.

Nothing private is looked at, and what is simulated is the law of the answers, not the exactness of their release. Every
setting that is compared meets the same standard draws, so that two settings differ by what they do and not by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.ration import Ration
from dpselect.mechanisms.chains import ranks
from dpselect.mechanisms.classical_above_threshold import ClassicalAboveThreshold, median_offset
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.noise.quantiles import EXPONENTIAL, Law

#: How ordinary noise of each law is drawn.
_DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "normal": lambda generator, size: generator.standard_normal(size),
    "laplace": lambda generator, size: generator.laplace(size=size),
    "exponential": lambda generator, size: generator.standard_exponential(size),
    "gumbel": lambda generator, size: generator.gumbel(size=size),
}
#: A rationed stream is walked in about so many steps.
_BLOCKS = 1000
#: Values per temporary array.
_ABREAST = 1 << 18


def standard_draws(law: Law, shape: tuple[int, int], generator: np.random.Generator) -> FloatArray:
    """Ordinary noise of scale one."""
    draw = _DRAWS.get(law.name)
    if draw is not None:
        return draw(generator, shape)
    uniform = 1.0 - generator.random(shape)
    return np.where(
        uniform < 0.5, law.from_left(np.minimum(uniform, 0.5)), law.from_right(np.maximum(1 - uniform, 2**-60))
    )


@dataclass(frozen=True, eq=False)
class Passes:
    """What came of each pass, arrays of shape (streams, passes): questions answered, ⊤ claimed, budget spent, and ⊤
    that were right, of so many ``true`` ones, (streams, 1).
    """

    answered: FloatArray
    claimed: FloatArray
    spent: FloatArray
    hits: FloatArray
    true: FloatArray

    @classmethod
    def of_claims(cls, claims: Iterable[NDArray[np.bool_]], truth: NDArray[np.bool_], *, spent: float) -> Passes:
        """One row, from what is claimed: blocks of shape (passes, questions), all answered."""
        counted = [np.stack([above[:, truth].sum(axis=1), above.sum(axis=1)]) for above in claims]
        hits, claimed = np.concatenate(counted, axis=1).astype(np.float64)[:, None]
        answered, cost = np.full(hits.shape, float(len(truth))), np.full(hits.shape, spent)
        return cls(answered, claimed, cost, hits, true=np.array([[float(truth.sum())]]))

    @classmethod
    def stacked(cls, found: Sequence[Passes]) -> Passes:
        """The rows of all."""
        return cls(*(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(cls)))

    @property
    def f1(self) -> FloatArray:
        """F1 of each pass."""
        return f1_scores(self.hits, claimed=self.claimed, true=self.true)

    @property
    def precision(self) -> FloatArray:
        """The share of the ⊤ that are right; 1 where none was claimed."""
        return np.where(self.claimed > 0, self.hits / np.maximum(self.claimed, 1.0), 1.0)

    @property
    def recall(self) -> FloatArray:
        """The share of the true ⊤ that were named; 1 where there are none."""
        return np.where(self.true > 0, self.hits / np.maximum(self.true, 1.0), 1.0)


def f1_scores(hits: FloatArray, *, claimed: FloatArray, true: FloatArray | float) -> FloatArray:
    """2·hits/(claimed + true): questions not answered count as ⊥. Nothing to find and nothing claimed is a success.

    >>> f1_scores(np.array([2.0, 0.0]), claimed=np.array([3.0, 0.0]), true=3.0).round(3).tolist()
    [0.667, 0.0]
    """
    both = claimed + true
    return np.where(both > 0, 2.0 * hits / np.maximum(both, 1.0), 1.0)


def simulate_rationed(
    ration: Ration,
    *,
    scale_threshold: float,
    costs: tuple[float, float],
    budget: float,
    threshold: float,
    streams: FloatArray,
    passes: int,
    generator: np.random.Generator,
) -> Passes:
    """Passes under one noisy threshold with exponential noise, each question with the noise that the rest allows.

    Parameters
    ----------
    ration : Ration
        How the budget is shared out.
    scale_threshold : float
        b_X, the noise of the threshold.
    costs : (float, float)
        ε of noise of scale one: of the threshold, and of one rare answer.
    budget, threshold : float
        ε in all, and ρ.
    streams : ndarray
        Values within the range, one stream per row.

    Streams of more than a thousand questions are walked in a thousand blocks of one price each.
    """
    side = 1.0 if ration.rare == "above" else -1.0
    truth = streams >= threshold
    # Measured from the threshold, so that the other side is the same with the sign changed.
    distances = side * (streams - threshold)
    line = scale_threshold * standard_draws(EXPONENTIAL, (1, passes), generator)[0]
    shape, length = (len(streams), passes), streams.shape[1]
    left = np.full(shape, budget - costs[0] / scale_threshold)
    count, hits, claimed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    block = max(1, length // _BLOCKS)
    starts = range(0, length, block) if left[0, 0] > 0.0 else range(0)
    for start in starts:
        rows = slice(start, start + block)
        share = ration.price(start, count, left=1.0)
        scale = costs[1] / (share * left)
        level = line + median_offset(scale_threshold, scale) + ration.lean * scale
        noise = generator.standard_exponential((min(block, length - start), passes))
        rare = distances[:, rows, None] + scale[:, None, :] * noise >= level[:, None, :]
        found = rare.sum(axis=1)
        # Each takes its share of what the ones before it left.
        left *= np.power(1.0 - share, found)
        count += found
        right = (rare & truth[:, rows, None]).sum(axis=1)
        claimed += found if side > 0 else rare.shape[1] - found
        hits += right if side > 0 else truth[:, rows].sum(axis=1)[:, None] - right
    answered = np.full(shape, float(length) if len(starts) else 0.0)
    return Passes(answered, claimed, budget - left, hits, true=truth.sum(axis=1)[:, None].astype(np.float64))


def simulate_kept(
    watcher: ClassicalAboveThreshold,
    *,
    epsilon: float,
    streams: FloatArray,
    passes: int,
    generator: np.random.Generator,
) -> Passes:
    """Passes under one noisy threshold that end when the next answer might not fit ε."""
    family, (scale_threshold, scale_query) = watcher.family, watcher.scales
    costs = family.sensitivity / scale_threshold, family.sensitivity / scale_query

    def loss(below: FloatArray, above: FloatArray) -> FloatArray:
        return np.asarray(type(watcher).bound(*costs, below, above, monotone=family.monotone))

    truth = streams >= watcher.threshold
    length = streams.shape[1]
    line = scale_threshold * standard_draws(watcher.law, (passes, 1), generator)
    noise = scale_query * standard_draws(watcher.law, (passes, length), generator)
    answered, claimed, hits, spent = (np.zeros((len(streams), passes)) for _ in range(4))
    for row, values in enumerate(streams - watcher.level):
        above = values + noise >= line
        tops = np.cumsum(above, axis=1) - above
        bottoms = np.arange(length) - tops
        worst = np.maximum(loss(bottoms + 1.0, tops), loss(bottoms, tops + 1.0))
        # Once a question does not fit, nothing later is asked.
        asked = np.logical_and.accumulate(worst <= epsilon * (1.0 + 1e-12), axis=1)
        above &= asked
        answered[row], claimed[row] = asked.sum(axis=1), above.sum(axis=1)
        hits[row] = above[:, truth[row]].sum(axis=1)
        spent[row] = loss(answered[row] - claimed[row], claimed[row])
    return Passes(answered, claimed, spent, hits, true=truth.sum(axis=1)[:, None].astype(np.float64))


def published(
    values: FloatArray, *, law: Law, scale: float, threshold: float, passes: int, generator: np.random.Generator
) -> Iterator[NDArray[np.bool_]]:
    """Which of the published values are at or above the threshold, in blocks of passes."""
    step = max(1, _ABREAST // len(values))
    for start in range(0, passes, step):
        shape = (min(step, passes - start), len(values))
        yield values + scale * standard_draws(law, shape, generator) >= threshold


def drawn_sets(
    mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, generator: np.random.Generator
) -> Iterator[NDArray[np.bool_]]:
    """Whole sets in doubles, in blocks of passes: the same classes and the same coins, without the care for rounding.

    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    >>> mechanism = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=1.0, candidates=3)
    >>> values, generator = np.array([0.1, 0.9, 0.3]), np.random.default_rng(1)
    >>> [block.shape for block in drawn_sets(mechanism, values, passes=40, generator=generator)]
    [(40, 3)]
    """
    step = max(1, _ABREAST // (len(values) * len(mechanism.prior.chains)))
    for start in range(0, passes, step):
        yield _draw_sets(mechanism, values, min(step, passes - start), generator)


def _draw_sets(
    mechanism: SetAboveThreshold, values: FloatArray, passes: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    prior, number = mechanism.prior, len(values)
    over = values - mechanism.threshold - generator.laplace(0.0, mechanism.scale_threshold, (passes, 1))
    above, away = (over >= 0).astype(np.int64), np.abs(over)
    order = np.argsort(away, axis=1, kind="stable")
    rank = ranks(order)
    weights = prior.log_weights(above, order=order, rank=rank)
    weights[..., 1:] -= np.take_along_axis(away, order, axis=1) / mechanism.scale
    # Passes first, then chains and classes in one row.
    weights = np.moveaxis(weights + generator.gumbel(size=weights.shape), 0, 1).reshape(passes, -1)
    member, wrong = np.divmod(weights.argmax(axis=1), number + 1)
    labels, free = above ^ (rank == wrong[:, None]), rank < wrong[:, None]
    words = generator.integers(0, 1 << 64, size=(passes, number), dtype=np.uint64)
    found = np.empty((passes, number), dtype=np.bool_)
    for each in range(len(prior.chains)):
        rows = member == each
        found[rows] = prior.filled(labels[rows], free[rows], member=each, words=words[rows])
    return found
