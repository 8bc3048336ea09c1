"""The contender that names all that reach the line at once: its two settings chosen, and its F1 foreseen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.mechanisms.set_above_threshold import MOST_VALUES, SetAboveThreshold, Urn
from dpselect.planning.contender import Parameter, Prediction
from dpselect.planning.job import Job
from dpselect.planning.one_release import prediction_of
from dpselect.planning.outlook import guarded
from dpselect.planning.simulation import Passes
from dpselect.privacy.family import QueryFamily

#: What is tried: parts of ε for the line, and how much the prior counts.
_LINE_SHARES = (0.07, 0.15, 0.3)
_PRIORS = ((1, 1), (20, 20), (80, 80))
#: Values simulated when settings are compared, and when the best is foreseen.
_COMPARED, _FORESEEN = 12_000, 120_000


def rebuilt(
    parameters: Mapping[str, Parameter], *, family: QueryFamily, threshold: float, epsilon: float, count: int
) -> SetAboveThreshold:
    """The mechanism of a plan: its settings are shares, so that it costs ε for every Δ and every number of values."""
    settings: Any = {name: parameters[name] for name in ("line_share", "prior")}
    return SetAboveThreshold.calibrated(family, threshold=threshold, epsilon=epsilon, candidates=count, **settings)


def tuned(job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> tuple[dict[str, Parameter], Prediction]:
    """The settings that do best over the job's cases, and what to expect of them on noise they have not seen."""
    cases = job.scenarios()
    weights = np.array([case.weight for case in cases])
    counted = [case for case in cases if case.weight > 0]
    best: tuple[float, dict[str, Parameter]] | None = None
    for share, prior in itertools.product(_LINE_SHARES if job.family.monotone else _LINE_SHARES[:1], _priors(job)):
        parameters: dict[str, Parameter] = {"line_share": share, "prior": prior}
        mechanism = _built(job, parameters, epsilon)
        number = max(8, min(40, _COMPARED // job.count))
        scores = [_simulated(mechanism, case.values, passes=number, seed=seed).f1.mean() for case in counted]
        score = float(guarded(np.array(scores)[:, None], weights[weights > 0])[0])
        if best is None or score > best[0]:
            best = score, parameters
    assert best is not None  # noqa: S101  # there is always a first setting
    number, mechanism = passes or max(30, min(300, _FORESEEN // job.count)), _built(job, best[1], epsilon)
    found = [_simulated(mechanism, case.values, passes=number, seed=seed + 1) for case in cases]
    return best[1], prediction_of(job, found, epsilon=epsilon)


def _priors(job: Job) -> list[tuple[int, int]]:
    even = min(3 * job.count, MOST_VALUES)
    above = min(39, max(1, round(40 * float((job.values() >= (job.threshold or 0.0)).mean()))))
    return [*_PRIORS, (even, even), (above, 40 - above)]


def _built(job: Job, parameters: Mapping[str, Parameter], epsilon: float) -> SetAboveThreshold:
    threshold = float(job.threshold or 0.0)
    return rebuilt(parameters, family=job.family, threshold=threshold, epsilon=epsilon, count=job.count)


def _simulated(mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, seed: int) -> Passes:
    """The mechanism in doubles, many times over: the same classes and the same urn, without its care for rounding."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x53]))
    step = max(1, (1 << 18) // len(values))
    blocks = [_drawn(mechanism, values, min(step, passes - at), generator) for at in range(0, passes, step)]
    drawn = np.concatenate(blocks)
    truth = values >= mechanism.threshold
    hits, claimed = (part.sum(axis=1)[None].astype(np.float64) for part in (drawn[:, truth], drawn))
    answered = np.full(hits.shape, float(len(values)))
    return Passes(answered, claimed, np.zeros(hits.shape), hits, true=np.array([[float(truth.sum())]]))


def _drawn(
    mechanism: SetAboveThreshold, values: FloatArray, passes: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    count, urn = len(values), Urn.of(len(values), mechanism.prior)
    line = mechanism.threshold + generator.laplace(0.0, mechanism.scale_threshold, (passes, 1))
    over = values - line
    order = np.argsort(np.abs(over), axis=1)
    right = np.take_along_axis(over, order, axis=1) >= 0
    weights, above = urn.log_weights(right, np.take_along_axis(np.abs(over), order, axis=1) / mechanism.scale)
    wrong = (weights + generator.gumbel(size=weights.shape)).argmax(axis=1) - 1
    rows, chosen = np.arange(passes), np.maximum(wrong, 0)
    # An urn draws like coins whose chance is drawn first, from the beta law of what is in it.
    fixed = above[rows, chosen]
    chance = generator.beta(fixed + mechanism.prior[0], count - chosen - fixed + mechanism.prior[1])
    places = np.arange(count)
    coins = generator.random((passes, count)) < chance[:, None]
    drawn = np.where(places < wrong[:, None], coins, right ^ (places == wrong[:, None]))
    found: NDArray[np.bool_] = np.empty_like(drawn)
    np.put_along_axis(found, order, drawn, axis=1)
    return found
