"""What many releases cost together: an odometer, filters that hold, and the sparse vector.

================================  ==========================================================  ====================
filter                            promise                                                     paid
================================  ==========================================================  ====================
:class:`PureFilter`               pure ε; the default                                         by what was answered
:class:`RepairedReportingFilter`  (ε, δ): losses within ε but for a chance δ                  by what was answered
:class:`AdvancedFilter`           (ε, δ), losses add in quadrature (Whitehouse et al.)        before each release
:class:`RenyiFilter`              Rényi DP at one order                                       before each release
:class:`ZCDPFilter`               ρ-zCDP                                                      before each release
:class:`GaussianFilter`           μ-GDP                                                       before each release
================================  ==========================================================  ====================
"""

from dpselect.composition.budgeted_run import RunRecord
from dpselect.composition.declared import AdvancedFilter, GaussianFilter, RenyiFilter, ZCDPFilter
from dpselect.composition.filter import Filter
from dpselect.composition.odometer import Odometer
from dpselect.composition.realised import PureFilter, RepairedReportingFilter
from dpselect.composition.sparse_vector import SparseVector

__all__ = [
    "AdvancedFilter",
    "Filter",
    "GaussianFilter",
    "Odometer",
    "PureFilter",
    "RenyiFilter",
    "RepairedReportingFilter",
    "RunRecord",
    "SparseVector",
    "ZCDPFilter",
]
