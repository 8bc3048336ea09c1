"""Many passes of a whole set over one public stream, with ordinary noise: the same classes and the same coins.

Nothing private is looked at here, and what is simulated is the law, not the exactness of the release.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.chains import Chains, ranks
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold

#: Numbers per temporary.
_ABREAST = 1 << 18


def drawn_sets(
    mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """Which values are named in each pass, in blocks of passes; for a mechanism whose prior is a mixture of chains.

    >>> from dpselect import QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    >>> mechanism = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=1.0, candidates=3)
    >>> [block.shape for block in drawn_sets(mechanism, np.array([0.1, 0.9, 0.3]), passes=40, seed=1)]
    [(40, 3)]
    """
    if not isinstance(mechanism.prior, Chains):
        raise refuse("mechanism", mechanism, "a SetAboveThreshold whose prior is a mixture of chains")
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x53]))
    step = max(1, _ABREAST // (len(values) * len(mechanism.prior.chains)))
    for start in range(0, passes, step):
        yield _drawn(mechanism, mechanism.prior, values, min(step, passes - start), generator)


def _drawn(
    mechanism: SetAboveThreshold, prior: Chains, values: FloatArray, passes: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    number = len(values)
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
