"""Monte Carlo at the paper's size: ten billion normals per estimate, on a GPU through CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpselect.checks import positive, refuse
from dpselect.errors import SourceError
from dpselect.paper.monte_carlo_kernel import SOURCE, SUMS, Estimate, estimate_from

#: Threads per block, and blocks per multiprocessor: enough to hide double-precision latency, all resident at once.
THREADS = 256
BLOCKS_PER_PROCESSOR = 8

#: The samples of one estimate in the paper.
PAPER_SAMPLES = 10_000_000_000

_kernels: dict[tuple[int, int], Any] = {}


def gpu_available() -> bool:
    """Whether CuPy is installed and sees a device."""
    try:
        import cupy
    except ImportError:
        return False
    try:
        return int(cupy.cuda.runtime.getDeviceCount()) > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def _kernel(cupy: Any, powers: int) -> Any:
    device = int(cupy.cuda.Device().id)
    if (device, powers) not in _kernels:
        options = ("--std=c++17", f"-DPOWERS={powers}", f"-DTHREADS={THREADS}")
        _kernels[device, powers] = cupy.RawKernel(SOURCE, "noisy_max_sums", options=options)
    return _kernels[device, powers]


def gpu_estimate(
    *,
    width: float,
    sensitivity: float,
    sigma: float,
    candidates: Sequence[int],
    samples: int = PAPER_SAMPLES,
    seed: int = 0,
    stream: int = 0,
) -> Estimate:
    """ε of noisy max for each number of candidates, from one pass of ``samples`` normals or a few more.

    Parameters
    ----------
    width, sensitivity, sigma : float
        c = b − a, Δ and σ.
    candidates : sequence of int
        Numbers of candidates, all estimated from the same draws.
    samples : int
        Rounded up to a whole number per thread; the estimate says how many were drawn.
    seed, stream : int
        The generator's key, and which estimate this is: streams of one seed never share a draw.
    """
    try:
        import cupy
    except ImportError:
        raise SourceError("Monte Carlo on a GPU needs CuPy; install dpselect[gpu]") from None
    if min(candidates) < 2:
        raise refuse("candidates", min(candidates), "at least 2")
    if not 0 <= stream < 2**32:
        raise refuse("stream", stream, "between 0 and 2**32 - 1")
    noise = float(positive("sigma", sigma))
    blocks = BLOCKS_PER_PROCESSOR * int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    pairs = -(-samples // (2 * blocks * THREADS))
    partial = cupy.empty((blocks, len(candidates), SUMS), dtype=cupy.float64)
    exponents = cupy.asarray(np.array(candidates) - 1, dtype=cupy.uint32)
    arguments = (
        np.float64((width - 2 * sensitivity) / noise),
        np.float64(width / noise),
        exponents,
        np.uint64(pairs),
        np.uint64(seed),
        np.uint64(stream),
        partial,
    )
    _kernel(cupy, len(candidates))((blocks,), (THREADS,), arguments)
    sums = cupy.asnumpy(partial.sum(axis=0))
    return estimate_from(sums, samples=2 * pairs * blocks * THREADS)
