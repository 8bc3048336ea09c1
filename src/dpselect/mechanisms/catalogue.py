"""Every mechanism by name: its title, its kind, its noise, what it guarantees and where it lives.

Command line, planner, reports and docs read this list. Nothing heavy is loaded before a mechanism is asked for.

>>> [entry.name for entry in of_kind("selection")]
['gaussian-noisy-max', 'permute-and-flip', 'exponential', 'laplace-noisy-max']
>>> find("permute-and-flip").mechanism()
<class 'dpselect.mechanisms.classical.PermuteAndFlip'>
"""

from __future__ import annotations

import importlib
from typing import Any, Literal, NamedTuple, TypeAlias

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
    #: The class and the module it lives in.
    class_name: str
    module: str

    def mechanism(self) -> Any:
        """The class: ``mechanism().calibrated(family, epsilon=…, …)`` has the least noise for an ε."""
        return getattr(importlib.import_module(f"dpselect.mechanisms.{self.module}"), self.class_name)

    def noise_of(self, mechanism: Any) -> tuple[float, ...]:
        """The scales of the noise of one of these, in the order of ``noise_names``."""
        return tuple(float(getattr(mechanism, name)) for name in self.noise_names)


_SIGMAS = ("sigma_threshold", "sigma_query")
_SCALES = ("scale_threshold", "scale_query")

CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name="gaussian-noisy-max",
        title="Gaussian noisy max",
        kind="selection",
        noise="Gaussian",
        guarantee="pure",
        noise_names=("sigma",),
        class_name="GaussianNoisyMax",
        module="gaussian_noisy_max",
    ),
    Entry(
        name="permute-and-flip",
        title="Permute-and-flip",
        kind="selection",
        noise="exponential",
        guarantee="pure",
        noise_names=("scale",),
        class_name="PermuteAndFlip",
        module="classical",
    ),
    Entry(
        name="exponential",
        title="Exponential mechanism",
        kind="selection",
        noise="Gumbel",
        guarantee="pure",
        noise_names=("scale",),
        class_name="ExponentialMechanism",
        module="classical",
    ),
    Entry(
        name="laplace-noisy-max",
        title="Laplace noisy max",
        kind="selection",
        noise="Laplace",
        guarantee="pure",
        noise_names=("scale",),
        class_name="LaplaceNoisyMax",
        module="classical",
    ),
    Entry(
        name="gaussian-above-threshold",
        title="Gaussian above threshold",
        kind="above-threshold",
        noise="Gaussian",
        guarantee="pure, by transcript",
        noise_names=_SIGMAS,
        class_name="GaussianAboveThreshold",
        module="gaussian_above_threshold",
    ),
    Entry(
        name="laplace-above-threshold",
        title="Laplace above threshold",
        kind="above-threshold",
        noise="Laplace",
        guarantee="pure",
        noise_names=_SCALES,
        class_name="LaplaceAboveThreshold",
        module="laplace_above_threshold",
    ),
    Entry(
        name="exponential-above-threshold",
        title="Exponential-noise above threshold",
        kind="above-threshold",
        noise="exponential",
        guarantee="pure",
        noise_names=_SCALES,
        class_name="ExponentialAboveThreshold",
        module="exponential_above_threshold",
    ),
    Entry(
        name="gaussian-release",
        title="Release of every value, Gaussian noise",
        kind="release",
        noise="Gaussian",
        guarantee="approximate",
        noise_names=("sigma",),
        class_name="GaussianRelease",
        module="release",
    ),
    Entry(
        name="laplace-release",
        title="Release of every value, Laplace noise",
        kind="release",
        noise="Laplace",
        guarantee="pure",
        noise_names=("scale",),
        class_name="LaplaceRelease",
        module="release",
    ),
)


def of_kind(kind: Kind) -> tuple[Entry, ...]:
    """The mechanisms of one kind, in the order they are shown."""
    return tuple(entry for entry in CATALOGUE if entry.kind == kind)


def find(name: str) -> Entry:
    """The mechanism of that name.

    >>> find("laplace-release").title
    'Release of every value, Laplace noise'
    """
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    from dpselect.checks import refuse

    raise refuse("mechanism", name, "one of " + ", ".join(entry.name for entry in CATALOGUE))


def entry_of(mechanism: object) -> Entry:
    """What the catalogue says of a mechanism at hand.

    >>> from dpselect import PermuteAndFlip, QueryFamily
    >>> entry_of(PermuteAndFlip(QueryFamily(lower=0, upper=1, sensitivity=0.1), scale=1.0)).noise
    'exponential'
    """
    class_name = type(mechanism).__name__
    for entry in CATALOGUE:
        if entry.class_name == class_name:
            return entry
    from dpselect.checks import refuse

    raise refuse("mechanism", class_name, "a mechanism of this package")
