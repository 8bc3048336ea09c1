"""How well and how fast a whole set is named, by prior: London in 2013, made-up years, and up to a million values.

Every figure comes from the real mechanism, seeded. London: daily means over 5,566 homes capped at 50 kWh, from
DPSELECT_DATA or ../shared/data; the part is left out without it. Made-up years: ``tests/planning/streams.py``, nothing
of a past year is used. The default prior was settled on seeds 1 to 3 and on nothing else. Beside it stands what
releasing every value with Gaussian noise does at the same ε and δ = 1e-6, each value then compared with the line.

    python benchmarks/whole_set.py [london] [streams] [speed] [--seeds 31 32 33] [--runs 40]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpselect import GaussianRelease, QueryFamily
from dpselect.mechanisms.chains import Chains
from dpselect.mechanisms.set_above_threshold import RUNS, SetAboveThreshold
from dpselect.noise.entropy import SeededEntropy

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
HOMES, CAP, DELTA = 5566, 50.0, 1e-6

PRIORS: dict[str, Chains] = {
    "independent .5": Chains([(0.5,)]),
    "default (.4, .6 × .5)": RUNS,
    "chain .5 × .75": Chains([(0.5, 0.75)]),
    ".5 × 0, .5, .8": Chains([(0.5, 0.0), (0.5, 0.5), (0.5, 0.8)]),
    ".1, .5, .9 × 0, .5, .8": Chains([(share, tie) for share in (0.1, 0.5, 0.9) for tie in (0.0, 0.5, 0.8)]),
}


def f1(named: np.ndarray, truth: np.ndarray) -> float:
    """F1 of a set; 1 where nothing is above and nothing is named."""
    whole = int(named.sum()) + int(truth.sum())
    return 2 * int((named & truth).sum()) / whole if whole else 1.0


def scores(
    values: np.ndarray, *, family: QueryFamily, line: float, epsilon: float, prior: Chains, runs: int
) -> list[float]:
    """F1 of so many releases."""
    made = SetAboveThreshold.calibrated(family, threshold=line, epsilon=epsilon, candidates=len(values), prior=prior)
    truth = values >= line
    return [f1(made.release(values, entropy=SeededEntropy(seed)).above, truth) for seed in range(runs)]


def released(values: np.ndarray, *, family: QueryFamily, line: float, epsilon: float, runs: int) -> list[float]:
    """F1 of comparing noisy values with the line."""
    made = GaussianRelease.calibrated(family, candidates=len(values), epsilon=epsilon, delta=DELTA)
    truth = values >= line
    return [f1(made.release(values, entropy=SeededEntropy(seed)).values >= line, truth) for seed in range(runs)]


def _london_2013() -> np.ndarray | None:
    path = DATA / "lcl_daily.csv.gz"
    if not path.exists():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as text:
        rows = csv.reader(text)
        days = [at for at, name in enumerate(next(rows)) if name.startswith("2013")]
        readings = np.array([[float(row[at] or 0.0) for at in days] for row in rows])
    return np.minimum(readings, CAP).sum(axis=0) / HOMES


def london(*, runs: int, seeds: list[int]) -> None:
    """Mean F1 by line, ε and prior."""
    del seeds
    values = _london_2013()
    if values is None:
        print("London is left out: no data")
        return
    family = QueryFamily(lower=0, upper=CAP, sensitivity=CAP / HOMES, monotone=True)
    print("| line (days above) | ε | " + " | ".join(PRIORS) + " | every value, δ = 1e-6 |")
    print("| --- | --- |" + " --- |" * (len(PRIORS) + 1))
    for line in (8.0, 8.5, 9.0, 10.0, 11.0, 12.0, 14.0):
        told = f"{line:g} ({int((values >= line).sum())})"
        for epsilon in (0.3, 0.5, 1.0, 2.0):
            given = {"family": family, "line": line, "epsilon": epsilon, "runs": runs}
            found = [float(np.mean(scores(values, prior=prior, **given))) for prior in PRIORS.values()]
            found.append(float(np.mean(released(values, **given))))
            print(f"| {told} | {epsilon:g} | " + " | ".join(f"{one:.2f}" for one in found) + " |", flush=True)
            told = ""


def streams(*, runs: int, seeds: list[int]) -> None:
    """Mean F1 over a dozen kinds of made-up years, and in the kind where each prior does worst."""
    sys.path.insert(0, str(ROOT))
    from tests.planning.streams import KINDS, stream

    family = QueryFamily(lower=0, upper=1, sensitivity=1 / 3000, monotone=True)
    budgets = (0.25, 0.5, 1.0, 2.0)
    print(f"seeds {seeds}; mean F1 (worst kind)")
    print("| prior | " + " | ".join(f"ε = {epsilon:g}" for epsilon in budgets) + " | mean |")
    print("| --- |" + " --- |" * (len(budgets) + 1))
    ways: dict[str, Callable[..., list[float]]] = {
        name: lambda prior=prior, **given: scores(prior=prior, **given) for name, prior in PRIORS.items()
    }
    for name, way in (ways | {"every value, δ = 1e-6": released}).items():
        cells, means = [], []
        for epsilon in budgets:
            kinds = []
            for kind in KINDS:
                years = [stream(kind, seed=seed)[1:] for seed in seeds]
                given = {"family": family, "epsilon": epsilon, "runs": runs}
                kinds.append(np.mean([way(values=values, line=line, **given) for values, line in years]))
            means.append(float(np.mean(kinds)))
            cells.append(f"{means[-1]:.3f} ({min(kinds):.2f})")
        print(f"| {name} | " + " | ".join(cells) + f" | {np.mean(means):.3f} |", flush=True)


def speed(*, runs: int, seeds: list[int]) -> None:
    """Seconds per release, sorted values and shuffled ones, few of them near the line and all of them."""
    del runs, seeds
    family = QueryFamily(lower=0, upper=1, sensitivity=1e-3, monotone=True)
    print("| values | prior | far, s | near, s |\n| --- | --- | --- | --- |")
    for number in (365, 10_000, 100_000, 1_000_000):
        for name in ("default (.4, .6 × .5)", ".1, .5, .9 × 0, .5, .8"):
            made = SetAboveThreshold.calibrated(
                family, threshold=0.5, epsilon=1.0, candidates=number, prior=PRIORS[name]
            )
            taken = []
            for spread in (0.5, 1e-6):
                values = 0.5 + spread * np.random.default_rng(number).uniform(-1, 1, number)
                made.release(values)
                times = []
                for _ in range(3 if number > 10_000 else 30):
                    start = time.perf_counter()
                    made.release(values)
                    times.append(time.perf_counter() - start)
                taken.append(statistics.median(times))
            print(f"| {number:,} | {name} | " + " | ".join(f"{one:.4f}" for one in taken) + " |", flush=True)


def main() -> None:
    """The tables that are named, or all."""
    parts = {"london": london, "streams": streams, "speed": speed}
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="PART", help="; ".join(parts))
    parser.add_argument("--seeds", nargs="+", type=int, default=[31, 32, 33], help="of the made-up years")
    parser.add_argument("--runs", type=int, default=40, help="releases per figure")
    given = parser.parse_args()
    for name in given.parts or parts:
        parts[name](runs=given.runs, seeds=given.seeds)
        print()


if __name__ == "__main__":
    main()
