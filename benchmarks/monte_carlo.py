"""Monte Carlo against quadrature for noisy max (Δ = .01, σ = .2 to .5): value, spread and time, side by side.

``--gpu`` draws ten billion normals per sample, a hundred times two, and with ``--json`` writes what
the figure "monte-carlo" reads. Without it a processor draws a smaller sample, and says so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.checks import FloatArray
from dpselect.privacy.noisy_max import noisy_max_loss
from lebensold2024.monte_carlo import (
    CANDIDATES,
    PAIRINGS,
    PAPER_SAMPLES,
    SENSITIVITY,
    SIGMA,
    SIGMAS,
    estimate_from,
    processor_sums,
    shifts,
    sums_of,
)

#: The single number of candidates by which one estimate is timed.
TIMED = 100

#: (σ, stream, candidates) → the sums of one sample, and how many normals were drawn.
Draw = Callable[[float, int, tuple[int, ...]], tuple[FloatArray, int]]


def quadrature_seconds(sigma: float) -> tuple[Any, float]:
    """ε for all numbers of candidates, with error bounds, and the best time of one batch."""
    cost: dict[str, Any] = {"width": 1.0, "sensitivity": SENSITIVITY, "sigma": sigma, "candidates": CANDIDATES}
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        loss = noisy_max_loss(**cost)
        seconds.append(time.perf_counter() - started)
    return loss, min(seconds)


#: Φ to every power for one normal, as rows f₁ by d and then f₀ by d. Squaring and multiplying is exact enough, and the
#: powers are the same for all threads, so that they stay together.
TERMS = """
    double near = normcdf(x - near_shift), far = normcdf(x - far_shift);
    for (int p = 0; p < count; ++p) {
        double f1 = 1.0, f0 = 1.0, one = near, other = far;
        for (unsigned left = powers[p]; left; left >>= 1) {
            if (left & 1u) { f1 *= one; f0 *= other; }
            one *= one; other *= other;
        }
        rows[p * length + i] = f1;
        rows[(count + p) * length + i] = f0;
    }
"""
#: Normals drawn at a time: the memory needed does not depend on the sample.
CHUNK = 1 << 24


def gpu_draw(samples: int) -> Draw:
    """A sample on the GPU, rounded up to whole chunks; reading the sums back waits for it, so the clock sees it all."""
    import cupy

    types = "float64 x, float64 near_shift, float64 far_shift, raw uint32 powers, int64 length, int32 count"
    terms = cupy.ElementwiseKernel(types, "raw float64 rows", TERMS, "noisy_max_terms")

    def draw(sigma: float, stream: int, candidates: tuple[int, ...]) -> tuple[FloatArray, int]:
        generator = cupy.random.Generator(cupy.random.Philox4x3210([2024, stream]))
        powers, count, chunks = cupy.asarray(candidates, dtype=cupy.uint32) - 1, len(candidates), -(-samples // CHUNK)
        rows, products = cupy.ones((2 * count + 1, CHUNK)), cupy.zeros((2 * count + 1,) * 2)
        for _ in range(chunks):
            terms(generator.standard_normal(CHUNK), *shifts(sigma), powers, CHUNK, count, rows)
            products += rows @ rows.T
        return sums_of(cupy.asnumpy(products)), chunks * CHUNK

    return draw


def processor_draw(samples: int) -> Draw:
    """A sample with NumPy in chunks."""
    return lambda sigma, stream, candidates: (
        processor_sums(candidates, sigma=sigma, samples=samples, generator=np.random.default_rng([2024, stream])),
        samples,
    )


def device_name() -> str | None:
    """What the GPU calls itself; None where there is none, or no CuPy."""
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    except (ImportError, RuntimeError):
        return None


def main() -> int:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="ten billion samples per estimate on a GPU")
    parser.add_argument("--samples", type=int, help="samples per estimate")
    parser.add_argument("--trials", type=int, help="estimates")
    parser.add_argument("--json", type=Path, help="write every trial here")
    options = parser.parse_args()
    device = device_name() if options.gpu else "processor"
    if device is None:
        print("no GPU, or no CuPy, is here", file=sys.stderr)
        return 2
    samples = options.samples or (PAPER_SAMPLES if options.gpu else 2_000_000)
    trials = options.trials or (100 if options.gpu else 5)
    draw = (gpu_draw if options.gpu else processor_draw)(samples)
    if not options.gpu:
        print(f"processor: {samples:,} samples per estimate, {PAPER_SAMPLES // samples:,} times fewer than the paper's")

    # Compiling and warming up are no part of an estimate's time.
    warm = (gpu_draw if options.gpu else processor_draw)(10_000)
    warm(SIGMA, 0, (TIMED,)), warm(SIGMA, 0, CANDIDATES)
    started = time.perf_counter()
    sums, drawn = draw(SIGMA, 0, (TIMED,))
    one = time.perf_counter() - started
    single = estimate_from(sums, samples=drawn)
    print(
        f"one paired estimate, σ = {SIGMA:g}, d = {TIMED}, {drawn:,} samples on {device}: {single.epsilon[0]:.6f} ± "
        f"{single.standard_error[0]:.6f} in {one:.3f} s"
    )
    rows: list[dict[str, Any]] = []
    for place, sigma in enumerate(SIGMAS):
        exact, batch = quadrature_seconds(sigma)
        started = time.perf_counter()
        # Every trial draws two samples: the paired estimate uses the first, the independent one both.
        found = [
            [draw(sigma, (place * trials + trial) * 2 + side, CANDIDATES)[0] for side in (0, 1)]
            for trial in range(trials)
        ]
        seconds = time.perf_counter() - started
        print(
            f"σ = {sigma:g}: {trials} trials of two samples in {seconds:.1f} s; quadrature {1e6 * batch:.0f} µs, "
            f"{seconds / (2 * trials) / batch:,.0f} times faster than one sample"
        )
        print(f"{'d':>5} {'quadrature':>12} {'bound':>8} {'independent':>21} {'paired':>21}")
        for column, candidates in enumerate(CANDIDATES):
            shown = []
            for pairing in PAIRINGS:
                estimates = [
                    estimate_from(first, samples=drawn, others=second if pairing == "independent" else None)
                    for first, second in found
                ]
                values = [float(estimate.epsilon[column]) for estimate in estimates]
                shown.append(f"{np.nanmean(values):.6f} ± {np.nanstd(values, ddof=1):.6f}")
                for trial, epsilon in enumerate(values):
                    row = {"sigma": sigma, "candidates": candidates, "pairing": pairing, "trial": trial}
                    rows.append(row | {"epsilon": None if epsilon != epsilon else epsilon})
            value, bound = float(exact.value[column]), float(exact.error[column])
            print(f"{candidates:>5} {value:>12.8f} {bound:>8.0e} {shown[0]:>21} {shown[1]:>21}")
    if options.json:
        record = {"samples": drawn, "sensitivity": SENSITIVITY, "device": device, "trials": rows}
        options.json.write_text(json.dumps(record))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
