"""What is asked of a table, and what that asks of privacy."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

from dpselect.checks import refuse
from dpselect.errors import InvalidParameter
from dpselect.privacy.family import QueryFamily
from dpselect.rounding import exact_number

Measure: TypeAlias = Literal["mean", "sum", "count"]
PerUser: TypeAlias = Literal["sum", "mean", "max"]
Adjacency: TypeAlias = Literal["add-remove", "replace"]
Shape: TypeAlias = Literal["long", "wide"]
Duplicates: TypeAlias = Literal["keep", "largest"]
DecimalSign: TypeAlias = Literal[".", ","]

#: One person's contribution is at most this many steps: sums over billions of rows stay within 64 bits.
FINEST_GRID = 2**31 - 1
#: Every total is at most this, so that it fits a signed 64-bit integer with room to spare.
MOST_STEPS = 2**62
#: Whole numbers up to here are exact in double precision on every engine.
_EXACT = 2**53


def whole_number(name: str, value: object, *, most: int) -> int:
    """A whole number from 1 to ``most``."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if not 1 <= number <= most:
        raise refuse(name, value, f"a whole number from 1 to {most}")
    return number


def choice(name: str, value: object, options: object) -> None:
    """Refuses a value that is not one of the literal type's options."""
    allowed = get_args(options)
    if not isinstance(value, str) or value not in allowed:
        raise refuse(name, value, "one of " + ", ".join(allowed))


def written_sensitivity(sensitivity: Fraction, *, step: Fraction, upper: Fraction) -> Fraction:
    """Δ for queries handed on as doubles: the exact Δ plus what two roundings to the nearest double can add.

    Nothing is added when every multiple of ``step`` up to ``upper`` is itself a double.
    """
    dyadic = step.denominator & (step.denominator - 1) == 0
    if dyadic and upper / step * step.numerator <= _EXACT:
        return sensitivity
    return sensitivity + Fraction(math.ulp(math.nextafter(float(upper), 0.0)))


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question to a table with one person's readings in each row.

    For every candidate, each person contributes one number between 0 and ``cap``, rounded to a whole number
    of steps of ``cap / grid``; the steps of all persons are added as integers. Whatever the rows hold, one
    person moves every total by at most ``grid`` steps.

    Parameters
    ----------
    user : str
        The column that says whose row it is. Rows without it are left out.
    population : int
        N, a public upper bound on the number of persons. Totals are cut at N times the largest contribution.
    time, category : str, optional
        The column that says which candidate a row belongs to: ``time`` with a ``Calendar``, ``category`` with
        ``Categories``. Neither for a wide table.
    value : str, optional
        The column with the reading. Needed for ``mean`` and ``sum`` of a long table.
    measure : {"mean", "sum", "count"}
        ``mean``: the average contribution over the population, as a share of the cap, in [0, 1] with Δ = 1/N.
        ``sum``: the total in the readings' own unit, in [0, N·cap] with Δ = cap.
        ``count``: how many persons have a reading there, in [0, N] with Δ = 1.
    per_user : {"sum", "mean", "max"}
        How one person's readings for one candidate become one number, before the cut to ``cap``. With
        ``mean`` each reading is cut first, and the mean is rounded half up to whole steps.
    cap : number or str
        The largest contribution of one person to one candidate; a public choice. Not for ``count``.
    adjacency : {"add-remove", "replace"}
        What a neighbouring dataset is. Δ is the same for both, because contributions are never negative, but
        only under ``add-remove`` do all queries move the same way.
    grid : int
        Steps in the cap. A reading is rounded to the nearest step, half a step up.
    shape : {"long", "wide"}
        ``long``: one row per reading. ``wide``: one row per person and one column per period or category.
    time_format : str, optional
        How times are written where they are text, from ``%Y %m %d %H %M %S`` and separators, e.g.
        ``"%d/%m/%Y %H:%M"``; ``%-d %-m %-H`` for one digit or two, ``%I`` (``%-I``) with ``%p`` for AM and PM. ISO
        8601 when not given.
    decimal : {".", ","}
        What stands before the decimals of readings that are text.
    duplicates : {"keep", "largest"}
        Rows of one person with the same time (or category): ``keep`` takes each as a reading of its own,
        ``largest`` only the one with the largest reading.

    Examples
    --------
    >>> question = Question(user="meter", time="at", value="kwh", cap=50, population=5564)
    >>> question.family.upper, question.family.monotone
    (1.0, True)
    >>> Question(user="meter", time="at", value="kwh", cap=0, population=5564)
    Traceback (most recent call last):
        ...
    dpselect.errors.InvalidParameter: cap must be positive; got 0
    """

    user: str
    population: int
    time: str | None = None
    category: str | None = None
    value: str | None = None
    measure: Measure = "mean"
    per_user: PerUser = "sum"
    cap: int | float | str | Fraction | Decimal | None = None
    adjacency: Adjacency = "add-remove"
    grid: int = 1_000_000
    shape: Shape = "long"
    time_format: str | None = None
    duplicates: Duplicates = "keep"
    decimal: DecimalSign = "."

    def __post_init__(self) -> None:
        for name, options in (
            ("measure", Measure),
            ("per_user", PerUser),
            ("adjacency", Adjacency),
            ("shape", Shape),
            ("duplicates", Duplicates),
            ("decimal", DecimalSign),
        ):
            choice(name, getattr(self, name), options)
        self._check_columns()
        if self.measure == "count":
            if self.cap is not None:
                raise refuse("cap", self.cap, "left out when ‹measure› is count")
            object.__setattr__(self, "grid", 1)
        else:
            self._check_cap()
        object.__setattr__(self, "grid", whole_number("grid", self.grid, most=FINEST_GRID))
        population = whole_number("population", self.population, most=MOST_STEPS // self.grid)
        object.__setattr__(self, "population", population)

    def _check_columns(self) -> None:
        for name in ("user", "time", "category", "value", "time_format"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text):
                raise refuse(name, text, "a text, not empty")
        if self.user is None:
            raise refuse("user", None, "the name of the column that says whose row it is")
        if self.shape == "wide":
            if self.time or self.category or self.value:
                raise InvalidParameter(
                    "a wide table takes no time, category or value column: its columns are the candidates"
                )
            return
        if (self.time is None) == (self.category is None):
            raise InvalidParameter("give either ‹time› or ‹category› (or ‹wide›: one column per candidate)")
        if self.value is None and self.measure != "count":
            raise refuse("value", None, f"the name of the column with the reading for measure {self.measure}")

    def _check_cap(self) -> None:
        if self.cap is None:
            raise refuse("cap", None, "given: the largest contribution of one person")
        cap = exact_number("cap", self.cap)
        if cap <= 0:
            raise refuse("cap", self.cap, "positive")
        scale = whole_number("grid", self.grid, most=FINEST_GRID) / cap
        if max(scale.numerator, scale.denominator) > _EXACT:
            raise refuse("cap", self.cap, "a number with fewer digits, so that grid / cap is a short fraction")

    @property
    def exact_cap(self) -> Fraction:
        """The cap as a fraction (1 for ``count``)."""
        return Fraction(1) if self.cap is None else exact_number("cap", self.cap)

    @property
    def most_steps(self) -> int:
        """N·grid, where totals are cut."""
        return self.population * self.grid

    @property
    def step(self) -> Fraction:
        """What one step is worth in the query's own unit: query = total · step."""
        if self.measure == "mean":
            return Fraction(1, self.most_steps)
        return self.exact_cap / self.grid

    @property
    def natural_unit(self) -> Fraction:
        """What a query of 1 is in the readings' unit: the cap for ``mean``, otherwise 1.

        >>> Question(user="meter", time="at", value="kwh", cap=50, population=5564).natural_unit
        Fraction(50, 1)
        """
        return self.exact_cap if self.measure == "mean" else Fraction(1)

    @property
    def family(self) -> QueryFamily:
        """The range, Δ and direction of these queries: public, and the same for every table."""
        upper = self.most_steps * self.step
        sensitivity = written_sensitivity(self.grid * self.step, step=self.step, upper=upper)
        return QueryFamily(
            lower=0.0,
            # A family takes fractions too, and rounds them to the safe side.
            upper=cast(float, upper),
            sensitivity=cast(float, min(sensitivity, upper)),
            monotone=self.adjacency == "add-remove",
        )
