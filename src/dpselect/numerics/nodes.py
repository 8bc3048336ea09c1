"""The nodes themselves: the integrand's heights, and their sums, for one cell or block by block for many.

For many cells arrays have a row per node and a column per cell, so that a cell's numbers broadcast as they are; for one
they have one axis. Nothing here knows of errors: :mod:`dpselect.numerics.rule` bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpselect.checks import FloatArray
from dpselect.numerics.normal import (
    deep_log_cdf,
    lattice_log_cdf,
    log_cdf_of_many,
    small_log_cdf_step,
    small_log_cdf_step_of_few,
)
from dpselect.numerics.pair import Number

#: The most nodes for one cell, and 0, 1, 2, … for them.
MOST_NODES = 20_000
_COUNTING = np.arange(float(MOST_NODES))
_ONES = np.ones(MOST_NODES)
_SQRT_HALF = math.sqrt(0.5)
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


class Part(NamedTuple):
    """What a factor's nodes need: Φ^count along base + slope·(…), and the shift ``left`` for the gain."""

    count: Number
    slope: Number
    base: Number
    log_cdf: Number
    left: Number | None
    #: At least |left|·(|y| + 2).
    reach: Number
    deep: Number


class Block(NamedTuple):
    """Neighbouring cells, alike in which parts are deep and which shifts are left, with their number of nodes."""

    start: int
    stop: int
    nodes: int


class Raw(NamedTuple):
    """Σ f, Σ (f_δ - f) and the same without signs, relative to f at the peak; log f at the two nodes of each end."""

    whole: Number
    gain: Number
    size: Number
    first: Number
    second: Number
    last_but_one: Number
    last: Number


def added_up(
    x: Number,
    step: Number,
    first: Number,
    translation: Number | None,
    parts: Sequence[Part],
    on_lattice: Number,
    blocks: Sequence[Block],
) -> Raw:
    """The sums of many cells over the nodes at x + step·(first, first + 1, …)."""
    result = np.empty((7, len(x)))
    for start, stop, number in blocks:
        here = slice(start, stop)
        some = []
        for part in parts:
            left, reach = _left(part, here)
            count, slope, base, log_cdf = (field[here] for field in part[:4])
            some.append(Part(count, slope, base, log_cdf, left, reach, bool(part.deep[start])))
        found = _block(
            x[here],
            step[here],
            first[here],
            None if translation is None else translation[here],
            some,
            on_lattice is not False and bool(on_lattice[start]),
            _COUNTING[:number, None],
        )
        for row, values in zip(result, found, strict=True):
            row[here] = values
    return Raw(*result)


def _left(part: Part, here: slice) -> tuple[Number | None, float]:
    """The shifts left to some cells, and the largest reach."""
    if part.left is None or not part.left[here].any():
        return None, 0.0
    return part.left[here], float(part.reach[here].max())


def added_up_alone(
    x: float,
    step: float,
    first: float,
    translation: float,
    parts: Sequence[Part],
    on_lattice: bool,
    nodes: float,
) -> Raw:
    """The sums of one cell."""
    counting, ones = _COUNTING[: int(nodes)], _ONES[: int(nodes)]
    offsets = counting + first
    offsets *= step
    heights = -0.5 * offsets
    heights -= x
    heights *= offsets
    exponent = None
    if translation:
        exponent = offsets + (x - 0.5 * translation)
        exponent *= translation
    for part in parts:
        if on_lattice:
            rises = lattice_log_cdf(part.base, step, first, counting)
            rises -= part.log_cdf
        else:
            y = offsets * part.slope
            y += part.base
            rises = log_ndtr(y)
            if part.left:
                steps = small_log_cdf_step_of_few(y, part.left, rises, reach=part.reach)
                steps *= part.count
                exponent = steps if exponent is None else np.add(exponent, steps, out=exponent)
            if part.deep:
                rises = _deep_rises(part, offsets, y)
            else:
                rises -= part.log_cdf
        rises *= part.count
        heights += rises
    ends = (*heights[:2].tolist(), *heights[-2:].tolist())
    weights = np.exp(heights, out=heights)
    whole = float(weights.dot(ones))
    if exponent is None:
        return Raw(whole, 0.0, 0.0, *ends)
    gains = np.expm1(exponent, out=exponent)
    gain = float(weights.dot(gains))
    # The same without signs: where x is translated the gain's integrand may change sign.
    return Raw(whole, gain, float(weights.dot(np.abs(gains, out=gains))), *ends)


def _deep_rises(part: Part, offsets: FloatArray, y: FloatArray) -> FloatArray:
    """log Φ(y) - log Φ(base) far in the lower tail: both are nearly squares, subtracted before they are rounded."""
    scaled = erfcx(y * -_SQRT_HALF)
    scaled /= erfcx(part.base * -_SQRT_HALF)
    np.log(scaled, out=scaled)
    moves = part.slope * offsets
    scaled -= moves * (part.base + 0.5 * moves)
    return np.asarray(scaled)


def _block(
    x: Number,
    step: Number,
    first: Number,
    translation: Number | None,
    parts: Sequence[Part],
    on_lattice: bool,
    counting: FloatArray,
) -> tuple[Number, ...]:
    """Some cells, whose numbers are arrays; ``counting`` is a column."""
    offsets = counting + first
    offsets *= step
    weight = 0.5 * offsets
    weight += x
    weight *= offsets
    heights = np.negative(weight, out=weight)
    exponent: Number = 0.0
    if translation is not None:
        exponent = offsets + (x - 0.5 * translation)
        exponent *= translation
    for part in parts:
        if on_lattice:
            rises = lattice_log_cdf(part.base, step, first, counting)
            rises -= part.log_cdf
        else:
            moves = part.slope * offsets
            y = moves + part.base
            if part.deep:
                # Far in the lower tail log Φ is nearly a square, and squares are subtracted before they are rounded.
                rises = deep_log_cdf(y)
                hazards = -rises
                rises -= deep_log_cdf(part.base)
                squares = 0.5 * moves
                squares += part.base
                squares *= moves
                rises -= squares
            else:
                rises = log_cdf_of_many(y)
                hazards = y * y
                hazards *= -0.5
                hazards -= rises
                rises -= part.log_cdf
            if part.left is not None:
                np.exp(hazards, out=hazards)
                hazards *= _INVERSE_SQRT_2PI
                steps = small_log_cdf_step(y, part.left, hazards, reach=part.reach)
                steps *= part.count
                exponent += steps
        rises *= part.count
        heights += rises
    ends = [heights[place].copy() for place in (0, 1, -2, -1)]
    weights = np.exp(heights, out=heights)
    whole = np.add.reduce(weights)
    if translation is None:
        return whole, 0.0, 0.0, *ends
    gains = np.expm1(exponent, out=exponent)
    gains *= weights
    gain = np.add.reduce(gains)
    # The same without signs: where x is translated the gain's integrand may change sign.
    return whole, gain, np.add.reduce(np.abs(gains, out=gains)), *ends
