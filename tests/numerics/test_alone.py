"""One cell of floats and many cells of arrays: the same plan, the same bounds, the same sums."""

import numpy as np
import pytest

from dpselect.numerics import alone, normal, rule, settle, strip
from dpselect.numerics.factors import Factor, exchanged
from dpselect.numerics.normal import log_cdf_and_hazard
from dpselect.numerics.pair import exact


def cells(seed, size=200):
    """Lone factors with slope 1, two of opposite slopes, three of any."""
    rng = np.random.default_rng(seed)
    for number in range(size):
        kinds = number % 3 + 1
        slopes = [1.0] if kinds == 1 else 10 ** rng.uniform(-1, 0.5, kinds) * rng.choice([-1, 1], kinds)
        yield [
            Factor(
                float(np.floor(10 ** rng.uniform(0, 4))),
                exact(float(slope)),
                exact(float(rng.uniform(-12, 2))),
                float(10 ** rng.uniform(-6, -2)),
            )
            for slope in slopes
        ]


def as_arrays(cell):
    """The same cell as a batch of one."""
    return [
        Factor(
            np.array([factor.count]),
            exact(np.array([factor.slope.high])),
            exact(np.array([factor.offset.high])),
            np.array([factor.shift]),
        )
        for factor in cell
    ]


def both(cell, *, gain):
    """The plan and the sums of one cell, in floats and in arrays, from the same peak."""
    site = alone.site_of(cell)
    points = [[np.array([point[k]]) for point in site.points] for k in range(3)]
    on_lattice = np.array([True]) if site.on_lattice else False
    spot = alone_spot = settle.Spot(np.array([site.x]), *points, np.array([site.low]), on_lattice)
    many = as_arrays(cell)
    move, moves = (alone.best_move(cell, site), rule.best_move(many, alone_spot)) if gain else (None, None)
    planned = rule.plan(many, spot, moves)
    return (
        (move, alone.plan_alone(cell, site, move), alone.sums_alone(cell, site, move)),
        (moves, planned, settle._sums_of_many(many, planned)),
    )


@pytest.mark.parametrize("gain", [True, False])
def test_plans_bounds_and_sums_agree(gain):
    compared = 0
    for cell in cells(3):
        (move, planned, found), (moves, planned_many, found_many) = both(cell, gain=gain)
        if found is None:
            assert not found_many.whole_error[0] < np.inf or not found_many.gain_error[0] < np.inf
            continue
        strip_many = planned_many.strip
        if gain:
            assert moves.translation[0] == pytest.approx(move[0], rel=1e-12)
        # The half-widths tried are the same, but which is best may differ where two are nearly as good.
        if planned.half_width != pytest.approx(strip_many.half_width[0], rel=1e-9):
            continue
        compared += 1
        assert planned.log_whole == pytest.approx(strip_many.log_whole[0], abs=1e-6)
        assert planned.log_gain == pytest.approx(strip_many.log_gain[0], abs=1e-6)
        summed = found_many.whole[0] > 0.0  # not so beyond a thousand nodes
        if summed and planned.step == planned_many.step[0] and planned.first == planned_many.first[0]:
            assert found.whole == pytest.approx(found_many.whole[0], rel=1e-11)
            assert found.gain == pytest.approx(found_many.gain[0], rel=1e-9, abs=1e-300)
            if planned.last == planned_many.last[0]:
                assert found.whole_error == pytest.approx(found_many.whole_error[0], rel=1e-3)
                assert found.gain_error == pytest.approx(found_many.gain_error[0], rel=1e-2)
    assert compared > 150


def test_swelling_agrees():
    rng = np.random.default_rng(4)
    y, b = rng.uniform(-3, 8, 500), 10 ** rng.uniform(-3, 0.5, 500)
    bounds, rates = strip.swelling(y, *log_cdf_and_hazard(y), b)
    for k in range(len(y)):
        bound, rate = strip.swelling_of_one(y[k], *normal.log_cdf_and_hazard_of_one(y[k]), b[k])
        assert (bound, rate) == (pytest.approx(bounds[k], rel=1e-9), pytest.approx(rates[k], rel=1e-9, abs=1e-12))


def test_what_follows_from_the_sums_agrees():
    rng = np.random.default_rng(5)
    for _ in range(200):
        whole, gain = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-6, 0.5)
        found = rule.Sums(whole, whole * 10 ** rng.uniform(-14, 0.2), gain, gain * 10 ** rng.uniform(-14, 0))
        value, error = alone.ratio_of_one(found)
        values, errors = rule.ratio_from(rule.Sums(*(np.array([part]) for part in found)))
        assert (value, error) == (pytest.approx(values[0], rel=1e-12), pytest.approx(errors[0], rel=1e-9))


def test_exchanging_variables_is_the_same_for_floats_and_arrays():
    cell = [Factor(7.0, exact(-3.0), exact(1.5), 0.01)]
    for one, many in zip(exchanged(cell[0]), exchanged(as_arrays(cell)[0]), strict=True):
        assert (one.count, *one.slope, *one.offset, one.shift) == (
            many.count[0],
            *(part[0] for part in many.slope),
            *(part[0] for part in many.offset),
            many.shift[0],
        )
