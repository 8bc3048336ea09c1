"""Which ones reach the line, how much they are where that was asked: the answers."""

from __future__ import annotations

import functools
import math
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpselect.dataset import how_much, rows
from dpselect.dataset.answer import Answer
from dpselect.dataset.budget import NOBODY_REMEMBERS, not_remembered
from dpselect.dataset.watch_words import noise, report
from dpselect.dataset.whole import WholeVector
from dpselect.errors import BudgetExhausted, InvalidData, InvalidParameter, StateRefused, refuse_given
from dpselect.mechanisms.mechanism import noise_of
from dpselect.mechanisms.run import Verdict
from dpselect.noise.entropy import SYSTEM_ENTROPY
from dpselect.privacy.loss import Loss
from dpselect.rounding import at_most

if TYPE_CHECKING:
    from dpselect.composition.sparse_vector import SparseVector
    from dpselect.dataset.kept import KeptWatch
    from dpselect.dataset.watch_plan import WatchPlan
    from dpselect.ledger import Ledger
    from dpselect.noise.entropy import Entropy
    from dpselect.tables import BoundedQuery, CuratorReport

#: So many values fit an entry of a ledger, however long their numbers are.
MOST_VALUES = 2000


@dataclass(kw_only=True, repr=False)
class Watch(Answer):
    """A watch and what it has answered so far.

    Attributes
    ----------
    above : list of int
        Places, from 0, of the questions answered ⊤; :attr:`labels` has their names.
    amounts : list of float, optional
        Their values with noise, in the readings' unit, where they were asked for; each within ``margin`` of the truth
        95 times of 100.
    spent : list of float
        ε spent after each answer.
    answered : int
        How many questions were answered.
    ended : bool
        Whether the budget ended before the questions did.
    """

    plan: WatchPlan
    vector: SparseVector | WholeVector
    spent: list[float] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    amounts: list[float] | None = None
    answered: int = 0
    ended: bool = False
    examine: Callable[[], CuratorReport] | None = None
    keep: bool = True
    kept: KeptWatch | None = None
    #: How many were answered ⊤.
    count: int = 0
    #: Why the values are missing, where they were asked for.
    without_values: str = ""
    _spent_on_values: float = 0.0

    as_report = report

    def __repr__(self) -> str:
        return f"<Watch {self.count} of {self.answered} above {self.plan.line}>"

    @property
    def repeating(self) -> bool:
        """Whether the next answer is in the ledger already."""
        return self.kept is not None and self.kept.repeating

    @property
    def can_ask(self) -> bool:
        """Whether one more question may be asked."""
        return self.repeating or ((self.kept is None or not self.kept.over) and self.vector.can_ask)

    @property
    def cost(self) -> float:
        """What the answers cost, those before a restart included, rounded up."""
        if self.kept is not None:
            return self.kept.spent(self.vector)
        extra = self._spent_on_values
        return math.nextafter(self.vector.spent + extra, math.inf) if extra else self.vector.spent

    @property
    def margin(self) -> float | None:
        """The values lie within this of the truth 95 times of 100, in the readings' unit; None without values."""
        return self.plan.margin_of(self.count) if self.amounts else None

    def ask(self, value: float | Fraction, *, name: str | int | None = None) -> bool:
        """One question, with its public name if it has one: whether it is answered above the line."""
        if self.kept is not None and self.kept.repeating:
            above = self.kept.repeat(name)
        else:
            above = self.vector.ask(value) is Verdict.ABOVE
            if self.kept is not None:
                self.kept.add(above, name)
        self.count += above
        if self.keep:
            if above:
                self.above.append(self.answered)
            self.spent.append(self.cost)
        self.answered += 1
        return above

    def settle(self, *, ended: bool) -> None:
        """Ends the watch in the ledger, where there is one: down to what the answers cost.

        ``ended`` says that there is nothing more to ask; otherwise the same watch may go on later.
        """
        if self.kept is not None:
            self.kept.settle(self.vector, ended=ended)

    @contextmanager
    def abandoned_with_care(self) -> Iterator[None]:
        """Leaves the ledger as it should be where this fails or is interrupted; the failure then says what it holds."""
        try:
            yield
        except BaseException as failure:
            if self.kept is not None:
                failure.add_note(self.kept.give_up(self.vector, failure, ended=self.ended))
            raise

    def add_amounts(self, read: Callable[[], BoundedQuery], *, entropy: Entropy) -> None:
        """The values of those named, with noise that is drawn once all names are there."""
        plan, named = self.plan, list(self.above)
        if not named:
            self.amounts = []
            return

        def draw() -> list[float]:
            drawn = how_much.draw(plan.release(len(named)), read().values[named], entropy=entropy)
            return [one * float(plan.unit) for one in drawn]

        if self.kept is None:
            self._spent_on_values, self.amounts = plan.asked.part, draw()
        elif len(named) > MOST_VALUES:  # known before they are drawn: that drawn ones are refused would tell of them
            self.without_values = "they are more than an entry of the ledger holds"
        else:
            try:
                self.amounts = self.kept.values(draw, read=read)
            except BudgetExhausted:  # the names stand
                self.without_values = "others have used what was left in the ledger"

    @property
    def clearly_below(self) -> tuple[int, ...]:
        """Places of those named whose released value lies below the line by more than its margin."""
        line, within = self.plan.threshold * float(self.plan.unit), self.margin or 0.0
        return tuple(place for place, one in zip(self.above, self.amounts or (), strict=False) if one + within < line)

    @property
    def repeated(self) -> bool:
        """Whether every answer is one that the ledger had."""
        return self.kept is not None and self.kept.repeated >= self.answered > 0

    @property
    def drawn_before(self) -> dict[str, str] | None:
        """How the answers that are repeated were drawn, where that is not as planned now."""
        if self.kept is None or not self.kept.repeated or self.kept.answers.by_then == self.kept.answers.by:
            return None
        return self.kept.answers.by_then

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of what was answered above."""
        return tuple(self.name(place) for place in self.above)

    def name(self, place: int) -> str:
        """What question ``place`` is called."""
        scope = self.plan.scope
        return f"question {place + 1}" if scope is None else scope.candidates.labels[place]

    @property
    def exhaustion(self) -> str:
        """What to say where the budget ended first."""
        return (
            f"budget exhausted: ε = {at_most(self.cost)} of {at_most(self.plan.budget)} spent after "
            f"{self.answered:,} answers; the next question does not fit and was not asked"
        )

    def to_dict(self) -> dict[str, Any]:
        """How it ended, as plain values."""
        plan, weakness = self.plan, self.plan.weakness
        kept: dict[str, Any] = {}
        if self.kept is not None:
            kept = {"ledger_entry": self.kept.number, "repeated": self.kept.repeated}
        elif self.vector.noise != "reproducible":
            told = NOBODY_REMEMBERS if plan.scope is None else not_remembered(plan.scope.dataset.budget)
            kept = {"ledger": told}
        drawn = self.drawn_before
        return {
            **plan.asked_about(),
            "stopped": "budget exhausted" if self.ended else "end of input",
            "questions": self.answered,
            "above": self.count,
            **({} if self.amounts is None else {"amounts": self.amounts, "amount_margin": self.margin}),
            **({"clearly_below": [self.name(one) for one in self.clearly_below]} if self.amounts else {}),
            "spent": self.cost,
            "budget": plan.shown_budget,
            "noise": self.vector.noise,
            **(plan.noise_chosen() if drawn is None or not self.repeated else {}),
            **({} if drawn is None else {"drawn_before": drawn}),
            **kept,
            **({} if weakness is None else {"note": weakness}),
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Each verdict, which says whether it is private at all, and then how the watch ended."""
        tops = set(self.above)
        for place in range(self.answered):
            verdict = {"period": self.name(place), "answer": "above" if place in tops else "below"}
            yield {**verdict, "spent": self.spent[place], "noise": self.vector.noise}
        yield self.to_dict()


def start(
    plan: WatchPlan,
    entropy: Entropy | None = None,
    *,
    book: Ledger | None = None,
    key: str | None = None,
    afresh: bool = False,
    onward: bool = False,
) -> Watch:
    """Charges the budget and starts a watch of a stream, whose answers are shown one by one; nothing is asked yet.

    With a ledger, ``book``, what the first questions can cost is charged now, and the same watch asked again finds its
    answers; ``key`` and ``afresh`` are those of :meth:`Dataset.peak`. With ``onward`` the questions to come go on after
    those that were answered before.
    """
    if plan.scope is not None:
        # Its ledger counts on nobody having seen an answer before all are written.
        raise StateRefused("a plan about a data set is asked as a whole, with ask(); nothing was spent")
    source = entropy or SYSTEM_ENTROPY
    if book is not None and noise_of(source) == "reproducible":
        raise InvalidParameter("‹book› does not go with seeded noise: such answers are not private; leave it out")
    return _begin(plan, source, book=book, key=key, afresh=afresh, onward=onward, shown_at_once=True)


def _begin(
    plan: WatchPlan,
    source: Entropy,
    *,
    book: Ledger | None,
    key: str | None,
    afresh: bool,
    onward: bool = False,
    shown_at_once: bool = False,
) -> Watch:
    """Charges the budget; ``shown_at_once`` says that answers are seen before all of them are there."""
    from dpselect.dataset.kept import KeptWatch

    if book is None:
        refuse_given("a watch without a ledger, which is always asked anew", key=key, afresh=afresh or None)
        refuse_given("a watch without a ledger", onward=onward or None)
        if plan.scope is not None:
            plan.scope.dataset.budget.charge(plan.promise, parameter=plan.priced_by)
        return Watch(plan=plan, vector=plan.vector(source))
    # A key nobody can have: the watch is another one, and paid again.
    mark = f"afresh {secrets.token_hex(16)}" if afresh else key
    kept = KeptWatch(
        book,
        plan.question(),
        cost=Loss(epsilon=plan.settings.epsilon, delta=plan.settings.delta),
        values=Loss(epsilon=plan.asked.part) if plan.asked.how_much else None,
        key=mark,
        onward=onward,
        shown_at_once=shown_at_once,
        whole=plan.whole,
        by=dict(noise(plan)),
    )
    watch = Watch(plan=plan, vector=plan.vector(source, filter=kept.filter, before=kept.answers.before), kept=kept)
    if plan.scope is None or kept.repeated < len(plan.scope.candidates):
        kept.make_ready(watch.vector)
    return watch


def ask_about_each(
    plan: WatchPlan,
    *,
    progress: Callable[[float], None] | None = None,
    key: str | None = None,
    afresh: bool = False,
    anyway: bool = False,
) -> Watch:
    """Charges the budget, adds up the table and asks about each period in turn, until the end or the budget's.

    Answers that would hardly be better than a guess are refused and cost nothing, unless asked for ``anyway``. Columns
    that are not there are refused before the charge. ``key`` and ``afresh`` are those of :meth:`start`. With a ledger
    nothing comes back before the ledger has all of it; what is interrupted keeps the answers that were drawn: asked
    again, the watch goes on behind them.
    """
    scope = plan.scope
    if scope is None:
        raise InvalidData("a plan without a data set has nothing to ask; start() it and ask value by value")
    rows.check(scope)  # first: no budget helps where the columns cannot answer
    plan.insist(anyway=anyway)
    dataset = scope.dataset
    watch = _begin(plan, dataset.entropy or SYSTEM_ENTROPY, book=dataset.book, key=key, afresh=afresh)
    read = functools.cache(lambda: rows.read(scope, progress=progress))
    watch.examine = lambda: read().curator_report
    if isinstance(watch.vector, WholeVector):
        watch.vector.all_values = lambda: read().values
    with watch.abandoned_with_care():
        while watch.answered < len(scope.candidates) and watch.can_ask:
            place = watch.answered
            watch.ask(0.0 if watch.repeating else read().values[place].item())
        watch.ended = watch.answered < len(scope.candidates)
        watch.settle(ended=True)
        if plan.asked.how_much:
            watch.add_amounts(read, entropy=dataset.entropy or SYSTEM_ENTROPY)
    return watch
