"""The nodes themselves: the integrand's heights, and their sums, for one cell or block by block for many.

Arrays have a row per node and a column per cell, so that a cell's numbers broadcast as they are; for one cell they have
one axis. Nothing here knows of errors: :mod:`dpselect.numerics.sums` bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from dpselect.checks import FloatArray
from dpselect.numerics.normal import lattice_log_cdf, log_cdf_of_many, scaled_tail, small_log_cdf_step
from dpselect.numerics.pair import Number

#: The most nodes for one cell, and 0, 1, 2, … for them.
MOST_NODES = 20_000
_COUNTING = np.arange(float(MOST_NODES))
_SQRT_HALF = math.sqrt(0.5)
_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


class Part(NamedTuple):
    """What a factor's nodes need: Φ^count along base + slope·(…), and the shift ``left`` for the gain."""

    count: Number
    slope: Number
    base: Number
    log_cdf: Number
    left: Number
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
    nodes: Number,
    blocks: Sequence[Block],
) -> Raw:
    """The sums over ``nodes`` nodes at x + step·(first, first + 1, …)."""
    if not isinstance(x, np.ndarray):
        return Raw(*map(float, _block(x, step, first, translation, parts, on_lattice, _COUNTING[: int(nodes)])))
    result = np.empty((7, len(x)))
    for start, stop, number in blocks:
        here = slice(start, stop)
        some = [
            Part(
                *(field[here] if isinstance(field, np.ndarray) else field for field in part[:4]),
                *_left(part, here),
                bool(part.deep[start]),
            )
            for part in parts
        ]
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


def _left(part: Part, here: slice) -> tuple[Number, float]:
    """The shifts left to some cells, and the largest reach."""
    if not isinstance(part.left, np.ndarray) or not part.left[here].any():
        return 0.0, 0.0
    return part.left[here], float(part.reach[here].max())


def _block(
    x: Number,
    step: Number,
    first: Number,
    translation: Number | None,
    parts: Sequence[Part],
    on_lattice: bool,
    counting: FloatArray,
) -> tuple[Number, ...]:
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
            y = part.slope * offsets
            y += part.base
            flat = y.ndim == 1
            log_cdfs = rises = None
            if part.deep:
                rises = _deep_rises(part, offsets, y)
            if rises is None or np.any(part.left):
                log_cdfs = log_ndtr(y) if flat else log_cdf_of_many(y)
            if np.any(part.left):
                hazards = y * y
                hazards *= -0.5
                hazards -= log_cdfs
                np.exp(hazards, out=hazards)
                hazards *= _INVERSE_SQRT_2PI
                steps = small_log_cdf_step(y, part.left, hazards, reach=part.reach)
                steps *= part.count
                exponent += steps
            if rises is None:
                rises = log_cdfs
                rises -= part.log_cdf
        rises *= part.count
        heights += rises
    ends = (heights[0].copy(), heights[1].copy(), heights[-2].copy(), heights[-1].copy())
    weights = np.exp(heights, out=heights)
    whole = np.add.reduce(weights)
    if translation is None:
        return whole, 0.0, 0.0, *ends
    gains = np.expm1(exponent, out=exponent)
    gains *= weights
    gain = np.add.reduce(gains)
    # The same without signs: where x is translated the gain's integrand may change sign.
    return whole, gain, np.add.reduce(np.abs(gains, out=gains)), *ends


def _deep_rises(part: Part, offsets: FloatArray, y: FloatArray) -> FloatArray:
    """log Φ(y) - log Φ(base) far in the lower tail, where both are nearly squares."""
    if y.ndim == 1:
        scaled, scaled_base = erfcx(y * -_SQRT_HALF), erfcx(part.base * -_SQRT_HALF)
    else:
        scaled, scaled_base = scaled_tail(np.abs(y)), scaled_tail(np.abs(part.base))
    move = part.slope * offsets
    scaled /= scaled_base
    np.log(scaled, out=scaled)
    scaled -= move * (part.base + 0.5 * move)
    return np.asarray(scaled)
