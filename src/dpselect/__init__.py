"""Differentially private selection with Gaussian noise: which one is largest, when is the line crossed.

The public names live here and are loaded on first use, so that ``import dpselect`` stays fast.

>>> import dpselect as dp
>>> family = dp.QueryFamily(lower=0.0, upper=1.0, sensitivity=1 / 6946)
>>> dp.GaussianNoisyMax(family, sigma=0.2).epsilon(candidates=365)
0.01078838...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpselect.mechanisms.catalogue import CATALOGUE

__version__ = "0.1.0"

#: The public names by where they live, mechanisms as the catalogue says; below, the same for type checkers.
_HOMES = {entry.class_name: entry.home for entry in CATALOGUE} | {
    name: f"dpselect.{home}"
    for home, names in {
        "composition.declared": "AdvancedFilter GaussianFilter RenyiFilter ZCDPFilter",
        "composition.odometer": "Odometer",
        "composition.realised": "PureFilter RepairedReportingFilter",
        "composition.sparse_vector": "SparseVector",
        "dataset": "Dataset",
        "errors": "BudgetExhausted DPSelectError DPSelectWarning InvalidData InvalidParameter NotPublic "
        "SensitivityClipped SourceError StateRefused",
        "mechanisms.run": "Verdict",
        "mechanisms.selection": "Selection",
        "noise.entropy": "SeededEntropy",
        "numerics.enclosure": "Enclosure",
        "privacy.family": "QueryFamily",
        "privacy.loss": "Loss",
    }.items()
    for name in names.split()
}
# fmt: off
_ROOMS = {"composition", "dataset", "errors", "ledger", "mechanisms", "noise", "numerics", "planning",
          "privacy", "report", "tables"}
# fmt: on

__all__ = sorted([*_HOMES, "__version__"])

if TYPE_CHECKING:
    from dpselect.composition.declared import AdvancedFilter as AdvancedFilter
    from dpselect.composition.declared import GaussianFilter as GaussianFilter
    from dpselect.composition.declared import RenyiFilter as RenyiFilter
    from dpselect.composition.declared import ZCDPFilter as ZCDPFilter
    from dpselect.composition.odometer import Odometer as Odometer
    from dpselect.composition.realised import PureFilter as PureFilter
    from dpselect.composition.realised import RepairedReportingFilter as RepairedReportingFilter
    from dpselect.composition.sparse_vector import SparseVector as SparseVector
    from dpselect.dataset import Dataset as Dataset
    from dpselect.errors import BudgetExhausted as BudgetExhausted
    from dpselect.errors import DPSelectError as DPSelectError
    from dpselect.errors import DPSelectWarning as DPSelectWarning
    from dpselect.errors import InvalidData as InvalidData
    from dpselect.errors import InvalidParameter as InvalidParameter
    from dpselect.errors import NotPublic as NotPublic
    from dpselect.errors import SensitivityClipped as SensitivityClipped
    from dpselect.errors import SourceError as SourceError
    from dpselect.errors import StateRefused as StateRefused
    from dpselect.mechanisms.classical import ExponentialMechanism as ExponentialMechanism
    from dpselect.mechanisms.classical import LaplaceNoisyMax as LaplaceNoisyMax
    from dpselect.mechanisms.classical import PermuteAndFlip as PermuteAndFlip
    from dpselect.mechanisms.classical_above_threshold import ExponentialAboveThreshold as ExponentialAboveThreshold
    from dpselect.mechanisms.classical_above_threshold import LaplaceAboveThreshold as LaplaceAboveThreshold
    from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold as GaussianAboveThreshold
    from dpselect.mechanisms.gaussian_noisy_max import GaussianNoisyMax as GaussianNoisyMax
    from dpselect.mechanisms.release import GaussianRelease as GaussianRelease
    from dpselect.mechanisms.release import LaplaceRelease as LaplaceRelease
    from dpselect.mechanisms.run import Verdict as Verdict
    from dpselect.mechanisms.selection import Selection as Selection
    from dpselect.mechanisms.set_above_threshold import SetAboveThreshold as SetAboveThreshold
    from dpselect.noise.entropy import SeededEntropy as SeededEntropy
    from dpselect.numerics.enclosure import Enclosure as Enclosure
    from dpselect.privacy.family import QueryFamily as QueryFamily
    from dpselect.privacy.loss import Loss as Loss


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"dpselect.{name}")
    raise AttributeError(f"module 'dpselect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
