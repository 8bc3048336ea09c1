"""Many passes of above threshold over one stream, with what each has spent: the simulation behind the online figures.

These are simulations on public data with ordinary pseudo-random normals, many passes at once; a private release goes
through :mod:`dpselect.composition` and its exact noise instead. The costs are the library's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.family import QueryFamily


@dataclass(frozen=True, kw_only=True)
class Watch:
    """One way to watch a stream: the queries' family after clipping, the threshold and the noise."""

    family: QueryFamily
    threshold: float
    sigma_threshold: float
    sigma_query: float

    def loss(self, below: ArrayLike, *, above: ArrayLike) -> FloatArray:
        """ε of a transcript with so many ⊥ and ⊤ under one noisy threshold."""
        family = self.family
        found = transcript_epsilon(
            lower=family.lower,
            upper=family.upper,
            sensitivity=family.sensitivity,
            threshold=self.threshold,
            sigma_threshold=self.sigma_threshold,
            sigma_query=self.sigma_query,
            below=below,
            above=above,
            monotone=family.monotone,
        )
        return np.asarray(found)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What each pass had cost at the end of the stream.

    ``spent`` is the loss, an open run included. ``needed`` is the least budget with which the pure filter (THEORY §4)
    lets the pass reach the end: at every question the losses of the finished runs plus the dearer of the two answers
    must fit. ``rounds`` counts the runs.
    """

    spent: FloatArray
    needed: FloatArray
    rounds: NDArray[np.int64]


def verdicts_of(
    watches: Sequence[Watch], *, values: FloatArray, passes: int, fresh: bool, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Answers of ``passes`` passes of every watch over the stream: (day, watch, pass).

    ``fresh`` draws a new noisy threshold after every ⊤, as in the paper; otherwise one serves the whole pass.
    """
    settings = [(w.family.lower, w.family.upper, w.threshold, w.sigma_threshold, w.sigma_query) for w in watches]
    low, high, threshold, sigma_threshold, sigma_query = np.array(settings).T[:, :, None]
    shape = (len(watches), passes)
    answers = np.empty((len(values), *shape), dtype=np.bool_)
    line = threshold + sigma_threshold * generator.standard_normal(shape)
    for day, value in enumerate(values.tolist()):
        above = np.clip(value, low, high) + sigma_query * generator.standard_normal(shape) >= line
        answers[day] = above
        if fresh:
            line = np.where(above, threshold + sigma_threshold * generator.standard_normal(shape), line)
    return answers


def _below_counts(verdicts: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many ⊥ the open run held before each question, and after it; a ⊤ closes the run."""
    days = np.arange(1, len(verdicts) + 1)[:, None]
    after = days - np.maximum.accumulate(np.where(verdicts, days, 0), axis=0)
    before = np.concatenate([np.zeros((1, verdicts.shape[1]), dtype=after.dtype), after[:-1]])
    return before, after


def fresh_costs(watch: Watch, *, verdicts: NDArray[np.bool_]) -> Costs:
    """Costs of passes (day, pass) that drew a new threshold after every ⊤."""
    before, after = _below_counts(verdicts)
    # Within a run the dearer answer grows with its length, so only the last question of a run can set ``needed``.
    last = verdicts.copy()
    last[-1] = True
    lengths = np.unique(before[last])
    places = np.searchsorted(lengths, np.minimum(before, lengths[-1]))
    halted, longer = watch.loss(lengths, above=1), watch.loss(lengths + 1, above=0)
    closed = np.cumsum(np.where(verdicts, halted[places], 0.0), axis=0)
    dearer = np.maximum(halted, longer)[places]
    needed = np.where(last, closed - np.where(verdicts, halted[places], 0.0) + dearer, 0.0).max(axis=0)
    rest = after[-1]
    return Costs(
        spent=closed[-1] + np.where(rest > 0, watch.loss(rest, above=0), 0.0),
        needed=needed,
        rounds=verdicts.sum(axis=0) + (rest > 0),
    )


def spent_by_day(watch: Watch, *, verdicts: NDArray[np.bool_]) -> tuple[FloatArray, NDArray[np.int64]]:
    """(Loss so far, runs so far) after every day of passes that drew a new threshold after every ⊤."""
    before, after = _below_counts(verdicts)
    lengths = np.arange(len(verdicts) + 1)
    halted, silent = watch.loss(lengths, above=1), watch.loss(lengths, above=0)
    closed = np.cumsum(np.where(verdicts, halted[before], 0.0), axis=0)
    return closed + silent[after], np.cumsum(verdicts, axis=0, dtype=np.int64) + (after > 0)


def kept_costs(watch: Watch, *, verdicts: NDArray[np.bool_]) -> Costs:
    """Costs of passes that kept one noisy threshold, any number of ⊤ under it (THEORY §2).

    The loss grows with either count, so the last question decides how much budget is needed.
    """
    days = len(verdicts)
    above, before = verdicts.sum(axis=0), verdicts[:-1].sum(axis=0)
    if_above = watch.loss(days - 1 - before, above=before + 1)
    if_below = watch.loss(days - before, above=before)
    return Costs(
        spent=watch.loss(days - above, above=above),
        needed=np.maximum(if_above, if_below),
        rounds=np.ones(verdicts.shape[1], dtype=np.int64),
    )


def f1_scores(verdicts: NDArray[np.bool_], *, truth: NDArray[np.bool_]) -> FloatArray:
    """F1 of each pass against the answers without noise.

    >>> f1_scores(np.array([[True], [False], [True]]), truth=np.array([True, True, False])).tolist()
    [0.5]
    """
    hits = (verdicts & truth[:, None]).sum(axis=0)
    return np.asarray(2.0 * hits / np.maximum(verdicts.sum(axis=0) + truth.sum(), 1))
