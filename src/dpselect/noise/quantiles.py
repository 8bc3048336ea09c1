"""The laws of the noise, as quantile functions with proven ends.

A draw is Q(U) for a uniform U whose bits are read one after the other. The first 16 bits name one of
65,536 *cells* of equal probability; a table holds a double below the left end and a double above the
right end of every cell. Cells in the uppermost 1/256, where a maximum is usually found, are split once
more by 8 further bits (a second table). For any longer prefix the ends are computed in ball arithmetic, or
for 64 bits from *chords* of the table: a thousand times narrower than a cell, and quick.

The tables are made on first use (a few milliseconds) from SciPy's or NumPy's function and moved outward by
2^-44, hundreds of times the error of those functions and less than a millionth of a cell; the tests check
every end of every table against ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from dpselect.checks import FloatArray
from dpselect.precision import working_precision

#: The number of cells of the first table, and of the second.
CELLS = 1 << 16
#: Cells from here on are split by 8 further bits.
FIRST_TAIL_CELL = CELLS - 256

_OUTWARD = 2.0**-44
_INFINITY = float("inf")


@dataclass(frozen=True)
class Ends:
    """Doubles at or below the left end, and at or above the right end, of every cell of a table."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Law:
    """A continuous law, known by its quantile function Q.

    Probabilities are counted from the nearer end, so that neither tail loses digits: ``from_left(p)`` is
    Q(p) and ``from_right(p)`` is Q(1 − p), in doubles; ``ball_from_left`` and ``ball_from_right`` are the
    same in ball arithmetic. ``log_density``, ``log_cdf`` and ``log_survival`` are log f, log F and
    log (1 − F) in doubles: draws never use them, predictions and tests do.

    >>> NORMAL.name, NORMAL.least
    ('normal', -inf)
    >>> lower, upper = NORMAL.enclose(prefix=1, length=1)   # U in [1/2, 1]
    >>> lower <= 0.0, upper
    (True, inf)
    """

    name: str
    #: Q(0): every draw is above it.
    least: float
    #: The standard deviation.
    deviation: float
    #: Q is concave up to this probability and convex beyond it.
    turn: float
    from_left: Callable[[FloatArray], FloatArray] = field(repr=False)
    from_right: Callable[[FloatArray], FloatArray] = field(repr=False)
    ball_from_left: Callable[[Any], Any] = field(repr=False)
    ball_from_right: Callable[[Any], Any] = field(repr=False)
    log_density: Callable[[FloatArray], FloatArray] = field(repr=False)
    log_cdf: Callable[[FloatArray], FloatArray] = field(repr=False)
    log_survival: Callable[[FloatArray], FloatArray] = field(repr=False)

    def __reduce__(self) -> str:
        return self.name.upper()

    @cached_property
    def cells(self) -> Ends:
        """The ends of the 65,536 cells named by 16 bits."""
        half = np.arange(1, CELLS // 2 + 1) / CELLS
        inner = np.concatenate([self.from_left(half), self.from_right(half[-2::-1])])
        return _outward(np.concatenate([[self.least], inner, [_INFINITY]]))

    @cached_property
    def tail_cells(self) -> Ends:
        """The ends of the 65,536 cells that 24 bits name in the uppermost 1/256."""
        from_the_right = np.arange(CELLS, 0, -1) / (CELLS * 256)
        return _outward(np.append(self.from_right(from_the_right), _INFINITY))

    @cached_property
    def cell_lists(self) -> tuple[list[float], list[float]]:
        """``cells`` as plain lists (lower, upper), quicker to read one at a time."""
        return self.cells.lower.tolist(), self.cells.upper.tolist()

    def ball(self, numerator: int, *, length: int) -> Any:
        """Q(numerator / 2^length) as a ball at the working precision; not for the two infinite ends."""
        whole = 1 << length
        if 2 * numerator <= whole:
            return self.ball_from_left(flint.arb(flint.fmpq(numerator, whole)))
        return self.ball_from_right(flint.arb(flint.fmpq(whole - numerator, whole)))

    def balls(self, *, prefix: int, length: int) -> tuple[Any | None, Any | None]:
        """The two ends of the cell that ``length`` bits name, as balls; ``None`` for an infinite end."""
        with working_precision(length + 40):
            lower = None if prefix == 0 and self.least == -_INFINITY else self.ball(prefix, length=length)
            last = prefix + 1 == 1 << length
            upper = None if last else self.ball(prefix + 1, length=length)
        return lower, upper

    def enclose(self, *, prefix: int, length: int) -> tuple[float, float]:
        """Doubles outside the cell that the first ``length`` bits name; proven by ball arithmetic."""
        lower, upper = self.balls(prefix=prefix, length=length)
        return (
            -_INFINITY if lower is None else double_below(lower),
            _INFINITY if upper is None else double_above(upper),
        )

    def enclose_by_chords(self, prefix: int) -> tuple[float, float] | None:
        """Doubles around Q(u) for every u whose first 64 bits are ``prefix``, or ``None`` where chords say too little.

        The table holds proven ends of every node Q(i/2^16). Between two nodes a convex Q lies below the chord, and
        above the chords on either side when they are prolonged; a concave Q the other way round. Near the turn and in
        the outermost cells there is no such enclosure.

        >>> lower, upper = NORMAL.enclose_by_chords(0xC000_1234_5678_9ABC)
        >>> round(lower, 7), upper - lower < 1e-8
        (0.6744932, True)
        """
        cell = prefix >> 48
        if not 2 <= cell <= CELLS - 4:
            return None
        # Both are whole multiples of 2^-48 and exact.
        start = (prefix & ((1 << 48) - 1)) * 2.0**-48
        stop = start + 2.0**-48
        # Node i lies between lower[i] and upper[i − 1].
        low, high, turn = self.cells.lower.item, self.cells.upper.item, self.turn * CELLS
        if cell - 1 >= turn:
            left, right = low(cell), low(cell + 1)
            least = max(left + start * (left - high(cell - 2)), right - (1.0 - start) * (high(cell + 1) - right))
            most = (1.0 - stop) * high(cell - 1) + stop * high(cell)
        elif cell + 2 <= turn:
            left, right = high(cell - 1), high(cell)
            least = (1.0 - start) * low(cell) + start * low(cell + 1)
            most = min(left + stop * (left - low(cell - 1)), right - (1.0 - stop) * (low(cell + 2) - right))
        else:
            return None
        # A dozen roundings of numbers below 12.
        return least - _OUTWARD, most + _OUTWARD


def double_below(ball: Any) -> float:
    """A double below every point of a ball."""
    # Two steps: one for the conversion, which rounds to nearest, and one to spare.
    found = float(ball.lower())
    return -_INFINITY if found != found else float(np.nextafter(np.nextafter(found, -_INFINITY), -_INFINITY))


def double_above(ball: Any) -> float:
    """A double above every point of a ball."""
    return -double_below(-ball)


def _outward(ends: NDArray[np.float64]) -> Ends:
    room = _OUTWARD * (1.0 + np.abs(ends))
    lower, upper = ends[:-1] - room[:-1], ends[1:] + room[1:]
    for array in (lower, upper):
        array.flags.writeable = False
    return Ends(lower=lower, upper=upper)


def _normal_ball(p: Any) -> Any:
    return flint.arb(2).sqrt() * (2 * p).erfcinv()


#: The standard normal law.
NORMAL = Law(
    name="normal",
    least=-_INFINITY,
    deviation=1.0,
    turn=0.5,
    from_left=ndtri,
    from_right=lambda p: -ndtri(p),
    ball_from_left=lambda p: -_normal_ball(p),
    ball_from_right=_normal_ball,
    log_density=lambda x: -0.5 * x * x - 0.5 * np.log(2.0 * np.pi),
    log_cdf=log_ndtr,
    log_survival=lambda x: log_ndtr(-x),
)


def _laplace_log_cdf(x: FloatArray) -> FloatArray:
    tail = np.log(0.5) - np.abs(x)
    return np.where(x < 0, tail, np.log1p(-0.5 * np.exp(-np.abs(x))))


#: The Laplace law of scale 1: density exp(−|x|)/2.
LAPLACE = Law(
    name="laplace",
    least=-_INFINITY,
    deviation=math.sqrt(2.0),
    turn=0.5,
    from_left=lambda p: np.log(2 * p),
    from_right=lambda p: -np.log(2 * p),
    ball_from_left=lambda p: (2 * p).log(),
    ball_from_right=lambda p: -(2 * p).log(),
    log_density=lambda x: np.log(0.5) - np.abs(x),
    log_cdf=_laplace_log_cdf,
    log_survival=lambda x: _laplace_log_cdf(-x),
)


def _exponential_log_cdf(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(-np.maximum(x, 0.0))))


#: The exponential law of mean 1.
EXPONENTIAL = Law(
    name="exponential",
    least=0.0,
    deviation=1.0,
    turn=0.0,
    from_left=lambda p: -np.log1p(-p),
    from_right=lambda p: -np.log(p),
    ball_from_left=lambda p: -(-p).log1p(),
    ball_from_right=lambda p: -p.log(),
    log_density=lambda x: np.where(x < 0, -_INFINITY, -np.maximum(x, 0.0)),
    log_cdf=_exponential_log_cdf,
    log_survival=lambda x: -np.maximum(x, 0.0),
)


def _gumbel_log_cdf(x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return -np.exp(-x)


def _gumbel_log_survival(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(_gumbel_log_cdf(x))))


#: The standard Gumbel law: P(draw ≤ x) = exp(−exp(−x)).
GUMBEL = Law(
    name="gumbel",
    least=-_INFINITY,
    deviation=math.pi / math.sqrt(6.0),
    # Q(p) = −log(−log p) has Q″ = (1 + log p)/(p·log p)².
    turn=1.0 / math.e,
    from_left=lambda p: -np.log(-np.log(p)),
    from_right=lambda p: -np.log(-np.log1p(-p)),
    ball_from_left=lambda p: -(-p.log()).log(),
    ball_from_right=lambda p: -(-(-p).log1p()).log(),
    log_density=lambda x: _gumbel_log_cdf(x) - x,
    log_cdf=_gumbel_log_cdf,
    log_survival=_gumbel_log_survival,
)
