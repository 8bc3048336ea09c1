"""Contenders that answer in one release: noisy maxima, publishing every value, and naming a whole set at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.mechanisms.catalogue import Entry, entry_of, find, of_kind
from dpselect.mechanisms.chains import Chains
from dpselect.mechanisms.selection import Goal
from dpselect.mechanisms.set_above_threshold import MOST_VALUES, SetAboveThreshold
from dpselect.mechanisms.urn import Urn
from dpselect.noise.quantiles import Law
from dpselect.planning.contender import RELEASES, SELECTIONS, Parameter
from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.outlook import guarded
from dpselect.planning.prediction import (
    ExpectedAccuracy,
    OneRelease,
    Prediction,
    blind_accuracy,
    expected_accuracy,
    prediction_of,
)
from dpselect.planning.set_simulation import drawn_sets
from dpselect.planning.simulation import Passes, standard_draws
from dpselect.privacy.family import QueryFamily

#: The selections, best-known first.
_NAMES = tuple(entry.name for entry in of_kind("selection"))

#: Draws per simulation of a line.
_DRAWS = 1_000_000
#: What is tried: parts of ε for the line, and how much the prior counts.
_LINE_SHARES = (0.07, 0.15, 0.3)
_PRIORS = ((1, 1), (20, 20), (80, 80))
#: So many times as far from the line as supposed may all values lie: where a model is known, or a series like it. A few
#: more near the line than a set can bear turn most of it to coin flips at once (docs/theory.md §14).
_AS_FAR, _AS_FAR_AS_KNOWN = (1.5, 1.0, 1 / 1.5), (1.15, 1.0, 1 / 1.15)
#: Values simulated when settings are compared, and when the best is predicted.
_COMPARED, _FORESEEN = 12_000, 120_000


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
    threshold, scale = float(job.threshold or 0.0), mechanism.scales[0]
    passes = max(50, min(2000, _DRAWS // job.count))
    claims = [
        _published(key, one.values, threshold=threshold, scale=scale, passes=passes, seed=seed)
        for one in job.scenarios()
    ]
    return _predict_answers(job, claims, epsilon=epsilon)


def _predict_answers(job: Job, claims: Iterable[Iterable[NDArray[np.bool_]]], *, epsilon: float) -> Prediction:
    """From what is claimed in each of the job's cases, where all questions are answered at a price of ε."""
    truths = [one.values >= float(job.threshold or 0.0) for one in job.scenarios()]
    run = Passes.stacked([Passes.of_claims(*both) for both in zip(claims, truths, strict=True)])
    return prediction_of(job, run, answered=(float(job.count), 0.0), spent=epsilon)


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


def _published(
    key: str, values: FloatArray, *, threshold: float, scale: float, passes: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """Which of the published values are at or above the threshold, in blocks of passes."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x52]))
    step = max(1, (1 << 18) // len(values))
    for start in range(0, passes, step):
        shape = (min(step, passes - start), len(values))
        yield values + scale * standard_draws(law_of(key), shape, generator) >= threshold


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


def rebuilt_set(
    parameters: Mapping[str, Parameter], *, family: QueryFamily, threshold: float, epsilon: float, count: int
) -> SetAboveThreshold:
    """The mechanism of a plan: its settings are shares, so that it costs ε for every Δ and every number of values."""
    settings: Any = {name: parameters[name] for name in ("line_share", "prior")}
    return SetAboveThreshold.calibrated(family, threshold=threshold, epsilon=epsilon, candidates=count, **settings)


def tuned_set(
    job: Job, *, epsilon: float, seed: int, passes: int | None = None
) -> tuple[dict[str, Parameter], Prediction]:
    """The settings that do best over the job's cases, and what to expect of them on noise they have not seen."""
    cases = job.scenarios()
    weights = np.array([case.weight for case in cases])
    counted = [case for case in cases if case.weight > 0]
    best: tuple[float, dict[str, Parameter]] | None = None
    for share, prior in itertools.product(_LINE_SHARES if job.family.monotone else _LINE_SHARES[:1], _priors(job)):
        parameters: dict[str, Parameter] = {"line_share": share, "prior": prior}
        mechanism = _built(job, parameters, epsilon)
        number = max(8, min(40, _COMPARED // job.count))
        scores = [_foreseen(job, mechanism, case.values, passes=number, seed=seed).f1.mean() for case in counted]
        score = float(guarded(np.array(scores)[:, None], weights[weights > 0])[0])
        if best is None or score > best[0]:
            best = score, parameters
    assert best is not None  # noqa: S101  # there is always a first setting
    number, mechanism = passes or max(30, min(300, _FORESEEN // job.count)), _built(job, best[1], epsilon)
    run = Passes.stacked([_foreseen(job, mechanism, case.values, passes=number, seed=seed + 1) for case in cases])
    found = prediction_of(job, run, answered=(float(job.count), 0.0), spent=epsilon)
    if found.low is None or found.high is None:
        return best[1], found
    # Where it is not known how many are near, F1 of a set has two peaks, and the usual range lies between them.
    low, high = np.quantile(run.f1[0], [0.1, 0.9]).tolist()
    return best[1], replace(found, low=min(found.low, low), high=max(found.high, high))


def _priors(job: Job) -> list[tuple[int, int]]:
    even = min(3 * job.count, MOST_VALUES)
    above = min(39, max(1, round(40 * float((job.values() >= (job.threshold or 0.0)).mean()))))
    return [*_PRIORS, (even, even), (above, 40 - above)]


def _built(job: Job, parameters: Mapping[str, Parameter], epsilon: float) -> SetAboveThreshold:
    threshold = float(job.threshold or 0.0)
    return rebuilt_set(parameters, family=job.family, threshold=threshold, epsilon=epsilon, count=job.count)


def _foreseen(job: Job, mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, seed: int) -> Passes:
    """Passes over a stream of which it is not known for sure how near to the line its values lie."""
    claims: list[NDArray[np.bool_]] = []
    shares = _AS_FAR_AS_KNOWN if isinstance(job.public, Profile) else _AS_FAR
    for share in shares:
        as_far = mechanism.threshold + share * (values - mechanism.threshold)
        claims += _drawn_sets(mechanism, as_far, passes=-(-passes // len(shares)), seed=seed)
    return Passes.of_claims(claims, values >= mechanism.threshold)


def simulated_set(mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, seed: int) -> Passes:
    """Passes over one stream."""
    claims = _drawn_sets(mechanism, values, passes=passes, seed=seed)
    return Passes.of_claims(claims, values >= mechanism.threshold)


def _drawn_sets(
    mechanism: SetAboveThreshold, values: FloatArray, *, passes: int, seed: int
) -> Iterator[NDArray[np.bool_]]:
    """The mechanism in doubles, many times over: the same classes and the same urn, without its care for rounding."""
    prior = mechanism.prior
    if isinstance(prior, Chains):
        yield from drawn_sets(mechanism, values, passes=passes, seed=seed)
        return
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x53]))
    step = max(1, (1 << 18) // len(values))
    for start in range(0, passes, step):
        yield _drawn(mechanism, prior, values, min(step, passes - start), generator)


def _drawn(
    mechanism: SetAboveThreshold,
    prior: tuple[int, int],
    values: FloatArray,
    passes: int,
    generator: np.random.Generator,
) -> NDArray[np.bool_]:
    count, urn = len(values), Urn.of(len(values), prior)
    line = mechanism.threshold + generator.laplace(0.0, mechanism.scale_threshold, (passes, 1))
    over = values - line
    order = np.argsort(np.abs(over), axis=1)
    right = np.take_along_axis(over, order, axis=1) >= 0
    weights, above = urn.log_weights(right, np.take_along_axis(np.abs(over), order, axis=1) / mechanism.scale)
    wrong = (weights + generator.gumbel(size=weights.shape)).argmax(axis=1) - 1
    rows, chosen = np.arange(passes), np.maximum(wrong, 0)
    # An urn draws like coins whose chance is drawn first, from the beta law of what is in it.
    fixed = above[rows, chosen]
    chance = generator.beta(fixed + prior[0], count - chosen - fixed + prior[1])
    places = np.arange(count)
    coins = generator.random((passes, count)) < chance[:, None]
    drawn = np.where(places < wrong[:, None], coins, right ^ (places == wrong[:, None]))
    found: NDArray[np.bool_] = np.empty_like(drawn)
    np.put_along_axis(found, order, drawn, axis=1)
    return found
