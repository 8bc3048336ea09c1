"""Where a draw of 64 bits lies, from the table of cells alone: a thousand times narrower than its cell, and quick.

The table holds proven ends of every node Q(i/2^16). Between two nodes a convex Q lies below the chord, and above the
chords on either side when they are prolonged; a concave Q the other way round. All laws here are concave up to one
probability and convex beyond it. What is returned contains the draw; near the turn and in the outermost cells there is
no such enclosure, and ball arithmetic takes its place.
"""

from __future__ import annotations

import math

from dpselect.noise.quantiles import CELLS, Law

#: Up to this many cells from the left Q is concave, from there on convex.
#: Gumbel: Q(p) = −log(−log p) has Q″ = (1 + log p)/(p·log p)², which changes sign at 1/e.
_TURN = {"normal": CELLS / 2, "laplace": CELLS / 2, "exponential": 0.0, "gumbel": CELLS / math.e}

#: A dozen roundings of numbers below 12.
_OUTWARD = 2.0**-44


def enclose(law: Law, prefix: int) -> tuple[float, float] | None:
    """Doubles around Q(u) for every u whose first 64 bits are ``prefix``, or ``None`` where chords say too little.

    >>> from dpselect.noise.quantiles import NORMAL
    >>> lower, upper = enclose(NORMAL, 0xC000_1234_5678_9ABC)
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
    low, high, turn = law.cells.lower.item, law.cells.upper.item, _TURN[law.name]
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
    return least - _OUTWARD, most + _OUTWARD
