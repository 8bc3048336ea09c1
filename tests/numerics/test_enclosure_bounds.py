"""What makes the enclosure rigorous: bounds off the real line, tails, and panels, each tried where it is used."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
from flint import acb, arb, ctx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpselect.numerics import enclosure_quadrature
from dpselect.numerics.enclosure import enclose_log_ratio, log_integral, log_ratio
from dpselect.numerics.enclosure_integrand import BallFactor, Bend, Growth, Integrand, Product, _normal, _upper_tail
from dpselect.numerics.enclosure_quadrature import find_peak, integrate

FACTORS = ([364], [1], [-5], [1e-3])


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before = ctx.prec
    ctx.prec = 192
    yield
    ctx.prec = before


def factors(
    counts: list[int], slopes: list[float], offsets: list[float], shifts: list[float] | None
) -> list[BallFactor]:
    given_shifts = [None] * len(counts) if shifts is None else [arb(shift) for shift in shifts]
    return [
        BallFactor(arb(c), arb(m), arb(o), s) for c, m, o, s in zip(counts, slopes, offsets, given_shifts, strict=True)
    ]


def complex_value(given: list[BallFactor], z: acb, *, growth: bool, endless: bool) -> acb:
    """The integrand at a complex point, straight from its definition."""

    def product(shifted: bool) -> acb:
        result = acb(1)
        for factor in given:
            y = factor.slope * z + factor.offset + (factor.shift if shifted else 0)
            result *= ((-y / arb(2).sqrt()).erfc() / 2) ** acb(factor.power)
        return result

    density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
    if not growth:
        return density * product(False)
    return density * ((acb(1) if endless else product(True)) - product(False))


points = st.tuples(
    st.integers(1, 2000),
    st.integers(0, 3),
    st.floats(0.05, 20.0),
    st.floats(-12.0, 12.0),
    st.floats(-12.0, 12.0),
    st.sampled_from([1e-6, 0.03, 1.0, 7.0]),
    st.floats(-6.0, 6.0),
    st.floats(1e-3, 2.0),
    st.floats(0.0, 1.5),
    st.floats(-1.0, 1.0),
    st.floats(-1.0, 1.0),
)


@pytest.mark.parametrize("kind", ["product", "growth", "shortfall"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(point=points)
def test_majorants_lie_above_the_integrand_off_the_line(kind: str, point: tuple[float, ...]) -> None:
    count, tops, slope, offset, top_offset, shift, centre, along, thickness, right, up = point
    ctx.prec = 192
    across = along * thickness
    counts, slopes, offsets = [int(count), int(tops)], [slope, -slope], [offset, top_offset]
    keep = 2 if tops else 1
    shifts = None if kind == "shortfall" else [shift, shift][:keep]
    chosen = factors(counts[:keep], slopes[:keep], offsets[:keep], shifts)
    integrand: Integrand = Product(chosen) if kind == "product" else Growth(chosen, endless=kind == "shortfall")
    scale = arb(0)
    bound = enclosure_quadrature._largest(integrand.survey(arb(centre)), scale, arb(along), arb(across))
    z = acb(arb(centre) + arb(right) * arb(along), arb(up) * arb(across))
    ctx.prec = 2000
    value = complex_value(chosen, z, growth=kind != "product", endless=kind == "shortfall")
    assert value.abs_lower() <= bound


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(y=st.floats(-8, 40), along=st.floats(0, 3), across=st.floats(0, 12), right=st.floats(-1, 1))
def test_growth_of_one_factor_off_the_line(y: float, along: float, across: float, right: float) -> None:
    ctx.prec = 192
    argument = arb(y)
    hazard = (-(argument**2) / 2).exp() / (2 * arb.pi()).sqrt() / _normal(argument).below
    bound = enclosure_quadrature._bending(Bend(arb(1), arb(1), argument, hazard), arb(along), arb(across))
    ctx.prec = 2000
    at = argument + arb(right) * arb(along)
    modulus = (-acb(at, across) / arb(2).sqrt()).erfc() / 2
    assert modulus.abs_lower().log() - _normal(at).log_below <= bound + arb(2) ** -100


def test_the_bound_is_not_idle() -> None:
    # Off the line Φ does grow: dropping the gain, or halving it, would be wrong.
    argument, across = arb(0), arb(1)
    gain = enclosure_quadrature._bending(Bend(arb(1), arb(1), argument, arb(1)), arb(0), across)
    modulus = abs((-acb(argument, across) / arb(2).sqrt()).erfc() / 2)
    assert modulus.log() - _normal(argument).log_below > gain / 2


@pytest.mark.parametrize("y", [0.0, 3.0, 99.0, 200.0, 1e4, 1e6, 1e9])
def test_the_far_tail_contains_what_exact_arithmetic_gives(y: float) -> None:
    wide = _upper_tail(arb(y, 1e-12))
    ctx.prec = 600
    for end in (arb(y) - arb(1e-12), arb(y), arb(y) + arb(1e-12)):
        assert wide.overlaps((end / arb(2).sqrt()).erfc() / 2) or end < 0
    ctx.prec = 192
    assert _upper_tail(arb(y) / 3 * 3).rel_accuracy_bits() > 100


@pytest.mark.parametrize("tail_tolerance", [1e-2, 1e-5, 1e-9])
def test_a_window_too_short_widens_the_enclosure_and_keeps_the_truth(tail_tolerance: float) -> None:
    sharp = enclose_log_ratio(*FACTORS, tolerance=1e-14)
    ball = log_ratio(factors(*FACTORS), 1e-14, tail_tolerance)
    assert arb(sharp.lower) > ball.lower()
    assert arb(sharp.upper) < ball.upper()
    assert tail_tolerance / 1e4 < float(ball.rad() / ball.mid()) < 10 * tail_tolerance


def test_the_tails_left_out_would_matter() -> None:
    product = Product(factors(*FACTORS))
    short = integrate(product, [find_peak(product)], tolerance=1e-14, tail_tolerance=1e-4)
    full = integrate(product, [find_peak(product)], tolerance=1e-14)
    rescaled = full.ball * (full.log_scale - short.log_scale).exp()
    assert short.ball.contains(rescaled)
    assert not short.rounded.overlaps(rescaled)


def test_panels_too_coarse_widen_the_enclosure_and_keep_the_truth() -> None:
    for offset in (-5.0, 0.0, 12.0):
        given_factors = factors([364, 2], [3.0, -3.0], [offset, -1.0], [1e-3, 0.2])
        coarse, fine = log_ratio(given_factors, 0.5), log_ratio(given_factors, 1e-14)
        assert coarse.contains(fine)
        assert coarse.rad() > 1000 * fine.rad()


def test_the_integrator_built_into_flint_agrees() -> None:
    chosen = factors([40, 2], [0.7, -0.7], [-1.5, 0.25], [0.01, 0.01])

    def integral(growth: bool) -> arb:
        def value(z: acb, _: object) -> acb:
            return complex_value(chosen, z, growth=growth, endless=False)

        return acb.integral(value, -14, 14, rel_tol=arb(2) ** -80, abs_tol=arb(2) ** -120).real

    expected = (integral(True) / integral(False)).log1p()
    assert abs(log_ratio(chosen, 1e-14) - expected) < arb(1e-14) * expected
    assert abs(log_integral(chosen, 1e-14) - integral(False).log()) < arb(1e-14)


def test_the_peak_is_found_wherever_it_is() -> None:
    for counts, slopes, offsets in ([[10**12], [1], [-1000]], [[5], [10**6], [-1000]], [[10**12], [1e-6], [-1000]]):
        product = Product(factors(counts, slopes, offsets, [0.0]))
        peak = find_peak(product)
        top = product.survey(arb(peak)).log_value
        for distance in (1e-7, 1e-3, 1.0, 100.0):
            for side in (-1, 1):
                there = product.survey(arb(peak) + side * arb(distance)).log_value
                assert float((there - top).mid()) <= 0.5
    assert math.isclose(find_peak(Product([])), 0.0)


def whole_domain_case(draw: random.Random) -> tuple[list[int], list[float], list[float], list[float]]:
    """Parameters over all that is promised: counts to 1e12, c/σ in 1e-3…1e3, slopes in 1e-6…1e6, Δ/c from 1e-12."""
    sigma, sigma_query = 10 ** draw.uniform(-3, 3), 10 ** draw.uniform(-3, 3)
    threshold, sensitivity = draw.uniform(-0.5, 1.5), 10 ** draw.uniform(-12, 0)
    slope, shift = sigma / sigma_query, sensitivity / sigma_query
    counts = [int(10 ** draw.uniform(0, 12)), draw.choice([1, 2, int(10 ** draw.uniform(0, 12))])]
    offsets = [(threshold - 1) / sigma_query, -threshold / sigma_query]
    below, above = draw.choice([(1, 1), (1, 0), (0, 1)])
    return counts, [slope, -slope], offsets, [below * shift, above * shift]


@pytest.mark.slow
def test_more_effort_stays_inside_over_the_whole_domain() -> None:
    draw = random.Random(20240)
    for _ in range(60):
        case = whole_domain_case(draw)
        plain = enclose_log_ratio(*case)
        ctx.prec = 768
        careful = log_ratio(factors(*case), 1e-28)
        assert arb(plain.lower) <= careful.lower()
        assert careful.upper() <= arb(plain.upper)
        assert plain.width <= 1e-12 * plain.lower or plain.lower < 1e-300


def test_a_density_inside_a_term_grows_off_the_line() -> None:
    chosen = factors([1], [3.0], [8.0], [1e-3])
    survey = Growth(chosen).survey(arb(-2))
    across, z = arb(0.5), acb(-2, 0.5)
    modulus = complex_value(chosen, z, growth=True, endless=False).abs_lower()
    assert modulus <= enclosure_quadrature._largest(survey, arb(0), arb(0), across)
    without = [[term._replace(density_slope=arb(0)) for term in terms] for terms in survey.majorants]
    assert modulus > enclosure_quadrature._largest(survey._replace(majorants=without), arb(0), arb(0), across)
