"""The functions of :mod:`dpselect.numerics.plain` for arrays of cells."""

from __future__ import annotations

from numpy import abs, any, exp, expm1, floor, log, log1p, maximum, minimum, sqrt, where

from dpselect.numerics.normal import log_cdf_and_hazard, nearest_on_lattice
from dpselect.numerics.normal import rough_log_cdf_and_hazard as rough

__all__ = [
    "abs",
    "any",
    "exp",
    "expm1",
    "floor",
    "log",
    "log1p",
    "log_cdf_and_hazard",
    "maximum",
    "minimum",
    "nearest_on_lattice",
    "rough",
    "sqrt",
    "where",
]
