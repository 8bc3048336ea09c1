"""Members of the contract suites, read from the catalogue: a new mechanism is tested because it stands there.

>>> sorted(SELECTIONS) == sorted(entry.name for entry in of_kind("selection"))
True
"""

from __future__ import annotations

from typing import Any

from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.catalogue import CATALOGUE, Kind, of_kind
from dpselect.privacy.family import QueryFamily

#: The δ of those that need one.
DELTA = 1e-6


def classes(kind: Kind) -> dict[str, Any]:
    """The classes of one kind by their catalogue names."""
    return {entry.name: entry.mechanism() for entry in of_kind(kind)}


SELECTIONS = classes("selection")
WATCHERS = classes("above-threshold")
SETS = classes("set")
RELEASES = classes("release")
#: Watchers whose price is known before a run, whatever its length.
PRICED_WATCHERS = {
    entry.name: WATCHERS[entry.name] for entry in of_kind("above-threshold") if entry.guarantee == "pure"
}
#: A kind that is missing here has no contract suite.
TESTED: frozenset[Kind] = frozenset({"selection", "above-threshold", "set", "release"})


def untested() -> list[str]:
    """Names of catalogued mechanisms that no contract suite covers."""
    tested = {*SELECTIONS, *WATCHERS, *SETS, *RELEASES}
    return [entry.name for entry in CATALOGUE if entry.kind not in TESTED or entry.name not in tested]


def watcher(name: str, family: QueryFamily, *, threshold: float, scales: tuple[float, float]) -> AboveThreshold:
    """The watcher of this name with this noise of the threshold and of each query."""
    made: AboveThreshold = WATCHERS[name](
        family, threshold=threshold, **dict(zip(WATCHERS[name].noise_names, scales, strict=True))
    )
    return made


def release(name: str, family: QueryFamily, *, scale: float) -> Any:
    """The release of this name with this noise, at δ = ``DELTA`` where it has one."""
    cls = RELEASES[name]
    (noise,) = cls.noise_names
    more = {"delta": DELTA} if "delta" in cls.__dataclass_fields__ else {}
    return cls(family, **{noise: scale}, **more)
