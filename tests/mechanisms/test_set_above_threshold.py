"""Naming all values above a line at once: its law, its cost, and what would break it."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.mechanisms.members import SETS
from tests.mechanisms.set_law import climbed, law, loss, loss_in_balls, noised, prior_of, sets

from dpselect import QueryFamily
from dpselect.errors import InvalidData, InvalidParameter
from dpselect.mechanisms import set_above_threshold
from dpselect.mechanisms.chains import Chains, ranks
from dpselect.mechanisms.set_above_threshold import RUNS, SetAboveThreshold
from dpselect.noise.entropy import SeededEntropy

#: This suite is about one mechanism; another of its kind needs a suite of its own.
assert list(SETS.values()) == [SetAboveThreshold]
MONOTONE = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
EITHER_WAY = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
#: So wide that values are whole numbers on the grid, and a handful of steps can be enumerated.
WIDE = {"lower": 0, "upper": 2**52, "sensitivity": 6}
LINE = 2**51
PRIORS = [RUNS, Chains([(0.2, 0.0), (0.5, 0.9), (0.8, 0.6, 3.0)]), Chains([(0.2,)])]


def coarse(*, moves, scale, line_scale, prior):
    """A mechanism on a grid of step 1, and its setting as the enumerated law takes it."""
    found = SetAboveThreshold(
        QueryFamily(**WIDE), threshold=LINE, scale=scale, scale_threshold=line_scale, prior=prior, moves=moves
    )
    assert found.grid.step == 1
    return found, {"scale": scale, "line_scale": line_scale, "prior": prior}


def fit(drawn, expected):
    """p of seeing these sets, the rare ones taken together."""
    seen, expected = np.bincount(drawn, minlength=len(expected)), expected * len(drawn)
    usual = expected >= 10
    parts = [[*one[usual], one[~usual].sum()] for one in (seen, expected)]
    if parts[1][-1] < 1:
        parts = [[*one[:-2], one[-2] + one[-1]] for one in parts]
    return chisquare(*parts).pvalue


def named(above):
    """A set as a number, its first value the highest bit."""
    return int(above @ (1 << np.arange(len(above) - 1, -1, -1)))


class TestCost:
    @settings(max_examples=60, deadline=None)
    @given(
        values=st.lists(st.integers(-12, 12), min_size=1, max_size=4),
        shares=st.lists(st.floats(0, 1), min_size=4, max_size=4),
        moves=st.sampled_from([(0, 6), (-6, 6), (-1, 6), (-6, 2), (-3, 0), (2, 5), (4, 4)]),
        prior=st.sampled_from(PRIORS),
        line_scale=st.sampled_from([0.0, 2.0, 9.0]),
        scale=st.sampled_from([1.5, 6.0]),
    )
    def test_no_pair_of_neighbours_is_farther_apart_than_stated(self, values, shares, moves, prior, line_scale, scale):
        if sum(moves) == 0:
            line_scale = 0.0
        mechanism, setting = coarse(moves=moves, scale=scale, line_scale=line_scale, prior=prior)
        least, most = moves
        moved = [value + round(least + share * (most - least)) for value, share in zip(values, shares, strict=False)]
        assert loss(values, moved, **setting) <= mechanism.epsilon(len(values)) + 1e-9

    @pytest.mark.parametrize("prior", PRIORS)
    @pytest.mark.parametrize(("moves", "line_scale"), [((0, 6), 9.0), ((-6, 6), 0.0), ((-2, 6), 12.0), ((0, 6), 0.0)])
    def test_neighbours_sought_for_stay_within_the_bound(self, moves, line_scale, prior):
        """Hill climbing in doubles; the farthest pair again in balls; and with half the noise it finds a breach."""
        mechanism, setting = coarse(moves=moves, scale=3.0, line_scale=line_scale, prior=prior)
        bound, generator = mechanism.epsilon(4), np.random.default_rng(17)
        best = (0.0, np.zeros(4, int), np.zeros(4, int))
        halved = dict(setting, scale=1.5)
        broken = best
        for _ in range(4):
            start = generator.integers(-12, 12, 4), generator.integers(moves[0], moves[1] + 1, 4)
            search = {"least": moves[0], "most": moves[1], "generator": generator, "steps": 120}
            best = max(best, climbed(*start, setting=setting, **search), key=lambda one: one[0])
            broken = max(broken, climbed(*start, setting=halved, **search), key=lambda one: one[0])
        certain = loss_in_balls(best[1], best[1] + best[2], **setting)
        assert certain < bound
        assert abs(float(certain.mid()) - best[0]) < 1e-9
        assert best[0] > 0.5 * bound, "the search comes near"
        assert loss_in_balls(broken[1], broken[1] + broken[2], **halved) > bound, "half the noise is noticed"

    def test_the_bound_is_not_idle(self):
        values, moved = np.array([-5, 3, -1, -2, 1]), np.array([1, 9, 5, -2, 7])
        setting, bound = {"line_scale": 30.0, "prior": Chains([(0.2,)]), "reach": 12}, 3 / 30 + 2 * 3 / 2
        apart = [loss(values, moved, scale=scale, **setting) for scale in (2.0, 0.75)]
        assert 0.7 * bound < apart[0] <= bound < apart[1], "too little noise breaks it"

    def test_without_noise_of_the_line_half_the_noise_does_not_do(self):
        """Why the line of a monotone family has noise: without it the same scale costs up to twice as much."""
        values, moved = [4, 2, 8, 6, 1, 7, -6], [4, 8, 14, 12, 7, 13, 0]
        apart = loss(values, moved, scale=4.0, prior=Chains([(0.5,)]), line_scale=0.0)
        assert apart > 1.6 * (2 * 3 / 4.0)
        mechanism, _ = coarse(moves=(0, 6), scale=4.0, line_scale=0.0, prior=Chains([(0.5,)]))
        assert apart <= mechanism.epsilon(7)

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

    @pytest.mark.parametrize("moves", [(0.0, 1e-3), (-1e-3, 1e-3), (-2e-4, 8e-4), (-4.9e-4, 5e-4), (-1e-3, -5e-4)])
    def test_an_interval_costs_its_width_and_its_middle(self, moves):
        low, high = (Fraction(end) for end in moves)
        found = SetAboveThreshold.calibrated(EITHER_WAY, threshold=0.5, epsilon=1.0, candidates=9, moves=moves)
        exact = (high - low) / Fraction(found.scale)
        if found.scale_threshold:
            exact += abs(low + high) / 2 / Fraction(found.scale_threshold)
        else:
            exact = 2 * max(high, -low) / Fraction(found.scale)
        assert float(exact) == pytest.approx(found.epsilon(9), rel=1e-3)
        assert 0.999 < found.epsilon(9) <= 1.0
        pays = (high - low) / 2 < Fraction(85, 100) * max(high, -low)
        assert bool(found.scale_threshold) is pays

    def test_the_mean_of_those_present(self):
        """Whether the mean of capped readings reaches t: a person adds between −t and C − t, and no ratio is formed."""
        persons, cap, line = 5566, 50.0, 12.0
        family = QueryFamily(lower=-line, upper=cap - line, sensitivity=(cap - line) / persons)
        moves = (-line / persons, (cap - line) / persons)
        found = SetAboveThreshold.calibrated(family, threshold=0.0, epsilon=1.0, candidates=365, moves=moves)
        either_way = SetAboveThreshold.calibrated(family, threshold=0.0, epsilon=1.0, candidates=365)
        assert found.scale == pytest.approx(cap / persons / 0.85, rel=1e-3)
        assert found.scale < 0.8 * either_way.scale


class TestMistakes:
    @settings(max_examples=80, deadline=None)
    @given(
        over=st.lists(st.integers(-9, 9), min_size=1, max_size=6),
        prior=st.sampled_from(PRIORS),
        scale=st.sampled_from([0.5, 2.0, 9.0]),
    )
    def test_the_farthest_mistake_is_as_unlikely_as_described(self, over, prior, scale):
        """At most exp(D(a, |w|) − κ(|w| − a)) for every a, D from the prior alone; and exp(−κm)/π(right set)."""
        over, chances = np.array(over), law(over, scale=scale, prior=prior)
        away, wrong = np.abs(over), sets(len(over)).astype(bool) != (over >= 0)
        expected = np.array([float(sum(column)) for column in zip(*prior_of(prior, len(over)), strict=True)])
        expected /= expected.sum()

        def right_beyond(distance):
            return ~wrong[:, away > distance].any(axis=1)

        for place, distance in enumerate(away):
            farthest = chances[right_beyond(distance) & wrong[:, place]].sum()
            for near in (0, *away[away <= distance]):
                ratio = expected[right_beyond(distance)].sum() / expected[right_beyond(near)].sum()
                assert farthest <= ratio * math.exp(-(distance - near) / scale) * (1 + 1e-12)
            at_least = chances[wrong[:, away >= distance].any(axis=1)].sum()
            assert at_least <= math.exp(-distance / scale) / expected[~wrong.any(axis=1)].sum() * (1 + 1e-12)

    @pytest.mark.parametrize("changes", [1, 4, 30])
    def test_few_changes_are_cheap_to_describe(self, changes):
        """log 2 + c·log(e(d − 1)/c) for the chain that fits, where independent labels need d·log 2."""
        over = np.where(np.arange(365) * changes // 364 % 2, 5, -5)
        assert (np.diff(over) != 0).sum() == changes
        chain = Chains([(0.5, 1 - 2 * changes / 364)])
        order = np.arange(365)
        found = chain.log_weights((over >= 0).astype(np.int64), order=order, rank=ranks(order))[0, 0]
        assert -math.log(2) - changes * math.log(math.e * 364 / changes) <= found < -0.5 * changes
        fitted = changes / 364
        entropy = -fitted * math.log(fitted) - (1 - fitted) * math.log(1 - fitted)
        assert found == pytest.approx(-math.log(2) - 364 * entropy, rel=1e-9)


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
        found = SetAboveThreshold(EITHER_WAY, threshold=0.5, scale=0.25)
        drawn = [named(found.release([0.3, 0.6, 0.9], entropy=SeededEntropy(seed)).above) for seed in range(3000)]
        assert fit(drawn, law((-0.2, 0.1, 0.4), scale=0.25, prior=RUNS)) > 1e-4
        assert fit(drawn, law((-0.2, 0.1, 0.4), scale=0.125, prior=RUNS)) < 1e-9

    @pytest.mark.parametrize("prior", PRIORS)
    def test_a_release_has_the_law_of_both_its_noises(self, prior):
        values = (4, -3, 1, 1)
        mechanism, setting = coarse(moves=(0, 6), scale=3.0, line_scale=5.0, prior=prior)
        private = [LINE + value for value in values]
        drawn = [named(mechanism.release(private, entropy=SeededEntropy(seed)).above) for seed in range(4000)]
        assert fit(drawn, noised(values, **setting)) > 1e-4
        assert fit(drawn, noised(values, **dict(setting, line_scale=2.0))) < 1e-6

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
            {"scale_threshold": -1.0},
            {"threshold": math.nan},
            {"prior": (20, 20)},
            {"prior": None},
            {"moves": (-1e-3, 1e-3)},
            {"moves": (0.0, 2e-3)},
            {"moves": (1e-3, 0.0)},
            {"moves": 1e-3},
            {"moves": (0.0, math.nan)},
        ],
    )
    def test_bad_settings_are_refused(self, wrong):
        good = {"threshold": 0.5, "scale": 0.1, "scale_threshold": 0.1}
        with pytest.raises(InvalidParameter):
            SetAboveThreshold(MONOTONE, **(good | wrong))
        with pytest.raises(InvalidParameter, match="as far up as down"):
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
        doubt = found.prior.doubt(number)
        assert ideal + 2 * doubt <= Fraction(found.epsilon(number)) <= (ideal + 2 * doubt) * (1 + Fraction(1, 2**50))

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
        apart = loss([0, -1, 1], [1, 0, 1], **setting)
        assert 1e-3 < apart <= found.epsilon(3)
