"""The real mechanism tried on made-up series, before any real value is touched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpselect.checks import FloatArray
from dpselect.mechanisms.catalogue import Entry, entry_of, find, of_kind
from dpselect.mechanisms.selection import Goal, NoisyMax
from dpselect.noise.entropy import SeededEntropy
from dpselect.planning.knowledge import Model, Profile
from dpselect.privacy.family import QueryFamily

_SEED = 2024
#: How many series are made up. How often the very largest is found depends on how far the next one lies below it, which
#: differs from series to series: one alone would promise too much, or too little.
_SERIES = 20
#: Releases in all.
_TIMES = 400

#: The selections by name, best-known first.
SELECTIONS: tuple[str, ...] = tuple(entry.name for entry in of_kind("selection"))


@dataclass(frozen=True, kw_only=True)
class ExpectedAccuracy:
    """How a selection does on made-up series: the mean shortfall of what it picks, as a share of the range, and how
    often it picks the very largest (or smallest): on average, and on all but the luckiest and the unluckiest tenth.
    """

    shortfall: float
    hits: float
    fewest_hits: float
    most_hits: float


def made_up(family: QueryFamily, *, count: int, public: Profile | Model) -> list[FloatArray]:
    """The series a selection is tried on: the public one, repeated or cut to ``count``, or several of the model.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> [one.tolist() for one in made_up(family, count=3, public=Profile([0.1, 0.2], public=True))]
    [[0.1, 0.2, 0.1]]
    """
    if isinstance(public, Profile):
        return [np.resize(np.clip(np.array(public.values), family.lower, family.upper), count)]
    # A million candidates need fewer series for the same patience.
    number = max(1, min(_SERIES, 2_000_000 // count)) if public.kind == "seasonal" else 1
    return [public.candidates(family, count=count, seed=seed) for seed in range(number)]


def expected_accuracy(mechanism: NoisyMax, series: Sequence[FloatArray], *, goal: Goal = "largest") -> ExpectedAccuracy:
    """Runs the real mechanism on each series.

    >>> from dpselect import GaussianNoisyMax
    >>> picker = GaussianNoisyMax(QueryFamily(lower=0, upper=1, sensitivity=1e-3), sigma=0.003)
    >>> found = expected_accuracy(picker, made_up(picker.family, count=365, public=Model()))
    >>> 0 <= found.shortfall < 0.02, found.fewest_hits < found.hits < found.most_hits
    (True, True)
    """
    times = max(10, min(_TIMES, 20_000_000 // len(series[0])) // len(series))
    short, hits = [], []
    for seed, values in enumerate(series):
        picked = mechanism.release_many(values, times=times, goal=goal, entropy=SeededEntropy(_SEED + seed)).indices
        missed = np.abs(_best(values, goal) - values[picked])
        short.append(float(missed.mean()) / mechanism.family.width)
        hits.append(float(np.mean(missed == 0)))
    return _gathered(short, hits)


def blind_accuracy(family: QueryFamily, series: Sequence[FloatArray], *, goal: Goal = "largest") -> ExpectedAccuracy:
    """What a guess that looks at no data gets on the same series: any candidate, each as likely.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> guess = blind_accuracy(family, made_up(family, count=365, public=Model()))
    >>> round(guess.hits * 365, 9), guess.shortfall > 0.05
    (1.0, True)
    """
    missed = [np.abs(_best(values, goal) - values) for values in series]
    return _gathered([float(one.mean()) / family.width for one in missed], [float(np.mean(one == 0)) for one in missed])


def _best(values: FloatArray, goal: Goal) -> float:
    return float(values.max() if goal == "largest" else values.min())


def _gathered(short: Sequence[float], hits: Sequence[float]) -> ExpectedAccuracy:
    fewest, most = np.quantile(hits, [0.1, 0.9])
    return ExpectedAccuracy(
        shortfall=float(np.mean(short)), hits=float(np.mean(hits)), fewest_hits=float(fewest), most_hits=float(most)
    )


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A selection at the asked ε and what to expect of it."""

    name: str
    mechanism: Any
    accuracy: ExpectedAccuracy

    @property
    def entry(self) -> Entry:
        """What the catalogue says of it."""
        return entry_of(self.mechanism)

    @property
    def scale(self) -> float:
        """σ, or the scale of the other laws, in the queries' unit."""
        return self.entry.noise_of(self.mechanism)[0]


def try_selections(
    family: QueryFamily,
    series: Sequence[FloatArray],
    *,
    epsilon: float,
    names: Iterable[str] = SELECTIONS,
    goal: Goal = "largest",
) -> dict[str, Tried]:
    """Every selection with the least noise at the same ε, on the same series.

    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> tried = try_selections(family, made_up(family, count=365, public=Model()), epsilon=0.1)
    >>> min(tried, key=lambda name: tried[name].accuracy.shortfall)
    'permute-and-flip'
    """
    tried = {}
    for name in names:
        made = find(name).mechanism().calibrated(family, candidates=len(series[0]), epsilon=epsilon)
        tried[name] = Tried(name=name, mechanism=made, accuracy=expected_accuracy(made, series, goal=goal))
    return tried


def clearly_better(chosen: str, tried: dict[str, Tried]) -> Tried | None:
    """The best of those tried, where it does clearly better than the chosen one."""
    mine = tried[chosen].accuracy.shortfall
    best = min(tried.values(), key=lambda one: one.accuracy.shortfall)
    # A tenth of a percent of the range is within what the simulated runs cannot tell apart.
    if best.name == chosen or best.accuracy.shortfall > 0.8 * mine or mine - best.accuracy.shortfall < 0.001:
        return None
    return best
