"""The ways to answer a job: each a mechanism with its settings, which it can choose, predict and build.

| name | answers | guarantee |
|---|---|---|
| ``permute-and-flip``, ``exponential``, ``laplace-noisy-max``, ``gaussian-noisy-max`` | which is largest | pure |
| ``gaussian-noisy-max-profile`` | which is largest | (ε, δ) |
| ``set-above-threshold`` | all that reach a line, at once | pure |
| ``exponential-rationed`` | which reach a line, one by one; the rest of the budget is re-split before each | pure |
| ``exponential-kept``, ``laplace-kept`` | the same, up to a fixed number of ⊤ | pure |
| ``sparse-fresh``, ``sparse-kept``, with ``-clipped`` | the same with Gaussian noise, set by hand | pure |
| ``gaussian-release``, ``laplace-release`` | every value, whatever is read off them | (ε, δ), pure |

Sparse vectors with tuned Gaussian noise are not among them: at every length, rate of ⊤ and ε tried, with and without a
δ, one of the above did better (docs/planning.md).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, positive, refuse
from dpselect.composition.filter import Filter
from dpselect.composition.ration import Rare, Ration
from dpselect.composition.realised import PureFilter
from dpselect.composition.sparse_vector import SparseVector
from dpselect.errors import DPSelectError, StateRefused
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.catalogue import Entry, find, of_kind
from dpselect.mechanisms.chains import Chain, Chains
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.set_above_threshold import SetAboveThreshold
from dpselect.mechanisms.values import OutsidePolicy
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy, SeededEntropy
from dpselect.noise.quantiles import LAPLACE
from dpselect.planning.job import Job
from dpselect.planning.knowledge import Profile
from dpselect.planning.prediction import OneRelease, Prediction, cautious_score, predict_choice, predict_crossings
from dpselect.planning.simulation import Passes, drawn_sets, published, simulate_kept, simulate_rationed
from dpselect.privacy.family import QueryFamily, relative_shift

#: What a setting can be.
Parameter: TypeAlias = float | int | bool | str | tuple[float, ...] | list[float] | tuple[tuple[float, ...], ...]

#: Settings are rounded to so many digits; nothing is lost and files stay readable.
_DIGITS = 4
#: How much is simulated, questions times passes: while settings are compared, and for the prediction.
_COMPARED, _PREDICTED = 80_000, 800_000


_SomeWay = TypeVar("_SomeWay", bound="Way")


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a way is built for: the queries, and the most that the answers may cost."""

    family: QueryFamily
    count: int
    epsilon: float
    delta: float = 0.0
    threshold: float | None = None

    @classmethod
    def of(cls, job: Job, *, epsilon: float) -> Promise:
        """That of a job at another budget."""
        return cls(family=job.family, count=job.count, epsilon=epsilon, delta=job.delta, threshold=job.threshold)

    @property
    def line(self) -> float:
        """ρ, for a way that compares with it."""
        if self.threshold is None:
            raise refuse("threshold", None, "given when crossings are asked for")
        return self.threshold


@dataclass(frozen=True, kw_only=True)
class Way(ABC):
    """A mechanism with its settings. The fields after ``name`` are the settings."""

    name: str

    @property
    def approximate(self) -> bool:
        """Whether it has no pure guarantee."""
        return False

    @property
    def title(self) -> str:
        """The way in words."""
        return TITLES[self.name]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The settings by name."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    @classmethod
    def from_parameters(cls, name: str, parameters: Mapping[str, Any]) -> Self:
        """The way that :attr:`parameters` described; an unknown or missing name is refused."""
        known = {one.name for one in fields(cls)} - {"name"}
        if strangers := sorted(set(parameters) - known):
            raise refuse("parameters", strangers, "among " + ", ".join(sorted(known)))
        try:
            return cls(name=name, **parameters)
        except TypeError:
            missing = ", ".join(sorted(known - set(parameters)))
            raise refuse(missing, None, f"among the parameters of {name}") from None

    def _settle(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, float(positive(name, value)))

    @classmethod
    @abstractmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """The settings that do best for a job at this budget."""

    @abstractmethod
    def predict(self, job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> Prediction:
        """What to expect, on noise that the choice of settings has not seen."""

    @abstractmethod
    def build(self, promise: Promise) -> Any:
        """The mechanism, ready to use; one that would cost more than promised is refused."""

    @abstractmethod
    def spread(self, promise: Promise) -> float:
        """Standard deviation of the noise: of one value, or of a question and its threshold together."""

    def in_unit(self, unit: float) -> Self:
        """The settings for values measured in another unit, of which one is ``unit`` of the present ones."""
        return self

    def adjusted(self, promise: Promise) -> Self:
        """With a little more noise, where a Δ that was rounded differently makes it cost more than promised."""
        return self


# ---- which is largest, and every value ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OneShot(Way):
    """One release with noise of one scale: a noisy maximum, or every value."""

    scale: float

    def __post_init__(self) -> None:
        self._settle("scale")

    @property
    def entry(self) -> Entry:
        """What the catalogue says of the mechanism."""
        return find(self.name.removesuffix("-profile"))

    @property
    def approximate(self) -> bool:
        """Whether it has no pure guarantee."""
        return needs_delta(self.name)

    @classmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """The least noise with which the release costs at most (ε, δ)."""
        made = _least_noise(name, Promise.of(job, epsilon=equal_part(epsilon, job.top)))
        return cls(name=name, scale=made.scales[0])

    def predict(self, job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> Prediction:
        """How good the choice is, or F1 of comparing every published value with the threshold."""
        mechanism = self._made(Promise.of(job, epsilon=epsilon))
        if job.threshold is None:
            return predict_choice(job, mechanism, epsilon=epsilon)
        number, rows = passes or _passes(job, _PREDICTED, least=50, most=2000), []
        for case in job.scenarios():
            claims = published(
                case.values,
                law=mechanism.law,
                scale=self.scale,
                threshold=job.threshold,
                passes=number,
                generator=_generator(seed, 2),
            )
            rows.append(Passes.of_claims(claims, case.values >= job.threshold, spent=epsilon))
        return predict_crossings(job, Passes.stacked(rows))

    def _made(self, promise: Promise) -> OneRelease:
        kind = self.entry.mechanism()
        delta = {"delta": promise.delta} if self.entry.guarantee == "approximate" else {}
        made: OneRelease = kind(promise.family, **{kind.noise_names[0]: self.scale}, **delta)
        return made

    def cost(self, promise: Promise) -> float:
        """ε of the release at its own kind of guarantee; never below the truth."""
        made = self._made(promise)
        found = (
            made.approximate_epsilon(promise.delta, promise.count) if self.approximate else made.epsilon(promise.count)
        )
        return float(np.asarray(found))

    def build(self, promise: Promise) -> OneRelease:
        """The mechanism, whose cost is checked; it takes its entropy when it releases."""
        cost = self.cost(promise)
        if cost > promise.epsilon:
            raise StateRefused(
                f"the plan promises epsilon = {promise.epsilon!r}, but its noise costs {cost!r}; make the plan again"
            )
        return self._made(promise)

    def spread(self, promise: Promise) -> float:
        """Standard deviation of the noise."""
        return float(self.entry.mechanism().law.deviation) * self.scale

    def in_unit(self, unit: float) -> Self:
        """The same noise in another unit."""
        return replace(self, scale=self.scale / unit)

    def adjusted(self, promise: Promise) -> Self:
        """With a little more noise, where a Δ that was rounded differently makes it cost more than promised."""
        if self.cost(promise) <= promise.epsilon:
            return self
        least = _least_noise(self.name, promise).scales[0]
        # Noise that never was enough is no matter of rounding: it is refused when the mechanism is built.
        return replace(self, scale=least) if least <= self.scale * (1.0 + 1e-6) else self


def needs_delta(name: str) -> bool:
    """Whether a release has no pure guarantee."""
    return name.endswith("-profile") or find(name).guarantee == "approximate"


def _least_noise(name: str, promise: Promise) -> OneRelease:
    kind = find(name.removesuffix("-profile")).mechanism()
    delta = {"delta": promise.delta} if needs_delta(name) else {}
    made: OneRelease = kind.calibrated(promise.family, candidates=promise.count, epsilon=promise.epsilon, **delta)
    return made


def equal_part(whole: float, parts: int) -> float:
    """An equal part, rounded down: all parts together are never more than the whole.

    >>> Fraction(equal_part(0.5, 10)) * 10 <= Fraction(0.5)
    True
    """
    part = whole / parts
    if not math.isfinite(part) or Fraction(part) * parts <= Fraction(whole):
        return part
    return math.nextafter(part, 0.0)


# ---- which reach a line, all at once ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WholeSet(Way):
    """All that reach the line, named at once; its settings are shares, so it costs ε for every Δ and every length."""

    line_share: float
    #: The prior: (share, correlation, weight) of each chain.
    chains: tuple[tuple[float, float, float], ...]

    #: Shares of ε for the line that are tried.
    _LINE_SHARES: ClassVar[tuple[float, ...]] = (0.15, 0.07, 0.3)
    #: Priors that are tried, as (share, correlation) of their chains; beside them the expected share with each
    #: correlation.
    _PRIORS: ClassVar[tuple[tuple[tuple[float, float], ...], ...]] = (
        ((0.4, 0.5), (0.6, 0.5)),
        ((0.5, 0.0), (0.5, 0.5), (0.5, 0.8)),
        ((0.5, 0.0),),
        ((0.5, 0.75),),
        ((0.5, 0.9),),
        ((0.2, 0.5), (0.8, 0.5)),
        ((0.2, 0.75), (0.8, 0.75)),
    )
    _CORRELATIONS: ClassVar[tuple[float, ...]] = (0.0, 0.5, 0.75)
    #: Distance factors tried, for a model and for a known series: a few more values near the line than a set can bear
    #: turn most of it to coin flips at once (docs/theory.md §14).
    _FACTORS: ClassVar[tuple[float, ...]] = (1.5, 1.0, 1 / 1.5)
    _KNOWN_FACTORS: ClassVar[tuple[float, ...]] = (1.15, 1.0, 1 / 1.15)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chains", tuple(tuple(chain) for chain in self.prior.chains))

    @property
    def prior(self) -> Chains:
        """The chains as the mechanism takes them."""
        return Chains([Chain(*chain) for chain in self.chains])

    @classmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """The best prior over the job's scenarios, and then the best share of ε for the line."""
        above = float((job.values() >= Promise.of(job, epsilon=epsilon).line).mean())
        share = min(0.98, max(0.02, above))
        priors = (*cls._PRIORS, *(((share, correlation),) for correlation in cls._CORRELATIONS))
        first = cls._LINE_SHARES[0]
        number = max(9, min(36, 12_000 // job.count))

        def run(way: Self) -> Passes:
            return way._passes(job, epsilon=epsilon, passes=number, seed=seed)

        tried = [cls(name=name, line_share=first, chains=tuple((*chain, 1.0) for chain in prior)) for prior in priors]
        found = best_of(job, tried, run)
        shares = cls._LINE_SHARES if job.family.monotone else ()
        return best_of(job, [found, *(replace(found, line_share=share) for share in shares[1:])], run)

    def predict(self, job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> Prediction:
        """F1 where it is not known for sure how near to the line the values lie.

        F1 of a set may have two peaks, and where little is known it depends on which scenario comes. The stated range
        begins at the unluckiest tenth of all passes, each scenario counted by its weight, and ends at the usual end or,
        where that is more, at the luckiest tenth of the best scenario.
        """
        number = passes or max(30, min(300, 120_000 // job.count))
        run = self._passes(job, epsilon=epsilon, passes=number, seed=seed + 1)
        found = predict_crossings(job, run)
        if found.low is None or found.high is None:
            return found
        weights = np.repeat([case.weight for case in job.scenarios()], run.f1.shape[1])
        low = float(np.quantile(run.f1.ravel(), 0.1, weights=weights, method="inverted_cdf"))
        return replace(found, low=low, high=max(found.high, float(np.quantile(run.f1, 0.9, axis=1).max())))

    def _passes(self, job: Job, *, epsilon: float, passes: int, seed: int) -> Passes:
        mechanism = self.build(Promise.of(job, epsilon=epsilon))
        factors = self._KNOWN_FACTORS if isinstance(job.public, Profile) else self._FACTORS
        each, rows = -(-passes // len(factors)), []
        for case in job.scenarios():
            claims: list[NDArray[np.bool_]] = []
            for factor in factors:
                values = mechanism.threshold + factor * (case.values - mechanism.threshold)
                generator = np.random.default_rng(np.random.SeedSequence([seed, 0x53]))
                claims += drawn_sets(mechanism, values, passes=each, generator=generator)
            rows.append(Passes.of_claims(claims, case.values >= mechanism.threshold, spent=epsilon))
        return Passes.stacked(rows)

    def build(self, promise: Promise) -> SetAboveThreshold:
        """The mechanism at the promised ε; it takes its entropy when it releases."""
        return SetAboveThreshold.calibrated(
            promise.family,
            threshold=promise.line,
            epsilon=promise.epsilon,
            candidates=promise.count,
            line_share=self.line_share,
            prior=self.prior,
        )

    def spread(self, promise: Promise) -> float:
        """Standard deviation of the line's noise and the scale of distances, together."""
        found = self.build(promise)
        return math.hypot(LAPLACE.deviation * found.scale_threshold, found.scale)


# ---- which reach a line, one by one -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OneByOne(Way):
    """A sparse vector: noise of the threshold and of a question."""

    scale_threshold: float
    scale_query: float

    def __post_init__(self) -> None:
        self._settle("scale_threshold", "scale_query")

    @property
    def entry(self) -> Entry:
        """What the catalogue says of the mechanism."""
        return find(f"{self.name.partition('-')[0]}-above-threshold")

    def watcher(self, family: QueryFamily, *, threshold: float) -> AboveThreshold:
        """The mechanism of one run."""
        kind = self.entry.mechanism()
        scales = dict(zip(kind.noise_names, (self.scale_threshold, self.scale_query), strict=True))
        made: AboveThreshold = kind(family, threshold=threshold, **scales)
        return made

    @property
    def resample(self) -> bool:
        """Whether a new noisy threshold is drawn after each ⊤."""
        return False

    @property
    def clip(self) -> tuple[float, float] | None:
        """The widths below and above the threshold, where values are clipped."""
        return None

    def ration(self, questions: int, *, before: tuple[int, int] = (0, 0)) -> Ration | None:
        """How the budget is rationed, where it is, after so many answers and ⊤ ``before``."""
        return None

    def build(
        self,
        promise: Promise,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        outside: OutsidePolicy = "refuse",
        filter: Filter | None = None,
        before: tuple[int, int] = (0, 0),
    ) -> SparseVector:
        """The sparse vector, on a budget of its own or another ``filter``'s."""
        return SparseVector(
            self.watcher(promise.family, threshold=promise.line),
            filter=filter or PureFilter(promise.epsilon),
            resample=self.resample,
            clip=self.clip,
            ration=self.ration(promise.count, before=before),
            outside=outside,
            entropy=entropy,
        )

    def spread(self, promise: Promise) -> float:
        """Standard deviation of a question's noise and the threshold's, together."""
        return math.hypot(self.scale_threshold, self.scale_query) * float(self.entry.mechanism().law.deviation)

    def predict(self, job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> Prediction:
        """F1 over simulated passes."""
        number = passes or _passes(job, _PREDICTED, least=50, most=2000)
        return predict_crossings(job, self._passes(job, epsilon=epsilon, passes=number, generator=_generator(seed, 2)))

    @abstractmethod
    def _passes(self, job: Job, *, epsilon: float, passes: int, generator: np.random.Generator) -> Passes:
        """Passes over the job's scenarios, a row for each."""


@dataclass(frozen=True, kw_only=True)
class Rationed(OneByOne):
    """Exponential noise; the remaining budget is re-split before each question (composition/ration.py).

    ``scale_query`` is that of the first question.
    """

    rare: Rare
    expected: tuple[float, ...]
    together: float
    hold: tuple[float, float]
    lean: float

    #: In which thirteenth of the questions how many are expected: in which month of a year.
    _STRETCHES: ClassVar[int] = 13
    #: How much of a public stream's timing is believed.
    _IN_STEP: ClassVar[float] = 0.25
    #: Whether the budget goes by the rate of the rare answers or holds on to their expected total.
    _HOLDS: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 1.0), (0.5, 1.0), (0.5, 2.0))
    #: How far the budget may lean to the common answer, in scales of a question's noise.
    _LEANS: ClassVar[tuple[float, ...]] = (0.0, 0.2, 0.4, 0.6, 0.8)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("expected", "hold"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @classmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """What follows from the expectation; of a few, how far it holds on to the total and leans."""
        number, first = _passes(job, _COMPARED, least=12, most=100), cls._expecting(name, job, epsilon=epsilon)

        def run(way: Self) -> Passes:
            return way._passes(job, epsilon=epsilon, passes=number, generator=_generator(seed, 1))

        found = best_of(job, [replace(first, hold=hold, lean=cls._LEANS[1]) for hold in cls._HOLDS], run)
        return best_of(job, [replace(found, lean=lean) for lean in cls._LEANS], run)

    @classmethod
    def _expecting(cls, name: str, job: Job, *, epsilon: float) -> Self:
        """The rarer answer pays, and the threshold gets the part of the budget with which verdicts vary least.

        How many rare answers come when is taken to a quarter from a public stream, which may be out of step, otherwise
        from its mean alone; of a model only the mean is known.
        """
        above = job.values() >= Promise.of(job, epsilon=epsilon).line
        rare: Rare = "above" if 2 * np.count_nonzero(above) <= len(above) else "below"
        rarer = above if rare == "above" else ~above
        rows = int((np.diff(rarer.astype(np.int8), prepend=0) > 0).sum())
        stretches = np.array_split(rarer.astype(np.float64), min(cls._STRETCHES, job.count))
        seen, lengths = (np.array([function(one) for one in stretches]) for function in (np.sum, len))
        # Never seen is not never: half a question stands for what was not.
        even = max(float(seen.sum()), 0.5) * lengths / job.count
        expected = cls._IN_STEP * seen + (1.0 - cls._IN_STEP) * even if isinstance(job.public, Profile) else even
        ration = Ration(
            questions=job.count,
            expected=tuple(_rounded(one) for one in expected),
            together=_rounded(float(rarer.sum()) / float(rows)) if rows else 1.0,
            rare=rare,
        )
        of_threshold, of_rare = _unit_costs(job.family)
        still = of_rare / of_threshold / float(ration.price(0, 0.0, left=1.0))
        for_threshold = epsilon / (1.0 + still ** (2.0 / 3.0))
        first = float(ration.price(0, 0.0, left=epsilon - for_threshold))
        return cls(
            name=name,
            scale_threshold=_rounded(of_threshold / for_threshold),
            scale_query=_rounded(of_rare / first),
            rare=rare,
            expected=ration.expected,
            together=ration.together,
            hold=ration.hold,
            lean=ration.lean,
        )

    def ration(self, questions: int, *, before: tuple[int, int] = (0, 0)) -> Ration:
        """How the budget is shared out, after so many answers and ⊤ ``before``."""
        asked, above = before
        return Ration(
            questions=questions,
            expected=self.expected,
            rare=self.rare,
            before=(asked, above if self.rare == "above" else asked - above),
            together=self.together,
            hold=self.hold,
            lean=self.lean,
        )

    def _passes(self, job: Job, *, epsilon: float, passes: int, generator: np.random.Generator) -> Passes:
        return simulate_rationed(
            self.ration(job.count),
            scale_threshold=self.scale_threshold,
            costs=_unit_costs(job.family),
            budget=epsilon,
            threshold=Promise.of(job, epsilon=epsilon).line,
            streams=_streams(job),
            passes=passes,
            generator=generator,
        )


@dataclass(frozen=True, kw_only=True)
class Capped(OneByOne):
    """Exponential or Laplace noise under one threshold, which pays for a fixed number of ⊤."""

    #: The number of ⊤ paid for, as multiples of the expected one, and the threshold's noise as multiples of the usual.
    _MULTIPLES: ClassVar[tuple[float, ...]] = (0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 3.0, 5.0)
    _RATIOS: ClassVar[tuple[float, ...]] = (1.0, 0.6)

    @classmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """The best of a few numbers of ⊤ to pay for."""
        number = _passes(job, _COMPARED, least=6, most=100)
        expected = max(1.0, float((job.values() >= Promise.of(job, epsilon=epsilon).line).sum()))
        caps = sorted({min(job.count, max(1, round(expected * multiple))) for multiple in cls._MULTIPLES})
        tried = [
            cls._paying_for(name, job.family, most_above=cap, epsilon=epsilon, ratio=ratio)
            for cap, ratio in itertools.product(caps, cls._RATIOS)
        ]

        def run(way: Self) -> Passes:
            return way._passes(job, epsilon=epsilon, passes=number, generator=_generator(seed, 1))

        return best_of(job, tried, run)

    @classmethod
    def _paying_for(cls, name: str, family: QueryFamily, *, most_above: int, epsilon: float, ratio: float) -> Self:
        of_threshold, of_above = _unit_costs(family)
        all_above = most_above * of_above / of_threshold
        # With ratio 1 the split with which a verdict varies least.
        for_threshold = epsilon / (1.0 + ratio * all_above ** (2.0 / 3.0))
        scale = _rounded(of_threshold / for_threshold)
        return cls(
            name=name,
            scale_threshold=scale,
            scale_query=_rounded_up(most_above * of_above / (epsilon - of_threshold / scale)),
        )

    def _passes(self, job: Job, *, epsilon: float, passes: int, generator: np.random.Generator) -> Passes:
        watcher: Any = self.watcher(job.family, threshold=Promise.of(job, epsilon=epsilon).line)
        return simulate_kept(watcher, epsilon=epsilon, streams=_streams(job), passes=passes, generator=generator)


@dataclass(frozen=True, kw_only=True)
class GaussianByHand(OneByOne):
    """Gaussian noise as somebody stated it, or by a plain rule; nothing is tuned."""

    clip_below: float | None = None
    clip_above: float | None = None

    #: Passes of the real mechanism over each scenario.
    _PASSES: ClassVar[int] = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle("clip_below", "clip_above")
        clipped = self.name.endswith("-clipped")
        if clipped != (self.clip is not None):
            raise refuse("clip_below", self.clip_below, f"{'given' if clipped else 'left out'} for {self.name}")

    @property
    def entry(self) -> Entry:
        """What the catalogue says of the mechanism."""
        return find("gaussian-above-threshold")

    @property
    def resample(self) -> bool:
        """Whether a new noisy threshold is drawn after each ⊤."""
        return self.name.startswith("sparse-fresh")

    @property
    def clip(self) -> tuple[float, float] | None:
        """The widths below and above the threshold, where values are clipped."""
        return None if self.clip_below is None or self.clip_above is None else (self.clip_below, self.clip_above)

    @classmethod
    def chosen(cls, name: str, job: Job, *, epsilon: float, seed: int) -> Self:
        """The least noise with which the expected answers fit the budget; not clipped."""
        above = max(1, int((job.values() >= Promise.of(job, epsilon=epsilon).line).sum()))
        resample = name.startswith("sparse-fresh")
        return cls.usual(Promise.of(job, epsilon=epsilon), above=above, resample=resample)

    @classmethod
    def usual(cls, promise: Promise, *, above: int, resample: bool, clip: tuple[float, float] | None = None) -> Self:
        """The least noise with which the expected answers fit the budget.

        With new thresholds, ``above`` ⊤ evenly spread make as many runs and a last one without ⊤; each may cost an
        equal part of the budget. With one threshold kept, the whole transcript may cost the budget.

        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-4, monotone=True)
        >>> promise = Promise(family=family, count=365, epsilon=1.0, threshold=0.5)
        >>> way = GaussianByHand.usual(promise, above=36, resample=True)
        >>> way.watcher(family, threshold=0.5).loss(below=11, above=1) <= 1 / 37, way.scale_query == way.scale_threshold
        (True, True)
        """
        family, share = promise.family, promise.epsilon
        transcript = {"below": max(promise.count - above, 0), "above": above}
        if resample:
            transcript, share = {"below": math.ceil(promise.count / above), "above": 1}, promise.epsilon / (above + 1)
        near = family if clip is None else family.near(promise.line, below=clip[0], above=clip[1])
        found = GaussianAboveThreshold.calibrated(
            near, threshold=promise.line, epsilon=share, ratio=usual_ratio(family), **transcript
        )
        return cls.stated(found.scales, resample=resample, clip=clip)

    @classmethod
    def stated(cls, scales: tuple[float, ...], *, resample: bool, clip: tuple[float, float] | None = None) -> Self:
        """Noise (σ_X, σ_Z) as it was stated."""
        name = f"sparse-{'fresh' if resample else 'kept'}{'' if clip is None else '-clipped'}"
        below, above = clip or (None, None)
        return cls(name=name, scale_threshold=scales[0], scale_query=scales[1], clip_below=below, clip_above=above)

    def predict(self, job: Job, *, epsilon: float, seed: int, passes: int | None = None) -> Prediction:
        """F1 over passes of the real mechanism."""
        number = min(passes or self._PASSES, self._PASSES)
        return predict_crossings(job, self._passes(job, epsilon=epsilon, passes=number, generator=_generator(seed, 2)))

    def _passes(self, job: Job, *, epsilon: float, passes: int, generator: np.random.Generator) -> Passes:
        promise, rows = Promise.of(job, epsilon=epsilon), []
        first = int(generator.integers(1 << 40))
        for case in job.scenarios():
            truth = case.values >= promise.line
            found = np.zeros((4, 1, passes))
            for number in range(passes):
                vector = self.build(promise, entropy=SeededEntropy(first + number), outside="clip")
                answers = vector.ask_many(case.values) if vector.can_ask else np.zeros(0, dtype=np.bool_)
                hits = np.count_nonzero(answers & truth[: len(answers)])
                found[:, 0, number] = len(answers), np.count_nonzero(answers), vector.spent, hits
            rows.append(Passes(found[0], found[1], found[2], found[3], true=np.array([[float(truth.sum())]])))
        return Passes.stacked(rows)


def usual_ratio(family: QueryFamily) -> float:
    """σ_Z/σ_X if left out: 1 where monotone accounting makes ⊤ and ⊥ cost alike, otherwise the usual √3."""
    return 1.0 if family.monotone else math.sqrt(3.0)


# ---- all of them ----------------------------------------------------------------------------------------------------

SELECTIONS: tuple[str, ...] = tuple(entry.name for entry in of_kind("selection"))
RELEASES: tuple[str, ...] = tuple(entry.name for entry in of_kind("release"))
SETS: tuple[str, ...] = tuple(entry.name for entry in of_kind("set"))
PROFILE = "gaussian-noisy-max-profile"

#: Every way by its name.
WAYS: dict[str, type[Way]] = {
    **dict.fromkeys((*SELECTIONS, PROFILE, *RELEASES), OneShot),
    **dict.fromkeys(SETS, WholeSet),
    "exponential-rationed": Rationed,
    **dict.fromkeys(("exponential-kept", "laplace-kept"), Capped),
    **dict.fromkeys(("sparse-fresh", "sparse-kept", "sparse-fresh-clipped", "sparse-kept-clipped"), GaussianByHand),
}
TITLES: dict[str, str] = {
    **{name: find(name).title for name in (*SELECTIONS, *RELEASES, *SETS)},
    "gaussian-noisy-max": "Gaussian noisy max, pure",
    PROFILE: "Gaussian noisy max, profile bound",
    "exponential-rationed": "Exponential-noise above threshold, budget rationed",
    "exponential-kept": "Exponential-noise above threshold, known cap on ⊤",
    "laplace-kept": "Laplace above threshold, known cap on ⊤",
    "sparse-fresh": "Gaussian sparse vector, new threshold after ⊤",
    "sparse-fresh-clipped": "Gaussian sparse vector, new threshold, clipped",
    "sparse-kept": "Gaussian sparse vector, one threshold",
    "sparse-kept-clipped": "Gaussian sparse vector, one threshold, clipped",
}


def best_of(job: Job, ways: Iterable[_SomeWay], run: Callable[[_SomeWay], Passes]) -> _SomeWay:
    """The way whose simulated passes have the best cautious score; one that cannot be built is left out."""
    best: _SomeWay | None = None
    score = -math.inf
    for way in ways:
        try:
            found = cautious_score(job, run(way))
        except DPSelectError:
            continue
        if found > score:
            best, score = way, found
    if best is None:
        raise refuse("epsilon", job.epsilon, "enough for one answer")
    return best


def _unit_costs(family: QueryFamily) -> tuple[float, float]:
    """ε of Laplace or exponential noise of scale one: of the threshold, and of one ⊤ (THEORY §12)."""
    return family.sensitivity, family.sensitivity * relative_shift(family.monotone)


def _streams(job: Job) -> FloatArray:
    streams = np.stack([case.values for case in job.scenarios()])
    return np.asarray(np.clip(streams, job.family.lower, job.family.upper))


def _passes(job: Job, total: int, *, least: int, most: int) -> int:
    return max(least, min(most, total // job.count))


def _generator(seed: int, purpose: int) -> np.random.Generator:
    """Choosing and predicting draw noise of their own."""
    return np.random.default_rng(np.random.SeedSequence([seed, 0x9E37]).spawn(4)[purpose])


def _rounded(value: float) -> float:
    return float(f"{float(value):.{_DIGITS}g}")


def _rounded_up(value: float) -> float:
    rounded = _rounded(value)
    return rounded if rounded >= value else float(f"{value * (1.0 + 0.6 * 10.0 ** (1 - _DIGITS)):.{_DIGITS}g}")
