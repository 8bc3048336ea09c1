"""Many passes of above threshold over one stream, with what each has spent: the simulation behind the online figures.

These are simulations on public data with ordinary pseudo-random normals, many passes at once; a private release goes
through :mod:`dpselect.composition` and its exact noise instead. The costs are the library's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold, LaplaceAboveThreshold
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold


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


def noise_of(watches: Sequence[AboveThreshold], generator: np.random.Generator) -> Callable[..., FloatArray]:
    """Draws from the law that the watches share, at scale 1."""
    draws: dict[type[AboveThreshold], Callable[..., Any]] = {
        GaussianAboveThreshold: generator.standard_normal,
        LaplaceAboveThreshold: partial(generator.laplace, 0.0, 1.0),
        ExponentialAboveThreshold: partial(generator.exponential, 1.0),
    }
    (kind,) = {type(watch) for watch in watches}
    return draws[kind]


def verdicts_of(
    watches: Sequence[AboveThreshold],
    *,
    values: FloatArray,
    passes: int,
    fresh: bool,
    generator: np.random.Generator,
    cap: int | None = None,
) -> NDArray[np.bool_]:
    """Answers of ``passes`` passes of every watch over the stream: (day, watch, pass).

    ``fresh`` draws a new noisy threshold after every ⊤, as in the paper; otherwise one serves the whole pass. With a
    ``cap`` a run of so many ⊥ ends too. All watches have noise of one law.
    """
    settings = [(w.family.lower, w.family.upper, w.level, *w.scales) for w in watches]
    low, high, level, scale_threshold, scale_query = np.array(settings).T[:, :, None]
    shape, noise = (len(watches), passes), noise_of(watches, generator)
    answers = np.empty((len(values), *shape), dtype=np.bool_)
    line = level + scale_threshold * noise(shape)
    length = np.zeros(shape, dtype=np.int64)
    for day, value in enumerate(values.tolist()):
        above = np.clip(value, low, high) + scale_query * noise(shape) >= line
        answers[day] = above
        if fresh:
            length = np.where(above, 0, length + 1)
            over = above if cap is None else above | (length >= cap)
            length[over] = 0
            line = np.where(over, level + scale_threshold * noise(shape), line)
    return answers


def loss_of(watch: AboveThreshold, below: ArrayLike, *, above: ArrayLike) -> FloatArray:
    """The watch's own loss, as an array."""
    return np.asarray(watch.loss(below, above))


def below_counts(verdicts: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many ⊥ the open run held before each question, and after it; a ⊤ closes the run."""
    days = np.arange(1, len(verdicts) + 1)[:, None]
    after = days - np.maximum.accumulate(np.where(verdicts, days, 0), axis=0)
    before = np.concatenate([np.zeros((1, verdicts.shape[1]), dtype=after.dtype), after[:-1]])
    return before, after


def fresh_costs(watch: AboveThreshold, *, verdicts: NDArray[np.bool_]) -> Costs:
    """Costs of passes (day, pass) that drew a new threshold after every ⊤."""
    before, after = below_counts(verdicts)
    # Within a run the dearer answer grows with its length, so only the last question of a run can set ``needed``.
    last = verdicts.copy()
    last[-1] = True
    lengths = np.unique(before[last])
    places = np.searchsorted(lengths, np.minimum(before, lengths[-1]))
    halted, longer = loss_of(watch, lengths, above=1), loss_of(watch, lengths + 1, above=0)
    closed = np.cumsum(np.where(verdicts, halted[places], 0.0), axis=0)
    dearer = np.maximum(halted, longer)[places]
    needed = np.where(last, closed - np.where(verdicts, halted[places], 0.0) + dearer, 0.0).max(axis=0)
    rest = after[-1]
    return Costs(
        spent=closed[-1] + np.where(rest > 0, loss_of(watch, rest, above=0), 0.0),
        needed=needed,
        rounds=verdicts.sum(axis=0) + (rest > 0),
    )


def spent_by_day(
    watch: AboveThreshold, *, verdicts: NDArray[np.bool_], cap: int | None = None
) -> tuple[FloatArray, NDArray[np.int64]]:
    """(Loss so far, runs so far) after every day of passes that drew a new threshold after every ⊤, or ``cap`` ⊥."""
    before, after = below_counts(verdicts)
    ended = np.zeros_like(verdicts)
    if cap is not None:
        ended = (after > 0) & (after % cap == 0)
        before, after = before % cap, after % cap
    lengths = np.arange(int(after.max()) + 2)
    halted, silent = loss_of(watch, lengths, above=1), loss_of(watch, lengths, above=0)
    full = 0.0 if cap is None else float(loss_of(watch, cap, above=0))
    closed = np.cumsum(np.where(verdicts, halted[before], np.where(ended, full, 0.0)), axis=0)
    return closed + silent[after], np.cumsum(verdicts | ended, axis=0, dtype=np.int64) + (after > 0)


def kept_costs(watch: AboveThreshold, *, verdicts: NDArray[np.bool_]) -> Costs:
    """Costs of passes that kept one noisy threshold, any number of ⊤ under it (THEORY §2).

    The loss grows with either count, so the last question decides how much budget is needed.
    """
    days = len(verdicts)
    above, before = verdicts.sum(axis=0), verdicts[:-1].sum(axis=0)
    if_above = loss_of(watch, days - 1 - before, above=before + 1)
    if_below = loss_of(watch, days - before, above=before)
    return Costs(
        spent=loss_of(watch, days - above, above=above),
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
