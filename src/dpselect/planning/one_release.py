"""Contenders that answer in one release: noisy maxima, and publishing every value. Calibrated, then simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.classical import ExponentialMechanism, LaplaceNoisyMax, PermuteAndFlip
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.mechanisms.release import GaussianRelease, LaplaceRelease
from dpselect.numerics.roots import smallest_safe
from dpselect.planning.contender import Prediction, mean_and_reach
from dpselect.planning.job import Job
from dpselect.planning.stream_simulation import f1_scores
from dpselect.privacy.family import QueryFamily

OneRelease: TypeAlias = (
    GaussianNoisyMax | ExponentialMechanism | PermuteAndFlip | LaplaceNoisyMax | GaussianRelease | LaplaceRelease
)

#: The law of each contender's noise, at scale one.
_LAWS: Mapping[str, str] = MappingProxyType(
    {
        "gaussian-noisy-max": "normal",
        "gaussian-noisy-max-profile": "normal",
        "exponential": "gumbel",
        "permute-and-flip": "exponential",
        "laplace-noisy-max": "laplace",
        "gaussian-release": "normal",
        "laplace-release": "laplace",
    }
)
#: Standard deviation of each law at scale one.
_SPREADS = MappingProxyType(
    {"normal": 1.0, "laplace": math.sqrt(2.0), "exponential": 1.0, "gumbel": math.pi / math.sqrt(6.0)}
)
#: Draws per simulation.
_DRAWS = 1_000_000
#: Candidates that win less often than this are left out.
_NEVER = 1e-12


def needs_delta(key: str) -> bool:
    """Whether the contender has no pure guarantee."""
    return key in ("gaussian-noisy-max-profile", "gaussian-release")


def scale_of(mechanism: OneRelease) -> float:
    """σ, or the scale of the noise."""
    return mechanism.sigma if isinstance(mechanism, (GaussianNoisyMax, GaussianRelease)) else mechanism.scale


def spread_of(key: str, scale: float) -> float:
    """The standard deviation of the noise.

    >>> spread_of("laplace-release", 2.0) == 2.0 * 2**0.5
    True
    """
    return _SPREADS[_LAWS[key]] * scale


def calibrated(key: str, *, family: QueryFamily, count: int, epsilon: float, delta: float) -> OneRelease:
    """The least noise with which the release costs at most (ε, δ).

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> calibrated("gaussian-noisy-max-profile", family=family, count=365, epsilon=0.087, delta=1e-5)
    GaussianNoisyMax(family=QueryFamily(...), sigma=0.1...)
    """
    if key == "gaussian-noisy-max":
        return GaussianNoisyMax.calibrated(family, candidates=count, epsilon=epsilon)
    if key == "gaussian-noisy-max-profile":
        sigma = smallest_safe(
            lambda trial: float(np.asarray(GaussianNoisyMax(family, trial).approximate_epsilon(delta, count))),
            epsilon,
            start=family.width,
            tolerance=1e-6,
        )
        return GaussianNoisyMax(family, sigma)
    if key == "exponential":
        return ExponentialMechanism.calibrated(family, epsilon=epsilon)
    if key == "permute-and-flip":
        return PermuteAndFlip.calibrated(family, epsilon=epsilon)
    if key == "laplace-noisy-max":
        return LaplaceNoisyMax.calibrated(family, epsilon=epsilon)
    if key == "gaussian-release":
        return GaussianRelease.calibrated(family, candidates=count, epsilon=epsilon, delta=delta)
    if key == "laplace-release":
        return LaplaceRelease.calibrated(family, candidates=count, epsilon=epsilon)
    raise refuse("contender", key, "one of " + ", ".join(_LAWS))


def rebuilt(key: str, *, family: QueryFamily, scale: float, delta: float) -> OneRelease:
    """The mechanism with a given noise."""
    if key in ("gaussian-noisy-max", "gaussian-noisy-max-profile"):
        return GaussianNoisyMax(family, scale)
    if key == "gaussian-release":
        return GaussianRelease(family, sigma=scale, delta=delta)
    if key == "exponential":
        return ExponentialMechanism(family, scale=scale)
    if key == "permute-and-flip":
        return PermuteAndFlip(family, scale=scale)
    if key == "laplace-noisy-max":
        return LaplaceNoisyMax(family, scale=scale)
    if key == "laplace-release":
        return LaplaceRelease(family, scale=scale)
    raise refuse("contender", key, "one of " + ", ".join(_LAWS))


def cost_of(key: str, mechanism: OneRelease, *, count: int, delta: float) -> float:
    """ε of the release at the contender's own kind of guarantee; never below the truth."""
    if key == "gaussian-noisy-max-profile" and isinstance(mechanism, GaussianNoisyMax):
        return float(np.asarray(mechanism.approximate_epsilon(delta, count)))
    return float(np.asarray(mechanism.epsilon(candidates=count)))


def _standard(law: str, shape: tuple[int, int], generator: np.random.Generator) -> FloatArray:
    if law == "normal":
        return generator.standard_normal(shape)
    if law == "laplace":
        return generator.laplace(size=shape)
    if law == "exponential":
        return generator.standard_exponential(shape)
    return generator.gumbel(size=shape)


def _reach(law: str, number: int) -> float:
    """How far apart two of so many standard draws lie but for a chance of about ``_NEVER``."""
    rare = _NEVER / number
    if law == "normal":
        return -2.0 * float(ndtri(rare))
    # Laplace on both sides; exponential and Gumbel have one long tail.
    return (2.0 if law == "laplace" else 1.0) * -math.log(rare) + (4.0 if law == "gumbel" else 0.0)


def winners(key: str, values: FloatArray, *, scale: float, passes: int, seed: int) -> NDArray[np.int64]:
    """Who wins each of ``passes`` simulated selections."""
    law = _LAWS[key]
    order = np.flatnonzero(values >= values.max() - scale * _reach(law, len(values)))
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x51]))
    found = np.empty(passes, dtype=np.int64)
    step = max(1, (1 << 18) // len(order))
    for start in range(0, passes, step):
        rows = min(step, passes - start)
        noisy = values[order] + scale * _standard(law, (rows, len(order)), generator)
        found[start : start + rows] = order[noisy.argmax(axis=1)]
    return found


def predict_one(job: Job, key: str, mechanism: OneRelease, *, epsilon: float, seed: int = 1) -> Prediction:
    """Accuracy of the choice, or F1 of comparing every published value with the threshold."""
    scale = scale_of(mechanism)
    passes = max(50, min(2000, _DRAWS // job.count))
    if job.asked == "largest":
        values = job.values()
        picked = winners(key, values, scale=scale, passes=passes, seed=seed)
        per_scenario = [1.0 - (values.max() - values[picked]) / job.family.width]
        weights = [1.0]
    else:
        scenarios = job.scenarios()
        per_scenario = [_published_f1(job, key, one.values, scale=scale, passes=passes, seed=seed) for one in scenarios]
        weights = [one.weight for one in scenarios]
    means = [float(sample.mean()) for sample in per_scenario]
    score, uncertainty = mean_and_reach(per_scenario[0], span=1.0)
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=float(np.dot(means, weights)),
        worst=min(means),
        answered=float(job.count) if job.asked == "crossings" else 1.0,
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=passes,
    )


def _published_f1(job: Job, key: str, values: FloatArray, *, scale: float, passes: int, seed: int) -> FloatArray:
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x52]))
    threshold = float(job.threshold or 0.0)
    truth = values >= threshold
    parts = []
    step = max(1, (1 << 18) // len(values))
    for start in range(0, passes, step):
        shape = (min(step, passes - start), len(values))
        above = values + scale * _standard(_LAWS[key], shape, generator) >= threshold
        hits = above[:, truth].sum(axis=1).astype(np.float64)
        parts.append(f1_scores(hits, claimed=above.sum(axis=1).astype(np.float64), true=float(truth.sum())))
    return np.concatenate(parts)
