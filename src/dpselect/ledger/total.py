"""What a data set may cost in all, fixed when its ledger is made, and what each release counts against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Self

from dpselect.checks import one, positive, probability, refuse
from dpselect.composition.costs import Declared, declared, in_loss, plain_cost
from dpselect.composition.declared import ZCDPFilter
from dpselect.ledger.amounts import PER_DELTA, PER_EPSILON, Amounts, exact, promised, shown_down, shown_up, units_up

#: The kinds of total.
Kind = Literal["pure", "approximate", "zcdp"]


@dataclass(frozen=True)
class Total:
    """The promise for a data set; made by :meth:`pure`, :meth:`approximate` or :meth:`zcdp`.

    Each kind adds up in its own way, and all three hold for releases chosen adaptively by many people:

    * ``pure``: Σε_i ≤ ε;
    * ``approximate``: Σε_i ≤ ε and Σδ_i ≤ δ (basic composition);
    * ``zcdp``: Σρ_i ≤ ρ, shown as ε at the δ that was chosen; many small releases fit better here.

    Examples
    --------
    >>> total = Total.pure(1.0)
    >>> total.price(0.25)
    Amounts(epsilon=250000000000000, delta=0, rho=0)
    >>> total.limit
    1.0
    >>> Total.zcdp(0.5, delta=1e-6).epsilon(delta=1e-6)
    5.2216...
    """

    kind: Kind
    amounts: Amounts
    #: The δ at which a ρ is shown as an ε; plays no part in the sums.
    shown_delta: float = 0.0

    @classmethod
    def pure(cls, epsilon: float | Fraction) -> Self:
        """Σε_i ≤ ε, no δ."""
        return cls("pure", Amounts(epsilon=_promised_epsilon("epsilon", epsilon)))

    @classmethod
    def approximate(cls, epsilon: float | Fraction, *, delta: float | Fraction) -> Self:
        """Σε_i ≤ ε and Σδ_i ≤ δ."""
        checked = one(probability, "delta", delta)
        most = promised("delta", delta if isinstance(delta, Fraction) else checked, PER_DELTA)
        return cls("approximate", Amounts(epsilon=_promised_epsilon("epsilon", epsilon), delta=most))

    @classmethod
    def zcdp(cls, rho: float | Fraction, *, delta: float | Fraction) -> Self:
        """Σρ_i ≤ ρ; ``delta`` is the one at which the total is shown as an ε."""
        return cls("zcdp", Amounts(rho=_promised_epsilon("rho", rho)), one(probability, "delta", delta))

    @property
    def unit(self) -> str:
        """What is counted: ``epsilon`` or ``rho``."""
        return "rho" if self.kind == "zcdp" else "epsilon"

    @property
    def realised(self) -> bool:
        """Whether an answer may be settled at what it turned out to cost.

        Basic composition takes the realised loss of a pure run, where every answer was checked beforehand: with e left
        and loss ℓ(o) of outcome o, P(S) = Σ P(o)P(S|o) ≤ Σ P(o)·(min(1, e^(e-ℓ(o))·Q(S|o)) + δ) ≤ e^e·Q(S) + δ, by
        induction over the releases. zCDP does not: what was declared stays charged.
        """
        return self.kind != "zcdp"

    @property
    def limit(self) -> float:
        """ε or ρ of the total: the double that is written as the decimal number that was promised."""
        return _main(self.kind, self.amounts) / PER_EPSILON

    @property
    def delta(self) -> float:
        """δ of the total: promised (``approximate``), or the one it is shown at (``zcdp``)."""
        return self.shown_delta if self.kind == "zcdp" else self.amounts.delta / PER_DELTA

    def spent(self, committed: Amounts) -> float:
        """ε or ρ of what is charged, rounded up; :attr:`limit` where that is all of it."""
        shown = self.shown(committed)
        return min(shown, self.limit) if self.fits(committed) else shown

    def shown(self, amounts: Amounts) -> float:
        """ε or ρ of some amounts, rounded up."""
        return shown_up(_main(self.kind, amounts), PER_EPSILON)

    def exact(self, amounts: Amounts) -> Decimal:
        """ε or ρ of some amounts, to the last unit."""
        return exact(_main(self.kind, amounts), PER_EPSILON)

    def spent_delta(self, committed: Amounts) -> float:
        """δ of what is charged, rounded up."""
        return shown_up(committed.delta, PER_DELTA)

    def left(self, committed: Amounts) -> float:
        """ε or ρ that is left, rounded down."""
        return shown_down(_main(self.kind, self.amounts - committed), PER_EPSILON)

    def fits(self, committed: Amounts) -> bool:
        """Whether so much may be charged in all."""
        return committed <= self.amounts

    def price(self, cost: Any) -> Amounts:
        """A cost in units, rounded up.

        A plain number is in the total's own unit (ε, or ρ): a ``Fraction`` is exact, a double is what it is, which for
        0.1 is a little above one tenth. A :class:`~dpselect.privacy.loss.Loss`, or what a mechanism gave back, is
        converted where the theory allows it and refused where it does not.

        >>> Total.pure(1.0).price(Fraction(1, 10)).epsilon, Total.pure(1.0).price(0.1).epsilon
        (100000000000000, 100000000000001)
        """
        if isinstance(cost, Fraction) and cost >= 0:
            units = units_up(cost, PER_EPSILON)
            return Amounts(rho=units) if self.kind == "zcdp" else Amounts(epsilon=units)
        known = declared(cost)
        if self.kind == "zcdp":
            rho: float | Fraction = known.in_rho() if isinstance(known, Declared) else plain_cost("rho", known)
            if isinstance(known, Declared) and known.loss.delta == 0:
                # The same bound without its roundings (Bun and Steinke, TCC 2016, Proposition 3.3).
                rho = min(Fraction(rho), Fraction(known.loss.epsilon) ** 2 / 2)
            return Amounts(rho=units_up(rho, PER_EPSILON))
        loss = in_loss(known)
        if self.kind == "pure" and loss.delta > 0:
            raise refuse("cost", loss, "pure, with delta = 0: this data set promises no delta")
        return Amounts(epsilon=units_up(loss.epsilon, PER_EPSILON), delta=units_up(loss.delta, PER_DELTA))

    def at_most(self, limit: float | Fraction) -> Amounts:
        """A limit within the total, in its own unit (ε, or ρ), as the decimal number it is written as."""
        units = _promised_epsilon("limit", limit)
        return Amounts(rho=units) if self.kind == "zcdp" else Amounts(epsilon=units)

    def epsilon(self, *, delta: float = 0.0) -> float:
        """ε at ``delta`` promised for everything, now and later; infinite where δ is too small."""
        given = plain_cost("delta", delta, most=1.0)
        if self.kind == "zcdp":
            # One step up: the double may be a little below the decimal number that was promised.
            return ZCDPFilter(math.nextafter(self.limit, math.inf)).epsilon(delta=given)
        return self.limit if given >= self.delta else math.inf

    def document(self) -> dict[str, Any]:
        """What is written in the first entry."""
        return {"kind": self.kind, "shown_delta": self.shown_delta}

    @classmethod
    def from_document(cls, document: dict[str, Any], amounts: Amounts) -> Self:
        """The total of a first entry."""
        return cls(document["kind"], amounts, document["shown_delta"])

    def __str__(self) -> str:
        if self.kind == "zcdp":
            return f"ρ = {self.limit:g} (ε = {self.epsilon(delta=self.delta):.4g} at δ = {self.delta:g})"
        return f"ε = {self.limit:g}" + (f", δ = {self.delta:g}" if self.kind == "approximate" else "")


def _main(kind: Kind, amounts: Amounts) -> int:
    return amounts.rho if kind == "zcdp" else amounts.epsilon


def _promised_epsilon(name: str, value: float | Fraction) -> int:
    checked = one(positive, name, value)
    return promised(name, value if isinstance(value, Fraction) else checked, PER_EPSILON)
