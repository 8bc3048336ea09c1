"""How fast an exact release is, in one run, against plain NumPy and OpenDP on the same values.

Run ``python benchmarks/release.py``; add ``--quick`` to leave out ten million candidates. Everything runs on one
thread. Times of one line are taken in turns, so that a busy machine slows all of them alike; what counts are the
ratios. Short calls are also given at their best, the second percentile, which a busy machine spoils least.

OpenDP's ``make_noisy_max`` has no Gaussian noise; what is timed is its Gumbel noise (zero-concentrated
divergence) on the same NumPy array, so the exact release is also timed with Gumbel noise. NumPy's generator is seeded
and not made for secrets; with bytes of the operating system (`os.urandom`, through the normal quantile) it draws from
where the exact release draws, still in rounded doubles.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import opendp.prelude as opendp
from scipy.special import ndtri

from dpselect.composition import SparseVector
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax
from dpselect.noise.argmax import noisy_argmax
from dpselect.noise.quantiles import GUMBEL
from dpselect.noise.scan import NoisyThreshold
from dpselect.privacy.family import QueryFamily

SIGMA = 0.1


def timed(calls: dict[str, Callable[[], object]], *, rounds: int, together: int = 1) -> dict[str, list[float]]:
    """The seconds of every call, sorted, taken in turns; short calls are timed several ``together``."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(together):
                call()
            times[name].append((time.perf_counter() - start) / together)
    return {name: sorted(taken) for name, taken in times.items()}


def medians(calls: dict[str, Callable[[], object]], *, rounds: int, together: int = 1) -> dict[str, float]:
    """The median seconds of every call."""
    return {name: statistics.median(taken) for name, taken in timed(calls, rounds=rounds, together=together).items()}


def best(taken: list[float]) -> float:
    """The second percentile."""
    return taken[len(taken) // 50]


def verdict(reached: bool) -> str:
    """How a line ends that has a target."""
    return "met" if reached else "MISSED"


def opendp_noisy_max() -> Callable[[object], object]:
    """OpenDP's report noisy max over a vector of doubles."""
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T=float, nan=False)), opendp.linf_distance(T=float)
    release: Callable[[object], object] = opendp.m.make_noisy_max(
        *space, opendp.zero_concentrated_divergence(), scale=SIGMA
    )
    return release


def argmax(sizes: list[int]) -> None:
    """The noisy maximum, against NumPy and OpenDP."""
    rng = np.random.default_rng(1)
    peer = opendp_noisy_max()
    print(f"noisy argmax (NumPy {np.__version__}, OpenDP {version('opendp')}); medians")
    print(f"{'d':>10} {'exact':>11} {'Gumbel':>11} {'NumPy':>11} {'+urandom':>11} {'OpenDP':>11}", end="")
    print(f" {'/NumPy':>7} {'/urandom':>8} {'OpenDP/':>8}")
    for size in sizes:
        values = rng.random(size)

        def plain(values: np.ndarray[tuple[int], np.dtype[np.float64]] = values) -> object:
            return np.argmax(values + rng.normal(0.0, SIGMA, len(values)))

        def system(values: np.ndarray[tuple[int], np.dtype[np.float64]] = values) -> object:
            bits = np.frombuffer(os.urandom(8 * len(values)), dtype=np.uint64) >> np.uint64(11)
            return np.argmax(values + SIGMA * ndtri((bits + 0.5) * 2.0**-53))

        found = medians(
            {
                "exact": lambda values=values: noisy_argmax(values, scale=SIGMA),
                "gumbel": lambda values=values: noisy_argmax(values, scale=SIGMA, law=GUMBEL),
                "numpy": plain,
                "system": system,
                "opendp": lambda values=values: peer(values),
            },
            rounds={1_000: 60, 100_000: 60, 1_000_000: 15}.get(size, 3),
            together=20 if size == 1_000 else 1,
        )
        to_numpy, to_opendp = found["exact"] / found["numpy"], found["opendp"] / found["exact"]
        line = f"{size:>10,} " + " ".join(f"{1e6 * found[name]:>9,.0f}µs" for name in found)
        print(f"{line} {to_numpy:>7.2f} {found['exact'] / found['system']:>8.2f} {to_opendp:>7.0f}×", end="")
        if size == 1_000:
            print(f"   under 60 µs: {verdict(found['exact'] < 60e-6)}")
        elif size == 1_000_000:
            print(f"   NumPy ≤ 1 (aim 0.6): {verdict(to_numpy <= 1)}; OpenDP ≥ 20×: {verdict(to_opendp >= 20)}")
        else:
            print()


def small() -> None:
    """Whole releases among few candidates (values checked, cost stated), against NumPy's inexact line."""
    rng = np.random.default_rng(3)
    picker = GaussianNoisyMax(QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-3), sigma=SIGMA)
    print("\nsmall releases, `GaussianNoisyMax.release` beside NumPy: best, median")
    for size, target in ((10, 15.0), (100, None), (1_000, 25.0)):
        values = rng.random(size)
        found = timed(
            {
                "release": lambda values=values: picker.release(values),
                "numpy": lambda values=values: np.argmax(values + rng.normal(0.0, SIGMA, len(values))),
            },
            rounds=1_500,
            together=20,
        )
        shown = "   ".join(
            f"{name} {1e6 * best(taken):5.1f} µs, {1e6 * statistics.median(taken):5.1f} µs"
            for name, taken in found.items()
        )
        aim = "" if target is None else f"   under {target:.0f}: {verdict(1e6 * best(found['release']) < target)}"
        print(f"{size:>10,} {shown}{aim}")


def resampled() -> None:
    """What a new noisy threshold costs, alone and in a sparse vector that draws one after each of 10,000 ⊤."""
    made = timed(
        {"made": lambda: NoisyThreshold(0.5, scale_threshold=0.1, scale_query=0.2)}, rounds=1_000, together=10
    )["made"]
    print(f"  {'a new threshold':<20} {1e6 * best(made):>6.1f} µs best, {1e6 * statistics.median(made):.1f} µs median")
    family = QueryFamily(lower=0.0, upper=1.0, sensitivity=1e-6, monotone=True)
    watcher = GaussianAboveThreshold(family, threshold=0.6, sigma_threshold=0.1, sigma_query=0.1)
    values = np.where(np.random.default_rng(0).random(1_000_000) < 0.01, 1.0, 0.0)
    seconds = []
    for _ in range(5):
        run = SparseVector(watcher, budget=1000.0)
        start = time.perf_counter()
        answered = len(run.ask_many(values))
        seconds.append(time.perf_counter() - start)
    print(
        f"  {'1% ⊤, resampled':<20} {min(seconds):>6.2f} s best, {statistics.median(seconds):.2f} s median, "
        f"{answered:,} questions   under 0.5: {verdict(min(seconds) < 0.5)}"
    )


def threshold() -> None:
    """Verdicts against one noisy threshold, by the million and one at a time."""
    run = NoisyThreshold(0.5, scale_threshold=0.1, scale_query=0.2)
    values = np.random.default_rng(2).random(1_000_000)
    low = values - 3.0  # never ⊤, so that the scan that stops at the first ⊤ goes to the end
    found = medians(
        {
            "all verdicts": lambda: run.ask_many(values, until="all"),
            "up to the first ⊤": lambda: run.ask_many(low, until="first"),
        },
        rounds=15,
    )
    print("\nabove threshold, d = 1,000,000")
    for name, seconds in found.items():
        rate = 1.0 / seconds
        print(f"  {name:<20} {rate:>6.0f} million verdicts a second   at least 30: {verdict(rate >= 30)}")
    times = []
    for value in values[:50_000].tolist():
        start = time.perf_counter()
        run.ask(value)
        times.append(time.perf_counter() - start)
    single = 1e6 * statistics.median(times)
    print(f"  {'a single ask':<20} {single:>6.2f} µs median, clock included   under 5: {verdict(single < 5)}")


def timing() -> None:
    """Whether the time of a release tells flat scores from one peak."""
    size = 100_000
    peaked = np.zeros(size)
    peaked[777] = 100.0
    shapes = {"flat": np.zeros(size), "one peak": peaked, "a slope": np.linspace(0.0, 1.0, size)}
    found = medians(
        {name: lambda values=values: noisy_argmax(values, scale=1.0) for name, values in shapes.items()},
        rounds=200,
    )
    ratio = found["flat"] / found["one peak"]
    shown = ", ".join(f"{name} {1e6 * seconds:.0f} µs" for name, seconds in found.items())
    print(f"\ntime that does not tell, d = 100,000: {shown}")
    print(f"  flat/one peak {ratio:.3f}   within 20%: {verdict(abs(ratio - 1) <= 0.2)}")


MEMORY = """
import resource, sys
import numpy as np
from dpselect.noise.argmax import noisy_argmax
noisy_argmax(np.zeros(100_000), scale=0.1)
values = np.random.default_rng(1).random(10_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
noisy_argmax(values, scale=0.1)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(1 + (after - before) * 1024 / values.nbytes)
"""


def memory() -> None:
    """Peak memory of a release over ten million candidates, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    print(f"\npeak memory at d = 10,000,000: {peak:.2f} × the input   under 2: {verdict(peak < 2)}")


def main() -> None:
    """Everything, in one run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="leave out ten million candidates")
    sizes = [1_000, 100_000, 1_000_000, 10_000_000]
    quick = parser.parse_args().quick
    argmax(sizes[:3] if quick else sizes)
    small()
    threshold()
    resampled()
    timing()
    memory()


if __name__ == "__main__":
    main()
