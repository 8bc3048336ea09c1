"""How much the ones that were named are: values with noise from a share of ε, on an exact grid, each with its ±."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpselect.mechanisms.release import LaplaceRelease
    from dpselect.mechanisms.values import PrivateValues
    from dpselect.noise.entropy import Entropy
    from dpselect.privacy.family import QueryFamily

#: What ± means, for people.
UNCUT = "each ± holds 95 times of 100; half of ε pays for names and half for values"
#: The same of values that never leave their range.
MEANING = f"{UNCUT}, which are cut to their range"


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


def told(value: float, within: float) -> str:
    """A value and its ±, to as many digits as the noise leaves; the ± is rounded up.

    >>> told(12.3456, 0.2101), told(812.3456, 35.0)
    ('12.35 ± 0.22', '812 ± 35')
    """
    digits = max(0, 1 - math.floor(math.log10(within))) if within > 0 else 6
    reach = Decimal(repr(float(within))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING)
    return f"{value:.{digits}f} ± {reach:f}"
