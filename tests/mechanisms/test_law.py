"""One harness for every mechanism: a million releases against the exact law, and a control that must fail.

A case draws answers with its noise multiplied by a factor and says how probable each answer is at factor 1. At
factor 1 the G-test must not reject at 1e-6; at 0.98 it must, and the exact laws say beforehand that it will.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, ncx2
from tests.mechanisms import members
from tests.mechanisms.output_law import noisy_max_probabilities, transcript_probability

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.run import Verdict
from dpselect.noise.discrete import discrete_gaussian, discrete_laplace
from dpselect.noise.entropy import Entropy, SeededEntropy
from dpselect.noise.quantiles import LAPLACE, NORMAL
from dpselect.privacy.family import QueryFamily

ALPHA = 1e-6
RELEASES = 1_000_000
CONTROL = 0.98

Answers = NDArray[np.int64]
FAMILY = QueryFamily(lower=0.0, upper=4.0, sensitivity=0.25)


@dataclass(frozen=True)
class Case:
    """Draws numbered answers with the noise multiplied by a factor, and knows their exact probabilities."""

    draw: Callable[[float, int, Entropy], Answers]
    probabilities: Callable[[float], NDArray[np.float64]]


def p_value(answers: Answers, expected: NDArray[np.float64]) -> float:
    """The G-test's; rare answers are pooled so that every class expects at least ten."""
    observed = np.bincount(answers, minlength=len(expected)).astype(float)
    assert len(observed) == len(expected), "an answer outside the law's support"
    rare = expected * len(answers) < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert expected.sum() == pytest.approx(1.0, abs=1e-10)
    seen = observed > 0
    statistic = 2.0 * np.sum(observed[seen] * np.log(observed[seen] / (expected[seen] * len(answers))))
    return float(chi2.sf(statistic, len(expected) - 1))


# --- noisy maxima: which of four wins --------------------------------------------------------------------------

SCORES = np.array([0.0, 1.0, 2.5, 3.0])


def maximum(name: str) -> Case:
    mechanism = members.SELECTIONS[name]
    return Case(
        lambda factor, times, entropy: (
            mechanism(FAMILY, factor).release_many(SCORES, times=times, entropy=entropy).indices
        ),
        lambda factor: noisy_max_probabilities(SCORES, scale=factor, law=mechanism.law),
    )


def single_maximum(name: str) -> Case:
    """The same law through ``release``, one call each."""
    mechanism = members.SELECTIONS[name]

    def draw(factor: float, times: int, entropy: Entropy) -> Answers:
        one = mechanism(FAMILY, factor)
        return np.array([one.release(SCORES, entropy=entropy).index for _ in range(times)])

    return Case(draw, lambda factor: noisy_max_probabilities(SCORES, scale=factor, law=mechanism.law))


# --- above threshold: which transcript of at most four verdicts -------------------------------------------------

STREAM = np.array([0.5, 1.5, 1.0, 2.5])


def watcher(name: str, factor: float) -> AboveThreshold:
    return members.watcher(name, FAMILY, threshold=3.0, scales=(0.5 * factor, factor))


def transcripts(until: str) -> list[tuple[Verdict, ...]]:
    below, above = Verdict.BELOW, Verdict.ABOVE
    if until == "first":
        return [(below,) * i + (above,) for i in range(4)] + [(below,) * 4]
    return list(itertools.product((below, above), repeat=4))


def number_of(verdicts: NDArray[np.int8], until: str) -> Answers:
    """The place of each row of verdicts in ``transcripts``."""
    if until == "first":
        hit = verdicts == 1
        return np.where(hit.any(axis=1), hit.argmax(axis=1), 4)
    return (verdicts.astype(np.int64) @ np.array([8, 4, 2, 1])).astype(np.int64)


def watcher_probabilities(name: str, until: str) -> Callable[[float], NDArray[np.float64]]:
    def probabilities(factor: float) -> NDArray[np.float64]:
        asked = watcher(name, factor)
        cost = {"scale_threshold": 0.5 * factor, "scale_query": factor, "threshold": asked.level, "law": asked.law}
        return np.array([transcript_probability(STREAM, verdicts, **cost) for verdicts in transcripts(until)])

    return probabilities


def stream(name: str, until: str) -> Case:
    def draw(factor: float, times: int, entropy: Entropy) -> Answers:
        runs = watcher(name, factor).run_many(STREAM, times=times, entropy=entropy, resample=until == "first")
        return number_of(runs.verdicts, until)

    return Case(draw, watcher_probabilities(name, until))


def single_stream(name: str, until: str, *, vectorised: bool) -> Case:
    """The same law through an open run: ``ask`` one by one, or ``ask_many``."""

    def draw(factor: float, times: int, entropy: Entropy) -> Answers:
        asked = watcher(name, factor)
        rows = np.full((times, 4), -1, dtype=np.int8)
        for row in rows:
            run = asked.start(entropy=entropy, resample=until == "first")
            if vectorised:
                verdicts = run.ask_many(STREAM)
                row[: len(verdicts)] = verdicts
                continue
            for place, value in enumerate(STREAM.tolist()):
                row[place] = run.ask(value) is Verdict.ABOVE
                if not run.open:
                    break
        return number_of(rows, until)

    return Case(draw, watcher_probabilities(name, until))


# --- whole releases and the integer noise under them -------------------------------------------------------------


def integer_law(name: str, scale: float, cuts: Answers) -> NDArray[np.float64]:
    """P(cuts[i-1] <= k < cuts[i]) of the discrete Gaussian or Laplace law, open at both ends."""
    reach = int(45 * scale) + 50
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(k) / scale if name == "Laplace" else -0.5 * (k / scale) ** 2)
    classes = np.searchsorted(cuts, k, side="right")
    return np.bincount(classes, weights=weight, minlength=len(cuts) + 1) / weight.sum()


def release(name: str) -> Case:
    value, unit = 1.3, 0.5

    def mechanism(factor: float) -> Any:
        return members.release(name, FAMILY, scale=unit * factor)

    grid = mechanism(1.0).grid
    steps = float(grid.in_steps(unit))
    cuts = np.unique((np.linspace(-5, 5, 31) * steps).astype(np.int64))

    def draw(factor: float, times: int, entropy: Entropy) -> Answers:
        released = mechanism(factor).release(np.full(times, value), entropy=entropy).values
        noise = np.rint(released / grid.step - np.floor(value / grid.step + 0.5)).astype(np.int64)
        return np.searchsorted(cuts, noise, side="right")

    law = {LAPLACE: "Laplace", NORMAL: "Gaussian"}[members.RELEASES[name].law]
    return Case(draw, lambda factor: integer_law(law, steps * factor, cuts))


def integers(name: str, scale: Fraction) -> Case:
    cuts = np.unique(np.rint(np.linspace(-4, 4, 33) * float(scale)).astype(np.int64))

    def draw(factor: float, times: int, entropy: Entropy) -> Answers:
        scaled = scale * Fraction(factor)
        if name == "Laplace":
            noise = discrete_laplace(times, scale=scaled, entropy=entropy)
        else:
            noise = discrete_gaussian(times, sigma=scaled, entropy=entropy)
        return np.searchsorted(cuts, noise, side="right")

    return Case(draw, lambda factor: integer_law(name, float(scale) * factor, cuts))


CASES = {
    **{name: maximum(name) for name in members.SELECTIONS},
    **{f"{name}, {until}": stream(name, until) for name in members.WATCHERS for until in ("first", "all")},
    **{name: release(name) for name in members.RELEASES},
    **{
        f"discrete {name} of scale {scale}": integers(name, scale)
        for name in ("Gaussian", "Laplace")
        for scale in (Fraction(1, 2), Fraction(5, 3), Fraction(40))
    },
}
SINGLE_CASES = {
    **{name: single_maximum(name) for name in members.SELECTIONS},
    **{
        f"{name}, {until}, {'ask_many' if vectorised else 'ask'}": single_stream(name, until, vectorised=vectorised)
        for name in members.WATCHERS
        for until in ("first", "all")
        for vectorised in (False, True)
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_million_releases_follow_the_exact_law(name: str) -> None:
    case = CASES[name]
    assert p_value(case.draw(1.0, RELEASES, SeededEntropy(20241)), case.probabilities(1.0)) > ALPHA


@pytest.mark.parametrize("name", CASES)
def test_noise_two_percent_too_small_fails_the_law_test(name: str) -> None:
    case = CASES[name]
    honest, small = case.probabilities(1.0), case.probabilities(CONTROL)
    # What the control's chance of passing by luck is, before anything is drawn.
    freedom, distance = len(honest) - 1, RELEASES * float(np.sum((honest - small) ** 2 / honest))
    assert ncx2.cdf(chi2.isf(ALPHA, freedom), freedom, distance) < ALPHA
    assert p_value(case.draw(CONTROL, RELEASES, SeededEntropy(20242)), honest) < ALPHA


@pytest.mark.parametrize("name", SINGLE_CASES)
def test_releases_made_one_by_one_follow_the_exact_law(name: str) -> None:
    case = SINGLE_CASES[name]
    assert p_value(case.draw(1.0, 10_000, SeededEntropy(20243)), case.probabilities(1.0)) > ALPHA
    assert p_value(case.draw(0.8, 10_000, SeededEntropy(20244)), case.probabilities(1.0)) < ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("name", SINGLE_CASES)
def test_many_releases_made_one_by_one_follow_the_exact_law(name: str) -> None:
    case = SINGLE_CASES[name]
    assert p_value(case.draw(1.0, 200_000, SeededEntropy(20245)), case.probabilities(1.0)) > ALPHA
    assert p_value(case.draw(0.95, 200_000, SeededEntropy(20246)), case.probabilities(1.0)) < ALPHA


@pytest.mark.parametrize("mechanism", members.SELECTIONS.values(), ids=members.SELECTIONS)
def test_peeling_follows_the_law_of_successive_maxima(mechanism: Any) -> None:
    law = mechanism.law
    pairs = list(itertools.permutations(range(4), 2))

    def probabilities(scale: float) -> NDArray[np.float64]:
        first = noisy_max_probabilities(SCORES, scale=scale, law=law)
        then = [noisy_max_probabilities(np.delete(SCORES, i), scale=scale, law=law) for i in range(4)]
        return np.array([first[i] * then[i][j - (j > i)] for i, j in pairs])

    def draw(scale: float) -> Answers:
        entropy, one = SeededEntropy(20247), mechanism(FAMILY, scale)
        return np.array([pairs.index(one.top(SCORES, 2, entropy=entropy).indices) for _ in range(6_000)])

    assert p_value(draw(1.0), probabilities(1.0)) > ALPHA
    assert p_value(draw(0.8), probabilities(1.0)) < ALPHA
