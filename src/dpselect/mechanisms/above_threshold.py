"""What every above-threshold mechanism does; each adds its law, the names of its noise and what a transcript costs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpselect.checks import FloatArray, broadcast, counts, finite, flag, one, positive, refuse
from dpselect.errors import InvalidData, StateRefused
from dpselect.mechanisms.catalogue import by_short_name
from dpselect.mechanisms.mechanism import Mechanism, noise_of
from dpselect.mechanisms.run import Run, Runs
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit, check_outside
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.noise.rows import scan_rows
from dpselect.noise.scan import NoisyThreshold, Until
from dpselect.ownership import owned_here
from dpselect.privacy.conversions import ORDERS, renyi_to_probabilistic
from dpselect.privacy.family import QueryFamily


@dataclass(frozen=True)
class AboveThreshold(Mechanism):
    """Compares each question, plus noise, with one threshold, plus noise drawn once per run, and answers ⊥ or ⊤."""

    #: The noise of the threshold, and the noise of a question.
    noise_names: ClassVar[tuple[str, ...]] = ("scale_threshold", "scale_query")
    #: Whether a ⊤ costs what its own noise says and a ⊥ nothing: then each question may have a scale of its own.
    tops_pay_alone: ClassVar[bool] = False

    _: KW_ONLY
    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", one(finite, "threshold", self.threshold))

    @classmethod
    def offset(cls, scale_threshold: ArrayLike, scale_query: ArrayLike) -> FloatArray:
        """How far the threshold is moved so that a value on the line is ⊤ half of the time: 0 for symmetric noise."""
        first, second = positive("scale_threshold", scale_threshold), positive("scale_query", scale_query)
        return np.zeros(broadcast(scale_threshold=first, scale_query=second)[0].shape)

    @cached_property
    def level(self) -> float:
        """The public number that the threshold's noise is added to: ρ, moved by :meth:`offset`."""
        return self.threshold + float(self.offset(*self.scales))

    @cached_property
    def noise_setting(self) -> dict[str, Any]:
        """What the draws of :mod:`dpselect.noise` need to know: where, how wide, of which law."""
        first, second = self.scales
        return {"threshold": self.level, "scale_threshold": first, "scale_query": second, "law": self.law}

    @abstractmethod
    def loss(self, below: ArrayLike, above: ArrayLike = 0) -> float | FloatArray:
        """Ex-post ε of ``below`` ⊥ and ``above`` ⊤ under one noisy threshold; arrays broadcast."""

    @abstractmethod
    def epsilon(self, horizon: int | None = None, *, above: int = 1) -> float | FloatArray:
        """Pure ε of a run that stops after ``above`` ⊤ under one threshold, and after ``horizon`` questions."""

    @abstractmethod
    def renyi(self, alpha: ArrayLike, horizon: int | None = None) -> float | FloatArray:
        """Rényi divergence of order ``alpha`` of a run that stops at its first ⊤, at most."""

    def probabilistic_epsilon(self, delta: float, horizon: int | None = None) -> float:
        """ε that the loss of a run exceeds with probability at most ``delta`` (probabilistic DP, THEORY §3)."""
        by_order = renyi_to_probabilistic(ORDERS, self.renyi(ORDERS, horizon), delta=delta)
        return by_order if horizon is None else min(by_order, float(np.asarray(self.epsilon(horizon))))

    def silent_probability(self, questions: int) -> float:
        """How likely the first ``questions`` answers are all ⊥, at most: for costs that grow with them, without end."""
        raise refuse("watcher", self, "Gaussian for this filter; other runs have a pure cost: use PureFilter")

    def state(self) -> dict[str, Any]:
        """Its parameters as plain data, ready for JSON; only mechanisms of the catalogue have one.

        >>> from dpselect import LaplaceAboveThreshold
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=0.1)
        >>> watcher = LaplaceAboveThreshold(family, threshold=0.5, scale_threshold=1.0, scale_query=2.0)
        >>> AboveThreshold.from_state(watcher.state()) == watcher
        True
        """
        family = self.family
        kind = next((name for name, known in _kinds() if known is type(self)), None)
        if kind is None:
            raise StateRefused(f"a {type(self).__name__} cannot be saved: only the mechanisms of this package can")
        return {
            "kind": kind,
            "lower": family.lower,
            "upper": family.upper,
            "sensitivity": family.sensitivity,
            "monotone": family.monotone,
            "threshold": self.threshold,
            **{name: getattr(self, name) for name in self.noise_names},
        }

    @staticmethod
    def from_state(state: dict[str, Any]) -> AboveThreshold:
        """The mechanism that :meth:`state` described; anything else is refused."""
        if not isinstance(state, dict) or not isinstance(state.get("kind"), str) or state["kind"] not in dict(_kinds()):
            raise StateRefused("the saved mechanism is none of this package's")
        kind = dict(_kinds())[state["kind"]]
        if missing := {"lower", "upper", "sensitivity", "monotone", "threshold", *kind.noise_names} - state.keys():
            raise StateRefused(f"the saved mechanism lacks {', '.join(sorted(missing))}")
        family = QueryFamily(**{name: state[name] for name in ("lower", "upper", "sensitivity", "monotone")})
        found: AboveThreshold = kind(family, **{name: state[name] for name in ("threshold", *kind.noise_names)})
        if found.state() != state:
            raise StateRefused("the saved mechanism has unknown fields or numbers that do not fit together")
        return found

    def noisy_threshold(self, *, entropy: Entropy = SYSTEM_ENTROPY) -> NoisyThreshold:
        """Draw the noise of a threshold."""
        noise_of(entropy)
        return NoisyThreshold(**self.noise_setting, entropy=entropy)

    def start(
        self,
        *,
        entropy: Entropy = SYSTEM_ENTROPY,
        resample: bool = True,
        outside: OutsidePolicy = "refuse",
    ) -> Run:
        """Draw the noisy threshold and open a run.

        With ``resample`` it ends at its first ⊤, and the next run draws a new threshold; without, it goes on under the
        one it has.

        >>> from dpselect import GaussianAboveThreshold
        >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
        >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.01, sigma_query=0.02)
        >>> run = watcher.start()
        >>> run.ask(0.1), run.ask_many([0.2, 0.9, 0.3]).tolist(), run.open
        (<Verdict.BELOW: 'below'>, [False, True], False)
        >>> run.loss.epsilon == watcher.loss(below=2, above=1)
        True
        """
        noise = noise_of(entropy)
        run = Run(self, resample=flag("resample", resample), outside=check_outside(outside), noise=noise)
        owned_here(run)
        run.draw(entropy=entropy)
        return run

    def run_many(
        self,
        values: PrivateValues,
        *,
        times: int,
        entropy: Entropy = SYSTEM_ENTROPY,
        resample: bool = True,
        outside: OutsidePolicy = "refuse",
    ) -> Runs:
        """``times`` independent runs over the same values, doubles only: for simulations."""
        noise = noise_of(entropy)
        until: Until = "first" if flag("resample", resample) else "all"
        admitted = admit(values, family=self.family, outside=outside)
        number = int(one(counts, "times", times, least=1))
        if not isinstance(admitted, np.ndarray):
            raise InvalidData("values must be doubles, or integers within ±2**53, to be asked many times at once")
        rows = np.broadcast_to(admitted, (number, len(admitted)))
        verdicts = scan_rows(rows, **self.noise_setting, entropy=entropy, until=until)
        return Runs.priced(self, verdicts, noise=noise)


def _kinds() -> list[tuple[str, Any]]:
    """The mechanisms that can be saved, by their short names."""
    return [(name, entry.mechanism()) for name, entry in by_short_name("above-threshold").items()]
