"""A mixture of chains as a prior over sets: its weights, its coins, their rounding, and the time they take."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from tests.mechanisms.set_law import law, prior_of, sets

from dpselect.errors import InvalidParameter
from dpselect.mechanisms import chains as room
from dpselect.mechanisms.chains import LEAST_SHARE, MOST_CORRELATION, Chain, Chains, ranks
from dpselect.noise.entropy import SeededEntropy
from dpselect.precision import working_precision

MIXTURES = [
    Chains([(0.5,)]),
    Chains([(0.1, 0.0), (0.5, 0.5, 2.0)]),
    Chains([(0.3, 0.8), (0.5, 0.0), (0.9, 0.95, 0.25)]),
]
EXTREME = Chains([(LEAST_SHARE, MOST_CORRELATION, 2.0**-64), (1 - LEAST_SHARE, 0.0, 2.0**64), (0.5, 1e-300)])


def weighed(over, prior):
    """Log weights, and the class of each value: 1 for the nearest."""
    over = np.asarray(over)
    order = np.argsort(np.abs(over), kind="stable")
    rank = ranks(order)
    return prior.log_weights((over >= 0).astype(np.int64), order=order, rank=rank), rank


def log(number):
    """A logarithm to within 2^-100."""
    with working_precision():
        ctx.prec = 160
        return arb(fmpq(number.numerator, number.denominator)).log()


class TestClassWeights:
    @settings(max_examples=60, deadline=None)
    @given(over=st.lists(st.integers(-6, 6), min_size=1, max_size=6), prior=st.sampled_from([*MIXTURES, EXTREME]))
    def test_they_are_the_enumerated_ones(self, over, prior):
        found, rank = weighed(over, prior)
        right = np.array(over) >= 0
        for chances, row in zip(prior_of(prior, len(over)), found, strict=True):
            truth = [Fraction(0)] * (len(over) + 1)
            for chosen, chance in zip(sets(len(over)), chances, strict=True):
                truth[int(np.where(chosen != right, rank, 0).max())] += chance
            for weight, whole in zip(row.tolist(), truth, strict=True):
                assert abs(arb(weight) - log(whole)) < float(prior.doubt(len(over)))

    @pytest.mark.parametrize("number", [1, 40, 2000])
    def test_all_free_weighs_nothing_however_many(self, number):
        """The farthest value right or wrong, all others free: its two shares."""
        over = np.random.default_rng(number).integers(-900, 900, number)
        over[0] = 1000
        for chain in (Chain(0.25, 0.9), Chain(0.5, 0.0), Chain(0.9, 0.99)):
            found, _ = weighed(over, Chains([chain]))
            assert found[0, -1] == pytest.approx(math.log(1 - chain.share), abs=1e-12)
            assert np.logaddexp.reduce(found[0]) == pytest.approx(0.0, abs=1e-9), "all classes together are certain"

    @pytest.mark.parametrize("chain", [Chain(0.5, 0.8), Chain(0.01, 0.999), *EXTREME.chains])
    def test_table_entries_are_as_good_as_stated(self, chain):
        bits = 48
        labels, ties = room._tables(chain, bits)
        share, correlation = Fraction(chain.share), Fraction(chain.correlation)
        with working_precision():
            ctx.prec = 400
            p, c = (arb(fmpq(part.numerator, part.denominator)) for part in (share, correlation))
            most = float(room._TABLE_DOUBT) + 2.0 ** -(bits + 1)
            for at, part in zip(labels.tolist(), (1 - p, p), strict=True):
                assert abs(arb(at) / 2**bits - part.log()) < most
            last = ties.shape[1] - 1
            for k in sorted({1, 2, 3, 10, last // 2, last - 1} & set(range(1, last))):
                faded = c**k
                truth = (1 + faded * p / (1 - p), 1 - faded, 1 + faded * (1 - p) / p)
                for at, part in zip(ties[:, k].tolist(), truth, strict=True):
                    assert abs(arb(at) / 2**bits - part.log()) < most
            assert (ties[:, last] == 0).all()
            assert c**last * (1 + (1 - p) / p + p / (1 - p)) < 2.0**-58, "forgotten"


class TestFreeValues:
    @settings(max_examples=60, deadline=None)
    @given(
        labels=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6),
        prior=st.sampled_from([*MIXTURES, EXTREME]),
        member=st.integers(0, 2),
    )
    def test_coins_have_the_conditional_law(self, labels, prior, member):
        member %= len(prior.chains)
        above, free = (np.array(part) for part in zip(*labels, strict=True))
        free[int(above.sum()) % len(free)] = False  # a class always fixes its farthest value
        coins = prior.coins(above.astype(np.int64), free, member=member)
        chances = prior_of(prior, len(above))[member]
        possible = {
            tuple(chosen.tolist()): chance
            for chosen, chance in zip(sets(len(above)), chances, strict=True)
            if (free | (chosen == above)).all()
        }
        whole = sum(possible.values())
        each = room._TABLE_DOUBT + Fraction(1, 2**64) / min(chain.least for chain in prior.chains)
        for chosen, chance in possible.items():
            drawn = Fraction(1)
            for place, label in enumerate(chosen):
                if free[place]:
                    words = Fraction(int(coins[chosen[place - 1] if place else 0][place]), 2**64)
                    drawn *= words if label else 1 - words
            assert abs(float(drawn * whole / chance) - 1) < 1.01 * len(above) * float(each) + 2.0**-52

    def test_free_values_follow_their_coins(self):
        prior, above = MIXTURES[2], np.array([1, 0, 0, 0, 1, 0, 1])
        free = np.array([False, True, True, True, False, True, True])
        words = np.random.default_rng(5).integers(0, 1 << 64, size=(100_000, 7), dtype=np.uint64)
        rows = (np.broadcast_to(part, words.shape) for part in (above, free))
        found = prior.filled(*rows, member=0, words=words)
        assert (found[:, ~free] == (above[~free] == 1)).all()
        chances = prior_of(prior, 7)[0]
        kept = [at for at, chosen in enumerate(sets(7)) if (chosen == above)[~free].all()]
        seen = np.bincount(found @ (1 << np.arange(6, -1, -1)), minlength=128)[kept]
        truth = np.array([float(chances[at]) for at in kept])
        assert chisquare(seen, truth / truth.sum() * len(words)).pvalue > 1e-4
        other = np.array([float(prior_of(prior, 7)[1][at]) for at in kept])
        assert chisquare(seen, other / other.sum() * len(words)).pvalue < 1e-9, "another chain would be noticed"


class TestDraw:
    @pytest.mark.parametrize("prior", MIXTURES)
    @pytest.mark.parametrize("over", [(3, -2, 7, -5), (0, 0, 1, -1), (-4, -4, -4, 2), (2, 1, 1, 2, -3, -1)])
    def test_sets_are_drawn_as_often_as_defined(self, over, prior):
        entropy, times = SeededEntropy(11), 6_000
        places = 1 << np.arange(len(over) - 1, -1, -1)
        drawn = [prior.draw(np.array(over), scale=2.5, entropy=entropy) @ places for _ in range(times)]
        assert fit(drawn, law(over, scale=2.5, prior=prior)) > 1e-4
        if over == (3, -2, 7, -5):
            assert fit(drawn, law(over, scale=2.0, prior=prior)) < 1e-6, "less noise would be noticed"

    def test_a_chain_holds_where_independent_labels_turn_to_coin_flips(self):
        """345 values 40 scales below the line: 2^345 sets outweigh e^-40, but sets with few changes do not."""
        over = np.full(365, -400)
        over[100:120] = 1

        def mistakes(correlation, seed):
            drawn = Chains([(0.5, correlation)]).draw(over, scale=10.0, entropy=SeededEntropy(seed))
            return int((drawn != (over >= 0)).sum())

        assert max(mistakes(0.9, seed) for seed in range(20)) <= 20, "only the twenty near the line can be wrong"
        assert min(mistakes(0.0, seed) for seed in range(20)) > 120

    def test_as_much_work_whatever_is_drawn(self):
        class Counting(SeededEntropy):
            coins = 0

            def words(self, count, /, *, dtype):
                self.coins += count * (np.dtype(dtype) == np.uint64)
                return super().words(count, dtype=dtype)

        def work(over, seed):
            lines, entropy = 0, Counting(seed)

            def trace(frame, event, _):
                nonlocal lines
                if frame.f_code.co_filename != room.__file__:
                    return None
                lines += event == "line"
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                drawn = MIXTURES[1].draw(over, scale=9.0, entropy=entropy)
            finally:
                sys.settrace(before)
            return lines, entropy.coins, int((drawn != (over >= 0)).sum())

        near, far = np.arange(1, 31), np.arange(1, 31) * 1000
        work(near, 1)  # tables are made once
        counted = [work(over, seed) for over in (near, far, -far) for seed in range(12)]
        assert len({one[:2] for one in counted}) == 1
        assert {one[2] > 9 for one in counted} == {True, False}, "many free values, and none"

    def test_a_million_values(self):
        over = np.random.default_rng(3).integers(-(2**20), 2**20, 1 << 20)
        drawn = Chains([(0.4, 0.5), (0.6, 0.5)]).draw(over, scale=0.5, entropy=SeededEntropy(2))
        wrong = drawn != (over >= 0)
        assert np.abs(over[wrong]).max(initial=0) < 200
        assert float(Chains([(0.4, 0.5)]).doubt(1 << 20)) < 4e-6


def fit(drawn, expected):
    """p of seeing these sets, the rare ones taken together."""
    seen, expected = np.bincount(drawn, minlength=len(expected)), expected * len(drawn)
    usual = expected >= 10
    parts = [[*one[usual], one[~usual].sum()] for one in (seen, expected)]
    if parts[1][-1] < 1:
        parts = [[*one[:-2], one[-2] + one[-1]] for one in parts]
    return chisquare(*parts).pvalue


def test_the_nearest_that_is_farther_from_the_line():
    generator = np.random.default_rng(8)
    for number in (1, 2, 3, 4, 5, 7, 8, 9, 30, 64):
        rank = np.array([1 + generator.permutation(number) for _ in range(5)])
        found = room._left_fence(rank)
        assert (room._left_fence(rank[0]) == found[0]).all()
        for row, left in zip(rank.tolist(), found.tolist(), strict=True):
            for place, mine in enumerate(row):
                assert left[place] == max((at for at in range(place) if row[at] > mine), default=-1)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "0.5",
        [0.5, 0.5],
        [(0.0,)],
        [(1.0, 0.5)],
        [(0.5, 1.0)],
        [(0.5, -0.1)],
        [(0.5, 0.9995)],
        [(math.nan,)],
        [(0.5, 0.5, 0.0)],
        [(0.5, 0.5, math.inf)],
        [(0.5, 0.5, 1.0, 1.0)],
        [()],
        [(0.5,)] * 65,
        [("a", 0.5)],
    ],
)
def test_bad_chains_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        Chains(wrong)


def test_equal_mixtures_are_equal():
    assert Chains([Chain(0.5, 0.5)]) == Chains([(0.5, 0.5, 1)])
    assert len({Chains([(0.5, 0.5)]), Chains([[0.5, 0.5, 1.0]]), Chains([(0.5, 0.25)])}) == 2
    assert all(isinstance(part, float) for part in itertools.chain(*Chains([(0.5, 0)]).chains))
