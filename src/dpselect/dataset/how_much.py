"""How much the ones that were named are: values with noise from a share of ε, on an exact grid, each with its ±."""

from __future__ import annotations

import math

from dpselect.mechanisms.release import LaplaceRelease
from dpselect.mechanisms.values import PrivateValues
from dpselect.noise.entropy import Entropy
from dpselect.privacy.family import QueryFamily


def margin(release: LaplaceRelease) -> float:
    """A value lies within this of the truth 95 times of 100, whichever it is: its noise is drawn after the names."""
    # P(|noise| > x) is e^(-x/b), and at most that on a grid once a step is added; rounding to it is half a step.
    return release.scale * math.log(20) + 2 * release.grid.step


def draw(
    release: LaplaceRelease, values: PrivateValues, *, entropy: Entropy, within: QueryFamily | None = None
) -> list[float]:
    """The values with noise, cut to their range, which costs nothing.

    ``within`` is the range where the release takes values beyond it, too: one that noise does not explain is not cut.
    """
    family = within or release.family
    beyond = family.upper + margin(release)
    found = release.release(values, entropy=entropy, outside="clip").values
    return [float(max(one, family.lower) if within and one > beyond else _cut(one, family)) for one in found]


def _cut(value: float, family: QueryFamily) -> float:
    return min(max(value, family.lower), family.upper)
