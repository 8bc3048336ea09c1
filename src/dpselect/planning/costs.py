"""What runs cost, for many settings at once: exact losses at a few counts per setting, and what lies between them.

While settings are compared, losses are computed at some twenty run lengths and interpolated; they are smooth in the
logarithm of the length, and the error is below what the simulation can see. What is predicted for a plan that is
handed out uses a loss for every length from a finer sum. Nothing here is charged to anyone: the mechanism prices itself
when it runs, by bounds with a proof.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dpselect.checks import FloatArray
from dpselect.mechanisms.above_threshold import Settings
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.numerics.integral import log_integral
from dpselect.planning.contender import SparseContender, SparseParameters, count_runs, make_filter, runs_allowed
from dpselect.planning.job import Job
from dpselect.planning.simulation import RunRule
from dpselect.privacy.family import QueryFamily

#: How closely losses are looked at: while many settings are compared, among the last few, and for the final word.
Detail: TypeAlias = Literal["rough", "fine", "exact"]

#: Run lengths below this are all computed; beyond, so many more, evenly on the logarithmic scale.
_DENSE = 3
_KNOTS: dict[Detail, int] = {"rough": 9, "fine": 24, "exact": 280}
#: Counts of ⊥ and of ⊤ where the threshold is kept.
_COUNTS: dict[Detail, int] = {"rough": 9, "fine": 20, "exact": 20}
#: For the final prediction limits of a kept threshold are looked for at so many counts of ⊤.
_TOPS = 64
#: Streams up to this length are priced at every length for the final word.
_EVERY = 1024

#: Nodes of the plain sum: few while many settings are compared, and enough for ten digits in the final word.
_GRID: dict[Detail, int] = {"rough": 241, "fine": 481, "exact": 2401}
#: A plain rule for E_x while settings are compared.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

#: Losses (settings, cells) of transcripts with so many ⊥ and ⊤, arrays that broadcast to (settings, cells).
Losses: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]


def own_losses(family: QueryFamily, settings: Settings) -> Losses:
    """The mechanism's own."""
    return functools.partial(settings.losses, family)


def plain_losses(family: QueryFamily, settings: Settings, *, detail: Detail) -> Losses:
    """Gaussian losses by a plain sum over one grid per setting.

    log Φ of the factors is taken once per node and serves every count of ⊥ and ⊤. With few nodes good to a few parts in
    a hundred where runs are worth their price; what is charged comes from the bounds with a proof.
    """
    first, second = settings.scale_threshold[:, None], settings.scale_query[:, None]
    above_it, below_it = settings.upper[:, None] - settings.threshold, settings.threshold - settings.lower[:, None]
    # The peak of the integrand lies between 0 and where the noisy threshold meets the end of the range.
    x = (8.0 + np.maximum(above_it, below_it) / first) * np.linspace(-1.0, 1.0, _GRID[detail])
    move = np.minimum(family.sensitivity, settings.upper - settings.lower)[:, None] / second
    silent, topped = (first * x - above_it) / second, (-below_it - first * x) / second
    unmoved, moved = ([log_ndtr(part + shift) for part in (silent, topped)] for shift in (0.0, move))

    def log_integral_of(below: FloatArray, above: FloatArray, factors: list[FloatArray]) -> FloatArray:
        height = below[..., None] * factors[0][:, None, :] + above[..., None] * factors[1][:, None, :]
        height -= 0.5 * np.square(x)[:, None, :]
        peak = height.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(height - peak).sum(axis=-1)) + peak[..., 0])

    def losses(below: FloatArray, above: FloatArray) -> FloatArray:
        m, k = (np.broadcast_to(part, np.broadcast_shapes(below.shape, above.shape)) for part in (below, above))
        before = log_integral_of(m, k, unmoved)
        if not family.monotone:
            return log_integral_of(m, k, moved) - before
        either = ([moved[0], unmoved[1]], [unmoved[0], moved[1]])
        return np.maximum(*(log_integral_of(m, k, factors) for factors in either)) - before

    return losses


def run_lengths(longest: int, detail: Detail) -> FloatArray:
    """The counts at which losses are computed.

    >>> run_lengths(5, "rough").tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> len(run_lengths(365, "rough")), len(run_lengths(365, "exact"))
    (12, 366)
    """
    if longest <= (_EVERY if detail == "exact" else _DENSE + _KNOTS[detail]):
        return np.arange(longest + 1, dtype=np.float64)
    spread = np.geomspace(_DENSE, longest, _KNOTS[detail]).round()
    return np.unique(np.concatenate([np.arange(_DENSE, dtype=np.float64), spread]))


def _at_every_length(knots: FloatArray, values: FloatArray, longest: int) -> FloatArray:
    """0 to ``longest``, linear in log(1 + m) between the knots."""
    if len(knots) == longest + 1:
        return values
    scale, places = np.log1p(np.arange(longest + 1, dtype=np.float64)), np.log1p(knots)
    return np.stack([np.interp(scale, places, row) for row in values])


def pure_rule(losses: Losses, *, longest: int, epsilon: float, detail: Detail = "rough") -> RunRule:
    """The pure filter (THEORY §4): a question is put only if both answers to it fit."""
    knots = run_lengths(longest + 1, detail)
    both = losses(np.tile(knots, 2)[None, :], np.repeat([0.0, 1.0], len(knots))[None, :])
    silent, topped = (_at_every_length(knots, part, longest + 1) for part in np.split(both, 2, axis=1))
    needed = np.maximum(silent[:, 1:], topped[:, :-1])
    # What rounding may leave out of order would confuse a search for the last one that fits.
    needed = np.maximum.accumulate(needed, axis=1)
    return RunRule(np.full(len(needed), float(epsilon)), needed, topped[:, :-1], silent[:, :-1])


def repaired_rule(
    losses: Losses,
    settings: Settings,
    *,
    horizon: NDArray[np.int64],
    longest: int,
    epsilon: float,
    delta: float,
    detail: Detail = "rough",
) -> RunRule:
    """The repaired reporting filter (THEORY §4): a run starts while the chance that it overshoots fits δ."""
    pure = pure_rule(losses, longest=longest, epsilon=epsilon, detail=detail)
    knots = run_lengths(longest + 1, detail)[1:]
    slope = (settings.scale_threshold / settings.scale_query)[:, None, None]
    offset = ((settings.threshold - settings.lower) / settings.scale_query)[:, None, None]
    if detail == "exact":
        found = np.asarray(log_integral(knots[None, :, None], *np.broadcast_arrays(slope, offset)).upper)
    else:
        silent = np.einsum("n,snk->sk", _WEIGHTS, np.exp(knots * log_ndtr(slope * _NODES[:, None] + offset)))
        found = np.log(np.maximum(silent, 1e-300))
    chance = np.exp(_at_every_length(knots - 1.0, found, longest))
    chance = np.concatenate([np.ones((len(chance), 1)), chance], axis=1)
    # Whatever is left, a run that started goes on to its ⊤.
    always = np.full_like(pure.needed, -np.inf)
    return RunRule(pure.budget, always, pure.topped, pure.silent, horizon=horizon, chance=chance, delta=delta)


def counted_rule(runs: FloatArray, horizon: NDArray[np.int64], *, longest: int) -> RunRule:
    """So many runs, each paid before it starts, each ended by its first ⊤ or by the horizon."""
    ones = np.ones((len(runs), longest + 1))
    stopped = ones.copy()
    stopped[:, 0] = 0.0
    return RunRule(runs.astype(np.float64), ones, ones, stopped, horizon=horizon)


def horizon_costs(losses: Losses, horizon: NDArray[np.int64]) -> FloatArray:
    """Pure ε of a run that stops at its first ⊤ or at the horizon (THEORY §3), one per setting."""
    below = np.stack([horizon - 1.0, horizon.astype(np.float64)], axis=1)
    return np.asarray(losses(below, np.array([[1.0, 0.0]])).max(axis=1))


def kept_limits(losses: Losses, *, longest: int, epsilon: float, detail: Detail = "rough") -> NDArray[np.int64]:
    """The most ⊥ that a run with k ⊤ may hold when one more question is put, -1 where none may: (settings, k).

    From losses at a few counts of ⊥ and of ⊤; between them they follow powers of the counts.
    """
    counts = _COUNTS[detail]
    knots = _spread_counts(longest, counts)
    grid_below, grid_above = (axis.ravel()[None, :] for axis in np.meshgrid(knots, knots, indexing="ij"))
    cells = losses(grid_below, grid_above)
    cells = np.log(np.maximum(cells, 1e-12 * epsilon)).reshape(len(cells), len(knots), len(knots))
    # One ⊥ more, or one ⊤ more, read off the same losses; then at more counts of ⊤.
    finer = _spread_counts(longest, 5 * counts)
    one_more_below = np.einsum("ij,sjk->sik", _reading(knots, knots + 1.0), cells)
    one_more_above = np.einsum("ij,skj->ski", _reading(knots, knots + 1.0), cells)
    worst = np.einsum("ij,skj->ski", _reading(knots, finer), np.maximum(one_more_below, one_more_above))
    worst = np.maximum.accumulate(worst, axis=1)
    places, scale, whole = np.log1p(knots), np.log1p(finer), np.log1p(np.arange(longest + 1, dtype=np.float64))
    limits = np.empty((len(cells), longest + 1))
    for s in range(len(cells)):
        last = [_last_fit(worst[s, :, j], places, math.log(epsilon)) for j in range(len(finer))]
        limits[s] = np.interp(whole, scale, last)
    return np.floor(limits).astype(np.int64)


def _spread_counts(longest: int, number: int) -> FloatArray:
    """About so many counts from 0 to ``longest``, evenly on the logarithmic scale."""
    if longest < number:
        return np.arange(longest + 1, dtype=np.float64)
    return np.unique(np.append(np.geomspace(1.0, longest, number - 1).round(), 0.0))


def _reading(knots: FloatArray, wanted: FloatArray) -> FloatArray:
    """A matrix that takes values at the knots to values at other counts, linear on the logarithmic scale."""
    places, targets = np.log1p(knots), np.log1p(wanted)
    right = np.clip(np.searchsorted(places, targets, side="left"), 1, len(knots) - 1)
    share = (targets - places[right - 1]) / (places[right] - places[right - 1])
    matrix = np.zeros((len(wanted), len(knots)))
    rows = np.arange(len(wanted))
    matrix[rows, right - 1], matrix[rows, right] = 1.0 - share, share
    return matrix


def _last_fit(worst: FloatArray, places: FloatArray, limit: float) -> float:
    if worst[0] > limit:
        return -1.0
    return float(np.expm1(np.interp(limit, worst, places)))


def exact_kept_limits(losses: Losses, *, longest: int, epsilon: float, counts: int = _TOPS) -> NDArray[np.int64]:
    """The same with nothing read between losses, by bisection: at every k up to so many, at about so many beyond."""
    tops = _spread_counts(longest, counts)

    def fit(below: FloatArray, above: FloatArray) -> NDArray[np.bool_]:
        return np.maximum(losses(below + 1.0, above), losses(below, above + 1.0)) <= epsilon

    # Of many ⊤ most do not fit at all, whatever the ⊥.
    some = fit(np.zeros((1, 1)), tops[None, :])
    found = np.where(some, 0.0, -1.0)
    few = np.flatnonzero(some.any(axis=0))
    low, high = found[:, few], np.where(some[:, few], longest + 1.0, 0.0)
    while few.size and (high - low).max() > 1.0:
        middle = np.maximum(np.floor(0.5 * (low + high)), 0.0)
        fits = fit(middle, tops[None, few])
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    found[:, few] = low
    if len(tops) == longest + 1:
        return found.astype(np.int64)
    whole = np.arange(longest + 1, dtype=np.float64)
    return np.stack([np.floor(np.interp(whole, tops, row)) for row in found]).astype(np.int64)


class StreamCosts:
    """Losses and rules of one contender for one job at one budget."""

    def __init__(self, job: Job, contender: SparseContender, *, epsilon: float) -> None:
        assert job.threshold is not None  # noqa: S101  # a job about crossings has one
        self._job, self._contender, self._epsilon = job, contender, epsilon
        self._family, self._threshold = job.family, job.threshold

    def losses(self, settings: Settings, *, detail: Detail = "exact") -> Losses:
        """Losses of transcripts, for all settings at once."""
        if settings.kind.closed_form:
            return own_losses(self._family, settings)
        return plain_losses(self._family, settings, detail=detail)

    def shifts(self, settings: Settings) -> FloatArray:
        """μ of the profile bound of a capped Gaussian run (THEORY §3)."""
        noise = {"scale_threshold": settings.scale_threshold, "scale_query": settings.scale_query}
        return GaussianAboveThreshold.shifts(self._family, **noise)

    def rule(
        self,
        settings: Settings,
        horizon: NDArray[np.int64] | None,
        *,
        detail: Detail,
        found: SparseParameters | None = None,
    ) -> RunRule | NDArray[np.int64]:
        """When runs may go on: a rule by run length, or the limits of a kept threshold.

        With ``found``, the parameters of the one setting, a filter that is paid before each run is asked itself
        how many it lets through.
        """
        losses, length, epsilon = self.losses(settings, detail=detail), self._job.count, self._epsilon
        name = self._contender.filter
        # A closed form costs next to nothing: nothing needs to be read between losses.
        detail = "exact" if settings.kind.closed_form else detail
        if not self._contender.resample:
            if detail == "exact":
                counts = length + 1 if settings.kind.closed_form else _TOPS
                return exact_kept_limits(losses, longest=length, epsilon=epsilon, counts=counts)
            return kept_limits(losses, longest=length, epsilon=epsilon, detail=detail)
        if name == "pure":
            return pure_rule(losses, longest=length, epsilon=epsilon, detail=detail)
        caps = needed(horizon)
        if name == "repaired":
            return repaired_rule(
                losses,
                settings,
                horizon=caps,
                longest=length,
                epsilon=epsilon,
                delta=self._job.delta,
                detail=detail,
            )
        if found is not None:
            runs = np.array([float(self._counted(found))])
        else:
            runs = runs_allowed(
                name,
                horizon_costs(losses, caps),
                shifts=self.shifts(settings),
                horizon=caps.astype(np.float64),
                epsilon=epsilon,
                delta=self._job.delta,
            )
        return counted_rule(np.minimum(runs, length + 1.0), caps, longest=length)

    def _counted(self, found: SparseParameters) -> int:
        """How many runs the filter itself lets through."""
        family = self._family
        if found.clip is not None:
            family = family.near(self._threshold, below=found.clip[0], above=found.clip[1])
        watcher = self._contender.watcher(family, threshold=self._threshold, found=found)
        budget = make_filter(self._contender.filter, epsilon=self._epsilon, delta=self._job.delta, order=found.order)
        return count_runs(budget, watcher, horizon=int(found.horizon or 1), most=self._job.count + 1)


def needed(horizon: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The horizon of a capped contender."""
    assert horizon is not None  # noqa: S101  # capped contenders have one
    return horizon
