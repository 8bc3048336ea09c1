"""The functions of :mod:`dpselect.numerics.plain` for arrays of cells."""

from __future__ import annotations

import numpy as np
from numpy import abs, any, exp, expm1, floor, log, log1p, maximum, minimum, sqrt, where

from dpselect.checks import FloatArray
from dpselect.numerics.normal import log_cdf_and_hazard
from dpselect.numerics.normal import rough_log_cdf_and_hazard as rough

__all__ = [
    "abs",
    "any",
    "entry",
    "exp",
    "expm1",
    "floor",
    "largest",
    "log",
    "log1p",
    "log_cdf_and_hazard",
    "maximum",
    "minimum",
    "rough",
    "row_sum",
    "sqrt",
    "where",
]


def largest(values: FloatArray) -> float:
    """The largest over all cells."""
    return float(values.max())


def row_sum(rows: FloatArray) -> FloatArray:
    """The sum over each cell's nodes."""
    return np.asarray(rows.sum(axis=-1))


def entry(rows: FloatArray, place: int) -> FloatArray:
    """Each cell's value at one node."""
    return np.asarray(rows[:, place])
