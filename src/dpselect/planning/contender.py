"""The ways to answer a job, by name, and the filters of those that are sparse vectors: what they promise at (ε, δ)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dpselect.checks import FloatArray, refuse
from dpselect.composition import (
    Filter,
    GaussianFilter,
    PureFilter,
    RenyiFilter,
    RepairedReportingFilter,
    ZCDPFilter,
)
from dpselect.composition.ration import Rare, Ration
from dpselect.errors import BudgetExhausted
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.mechanisms.catalogue import Entry, find, of_kind
from dpselect.numerics.roots import largest_safe
from dpselect.privacy.conversions import pure_renyi, pure_rho, pure_to_gaussian, renyi_to_approximate
from dpselect.privacy.family import QueryFamily
from dpselect.privacy.profiles import selection_renyi

FilterName: TypeAlias = Literal["pure", "repaired", "renyi", "zcdp", "gaussian"]

#: What a plan's parameters can be.
Parameter: TypeAlias = float | int | bool | str | tuple[float, ...] | list[float]


#: Orders tried for the Rényi filter, which fixes one beforehand.
_ORDERS = 1.0 + np.geomspace(0.5, 2000.0, 40)


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
    "renyi": "Rényi filter",
    "zcdp": "zCDP filter",
    "gaussian": "Gaussian-DP filter",
}


def _sparse(key: str, title: str, **more: Any) -> SparseContender:
    return SparseContender(key=key, title=title, **more)


def _at_a_known_price(entry: Entry) -> Iterator[SparseContender]:
    """The ways of a mechanism whose price is known beforehand, whatever is answered."""
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


@functools.lru_cache(maxsize=64)
def zcdp_budget(epsilon: float, delta: float) -> float:
    """The largest ρ whose ε at δ is within ``epsilon``."""
    return largest_safe(lambda rho: ZCDPFilter(rho).epsilon(delta=delta), epsilon, start=epsilon, tolerance=1e-6)


@functools.lru_cache(maxsize=64)
def gaussian_budget(epsilon: float, delta: float) -> float:
    """The largest μ whose ε at δ is within ``epsilon``."""
    return largest_safe(lambda mu: GaussianFilter(mu).epsilon(delta=delta), epsilon, start=epsilon, tolerance=1e-6)


@functools.lru_cache(maxsize=64)
def renyi_budgets(epsilon: float, delta: float) -> FloatArray:
    """τ at each order tried; 0 where the conversion alone exceeds ``epsilon``."""
    found = [epsilon - renyi_to_approximate(order, 0.0, delta=delta) for order in _ORDERS]
    # The conversion may have been cut at 0, and the filter rounds it up: ask the filter itself in the end.
    return np.array(
        [_renyi_fit(order, max(tau, 0.0), epsilon, delta) for order, tau in zip(_ORDERS, found, strict=True)]
    )


def _renyi_fit(order: float, tau: float, epsilon: float, delta: float) -> float:
    while tau > 0 and renyi_to_approximate(order, tau, delta=delta) > epsilon:
        tau *= 1.0 - 1e-9
        if tau < 1e-9 * epsilon:
            return 0.0
    return tau


def runs_allowed(
    name: FilterName, run_costs: FloatArray, *, shifts: FloatArray, horizon: FloatArray, epsilon: float, delta: float
) -> FloatArray:
    """How many runs of each setting fit, from the pure cost of one run capped at its horizon.

    ``shifts`` are the μ of the profile bound (THEORY §3), which the Rényi price may use instead.
    """
    if name == "zcdp":
        return np.asarray(np.floor(zcdp_budget(epsilon, delta) / pure_rho(run_costs)))
    if name == "gaussian":
        each = np.array([pure_to_gaussian(cost) for cost in run_costs.tolist()])
        return np.floor(np.square(gaussian_budget(epsilon, delta) / each))
    if name == "renyi":
        return np.asarray(np.floor(_renyi_shares(run_costs, shifts, horizon, epsilon, delta).max(axis=1)))
    raise refuse("filter", name, "one that is paid before a run starts")


def _renyi_shares(
    run_costs: FloatArray, shifts: FloatArray, horizon: FloatArray, epsilon: float, delta: float
) -> FloatArray:
    pure = np.asarray(pure_renyi(_ORDERS, run_costs[:, None]))
    many = zip(shifts.tolist(), (horizon + 1.0).tolist(), strict=True)
    profile = np.stack([selection_renyi(_ORDERS, shift=shift, outputs=outputs) for shift, outputs in many])
    return np.asarray(renyi_budgets(epsilon, delta) / np.minimum(pure, profile))


def best_order(run_cost: float, *, shift: float, horizon: int, epsilon: float, delta: float) -> float:
    """The Rényi order that lets most runs of one setting through."""
    shares = _renyi_shares(np.array([run_cost]), np.array([shift]), np.array([float(horizon)]), epsilon, delta)
    return float(_ORDERS[int(np.argmax(shares[0]))])


def make_filter(name: FilterName, *, epsilon: float, delta: float, order: float | None = None) -> Filter:
    """The filter that promises (ε, δ).

    >>> make_filter("zcdp", epsilon=1.0, delta=1e-6).epsilon(delta=1e-6) <= 1.0
    True
    """
    if name == "pure":
        return PureFilter(epsilon)
    if name == "repaired":
        return RepairedReportingFilter(epsilon=epsilon, delta=delta)
    if name == "zcdp":
        return ZCDPFilter(zcdp_budget(epsilon, delta))
    if name == "gaussian":
        return GaussianFilter(gaussian_budget(epsilon, delta))
    if name == "renyi" and order is not None:
        budget = _renyi_fit(order, max(0.0, epsilon - renyi_to_approximate(order, 0.0, delta=delta)), epsilon, delta)
        return RenyiFilter(order=order, tau=budget)
    raise refuse("filter", name, "known, and a Rényi filter has an order")


def count_runs(budget: Filter, watcher: AboveThreshold, *, horizon: int, most: int) -> int:
    """How many runs the filter itself lets through, each at its full price."""
    for number in range(most):
        try:
            held = budget.open_run(watcher, horizon=horizon)
        except BudgetExhausted:
            return number
        held.settle(0.0)
    return most
