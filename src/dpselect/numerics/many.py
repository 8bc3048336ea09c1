"""The functions of :mod:`dpselect.numerics.plain` for arrays of cells."""

from __future__ import annotations

from numpy import abs, all, exp, expm1, floor, log, log1p, maximum, minimum, sqrt, where

from dpselect.checks import FloatArray
from dpselect.numerics.normal import log_cdf_and_hazard

__all__ = [
    "abs",
    "all",
    "exp",
    "expm1",
    "floor",
    "hazard",
    "log",
    "log1p",
    "log_cdf_and_hazard",
    "maximum",
    "minimum",
    "sqrt",
    "where",
]


def hazard(y: FloatArray) -> FloatArray:
    """φ(y)/Φ(y)."""
    return log_cdf_and_hazard(y)[1]
