"""What may be charged, and in which unit: numbers, losses, and what mechanisms give back.

A filter may count only what was fixed *before* the release. A loss that depends on the answers (the ex-post loss of a
run) is a :class:`~dpselect.privacy.loss.RealisedLoss` and is refused by its type: charged to an advanced-composition,
Rényi, zCDP or GDP filter it breaks the promise (THEORY §13), and charged to any filter after the answers are
out it comes too late to be refused.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from dpselect.checks import refuse
from dpselect.privacy.conversions import pure_renyi, pure_rho, pure_to_gaussian
from dpselect.privacy.loss import Loss, RealisedLoss

if TYPE_CHECKING:
    from dpselect.mechanisms.above_threshold import AboveThreshold

#: Covers the rounding of a few double-precision operations.
UP = 1.0 + 1e-14


@runtime_checkable
class Costed(Protocol):
    """Anything that can say what its output cost: a selection, a release, a finished run, a class of your own."""

    @property
    def loss(self) -> Loss:
        """(ε, δ) of the output, never below the truth."""
        ...


@runtime_checkable
class OpenRun(Protocol):
    """A run that is still answering: its loss grows with each answer until it ends."""

    @property
    def loss(self) -> Loss:
        """What the answers so far cost."""
        ...

    @property
    def open(self) -> bool:
        """Whether more answers can come."""
        ...


def stated_loss(cost: Costed | Loss | float) -> Loss:
    """The loss a release states, checked: finite and not negative, δ at most 1.

    >>> stated_loss(0.5)
    Loss(epsilon=0.5, delta=0.0)
    """
    if isinstance(cost, float):  # the common case, ahead of the slower look at what the object can do
        return Loss(epsilon=plain_cost("cost", cost))
    if not isinstance(cost, Loss) and isinstance(cost, Costed):
        cost = cost.loss
    loss = cost if isinstance(cost, Loss) else Loss(epsilon=plain_cost("cost", cost))
    return Loss(epsilon=plain_cost("epsilon", loss.epsilon), delta=plain_cost("delta", loss.delta, most=1.0))


def plain_cost(name: str, value: object, *, most: float = math.inf) -> float:
    """A finite, non-negative number as a ``float``; anything else is refused, never read as zero."""
    if type(value) is float and 0.0 <= value <= most and value < math.inf:
        return value
    try:
        number = math.nan if isinstance(value, (bool, str, bytes, np.ndarray)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0.0 <= number <= most or math.isinf(number):
        rule = "zero or more, and finite" if math.isinf(most) else f"between 0 and {most}"
        raise refuse(name, value, rule)
    return number if number >= value else math.nextafter(number, math.inf)  # type: ignore[operator]


def run_cost(epsilon: object) -> float:
    """What a run turned out to cost: zero or more, and infinite where nothing is known of it."""
    return math.inf if isinstance(epsilon, float) and epsilon == math.inf else plain_cost("epsilon", epsilon)


class Declared:
    """The cost of something a mechanism gave back, read once: its loss, and its ρ where the mechanism states one.

    >>> declared(Loss(epsilon=0.5)).in_rho()
    0.125...
    """

    __slots__ = ("_rho", "loss")

    def __init__(self, loss: Loss, rho: float | None = None) -> None:
        self.loss = loss
        self._rho = rho

    def __repr__(self) -> str:
        return repr(self.loss) if self._rho is None else f"{self.loss!r} with rho = {self._rho!r}"

    def in_rho(self) -> float:
        """ρ of zCDP: as stated, or ε²/2 of a pure loss."""
        if self._rho is not None:
            return self._rho
        return float(pure_rho(self._pure("rho", "its mechanism's rho(...)")))

    def in_tau(self, order: float) -> float:
        """τ of Rényi DP at ``order``: the smaller of ρ·α and ε."""
        stated = math.inf if self._rho is None else self._rho * order * UP
        if self.loss.delta > 0 and self._rho is not None:
            return stated
        return min(stated, float(pure_renyi(order, self._pure("tau", "its mechanism's renyi(order, ...)"))))

    def in_mu(self) -> float:
        """μ of Gaussian DP, of a pure loss."""
        return pure_to_gaussian(self._pure("mu", "the shift of its mechanism in standard deviations"))

    def _pure(self, unit: str, instead: str) -> float:
        if self.loss.delta > 0:
            rule = f"pure, or a {unit}: an epsilon with a delta has no {unit}. Charge {instead}, or use AdvancedFilter"
            raise refuse("cost", self.loss, rule)
        return self.loss.epsilon


def in_loss(cost: Declared | float) -> Loss:
    """A cost as (ε, δ); a plain number is a pure ε."""
    return cost.loss if isinstance(cost, Declared) else Loss(epsilon=plain_cost("cost", cost))


def declared(cost: Any) -> Any:
    """A number as it is, in the filter's own unit; a loss or an outcome as a :class:`Declared`; ex-post losses never.

    Everything is read here, once: what is counted is what was compared.

    >>> declared(0.5)
    0.5
    >>> declared(RealisedLoss(epsilon=0.5))
    Traceback (most recent call last):
    ...
    dpselect.errors.InvalidParameter: cost must be known before the release, ...
    """
    if type(cost) is float or isinstance(cost, Declared):
        return cost
    if isinstance(cost, Loss):
        loss, rho = cost, None
    elif isinstance(cost, Costed):
        if isinstance(cost, OpenRun):
            raise _after_the_fact(type(cost).__name__)
        rho, loss = getattr(cost, "rho", None), cost.loss
    else:
        return cost
    if isinstance(loss, RealisedLoss):
        raise _after_the_fact(type(cost).__name__)
    checked = stated_loss(loss)
    return Declared(checked, None if rho is None else plain_cost("rho", rho))


def _after_the_fact(kind: str) -> Exception:
    rule = (
        "known before the release, and what answers turned out to cost is not: a filter would count it too late. Ask "
        "through SparseVector(watcher, filter=...), or charge watcher.epsilon(horizon) before the run starts; to add "
        "up what answers did cost, use an Odometer"
    )
    return refuse("cost", kind, rule)


# What one run of above threshold costs when it must be paid before it starts.


@functools.lru_cache(maxsize=256)
def pure_price(watcher: AboveThreshold, horizon: int | None) -> float:
    """ε of a run that stops at its first ⊤ or at the horizon. Gaussian runs need the horizon (THEORY §2)."""
    return float(np.asarray(watcher.epsilon(horizon)))


@functools.lru_cache(maxsize=256)
def renyi_price(watcher: AboveThreshold, order: float, horizon: int | None) -> float:
    """τ(α) of a run that stops at its first ⊤."""
    return float(np.asarray(watcher.renyi(order, horizon)))


@functools.lru_cache(maxsize=256)
def probabilistic_price(watcher: AboveThreshold, delta: float, horizon: int | None) -> float:
    """ε that the loss of one run exceeds with probability at most ``delta`` (probabilistic DP, THEORY §3)."""
    return watcher.probabilistic_epsilon(delta, horizon)
