"""Monte Carlo against quadrature for noisy max (Δ = .01, σ = .3): value, standard error and time, side by side.

``--gpu`` draws ten billion normals per estimate in one fused kernel, a hundred times, and with ``--json`` writes what
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

from dpselect.paper.monte_carlo import CANDIDATES, SENSITIVITY, SIGMA, processor_estimate
from dpselect.paper.monte_carlo_gpu import PAPER_SAMPLES, gpu_available, gpu_estimate
from dpselect.paper.monte_carlo_kernel import Estimate
from dpselect.privacy.noisy_max import noisy_max_loss

#: The single number of candidates by which one estimate is timed.
TIMED = 100


def quadrature_seconds() -> tuple[Any, float]:
    """ε for all numbers of candidates, with error bounds, and the best time of one batch."""
    cost: dict[str, Any] = {"width": 1.0, "sensitivity": SENSITIVITY, "sigma": SIGMA, "candidates": CANDIDATES}
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        loss = noisy_max_loss(**cost)
        seconds.append(time.perf_counter() - started)
    return loss, min(seconds)


def gpu_draw(samples: int) -> Callable[[int, tuple[int, ...]], Estimate]:
    """An estimate by the fused kernel; reading the sums back waits for the device, so the clock sees all of it."""
    return lambda trial, candidates: gpu_estimate(
        width=1.0, sensitivity=SENSITIVITY, sigma=SIGMA, candidates=candidates, samples=samples, seed=2024, stream=trial
    )


def processor_draw(samples: int) -> Callable[[int, tuple[int, ...]], Estimate]:
    """An estimate with NumPy in chunks."""
    return lambda trial, candidates: processor_estimate(
        candidates, samples=samples, generator=np.random.default_rng([2024, trial])
    )


def device_name() -> str:
    """What the GPU calls itself."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def main() -> int:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="ten billion samples per estimate on a GPU")
    parser.add_argument("--samples", type=int, help="samples per estimate")
    parser.add_argument("--trials", type=int, help="estimates")
    parser.add_argument("--json", type=Path, help="write every trial here")
    options = parser.parse_args()
    if options.gpu and not gpu_available():
        print("no GPU, or no CuPy, is here", file=sys.stderr)
        return 2
    samples = options.samples or (PAPER_SAMPLES if options.gpu else 2_000_000)
    trials = options.trials or (100 if options.gpu else 5)
    draw = (gpu_draw if options.gpu else processor_draw)(samples)
    device = device_name() if options.gpu else "processor"
    if not options.gpu:
        print(f"processor: {samples:,} samples per estimate, {PAPER_SAMPLES // samples:,} times fewer than the paper's")

    exact, batch = quadrature_seconds()
    # Compiling and warming up are no part of an estimate's time.
    warm = (gpu_draw if options.gpu else processor_draw)(10_000)
    warm(0, (TIMED,)), warm(0, CANDIDATES)
    started = time.perf_counter()
    single = draw(0, (TIMED,))
    one = time.perf_counter() - started
    print(
        f"one estimate, d = {TIMED}, {single.samples:,} samples on {device}: {single.epsilon[0]:.6f} ± "
        f"{single.standard_error[0]:.6f} in {one:.3f} s"
    )
    started = time.perf_counter()
    alone = [draw(trial, (TIMED,)) for trial in range(trials)]
    hundred = time.perf_counter() - started
    spread = float(np.std([found.epsilon[0] for found in alone], ddof=1))
    print(f"{trials} trials, d = {TIMED}: {hundred:.1f} s, standard deviation over trials {spread:.6f}")

    started = time.perf_counter()
    found = [draw(trial, CANDIDATES) for trial in range(trials)]
    together = time.perf_counter() - started
    print(f"{trials} trials for all {len(CANDIDATES)} d at once: {together:.1f} s, {together / trials:.3f} s each")
    print(f"quadrature for all {len(CANDIDATES)} d: {1e6 * batch:.0f} µs, {together / trials / batch:.2g} times faster")
    print(f"{'d':>5} {'quadrature':>12} {'bound':>8} {'Monte Carlo':>12} {'st. error':>10} {'relative':>9}")
    for place, candidates in enumerate(CANDIDATES):
        value, bound = float(exact.value[place]), float(exact.error[place])
        mean = float(np.mean([estimate.epsilon[place] for estimate in found]))
        error = float(np.median([estimate.standard_error[place] for estimate in found]))
        print(f"{candidates:>5} {value:>12.8f} {bound:>8.0e} {mean:>12.6f} {error:>10.6f} {error / value:>9.2%}")
    if options.json:
        options.json.write_text(json.dumps(_record(found, device=device, one=one, hundred=hundred, batch=batch)))
    return 0


def _record(found: list[Estimate], *, device: str, one: float, hundred: float, batch: float) -> dict[str, Any]:
    rows = [
        {
            "candidates": candidates,
            "trial": trial,
            "epsilon": float(estimate.epsilon[place]),
            "standard_error": float(estimate.standard_error[place]),
        }
        for trial, estimate in enumerate(found)
        for place, candidates in enumerate(CANDIDATES)
    ]
    return {
        "samples": found[0].samples,
        "candidates": list(CANDIDATES),
        "sigma": SIGMA,
        "sensitivity": SENSITIVITY,
        "device": device,
        "seconds_one_estimate": one,
        "seconds_all_trials": hundred,
        "seconds_quadrature": batch,
        "trials": rows,
    }


if __name__ == "__main__":
    raise SystemExit(main())
