"""Monte Carlo for noisy max at the paper's size: ten billion normals per estimate, in one fused CUDA kernel.

One pass draws Philox4x32-10 normals (Box–Muller, double precision) and adds up Φ(x − c/σ)^(d−1) and
Φ(x − (c − 2Δ)/σ)^(d−1) with their squares and product, for several d at once. Only a few sums per block leave the
multiprocessors, so the memory needed does not depend on the number of samples.

The source asks for no header: it compiles with NVRTC through CuPy as it stands, and as C++ for tests on a processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray, positive, refuse
from dpselect.errors import SourceError

#: Sums per number of candidates: f₁, f₀, f₁², f₀², f₁f₀.
SUMS = 5

SOURCE = r"""
#ifndef POWERS
#define POWERS 1
#endif
#define SUMS 5

typedef unsigned int u32;
typedef unsigned long long u64;

struct Words { u32 a, b, c, d; };

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): ten rounds of two 32-bit multiplications.
static __device__ __forceinline__ Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
    #pragma unroll
    for (int round = 0; round < 10; ++round) {
        u64 left = (u64)0xD2511F53u * c0;
        u64 right = (u64)0xCD9E8D57u * c2;
        u32 n0 = (u32)(right >> 32) ^ c1 ^ k0;
        u32 n2 = (u32)(left >> 32) ^ c3 ^ k1;
        c0 = n0; c1 = (u32)right; c2 = n2; c3 = (u32)left;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    Words words = {c0, c1, c2, c3};
    return words;
}

// Uniform in (0, 1): the middle of one of 2^53 cells, so that its logarithm is finite.
static __device__ __forceinline__ double uniform(u32 high, u32 low) {
    u64 bits = (((u64)high << 32) | low) >> 11;
    return ((double)bits + 0.5) * 1.1102230246251565e-16;
}

// The powers are the same for all threads, so the branches below do not diverge.
static __device__ __forceinline__ double power(double base, u32 exponent) {
    double result = 1.0;
    while (exponent) {
        if (exponent & 1u) result *= base;
        exponent >>= 1;
        if (exponent) base *= base;
    }
    return result;
}

static __device__ __forceinline__ void add(double x, double near_shift, double far_shift, const u32* powers,
                                           double (&sums)[POWERS][SUMS]) {
    double near = normcdf(x - near_shift);
    double far = normcdf(x - far_shift);
    #pragma unroll
    for (int p = 0; p < POWERS; ++p) {
        double f1 = power(near, powers[p]);
        double f0 = power(far, powers[p]);
        sums[p][0] += f1;
        sums[p][1] += f0;
        sums[p][2] += f1 * f1;
        sums[p][3] += f0 * f0;
        sums[p][4] += f1 * f0;
    }
}

// Every thread draws `pairs` pairs of normals and writes its block's sums to out[block][power][sum].
extern "C" __global__ void noisy_max_sums(double near_shift, double far_shift, const u32* exponents, u64 pairs,
                                          u64 seed, u64 stream, double* out) {
    u32 powers[POWERS];
    double sums[POWERS][SUMS];
    #pragma unroll
    for (int p = 0; p < POWERS; ++p) {
        powers[p] = exponents[p];
        #pragma unroll
        for (int s = 0; s < SUMS; ++s) sums[p][s] = 0.0;
    }
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u64 pair = 0; pair < pairs; ++pair) {
        // The counter names (thread, pair, stream): no two draws of a seed share it.
        Words words = philox((u32)thread, (u32)pair, (u32)stream, (u32)(pair >> 32), (u32)seed, (u32)(seed >> 32));
        double radius = sqrt(-2.0 * log(uniform(words.a, words.b)));
        double sine, cosine;
        sincospi(2.0 * uniform(words.c, words.d), &sine, &cosine);
        add(radius * cosine, near_shift, far_shift, powers, sums);
        add(radius * sine, near_shift, far_shift, powers, sums);
    }
    __shared__ double shared[THREADS];
    for (int p = 0; p < POWERS; ++p) {
        for (int s = 0; s < SUMS; ++s) {
            shared[threadIdx.x] = sums[p][s];
            __syncthreads();
            for (u32 half = blockDim.x / 2; half > 0; half >>= 1) {
                if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
                __syncthreads();
            }
            if (threadIdx.x == 0) out[((u64)blockIdx.x * POWERS + p) * SUMS + s] = shared[0];
            __syncthreads();
        }
    }
}
"""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """ε of noisy max by Monte Carlo, one entry per number of candidates, with its standard error."""

    epsilon: FloatArray
    standard_error: FloatArray
    samples: int


def estimate_from(sums: FloatArray, *, samples: int, others: FloatArray | None = None) -> Estimate:
    """log(mean f₁/mean f₀) and, by the delta method, its standard error; ``sums`` is (d, :data:`SUMS`).

    The same draws serve numerator and denominator; with ``others`` the denominator has draws of its own, as in the
    authors' code. Where nothing was hit, ε is NaN and the error infinite: plain Monte Carlo does not see the rare event
    that carries the integral.

    >>> estimate = estimate_from(np.array([[2.0, 1.0, 2.0, 1.0, 1.0]]), samples=4)
    >>> round(float(estimate.epsilon[0]), 4)
    0.6931
    """
    first, _, square_first, _, product = (sums[:, place] / samples for place in range(SUMS))
    denominators = sums if others is None else others
    second, square_second = denominators[:, 1] / samples, denominators[:, 3] / samples
    if others is not None:
        product = first * second
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon = np.log(first / second)
        spread = square_first / first**2 + square_second / second**2 - 2 * product / (first * second)
        error = np.sqrt(np.maximum(spread, 0.0) / samples)
    hit = (first > 0) & (second > 0)
    return Estimate(
        epsilon=np.where(hit, epsilon, math.nan), standard_error=np.where(hit, error, math.inf), samples=samples
    )


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


def gpu_sums(
    *,
    width: float,
    sensitivity: float,
    sigma: float,
    candidates: Sequence[int],
    samples: int = PAPER_SAMPLES,
    seed: int = 0,
    stream: int = 0,
) -> tuple[FloatArray, int]:
    """The sums behind :func:`estimate_from` for each number of candidates, and the normals drawn.

    Parameters
    ----------
    width, sensitivity, sigma : float
        c = b − a, Δ and σ.
    candidates : sequence of int
        Numbers of candidates, all estimated from the same draws.
    samples : int
        Rounded up to a whole number per thread.
    seed, stream : int
        The generator's key, and which sample this is: streams of one seed never share a draw.
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
    return cupy.asnumpy(partial.sum(axis=0)), 2 * pairs * blocks * THREADS
