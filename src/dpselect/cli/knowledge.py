"""What is known beforehand, as options: the same for ``peak``, ``watch`` and ``plan``."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Group, Parameter

from dpselect.cli.numbers import read_number
from dpselect.errors import refuse_given

if TYPE_CHECKING:
    from dpselect.dataset.known import Known


def read_expected(text: str) -> Fraction | int:
    """A share such as ``10%`` or ``0.1``, or a whole number.

    >>> read_expected("10%"), read_expected("36"), read_expected("1/4")
    (Fraction(1, 10), 36, Fraction(1, 4))
    """
    written = text.strip()
    number = read_number(written[:-1]) / 100 if written.endswith("%") else read_number(written)
    if 0 < number < 1:
        return number
    if number.denominator != 1 or written.endswith("%") or number < 1:
        raise ValueError("must be a share such as 10%, or a whole number such as 36")
    return int(number)


def _expected(_type: Any, tokens: Any) -> Fraction | int:
    return read_expected(tokens[0].value)


def _range(_type: Any, tokens: Any) -> tuple[Fraction, Fraction]:
    low, high = (read_number(token.value) for token in tokens)
    return low, high


Expected: TypeAlias = Annotated[
    Fraction | int, Parameter(converter=_expected, n_tokens=1, metavar="10% or N", accepts_keys=False)
]
Range: TypeAlias = Annotated[
    tuple[Fraction, Fraction],
    Parameter(converter=_range, n_tokens=2, allow_leading_hyphen=True, metavar="LOW HIGH", accepts_keys=False),
]


@Parameter(name="*", group=Group("What is known beforehand (all of it public)", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is public about the series; where nothing is said, something cautious is supposed.

    Parameters
    ----------
    expect
        How many reach the line: a share, or a number of periods. One in ten is supposed.
    between
        Between which values the series is expected to lie, in the readings' unit.
    like
        Another series of the same kind: one number per line, a JSON list, or CSV with --column.
    public
        I declare that anyone may see the series of --like.
    column
        Column of --like.
    """

    expect: Expected | None = None
    between: Annotated[Range | None, Parameter(name="--range")] = None
    like: Annotated[Path | None, Parameter(metavar="FILE")] = None
    public: bool = False
    column: str | None = None

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The file that is read."""
        return () if self.like is None else (self.like,)

    def known(self) -> Known:
        """The same for a data set."""
        from dpselect.dataset.known import Known
        from dpselect.planning import read_profile

        if self.like is None:
            refuse_given("a series that was not named; name one with --like, or", public=self.public or None)
            refuse_given("a series that was not named; name one with --like, or", column=self.column)
            return Known(expect=self.expect, between=self.between)
        series = read_profile(self.like, public=self.public, column=self.column)
        return Known(expect=self.expect, between=self.between, like=series)
