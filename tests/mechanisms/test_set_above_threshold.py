"""Naming all values above a line at once: its law, its cost, and what would break it."""

import dataclasses
import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.mechanisms.members import SETS

from dpselect import QueryFamily
from dpselect.errors import InvalidData, InvalidParameter
from dpselect.mechanisms import set_above_threshold
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.noise.entropy import SeededEntropy
from dpselect.precision import working_precision

#: This suite is about one mechanism; another of its kind needs a suite of its own.
assert list(SETS.values()) == [SetAboveThreshold]
MONOTONE = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
EITHER_WAY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)


def law(over, *, scale, prior):
    """The chance of every set, from its definition: prior times exp(−largest wrong distance/scale)."""
    weights = {}
    for chosen in itertools.product((False, True), repeat=len(over)):
        wrong = max((abs(x) for x, named in zip(over, chosen, strict=True) if named != (x >= 0)), default=0)
        above = sum(chosen)
        tally = math.lgamma(prior[0] + above) + math.lgamma(prior[1] + len(over) - above)
        weights[chosen] = math.exp(tally - math.lgamma(sum(prior) + len(over)) - wrong / scale)
    whole = sum(weights.values())
    return {chosen: weight / whole for chosen, weight in weights.items()}


def noised(values, *, line_scale, scale, prior, reach=80):
    """The chance of every set with a line at 0 that has discrete Laplace noise, in whole steps."""
    shifts = np.arange(-math.ceil(reach * line_scale), math.ceil(reach * line_scale) + 1)
    chances = np.exp(-np.abs(shifts) / line_scale)
    found = dict.fromkeys(itertools.product((False, True), repeat=len(values)), 0.0)
    for shift, chance in zip(shifts, chances / chances.sum(), strict=True):
        for chosen, each in law([value - int(shift) for value in values], scale=scale, prior=prior).items():
            found[chosen] += chance * each
    return found


def largest_ratio(first, second):
    return max(abs(math.log(first[chosen] / second[chosen])) for chosen in first)


def fit(seen, expected):
    """p of seeing these counts, the rare ones taken together."""
    times = sum(seen.values())
    usual = [chosen for chosen in expected if expected[chosen] * times >= 10]
    pairs = [(seen[chosen], expected[chosen] * times) for chosen in usual]
    if len(usual) < len(expected):
        pairs.append(tuple(times - sum(column) for column in zip(*pairs, strict=True)))
    return chisquare(*zip(*pairs, strict=True)).pvalue


class TestLaw:
    @pytest.mark.parametrize("prior", [(1, 1), (20, 20), (1, 9)])
    @pytest.mark.parametrize("over", [(3, -2, 7, -5), (0, 0, 1, -1), (-4, -4, -4, 2)])
    def test_sets_are_drawn_as_often_as_defined(self, over, prior):
        expected, entropy, times = law(over, scale=2.5, prior=prior), SeededEntropy(11), 8_000
        seen = dict.fromkeys(expected, 0)
        for _ in range(times):
            drawn = set_above_threshold._draw(np.array(over), scale=2.5, prior=prior, entropy=entropy)
            seen[tuple(drawn.tolist())] += 1
        assert fit(seen, expected) > 1e-4
        if over == (3, -2, 7, -5):
            assert fit(seen, law(over, scale=2.0, prior=prior)) < 1e-6, "less noise would be noticed"

    def test_log_weights_are_as_good_as_stated(self):
        number, seen = 5000, (20, 300)
        prior = set_above_threshold.Urn.of(number, seen)
        with working_precision():
            ctx.prec = 200
            for above, below in ((0, 0), (7, 4993), (2500, 2500), (5000, 0), (1, 77)):
                first, second = arb(above + seen[0]), arb(below + seen[1])
                truth = first.lgamma() + second.lgamma() - (first + second).lgamma()
                found = arb(float(prior.log_weight(np.array(above), np.array(below))))
                assert abs(found - truth) < arb(prior.doubt.numerator) / arb(prior.doubt.denominator)

    def test_an_urn_is_drawn_from_exactly(self):
        class Bits(SeededEntropy):
            def bits(self, count, /):
                return 0

        third = (1 << 64) // 3
        assert set_above_threshold._less(third - 1, 1, 3, Bits(1))
        assert not set_above_threshold._less(third + 1, 1, 3, Bits(1))
        assert set_above_threshold._less(third, 1, 3, Bits(1)), "undecided by 64 bits, and below by the next"


class TestCost:
    @settings(max_examples=40, deadline=None)
    @given(
        values=st.lists(st.integers(-12, 12), min_size=1, max_size=4),
        moves=st.lists(st.integers(0, 6), min_size=4, max_size=4),
        prior=st.sampled_from([(1, 1), (20, 20), (1, 30)]),
        line_scale=st.sampled_from([2.0, 9.0]),
        scale=st.sampled_from([1.5, 6.0]),
    )
    def test_no_pair_of_neighbours_is_farther_apart_than_stated(self, values, moves, prior, line_scale, scale):
        moved = [value + move for value, move in zip(values, moves, strict=False)]
        setting = {"line_scale": line_scale, "scale": scale, "prior": prior}
        assert largest_ratio(noised(values, **setting), noised(moved, **setting)) <= 3 / line_scale + 2 * 3 / scale

    def test_the_bound_is_not_idle(self):
        values, moved = [-5, 3, -1, -2, 1], [1, 9, 5, -2, 7]
        setting, bound = {"line_scale": 30.0, "prior": (1, 5), "reach": 12}, 3 / 30 + 2 * 3 / 2
        apart = [
            largest_ratio(noised(values, scale=scale, **setting), noised(moved, scale=scale, **setting))
            for scale in (2.0, 0.75)
        ]
        assert 0.7 * bound < apart[0] <= bound < apart[1], "too little noise breaks it"

    @settings(max_examples=40, deadline=None)
    @given(
        values=st.lists(st.integers(-12, 12), min_size=1, max_size=5),
        moves=st.lists(st.integers(-4, 4), min_size=5, max_size=5),
        scale=st.sampled_from([1.5, 6.0]),
    )
    def test_values_that_move_both_ways(self, values, moves, scale):
        moved = [value + move for value, move in zip(values, moves, strict=False)]
        assert largest_ratio(law(values, scale=scale, prior=(5, 5)), law(moved, scale=scale, prior=(5, 5))) <= 8 / scale

    def test_without_noise_of_the_line_half_the_noise_does_not_do(self):
        """Why the line of a monotone family has noise: without it the same scale costs up to twice as much."""
        values, moved = [4, 2, 8, 6, 1, 7, -6], [4, 8, 14, 12, 7, 13, 0]
        apart = largest_ratio(law(values, scale=4.0, prior=(20, 20)), law(moved, scale=4.0, prior=(20, 20)))
        assert apart > 1.6 * (2 * 3 / 4.0)

    @pytest.mark.parametrize("family", [MONOTONE, EITHER_WAY])
    @pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 50.0])
    @pytest.mark.parametrize("number", [1, 365, 100_000])
    def test_calibrated_costs_what_was_asked(self, family, epsilon, number):
        found = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=epsilon, candidates=number)
        assert epsilon * (1 - 1e-3) < found.epsilon(number) <= epsilon
        delta = Fraction(family.sensitivity)
        each = 2 * delta / Fraction(found.scale)
        if found.scale_threshold:
            each = delta / Fraction(found.scale) + delta / (2 * Fraction(found.scale_threshold))
        assert Fraction(found.epsilon(number)) >= each
        assert Fraction(found.rho(number)) >= Fraction(found.epsilon(number)) ** 2 / 2


class TestRelease:
    def test_far_values_are_named_right(self):
        values = np.where(np.arange(365) % 9 == 0, 0.9, 0.1)
        found = SetAboveThreshold.calibrated(MONOTONE, threshold=0.5, epsilon=1.0, candidates=365)
        assert (found.release(values, entropy=SeededEntropy(3)).above == (values >= 0.5)).all()
        exact = [Fraction(9, 10) if place % 9 == 0 else Fraction(1, 10) for place in range(365)]
        assert (found.release(exact, entropy=SeededEntropy(3)).above == (values >= 0.5)).all()

    def test_the_line_has_its_noise(self):
        """A value one scale above the line is named unless the line moves above it: 1 − e^(−1)/2 of the time."""
        wide = QueryFamily(lower=0, upper=1, sensitivity=1e-2, monotone=True)
        found = SetAboveThreshold(wide, threshold=0.5, scale=1e-4, scale_threshold=0.1)
        named = sum(found.release([0.6], entropy=SeededEntropy(seed)).above[0] for seed in range(3000))
        assert named / 3000 == pytest.approx(1 - math.exp(-1) / 2, abs=4 * 0.0071)

    def test_a_release_has_the_law_of_its_scale(self):
        found = SetAboveThreshold(EITHER_WAY, threshold=0.5, scale=0.25, prior=(2, 5))
        expected = law((-0.2, 0.1, 0.4), scale=0.25, prior=(2, 5))
        seen = dict.fromkeys(expected, 0)
        for seed in range(3000):
            seen[tuple(found.release([0.3, 0.6, 0.9], entropy=SeededEntropy(seed)).above.tolist())] += 1
        assert fit(seen, expected) > 1e-4
        assert fit(seen, law((-0.2, 0.1, 0.4), scale=0.125, prior=(2, 5))) < 1e-9

    def test_a_seed_is_told(self):
        found = SetAboveThreshold.calibrated(EITHER_WAY, threshold=0.5, epsilon=1.0, candidates=2)
        first, again = (found.release([0.2, 0.5], entropy=SeededEntropy(9)) for _ in range(2))
        assert first.noise == "reproducible"
        assert (first.above == again.above).all()
        assert found.release([0.2, 0.9]).noise == "private"
        assert first.loss.epsilon == found.epsilon(2)

    def test_a_line_beyond_all_values_still_gives_every_set_a_chance(self):
        found = SetAboveThreshold(EITHER_WAY, threshold=0.5, scale=0.5)
        seen = {tuple(found.release([0.0, 1.0], entropy=SeededEntropy(seed)).above.tolist()) for seed in range(200)}
        assert len(seen) == 4

    @pytest.mark.parametrize("steps", [math.nextafter(2.0**63, 0.0), 2.0**63, 2.0**80, -math.nextafter(2.0**63, 0.0)])
    @pytest.mark.parametrize("family", [QueryFamily(lower=-1, upper=1, sensitivity=1e-3), MONOTONE])
    def test_a_line_farther_than_64_bits_reach_is_only_far(self, family, steps):
        """Differences that wrapped around would put neighbours on opposite sides of it."""
        found = SetAboveThreshold.calibrated(family, threshold=0.5, epsilon=0.2, candidates=2)
        found = dataclasses.replace(found, threshold=steps * found.grid.step)
        for value in (family.lower, -1025 * found.grid.step, 0.0, 1025 * found.grid.step, family.upper):
            named = found.release([max(value, family.lower)] * 2, entropy=SeededEntropy(4)).above
            assert named.tolist() == [steps < 0] * 2

    @pytest.mark.parametrize("sign", [1, -1])
    def test_noise_that_is_cut_leaves_the_line_beyond_all_values(self, monkeypatch, sign):
        """A line at 2^62 steps with noise that is cut at -2^62 was at 0, where one person counts twice as much."""
        found = SetAboveThreshold.calibrated(MONOTONE, threshold=0.5, epsilon=0.2, candidates=3)
        found = dataclasses.replace(found, threshold=sign * 2.0**62 * found.grid.step)
        cut = np.array([-sign * set_above_threshold.LARGEST_MAGNITUDE])
        monkeypatch.setattr(set_above_threshold, "discrete_laplace", lambda *_, **__: cut)
        seen = {tuple(found.release([0.0, 0.5, 1.0], entropy=SeededEntropy(seed)).above) for seed in range(20)}
        assert seen == {(sign > 0,) * 3}

    @pytest.mark.parametrize("prior", [(1, 1 << 20), (1 << 20, 1), (1, 1), (20, 20), (1 << 20, 1 << 20)])
    def test_no_distance_that_counts_reaches_a_line_whose_noise_is_cut(self, prior):
        """The bound that the assertion of the constants rests on, at the largest number of values there may be."""
        most = set_above_threshold.Urn.of(set_above_threshold.MOST_VALUES, prior).most
        set_above_threshold.Urn.of.cache_clear()
        assert most <= set_above_threshold.LARGEST_CUT

    def test_as_many_steps_whatever_is_drawn(self):
        def steps(over, seed):
            lines = 0

            def trace(frame, event, _):
                nonlocal lines
                if frame.f_code is not set_above_threshold._draw.__code__:
                    return None
                lines += event == "line"
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                set_above_threshold._draw(over, scale=9.0, prior=(9, 9), entropy=SeededEntropy(seed))
            finally:
                sys.settrace(before)
            return lines

        near, far = np.arange(1, 31), np.arange(1, 31) * 1000
        counted = [steps(over, seed) for over in (near, far) for seed in range(12)]
        assert max(counted) - min(counted) <= 1, "none but the one that marks the farthest wrong value"

    def test_extreme_settings(self):
        wide = QueryFamily(lower=0, upper=1, sensitivity=1, monotone=True)
        tiny = QueryFamily(lower=0, upper=1e12, sensitivity=1e-3, monotone=True)
        for family in (wide, tiny, QueryFamily(lower=-1e300, upper=1e300, sensitivity=1e290)):
            found = SetAboveThreshold.calibrated(family, threshold=family.upper / 2, epsilon=1.0, candidates=3)
            assert found.release([family.lower, family.upper / 2, family.upper]).above.shape == (3,)
            assert found.epsilon(3) <= 1.0

    def test_nothing_is_told_of_bad_values(self):
        found = SetAboveThreshold.calibrated(MONOTONE, threshold=0.5, epsilon=1.0, candidates=2)
        for values in ([0.25, 7.75], [0.25, math.nan], [], "0.25", [[0.25]]):
            with pytest.raises(InvalidData) as caught:
                found.release(values)
            assert "7.75" not in str(caught.value)
        assert found.release([0.25, 7.75], outside="clip").above.tolist() == [False, True]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"scale": 0.0},
            {"scale": 1e300},
            {"scale_threshold": 0.0},
            {"threshold": math.nan},
            {"prior": (0, 1)},
            {"prior": (1,)},
            {"prior": (1, 1 << 30)},
            {"prior": "12"},
        ],
    )
    def test_bad_settings_are_refused(self, wrong):
        good = {"threshold": 0.5, "scale": 0.1, "scale_threshold": 0.1}
        with pytest.raises(InvalidParameter):
            SetAboveThreshold(MONOTONE, **(good | wrong))
        with pytest.raises(InvalidParameter):
            SetAboveThreshold(EITHER_WAY, **good)
        with pytest.raises(InvalidParameter):
            SetAboveThreshold(MONOTONE, **good).epsilon(1 << 21)


class TestRounding:
    @pytest.mark.parametrize("number", [1, 365, 100_000])
    @pytest.mark.parametrize("monotone", [True, False])
    def test_the_doubt_of_the_log_weights_is_paid_at_both_neighbours(self, monotone, number):
        """Each probability may be off by e^(2τ) on either side, so ε is larger by 4τ than without rounding.

        All numbers are powers of two, so that nothing else is rounded.
        """
        family = QueryFamily(lower=0, upper=1, sensitivity=2.0**-10, monotone=monotone)
        found = SetAboveThreshold(family, threshold=0.5, scale=0.25, scale_threshold=0.5 if monotone else 0.0)
        ideal = Fraction(2, 2**10) / Fraction(1, 4)
        if monotone:
            ideal = Fraction(1, 2**10) / Fraction(1, 4) + Fraction(1, 2**11) / Fraction(1, 2)
        doubt = set_above_threshold.Urn.of(number, found.prior).doubt
        assert ideal + 4 * doubt <= Fraction(found.epsilon(number)) <= (ideal + 4 * doubt) * (1 + Fraction(1, 2**50))

    @pytest.mark.parametrize("sensitivity", [0.3, 0.37, 1e-3, 0.0123])
    def test_the_line_moves_by_whole_steps(self, sensitivity):
        """An odd number of steps has no half: the line moves by one step more than that."""
        family = QueryFamily(lower=0, upper=1, sensitivity=sensitivity, monotone=True)
        found = SetAboveThreshold(family, threshold=0.5, scale=0.25, scale_threshold=0.5)
        grid = found.grid
        steps = grid.sensitivity(family)
        half = math.ceil(Fraction(steps, 2))
        assert steps - half <= half
        cost = 2 * half / grid.in_steps(0.25) + half / grid.in_steps(0.5)
        assert Fraction(found.epsilon(1)) >= cost

    def test_a_sensitivity_of_one_step_costs_as_much_as_two(self):
        """With a line that does not move, one step would seem to cost nothing; the exact law says what it costs."""
        family = QueryFamily(lower=0, upper=1, sensitivity=2.0**-52, monotone=True)
        found = SetAboveThreshold(family, threshold=0.5, scale=2.0**-50, scale_threshold=2.0**-50)
        grid = found.grid
        assert grid.sensitivity(family) == 1
        setting = {
            "line_scale": float(grid.in_steps(found.scale_threshold)),
            "scale": float(grid.in_steps(found.scale)),
            "prior": found.prior,
        }
        apart = largest_ratio(noised([0, -1, 1], **setting), noised([1, 0, 1], **setting))
        assert 1e-3 < apart <= found.epsilon(3)
