"""A data set: where the rows are, the public facts about them, the budget, and what may be asked."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dpselect.dataset.budget import Budget, open_book, unit_of
from dpselect.dataset.facts import Facts
from dpselect.dataset.known import Known
from dpselect.errors import DPSelectWarning, InvalidParameter, SourceError, refuse_given, refuse_unknown
from dpselect.mechanisms.mechanism import noise_of

if TYPE_CHECKING:
    from dpselect.dataset.describe import Description
    from dpselect.dataset.line import Line
    from dpselect.dataset.peak import Peak
    from dpselect.dataset.peak_plan import PeakPlan
    from dpselect.dataset.scope import Scope
    from dpselect.dataset.watch import Watch
    from dpselect.dataset.watch_plan import WatchPlan
    from dpselect.ledger import Ledger, PrivacyUnit
    from dpselect.mechanisms.selection import Goal
    from dpselect.noise.entropy import Entropy
    from dpselect.tables import Candidates
    from dpselect.tables.candidates import Every


#: Stands for a budget that is still to be made.
_UNMADE: Any = object()
#: What each budget was made for: no data set goes on with one that was made for others, or copied.
_LIMITS: weakref.WeakKeyDictionary[Budget, tuple[object, ...]] = weakref.WeakKeyDictionary()
#: What may be said of a question: where it is asked, and what.
_WHERE = ("start", "end", "every", "categories")
_PEAK = ("epsilon", "goal", "top", "how_much", "mechanism", "between", "like", "expect", "plan", "compare", "known")
_WATCH = ("threshold", "budget", "known", "how_much", "line", "anyway", "key", "afresh")


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
    def open(cls, path: Path | str, **changes: Any) -> Self:
        """The data set that a file describes, such as ``homes.toml``; ``changes`` count more than the file.

        A ledger that the file names must be there: one that is gone is not made anew, with a full budget, and it is not
        left out. It counts what is spent about each person as the file says who that is: that is not changed on the
        same ledger.
        """
        from dpselect.dataset.file import laid_over, read_file
        from dpselect.rounding import exact_number

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
        epsilon: Fraction | float | None = None,
        goal: Goal = "largest",
        anyway: bool = False,
        key: str | None = None,
        afresh: bool = False,
        **asked: Any,
    ) -> Peak:
        """Which period (or category) is largest: one answer, at a pure cost of at most ``epsilon``.

        The mechanism that is expected to do best is used, or the one that is asked for. An answer that would hardly be
        better than a guess is refused and costs nothing, unless asked for ``anyway``. What else is ``asked`` are the
        parameters of :meth:`plan_peak` and ``start``, ``end``, ``every`` and ``categories`` of :meth:`candidates`.
        With a ledger the same question finds its first answer and costs nothing; with another ``key``, or ``afresh``,
        it is drawn and paid again.
        """
        self.refuse_children()
        refuse_unknown("peak", asked, (*_PEAK, *_WHERE), look="help(Dataset.plan_peak)")
        where = {name: asked.pop(name) for name in _WHERE if name in asked}
        plan = self.plan_peak(self.candidates(**where), epsilon=epsilon, goal=goal, **asked)
        return plan.ask(anyway=anyway, key=key, afresh=afresh)

    def plan_peak(self, candidates: Candidates, *, epsilon: Fraction | float | None = None, **asked: Any) -> PeakPlan:
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
        from dpselect.dataset.peak_plan import plan_peak

        refuse_unknown("peak", asked, _PEAK, look="help(Dataset.plan_peak)")
        if said := {name: asked.pop(name) for name in ("expect", "between", "like") if name in asked}:
            asked["known"] = Known(**said)
        return plan_peak(self.scope(candidates), epsilon=epsilon, **asked)

    def watch(
        self,
        threshold: Fraction | float | None = None,
        *,
        budget: Fraction | float | None = None,
        known: Known | None = None,
        how_much: bool = False,
        line: Line | None = None,
        anyway: bool = False,
        key: str | None = None,
        afresh: bool = False,
        **candidates: Any,
    ) -> Watch:
        """Which periods reach the ``threshold``, asked in order within a pure ``budget``.

        The mechanism that is expected to do best is used. Answers that would hardly be better than a guess are refused
        and cost nothing, unless asked for ``anyway``.

        Parameters
        ----------
        threshold, budget : number
            The line, in the readings' unit, and the most all answers may cost.
        known : Known, optional
            What is known beforehand: ``Known(expect=0.1)`` says how many are above; see there for more.
        how_much : bool
            Also release the values of those above, from half of the budget.
        line : Line, optional
            All of this instead, and what is seldom said: a δ, a mechanism, noise by hand, a plan.
        key, afresh
            With a ledger: those of :meth:`peak`. A watch that was interrupted goes on where its answers end.
        **candidates
            ``start``, ``end`` and ``every`` of :meth:`candidates`, both ends included.
        """
        from dpselect.dataset.line import Line

        self.refuse_children()
        for name in candidates.keys() & {one.name for one in fields(Line)}:
            given = "threshold=…, budget=…, " if name != "plan" else ""
            raise InvalidParameter(f"watch takes ‹{name}› in a line: line=Line({given}{name}=…)", parameter=name)
        refuse_unknown("watch", candidates, (*_WATCH, *_WHERE[:3]), look="help(Dataset.watch)")
        if line is None:
            line = Line(threshold=threshold, budget=budget, known=known or Known(), how_much=how_much)
        else:
            said = {"threshold": threshold, "budget": budget, "known": known, "how_much": how_much or None}
            refuse_given("‹line›, which says it", **said)
        return self.plan_watch(line, self.candidates(**candidates)).ask(key=key, afresh=afresh, anyway=anyway)

    def plan_watch(
        self, line: Line, candidates: Candidates, *, progress: Callable[[float], None] = lambda share: None
    ) -> WatchPlan:
        """What watching the line would cost and how good the answers would be; reads nothing, spends nothing."""
        from dpselect.dataset.watch_plan import plan_watch

        scope = self.scope(candidates)
        return plan_watch(scope.public.family, line, questions=len(candidates), scope=scope, progress=progress)

    def plan(
        self, *, start: str | None = None, end: str | None = None, every: Every | None = None, **asked: Any
    ) -> Any:
        """The plan for :meth:`watch` where a ``threshold`` is given, otherwise for :meth:`peak`; spends nothing.

        >>> import pyarrow
        >>> rows = pyarrow.table({"meter": ["a"], "at": ["2013-01-02"], "kwh": [9.0]})
        >>> homes = Dataset(rows, user="meter", time="at", value="kwh", cap=10, population=5000)
        >>> plan = homes.plan(epsilon=0.1, start="2013-01-01", end="2013-12-31")
        >>> plan.plans["permute-and-flip"].prediction.hits > plan.plans["gaussian"].prediction.hits
        True
        """
        from dpselect.dataset.line import Line

        categories = asked.pop("categories", None)
        candidates = self.candidates(start=start, end=end, every=every, categories=categories)
        made = asked.get("plan")
        if "threshold" in asked or (made is not None and made.asked == "crossings"):
            refuse_unknown("watch", asked, [one.name for one in fields(Line)], look="help(Line)")
            return self.plan_watch(Line(**asked), candidates)
        return self.plan_peak(candidates, compare=True, **asked)

    def describe(self, **changes: Any) -> Description:
        """For the curator only: what can be read under these facts, and what looks wrong. Never publish it.

        ``changes`` are facts to try instead, such as other ``start`` and ``end``.
        """
        from dpselect.dataset.describe import describe
        from dpselect.dataset.file import laid_over

        facts = {one.name: getattr(self, one.name) for one in fields(Facts) if one.name != "source"}
        given = {name: value for name, value in facts.items() if value is not None and value is not False}
        return describe(self.source, **laid_over(given, changes))

    @property
    def spent(self) -> float:
        """What the answers so far have cost, rounded up; with a ledger, everybody's."""
        book = self.book
        return self.budget.spent if book is None else book.balance().spent

    @functools.cached_property
    def book(self) -> Ledger | None:
        """The ledger, opened; None where there is none."""
        if self.ledger is None:
            return None
        return open_book(
            self.ledger,
            total=self.total,
            anchor=self.anchor,
            unit=self.privacy_unit,
            old_names=(self.described, self.name),
        )

    def scope(self, candidates: Candidates) -> Scope:
        """What a question about these candidates is about, all of it public: reads nothing."""
        from dpselect.dataset.scope import Scope

        return Scope(self, candidates)

    def refuse_children(self) -> None:
        """Refuses in a forked child, which has no share in its parent's budget; processes may share a ledger."""
        if self.ledger is None:
            self.budget.refuse_children()


def _in_own_words(made: Callable[..., None]) -> Callable[..., None]:
    """The same, and a fact that is none is refused in the package's own words; its signature stays."""

    @functools.wraps(made)
    def make(self: Dataset, *source: Any, **facts: Any) -> None:
        refuse_unknown("a data set", facts, [one.name for one in fields(self)], look="help(Dataset)")
        made(self, *source, **facts)

    return make


Dataset.__init__ = _in_own_words(Dataset.__init__)  # type: ignore[method-assign]


def _elsewhere(named: Any, given: Any) -> bool:
    """Whether two places of a ledger differ, as far as they are said by name."""
    if not isinstance(named, str | Path) or not isinstance(given, str | Path):
        return False
    try:
        from dpselect.ledger.database import same_place
    except ImportError:
        raise SourceError("a ledger needs SQLAlchemy; install dpselect[ledger]") from None
    return not same_place(named, given)
