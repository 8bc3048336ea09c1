"""The odometer: what everything shown so far has cost, never below the truth; it may be shown, too."""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpselect.checks import FloatArray, refuse
from dpselect.composition.costs import Costed, OpenRun, plain_cost, stated_loss
from dpselect.composition.loss_table import loss_table
from dpselect.errors import StateRefused
from dpselect.ownership import owned_here, process
from dpselect.privacy.loss import Loss, RealisedLoss
from dpselect.rounding import in_units, round_up

if TYPE_CHECKING:
    from dpselect.composition.budgeted_run import RunRecord
    from dpselect.composition.sparse_vector import SparseVector


@dataclass
class _Followed:
    """A run that is followed, and the most it has said so far: a cost that was paid does not come back."""

    run: OpenRun
    most: Loss

    def read(self) -> Loss:
        now = _stated_so_far(self.run)
        self.most = Loss(epsilon=max(self.most.epsilon, now.epsilon), delta=max(self.most.delta, now.delta))
        return self.most


class Odometer:
    """Adds up what releases cost (THEORY §4).

    Each figure that is added must be a function of what was released (a loss known before, or the ex-post loss of
    the very output); the total then is one too, and may be published next to the outputs. Sums are exact and
    rounded up once, when read: a million additions lose nothing.

    The total says what happened; it is not a promise about what will. A *filter* keeps a promise.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.2, sigma_query=0.35)
    >>> odometer = Odometer()
    >>> odometer.add(watcher.loss(below=9, above=1))
    >>> odometer.add(Loss(epsilon=0.1, delta=1e-6))
    >>> odometer.loss
    RealisedLoss(epsilon=0.13..., delta=1e-06)
    """

    def __init__(self) -> None:
        #: ε and δ in multiples of 2^-1074, and the runs that are followed: replaced together, so that no run is counted
        #: twice or not at all.
        self._books: tuple[int, int, tuple[_Followed, ...]] = 0, 0, ()
        #: Runs already counted, for as long as somebody holds them.
        self._finished: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()
        self._process = owned_here(self)
        self._count = 0

    def __reduce__(self) -> str:
        raise StateRefused("a copy of an odometer would miss what is counted later; share the one there is")

    def __repr__(self) -> str:
        where = "of another process" if self._process != process() else f"at {self.loss}"
        return f"<Odometer {where} after {self._count} releases>"

    def add(self, cost: Costed | Loss | float) -> None:
        """Count one finished release.

        Parameters
        ----------
        cost : float, Loss, or anything with a ``loss``
            ε, or (ε, δ), or what a mechanism gave back. Infinite, negative or NaN costs are refused and nothing
            is counted; so is a run that is still open (:meth:`follow` it), and one that is counted already.
        """
        self._check_process()
        with self._lock:
            run = None if type(cost) is float or not isinstance(cost, OpenRun) else cost
            if run is not None:
                if run.open and not callable(run.open):
                    raise refuse("cost", cost, "finished, since an open run goes on costing: use follow()")
                self._check_new(run)
            loss = stated_loss(cost)
            counted = None
            while counted is None:
                books = self._books
                after = books[0] + in_units(loss.epsilon), books[1] + in_units(loss.delta), books[2]
                # In one step: a signal handler that added in the meantime has changed the books; they are read anew.
                if self._books is books: self._books = counted = after  # noqa: E701 # fmt: skip
            self._count += 1
            if run is not None:
                self._remember(run)

    def follow(self, run: OpenRun) -> None:
        """Count a run that is still answering: its cost so far is in every reading, its last one stays.

        >>> from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold
        >>> from dpselect import QueryFamily
        >>> family = QueryFamily(lower=0, upper=100, sensitivity=1)
        >>> run = LaplaceAboveThreshold(family, threshold=50, scale_threshold=1.0, scale_query=2.0).start()
        >>> odometer = Odometer()
        >>> odometer.follow(run)
        >>> odometer.loss.epsilon, run.ask(99), odometer.loss.epsilon
        (0.0, <Verdict.ABOVE: 'above'>, 0.5)
        """
        if not isinstance(run, OpenRun):
            raise refuse("run", run, "an open run, with a loss and an open state")
        self._check_process()
        with self._lock:
            self._check_new(run)
            entry = _Followed(run, _stated_so_far(run))
            counted = None
            while counted is None:
                books = self._books
                after = books[0], books[1], (*books[2], entry)
                if self._books is books: self._books = counted = after  # noqa: E701 # fmt: skip
            self._count += 1

    def _check_process(self) -> None:
        # Before the lock, which a thread of the parent may have held. Two odometers that each see half of the releases
        # would both be below the truth.
        if self._process != process():
            raise StateRefused(
                "this odometer belongs to the process that made it; what a forked child releases would be missing from "
                "one of the two"
            )

    def _check_new(self, run: object) -> None:
        if any(entry.run is run for entry in self._books[2]) or self._finished.get(id(run)) is run:
            raise refuse("run", run, "counted once; this odometer has it already")

    def _remember(self, run: object) -> None:
        # What cannot be referred to weakly is let go: adding it again would count it twice, never too little.
        with contextlib.suppress(TypeError):
            self._finished[id(run)] = run

    @property
    def releases(self) -> int:
        """How many releases and runs were counted."""
        return self._count

    @property
    def loss(self) -> RealisedLoss:
        """The total, open runs included, rounded up."""
        self._check_process()
        with self._lock:
            books = self._books
            epsilon, delta, followed = books
            still_open, so_far = [], []
            for entry in followed:
                # Asked first: a run that ends between the two reads is then counted again next time, at its last loss.
                answering = entry.run.open
                loss = entry.read()
                if answering:
                    still_open.append(entry)
                    so_far.append(loss)
                else:
                    epsilon, delta = epsilon + in_units(loss.epsilon), delta + in_units(loss.delta)
                    self._remember(entry.run)
            after = epsilon, delta, tuple(still_open)
            # Left for the next reading where something was added in the meantime.
            self._books = after if self._books is books else self._books
            for loss in so_far:
                epsilon, delta = epsilon + in_units(loss.epsilon), delta + in_units(loss.delta)
            return RealisedLoss(epsilon=round_up(epsilon), delta=min(1.0, round_up(delta)))


def _stated_so_far(run: OpenRun) -> Loss:
    """As :func:`stated_loss`, but what has become infinite stays so: the total then is infinite, and says it."""
    loss = run.loss
    if isinstance(loss, Loss) and math.isinf(loss.epsilon):
        return Loss(epsilon=math.inf, delta=plain_cost("delta", loss.delta, most=1.0))
    return stated_loss(loss)


def spend_curve(svt: SparseVector, *, points: int = 60) -> tuple[NDArray[np.int64], FloatArray]:
    """How many questions were answered, and what they had cost by then; never below the truth.

    Inside a run the cost is computed at up to ``points`` questions. A run whose mechanism is no longer the one in
    use is counted in full from its first question.

    Examples
    --------
    >>> from dpselect import GaussianAboveThreshold, QueryFamily, SparseVector
    >>> family = QueryFamily(lower=0, upper=1, sensitivity=1e-3)
    >>> watcher = GaussianAboveThreshold(family, threshold=0.5, sigma_threshold=0.02, sigma_query=0.02)
    >>> svt = SparseVector(watcher, budget=9.0)
    >>> _ = svt.ask_many([0.0, 1.0, 0.0])
    >>> questions, epsilon = spend_curve(svt)
    >>> questions.tolist(), bool(epsilon[-1] >= svt.spent)
    ([0, 1, 2, 3], True)
    """
    records = list(svt.runs)
    if svt.open_run is not None:
        records.append(svt.open_run)
    lengths = [run.below + run.above for run in records]
    start = svt.questions - sum(lengths)
    spent = max(0.0, svt.spent - sum(run.epsilon for run in records))
    questions, epsilon = [np.array([start])], [np.array([spent])]
    tops = svt.tops
    for run, length in zip(records, lengths, strict=True):
        inside = np.unique(np.linspace(1, length, min(length, points)).astype(np.int64))
        first, last = np.searchsorted(tops, [start, start + length])
        costs = _inside(svt, run, tops[first:last] - start, inside)
        questions.append(start + inside)
        epsilon.append(spent + np.maximum.accumulate(costs))
        start, spent = start + length, spent + run.epsilon
    # Covers the rounding of these sums, which are for plots; what was spent is added exactly elsewhere.
    return np.concatenate(questions), np.concatenate(epsilon) * (1.0 + 1e-10)


def _inside(svt: SparseVector, run: RunRecord, tops: NDArray[np.int64], inside: NDArray[np.int64]) -> FloatArray:
    """What a run with these answers above had cost after so many of its questions."""
    table = loss_table(svt.watcher)
    ended_alike = abs(table.loss(run.below, run.above) - run.epsilon) <= 1e-9 * run.epsilon
    if len(tops) != run.above or not ended_alike:
        return np.full(len(inside), run.epsilon)
    above = np.searchsorted(tops, inside, side="left")
    pairs = zip((inside - above).tolist(), above.tolist(), strict=True)
    return np.array([min(table.loss(below, tops_so_far), run.epsilon) for below, tops_so_far in pairs])
