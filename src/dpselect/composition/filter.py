"""What every filter is: a limit fixed beforehand, and a say over each release before it happens."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeAlias

from dpselect.errors import BudgetExhausted, StateRefused
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.laplace_above_threshold import LaplaceAboveThreshold

#: The mechanisms a sparse vector can watch with.
Watcher: TypeAlias = GaussianAboveThreshold | LaplaceAboveThreshold

#: A saved filter: plain numbers and strings, ready for JSON.
State: TypeAlias = dict[str, Any]


class RunTerms(NamedTuple):
    """What a filter says about a run that is about to start."""

    #: The most that the run's realised loss may be; infinite where the filter does not look at it.
    allowed: float
    #: What is due before the run starts, in the filter's own unit.
    due: Any = None


class Filter(ABC):
    """Lets releases through while the promise made at the start still holds, whatever is asked adaptively.

    Costs are numbers in the filter's own unit (ε, ρ, μ, …) or a :class:`~dpselect.privacy.loss.Loss`; the class
    says which. The same rules hold for all:

    * :meth:`charge` either counts the cost or raises, and then counts nothing;
    * :meth:`fits` says beforehand which of the two it will be;
    * sums are exact, comparisons are exact, and work and memory per charge do not grow with the history;
    * while a run is open the rest of the budget is set aside for it, and other charges are refused.
    """

    #: The name under which the filter is saved.
    name: ClassVar[str]

    def __init__(self) -> None:
        self._run_open = False
        self._lock = threading.RLock()

    def __reduce__(self) -> str:
        raise StateRefused("a filter is a budget, and a copy would spend it twice; use state() and from_state()")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.spent} of {self.limit}>"

    @property
    @abstractmethod
    def limit(self) -> float:
        """The most that may be spent, in the filter's unit."""

    @property
    @abstractmethod
    def spent(self) -> float:
        """What was spent, in the filter's unit, rounded up."""

    @property
    @abstractmethod
    def remaining(self) -> float:
        """What is left, in the filter's unit, rounded down."""

    @abstractmethod
    def fits(self, cost: Any) -> bool:
        """Whether a release of this cost may go ahead."""

    @abstractmethod
    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` promised for everything let through, now and later; infinite where δ is too small."""

    @abstractmethod
    def _count(self, cost: Any) -> None:
        """Count a cost that fits."""

    @abstractmethod
    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """On what terms a run of ``watcher`` may start; raises ``BudgetExhausted`` where it may not. Counts nothing."""

    @abstractmethod
    def _admit_run(self, terms: RunTerms) -> None:
        """Count what a run costs before it starts."""

    @abstractmethod
    def _settle_run(self, epsilon: float) -> None:
        """Count the realised loss of a run that ended, where the filter counts those."""

    @abstractmethod
    def state(self) -> State:
        """What a saved state needs to carry on, of fixed size."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Filter:
        """The filter that :meth:`state` described."""

    #: Whether the rule covers runs that go on under one noisy threshold after a ⊤.
    covers_kept_threshold: ClassVar[bool] = False

    def charge(self, cost: Any) -> None:
        """Count a release of this cost, before it happens; raises ``BudgetExhausted`` and counts nothing if it does
        not fit.
        """
        with self._lock:
            if self._run_open:
                raise StateRefused("an open run holds the rest of this budget; end the run before charging anything")
            if not self.fits(cost):
                raise self._exhausted(cost)
            self._count(cost)

    def open_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """Let one run of ``watcher`` start, and count what is due beforehand."""
        with self._lock:
            if self._run_open:
                raise StateRefused("this filter already has an open run; end that one first")
            terms = self.check_run(watcher, horizon=horizon)
            self._admit_run(terms)
            self._run_open = True
            return terms

    def close_run(self, epsilon: float) -> None:
        """Settle the open run at its realised loss."""
        with self._lock:
            if not self._run_open:
                raise StateRefused("no run is open in this filter")
            self._settle_run(epsilon)
            self._run_open = False

    def resume_open_run(self) -> None:
        """Say that a run was open when this filter's state was saved, so that it can be settled."""
        self._run_open = True

    def _exhausted(self, cost: Any) -> BudgetExhausted:
        shown = cost if isinstance(cost, float) else float(getattr(cost, "epsilon", cost))
        return BudgetExhausted(
            f"the next release costs {cost!r} and does not fit: {self.spent!r} of {self.limit!r} is spent; "
            "nothing was spent on it",
            spent=self.spent,
            budget=self.limit,
            next_cost=shown,
        )
