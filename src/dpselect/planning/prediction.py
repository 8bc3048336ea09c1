"""What to expect of a way: F1 over simulated passes, or how good a selection's choice is on made-up series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray
from dpselect.mechanisms.release import GridRelease
from dpselect.mechanisms.selection import Goal, NoisyMax
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.job import Job, guess_score
from dpselect.planning.outlook import guarded
from dpselect.planning.simulation import Passes

OneRelease: TypeAlias = NoisyMax | GridRelease

#: Stated uncertainties reach so many standard errors of a mean over the simulated passes. Another simulation of as many
#: passes has an error of its own, so its mean differs by more about once in two thousand times.
_REACH = 5.0
#: The first seed of the trials of selections, fixed so that one question has one expectation, and how many there are.
_SEED, _TIMES = 2024, 400


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a way is expected to do, from simulation on noise that its tuning has not seen.

    Attributes
    ----------
    score, uncertainty : float
        Mean F1 (crossings) or accuracy (largest) if values are as expected; the mean over as many fresh passes lies
        within the uncertainty, except about once in two thousand times.
    cautious : float
        The mean over the job's scenarios, held back by the worst: what settings are chosen and ranked by.
    worst, best : float
        The score in the worst scenario and in the best.
    low, high : float, optional
        For crossings: F1 of a single watch lies between them four times of five, on made-up streams of a dozen kinds
        of which as much is known (docs/planning.md).
    precision, recall : float, optional
        For crossings, as expected: the share of the ⊤ that are right, and of the true ⊤ that are named.
    hits, fewest_hits, most_hits : float, optional
        For the largest: how often the very largest is chosen, on average, and on all but the luckiest and the
        unluckiest tenth of the series it was tried on.
    overlap : float, optional
        Of several that are named: the share that belongs to the true ones.
    guess, guess_hits, share : float, optional
        The score of a guess that looks at no data, and how often that is right; for crossings, the share of ⊤ that is
        expected.
    answered, answered_uncertainty : float
        Questions answered before the budget ends.
    spent : float
        ε spent at the end of the stream, on average.
    passes : int
        How many passes were simulated.
    """

    score: float
    uncertainty: float
    cautious: float
    worst: float
    answered: float
    answered_uncertainty: float
    spent: float
    passes: int
    best: float | None = None
    low: float | None = None
    high: float | None = None
    precision: float | None = None
    recall: float | None = None
    hits: float | None = None
    fewest_hits: float | None = None
    most_hits: float | None = None
    overlap: float | None = None
    guess: float | None = None
    guess_hits: float | None = None
    share: float | None = None

    @property
    def shortfall(self) -> float:
        """For the largest: how far what is chosen lies from the best, on average, as a share of the range."""
        return 1.0 - self.score

    @property
    def guess_shortfall(self) -> float:
        """The same of a guess that looks at no data."""
        return 1.0 - (self.guess or 0.0)

    def as_expected(self, questions: int) -> dict[str, Any]:
        """The same for machines, by the names that answers and dry runs use."""
        if self.hits is not None:
            return {
                "expected_shortfall": self.shortfall,
                "expected_hits": self.hits,
                "expected_hits_fewest": self.fewest_hits,
                "expected_hits_most": self.most_hits,
                "guess_shortfall": self.guess_shortfall,
                "guess_hits": self.guess_hits,
            }
        return {
            "expected_f1": self.score,
            "expected_precision": self.precision,
            "expected_recall": self.recall,
            "expected_f1_low": self.low,
            "expected_f1_high": self.high,
            "expected_answered": self.answered / questions,
            "expected_spent": self.spent,
            "expected_share": self.share,
            "guess_f1": self.guess,
        }


def mean_and_reach(sample: FloatArray, *, span: float) -> tuple[float, float]:
    """A mean and its stated uncertainty; ``span`` is the most that one pass can differ by.

    The second term allows for what no pass has shown but may still happen now and then.

    >>> import numpy as np
    >>> mean_and_reach(np.array([1.0, 1.0, 1.0, 1.0]), span=1.0)
    (1.0, 1.0)
    """
    number = len(sample)
    error = float(sample.std()) / math.sqrt(number)
    return float(sample.mean()), min(span, _REACH * error + 4.0 * span / number)


def predict_crossings(job: Job, run: Passes) -> Prediction:
    """What passes over the job's scenarios show, a row for each."""
    means = run.f1.mean(axis=1)
    score, uncertainty = mean_and_reach(run.f1[0], span=1.0)
    low, high = job.stated(score)
    answered, answered_uncertainty = mean_and_reach(run.answered[0], span=float(job.count))
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=cautious_score(job, run),
        worst=float(means.min()),
        best=float(means.max()),
        low=low,
        high=high,
        precision=float(run.precision[0].mean()),
        recall=float(run.recall[0].mean()),
        guess=guess_score(job),
        share=float(run.true[0, 0]) / job.count,
        answered=answered,
        answered_uncertainty=answered_uncertainty if run.answered[0].std() > 0 else 0.0,
        spent=float(run.spent[0].mean()),
        passes=run.f1.shape[1],
    )


def cautious_score(job: Job, run: Passes) -> float:
    """The mean F1 over the job's scenarios, held back by the worst."""
    weights = np.array([one.weight for one in job.scenarios()])
    return float(guarded(run.f1.mean(axis=1)[:, None], weights)[0])


def predict_choice(
    job: Job, mechanism: OneRelease, *, epsilon: float, series: Sequence[FloatArray] | None = None
) -> Prediction:
    """How good the choice of the real mechanism is on the job's series, or others, beside that of a guess.

    >>> from dpselect import PermuteAndFlip, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> job = Job(asked="largest", family=family, count=365, epsilon=1.0)
    >>> found = predict_choice(job, PermuteAndFlip(family, scale=0.002), epsilon=1.0)
    >>> 0 <= found.shortfall < 0.02, found.fewest_hits < found.hits < found.most_hits
    (True, True)
    >>> round(found.guess_hits * 365, 9), found.guess_shortfall > 0.05
    (1.0, True)
    """
    series = job.series() if series is None else series
    missed = missed_by(mechanism, series, goal=job.goal)
    width, guess = job.family.width, [np.abs(_best(values, job.goal) - values) for values in series]
    hits = [np.mean(one == 0) for one in missed]
    fewest, most = (float(one) for one in np.quantile(hits, [0.1, 0.9]))
    span = max(float(np.ptp(values)) for values in series) / width
    short, uncertainty = mean_and_reach(np.concatenate(missed) / width, span=span)
    several = job.top > 1 and isinstance(mechanism, NoisyMax)
    return Prediction(
        score=1.0 - short,
        uncertainty=uncertainty,
        cautious=1.0 - short,
        worst=1.0 - short,
        best=1.0 - short,
        hits=float(np.mean(hits)),
        fewest_hits=fewest,
        most_hits=most,
        overlap=expected_overlap(mechanism, series, top=job.top, goal=job.goal) if several else None,  # type: ignore[arg-type]
        guess=1.0 - float(np.concatenate(guess).mean()) / width,
        guess_hits=float(np.mean([np.mean(one == 0) for one in guess])),
        answered=1.0,
        answered_uncertainty=0.0,
        spent=epsilon,
        passes=sum(map(len, missed)),
    )


def missed_by(mechanism: OneRelease, series: Sequence[FloatArray], *, goal: Goal) -> list[FloatArray]:
    """By how much what is picked lies from the best, for many picks on each series."""
    times = max(10, min(_TIMES, 20_000_000 // len(series[0])) // len(series))
    missed = []
    for seed, values in enumerate(series):
        picked = _picked(mechanism, values, times=times, goal=goal, entropy=SeededEntropy(_SEED + seed))
        missed.append(np.abs(_best(values, goal) - values[picked]))
    return missed


def _picked(
    mechanism: OneRelease, values: FloatArray, *, times: int, goal: Goal, entropy: SeededEntropy
) -> NDArray[np.int64]:
    """What is picked, so many times: by a selection, or off values that are all released."""
    if isinstance(mechanism, NoisyMax):
        return np.asarray(mechanism.release_many(values, times=times, goal=goal, entropy=entropy).indices)
    side = 1.0 if goal == "largest" else -1.0
    return np.array([(side * mechanism.release(values, entropy=entropy).values).argmax() for _ in range(times)])


def _best(values: FloatArray, goal: Goal) -> float:
    return float(values.max() if goal == "largest" else values.min())


def expected_overlap(mechanism: NoisyMax, series: Sequence[FloatArray], *, top: int, goal: Goal = "largest") -> float:
    """Which share of the ``top`` that are named, one after the other, belongs to the true ones.

    >>> from dpselect import PermuteAndFlip, QueryFamily
    >>> picker = PermuteAndFlip(QueryFamily(lower=0, upper=1, sensitivity=1e-3), scale=1e-6)
    >>> expected_overlap(picker, [np.linspace(0, 1, 9)], top=3)
    1.0
    """
    few = series[: max(1, 20_000_000 // (top * len(series[0])))]
    shares = []
    for seed in range(max(len(few), _TIMES // (5 * top))):
        values = few[seed % len(few)]
        entropy, rest = SeededEntropy(_SEED + seed), list(range(len(values)))
        named = []
        for _ in range(top):
            picked = mechanism.release_many(values[rest], times=1, goal=goal, entropy=entropy).indices
            named.append(float(values[rest.pop(int(picked[0]))]))
        best = np.sort(values)[-top] if goal == "largest" else -np.sort(-values)[-top]
        shares.append(np.mean([one >= best if goal == "largest" else one <= best for one in named]))
    return float(np.mean(shares))
