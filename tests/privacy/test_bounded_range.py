"""The range of Gaussian noisy max: never below what a pair of neighbours shows, nor far above the theorem's maximum."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mechanisms.output_law import noisy_max_probabilities

from dpselect.checks import FloatArray
from dpselect.numerics import integral
from dpselect.numerics.enclosure import Enclosure, enclose_log_integral
from dpselect.privacy.conversions import pure_renyi, range_renyi, range_rho
from dpselect.privacy.noisy_max import noisy_max_range

#: The double-precision quadrature of the winners' probabilities is good to this (checked against enclosures below).
QUADRATURE = 1e-10


def pair(
    rng: np.random.Generator, candidates: int, width: float, shift: float, *, monotone: bool
) -> tuple[FloatArray, FloatArray]:
    """Neighbouring values in [0, width], σ = 1: random ones, corners, and the shapes the theorem points at."""
    kind = rng.integers(5)
    if kind == 0:
        first = rng.uniform(0.0, width, candidates)
    elif kind == 1:
        first = rng.choice([0.0, width], candidates)
    else:
        # A few low ones under a wall of high ones, or the other way round; or all close together.
        first = np.full(candidates, width if kind == 2 else 0.0)
        first[: rng.integers(1, 3)] = width - first[0] if kind < 4 else rng.uniform(0.0, width)
    low, high = (0.0, shift) if monotone else (-shift, shift)
    move = rng.uniform(low, high, candidates) if rng.random() < 0.2 else rng.choice([low, high], candidates)
    if rng.random() < 0.6:
        move = np.full(candidates, high)
        move[: rng.integers(1, 3)] = low
    if rng.random() < 0.5:
        move = -move
    return np.clip(first, 0.0, width), np.clip(first + move, 0.0, width)


def spread(first: FloatArray, second: FloatArray) -> float:
    """max − min over the winners of log P(winner | first) − log P(winner | second)."""
    with np.errstate(divide="ignore"):
        ratios = np.log(noisy_max_probabilities(first, scale=1.0)) - np.log(noisy_max_probabilities(second, scale=1.0))
    return float(np.ptp(ratios[np.isfinite(ratios)]))


@cache
def shares(pairs: int, *, seed: int) -> FloatArray:
    """For many pairs, what part of the range their spread takes up, less what the quadrature may be off by."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        candidates = int(rng.integers(2, 41))
        width = float(10.0 ** rng.uniform(-1.3, 1.0))
        shift = width * float(10.0 ** rng.uniform(-3.0, 0.0))
        monotone = bool(rng.integers(2))
        bound = noisy_max_range(width=width, sensitivity=shift, sigma=1, candidates=candidates, monotone=monotone)
        seen = spread(*pair(rng, candidates, width, shift, monotone=monotone))
        found.append((seen - QUADRATURE) / float(bound))
    return np.array(found)


def test_no_pair_of_neighbours_spreads_further_than_the_range() -> None:
    assert shares(400, seed=1).max() <= 1.0


@pytest.mark.slow
def test_no_pair_of_twelve_thousand_spreads_further_than_the_range() -> None:
    assert shares(12_000, seed=2).max() <= 1.0


def test_nine_tenths_of_the_range_are_exceeded() -> None:
    assert (shares(400, seed=1) > 0.9).sum() >= 10


def enclosed_spread(first: list[Fraction], second: list[Fraction]) -> Enclosure:
    """The same spread, rigorously: every winner's probability is the usual integral with a factor per rival."""

    @cache
    def log_wins(winner: Fraction, values: tuple[Fraction, ...]) -> Enclosure:
        leads = Counter(winner - value for value in values)
        leads[Fraction(0)] -= 1
        return enclose_log_integral(list(leads.values()), [1] * len(leads), list(leads), tolerance=1e-10)

    before, after = ([log_wins(winner, tuple(values)) for winner in values] for values in (first, second))
    low = [one.lower - other.upper for one, other in zip(before, after, strict=True)]
    high = [one.upper - other.lower for one, other in zip(before, after, strict=True)]
    return Enclosure(lower=max(low) - min(high), upper=max(high) - min(low))


def hardest(candidates: int, width: float, shift: float) -> tuple[list[Fraction], list[Fraction]]:
    """One candidate at the bottom falls away from a wall at the top."""
    low, high, move = Fraction(0), Fraction(width), Fraction(shift)
    return [low + move] + [high - move] * (candidates - 1), [low] + [high] * (candidates - 1)


@pytest.mark.parametrize(("candidates", "width"), [(2, 1.0), (5, 0.25), (12, 4.0), (40, 2.0)])
def test_enclosures_of_the_hardest_pairs_lie_within_the_range_and_near_it(candidates: int, width: float) -> None:
    shift = width / 256
    bound = float(noisy_max_range(width=width, sensitivity=shift, sigma=1, candidates=candidates))
    seen = enclosed_spread(*hardest(candidates, width, shift))
    assert seen.upper <= bound
    assert seen.lower >= bound * (0.97 if candidates == 40 else 0.4)
    if candidates == 40:
        assert seen.lower > 0.9 * bound
    quick = spread(*(np.array(values, dtype=float) for values in hardest(candidates, width, shift)))
    assert abs(quick - seen.midpoint) < QUADRATURE


def bracket(candidates: int, gap: Fraction, above: Fraction) -> Enclosure:
    """S(gap − above) + e(above), rigorously, as ratios of integrals with the square completed."""
    rest = gap - above
    slope = lambda: arb(2).rsqrt()  # noqa: E731
    logs = [
        enclose_log_integral([candidates - 2], [slope], [-rest / 2]),
        enclose_log_integral([candidates - 1], [1], [-rest]),
        enclose_log_integral([candidates - 2], [slope], [above]),
        enclose_log_integral([1, candidates - 2], [1, 1], [0, above]),
    ]
    lead = math.log(candidates - 1) - float(rest) ** 2 / 4
    middle = -math.log(2 * math.sqrt(math.pi))
    value = math.exp(lead + middle + logs[0].midpoint - logs[1].midpoint)
    value += math.exp(middle + logs[2].midpoint - logs[3].midpoint)
    return Enclosure(lower=value * (1 - 1e-10), upper=value * (1 + 1e-10))


@pytest.mark.parametrize(
    ("candidates", "gap"),
    list(itertools.product((2, 3, 10, 365, 10**6), (Fraction(1, 20), Fraction(3, 2), Fraction(10)))),
)
def test_the_range_is_the_maximum_of_the_theorem(candidates: int, gap: Fraction) -> None:
    found = float(noisy_max_range(width=float(gap), sensitivity=2**-20, sigma=1, candidates=candidates)) * 2**19
    gap = Fraction(float(gap))
    shares = [Fraction(0), Fraction(1, 1000), Fraction(1, 50), Fraction(1, 5), Fraction(1, 2), Fraction(1)]
    brackets = [bracket(candidates, gap, gap * share) for share in shares]
    highest = max(each.lower for each in brackets)
    assert highest <= found <= highest * (1 + 2e-6)


@settings(deadline=None, max_examples=60)
@given(
    candidates=st.integers(2, 10**9),
    width=st.floats(1e-3, 30.0),
    share=st.floats(1e-6, 1.0),
    monotone=st.booleans(),
)
def test_the_range_grows_with_the_noise_removed_and_halves_for_monotone_families(
    candidates: int, width: float, share: float, monotone: bool
) -> None:
    about = {"width": width, "sensitivity": share * width, "candidates": candidates}
    wide, narrow = (float(noisy_max_range(**about, sigma=sigma, monotone=monotone)) for sigma in (1.0, 2.0))
    assert wide > 2 * narrow * (1 - 1e-5)
    both = float(noisy_max_range(**about, sigma=1.0, monotone=not monotone))
    assert max(wide, both) == pytest.approx(2 * min(wide, both), rel=1e-14)


def test_arrays_of_candidates_give_what_one_by_one_gives() -> None:
    about = {"width": 1.0, "sensitivity": 0.01, "sigma": 0.3}
    numbers = np.array([[2, 17], [365, 17]])
    found = np.asarray(noisy_max_range(**about, candidates=numbers))
    alone = [float(noisy_max_range(**about, candidates=number)) for number in numbers.ravel().tolist()]
    assert found.ravel() == pytest.approx(alone, rel=1e-5)


def renyi(first: FloatArray, second: FloatArray, order: float) -> float:
    """D_order(first ‖ second) of two distributions given by their probabilities."""
    exponent = order * np.log(first) - (order - 1.0) * np.log(second)
    return float(np.log(np.exp(exponent - exponent.max()).sum()) + exponent.max()) / (order - 1.0)


laws = st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=6)


@settings(deadline=None, max_examples=300)
@given(
    logs=laws,
    weights=st.lists(st.floats(1e-3, 1.0), min_size=6, max_size=6),
    order=st.floats(1.01, 200.0),
    size=st.floats(0.01, 5.0),
)
def test_no_distribution_with_this_range_has_a_larger_divergence(
    logs: list[float], weights: list[float], order: float, size: float
) -> None:
    second = np.array(weights[: len(logs)]) / sum(weights[: len(logs)])
    first = second * np.exp(size * np.array(logs))
    first /= first.sum()
    seen = float(np.ptp(np.log(first / second)))
    assert renyi(first, second, order) <= float(range_renyi(order, seen)) + 1e-12


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 100.0])
@pytest.mark.parametrize("eta", [0.1, 1.0, 6.0])
def test_two_outputs_attain_the_divergence_of_a_range(order: float, eta: float) -> None:
    best = 0.0
    for low in np.linspace(-eta, 0.0, 20_001)[1:-1]:
        chance = math.expm1(-low) / math.expm1(eta)
        second = np.array([chance, 1.0 - chance])
        best = max(best, renyi(second * np.exp([low + eta, low]), second, order))
    bound = float(range_renyi(order, eta))
    assert best <= bound <= min(best * (1 + 1e-4), order * eta * eta / 8 * (1 + 1e-12), eta)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_randomised_response_stays_within_the_pure_curve_and_beats_a_quarter_of_it(epsilon: float) -> None:
    high = 1.0 / (1.0 + math.exp(-epsilon))
    law = np.array([high, 1.0 - high])
    for order in (1.1, 2.0, 30.0):
        seen = renyi(law, law[::-1], order)
        assert seen <= float(pure_renyi(order, epsilon)) * (1 + 1e-12)
    assert renyi(law, law[::-1], 1.1) > 1.1 * float(range_rho(epsilon))


def test_the_renyi_divergence_of_a_range_is_never_below_the_truth_and_close_to_it():
    rng = np.random.default_rng(12)
    alphas, etas = 1.0 + 10 ** rng.uniform(-3, 6, 600), 10 ** rng.uniform(-6, 1.5, 600)
    for alpha, eta, found in zip(alphas.tolist(), etas.tolist(), range_renyi(alphas, etas).tolist(), strict=True):
        with mpmath.workdps(80):
            a, e = mpmath.mpf(alpha), mpmath.mpf(eta)
            k = mpmath.expm1(a * e) / mpmath.expm1(e)
            gain = a * mpmath.log(k * (a - 1) / (a * (k - 1))) + mpmath.log((k - 1) / (a - 1))
            excess = float(found / min(gain / (a - 1), e) - 1)
        assert 0 <= excess < (1e-8 if (alpha - 1) * eta < 1e-3 else 1e-11), (alpha, eta)


@pytest.mark.parametrize("candidates", [1e11, 1e12, 1e14])
def test_the_range_of_very_many_candidates_needs_no_enclosure(
    monkeypatch: pytest.MonkeyPatch, candidates: float
) -> None:
    """29 to 47 of them took up to a second."""

    def refused(*_: object) -> Enclosure:
        raise AssertionError("an enclosure was asked for")

    monkeypatch.setattr(integral, "enclose_log_ratio", refused)
    found = noisy_max_range(width=1.0, sensitivity=1e-3, sigma=0.05, candidates=candidates)
    assert found > noisy_max_range(width=1.0, sensitivity=1e-3, sigma=0.05, candidates=candidates / 10)
