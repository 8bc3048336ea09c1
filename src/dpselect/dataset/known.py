"""What a person knows beforehand, in the readings' unit: how often, between which values, like which other series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from dpselect.checks import finite, one, positive
from dpselect.errors import refuse, refuse_given
from dpselect.planning.knowledge import Model, Profile

#: What a person states: exact, or a double.
Number: TypeAlias = Fraction | float


@dataclass(frozen=True, kw_only=True)
class Known:
    """Public knowledge about a series; what is left out is supposed, cautiously (docs/planning.md).

    Parameters
    ----------
    expect : int or number below 1, optional
        How many reach the line, or which share of them.
    between : (number, number), optional
        Between which values the series is expected to lie.
    like : Profile, optional
        Another series of the same kind that anyone may see, in the readings' unit.

    Examples
    --------
    >>> Known(expect=0.1).share(questions=365), Known(expect=73).share(questions=365), Known().share(questions=365)
    (0.1, 0.2, None)
    """

    expect: Number | None = None
    between: tuple[Number, Number] | None = None
    like: Profile | None = None

    def __post_init__(self) -> None:
        if self.expect is not None:
            one(positive, "expect", self.expect)
        if self.between is not None:
            if not (isinstance(self.between, tuple | list) and len(self.between) == 2):
                raise refuse("between", self.between, "two numbers")
            for end in self.between:
                one(finite, "between", end)
        if self.like is not None and not isinstance(self.like, Profile):
            raise refuse("like", self.like, "a Profile")
        if self.like is not None:
            refuse_given("‹like›, which says it", between=self.between)

    @property
    def nothing(self) -> bool:
        """Whether nothing was said."""
        return self.expect is None and self.between is None and self.like is None

    def share(self, *, questions: int) -> float | None:
        """The expected share above the line."""
        if self.expect is None:
            return None
        if 0 < self.expect < 1:
            return float(self.expect)
        if self.expect != int(self.expect) or not 1 <= self.expect <= questions:
            rule = f"a share such as 10%, or from 1 to the number of questions, {questions}"
            raise refuse("expect", self.expect, rule)
        return int(self.expect) / questions

    def public(self, *, unit: Fraction) -> Profile | Model:
        """The same on the scale of the queries, of which one is ``unit`` in the readings'."""
        scale = float(unit)
        if self.like is not None:
            return Profile(tuple(value / scale for value in self.like.values), public=True)
        if self.between is None:
            return Model()
        low, high = (float(end) / scale for end in self.between)
        return Model(low=low, high=high)

    def stated_in_words(self, with_unit: Callable[[str], str]) -> str | None:
        """What was said of the values, for an expectation to rest on; None where nothing was."""
        if self.like is not None:
            return "if it follows the public series given"
        if self.between is None:
            return None
        low, high = (with_unit(f"{float(end):g}") for end in self.between)
        return f"for values between {low} and {high}, as stated"

    def in_words(self, *, period: str) -> str:
        """What the expectation rests on."""
        parts: list[Any] = []
        if self.like is not None:
            parts.append("a series that follows the public one given")
        elif self.between is not None:
            parts.append(f"values between {float(self.between[0]):g} and {float(self.between[1]):g}")
        if self.expect is not None:
            often = f"{100 * float(self.expect):g}% of them" if self.expect < 1 else f"{int(self.expect):,} of them"
            parts.append(f"{often} above the line")
        if parts:
            supposed = (
                f"; supposed: one {period} in ten above the line" if self.expect is None and not self.like else ""
            )
            return "as stated: " + ", ".join(parts) + supposed
        return f"nothing was said, so it is supposed that one {period} in ten is above and a season halves the values"
