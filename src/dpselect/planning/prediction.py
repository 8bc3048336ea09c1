"""What to expect of a contender: F1 over simulated passes, or how good a selection's choice is on made-up series."""

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
from dpselect.privacy.family import QueryFamily

OneRelease: TypeAlias = NoisyMax | GridRelease

#: Stated uncertainties reach so many standard errors of a mean over the simulated passes. Another simulation of as many
#: passes has an error of its own, so its mean differs by more about once in two thousand times.
_REACH = 5.0
#: The first seed of the trials of selections, fixed so that one question has one expectation, and how many there are.
_SEED, _TIMES = 2024, 400


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a contender is expected to do, from simulation on noise that its tuning has not seen.

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
    guess: float | None = None
    guess_hits: float | None = None
    share: float | None = None

    def as_expected(self, questions: int) -> dict[str, Any]:
        """The same for machines, by the names that answers and dry runs use."""
        if self.hits is not None:
            return {
                "expected_shortfall": 1.0 - self.score,
                "expected_hits": self.hits,
                "expected_hits_fewest": self.fewest_hits,
                "expected_hits_most": self.most_hits,
                "guess_shortfall": None if self.guess is None else 1.0 - self.guess,
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


def prediction_of(job: Job, run: Passes, *, answered: tuple[float, float], spent: float) -> Prediction:
    """What passes over the job's cases show, a row for each: with how many were answered, how surely, at what cost."""
    means = run.f1.mean(axis=1)
    score, uncertainty = mean_and_reach(run.f1[0], span=1.0)
    low, high = job.stated(score)
    return Prediction(
        score=score,
        uncertainty=uncertainty,
        cautious=float(guarded(means[:, None], np.array([one.weight for one in job.scenarios()]))[0]),
        worst=float(means.min()),
        best=float(means.max()),
        low=low,
        high=high,
        precision=float(run.precision[0].mean()),
        recall=float(run.recall[0].mean()),
        guess=guess_score(job),
        share=float(run.true[0, 0]) / job.count,
        answered=answered[0],
        answered_uncertainty=answered[1],
        spent=spent,
        passes=run.f1.shape[1],
    )


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a selection does on made-up series: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest (or smallest): on average, and on all but the luckiest and the unluckiest tenth.
    """

    shortfall: float
    hits: float
    fewest_hits: float
    most_hits: float
    #: Of the shortfall, as in a prediction; and from how many picks it comes.
    uncertainty: float
    passes: int


def with_flat_ends(series: Sequence[FloatArray], *, goal: Goal) -> list[FloatArray]:
    """The same, every other series flat at the end that is looked for, between the same ends.

    A wave alone has one high season and one low one. Much that people do follows a season on one side only (heating
    below some temperature, a plant at its capacity) and has many near ties on the other.

    >>> [one.tolist() for one in with_flat_ends([np.array([0.0, 0.5, 1.0])] * 2, goal="smallest")]
    [[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]]
    """
    made = []
    for number, values in enumerate(series):
        low, spread = float(values.min()), float(np.ptp(values))
        if number % 2 == 0 or not spread > 0:
            made.append(values)
            continue
        shares = (values - low) / spread
        bent = shares**2 if goal == "smallest" else 1.0 - (1.0 - shares) ** 2
        made.append(low + spread * bent)
    return made


def expected_overlap(mechanism: NoisyMax, series: Sequence[FloatArray], *, top: int, goal: Goal = "largest") -> float:
    """Which share of the ``top`` that are named, one after the other, belongs to the true ones.

    >>> from dpselect import PermuteAndFlip
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


def expected_accuracy(
    mechanism: OneRelease, series: Sequence[FloatArray], *, goal: Goal = "largest"
) -> ExpectedAccuracy:
    """Runs the real mechanism on each series.

    >>> from dpselect import GaussianNoisyMax
    >>> from dpselect.planning.knowledge import Model, made_up
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.003)
    >>> found = expected_accuracy(picker, made_up(picker.family, count=365, public=Model()))
    >>> 0 <= found.shortfall < 0.02, found.fewest_hits < found.hits < found.most_hits
    (True, True)
    """
    times = max(10, min(_TIMES, 20_000_000 // len(series[0])) // len(series))
    missed = []
    for seed, values in enumerate(series):
        picked = _picked(mechanism, values, times=times, goal=goal, entropy=SeededEntropy(_SEED + seed))
        missed.append(np.abs(_best(values, goal) - values[picked]))
    return _gathered(missed, series, width=mechanism.family.width)


def _picked(
    mechanism: OneRelease, values: FloatArray, *, times: int, goal: Goal, entropy: SeededEntropy
) -> NDArray[np.int64]:
    """What is picked, so many times: by a selection, or off values that are all released."""
    if isinstance(mechanism, NoisyMax):
        return np.asarray(mechanism.release_many(values, times=times, goal=goal, entropy=entropy).indices)
    side = 1.0 if goal == "largest" else -1.0
    return np.array([(side * mechanism.release(values, entropy=entropy).values).argmax() for _ in range(times)])


def blind_accuracy(family: QueryFamily, series: Sequence[FloatArray], *, goal: Goal = "largest") -> ExpectedAccuracy:
    """What a guess that looks at no data gets on the same series: any candidate, each as likely.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> from dpselect.planning.knowledge import Model, made_up
    >>> guess = blind_accuracy(family, made_up(family, count=365, public=Model()))
    >>> round(guess.hits * 365, 9), guess.shortfall > 0.05
    (1.0, True)
    """
    return _gathered([np.abs(_best(values, goal) - values) for values in series], series, width=family.width)


def _best(values: FloatArray, goal: Goal) -> float:
    return float(values.max() if goal == "largest" else values.min())


def _gathered(missed: Sequence[FloatArray], series: Sequence[FloatArray], *, width: float) -> ExpectedAccuracy:
    hits = [np.mean(one == 0) for one in missed]
    span = max(float(np.ptp(values)) for values in series) / width
    short, uncertainty = mean_and_reach(np.concatenate(missed) / width, span=span)
    fewest, most = (float(one) for one in np.quantile(hits, [0.1, 0.9]))
    return ExpectedAccuracy(
        shortfall=short,
        uncertainty=uncertainty,
        hits=float(np.mean(hits)),
        fewest_hits=fewest,
        most_hits=most,
        passes=sum(map(len, missed)),
    )
