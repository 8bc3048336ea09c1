"""A data set: where the rows are, the public facts about them, the budget, and what may be asked."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from dpselect.dataset.budget import Account, Budget, unit_of
from dpselect.dataset.describe import Description, describe
from dpselect.dataset.facts import FactChanges, Facts
from dpselect.dataset.file import laid_over, read_file
from dpselect.dataset.known import Known, Number
from dpselect.dataset.peak import Peak, PeakPlan
from dpselect.dataset.peak_planning import plan_peak
from dpselect.dataset.request import WatchRequest
from dpselect.dataset.scope import Scope
from dpselect.dataset.watch import WatchPlan, plan_watch
from dpselect.dataset.watch_answer import Watch
from dpselect.errors import DPSelectWarning, InvalidParameter, SourceError, refuse_given
from dpselect.mechanisms.mechanism import noise_of
from dpselect.mechanisms.selection import Goal
from dpselect.noise.entropy import SYSTEM_ENTROPY, Entropy
from dpselect.planning.knowledge import Profile
from dpselect.planning.plan import Plan
from dpselect.rounding import exact_number
from dpselect.tables import Candidates
from dpselect.tables.candidates import Every

if TYPE_CHECKING:
    from dpselect.ledger import Ledger, PrivacyUnit

#: Stands for a budget that is still to be made.
_UNMADE: Any = object()
#: What each budget was made for: no data set goes on with one that was made for others, or copied.
_LIMITS: weakref.WeakKeyDictionary[Budget, tuple[object, ...]] = weakref.WeakKeyDictionary()


class DatasetChanges(FactChanges, total=False):
    """What :meth:`Dataset.open` takes instead of what the file says."""

    total: Fraction | float | None
    entropy: Entropy | None
    ledger: Any
    anchor: str | Sequence[str] | None


@dataclass(frozen=True, repr=False, kw_only=True)
class Dataset(Facts):
    """Where the rows are, what is public about them, and what may be spent.

    Nothing is read before a question is asked, and then only what the question needs.

    Parameters
    ----------
    source, user, time, value, category, wide, ...
        See :class:`~dpselect.dataset.facts.Facts`.
    total : float, optional
        The most all answers together may cost, for as long as this object lives; with ``ledger``, for good.
    ledger : path, URL or Ledger, optional
        Where the budget is kept (docs/ledger.md). It must be there: ``Ledger.create`` or ``dpselect ledger create``
        makes one, once; beside it ``total`` says what that was made with.
    anchor : str or several, optional
        Entries that the ledger must have (``dpselect ledger verify`` prints the last): an older copy is refused. Of
        several data sets in a ledger they name the one that pays.
    entropy : Entropy, optional
        Where noise comes from: the operating system. With a ``SeededEntropy`` answers are reproducible, not private.

    Examples
    --------
    >>> import pyarrow
    >>> rows = pyarrow.table({"meter": ["a", "b"], "at": ["2013-01-02"] * 2, "kwh": [9.0, 8.0]})
    >>> homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=2, total=1500)
    >>> answer = homes.peak(epsilon=1000, start="2013-01-01", end="2013-01-03")
    >>> answer.label, homes.spent <= 1000
    ('2013-01-02', True)
    >>> print(answer)
    For which day is the mean of kwh over the population (each person counted up to 10) largest?
      2013-01-02
    ...
    """

    total: float | None = None
    entropy: Entropy | None = None
    ledger: Any = None
    anchor: str | Sequence[str] | None = None
    #: What was spent; a copy with other facts (``dataclasses.replace``) goes on with the same.
    budget: Budget = field(default=_UNMADE, compare=False)
    #: What the data-set file is called; None where there is no such file.
    described: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.budget is _UNMADE:
            object.__setattr__(self, "budget", Budget(None if self.ledger is not None else self.total))
            _LIMITS[self.budget] = self._limits
        elif not isinstance(self.budget, Budget) or _LIMITS.get(self.budget) != self._limits:
            # Of a copy with other facts: its budget is the same object, and so are the limits it was made with.
            raise InvalidParameter(
                "‹budget› is kept by a data set itself; ‹total›, ‹ledger› and ‹anchor› say what may be spent, once: "
                "make the data set anew to change them",
                parameter="total",
            )
        if self.ledger is not None and self.entropy is not None and noise_of(self.entropy) == "reproducible":
            raise InvalidParameter("‹ledger› does not go with seeded noise: such answers are not private; leave it out")
        super().__post_init__()

    @property
    def _limits(self) -> tuple[object, ...]:
        """What its budget was made for."""
        return self.total, self.ledger, self.anchor

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Whose privacy its budget counts, as a ledger keeps it."""
        return unit_of({name: getattr(self, name) for name in ("user", "adjacency", "wide", "maximum")})

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.value or self.measure!r})"

    @classmethod
    def open(cls, path: Path | str, **changes: Unpack[DatasetChanges]) -> Self:
        """The data set that a file describes, such as ``homes.toml``; ``changes`` count more than the file.

        A ledger that the file names must be there: one that is gone is not made anew, with a full budget, and it is not
        left out. It counts what is spent about each person as the file says who that is: that is not changed on the
        same ledger.
        """
        written = read_file(path)
        facts = laid_over(written, changes)
        if written.get("ledger") is not None and facts["ledger"] is None:
            raise InvalidParameter(
                "‹ledger› cannot be left out: the data-set file names one, and without it nobody would count this "
                "answer; write a data-set file without a ledger if that is meant",
                parameter="ledger",
            )
        if _elsewhere(written.get("ledger"), changes.get("ledger")):
            if "total" not in changes:
                # That of the file's own ledger.
                facts.pop("total", None)
            if "anchor" not in changes:
                facts.pop("anchor", None)
            warnings.warn(
                f"the data-set file names the ledger {Path(written['ledger']).name!r}, and another one is charged: "
                "what both allow adds up",
                DPSelectWarning,
                stacklevel=2,
            )
        else:
            if written.get("ledger") is not None:
                unit_of(written).check(unit_of(facts))
            given = [facts.get("anchor"), written.get("anchor")]
            facts["anchor"] = tuple(dict.fromkeys(one for one in given if one is not None)) or None
        if facts.get("total") is not None:
            facts["total"] = exact_number("total", facts["total"])
        found = cls(facts.pop("source"), **facts)
        object.__setattr__(found, "described", Path(path).stem)
        return found

    def peak(
        self,
        *,
        epsilon: Number | None = None,
        goal: Goal = "largest",
        top: int = 1,
        how_much: bool = False,
        mechanism: str | None = None,
        between: tuple[Number, Number] | None = None,
        like: Profile | None = None,
        plan: Plan | None = None,
        start: str | None = None,
        end: str | None = None,
        every: Every | None = None,
        categories: Sequence[str] | None = None,
        anyway: bool = False,
        key: str | None = None,
        afresh: bool = False,
    ) -> Peak:
        """Which period (or category) is largest: one answer, at a pure cost of at most ``epsilon``.

        The mechanism that is expected to do best is used, or the one that is asked for. An answer that would hardly be
        better than a guess is refused and costs nothing, unless asked for ``anyway``.

        Parameters
        ----------
        epsilon, goal, top, how_much, mechanism, between, like, plan
            Those of :meth:`plan_peak`.
        start, end, every, categories
            Those of :meth:`candidates`.
        anyway : bool
            Ask also where the answer would hardly be better than a guess.
        key, afresh : str, bool
            With a ledger the same question finds its first answer and costs nothing; with another ``key``, or
            ``afresh``, it is drawn and paid again.
        """
        self.account.refuse_children()
        planned = self.plan_peak(
            self.candidates(start=start, end=end, every=every, categories=categories),
            epsilon=epsilon,
            goal=goal,
            top=top,
            how_much=how_much,
            mechanism=mechanism,
            between=between,
            like=like,
            plan=plan,
        )
        return planned.ask(anyway=anyway, key=key, afresh=afresh)

    def plan_peak(
        self,
        candidates: Candidates,
        *,
        epsilon: Number | None = None,
        goal: Goal = "largest",
        top: int = 1,
        how_much: bool = False,
        mechanism: str | None = None,
        between: tuple[Number, Number] | None = None,
        like: Profile | None = None,
        plan: Plan | None = None,
        compare: bool = False,
    ) -> PeakPlan:
        """What asking for the peak would cost and how good the answer would be; reads nothing, spends nothing.

        Parameters
        ----------
        candidates : Calendar, Cycle or Categories
            The public periods or categories, as from :meth:`candidates`.
        epsilon : number
            The most the answer may cost.
        goal : {"largest", "smallest"}
            Which end is looked for.
        top : int
            How many to name, in order; each costs an equal part of ε.
        how_much : bool
            Also release the values of those named, from half of ε.
        mechanism : {"gaussian", "permute-and-flip", "exponential", "laplace"}, optional
            How the winner is picked; if left out, the one that is expected to do best.
        between, like
            What is known beforehand (:class:`~dpselect.dataset.known.Known`): between which values the series lies, or
            which public series it follows.
        plan : Plan, optional
            Mechanism, noise and ε from a plan, as ``planning.load_plan`` reads it.
        compare : bool
            Try every mechanism on simulated data, also those that cannot change the advice.
        """
        return plan_peak(
            self.scope(candidates),
            epsilon=epsilon,
            goal=goal,
            top=top,
            how_much=how_much,
            mechanism=mechanism,
            known=Known(between=between, like=like),
            plan=plan,
            compare=compare,
        )

    def watch(
        self,
        threshold: Number | None = None,
        *,
        budget: Number | None = None,
        delta: Number = 0,
        mechanism: str | None = None,
        how_much: bool = False,
        expect: Number | None = None,
        between: tuple[Number, Number] | None = None,
        like: Profile | None = None,
        clip: tuple[Number, Number] | None = None,
        noise: tuple[Number, Number | None] | None = None,
        resample: bool | None = None,
        plan: Plan | None = None,
        start: str | None = None,
        end: str | None = None,
        every: Every | None = None,
        anyway: bool = False,
        key: str | None = None,
        afresh: bool = False,
    ) -> Watch:
        """Which periods reach the ``threshold``, within a ``budget`` for all answers together.

        The mechanism that is expected to do best is used. Answers that would hardly be better than a guess are refused
        and cost nothing, unless asked for ``anyway``.

        Parameters
        ----------
        threshold, budget, delta, mechanism, how_much, expect, between, like, clip, noise, resample, plan
            Those of :meth:`plan_watch`.
        start, end, every
            Those of :meth:`candidates`, both ends included.
        anyway : bool
            Ask also where the answers would hardly be better than a guess.
        key, afresh : str, bool
            With a ledger: those of :meth:`peak`. A watch that was interrupted goes on where its answers end.
        """
        self.account.refuse_children()
        planned = self.plan_watch(
            self.candidates(start=start, end=end, every=every),
            threshold=threshold,
            budget=budget,
            delta=delta,
            mechanism=mechanism,
            how_much=how_much,
            expect=expect,
            between=between,
            like=like,
            clip=clip,
            noise=noise,
            resample=resample,
            plan=plan,
        )
        return planned.ask(key=key, afresh=afresh, anyway=anyway)

    def plan_watch(
        self,
        candidates: Candidates,
        *,
        threshold: Number | None = None,
        budget: Number | None = None,
        delta: Number = 0,
        mechanism: str | None = None,
        how_much: bool = False,
        expect: Number | None = None,
        between: tuple[Number, Number] | None = None,
        like: Profile | None = None,
        clip: tuple[Number, Number] | None = None,
        noise: tuple[Number, Number | None] | None = None,
        resample: bool | None = None,
        plan: Plan | None = None,
        progress: Callable[[float], None] = lambda share: None,
    ) -> WatchPlan:
        """What watching the threshold would cost and how good the answers would be; reads nothing, spends nothing.

        Parameters
        ----------
        candidates : Calendar, Cycle or Categories
            The public periods or categories, as from :meth:`candidates`.
        threshold, budget : number
            The line, in the readings' unit, and the most all answers may cost.
        delta : number
            δ of the guarantee; 0 is pure.
        mechanism : {"set", "exponential", "laplace", "gaussian"}, optional
            How the answers are drawn; if left out, the mechanism expected to do best.
        how_much : bool
            Also release the values of those above, from half of the budget.
        expect, between, like
            What is known beforehand (:class:`~dpselect.dataset.known.Known`): how many are above, or which share;
            between which values the series lies; which public series it follows.
        clip, noise, resample
            Gaussian noise by hand (:class:`~dpselect.dataset.request.WatchRequest`).
        plan : Plan, optional
            A saved plan that replaces the above, as ``planning.load_plan`` reads it.
        progress : callable
            Told the share done, from 0 to 1.
        """
        request = WatchRequest(
            threshold=threshold,
            budget=budget,
            delta=delta,
            mechanism=mechanism,
            how_much=how_much,
            expect=expect,
            between=between,
            like=like,
            clip=clip,
            noise=noise,
            resample=resample,
            plan=plan,
        )
        scope = self.scope(candidates)
        return plan_watch(scope.public.family, request, questions=len(candidates), scope=scope, progress=progress)

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        goal: Goal = "largest",
        top: int = 1,
        threshold: Number | None = None,
        budget: Number | None = None,
        delta: Number = 0,
        how_much: bool = False,
        mechanism: str | None = None,
        expect: Number | None = None,
        between: tuple[Number, Number] | None = None,
        like: Profile | None = None,
        clip: tuple[Number, Number] | None = None,
        noise: tuple[Number, Number | None] | None = None,
        resample: bool | None = None,
        plan: Plan | None = None,
        start: str | None = None,
        end: str | None = None,
        every: Every | None = None,
        categories: Sequence[str] | None = None,
    ) -> Any:
        """The plan for :meth:`watch` where a ``threshold`` is given, otherwise for :meth:`peak`; spends nothing.

        The parameters are those of :meth:`plan_watch` or :meth:`plan_peak`, and of :meth:`candidates`.

        >>> import pyarrow
        >>> rows = pyarrow.table({"meter": ["a"], "at": ["2013-01-02"], "kwh": [9.0]})
        >>> homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=5000)
        >>> plan = homes.plan(epsilon=0.1, start="2013-01-01", end="2013-12-31")
        >>> plan.plans["permute-and-flip"].prediction.hits > plan.plans["gaussian"].prediction.hits
        True
        """
        candidates = self.candidates(start=start, end=end, every=every, categories=categories)
        if threshold is None and (plan is None or plan.asked == "largest"):
            only_watches = {"budget": budget, "delta": delta or None, "expect": expect, "clip": clip, "noise": noise}
            refuse_given("a peak; give ‹threshold›, or", **only_watches, resample=resample)
            return self.plan_peak(
                candidates,
                epsilon=epsilon,
                goal=goal,
                top=top,
                how_much=how_much,
                mechanism=mechanism,
                between=between,
                like=like,
                plan=plan,
                compare=True,
            )
        only_peaks = {"goal": None if goal == "largest" else goal, "top": None if top == 1 else top}
        refuse_given("a watch, whose cost is its ‹budget›", epsilon=epsilon)
        refuse_given("a watch", **only_peaks)
        return self.plan_watch(
            candidates,
            threshold=threshold,
            budget=budget,
            delta=delta,
            mechanism=mechanism,
            how_much=how_much,
            expect=expect,
            between=between,
            like=like,
            clip=clip,
            noise=noise,
            resample=resample,
            plan=plan,
        )

    def describe(self, **changes: Unpack[FactChanges]) -> Description:
        """For the curator only: what can be read under these facts, and what looks wrong. Never publish it.

        ``changes`` are facts to try instead, such as other ``start`` and ``end``.
        """
        facts = {one.name: getattr(self, one.name) for one in fields(Facts)}
        given = {name: value for name, value in facts.items() if value is not None and value is not False}
        found = laid_over(given, changes)
        return describe(found.pop("source"), found)

    @property
    def spent(self) -> float:
        """What the answers so far have cost, rounded up; with a ledger, everybody's."""
        book = self.book
        return self.budget.spent if book is None else book.balance().spent

    @property
    def book(self) -> Ledger | None:
        """The ledger, opened; None where there is none."""
        return self.account.book

    @functools.cached_property
    def account(self) -> Account:
        """What pays for its answers."""
        return Account(
            budget=self.budget,
            ledger=self.ledger,
            total=self.total,
            anchor=self.anchor,
            unit=None if self.ledger is None else self.privacy_unit,
            old_names=(self.described, self.name),
            entropy=self.entropy or SYSTEM_ENTROPY,
        )

    def scope(self, candidates: Candidates) -> Scope:
        """What a question about these candidates is about, all of it public: reads nothing."""
        return Scope(self, candidates, self.account)


def _elsewhere(named: Any, given: Any) -> bool:
    """Whether two places of a ledger differ, as far as they are said by name."""
    if not isinstance(named, str | Path) or not isinstance(given, str | Path):
        return False
    try:
        from dpselect.ledger.database import same_place
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    return not same_place(named, given)
