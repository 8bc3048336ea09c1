"""What the rule takes for granted about doubles, checked against ball arithmetic: the units in its error bound."""

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import log_ndtr

from dpselect.numerics import normal, strip
from dpselect.numerics.alone import log_cdf_error_of_one
from dpselect.numerics.pair import LEFT_OFF, Pair, difference, line, quotient
from dpselect.numerics.rule import STEP_UNITS
from dpselect.privacy.zhu_wang import log_negative_moment

U = 2.0**-53


@pytest.fixture(autouse=True)
def precision():
    before = ctx.prec
    ctx.prec = 200
    yield
    ctx.prec = before


def phi_of(y):
    """Φ(y) in balls, to full relative accuracy."""
    z = y / arb(2).sqrt()
    return (-z).erfc() / 2 if not y > 0 else 1 - z.erfc() / 2


def arguments(size):
    """Everywhere, and densely around 0, where the functions are at their worst."""
    rng = np.random.default_rng(11)
    near = [rng.uniform(-1, 1, size), rng.uniform(-0.1, 0.1, size)]
    return np.concatenate([rng.uniform(-40, 9, size), -(10 ** rng.uniform(0, 4, size // 4)), *near])


def in_short_arrays(function):
    """As the rule calls it for few cells; long arrays take another way through it."""
    return lambda y: np.concatenate([function(part) for part in np.array_split(y, len(y) // 500)])


def one_by_one(function):
    return lambda y: np.array([function(float(one)) for one in y])


LOG_CDF = {
    "scipy": log_ndtr,
    "many": normal.log_cdf_of_many,
    "long arrays": lambda y: normal.log_cdf_and_hazard(y)[0],
    "short arrays": in_short_arrays(lambda y: normal.log_cdf_and_hazard(y)[0]),
    "plain": one_by_one(lambda y: normal.log_cdf_and_hazard_of_one(y)[0]),
}
HAZARD = {
    "long arrays": lambda y: normal.log_cdf_and_hazard(y)[1],
    "short arrays": in_short_arrays(lambda y: normal.log_cdf_and_hazard(y)[1]),
    "plain": one_by_one(lambda y: normal.log_cdf_and_hazard_of_one(y)[1]),
}


@pytest.fixture(scope="module")
def truths():
    """Arguments with log Φ there, in balls."""
    ctx.prec = 200
    y = arguments(6000)
    return y, [phi_of(arb(float(at))).log() for at in y]


@pytest.mark.parametrize("compute", LOG_CDF.values(), ids=LOG_CDF)
def test_log_cdf_is_within_two_thirds_of_its_units(compute, truths):
    y, logs = truths
    shares = []
    for at, truth, value in zip(y.tolist(), logs, compute(y).tolist(), strict=True):
        size = float(-truth.mid())
        # At one point 4·max(y, 0)² units of log Φ are allowed; the function's 0.18 is their most over a window.
        allowed = log_cdf_error_of_one(at, size) - 4 * U * (0.18 if at <= 1.2 else 0.0)
        allowed += 4 * U * size * max(at, 0.0) ** 2 * (at <= 1.2)
        shares.append(float(abs(arb(value) - truth).mid()) / allowed)
    assert max(shares) <= 2 / 3
    assert max(shares) > 0.1


@pytest.mark.parametrize("name", HAZARD)
def test_the_hazard_is_within_two_thirds_of_its_units(name, truths):
    y, logs = truths
    shares = []
    for at, truth, value in zip(y.tolist(), logs, HAZARD[name](y).tolist(), strict=True):
        exact = (-(arb(at) ** 2) / 2 - truth).exp() / (2 * arb.pi()).sqrt()
        allowed = U * (24 if at < 0 and name != "plain" else 24 + 4 * min(at * at, 1600))
        shares.append(float(abs(arb(value) / exact - 1).mid()) / allowed)
    assert max(shares) <= 2 / 3
    assert max(shares) > 0.1


def test_deep_log_cdf_is_within_half_of_its_units():
    """log Φ(y) + y²/2, of which two are subtracted: 24 units are allowed for both."""
    rng = np.random.default_rng(16)
    y = -np.concatenate([rng.uniform(0, 40, 2000), 10 ** rng.uniform(1.5, 4, 300)])
    for at, value in zip(y, normal.deep_log_cdf(y), strict=True):
        a = arb(float(at))
        # From about 30 on the logarithm itself is more than 4, and so is its unit.
        assert float(abs(arb(float(value)) - phi_of(a).log() - a * a / 2).mid()) <= 6 * U * max(1.0, abs(value) / 2), at


def test_a_rise_in_the_lower_tail_is_within_two_thirds_of_its_units():
    rng, shares = np.random.default_rng(18), []
    for _ in range(2000):
        y = -(10 ** rng.uniform(0.7, 1.6))
        step = -y * 10 ** rng.uniform(-8, -1) * rng.choice([-1, 1])
        a, moved = arb(y), arb(y) + arb(step)
        truth = phi_of(moved).log() - phi_of(a).log()
        # Its arguments are exact here, but y + step is rounded.
        allowed = strip.unsure_deep_rise(y, step, 2 * U * abs(y), 0.0)
        shares.append(float(abs(arb(normal.deep_rise(y, step)) - truth).mid()) / allowed)
    assert 1e-3 < max(shares) < 2 / 3


def test_the_lattice_holds_log_cdf_at_its_points():
    ctx.prec = 500
    rng = np.random.default_rng(17)
    y, log_cdf, hazard = normal.nearest_on_lattice(rng.uniform(-16, 16, 500))
    assert (y * normal.FINE == np.rint(y * normal.FINE)).all()
    found = normal.lattice_log_cdf(y, np.full(500, 3 / normal.FINE), np.zeros(500), np.zeros((1, 1)))
    assert (found[0] == log_cdf).all()
    for at, one, h in zip(y, log_cdf, hazard, strict=True):
        truth = phi_of(arb(float(at)))
        density = (-(arb(float(at)) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
        assert float(abs(arb(float(one)) / truth.log() - 1).mid()) <= 8 * U + 2 * U * max(at, 0.0) ** 2
        assert float(abs(arb(float(h)) * truth / density - 1).mid()) <= 64 * U + 20 * U * at * at


def test_steps_along_the_lattice_are_exact():
    """Alone and batched: base + step·(first + k), read off the table."""
    counting = np.arange(40.0)
    alone = normal.lattice_log_cdf(2.5, 7 / normal.FINE, -12.0, counting)
    batched = normal.lattice_log_cdf(np.array([2.5]), np.array([7 / normal.FINE]), np.array([-12.0]), counting[:, None])
    expected = normal.nearest_on_lattice(2.5 + (counting - 12.0) * 7 / normal.FINE)[1]
    assert (alone == expected).all()
    assert (batched[:, 0] == expected).all()


def test_steps_of_log_cdf_are_within_their_units():
    """(80 + 20y²) units, the hazard taken from log Φ as the rule does."""
    rng = np.random.default_rng(12)
    y = np.concatenate([rng.uniform(-30, 8, 1500), rng.uniform(-3, 3, 500)])
    step = 10 ** rng.uniform(-12, np.log10(normal.SMALL_STEP), len(y)) / (np.abs(y) + 3.0) * rng.choice([-1, 1], len(y))
    for block in np.array_split(np.arange(len(y)), 40):
        here, move = y[block], step[block]
        hazard = np.exp(-0.5 * here * here - log_ndtr(here)) / np.sqrt(2 * np.pi)
        reach = float((np.abs(move) * (np.abs(here) + 2.0)).max())
        found = normal.small_log_cdf_step(here, move, hazard, reach=reach)
        log_cdf = log_ndtr(here)
        alone = [
            normal.small_log_cdf_step_of_few(
                here[k : k + 1], float(move[k]), log_cdf[k : k + 1], reach=abs(move[k]) * (abs(here[k]) + 2.0)
            )[0]
            for k in range(len(here))
        ]
        for at, shift, value in zip([*here, *here], [*move, *move], [*found, *alone], strict=True):
            a, s = arb(float(at)), arb(float(shift))
            gap = phi_of(a + s) - phi_of(a) if at < 0 else phi_of(-a) - phi_of(-a - s)
            truth = (gap / phi_of(a)).log1p()
            allowed = (STEP_UNITS + 20 * at * at) * U
            assert float(abs(arb(float(value)) / truth - 1).mid()) <= 0.5 * allowed, (at, shift)


def test_pairs_hold_twice_the_digits():
    rng = np.random.default_rng(13)
    for _ in range(2000):
        a, b, c, x = (float(v) for v in rng.normal(size=4) * 10 ** rng.uniform(-6, 6, 4))
        offset, slope = quotient(difference(a, b), c), quotient(Pair(a, 0.0), c)
        base = line(slope, x, offset)
        truth = (arb(a) * arb(x) + arb(a) - arb(b)) / arb(c)
        size = abs(arb(a) * arb(x) / arb(c)) + abs((arb(a) - arb(b)) / arb(c))
        assert abs(arb(base.high) + arb(base.low) - truth) <= LEFT_OFF * size


def test_the_sharper_swelling_is_concave_in_the_logarithm():
    """docs/theory.md §6: the derivative of the rate is positive over a cover of [0, 3] by balls, at the largest b."""
    ctx.prec = 64
    b = arb(0.85)
    grown = (b * b / 2).exp()
    share = (grown - 1) / (b * b * grown * grown)

    def slope(y):
        h = (-y * y / 2).exp() / (2 * arb.pi()).sqrt() / ((-y / arb(2).sqrt()).erfc() / 2)
        return share * (2 * y + h * (1 - y * (h + y))) + h * (1 - (h + y) * (2 * h + y))

    waiting = [(k / 8, (k + 1) / 8) for k in range(24)]
    while waiting:
        low, high = waiting.pop()
        if not slope(arb(low).union(arb(high))) > 0:
            assert high - low > 1e-6
            waiting += [(low, (low + high) / 2), ((low + high) / 2, high)]


def test_the_swelling_covers_the_modulus_off_the_line():
    rng = np.random.default_rng(14)
    from flint import acb

    for _ in range(4000):
        y, b, other = rng.uniform(-3, 8), 10 ** rng.uniform(-3, 0.5), rng.uniform(-10, 10)
        bound, rate = strip.swelling_of_one(y, *normal.log_cdf_and_hazard_of_one(y), b)
        truth = (abs((-acb(other, b) / acb(2).sqrt()).erfc() / 2) / phi_of(arb(other))).log()
        tangent = arb(bound) + arb(rate) * (phi_of(arb(y)).log() - phi_of(arb(other)).log())
        assert truth <= tangent + arb(1e-12), (y, b, other)


def test_halved_swelling_is_noticed():
    """The control: half of the bound does not cover it."""
    from flint import acb

    bound, _ = strip.swelling_of_one(2.0, *normal.log_cdf_and_hazard_of_one(2.0), 0.3)
    truth = (abs((-acb(2.0, 0.3) / acb(2).sqrt()).erfc() / 2) / phi_of(arb(2.0))).log()
    assert truth > bound / 2


def moment(power, slope, offset):
    """The moment by Gauss–Legendre panels in 40 digits, far more of them than it needs."""
    import mpmath

    with mpmath.workdps(30):
        peak = mpmath.mpf(0)
        for _ in range(60):
            y = slope * peak + offset
            peak = 0.5 * peak - 0.5 * power * slope * mpmath.npdf(y) / mpmath.ncdf(y)
        width = 1 / mpmath.sqrt(1 - power * slope * slope)
        ends = [peak + k * width for k in range(-14, 15, 2)]
        log_top = -peak * peak / 2 - power * mpmath.log(mpmath.ncdf(slope * peak + offset))

        def height(x):
            return mpmath.exp(-x * x / 2 - power * mpmath.log(mpmath.ncdf(slope * x + offset)) - log_top)

        return log_top + mpmath.log(mpmath.quad(height, ends) / mpmath.sqrt(2 * mpmath.pi))


def test_negative_moments_are_never_below_the_truth():
    rng = np.random.default_rng(15)
    for _ in range(8):
        slope = -rng.uniform(0.05, 0.9)
        power = 1 + (min(1 / slope**2, 40.0) - 1) * rng.uniform(0.01, 0.9)
        offset = rng.uniform(-6, 2)
        truth = moment(power, slope, offset)
        found = log_negative_moment(power, slope, offset)
        assert truth <= found <= truth + 1e-9 * max(1, abs(truth)), (power, slope, offset)


def test_negative_moments_beyond_their_domain_are_infinite():
    assert log_negative_moment(4.0, -0.5, 0.0) == float("inf")
