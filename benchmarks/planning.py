"""What plans made on the past do on what came after, on real and on made-up streams, and how long planning takes.

The tables of docs/planning.md. UCI Bikes: the first year is the public profile, the second is watched. Low Carbon
London: first half, second half. The plan sees the past, the family, ε and the line, nothing of what came after. The
paper's side is given everything: its σ_X is the best of its grid on the very stream that is watched, and its filter,
which does not hold as claimed, may use ε to the last run. The textbook is Laplace noise under one threshold, its cap
the number of ⊤ of the past. Data from DPSELECT_DATA or ../shared/data; without it a simulated stand-in.

    python benchmarks/planning.py [past] [streams] [whole] [lines] [ranges] [speed]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpselect import QueryFamily
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning import Job, Model, Plan, Profile, compare
from dpselect.planning.planner import ranked

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.planning.paper_best import paper_best  # noqa: E402
from tests.planning.streams import KINDS, stream  # noqa: E402
from tests.planning.test_robust_outlook import FAMILY, gain, planned, textbook  # noqa: E402
from tests.planning.test_stated_range import KNOWN, within  # noqa: E402
from tests.planning.test_whole_set import SET, score  # noqa: E402

DATA = Path(os.environ.get("DPSELECT_DATA", ROOT.parent / "shared" / "data"))
BUDGETS = (0.5, 1.0, 2.0, 4.0)
#: Made-up streams that nothing was settled on.
SEEDS = (31, 32, 33)


def series(name: str) -> tuple[np.ndarray, np.ndarray, float, int, tuple[float, float]]:
    """Past, future, threshold, population and the paper's range of σ_X."""
    bikes = name == "UCI"
    file, column, population = (
        ("uci_bikes_day.csv", "registered", 6946) if bikes else ("lcl_daily_totals.csv", "energy_sum_5564", 5564)
    )
    # The last line is not the paper's: the second half hardly ever falls below .33.
    threshold = {"UCI": 0.575, "London": 0.33, "London, high": 0.75}[name]
    sigmas = (0.09, 0.15) if bikes else (0.04, 0.16)
    if not (DATA / file).exists():
        family = QueryFamily(lower=0, upper=1, sensitivity=1 / population)
        values = Model(kind="seasonal").stream(family, count=730, threshold=threshold, share=0.3)
        return values[:365], values[365:], threshold, population, sigmas
    with (DATA / file).open(encoding="utf-8") as text:
        values = np.array([float(row[column]) for row in csv.DictReader(text)])
    values = values / values.max()
    cut = 365 if bikes else len(values) // 2
    return values[:cut], values[cut:], threshold, population, sigmas


def lived(plan: Plan, values: np.ndarray, *, passes: int = 60) -> tuple[float, float]:
    """Mean F1 of the real mechanism on the stream, and twice its standard error."""
    threshold = float(plan.threshold or 0.0)
    truth = values >= threshold
    scores = []
    for seed in range(passes):
        mechanism = plan.mechanism(entropy=SeededEntropy(seed))
        verdicts = np.zeros(len(values), dtype=bool)
        if plan.at_once:
            verdicts = mechanism.release(values, entropy=SeededEntropy(seed)).above
        else:
            answers = mechanism.ask_many(values)
            verdicts[: len(answers)] = answers
        scores.append(2 * np.count_nonzero(verdicts & truth) / max(1, verdicts.sum() + truth.sum()))
    return float(np.mean(scores)), float(2 * np.std(scores) / math.sqrt(passes))


def past_and_future() -> None:
    """The table of real streams."""
    print(
        "| stream (⊤ before → after) | ε | paper's best in hindsight | textbook | one by one, planned | predicted if "
        "all stays | all at once, planned | predicted |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ("UCI", "London", "London, high"):
        past, future, threshold, population, sigmas = series(name)
        family = QueryFamily(lower=0, upper=1, sensitivity=1 / population, monotone=True)
        shares = (float((part >= threshold).mean()) for part in (past, future))
        told = f"{name}, ρ = {threshold:g} ({' → '.join(f'{share:.2f}' for share in shares)})"
        for epsilon in BUDGETS:
            paper = paper_best(future, threshold=threshold, population=population, sigmas=sigmas, epsilon=epsilon)
            plain = textbook(past, future, threshold, epsilon, family)
            public = Profile(tuple(past), public=True)
            job = Job(
                asked="crossings", family=family, count=len(future), epsilon=epsilon, threshold=threshold, public=public
            )
            plan = ranked(job, ["exponential-rationed"])[0]
            found, error = lived(plan, future)
            at_once = ranked(replace(job, whole=True), ["set-above-threshold"])[0]
            named, doubt = lived(at_once, future)
            predicted, foreseen = (one.prediction.score if one.prediction else math.nan for one in (plan, at_once))
            print(
                f"| {told} | {epsilon:g} | {paper:.3f} | {plain:.3f} | {found:.3f} ± {error:.3f} | {predicted:.3f} | "
                f"{named:.3f} ± {doubt:.3f} | {foreseen:.3f} |",
                flush=True,
            )
            told = ""


def streams() -> None:
    """The table of made-up streams."""
    print("| stream | ε = 0.5 | ε = 1 | ε = 2 |\n| --- | --- | --- | --- |")
    gains = {}
    for kind in KINDS:
        gains[kind] = [float(np.mean([gain(kind, seed, epsilon) for seed in SEEDS])) for epsilon in (0.5, 1.0, 2.0)]
        print(f"| {kind} | " + " | ".join(f"{one:+.3f}" for one in gains[kind]) + " |", flush=True)
    means = np.mean(list(gains.values()), axis=0)
    print("| mean | " + " | ".join(f"{one:+.3f}" for one in means) + " |")


def whole() -> None:
    """The table of made-up years whose values are all there: one by one, all at once, and what the planner takes."""
    print("| ε | textbook | rationed | whole set | taken | least gain of taken over rationed in a kind |")
    print("| --- | --- | --- | --- | --- | --- |")
    for epsilon in (0.5, 1.0, 2.0):
        kinds = []
        for kind in KINDS:
            years = []
            for seed in SEEDS:
                past, future, line = stream(kind, seed=seed)
                public = Profile(tuple(past), public=True)
                promise = {"family": FAMILY, "count": len(future), "epsilon": epsilon, "threshold": line}
                plans = ranked(
                    Job(asked="crossings", **promise, public=public, whole=True), [SET, "exponential-rationed"]
                )
                at_once = float(score(next(one for one in plans if one.name == SET), future, passes=40).mean())
                rationed = float(planned(past, future, line, epsilon))
                taken = at_once if plans[0].name == SET else rationed
                plain = textbook(past, future, line, epsilon)
                years.append((plain, rationed, at_once, taken))
            kinds.append(np.mean(years, axis=0))
        means, least = np.mean(kinds, axis=0), min(one[3] - one[1] for one in kinds)
        print(f"| {epsilon:g} | " + " | ".join(f"{one:.3f}" for one in means) + f" | {least:+.3f} |", flush=True)


def real_years() -> dict[str, tuple[np.ndarray, int, float, tuple[float, ...]]]:
    """Real years by name: daily values as shares of their public maximum, persons, unit, and lines in the unit."""
    found = {}
    homes = DATA / "lcl_daily.csv.gz"
    if homes.exists():
        with gzip.open(homes, "rt", encoding="utf-8") as text:
            rows = csv.reader(text)
            days = [place for place, name in enumerate(next(rows)) if name.startswith("2013")]
            totals = np.zeros(len(days))
            for row in rows:
                totals += [min(float(row[day]), 50.0) if row[day] else 0.0 for day in days]
        found["London 2013"] = (totals / (50.0 * 5566), 5566, 50.0, (8, 8.5, 9, 10, 11, 12, 14))
    for name, file, column, population, cut in (
        ("bikes 2012", "uci_bikes_day.csv", "registered", 6946, slice(365, 731)),
        ("Ausgrid 2012/13", "ausgrid_daily_totals.csv", "gc_kwh_total", 300, slice(731, 1096)),
    ):
        if (DATA / file).exists():
            with (DATA / file).open(encoding="utf-8") as text:
                values = np.array([float(row[column]) for row in csv.DictReader(text)])
            lines = tuple(float(f"{one:.2g}") for one in np.quantile(values[cut], [0.25, 0.5, 0.75, 0.9, 0.98]))
            found[name] = (values[cut] / values.max(), population, float(values.max()), lines)
    return found


def lines() -> None:
    """The table of lines that few or many days reach: a watch with nothing known, as the command line plans it."""
    print("| year, line (days above) | ε | mean F1 | stated | within |\n| --- | --- | --- | --- | --- |")
    for name, (values, population, unit, asked) in real_years().items():
        family = QueryFamily(lower=0, upper=1, sensitivity=1 / population, monotone=True)
        for line in asked:
            truth = values >= line / unit
            for epsilon in (0.3, 0.5, 1.0, 2.0):
                given = {"family": family, "count": len(values), "epsilon": epsilon, "threshold": line / unit}
                plan = ranked(Job(asked="crossings", **given, whole=True), [SET])[0]
                found, told = score(plan, values, passes=40), plan.prediction
                inside = (found >= told.low - 0.005) & (found <= told.high + 0.005)
                print(
                    f"| {name}, {line:g} ({truth.sum()}) | {epsilon:g} | {found.mean():.3f} | "
                    f"{told.score:.2f} ({told.low:.2f} to {told.high:.2f}) | {inside.mean():.2f} |",
                    flush=True,
                )


def ranges() -> None:
    """The table of stated ranges: how often a single watch of the year after lies within, and how wide they are."""
    print("| known | within | width | mean above the prediction |\n| --- | --- | --- | --- |")
    for known in KNOWN:
        tried = [within(kind, seed, epsilon, known) for kind in KINDS for seed in SEEDS for epsilon in (0.5, 2.0)]
        share, width, above = np.mean([one for one in tried if one is not None], axis=0)
        print(f"| {known} | {share:.2f} | {width:.2f} | {above:+.3f} |", flush=True)


def speed() -> None:
    """How long plans take."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1 / 6946, monotone=True)
    given = {"asked": "crossings", "family": family, "epsilon": 1.0, "threshold": 0.575}
    many = given | {"count": 10_000, "share": 0.4, "epsilon": 20.0}
    jobs = {
        "365 questions, pure": Job(**given, count=365),
        "365 questions, δ = 1e-5": Job(**given, count=365, delta=1e-5),
        "10,000 questions, pure, one in 200 above": Job(**given, count=10_000, share=0.005),
        "10,000 questions, pure, four in ten above": Job(**many),
        "10,000 questions, δ = 1e-5, four in ten above": Job(**many, delta=1e-5),
        "largest of 365": Job(asked="largest", family=family, count=365, epsilon=0.1),
    }
    print("| plan | ways | clock, s | processor, s |\n| --- | --- | --- | --- |")
    for name, job in jobs.items():
        best = (math.inf, math.inf, 0)
        for _ in range(3):
            clock, processor = time.perf_counter(), time.process_time()
            number = len(compare(job).plans)
            took = time.perf_counter() - clock, time.process_time() - processor
            best = min(best[0], took[0]), min(best[1], took[1]), number
        print(f"| {name} | {best[2]} | {best[0]:.2f} | {best[1]:.2f} |", flush=True)


def main() -> None:
    """The tables that are named, or all."""
    parts = {
        "past": past_and_future,
        "streams": streams,
        "whole": whole,
        "lines": lines,
        "ranges": ranges,
        "speed": speed,
    }
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[[], *parts], metavar="PART", help="; ".join(parts) + "; all if left out"
    )
    for name in parser.parse_args().parts or parts:
        parts[name]()
        print()


if __name__ == "__main__":
    main()
