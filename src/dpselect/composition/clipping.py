"""The door of a sparse vector: values in range, cut to the neighbourhood of the threshold, never rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dpselect.checks import FloatArray, finite, non_negative, one, refuse
from dpselect.composition.filter import Watcher
from dpselect.mechanisms.values import OutsidePolicy, PrivateValues, admit_one, admit_scores
from dpselect.noise.inputs import FloatScores

#: ``w`` for [ρ - w, ρ + w], or (below, above) for [ρ - below, ρ + above].
Clip: TypeAlias = float | tuple[float, float]


class Clipper:
    """Admits values of ``watcher``'s family and cuts them to its clipped range (THEORY §5).

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.2, sigma_query=0.35)
    >>> door = Clipper(watcher, clip=(0.25, 0.125), outside="refuse")
    >>> door.admit([0.0, 0.5, 1.0]).tolist()
    [0.25, 0.5, 0.625]
    >>> door.admit_one(0.75, threshold=0.75)
    Fraction(1, 2)
    """

    def __init__(self, watcher: Watcher, *, clip: Clip | None, outside: OutsidePolicy) -> None:
        if not isinstance(outside, str) or outside not in ("refuse", "clip"):
            raise refuse("outside", outside, '"refuse" or "clip"')
        self.watcher = watcher
        self.outside: OutsidePolicy = outside
        self.clip = None if clip is None else _widths(clip)
        #: The mechanism over the clipped range, which is what its runs cost.
        self.clipped: Watcher = watcher
        if self.clip is not None:
            near = watcher.family.near(watcher.threshold, below=self.clip[0], above=self.clip[1])
            self.clipped = replace(watcher, family=near)
        self._family = watcher.family
        #: Doubles within these ends need no cutting.
        self.lower, self.upper = self.clipped.family.lower, self.clipped.family.upper

    def admit_one(self, value: PrivateValues, *, threshold: float | None = None) -> float | Fraction:
        """One value, cut; with a threshold of its own, moved so that its distance from ρ is the one from that."""
        number = admit_one(value, family=self._family, outside=self.outside)
        if threshold is not None:
            # In fractions: rounding the difference could move neighbours further apart than the sensitivity.
            public = Fraction(one(finite, "threshold", threshold))
            number = Fraction(number) - public + Fraction(self.watcher.threshold)
        if number < self.lower:
            return self.lower
        return self.upper if number > self.upper else number

    def admit(self, values: PrivateValues) -> FloatArray | Sequence[Fraction]:
        """Many values, cut."""
        numbers = admit_scores(values, family=self._family, outside=self.outside, shared=1)
        if isinstance(numbers, FloatScores):
            # A new array in any case: the caller's could be changed after it was looked at.
            cut: FloatArray = np.clip(numbers.array, self.lower, self.upper)
            return cut
        lower, upper = Fraction(self.lower), Fraction(self.upper)
        return [min(max(number, lower), upper) for number in numbers]


def _widths(clip: Clip) -> tuple[float, float]:
    pair = clip if isinstance(clip, tuple) else (clip, clip)
    if len(pair) != 2:
        raise refuse("clip", clip, "one width, or a pair (below, above)")
    below, above = (one(non_negative, "clip", width) for width in pair)
    return below, above
