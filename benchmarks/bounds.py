"""Bounds, side by side in one run: this project's scalar, batched and certified ε, each beside its peers.

    python benchmarks/bounds.py            # the timings
    python benchmarks/bounds.py --naive    # where mpmath.quad over the whole line goes wrong, and by how much

Everyone computes the same ε: noisy max and above threshold over common parameters, best of as many passes as fit a
second. The peers are given the located peak (integrals over [peak - reach, peak, peak + reach], "bracketed by hand");
without it they go wrong, as --naive shows. Like is compared with like: one ε with `scipy.integrate.quad`, which works
in doubles too; a batch with Gauss-Legendre sums in NumPy, which carry no bound on their error; a certified ε with
`acb.integral`, which encloses as well. mpmath works in 25 digits and is there for its accuracy, not for its time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time

import mpmath
import numpy as np
from flint import acb, arb, ctx
from scipy.integrate import quad
from scipy.special import log_ndtr

from dpselect import GaussianAboveThreshold, GaussianNoisyMax, QueryFamily
from dpselect.numerics.factors import Factor, peak_of_one, peaks
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


def by_arb(factors, bits=128):
    """acb.integral, in balls: an enclosure of ε but for the tails beyond ten from the peak."""
    before, ctx.prec = ctx.prec, bits
    peak, root = peak_of(factors), acb(2).sqrt()

    def integral(moved):
        terms = [
            (count, acb(slope), acb(offset) + (acb(shift) if moved else 0)) for count, slope, offset, shift in factors
        ]

        def integrand(x, _):
            value = (-x * x / 2).exp()
            for count, slope, offset in terms:
                value *= ((-(slope * x + offset) / root).erfc() / 2) ** count
            return value

        # Its tolerance is absolute, too: scaled to 1 at the peak, as for mpmath.
        scale = 1 / integrand(acb(peak), False)
        ends = [acb(peak + a) for a in (-10, 0, 10)]
        parts = [
            acb.integral(lambda x, analytic: scale * integrand(x, analytic), *pair, rel_tol=arb(2) ** -60)
            for pair in itertools.pairwise(ends)
        ]
        return (parts[0] + parts[1]).real / scale.real

    found = (integral(True) / integral(False)).log()
    ctx.prec = before
    return float(found)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)


def gauss_legendre(counts, slopes, offsets, shifts, peaks, *, reach=8.5, block=256):
    """ε of many cells by 128 nodes around each peak, in blocks that fit a cache: fast, and nothing says how far off."""
    found = np.empty(len(peaks))
    for start in range(0, len(peaks), block):
        here = slice(start, start + block)
        x = peaks[here, None] + reach * NODES
        heights = [-0.5 * x * x, -0.5 * x * x]
        for count, slope, offset, shift in zip(counts, slopes, offsets, shifts, strict=True):
            y = slope[here, None] * x + offset[here, None]
            heights[0] += count[here, None] * log_ndtr(y)
            heights[1] += count[here, None] * log_ndtr(y + shift[here, None])
        top = heights[0].max(axis=1, keepdims=True)
        sums = [np.exp(height - top) @ WEIGHTS for height in heights]
        found[here] = np.log(sums[1] / sums[0])
    return found


def columns(noisy_max, above):
    """The factors of both batches, and where their peaks are: located for the peer, beforehand."""
    one = np.ones(len(noisy_max["sigma"]))
    first = [
        (noisy_max["candidates"] - 1, one, -one / noisy_max["sigma"], 2 * noisy_max["sensitivity"] / noisy_max["sigma"])
    ]
    noise, slope = above["sigma_query"], above["sigma_threshold"] / above["sigma_query"]
    shift = above["sensitivity"] / noise
    second = [
        (above["below"], slope, (above["threshold"] - 1) / noise, shift),
        (one, -slope, -above["threshold"] / noise, shift),
    ]
    for factors in (first, second):
        cell = [Factor(count, exact(slope), exact(offset), shift) for count, slope, offset, shift in factors]
        yield *zip(*factors, strict=True), peaks(cell, steps=60)[0]


def clocked(work, repeats=None):
    """Best seconds of one pass, by the clock and of processor time on all cores; of as many as fit a second, or 3."""
    best_wall = best_work = math.inf
    if repeats is None:
        start = time.perf_counter()
        work()
        repeats = min(max(3, int(1.0 / (time.perf_counter() - start))), 100)
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
    factors = [one for _, _, one in work]
    expected = [ours() for ours, _, _ in work]
    n = len(work)
    noisy_max, above = batch()
    few = [{name: part[:1000] if np.ndim(part) else part for name, part in case.items()} for case in (noisy_max, above)]
    plain = list(columns(noisy_max, above))
    plain_few = [[*([part[:1000] for part in kind] for kind in case[:4]), case[4][:1000]] for case in plain]
    mixed = list(mixtures())
    # The targets are for two quiet cores: of processor time, twice the microseconds of the clock.
    rows = [
        ("one ε", lambda: [ours() for ours, _, _ in work], n, 60e-6, None),
        ("scipy.integrate.quad", lambda: [by_scipy(one) for one in factors], n, None, "one ε"),
        (f"mpmath.quad, {DIGITS} digits", lambda: [by_mpmath(one) for one in factors], n, None, "one ε"),
        ("10⁵ noisy max at once", lambda: noisy_max_epsilon(**noisy_max), 1e5, 4e-6, None),
        ("NumPy, 128 nodes, no bound", lambda: gauss_legendre(*plain[0]), 1e5, None, "10⁵ noisy max at once"),
        ("10⁵ above threshold at once", lambda: transcript_epsilon(**above), 1e5, 10e-6, None),
        ("NumPy, 128 nodes, no bound", lambda: gauss_legendre(*plain[1]), 1e5, None, "10⁵ above threshold at once"),
        ("10³ noisy max at once", lambda: noisy_max_epsilon(**few[0]), 1e3, 5.1e-6, None),
        ("NumPy, 128 nodes, no bound", lambda: gauss_legendre(*plain_few[0]), 1e3, None, "10³ noisy max at once"),
        ("10³ above threshold at once", lambda: transcript_epsilon(**few[1]), 1e3, 7.3e-6, None),
        ("NumPy, 128 nodes, no bound", lambda: gauss_legendre(*plain_few[1]), 1e3, None, "10³ above threshold at once"),
        ("a mixed run, ordinary", lambda: single_cell(*mixed[0]), 1, 5e-3, None),
        ("a mixed run, steep", lambda: single_cell(*mixed[1]), 1, 100e-3, None),
        ("certified", lambda: [certify() for _, certify, _ in work], n, 6e-3, None),
        ("acb.integral, 128 bits", lambda: [by_arb(one) for one in factors], n, None, "certified"),
    ]
    print(f"{'method (peers indented)':<34}{'time per ε':>14}{'of processor':>15}{'ε per second':>15}")
    ours = {}
    for name, task, size, target, beside in rows:
        seconds, worked = clocked(task) / size
        indent = name if beside is None else f"  {name}"
        line = f"{indent:<34}{seconds * 1e6:>11.2f} µs{worked * 1e6:>12.2f} µs{1 / seconds:>15,.0f}"
        if beside is None:
            ours[name] = worked
            print(line + f"   under {target * 1e6:,.4g}: {'met' if worked <= target else 'MISSED'}", flush=True)
        else:
            print(line + f"   {worked / ours[beside]:,.1f} × as long", flush=True)
    for name, by in (("scipy", by_scipy), ("mpmath", by_mpmath), ("acb.integral", by_arb)):
        worst = max(abs(by(one) / truth - 1) for one, truth in zip(factors, expected, strict=True))
        print(f"largest relative difference from {name}: {worst:.1e}")
    for kind, values, case in zip(
        ("noisy max", "above threshold"),
        (noisy_max_epsilon(**noisy_max), transcript_epsilon(**above)),
        plain,
        strict=True,
    ):
        off = np.abs(gauss_legendre(*case) / values - 1)
        print(f"NumPy's sums, {kind}: off by {np.median(off):.0e} in the median, {off.max():.0e} at most")


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
