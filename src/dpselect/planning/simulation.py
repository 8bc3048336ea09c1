"""Many passes of a sparse vector over a public stream, for many settings at once and on the same noise.

Settings are rows, passes are columns. Every setting meets the same standard draws (common random numbers), so that two
settings differ by what they do and not by chance. Ordinary pseudo-random noise is enough here: nothing private
is looked at, and what is simulated is the law, not the exactness of the release.

Short streams are walked question by question, all settings and passes abreast. In long ones ⊤ is rare, and each pass
leaps from one ⊤ to the next. The two give the same answers on the same noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.composition.ration import Ration
from dpselect.mechanisms.above_threshold import Settings
from dpselect.noise.quantiles import Law

#: How ordinary noise of each law is drawn.
_DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], FloatArray]] = {
    "normal": lambda generator, size: generator.standard_normal(size),
    "laplace": lambda generator, size: generator.laplace(size=size),
    "exponential": lambda generator, size: generator.standard_exponential(size),
    "gumbel": lambda generator, size: generator.gumbel(size=size),
}

#: Which settings.
Rows: TypeAlias = slice | NDArray[np.int64]

#: Numbers per temporary, so that they stay in the cache.
_ABREAST = 1 << 15
#: A rationed stream is walked in about so many steps.
_BLOCKS = 1000
#: From this length on, leaping wins.
LONG = 4096


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
class StandardNoise:
    """Draws of scale one: ``questions`` of shape (length, passes), and as many ``lines``, one more or just one."""

    questions: FloatArray
    lines: FloatArray

    @classmethod
    def drawn(
        cls, law: Law, *, length: int, passes: int, generator: np.random.Generator, lines: int | None = None
    ) -> StandardNoise:
        """Draws for ``passes`` passes over ``length`` questions; each pass keeps its draws if the stream is cut."""
        questions = standard_draws(law, (length, passes), generator)
        number = length + 1 if lines is None else lines
        return cls(questions, standard_draws(law, (number, passes), generator))


@dataclass(frozen=True, eq=False)
class RunRule:
    """When a run may go on and what it costs, by the number m of ⊥ it holds; arrays of shape (settings, lengths).

    A question after m ⊥ is put only if ``needed[m]`` fits what is left of ``budget``. A run that ends with ⊤ after m ⊥
    takes ``topped[m]``; one that stops without takes ``silent[m]``; one of ``horizon`` ⊥ ends by itself. With
    ``chance`` a run may start only if the chance of overshooting, by the number of affordable questions, fits
    ``delta``; a run whose horizon lies below that number cannot overshoot.
    """

    budget: FloatArray
    needed: FloatArray
    topped: FloatArray
    silent: FloatArray
    horizon: NDArray[np.int64] | None = None
    chance: FloatArray | None = None
    delta: float = 0.0

    def part(self, rows: Rows) -> RunRule:
        """The rule of some of the settings, or of some several times."""
        return RunRule(
            self.budget[rows],
            self.needed[rows],
            self.topped[rows],
            self.silent[rows],
            horizon=None if self.horizon is None else self.horizon[rows],
            chance=None if self.chance is None else self.chance[rows],
            delta=self.delta,
        )


@dataclass(frozen=True, eq=False)
class Passes:
    """What came of each pass, arrays of shape (rows, passes): questions answered, ⊤ claimed, budget spent, and ⊤ that
    were right, of so many ``true`` ones, (rows, 1). Rows are settings, all of them for each stream in turn.
    """

    answered: FloatArray
    claimed: FloatArray
    spent: FloatArray
    hits: FloatArray
    true: FloatArray

    @classmethod
    def of_claims(cls, claims: Iterable[NDArray[np.bool_]], truth: NDArray[np.bool_]) -> Passes:
        """One row, from what is claimed: blocks of shape (passes, questions), all answered."""
        counted = [np.stack([above[:, truth].sum(axis=1), above.sum(axis=1)]) for above in claims]
        hits, claimed = np.concatenate(counted, axis=1).astype(np.float64)[:, None]
        answered, spent = np.full(hits.shape, float(len(truth))), np.zeros(hits.shape)
        return cls(answered, claimed, spent, hits, true=np.array([[float(truth.sum())]]))

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


def simulate_fresh(settings: Settings, rule: RunRule, *, values: FloatArray, noise: StandardNoise) -> Passes:
    """Passes that draw a new noisy threshold after every ⊤.

    Parameters
    ----------
    settings, rule
        What is compared, and what it costs.
    values : ndarray
        The public stream, or several, one per row.
    noise : StandardNoise
        The same draws for all settings.
    """
    streams = np.atleast_2d(values)
    walk = _leap if streams.shape[1] >= LONG else _abreast
    stream, setting = np.divmod(np.arange(len(streams) * len(settings)), len(settings))
    step = max(1, _ABREAST // noise.questions.shape[1])
    parts = [
        walk(settings.part(setting[rows]), rule.part(setting[rows]), streams[stream[rows]], noise)
        for rows in (slice(start, start + step) for start in range(0, len(setting), step))
    ]
    answered, claimed, spent, hits = (np.concatenate(one) for one in zip(*parts, strict=True))
    true = (streams >= settings.threshold).sum(axis=1)[stream][:, None].astype(np.float64)
    return Passes(answered, claimed, spent, hits, true=true)


def _abreast(settings: Settings, rule: RunRule, values: FloatArray, noise: StandardNoise) -> tuple[FloatArray, ...]:
    """Answers, claims, spending and hits of settings, each on its row of values."""
    # In units of the question noise, measured from the threshold: no multiplication is left in the loop.
    unit = settings.scale_query[:, None]
    distances = (np.clip(values, settings.lower[:, None], settings.upper[:, None]) - settings.levels[:, None]) / unit
    steps = np.ascontiguousarray(distances.T)[:, :, None]
    truth = np.ascontiguousarray((values >= settings.threshold).T)[:, :, None]
    ratio = settings.scale_threshold[:, None] / unit
    size = rule.needed.shape[1]
    shape = (len(settings), noise.questions.shape[1])
    base = np.arange(shape[0], dtype=np.int64)[:, None] * size
    needed, topped, silent = (np.ravel(table) for table in (rule.needed, rule.topped, rule.silent))
    place = np.broadcast_to(base, shape).copy()
    left = np.broadcast_to(rule.budget[:, None], shape).astype(np.float64)
    risked, noisy, price = np.zeros(shape), np.empty(shape), np.empty(shape)
    going, above = np.ones(shape, dtype=np.bool_), np.empty(shape, dtype=np.bool_)
    hits, claimed, answered = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    line = ratio * noise.lines[0]
    cut = None if rule.horizon is None else base + rule.horizon[:, None]
    starting = going.copy()
    for t in range(values.shape[1]):
        # Nothing is out of bounds; said so, the numbers are written where they belong at once.
        going &= needed.take(place, out=price, mode="clip") <= left
        if rule.chance is not None and starting.any():
            _admit(rule, starting, left, risked, going)
        np.greater_equal(np.add(steps[t], noise.questions[t], out=noisy), line, out=above)
        above &= going
        answered += going
        claimed += above
        hits += above & truth[t]
        np.subtract(left, topped.take(place, out=price, mode="clip"), out=left, where=above)
        place += going
        np.copyto(place, base, where=above)
        starting = above
        if cut is not None:
            over = place == cut
            over &= going
            np.subtract(left, silent.take(place, out=price, mode="clip"), out=left, where=over)
            np.copyto(place, base, where=over)
            starting = above | over
        np.copyto(line, np.multiply(ratio, noise.lines[t + 1], out=noisy), where=starting)
        if t & 31 == 31 and not going.any():
            break
    spent = rule.budget[:, None] - left + silent.take(place)
    return answered.astype(np.float64), claimed.astype(np.float64), spent, hits.astype(np.float64)


def _admit(
    rule: RunRule, starting: NDArray[np.bool_], left: FloatArray, risked: FloatArray, going: NDArray[np.bool_]
) -> None:
    """Charge the chance that the runs that start now overshoot; stop passes where it does not fit."""
    asking = starting & going
    if rule.horizon is not None:
        # Even the longest run fits: nothing is risked.
        asking &= np.take_along_axis(rule.topped, rule.horizon[:, None], axis=1) > left
    for s in np.flatnonzero(asking.any(axis=1)):
        rows = asking[s]
        risk = _risk(rule, int(s), left[s][rows])
        total = risked[s][rows] + risk
        risked[s, rows] = total
        going[s, rows] = total <= rule.delta


def _risk(rule: RunRule, s: int, left: FloatArray) -> FloatArray:
    assert rule.chance is not None  # noqa: S101  # only called where it is given
    # As many questions as a ⊤ after one ⊥ less still fits.
    affordable = np.searchsorted(rule.topped[s], left, side="right")
    risk = rule.chance[s].take(np.minimum(affordable, rule.chance.shape[1] - 1))
    return risk if rule.horizon is None else np.where(rule.horizon[s] < affordable, 0.0, risk)


def _leap(settings: Settings, rule: RunRule, values: FloatArray, noise: StandardNoise) -> tuple[FloatArray, ...]:
    """The same passes, each from ⊤ to ⊤."""
    questions, lines = np.ascontiguousarray(noise.questions.T), np.ascontiguousarray(noise.lines.T)
    found = np.empty((4, len(settings), len(questions)))
    for s, level in enumerate(settings.levels.tolist()):
        truth = values[s] >= settings.threshold
        ratio = settings.scale_threshold[s] / settings.scale_query[s]
        cut = np.clip(values[s], settings.lower[s], settings.upper[s]) - level
        cut /= settings.scale_query[s]
        horizon = len(truth) + 1 if rule.horizon is None else int(rule.horizon[s])
        for r in range(len(questions)):
            found[:, s, r] = _leap_once(cut + questions[r], ratio * lines[r], truth, rule, s, horizon)
    return tuple(found)


def _leap_once(
    noisy: FloatArray, lines: FloatArray, truth: NDArray[np.bool_], rule: RunRule, s: int, horizon: int
) -> tuple[float, float, float, float]:
    """Answers, claims, spending and hits of one pass."""
    needed, topped, silent = rule.needed[s], rule.topped[s], rule.silent[s]
    left, risked, at, hits, claimed, open_run = float(rule.budget[s]), 0.0, 0, 0, 0, 0
    length = len(noisy)
    while at < length:
        affordable = int(np.searchsorted(needed, left, side="right"))
        if rule.chance is not None:
            risked += float(_risk(rule, s, np.array([left]))[0])
            affordable = length if risked <= rule.delta else 0
        most = min(affordable, horizon, length - at)
        first = _first_above(noisy[at : at + most], lines[at])
        if first is not None:
            hits += bool(truth[at + first])
            claimed += 1
            left -= float(topped[first])
            at += first + 1
        elif most == horizon and most > 0:
            left -= float(silent[horizon])
            at += most
        else:
            open_run = most
            at += most
            break
    return float(at), float(claimed), float(rule.budget[s]) - left + float(silent[open_run]), float(hits)


def _first_above(noisy: FloatArray, line: float) -> int | None:
    """The first place that reaches the line, looked for in growing stretches."""
    start, stretch = 0, 256
    while start < len(noisy):
        above = noisy[start : start + stretch] >= line
        place = int(above.argmax())
        if above[place]:
            return start + place
        start, stretch = start + stretch, 4 * stretch
    return None


def simulate_rationed(
    settings: Settings,
    ration: Ration,
    *,
    each: FloatArray,
    budget: float,
    values: FloatArray,
    noise: StandardNoise,
) -> Passes:
    """Passes of one setting under one noisy threshold, each question with the noise that what is left allows.

    ``each`` is what noise of scale one costs: of the threshold, and of a question answered ⊤ (⊥ where that is rare).
    In streams of more than a thousand questions those of a thousandth share their price, which hardly moves among them.
    """
    of_line = float(settings.scale_threshold[0])
    side = 1.0 if ration.rare == "above" else -1.0
    streams = np.atleast_2d(values)
    truth = streams >= settings.threshold
    # Measured from the threshold, so that the other side is the same with the sign changed.
    distances = side * (np.clip(streams, settings.lower[0], settings.upper[0]) - settings.threshold)
    line = of_line * noise.lines[0]
    shape, length = (len(streams), len(line)), streams.shape[1]
    left = np.full(shape, budget - each[0] / of_line)
    count, hits, claimed = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    block = max(1, length // _BLOCKS)
    starts = range(0, length, block) if left[0, 0] > 0.0 else range(0)
    for start in starts:
        rows = slice(start, start + block)
        part = ration.price(start, count, left=1.0)
        scale = each[1] / (part * left)
        level = line + settings.kind.offset(of_line, scale) + ration.lean * scale
        rare = distances[:, rows, None] + scale[:, None, :] * noise.questions[rows] >= level[:, None, :]
        found = rare.sum(axis=1)
        # Each takes its part of what the ones before it left.
        left *= np.power(1.0 - part, found)
        count += found
        right = (rare & truth[:, rows, None]).sum(axis=1)
        claimed += found if side > 0 else rare.shape[1] - found
        hits += right if side > 0 else truth[:, rows].sum(axis=1)[:, None] - right
    answered = np.full(shape, float(length) if len(starts) else 0.0)
    return Passes(answered, claimed, budget - left, hits, true=truth.sum(axis=1)[:, None].astype(np.float64))


def simulate_kept(
    settings: Settings, longest_below: NDArray[np.int64], *, values: FloatArray, noise: StandardNoise
) -> Passes:
    """Passes under one noisy threshold for all questions; what was spent is left at 0, to be priced by the counts.

    ``longest_below[s, k]`` is the most ⊥ that a run with k ⊤ may hold when one more question is put, -1 where none is.
    """
    streams = np.atleast_2d(values)
    length, passes = noise.questions.shape
    truth = streams >= settings.threshold
    # A row per pass, so that a run lies side by side in memory; counts fit half of what indices take.
    asked, questions = np.arange(length, dtype=np.int32), np.ascontiguousarray(noise.questions.T)
    limits = np.minimum(longest_below, length).astype(np.int32)
    answered, claimed, hits = (np.zeros((len(streams), len(settings), passes)) for _ in range(3))
    for s, level in enumerate(settings.levels.tolist()):
        line = settings.scale_threshold[s] * noise.lines[0][:, None]
        noises = settings.scale_query[s] * questions
        for one, stream in enumerate(np.clip(streams, settings.lower[s], settings.upper[s]) - level):
            above = stream + noises >= line
            before = np.cumsum(above, axis=1, dtype=np.int32)
            before -= above
            allowed = asked - before <= limits[s].take(before)
            # Once a question does not fit, nothing later is asked.
            answered[one, s] = np.where(allowed.all(axis=1), length, np.argmin(allowed, axis=1))
            above &= asked < answered[one, s][:, None]
            claimed[one, s] = np.count_nonzero(above, axis=1)
            hits[one, s] = np.count_nonzero(above & truth[one], axis=1)
    rows = (len(streams) * len(settings), passes)
    true = np.repeat(truth.sum(axis=1), len(settings))[:, None].astype(np.float64)
    return Passes(answered.reshape(rows), claimed.reshape(rows), np.zeros(rows), hits.reshape(rows), true=true)
