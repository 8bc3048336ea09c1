"""Tuning a sparse vector on public knowledge: noise, clip widths and horizon for the best cautious F1 at a budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution

from dpselect.checks import FloatArray
from dpselect.composition.ration import Rare, Ration
from dpselect.mechanisms.above_threshold import Settings
from dpselect.planning.contender import SparseContender, SparseParameters, best_order
from dpselect.planning.costs import StreamCosts, horizon_costs, needed
from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.outlook import guarded
from dpselect.planning.prediction import Prediction, mean_and_reach, prediction_of
from dpselect.planning.simulation import (
    LONG,
    Passes,
    RunRule,
    StandardNoise,
    simulate_fresh,
    simulate_kept,
    simulate_rationed,
)
from dpselect.privacy.family import QueryFamily, relative_shift

#: Numbers of the plan are rounded to so many digits; nothing is lost and files stay readable.
_DIGITS = 4
#: How much is simulated: questions times passes while searching, choosing and predicting.
_SEARCH, _CHOICE, _PREDICTION = 24 * 400, 200 * 400, 2000 * 400
#: Long streams are leapt through, which is cheap.
_LONG_PREDICTION = 8_000_000
#: σ_Z/σ_X that are tried, and the narrowest clip as a part of the reach.
_RATIOS, _NARROWEST = (0.1, 12.0), 0.003
#: For so few settings losses are looked at more closely.
_FEW = 8
#: Points of a generation; generations, by the number of numbers tuned; and how many points are kept.
_POPULATION, _GENERATIONS, _KEPT = 32, {2: 6, 3: 8, 4: 12, 5: 12}, 8
#: A rationed budget knows in which thirteenth of the questions how many are expected: in which month of a year.
_STRETCHES = 13
#: How much of a public stream's timing is believed.
_IN_STEP = 0.25
#: Whether a rationed budget goes by the rate of the rare answers or holds on to their expected total.
_HOLDS = ((1.0, 1.0), (0.5, 1.0), (0.5, 2.0))
#: How far a rationed budget may lean to the common answer, in scales of a question's noise.
_LEANS = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Settings per table, so that tables of long streams fit the memory.
_TABLE = 1 << 21


@dataclass(frozen=True, eq=False)
class Tuned:
    """The parameters chosen, and the best points of the search, from which a similar search may start."""

    parameters: SparseParameters
    points: FloatArray


def passes_for(length: int, *, total: int, least: int, most: int) -> int:
    """How many passes over a stream of this length."""
    return max(least, min(most, total // length))


def search(
    objective: Callable[[FloatArray], FloatArray],
    *,
    dimensions: int,
    generator: np.random.Generator,
    starts: FloatArray | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> FloatArray:
    """The best few points found in the unit cube, best first: (up to 8, dimensions).

    SciPy's differential evolution, whole generations at a time. The objective is a mean over simulated passes on common
    random numbers, so two neighbouring points differ by what they do and a few dozen passes tell them apart.

    Parameters
    ----------
    objective
        What is to be large: (points,) from (points, dimensions).
    dimensions : int
        Of the cube.
    generator
        Where new points come from.
    starts : ndarray, optional
        Points of a similar search; this one then starts around them and looks at fewer points.
    on_progress
        Called with the share done.

    Examples
    --------
    >>> best = search(lambda u: -np.square(u - 0.3).sum(axis=1), dimensions=2, generator=np.random.default_rng(1))
    >>> bool(np.abs(best[0] - 0.3).max() < 0.05)
    True
    """
    from scipy.stats import qmc  # takes long to load, and a plan without a search needs none of it

    size, generations = _POPULATION, _GENERATIONS[dimensions]
    first = qmc.Sobol(dimensions, rng=generator).random(size)
    if starts is not None:
        generations //= 2
        near = starts[np.arange(size // 2) % len(starts)]
        first[: len(near)] = np.clip(near + 0.05 * generator.standard_normal(near.shape), 0.0, 1.0)
        first[: len(starts[: len(near)])] = starts[: len(near)]
    done = itertools.count(1)

    def to_be_small(points: Any, /) -> Any:
        on_progress(min(1.0, next(done) / (generations + 1)))
        return -objective(points.T)

    found = differential_evolution(
        to_be_small,
        Bounds(np.zeros(dimensions), np.ones(dimensions)),
        init=first,
        maxiter=generations,
        mutation=(0.3, 0.8),
        recombination=0.8,
        tol=0.0,
        polish=False,
        vectorized=True,
        updating="deferred",
        rng=generator,
    )
    on_progress(1.0)
    return np.asarray(found.population[np.argsort(found.population_energies, kind="stable")[:_KEPT]])


class StreamTuner:
    """One contender for one job at one budget.

    Parameters
    ----------
    job : Job
        Crossings.
    contender : SparseContender
        What is tuned.
    epsilon : float
        The budget, which need not be the job's.
    seed : int
        Of the simulation. Searching, choosing and predicting draw noise of their own.
    """

    def __init__(self, job: Job, contender: SparseContender, *, epsilon: float, seed: int = 1) -> None:
        assert job.threshold is not None  # noqa: S101  # a job about crossings has one
        self._job, self._contender, self._epsilon = job, contender, epsilon
        self._family, self._threshold = job.family, job.threshold
        self._costs = StreamCosts(job, contender, epsilon=epsilon)
        cases = job.scenarios()
        self._weights, self._values = np.array([one.weight for one in cases]), np.stack([one.values for one in cases])
        self._streams = np.random.SeedSequence([seed, 0x9E37]).spawn(4)

    def tune(
        self,
        *,
        starts: FloatArray | None = None,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> Tuned:
        """The best setting found: searched on few passes, chosen among the best few on more and other ones.

        A rationed budget needs no search: how it is shared out follows from what is expected. What is chosen, among a
        few, is whether it holds on to the expected total, and how far it leans to the common answer.
        """
        length = self._job.count
        if self._contender.rationed:
            noise = self._noise(1, passes_for(length, total=_CHOICE, least=50, most=100))
            found = rationed(self._job, epsilon=self._epsilon)
            found = self._best_of([replace(found, hold=hold, lean=_LEANS[1]) for hold in _HOLDS], noise)
            on_progress(0.5)
            found = self._best_of([replace(found, lean=lean) for lean in _LEANS], noise)
            on_progress(1.0)
            return Tuned(found, np.empty((0, 2)))
        noise = self._noise(0, passes_for(length, total=_SEARCH, least=6, most=32))
        points = search(
            lambda cube: self._cautious(cube, noise),
            dimensions=self._contender.dimensions,
            generator=np.random.default_rng(self._streams[3]),
            starts=starts,
            on_progress=on_progress,
        )
        again = self._noise(1, passes_for(length, total=_CHOICE, least=12, most=200))
        points = points[np.argsort(-self._cautious(points, again), kind="stable")]
        return Tuned(self._parameters(points[0]), points)

    def predict(self, found: SparseParameters, *, passes: int | None = None) -> Prediction:
        """What to expect of a setting, on noise that its choice has not seen, with a loss for every run length."""
        length = self._job.count
        total = _LONG_PREDICTION if length >= LONG else _PREDICTION
        number = passes or passes_for(length, total=total, least=50, most=2000)
        run = self._passes(found, self._noise(2, number))
        # A filter that is paid before each run keeps what it was paid.
        spent = self._epsilon if self._contender.paid_before else float(run.spent[0].mean())
        answered = mean_and_reach(run.answered[0], span=float(length))
        return prediction_of(self._job, run, answered=answered, spent=spent)

    def _best_of(self, found: list[SparseParameters], noise: StandardNoise) -> SparseParameters:
        means = [self._passes(each, noise).f1.mean(axis=1) for each in found]
        return found[int(guarded(np.array(means).T, self._weights).argmax())]

    def _passes(self, found: SparseParameters, noise: StandardNoise) -> Passes:
        """Passes of one setting, a row for every scenario, the first with what they cost."""
        settings, horizon = self._one(found)
        ration = found.ration(self._job.count)
        if ration is None:
            rule = self._costs.rule(settings, horizon, detail="exact", found=found)
            return self._priced(settings, _run(settings, rule, self._values, noise))
        each = prices(self._family)
        return simulate_rationed(settings, ration, each=each, budget=self._epsilon, values=self._values, noise=noise)

    def _noise(self, purpose: int, passes: int) -> StandardNoise:
        generator = np.random.default_rng(self._streams[purpose])
        lines = None if self._contender.resample else 1
        law = self._contender.kind.law
        return StandardNoise.drawn(law, length=self._job.count, passes=passes, generator=generator, lines=lines)

    # -- from the cube to settings ------------------------------------------------------------------------------

    def _decoded(self, cube: FloatArray) -> tuple[Settings, NDArray[np.int64] | None]:
        family, rho, length = self._family, self._threshold, self._job.count
        lower, upper = np.full(len(cube), family.lower), np.full(len(cube), family.upper)
        if self._contender.clipped:
            below, above = rho - family.lower, family.upper - rho
            lower = np.maximum(rho - _between(_NARROWEST * below, below, cube[:, 2]), family.lower)
            upper = np.minimum(rho + _between(_NARROWEST * above, above, cube[:, 3]), family.upper)
        # Noise with which a single ⊤ takes about the whole budget; a pass of many ⊤ needs up to √length times that
        # when it is Gaussian, and length times when it is not.
        least = np.full(len(cube), family.sensitivity / self._epsilon)
        if not self._contender.kind.closed_form:
            least = np.maximum(least, np.sqrt(family.sensitivity * (upper - lower) / self._epsilon))
            most = 6.0 * math.sqrt(length)
        else:
            most = 3.0 * length
        line = 0.3 * least * _between(1.0, 3.0 * most, cube[:, 0])
        question = line * _between(*_RATIOS, cube[:, 1])
        horizon = None
        if self._contender.capped:
            horizon = np.maximum(1, _between(1.0, float(length), cube[:, -1]).round()).astype(np.int64)
        return Settings(self._contender.kind, rho, line, question, lower, upper), horizon

    def _parameters(self, point: FloatArray) -> SparseParameters:
        settings, horizon = self._decoded(point[None, :])
        rho = self._threshold
        clip = _rounded(rho - settings.lower[0]), _rounded(settings.upper[0] - rho)
        found = SparseParameters(
            scale_threshold=_rounded(settings.scale_threshold[0]),
            scale_query=_rounded(settings.scale_query[0]),
            clip_below=clip[0] if self._contender.clipped else None,
            clip_above=clip[1] if self._contender.clipped else None,
            horizon=None if horizon is None else int(horizon[0]),
        )
        if self._contender.filter != "renyi" or found.horizon is None:
            return found
        one, capped = self._one(found)
        order = best_order(
            float(horizon_costs(self._costs.losses(one), needed(capped))[0]),
            shift=float(self._costs.shifts(one)[0]),
            horizon=found.horizon,
            epsilon=self._epsilon,
            delta=self._job.delta,
        )
        return replace(found, order=order)

    def _one(self, found: SparseParameters) -> tuple[Settings, NDArray[np.int64] | None]:
        """A single setting, with the range that the mechanism will have."""
        family = self._family
        if found.clip is not None:
            family = family.near(self._threshold, below=found.clip[0], above=found.clip[1])
        arrays = (found.scale_threshold, found.scale_query, family.lower, family.upper)
        settings = Settings(self._contender.kind, self._threshold, *(np.array([value]) for value in arrays))
        return settings, None if found.horizon is None else np.array([found.horizon])

    # -- from settings to passes --------------------------------------------------------------------------------

    def _cautious(self, cube: FloatArray, noise: StandardNoise) -> FloatArray:
        """What points are chosen by, over the scenarios; 0 for those that cannot even answer one question."""
        scores = np.zeros(len(cube))
        alive = self._answers_one(cube)
        scores[alive] = self._scored(cube[alive], noise)
        return scores

    def _answers_one(self, cube: FloatArray) -> NDArray[np.bool_]:
        if self._contender.paid_before:
            return np.ones(len(cube), dtype=np.bool_)
        settings, _ = self._decoded(cube)
        losses = self._costs.losses(settings, detail="rough")
        first = losses(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).max(axis=1)
        return np.asarray(first <= self._epsilon)

    def _scored(self, cube: FloatArray, noise: StandardNoise) -> FloatArray:
        settings, horizon = self._decoded(cube)
        step = max(1, _TABLE // self._job.count)
        scores = np.zeros(len(cube))
        for start in range(0, len(cube), step):
            rows = slice(start, start + step)
            part = settings.part(rows)
            caps = None if horizon is None else horizon[rows]
            rule = self._costs.rule(part, caps, detail="fine" if len(cube) <= _FEW else "rough")
            means = _run(part, rule, self._values, noise).f1.mean(axis=1).reshape(len(self._values), len(part))
            scores[rows] = guarded(means, self._weights)
        return scores

    def _priced(self, settings: Settings, passes: Passes) -> Passes:
        """Passes under one threshold with what the first row costs, which its counts say."""
        if self._contender.resample:
            return passes
        below = (passes.answered - passes.claimed)[0]
        counts = np.unique(np.stack([below, passes.claimed[0]]), axis=1, return_inverse=True)
        prices = self._costs.losses(settings)(counts[0][0][None, :], counts[0][1][None, :])[0]
        return replace(passes, spent=prices[counts[1].ravel()][None, :])


def prices(family: QueryFamily) -> FloatArray:
    """What exponential noise of scale one costs: of the threshold, and of a rare answer (THEORY §12)."""
    return family.sensitivity * np.array([1.0, relative_shift(family.monotone)])


def rationed(job: Job, *, epsilon: float) -> SparseParameters:
    """How a budget is rationed: the rarer answer pays, and the threshold gets its part of the budget.

    How many of them come when is taken to a quarter from the public stream, which may be out of step, otherwise from
    its mean alone; of a model only the mean is known. The threshold's part is the one with which verdicts vary least.
    """
    assert job.threshold is not None  # noqa: S101  # a job about crossings has one
    above = job.values() >= job.threshold
    rare: Rare = "above" if 2 * np.count_nonzero(above) <= len(above) else "below"
    rarer = above if rare == "above" else ~above
    rows = int((np.diff(rarer.astype(np.int8), prepend=0) > 0).sum())
    stretches = np.array_split(rarer.astype(np.float64), min(_STRETCHES, job.count))
    counts, lengths = (np.array([function(one) for one in stretches]) for function in (np.sum, len))
    # Never seen is not never: half a question stands for what was not.
    even = max(float(counts.sum()), 0.5) * lengths / job.count
    expected = _IN_STEP * counts + (1.0 - _IN_STEP) * even if isinstance(job.public, Profile) else even
    together = _rounded(float(rarer.sum()) / float(rows)) if rows else 1.0
    ration = Ration(
        questions=job.count, expected=tuple(_rounded(one) for one in expected), together=together, rare=rare
    )
    each = prices(job.family)
    still = float(each[1] / each[0] / ration.price(0, 0.0, left=1.0))
    of_line = epsilon / (1.0 + still ** (2.0 / 3.0))
    first = float(ration.price(0, 0.0, left=epsilon - of_line))
    return SparseParameters(
        scale_threshold=_rounded(each[0] / of_line),
        scale_query=_rounded(each[1] / first),
        rare=ration.rare,
        expected=ration.expected,
        together=together,
    )


def _run(settings: Settings, rule: RunRule | NDArray[np.int64], streams: FloatArray, noise: StandardNoise) -> Passes:
    if isinstance(rule, RunRule):
        return simulate_fresh(settings, rule, values=streams, noise=noise)
    return simulate_kept(settings, rule, values=streams, noise=noise)


def _between(low: float, high: float, share: FloatArray) -> FloatArray:
    """From ``low`` to ``high``, evenly on the logarithmic scale."""
    return np.asarray(low * np.exp(share * math.log(high / low)))


def _rounded(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")
