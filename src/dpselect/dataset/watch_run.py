"""The questions of a watch, asked one by one, and what they came to so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

from dpselect.composition.sparse_vector import SparseVector
from dpselect.dataset.whole import WholeVector
from dpselect.mechanisms.mechanism import Noise
from dpselect.mechanisms.run import Verdict

if TYPE_CHECKING:
    from dpselect.dataset.kept import KeptWatch  # brings SQLAlchemy


class WatchRun:
    """Asks one question at a time; with a ledger, answers that it has are repeated and new ones are kept there.

    Parameters
    ----------
    vector : SparseVector or WholeVector
        What draws the answers.
    kept : KeptWatch, optional
        The side that lies in a ledger.
    keep : bool
        Whether places above and costs are remembered; a long stream that nobody reports on needs neither.
    """

    def __init__(self, vector: SparseVector | WholeVector, *, kept: KeptWatch | None = None, keep: bool = True) -> None:
        self.vector, self.kept, self.keep = vector, kept, keep
        #: ε spent after each answer, and the places of those answered ⊤.
        self.spent: list[float] = []
        self.above: list[int] = []
        #: How many questions were answered, and how many of them ⊤.
        self.answered = self.count = 0
        #: Whether the budget ended before the questions did.
        self.ended = False

    @property
    def noise(self) -> Noise:
        """Whether the noise can be repeated by someone who knows a seed."""
        return self.vector.noise

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
        return self.vector.spent if self.kept is None else self.kept.spent(self.vector)

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
