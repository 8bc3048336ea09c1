"""The mechanisms ``peak`` can use, under short names, and how they compare in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dpselect.mechanisms.catalogue import Entry, find
from dpselect.report.rounding import at_most

if TYPE_CHECKING:
    from dpselect.planning.trial import Tried
    from dpselect.privacy.family import QueryFamily

MechanismName: TypeAlias = Literal["gaussian", "permute-and-flip", "exponential", "laplace"]
NAMES: tuple[MechanismName, ...] = ("gaussian", "permute-and-flip", "exponential", "laplace")
_IN_FULL = {"gaussian": "gaussian-noisy-max", "laplace": "laplace-noisy-max"}


def entry(name: str) -> Entry:
    """What the catalogue says of a mechanism by its short name."""
    return find(_IN_FULL.get(name, name))


def scale_of(name: str, mechanism: Any) -> float:
    """σ, or the scale of the other laws, in the queries' unit."""
    return entry(name).noise_of(mechanism)[0]


def noise_in_words(name: str, mechanism: Any) -> str:
    """The law of the noise and its scale, in the queries' unit."""
    symbol = "σ =" if entry(name).noise == "Gaussian" else "scale"
    return f"{entry(name).noise}, {symbol} {at_most(scale_of(name, mechanism))}"


def try_all(
    family: QueryFamily, *, candidates: int, epsilon: float, names: Iterable[MechanismName] = NAMES
) -> dict[MechanismName, Tried]:
    """Every mechanism at the same ε on the same simulated series."""
    from dpselect.planning.trial import try_selections

    short = {entry(name).name: name for name in names}
    tried = try_selections(family, candidates=candidates, epsilon=epsilon, names=short)
    return {short[name]: replace(one, name=short[name]) for name, one in tried.items()}


def advice(chosen: MechanismName, tried: dict[MechanismName, Tried]) -> str | None:
    """One line when another mechanism does clearly better at the same ε, else nothing."""
    from dpselect.planning.trial import clearly_better

    best = clearly_better(chosen, {str(name): one for name, one in tried.items()})
    if best is None:
        return None
    return (
        f"--mechanism {best.name} is more accurate at the same ε: on simulated data its pick falls "
        f"{percent(best.accuracy.shortfall)} of the range short of the best, against "
        f"{percent(tried[chosen].accuracy.shortfall)}."
    )


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.0123), percent(0.0)
    ('1.23%', '0%')
    """
    return f"{100 * share:.3g}%"
