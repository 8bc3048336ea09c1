"""The mechanisms ``peak`` can use, each with the least noise for a given ε, and how they compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.demo.standin import ExpectedAccuracy
    from dpselect.privacy.family import QueryFamily

MechanismName: TypeAlias = Literal["gaussian", "permute-and-flip", "exponential", "laplace"]
NAMES: tuple[MechanismName, ...] = ("gaussian", "permute-and-flip", "exponential", "laplace")


def calibrated(name: MechanismName, family: QueryFamily, *, candidates: int, epsilon: float) -> Any:
    """The mechanism of that name with the least noise at ε."""
    if name == "gaussian":
        from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax

        return GaussianNoisyMax.calibrated(family, candidates=candidates, epsilon=epsilon)
    if name == "permute-and-flip":
        from dpselect.mechanisms.classical import PermuteAndFlip

        return PermuteAndFlip.calibrated(family, epsilon=epsilon)
    if name == "exponential":
        from dpselect.mechanisms.classical import ExponentialMechanism

        return ExponentialMechanism.calibrated(family, epsilon=epsilon)
    from dpselect.mechanisms.classical import LaplaceNoisyMax

    return LaplaceNoisyMax.calibrated(family, epsilon=epsilon)


def scale_of(name: MechanismName, mechanism: Any) -> float:
    """σ, or the scale of the other laws, in the queries' unit."""
    return float(mechanism.sigma if name == "gaussian" else mechanism.scale)


def noise_in_words(name: MechanismName, mechanism: Any) -> str:
    """The law of the noise and its scale, in the queries' unit."""
    law = {"gaussian": "Gaussian", "permute-and-flip": "exponential", "exponential": "Gumbel", "laplace": "Laplace"}
    symbol = "σ =" if name == "gaussian" else "scale"
    return f"{law[name]}, {symbol} {at_most(scale_of(name, mechanism))}"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A mechanism at the asked ε and what to expect of it on simulated data."""

    name: MechanismName
    mechanism: Any
    accuracy: ExpectedAccuracy


def try_all(
    family: QueryFamily, *, candidates: int, epsilon: float, names: Iterable[MechanismName] = NAMES
) -> dict[MechanismName, Tried]:
    """Every mechanism at the same ε on the same simulated series."""
    from dpselect.demo.standin import expected_accuracy

    tried: dict[MechanismName, Tried] = {}
    for name in names:
        mechanism = calibrated(name, family, candidates=candidates, epsilon=epsilon)
        tried[name] = Tried(
            name=name, mechanism=mechanism, accuracy=expected_accuracy(mechanism, candidates=candidates)
        )
    return tried


def advice(chosen: MechanismName, tried: dict[MechanismName, Tried]) -> str | None:
    """One line when another mechanism does clearly better at the same ε, else nothing."""
    mine = tried[chosen].accuracy.shortfall
    best = min(tried.values(), key=lambda one: one.accuracy.shortfall)
    # A tenth of a percent of the range is within what 200 simulated runs cannot tell apart.
    if best.name == chosen or best.accuracy.shortfall > 0.8 * mine or mine - best.accuracy.shortfall < 0.001:
        return None
    return (
        f"--mechanism {best.name} is more accurate at the same ε: on simulated data its pick falls "
        f"{percent(best.accuracy.shortfall)} of the range short of the best, against {percent(mine)}."
    )


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.0123), percent(0.0)
    ('1.23%', '0%')
    """
    return f"{100 * share:.3g}%"
