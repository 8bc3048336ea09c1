"""Contenders that answer in one release: noisy maxima, and publishing every value. Calibrated, then tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.catalogue import Entry, entry_of, find, of_kind
from dpselect.mechanisms.release import GridRelease
from dpselect.mechanisms.selection import Goal, NoisyMax
from dpselect.noise.entropy import SeededEntropy
from dpselect.noise.quantiles import Law
from dpselect.planning.contender import RELEASES, SELECTIONS, Prediction, mean_and_reach
from dpselect.planning.job import Job, guess_score
from dpselect.planning.outlook import guarded
from dpselect.planning.simulation import Passes, standard_draws
from dpselect.privacy.family import QueryFamily

#: The selections, best-known first.
_NAMES = tuple(entry.name for entry in of_kind("selection"))

OneRelease: TypeAlias = NoisyMax | GridRelease

#: Draws per simulation of a line.
_DRAWS = 1_000_000
#: Selections are tried with these seeds, so that the same question is told the same; so often in all.
_SEED, _TIMES = 2024, 400


def entry_for(key: str) -> Entry:
    """What the catalogue says of a contender's mechanism."""
    named = SELECTIONS | RELEASES
    if key not in named:
        raise refuse("contender", key, "one of " + ", ".join(named))
    return find(named[key])


def law_of(key: str) -> Law:
    """The law of the contender's noise, at scale one."""
    found: Law = entry_for(key).mechanism().law
    return found


def needs_delta(key: str) -> bool:
    """Whether the contender has no pure guarantee."""
    return key == "gaussian-noisy-max-profile" or entry_for(key).guarantee == "approximate"


def spread_of(key: str, scale: float) -> float:
    """The standard deviation of the noise.

    >>> spread_of("laplace-release", 2.0) == 2.0 * 2**0.5
    True
    """
    return law_of(key).deviation * scale


def calibrated(key: str, *, family: QueryFamily, count: int, epsilon: float, delta: float) -> OneRelease:
    """The least noise with which the release costs at most (ε, δ).

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> calibrated("gaussian-noisy-max-profile", family=family, count=365, epsilon=0.087, delta=1e-5)
    GaussianNoisyMax(family=QueryFamily(...), sigma=0.1...)
    """
    promise = {"delta": delta} if needs_delta(key) else {}
    made: OneRelease = entry_for(key).mechanism().calibrated(family, candidates=count, epsilon=epsilon, **promise)
    return made


def rebuilt(key: str, *, family: QueryFamily, scale: float, delta: float) -> OneRelease:
    """The mechanism with a given noise."""
    entry = entry_for(key)
    kind, promise = entry.mechanism(), {"delta": delta} if entry.guarantee == "approximate" else {}
    made: OneRelease = kind(family, **{kind.noise_names[0]: scale}, **promise)
    return made


def cost_of(key: str, mechanism: OneRelease, *, count: int, delta: float) -> float:
    """ε of the release at the contender's own kind of guarantee; never below the truth."""
    found = mechanism.approximate_epsilon(delta, count) if needs_delta(key) else mechanism.epsilon(count)
    return float(np.asarray(found))


def predict_one(job: Job, key: str, mechanism: OneRelease, *, epsilon: float, seed: int = 1) -> Prediction:
    """How good the choice is, or F1 of comparing every published value with the threshold."""
    if job.asked == "largest":
        return _predict_choice(job, mechanism, epsilon=epsilon)
    scale, passes = mechanism.scales[0], max(50, min(2000, _DRAWS // job.count))
    found = [_published(job, key, one.values, scale=scale, passes=passes, seed=seed) for one in job.scenarios()]
    return prediction_of(job, found, epsilon=epsilon)


def prediction_of(job: Job, found: Sequence[Passes], *, epsilon: float) -> Prediction:
    """What passes over each of the job's cases show, of a contender that answers all questions at a price of ε."""
    means = np.array([one.f1.mean() for one in found])
    score, uncertainty = mean_and_reach(found[0].f1[0], span=1.0)
    low, high = job.stated(score)
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=float(guarded(means[:, None], np.array([one.weight for one in job.scenarios()]))[0]),
        worst=float(means.min()),
        best=float(means.max()),
        low=low,
        high=high,
        precision=float(found[0].precision.mean()),
        recall=float(found[0].recall.mean()),
        guess=guess_score(job),
        share=float(found[0].true[0, 0]) / job.count,
        answered=float(job.count),
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=found[0].f1.shape[1],
    )


def _predict_choice(job: Job, mechanism: OneRelease, *, epsilon: float) -> Prediction:
    series = job.series()
    found, guess = expected_accuracy(mechanism, series), blind_accuracy(job.family, series)
    score = 1.0 - found.shortfall
    return Prediction(
        score=score,
        uncertainty=found.uncertainty,
        cautious=score,
        worst=score,
        best=score,
        hits=found.hits,
        fewest_hits=found.fewest_hits,
        most_hits=found.most_hits,
        guess=1.0 - guess.shortfall,
        guess_hits=guess.hits,
        answered=1.0,
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=found.passes,
    )


def _published(job: Job, key: str, values: FloatArray, *, scale: float, passes: int, seed: int) -> Passes:
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x52]))
    threshold = float(job.threshold or 0.0)
    truth = values >= threshold
    true = float(truth.sum())
    parts = []
    step = max(1, (1 << 18) // len(values))
    for start in range(0, passes, step):
        shape = (min(step, passes - start), len(values))
        above = values + scale * standard_draws(law_of(key), shape, generator) >= threshold
        parts.append(np.stack([above[:, truth].sum(axis=1), above.sum(axis=1)]).astype(np.float64))
    hits, claimed = np.concatenate(parts, axis=1)[:, None]
    answered, spent = np.full(hits.shape, float(len(values))), np.zeros(hits.shape)
    return Passes(answered, claimed, spent, hits, true=np.array([[true]]))


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a selection does on made-up series: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest (or smallest): on average, and on all but the luckiest and the unluckiest tenth.
    """

    shortfall: float
    hits: float
    fewest_hits: float
    most_hits: float
    #: Of the shortfall, as in a prediction; and from how many picks it comes.
    uncertainty: float
    passes: int


def with_flat_ends(series: Sequence[FloatArray], *, goal: Goal) -> list[FloatArray]:
    """The same, every other series flat at the end that is looked for, between the same ends.

    A wave alone has one high season and one low one. Much that people do follows a season on one side only (heating
    below some temperature, a plant at its capacity) and has many near ties on the other.

    >>> [one.tolist() for one in with_flat_ends([np.array([0.0, 0.5, 1.0])] * 2, goal="smallest")]
    [[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]]
    """
    made = []
    for number, values in enumerate(series):
        low, spread = float(values.min()), float(np.ptp(values))
        if number % 2 == 0 or not spread > 0:
            made.append(values)
            continue
        shares = (values - low) / spread
        bent = shares**2 if goal == "smallest" else 1.0 - (1.0 - shares) ** 2
        made.append(low + spread * bent)
    return made


def expected_overlap(mechanism: NoisyMax, series: Sequence[FloatArray], *, top: int, goal: Goal = "largest") -> float:
    """Which share of the ``top`` that are named, one after the other, belongs to the true ones.

    >>> from dpselect import PermuteAndFlip
    >>> picker = PermuteAndFlip(QueryFamily(lower=0, upper=1, sensitivity=1e-3), scale=1e-6)
    >>> expected_overlap(picker, [np.linspace(0, 1, 9)], top=3)
    1.0
    """
    few = series[: max(1, 20_000_000 // (top * len(series[0])))]
    shares = []
    for seed in range(max(len(few), _TIMES // (5 * top))):
        values = few[seed % len(few)]
        entropy, rest = SeededEntropy(_SEED + seed), list(range(len(values)))
        named = []
        for _ in range(top):
            picked = mechanism.release_many(values[rest], times=1, goal=goal, entropy=entropy).indices
            named.append(float(values[rest.pop(int(picked[0]))]))
        best = np.sort(values)[-top] if goal == "largest" else -np.sort(-values)[-top]
        shares.append(np.mean([one >= best if goal == "largest" else one <= best for one in named]))
    return float(np.mean(shares))


def expected_accuracy(
    mechanism: OneRelease, series: Sequence[FloatArray], *, goal: Goal = "largest"
) -> ExpectedAccuracy:
    """Runs the real mechanism on each series.

    >>> from dpselect import GaussianNoisyMax
    >>> from dpselect.planning.knowledge import Model, made_up
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.003)
    >>> found = expected_accuracy(picker, made_up(picker.family, count=365, public=Model()))
    >>> 0 <= found.shortfall < 0.02, found.fewest_hits < found.hits < found.most_hits
    (True, True)
    """
    times = max(10, min(_TIMES, 20_000_000 // len(series[0])) // len(series))
    missed = []
    for seed, values in enumerate(series):
        picked = _picked(mechanism, values, times=times, goal=goal, entropy=SeededEntropy(_SEED + seed))
        missed.append(np.abs(_best(values, goal) - values[picked]))
    return _gathered(missed, series, width=mechanism.family.width)


def _picked(
    mechanism: OneRelease, values: FloatArray, *, times: int, goal: Goal, entropy: SeededEntropy
) -> NDArray[np.int64]:
    """What is picked, so many times: by a selection, or off values that are all released."""
    if isinstance(mechanism, NoisyMax):
        return np.asarray(mechanism.release_many(values, times=times, goal=goal, entropy=entropy).indices)
    side = 1.0 if goal == "largest" else -1.0
    return np.array([(side * mechanism.release(values, entropy=entropy).values).argmax() for _ in range(times)])


def blind_accuracy(family: QueryFamily, series: Sequence[FloatArray], *, goal: Goal = "largest") -> ExpectedAccuracy:
    """What a guess that looks at no data gets on the same series: any candidate, each as likely.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> from dpselect.planning.knowledge import Model, made_up
    >>> guess = blind_accuracy(family, made_up(family, count=365, public=Model()))
    >>> round(guess.hits * 365, 9), guess.shortfall > 0.05
    (1.0, True)
    """
    return _gathered([np.abs(_best(values, goal) - values) for values in series], series, width=family.width)


def _best(values: FloatArray, goal: Goal) -> float:
    return float(values.max() if goal == "largest" else values.min())


def _gathered(missed: Sequence[FloatArray], series: Sequence[FloatArray], *, width: float) -> ExpectedAccuracy:
    hits = [np.mean(one == 0) for one in missed]
    span = max(float(np.ptp(values)) for values in series) / width
    short, uncertainty = mean_and_reach(np.concatenate(missed) / width, span=span)
    fewest, most = (float(one) for one in np.quantile(hits, [0.1, 0.9]))
    return ExpectedAccuracy(
        shortfall=short,
        uncertainty=uncertainty,
        hits=float(np.mean(hits)),
        fewest_hits=fewest,
        most_hits=most,
        passes=sum(map(len, missed)),
    )


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A selection at the asked ε and what to expect of it."""

    name: str
    mechanism: Any
    accuracy: ExpectedAccuracy

    @property
    def entry(self) -> Entry:
        """What the catalogue says of it."""
        return entry_of(self.mechanism)

    @property
    def scale(self) -> float:
        """σ, or the scale of the other laws, in the queries' unit."""
        return float(self.mechanism.scales[0])


def try_selections(
    family: QueryFamily,
    series: Sequence[FloatArray],
    *,
    epsilon: float,
    names: Iterable[str] = _NAMES,
    goal: Goal = "largest",
) -> dict[str, Tried]:
    """Every selection with the least noise at the same ε, on the same series.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> from dpselect.planning.knowledge import Model, made_up
    >>> tried = try_selections(family, made_up(family, count=365, public=Model()), epsilon=0.1)
    >>> min(tried, key=lambda name: tried[name].accuracy.shortfall)
    'permute-and-flip'
    """
    tried = {}
    for name in names:
        made = find(name).mechanism().calibrated(family, candidates=len(series[0]), epsilon=epsilon)
        tried[name] = Tried(name=name, mechanism=made, accuracy=expected_accuracy(made, series, goal=goal))
    return tried


def clearly_better(chosen: str, tried: dict[str, Tried]) -> Tried | None:
    """The best of those tried, where it does clearly better than the chosen one."""
    mine = tried[chosen].accuracy.shortfall
    best = min(tried.values(), key=lambda one: one.accuracy.shortfall)
    # A tenth of a percent of the range is within what the simulated runs cannot tell apart.
    if best.name == chosen or best.accuracy.shortfall > 0.8 * mine or mine - best.accuracy.shortfall < 0.001:
        return None
    return best
