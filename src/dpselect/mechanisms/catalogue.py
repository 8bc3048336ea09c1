"""Every mechanism by name: its title, its kind, its noise, what it guarantees and its class.

Command line, planner, reports and docs read this list. Nothing heavy is loaded before a mechanism is asked for.

>>> [entry.name for entry in of_kind("selection")]
['gaussian-noisy-max', 'permute-and-flip', 'exponential', 'laplace-noisy-max']
>>> find("permute-and-flip").mechanism()
<class 'dpselect.mechanisms.classical.PermuteAndFlip'>
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, NamedTuple, TypeAlias

from dpselect.errors import refuse

Kind: TypeAlias = Literal["selection", "above-threshold", "set", "release"]
Guarantee: TypeAlias = Literal["pure", "pure, by transcript", "approximate"]


class Entry(NamedTuple):
    """One mechanism."""

    #: How it is asked for on the command line and in plans.
    name: str
    #: How it is called in a sentence.
    title: str
    kind: Kind
    #: The law of its noise, in words.
    noise: str
    #: ``pure`` at a price known beforehand; ``pure, by transcript`` where the price of a run without an end is known
    #: only afterwards; ``approximate`` where there is a δ.
    guarantee: Guarantee
    #: The file of this room and the class in it, which is a public name of the package.
    place: str

    @property
    def short(self) -> str:
        """How it is asked for where its kind is plain: ``peak --mechanism laplace``, ``watch --mechanism laplace``."""
        return self.name.removesuffix("-noisy-max").removesuffix("-above-threshold")

    @property
    def class_name(self) -> str:
        """What its class is called."""
        return self.place.partition(".")[2]

    @property
    def home(self) -> str:
        """The module its class is in."""
        return f"dpselect.mechanisms.{self.place.partition('.')[0]}"

    def mechanism(self) -> Any:
        """The class: ``mechanism().calibrated(family, epsilon=…, …)`` has the least noise for an ε."""
        return getattr(importlib.import_module(self.home), self.class_name)


# fmt: off
CATALOGUE: tuple[Entry, ...] = (
    Entry("gaussian-noisy-max", "Gaussian noisy max",
          "selection", "Gaussian", "pure", "gaussian_noisy_max.GaussianNoisyMax"),
    Entry("permute-and-flip", "Permute-and-flip",
          "selection", "exponential", "pure", "classical.PermuteAndFlip"),
    Entry("exponential", "Exponential mechanism",
          "selection", "Gumbel", "pure", "classical.ExponentialMechanism"),
    Entry("laplace-noisy-max", "Laplace noisy max",
          "selection", "Laplace", "pure", "classical.LaplaceNoisyMax"),
    Entry("gaussian-above-threshold", "Gaussian above threshold",
          "above-threshold", "Gaussian", "pure, by transcript",
          "gaussian_above_threshold.GaussianAboveThreshold"),
    Entry("exponential-above-threshold", "Exponential-noise above threshold",
          "above-threshold", "exponential", "pure", "classical_above_threshold.ExponentialAboveThreshold"),
    Entry("laplace-above-threshold", "Laplace above threshold",
          "above-threshold", "Laplace", "pure", "classical_above_threshold.LaplaceAboveThreshold"),
    Entry("set-above-threshold", "Whole set above threshold",
          "set", "Laplace", "pure", "set_above_threshold.SetAboveThreshold"),
    Entry("gaussian-release", "Release of every value, Gaussian noise",
          "release", "Gaussian", "approximate", "release.GaussianRelease"),
    Entry("laplace-release", "Release of every value, Laplace noise",
          "release", "Laplace", "pure", "release.LaplaceRelease"),
)
# fmt: on


def of_kind(kind: Kind) -> tuple[Entry, ...]:
    """The mechanisms of one kind, in the order they are shown."""
    return tuple(entry for entry in CATALOGUE if entry.kind == kind)


def by_short_name(*kinds: Kind) -> dict[str, Entry]:
    """The mechanisms of some kinds by the name a person types.

    >>> list(by_short_name("above-threshold", "set"))
    ['gaussian', 'exponential', 'laplace', 'set']
    """
    return {entry.short: entry for kind in kinds for entry in of_kind(kind)}


def find(name: str) -> Entry:
    """The mechanism of that name.

    >>> find("laplace-release").title
    'Release of every value, Laplace noise'
    """
    return _first("name", name, "one of " + ", ".join(entry.name for entry in CATALOGUE))


def entry_of(mechanism: object) -> Entry:
    """What the catalogue says of a mechanism.

    >>> from dpselect import PermuteAndFlip, QueryFamily
    >>> entry_of(PermuteAndFlip(QueryFamily(lower=0, upper=1, sensitivity=0.1), scale=1.0)).noise
    'exponential'
    """
    return _first("class_name", type(mechanism).__name__, "a mechanism of this package")


def _first(field: str, wanted: str, rule: str) -> Entry:
    for entry in CATALOGUE:
        if getattr(entry, field) == wanted:
            return entry
    raise refuse("mechanism", wanted, rule)
