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

Kind: TypeAlias = Literal["selection", "above-threshold", "release"]
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
    #: What its noise is called among its parameters.
    noise_names: tuple[str, ...]
    #: The class, a public name of this package.
    class_name: str

    def mechanism(self) -> Any:
        """The class: ``mechanism().calibrated(family, epsilon=…, …)`` has the least noise for an ε."""
        return getattr(importlib.import_module("dpselect"), self.class_name)

    def noise_of(self, mechanism: Any) -> tuple[float, ...]:
        """The scales of the noise of one of these, in the order of ``noise_names``."""
        return tuple(float(getattr(mechanism, name)) for name in self.noise_names)


_SIGMAS = ("sigma_threshold", "sigma_query")
_SCALES = ("scale_threshold", "scale_query")

# fmt: off
CATALOGUE: tuple[Entry, ...] = (
    Entry("gaussian-noisy-max", "Gaussian noisy max",
          "selection", "Gaussian", "pure", ("sigma",), "GaussianNoisyMax"),
    Entry("permute-and-flip", "Permute-and-flip",
          "selection", "exponential", "pure", ("scale",), "PermuteAndFlip"),
    Entry("exponential", "Exponential mechanism",
          "selection", "Gumbel", "pure", ("scale",), "ExponentialMechanism"),
    Entry("laplace-noisy-max", "Laplace noisy max",
          "selection", "Laplace", "pure", ("scale",), "LaplaceNoisyMax"),
    Entry("gaussian-above-threshold", "Gaussian above threshold",
          "above-threshold", "Gaussian", "pure, by transcript", _SIGMAS, "GaussianAboveThreshold"),
    Entry("laplace-above-threshold", "Laplace above threshold",
          "above-threshold", "Laplace", "pure", _SCALES, "LaplaceAboveThreshold"),
    Entry("exponential-above-threshold", "Exponential-noise above threshold",
          "above-threshold", "exponential", "pure", _SCALES, "ExponentialAboveThreshold"),
    Entry("gaussian-release", "Release of every value, Gaussian noise",
          "release", "Gaussian", "approximate", ("sigma",), "GaussianRelease"),
    Entry("laplace-release", "Release of every value, Laplace noise",
          "release", "Laplace", "pure", ("scale",), "LaplaceRelease"),
)
# fmt: on


def of_kind(kind: Kind) -> tuple[Entry, ...]:
    """The mechanisms of one kind, in the order they are shown."""
    return tuple(entry for entry in CATALOGUE if entry.kind == kind)


def find(name: str) -> Entry:
    """The mechanism of that name.

    >>> find("laplace-release").title
    'Release of every value, Laplace noise'
    """
    return _first("name", name, "one of " + ", ".join(entry.name for entry in CATALOGUE))


def entry_of(mechanism: object) -> Entry:
    """What the catalogue says of a mechanism at hand.

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
