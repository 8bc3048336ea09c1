"""Bounds, side by side in one run: this project's scalar, batched and certified ε, SciPy's and mpmath's quadrature.

    python benchmarks/bounds.py            # the timings
    python benchmarks/bounds.py --naive    # where mpmath.quad over the whole line goes wrong, and by how much

Everyone computes the same ε: noisy max and above threshold over common parameters. The peers are given the located
peak (integrals over [peak - reach, peak, peak + reach], "bracketed by hand"); without it they go wrong, as --naive
shows.
"""

from __future__ import annotations

import argparse
import math
import time

import mpmath
import numpy as np
from scipy.integrate import quad
from scipy.special import log_ndtr

from dpselect import GaussianAboveThreshold, GaussianNoisyMax, QueryFamily
from dpselect.numerics.factors import Factor, peak_of_one
from dpselect.numerics.integral import single_cell
from dpselect.numerics.pair import exact
from dpselect.privacy.above_threshold import transcript_epsilon
from dpselect.privacy.noisy_max import noisy_max_epsilon

DIGITS = 25
FAMILY = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3)

# (count, slope, offset, shift) per factor, with the mechanism that makes them.
NOISY_MAX = [(sigma, d) for sigma in (0.1, 0.2, 0.3, 0.5) for d in (16, 365, 1024)]
ABOVE = [(sigma, rho, t) for sigma in (0.2, 0.3) for rho in (0.5, 0.75) for t in (3, 50)]


def cells():
    """The common work: a name, a callable of ours, its certificate, and the factors for the peers."""
    for sigma, d in NOISY_MAX:
        picker = GaussianNoisyMax(FAMILY, sigma)
        factors = [(d - 1, 1.0, -1.0 / sigma, 2e-3 / sigma)]
        yield lambda p=picker, d=d: p.epsilon(d), lambda p=picker, d=d: p.certify(d), factors
    for sigma, rho, t in ABOVE:
        noise = math.sqrt(3) * sigma
        watcher = GaussianAboveThreshold(FAMILY, threshold=rho, sigma_threshold=sigma, sigma_query=noise)
        slope = sigma / noise
        factors = [(t - 1, slope, (rho - 1) / noise, 1e-3 / noise), (1, -slope, -rho / noise, 1e-3 / noise)]
        yield lambda w=watcher, t=t: w.loss(t - 1, 1), lambda w=watcher, t=t: w.certify(t - 1, 1), factors


def peak_of(factors):
    """The peak of the integrand, located for the peers."""
    return peak_of_one([Factor(float(m), exact(slope), exact(offset), 0.0) for m, slope, offset, _ in factors])


def by_scipy(factors):
    """scipy.integrate.quad on the scaled integrand, the peak bracketed by hand."""
    peak = peak_of(factors)

    def log_integrand(x, moved):
        total = -x * x / 2
        for count, slope, offset, shift in factors:
            total += count * log_ndtr(slope * x + offset + (shift if moved else 0.0))
        return total

    top = log_integrand(peak, False)
    values = [
        quad(lambda x, m=m: math.exp(log_integrand(x, m) - top), peak - 10, peak + 10, points=[peak], epsabs=0,
             epsrel=1e-13, limit=200)[0]
        for m in (True, False)
    ]  # fmt: skip
    return math.log(values[0] / values[1])


def by_mpmath(factors, interval=None, digits=DIGITS):
    """mpmath.quad over the given interval, or with the peak bracketed by hand and scaled to 1.

    Without the scaling its absolute stopping rule gives up early on integrals that are small.
    """
    with mpmath.workdps(digits):
        peak = mpmath.mpf(peak_of(factors))
        scale = 1
        if interval is None:
            interval = [peak - 10, peak - 3, peak, peak + 3, peak + 10]
            for count, slope, offset, _ in factors:
                scale /= mpmath.ncdf(slope * peak + offset) ** count
            scale /= mpmath.npdf(peak)

        def integral(moved):
            def integrand(x):
                value = mpmath.npdf(x) * scale
                for count, slope, offset, shift in factors:
                    value *= mpmath.ncdf(slope * x + offset + (shift if moved else 0)) ** count
                return value

            return mpmath.quad(integrand, interval)

        return float(mpmath.log(integral(True) / integral(False)))


def clocked(work, repeats=1):
    """Best seconds of one pass: by the clock, and of processor time on all cores."""
    best_wall = best_work = math.inf
    for _ in range(repeats):
        start, start_work = time.perf_counter(), time.process_time()
        work()
        best_wall = min(best_wall, time.perf_counter() - start)
        best_work = min(best_work, time.process_time() - start_work)
    return np.array([best_wall, best_work])


def batch(size=100_000, seed=1):
    """10⁵ cells drawn over common parameters, for both mechanisms."""
    rng = np.random.default_rng(seed)
    noisy_max = {
        "width": 1.0,
        "sensitivity": 10 ** rng.uniform(-5, -2.5, size),
        "sigma": rng.uniform(0.05, 0.5, size),
        "candidates": np.floor(10 ** rng.uniform(0.5, 4, size)),
    }
    sigma = rng.uniform(0.05, 0.3, size)
    above = {
        "lower": 0.0,
        "upper": 1.0,
        "sensitivity": 10 ** rng.uniform(-5, -2.5, size),
        "threshold": rng.uniform(0.3, 0.9, size),
        "sigma_threshold": sigma,
        "sigma_query": sigma * rng.uniform(0.7, 3, size),
        "below": np.floor(10 ** rng.uniform(0, 3, size)),
        "above": 1.0,
    }
    return noisy_max, above


def mixtures():
    """40 ⊥ of each of three kinds of questions and one ⊤: ordinary ones, and far less noisy than the threshold."""
    for spread, noises in ((0.2, (0.2, 0.3, 0.5)), (0.5, (0.005, 0.01, 0.05))):
        uppers = [1.0 - k / 10 for k in range(len(noises))]
        yield (
            [40.0] * len(noises) + [1.0],
            [spread / noise for noise in noises] + [-spread / noises[0]],
            [(0.5 - upper) / noise for upper, noise in zip(uppers, noises, strict=True)] + [-0.5 / noises[0]],
            [1e-3 / noise for noise in (*noises, noises[0])],
        )


def main_timings():
    """Print the side-by-side table."""
    work = list(cells())
    expected = [ours() for ours, _, _ in work]
    n = len(work)
    scalar = clocked(lambda: [ours() for ours, _, _ in work], repeats=100) / n
    certified = clocked(lambda: [certify() for _, certify, _ in work], repeats=3) / n
    scipy_values = [by_scipy(factors) for _, _, factors in work]
    scipy_time = clocked(lambda: [by_scipy(factors) for _, _, factors in work]) / n
    mpmath_values = [by_mpmath(factors) for _, _, factors in work]  # also warms its cached nodes
    mpmath_time = clocked(lambda: [by_mpmath(factors) for _, _, factors in work]) / n
    noisy_max, above = batch()
    batched = [clocked(lambda: noisy_max_epsilon(**noisy_max), repeats=8) / 1e5]
    batched.append(clocked(lambda: transcript_epsilon(**above), repeats=8) / 1e5)
    few = [{name: part[:1000] if np.ndim(part) else part for name, part in case.items()} for case in (noisy_max, above)]
    batched.append(clocked(lambda: noisy_max_epsilon(**few[0]), repeats=60) / 1e3)
    batched.append(clocked(lambda: transcript_epsilon(**few[1]), repeats=60) / 1e3)
    mixed = [clocked(lambda case=case: single_cell(*case), repeats=10) for case in mixtures()]
    # The targets are for two quiet cores: of processor time, twice the microseconds of the clock.
    rows = [
        ("dpselect, one ε", scalar, 60e-6),
        ("dpselect, batched noisy max (10⁵ cells)", batched[0], 4e-6),
        ("dpselect, batched above threshold (10⁵ cells)", batched[1], 10e-6),
        ("dpselect, batched noisy max (10³ cells)", batched[2], 5.1e-6),
        ("dpselect, batched above threshold (10³ cells)", batched[3], 7.3e-6),
        ("dpselect, a mixed run, ordinary", mixed[0], 5e-3),
        ("dpselect, a mixed run, steep", mixed[1], 100e-3),
        ("dpselect, certified", certified, 6e-3),
        ("scipy.integrate.quad, peak bracketed", scipy_time, None),
        (f"mpmath.quad, {DIGITS} digits, peak bracketed", mpmath_time, None),
    ]
    print(f"{'method':<48}{'time per ε':>14}{'of processor':>15}{'ε per second':>15}{'mpmath / this':>15}")
    for name, (seconds, worked), target in rows:
        line = f"{name:<48}{seconds * 1e6:>11.2f} µs{worked * 1e6:>12.2f} µs{1 / seconds:>15,.0f}"
        line += f"{mpmath_time[1] / worked:>15,.1f}"
        aim = "" if target is None else f"   under {target * 1e6:,.4g}: {'met' if worked <= target else 'MISSED'}"
        print(line + aim)
    for name, values in (("scipy", scipy_values), ("mpmath", mpmath_values)):
        worst = max(abs(value / truth - 1) for value, truth in zip(values, expected, strict=True))
        print(f"largest relative difference from {name}: {worst:.1e}")


def main_naive():
    """Print what mpmath.quad(f, [-inf, inf]) returns where the peak is far from 0."""
    print(f"{'setting':<62}{'naive':>12}{'truth':>12}{'naive/truth':>13}")
    for sigma in (0.5, 0.3, 0.2, 0.1, 0.05):
        picker = GaussianNoisyMax(FAMILY, sigma)
        naive = by_mpmath([(364, 1.0, -1.0 / sigma, 2e-3 / sigma)], [-mpmath.inf, mpmath.inf], digits=15)
        truth = picker.epsilon(365)
        print(f"{f'noisy max, σ = {sigma}, d = 365, Δ = 1e-3':<62}{naive:>12.5f}{truth:>12.5f}{naive / truth:>13.3f}")
    for sigma, t in ((0.25, 10), (0.25, 1000), (0.25, 100_000), (0.1, 1000)):
        noise = math.sqrt(3) * sigma
        watcher = GaussianAboveThreshold(FAMILY, threshold=0.5, sigma_threshold=sigma, sigma_query=noise)
        slope = sigma / noise
        factors = [(t - 1, slope, -0.5 / noise, 1e-3 / noise), (1, -slope, -0.5 / noise, 1e-3 / noise)]
        naive, truth = by_mpmath(factors, [-mpmath.inf, mpmath.inf], digits=15), watcher.loss(t - 1, 1)
        name = f"above threshold, σ_X = {sigma}, σ_Z = √3σ_X, ρ = .5, t = {t}"
        print(f"{name:<62}{naive:>12.5f}{truth:>12.5f}{naive / truth:>13.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--naive", action="store_true", help="show where quadrature over the whole line goes wrong")
    main_naive() if parser.parse_args().naive else main_timings()
