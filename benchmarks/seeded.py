"""A fixed set of seeded calls as JSON: run it on two versions and compare what they print.

    python benchmarks/seeded.py > before.json           # on the version to compare with
    python benchmarks/seeded.py --compare before.json   # on the new one

Public names only, so that it runs on either side of a change. Releases must be the same; losses may differ in the
last digits where a bound was computed anew.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import dpselect as dp


def calls() -> dict[str, Any]:
    """Every call with its answer."""
    answers: dict[str, Any] = {}
    generator = np.random.default_rng(7)
    for monotone in (False, True):
        family = dp.QueryFamily(lower=0.0, upper=1.0, sensitivity=0.01, monotone=monotone)
        values = {d: generator.uniform(0, 1, d) for d in (2, 5, 365)}
        noises = {
            "GaussianNoisyMax": 0.2,
            "ExponentialMechanism": 0.05,
            "PermuteAndFlip": 0.05,
            "LaplaceNoisyMax": 0.05,
        }
        for name, noise in noises.items():
            picker = getattr(dp, name)(family, noise)
            for d, numbers in values.items():
                key = f"{name} monotone={monotone} d={d}"
                answers[f"{key} epsilon"] = float(picker.epsilon(candidates=d))
                answers[f"{key} release"] = [
                    picker.release(numbers, entropy=dp.SeededEntropy(seed)).index for seed in range(20)
                ]
                many = picker.release_many(numbers, times=50, entropy=dp.SeededEntropy(3))
                answers[f"{key} many"] = many.indices.tolist()
                answers[f"{key} many loss"] = many.loss.epsilon
                top = picker.top(numbers, 2, entropy=dp.SeededEntropy(4))
                answers[f"{key} top"] = [*top.indices, top.loss.epsilon]
            if name != "GaussianNoisyMax":
                answers[f"{name} monotone={monotone} calibrated"] = (
                    getattr(dp, name).calibrated(family, epsilon=0.7).scale
                )
        answers[f"GaussianNoisyMax monotone={monotone} calibrated"] = dp.GaussianNoisyMax.calibrated(
            family, candidates=365, epsilon=0.7
        ).sigma
        watchers = {
            "Gaussian": dp.GaussianAboveThreshold(family, threshold=0.6, sigma_threshold=0.1, sigma_query=0.17),
            "Laplace": dp.LaplaceAboveThreshold(family, threshold=0.6, scale_threshold=0.05, scale_query=0.1),
        }
        for name, watcher in watchers.items():
            key = f"{name}AboveThreshold monotone={monotone}"
            losses = watcher.loss(below=[0, 1, 10, 500], above=[[0], [1], [7]])
            answers[f"{key} loss"] = np.asarray(losses).ravel().tolist()
            answers[f"{key} epsilon"] = [float(watcher.epsilon(horizon=h)) for h in (1, 2, 50)]
            for until in ("first", "all"):
                run = watcher.start(entropy=dp.SeededEntropy(5), resample=until == "first")
                verdicts = run.ask_many(values[365])
                answers[f"{key} {until}"] = [*np.flatnonzero(verdicts).tolist(), len(verdicts), run.loss.epsilon]
                many = watcher.run_many(values[5], times=40, entropy=dp.SeededEntropy(6), resample=until == "first")
                answers[f"{key} {until} many"] = [*many.verdicts.ravel().tolist(), many.loss.epsilon]
            for resample in (True, False):
                vector = dp.SparseVector(watcher, budget=1.0, resample=resample, entropy=dp.SeededEntropy(8))
                vector.ask_many(values[365])
                answers[f"{key} sparse resample={resample}"] = [*vector.tops.tolist(), vector.questions, vector.spent]
        releases = {
            "Gaussian": dp.GaussianRelease(family, sigma=0.1, delta=1e-6),
            "Laplace": dp.LaplaceRelease(family, scale=0.1),
        }
        for name, mechanism in releases.items():
            released = mechanism.release(values[5], entropy=dp.SeededEntropy(9))
            answers[f"{name}Release monotone={monotone}"] = [*released.values.tolist(), released.loss.epsilon]
    return answers


def same(before: Any, after: Any) -> bool:
    """Whole numbers and choices exactly, other numbers to a relative 1e-9."""
    if isinstance(before, list):
        return isinstance(after, list) and len(before) == len(after) and all(map(same, before, after))
    if isinstance(before, int):
        return before == after
    return math.isclose(before, after, rel_tol=1e-9, abs_tol=0.0)


def main() -> None:
    """Print the answers, or compare them with printed ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--compare", type=Path)
    given = parser.parse_args()
    answers = calls()
    if given.compare is None:
        print(json.dumps(answers, indent=1))
        return
    before = json.loads(given.compare.read_text())
    changed = [key for key in before if key not in answers or not same(before[key], answers[key])]
    digits = sum(before[key] != answers.get(key) for key in before) - len(changed)
    print(f"{len(before)} calls: {len(changed)} differ, {digits} more in the last digits only")
    for key in changed:
        print(f"  {key}: {before[key]} -> {answers.get(key)}"[:300])
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
