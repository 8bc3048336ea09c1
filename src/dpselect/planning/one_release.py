"""Contenders that answer in one release: noisy maxima, and publishing every value. Calibrated, then simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.catalogue import Entry, entry_of, find
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.release import GaussianRelease, LaplaceRelease
from dpselect.mechanisms.selection import NoisyMax
from dpselect.noise.quantiles import Law
from dpselect.planning.contender import RELEASES, SELECTIONS, Prediction, mean_and_reach
from dpselect.planning.job import Job, guess_score
from dpselect.planning.outlook import guarded
from dpselect.planning.simulation import Passes, standard_draws
from dpselect.privacy.family import QueryFamily

OneRelease: TypeAlias = NoisyMax | GaussianRelease | LaplaceRelease

#: Draws per simulation.
_DRAWS = 1_000_000
#: A single answer is worse than the stated worst, or better than the stated best, no more often than this.
_RARELY = 0.05
#: Candidates that win less often than this are left out.
_NEVER = 1e-12


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


def scale_of(mechanism: OneRelease) -> float:
    """σ, or the scale of the noise."""
    return entry_of(mechanism).noise_of(mechanism)[0]


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
    promise = {"delta": delta} if entry.guarantee == "approximate" else {}
    made: OneRelease = entry.mechanism()(family, **{entry.noise_names[0]: scale}, **promise)
    return made


def cost_of(key: str, mechanism: OneRelease, *, count: int, delta: float) -> float:
    """ε of the release at the contender's own kind of guarantee; never below the truth."""
    if key == "gaussian-noisy-max-profile" and isinstance(mechanism, GaussianNoisyMax):
        return float(np.asarray(mechanism.approximate_epsilon(delta, count)))
    return float(np.asarray(mechanism.epsilon(candidates=count)))


def _reach(law: Law, number: int) -> float:
    """How far apart two of so many standard draws lie but for a chance of about ``_NEVER``."""
    rare = np.array(_NEVER / number)
    return float(law.from_right(rare) - law.from_left(rare))


def winners(key: str, values: FloatArray, *, scale: float, passes: int, seed: int) -> NDArray[np.int64]:
    """Who wins each of ``passes`` simulated selections."""
    law = law_of(key)
    order = np.flatnonzero(values >= values.max() - scale * _reach(law, len(values)))
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x51]))
    found = np.empty(passes, dtype=np.int64)
    step = max(1, (1 << 18) // len(order))
    for start in range(0, passes, step):
        rows = min(step, passes - start)
        noisy = values[order] + scale * standard_draws(law, (rows, len(order)), generator)
        found[start : start + rows] = order[noisy.argmax(axis=1)]
    return found


def predict_one(job: Job, key: str, mechanism: OneRelease, *, epsilon: float, seed: int = 1) -> Prediction:
    """Accuracy of the choice, or F1 of comparing every published value with the threshold."""
    scale = scale_of(mechanism)
    passes = max(50, min(2000, _DRAWS // job.count))
    if job.asked == "largest":
        return _predict_choice(job, key, scale=scale, passes=passes, epsilon=epsilon, seed=seed)
    found = [_published(job, key, one.values, scale=scale, passes=passes, seed=seed) for one in job.scenarios()]
    return prediction_of(job, found, epsilon=epsilon)


def prediction_of(job: Job, found: Sequence[Passes], *, epsilon: float) -> Prediction:
    """What passes over each of the job's cases show, of a contender that answers all questions at a price of ε."""
    means = np.array([one.f1.mean() for one in found])
    score, uncertainty = mean_and_reach(found[0].f1[0], span=1.0)
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=float(guarded(means[:, None], np.array([one.weight for one in job.scenarios()]))[0]),
        worst=float(min(np.quantile(one.f1, _RARELY) for one in found)),
        best=float(max(np.quantile(one.f1, 1.0 - _RARELY) for one in found)),
        precision=float(found[0].precision.mean()),
        recall=float(found[0].recall.mean()),
        guess=guess_score(job),
        share=float(found[0].true[0, 0]) / job.count,
        answered=float(job.count),
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=found[0].f1.shape[1],
    )


def _predict_choice(job: Job, key: str, *, scale: float, passes: int, epsilon: float, seed: int) -> Prediction:
    values = job.values()
    picked = values[winners(key, values, scale=scale, passes=passes, seed=seed)]
    best = values.max()
    score, uncertainty = mean_and_reach(1.0 - (best - picked) / job.family.width, span=1.0)
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=score,
        worst=score,
        best=score,
        hits=float(np.mean(picked == best)),
        guess=guess_score(job),
        answered=1.0,
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=passes,
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
