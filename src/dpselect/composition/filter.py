"""What every filter is: a limit fixed beforehand, and a say over each release before it happens."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from dpselect.checks import counts, one, refuse
from dpselect.composition.costs import Declared, declared, run_cost
from dpselect.errors import BudgetExhausted, DPSelectError, StateRefused
from dpselect.mechanisms.above_threshold import AboveThreshold
from dpselect.ownership import owned_here, process
from dpselect.privacy.loss import Loss
from dpselect.rounding import read_units

#: The mechanisms a sparse vector can watch with.
Watcher: TypeAlias = AboveThreshold

#: A saved filter: plain numbers and strings, ready for JSON.
State: TypeAlias = dict[str, Any]


def check_watcher(watcher: object, horizon: object = None) -> int | None:
    """Refuse what is no above-threshold mechanism; the horizon as a whole number, if there is one."""
    if not isinstance(watcher, Watcher):
        raise refuse("watcher", watcher, "a mechanism such as GaussianAboveThreshold(...)")
    return None if horizon is None else int(one(counts, "horizon", horizon, least=1))


def forked() -> StateRefused:
    """What is raised in a forked child."""
    return StateRefused("this budget belongs to the process that made it; a forked child would spend it twice")


class RunTerms(NamedTuple):
    """What a filter says about a run that is about to start."""

    #: The most that the run's realised loss may be; infinite where the filter does not look at it.
    allowed: float
    #: The books with what is due before the run starts.
    books: Any


class HeldRun:
    """A run's hold on a filter's budget: only its owner can settle the run.

    Made before the filter is asked, so that an interruption while the run is being let in leaves its owner with
    something to settle.
    """

    def __init__(self, filter: Filter) -> None:
        self._filter = filter
        #: The filter's sums with the run in them, worked out once: settling twice counts once.
        self._books: Any = None
        self._allowed = 0.0

    def __reduce__(self) -> str:
        raise StateRefused("a hold on a budget is not copied or pickled; it could be settled twice")

    @property
    def allowed(self) -> float:
        """The most that the run's realised loss may be."""
        return self._allowed

    @property
    def open(self) -> bool:
        """Whether the filter still sets its budget aside for this run."""
        return self._filter._held is self

    def reach_for(self, epsilon: float) -> bool:
        """Whether the run may come to ``epsilon``, asking the filter to set aside more where need be."""
        return epsilon <= self._allowed or self._filter._set_aside(self, epsilon)

    def settle(self, epsilon: float) -> None:
        """End the run at its realised loss; from the second time on nothing happens."""
        self._filter._settle(self, epsilon)


class Filter(ABC):
    """Lets releases through while the promise made at the start still holds, whatever is asked adaptively.

    Costs are numbers in the filter's own unit (ε, ρ, μ, …; the class says which), losses, or what this package's
    mechanisms give back. The same rules hold for all:

    * only what is known before the release is counted: never the ex-post loss of answers that are out (THEORY §13);
    * :meth:`charge` either counts the cost or raises, and then counts nothing;
    * :meth:`fits` says beforehand which of the two it will be;
    * sums are exact, comparisons are exact, and work and memory per charge do not grow with the history;
    * while a run is open the rest of the budget is set aside for it, and other charges are refused.

    A filter writes five methods: :meth:`add_cost`, :meth:`add_run` and :meth:`holds` over its sums (its *books*, a
    named tuple of whole numbers), :meth:`check_run`, and :meth:`epsilon`, what it promises. Charging, holding, saving
    and restoring are the same for all.
    """

    #: The name under which the filter is saved.
    name: ClassVar[str]
    #: The books before the first charge.
    empty: ClassVar[Any]
    #: What a saved state calls the parameters of the filter: the parameter and the attribute that holds it.
    saved_limits: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: What a saved state calls the sums: the field of the books.
    saved_sums: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        #: The sums: never altered, only replaced, so that they can be compared and exchanged in one step.
        self._books: Any = self.empty
        self._held: HeldRun | None = None
        #: The sparse vectors that ask under this budget, and whoever saved it: one saved state holds all of the budget.
        self._serves: weakref.WeakSet[Any] = weakref.WeakSet()
        self._saved_by: weakref.ref[Any] | None = None
        self._process = owned_here(self)
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

    def fits(self, cost: Any) -> bool:
        """Whether a release of this cost may go ahead."""
        return self.holds(self.add_cost(self._books, declared(cost)))

    @abstractmethod
    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` promised for everything let through, now and later; infinite where δ is too small."""

    @abstractmethod
    def add_cost(self, books: Any, cost: Any) -> Any:
        """The books with one more cost, as :func:`~dpselect.composition.costs.declared` has read it."""

    @abstractmethod
    def holds(self, books: Any) -> bool:
        """Whether the promise holds with these books."""

    @abstractmethod
    def check_run(self, watcher: Watcher, *, horizon: int | None = None) -> RunTerms:
        """On what terms a run of ``watcher`` may start; raises ``BudgetExhausted`` where it may not. Counts nothing."""

    @abstractmethod
    def add_run(self, books: Any, epsilon: float) -> Any:
        """The books with the realised loss of a run, where the filter counts those."""

    def _keeps(self, books: object) -> bool:
        """Whether these are books such as this filter keeps."""
        return type(books) is type(self.empty)

    def _check_books(self, books: object) -> None:
        if not self._keeps(books):
            raise refuse("books", books, f"sums of this filter, such as {type(self).__name__}.empty")

    def _state(self) -> State:
        """The limits and the sums, without an open run."""
        limits = {saved: getattr(self, attribute) for saved, (_, attribute) in self.saved_limits.items()}
        return {**limits, **{saved: hex(getattr(self._books, field)) for saved, field in self.saved_sums.items()}}

    @classmethod
    def _from_state(cls, state: State) -> Self:
        """The filter that :meth:`_state` described."""
        found = cls(**{parameter: state[saved] for saved, (parameter, _) in cls.saved_limits.items()})
        found._books = cls.empty._replace(
            **{field: read_units(state[saved]) for saved, field in cls.saved_sums.items()}
        )
        return found

    def state(self) -> State:
        """What a saved state needs to carry on, of fixed size; refused while a run is open, whose cost is not in it."""
        self._check_process()
        with self._lock:
            if self._held is not None:
                raise StateRefused("an open run is not in this filter's sums; end it first, or save its sparse vector")
            self._claim_for_saving(self, None)
            return self._state()

    def _serve(self, vector: Any) -> None:
        with self._lock:
            self._serves.add(vector)

    def _claim_for_saving(self, owner: Any, held: HeldRun | None) -> None:
        """Refuse unless ``owner`` is the only one through whom this budget is spent and saved; ``held`` is its run."""
        with self._lock:
            if self._held is not held:
                raise StateRefused("a run that is not in this state holds the budget; end it first, then save")
            if any(vector is not owner and vector.open for vector in self._serves):
                raise StateRefused(
                    "another sparse vector spends this budget, and a state saved now would not know; close it first"
                )
            if self._saved_by is not None and self._saved_by() is not owner:
                raise StateRefused(
                    "this budget is saved already, with another sparse vector or as a filter; a second state would be "
                    "the budget twice. Keep saving that one"
                )
            self._saved_by = weakref.ref(owner)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The filter that :meth:`state` described; anything else is refused."""
        if not isinstance(state, dict):
            raise StateRefused("the saved filter is not usable: give the dictionary that state() returned")
        try:
            found = cls._from_state(state)
            same = found._state() == state
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DPSelectError) as problem:
            raise StateRefused(f"the saved filter is not usable: {problem}") from None
        if not same:
            raise StateRefused("the saved filter is not usable: it has unknown fields or numbers in another form")
        return found

    def charge_lost_run(self, epsilon: float) -> None:
        """Count a run whose noise was lost before it could be settled, at what its answers cost."""
        with self._lock:
            self._books = self.add_run(self._books, epsilon)

    #: Whether the rule covers runs that go on under one noisy threshold after a ⊤.
    covers_kept_threshold: ClassVar[bool] = False
    #: Whether what an open run has cost so far is taken from :attr:`remaining`.
    takes_open_run: ClassVar[bool] = False

    def charge(self, cost: Any) -> None:
        """Count a release of this cost, before it is shown; raises ``BudgetExhausted`` and counts nothing if it does
        not fit.

        Parameters
        ----------
        cost : float, Loss, or what a mechanism gave back
            A number in the filter's own unit, a :class:`~dpselect.privacy.loss.Loss`, or a selection or release of
            this package, whose cost does not depend on what was drawn. Runs, sparse vectors, odometers and their losses
            are refused: what answers turned out to cost is known too late (THEORY §13).
        """
        # Before anything is compared: reading a cost may run code of the caller's.
        known = cost if type(cost) is float else declared(cost)
        self._check_process()
        with self._lock:
            counted = None
            while counted is None:
                books = self._books
                if self._held is not None:
                    raise StateRefused(
                        "an open run holds the rest of this budget; end the run before charging anything"
                    )
                after = self.add_cost(books, known)
                if not self.holds(after):
                    raise self._exhausted(known, drawn=not isinstance(cost, Loss) and isinstance(known, Declared))
                # In one step: a signal handler that charged in the meantime has changed the books; read them anew.
                if self._books is books and self._held is None: self._books = counted = after  # noqa: E701 # fmt: skip

    def open_run(self, watcher: Watcher, *, horizon: int | None = None) -> HeldRun:
        """Let one run of ``watcher`` start, and count what is due beforehand.

        While it is open the rest of the budget is its own; settle what is returned at the run's realised loss.
        """
        held = HeldRun(self)
        self._let_in(held, watcher, horizon)
        return held

    def _let_in(self, held: HeldRun, watcher: Watcher, horizon: int | None) -> None:
        self._check_process()
        with self._lock:
            self._held = held if self._held is None else self._held
            if self._held is not held:
                raise StateRefused("this filter already has an open run; end that one first")
            # From here on nothing else is counted, but by a signal handler that ends this very run and starts its own:
            # then what was worked out here is stale, and the hold is gone.
            try:
                held._allowed, books = self.check_run(watcher, horizon=horizon)
                self._books = books if self._held is held else self._books
            except BaseException:
                self._held = None if self._held is held else self._held
                raise

    def _set_aside(self, held: HeldRun, epsilon: float) -> bool:
        """Set aside more for an open run; a filter in memory has set aside all it has."""
        return False

    def _settle(self, held: HeldRun, epsilon: float) -> None:
        cost = run_cost(epsilon)
        with self._lock:
            if self._held is not held:
                return
            # An interruption between any two of these lines is mended by settling again, and whoever settles in between
            # leaves nothing to do: the books were worked out once, and the hold is given up last.
            books = self.add_run(self._books, cost)
            held._books = books if held._books is None else held._books
            self._books = held._books if self._held is held else self._books
            self._held = None if self._held is held else self._held

    def _check_process(self) -> None:
        # Before any lock is waited for: a thread of the parent may have held it when the child was forked.
        if self._process != process():
            raise forked()

    def _exhausted(self, cost: Any, *, drawn: bool = False) -> BudgetExhausted:
        loss = cost.loss if isinstance(cost, Declared) else cost
        shown = float(loss.epsilon if isinstance(loss, Loss) else loss)
        after = "it is drawn already, so do not show it" if drawn else "nothing was spent on it"
        return BudgetExhausted(
            f"the next release costs {cost!r} and does not fit: {self.spent!r} of {self.limit!r} is spent; {after}"
            f"{self._why(cost)}",
            spent=self.spent,
            budget=self.limit,
            next_cost=shown,
        )

    def _why(self, cost: Any) -> str:
        """What else to say of a cost that does not fit."""
        return ""
