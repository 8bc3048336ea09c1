"""The ways to answer a job, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from dpselect.composition.ration import Rare, Ration
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.catalogue import Entry, find, of_kind
from dpselect.privacy.family import QueryFamily

FilterName: TypeAlias = Literal["pure", "repaired", "advanced", "renyi", "zcdp", "gaussian"]

#: What a plan's parameters can be.
Parameter: TypeAlias = float | int | bool | str | tuple[float, ...] | list[float]


@dataclass(frozen=True, kw_only=True)
class SparseParameters:
    """The tuned numbers of a sparse vector; the scales are σ_X and σ_Z where the noise is Gaussian."""

    scale_threshold: float
    scale_query: float
    clip_below: float | None = None
    clip_above: float | None = None
    horizon: int | None = None
    order: float | None = None
    rare: Rare | None = None
    expected: tuple[float, ...] | None = None
    together: float | None = None
    hold: tuple[float, float] | None = None
    lean: float | None = None

    def ration(self, questions: int, *, before: tuple[int, int] = (0, 0)) -> Ration | None:
        """How the budget is rationed among the rare answers, where it is, after so many answers and ⊤ ``before``."""
        if self.rare is None or self.expected is None:
            return None
        asked, above = before
        return Ration(
            questions=questions,
            expected=self.expected,
            rare=self.rare,
            before=(asked, above if self.rare == "above" else asked - above),
            together=self.together or 1.0,
            hold=self.hold or (1.0, 1.0),
            lean=self.lean or 0.0,
        )

    @property
    def clip(self) -> tuple[float, float] | None:
        """The widths below and above the threshold, where values are clipped."""
        return None if self.clip_below is None or self.clip_above is None else (self.clip_below, self.clip_above)

    def named(self) -> dict[str, Parameter]:
        """The numbers by the names a plan uses."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class SparseContender:
    """A sparse vector: which mechanism, which threshold, clipped or not, under which filter."""

    key: str
    title: str
    #: The mechanism's name in the catalogue.
    mechanism: str = "gaussian-above-threshold"
    resample: bool = True
    clipped: bool = False
    #: Whether each question gets the noise that what is left of the budget allows.
    rationed: bool = False
    filter: FilterName = "pure"

    @property
    def entry(self) -> Entry:
        """What the catalogue says of the mechanism."""
        return find(self.mechanism)

    @property
    def kind(self) -> type[AboveThreshold]:
        """The mechanism's class."""
        found: type[AboveThreshold] = self.entry.mechanism()
        return found

    @property
    def capped(self) -> bool:
        """Whether runs end at a horizon: filters that are paid before a run starts need one."""
        return self.filter != "pure"

    @property
    def paid_before(self) -> bool:
        """Whether runs are paid before they start, whatever they answer."""
        return self.filter not in ("pure", "repaired")

    @property
    def approximate(self) -> bool:
        """Whether the guarantee has a δ."""
        return self.filter != "pure"

    @property
    def dimensions(self) -> int:
        """How many numbers are tuned."""
        return 2 + 2 * self.clipped + self.capped

    def watcher(self, family: QueryFamily, *, threshold: float, found: SparseParameters) -> AboveThreshold:
        """The mechanism of one setting, over the family before clipping."""
        kind: Any = self.kind
        scales = (found.scale_threshold, found.scale_query)
        made: AboveThreshold = kind(family, threshold=threshold, **dict(zip(kind.noise_names, scales, strict=True)))
        return made


_GAUSSIAN = "Gaussian sparse vector"
_FILTERED: dict[FilterName, str] = {
    "repaired": "repaired reporting filter",
    "advanced": "advanced composition",
    "renyi": "Rényi filter",
    "zcdp": "zCDP filter",
    "gaussian": "Gaussian-DP filter",
}


def _sparse(key: str, title: str, **more: Any) -> SparseContender:
    return SparseContender(key=key, title=title, **more)


def _at_a_known_price(entry: Entry) -> Iterator[SparseContender]:
    """The ways of a mechanism whose price is known beforehand, whatever is answered."""
    yield _sparse(f"{entry.short}-fresh", f"{entry.title}, paid per ⊤", mechanism=entry.name)
    kept = {"mechanism": entry.name, "resample": False}
    yield _sparse(f"{entry.short}-kept", f"{entry.title}, known cap on ⊤", **kept)
    if entry.mechanism().tops_pay_alone:  # so that each question may have a price of its own (composition/ration.py)
        yield _sparse(f"{entry.short}-rationed", f"{entry.title}, budget rationed", **kept, rationed=True)


SPARSE: tuple[SparseContender, ...] = (
    _sparse("sparse-fresh", f"{_GAUSSIAN}, new threshold after ⊤"),
    _sparse("sparse-fresh-clipped", f"{_GAUSSIAN}, new threshold, clipped", clipped=True),
    _sparse("sparse-kept", f"{_GAUSSIAN}, one threshold", resample=False),
    _sparse("sparse-kept-clipped", f"{_GAUSSIAN}, one threshold, clipped", resample=False, clipped=True),
    *(way for entry in of_kind("above-threshold") if entry.guarantee == "pure" for way in _at_a_known_price(entry)),
    *(
        _sparse(f"sparse-{name}", f"{_GAUSSIAN}, {words}", clipped=True, filter=name)
        for name, words in _FILTERED.items()
    ),
)
BY_KEY: dict[str, SparseContender] = {one.key: one for one in SPARSE}


#: Contenders of one release, which candidate is largest: the mechanism's name in the catalogue by the contender's.
SELECTIONS: dict[str, str] = {
    **{entry.name: entry.name for entry in of_kind("selection")},
    "gaussian-noisy-max-profile": "gaussian-noisy-max",
}
#: Contenders that publish every value, whatever is read off them afterwards.
RELEASES: dict[str, str] = {entry.name: entry.name for entry in of_kind("release")}
#: Contenders that need all questions at once, and answer them at once.
SETS: tuple[str, ...] = tuple(entry.name for entry in of_kind("set"))
TITLES: dict[str, str] = {
    **{one.key: one.title for one in SPARSE},
    **{key: find(name).title for key, name in (SELECTIONS | RELEASES).items()},
    **{key: find(key).title for key in SETS},
    "gaussian-noisy-max": "Gaussian noisy max, pure",
    "gaussian-noisy-max-profile": "Gaussian noisy max, profile bound",
}


def ways_of(mechanism: str) -> tuple[str, ...]:
    """The pure contenders worth trying where one mechanism is asked for by its name.

    Where the price is known beforehand, a new noisy line after each ⊤ pays for itself again each time: one line for all
    is always the better, and rationing better still. Gaussian noise pays for the range, so that clipping pays.

    >>> ways_of("laplace-above-threshold"), ways_of("exponential-above-threshold")
    (('laplace-kept',), ('exponential-rationed',))
    >>> ways_of("gaussian-above-threshold")
    ('sparse-kept-clipped', 'sparse-fresh-clipped')
    """
    if mechanism in SETS:
        return (mechanism,)
    pure = [one for one in SPARSE if one.mechanism == mechanism and not one.approximate]
    worth = [one for one in pure if one.rationed] or [one for one in pure if one.clipped]
    worth = worth or [one for one in pure if not one.resample]
    return tuple(one.key for one in sorted(worth, key=lambda one: one.resample))
