"""Monte Carlo agrees with quadrature within its own standard error, on a processor and through the GPU's source."""

from __future__ import annotations

import ctypes
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import InvalidParameter, SourceError
from dpselect.paper import monte_carlo, monte_carlo_gpu
from dpselect.paper.figure import TINY
from dpselect.paper.monte_carlo_gpu import SOURCE, SUMS, estimate_from
from dpselect.privacy.noisy_max import noisy_max_epsilon

#: What a processor needs to compile the kernel as C++, one thread per block.
SHIM = r"""
#include <cmath>
using std::sqrt; using std::log;
struct Place { unsigned x; };
static Place blockIdx, blockDim = {1}, threadIdx = {0};
#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__ static
#define THREADS 1
static void __syncthreads() {}
static double normcdf(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }
static void sincospi(double x, double* s, double* c) { *s = sin(M_PI * x); *c = cos(M_PI * x); }
"""

LAUNCH = r"""
extern "C" void launch(unsigned blocks, double near_shift, double far_shift, const u32* exponents, u64 pairs, u64 seed,
                       u64 stream, double* out) {
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        noisy_max_sums(near_shift, far_shift, exponents, pairs, seed, stream, out);
}
extern "C" void words(const u32* c, const u32* k, u32* out) {
    Words w = philox(c[0], c[1], c[2], c[3], k[0], k[1]);
    out[0] = w.a; out[1] = w.b; out[2] = w.c; out[3] = w.d;
}
"""

CANDIDATES = (2, 5, 12)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler to build the kernel with")
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.cpp").write_text(SHIM + SOURCE + LAUNCH)
    library = folder / "kernel.so"
    command = [compiler, "-O2", "-shared", "-fPIC", f"-DPOWERS={len(CANDIDATES)}", "kernel.cpp", "-o", str(library)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


def sums_of(library: ctypes.CDLL, *, blocks: int, pairs: int, seed: int, stream: int = 0) -> np.ndarray:
    out = np.zeros((blocks, len(CANDIDATES), SUMS))
    exponents = np.array(CANDIDATES, dtype=np.uint32) - np.uint32(1)
    library.launch(
        ctypes.c_uint(blocks),
        ctypes.c_double((1 - 2 * monte_carlo.SENSITIVITY) / monte_carlo.SIGMA),
        ctypes.c_double(1 / monte_carlo.SIGMA),
        exponents.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_uint64(pairs),
        ctypes.c_uint64(seed),
        ctypes.c_uint64(stream),
        out.ctypes.data_as(ctypes.c_void_p),
    )
    return out.sum(axis=0)


def quadrature(candidates: tuple[int, ...]) -> np.ndarray:
    cost = {"width": 1.0, "sensitivity": monte_carlo.SENSITIVITY, "sigma": monte_carlo.SIGMA}
    return np.asarray(noisy_max_epsilon(**cost, candidates=candidates))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], [0, 0], "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_its_published_words(
    compiled: ctypes.CDLL, counter: list[int], key: list[int], expected: str
) -> None:
    given, keys, out = np.array(counter, np.uint32), np.array(key, np.uint32), np.zeros(4, np.uint32)
    compiled.words(*(array.ctypes.data_as(ctypes.c_void_p) for array in (given, keys, out)))
    assert " ".join(f"{word:08x}" for word in out) == expected


def test_the_kernel_agrees_with_quadrature_within_five_standard_errors(compiled: ctypes.CDLL) -> None:
    blocks, pairs = 64, 8_000
    estimate = estimate_from(sums_of(compiled, blocks=blocks, pairs=pairs, seed=7), samples=2 * blocks * pairs)
    distance = np.abs(estimate.epsilon - quadrature(CANDIDATES)) / estimate.standard_error
    assert (distance < 5).all()
    assert (estimate.standard_error / estimate.epsilon < 0.2).all()


def test_streams_and_seeds_of_the_kernel_differ_and_repeat(compiled: ctypes.CDLL) -> None:
    first = sums_of(compiled, blocks=4, pairs=50, seed=1)
    assert (first == sums_of(compiled, blocks=4, pairs=50, seed=1)).all()
    assert (first != sums_of(compiled, blocks=4, pairs=50, seed=1, stream=1)).all()
    assert (first != sums_of(compiled, blocks=4, pairs=50, seed=2)).all()


@pytest.mark.parametrize("own_denominator", [False, True])
def test_the_stated_standard_error_is_the_spread_of_estimates(own_denominator: bool) -> None:
    generator, samples, found = np.random.default_rng(5), 20_000, []
    for _ in range(60):
        first, second = (
            monte_carlo.processor_sums((2, 5), sigma=0.6, samples=samples, generator=generator) for _ in range(2)
        )
        found.append(estimate_from(first, samples=samples, others=second if own_denominator else None))
    spread = np.std([one.epsilon for one in found], axis=0, ddof=1)
    stated = np.mean([one.standard_error for one in found], axis=0)
    # The spread of 60 estimates is itself known to about 9%.
    assert np.allclose(spread / stated, 1.0, atol=0.4)


def test_at_the_papers_noise_estimates_spread_as_predicted_but_small_samples_understate_it() -> None:
    generator, epsilon = np.random.default_rng(5), quadrature((2, 5))

    def ratios(samples: int, *, estimates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Over the spread that quadrature predicts: the spread seen, and the mean one stated; and how often 1.96 of
        the stated cover ε. Paired draws, d = 2 and 5."""
        sums = (
            monte_carlo.processor_sums((2, 5), sigma=monte_carlo.SIGMA, samples=samples, generator=generator)
            for _ in range(estimates)
        )
        found = [estimate_from(one, samples=samples) for one in sums]
        spread = [monte_carlo.predicted_spread(d, sigma=monte_carlo.SIGMA, samples=samples)["paired"] for d in (2, 5)]
        values, stated = (np.array([getattr(one, name) for one in found]) for name in ("epsilon", "standard_error"))
        covered = (np.abs(values - epsilon) < 1.96 * stated).mean(axis=0)
        return values.std(axis=0, ddof=1) / (spread * epsilon), stated.mean(axis=0) / (spread * epsilon), covered

    seen, stated, covered = ratios(20_000, estimates=400)
    # The spread of 400 estimates is known to about 3.5%.
    assert np.allclose(seen, 1.0, atol=0.15)
    # With d = 2 the stated error is right. With d = 5 rare draws carry the variance, most samples miss them, and the
    # stated error is a fifth too small: 95% intervals cover about 82%.
    assert stated[0] == pytest.approx(1.0, abs=0.03)
    assert covered[0] > 0.91
    assert 0.7 < stated[1] < 0.87
    assert 0.75 < covered[1] < 0.89
    # Ten times the samples mend most of it.
    _, stated, _ = ratios(200_000, estimates=40)
    assert 0.9 < stated[1] < 1.02


def test_pairing_the_draws_spreads_less_as_quadrature_predicts() -> None:
    table = monte_carlo.MONTE_CARLO.compute(TINY)
    spread = monte_carlo.spread_of(table, kind="processor").set_index(["sigma", "pairing", "candidates"])["relative"]
    assert spread.loc[(0.5, "paired", 2)] < spread.loc[(0.5, "independent", 2)]
    predicted = monte_carlo.predicted_spread(100, sigma=0.3)
    assert (round(predicted["independent"], 3), round(predicted["paired"], 4)) == (0.117, 0.0168)


def test_a_wrong_shift_is_many_standard_errors_away(compiled: ctypes.CDLL) -> None:
    blocks, pairs = 64, 8_000
    estimate = estimate_from(sums_of(compiled, blocks=blocks, pairs=pairs, seed=7), samples=2 * blocks * pairs)
    halved = np.asarray(noisy_max_epsilon(width=1.0, sensitivity=0.005, sigma=0.3, candidates=CANDIDATES))
    assert (np.abs(estimate.epsilon - halved) / estimate.standard_error > 5).any()


def test_a_sample_that_hits_nothing_says_so() -> None:
    estimate = estimate_from(np.zeros((1, SUMS)), samples=10)
    assert math.isnan(estimate.epsilon[0])
    assert math.isinf(estimate.standard_error[0])


def test_results_left_by_a_gpu_are_drawn_named_and_decide(tmp_path: Path) -> None:
    trials = [
        {"sigma": sigma, "candidates": d, "pairing": pairing, "trial": trial, "epsilon": 0.3 + 0.02 * trial}
        for sigma in monte_carlo.SIGMAS
        for d in monte_carlo.CANDIDATES
        for pairing in monte_carlo.PAIRINGS
        for trial in range(3)
    ]
    left = {"samples": 10**10, "sensitivity": 0.01, "device": "a GPU", "trials": trials}
    (tmp_path / "monte_carlo_gpu.json").write_text(json.dumps(left))
    figure = monte_carlo.MONTE_CARLO
    table = figure.compute(TINY, data=tmp_path)
    assert "10,000,000,000 samples × 3 on a GPU" in figure.caption(table)
    assert all("on a GPU" in claim.setting for claim in figure.claims(table))
    assert set(table["kind"]) == {"quadrature", "processor", "gpu"}


@pytest.mark.parametrize("text", ["", "[]", '{"samples": 3}'])
def test_a_damaged_gpu_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "monte_carlo_gpu.json").write_text(text)
    with pytest.raises(SourceError, match=r"monte_carlo_gpu\.json is not what"):
        monte_carlo.MONTE_CARLO.parts(TINY, data=tmp_path)


def test_without_cupy_the_gpu_is_refused_in_one_sentence() -> None:
    if monte_carlo_gpu.gpu_available():
        pytest.skip("a GPU is here")
    with pytest.raises((SourceError, InvalidParameter), match=r"needs CuPy|at least 2"):
        monte_carlo_gpu.gpu_sums(width=1.0, sensitivity=0.01, sigma=0.3, candidates=[5], samples=1000)
