"""The tuned numbers of a sparse vector, and the mechanism they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from dpselect.composition.filter import Watcher
from dpselect.mechanisms.gaussian_above_threshold import GaussianAboveThreshold
from dpselect.mechanisms.laplace_above_threshold import LaplaceAboveThreshold
from dpselect.planning.contender import SparseContender
from dpselect.privacy.family import QueryFamily

#: What a plan's parameters can be.
Parameter: TypeAlias = float | int | bool | str


@dataclass(frozen=True, kw_only=True)
class SparseParameters:
    """The tuned numbers of a sparse vector."""

    line_scale: float
    question_scale: float
    clip: tuple[float, float] | None = None
    horizon: int | None = None
    order: float | None = None


def watcher_for(contender: SparseContender, family: QueryFamily, threshold: float, found: SparseParameters) -> Watcher:
    """The mechanism of one setting, over the family before clipping."""
    if contender.law == "normal":
        return GaussianAboveThreshold(
            family, threshold=threshold, sigma_threshold=found.line_scale, sigma_query=found.question_scale
        )
    return LaplaceAboveThreshold(
        family, threshold=threshold, scale_threshold=found.line_scale, scale_query=found.question_scale
    )


def named_parameters(found: SparseParameters) -> dict[str, Parameter]:
    """The numbers of a sparse vector, by the names a plan uses."""
    named: dict[str, Parameter | None] = {
        "line_scale": found.line_scale,
        "question_scale": found.question_scale,
        "clip_below": None if found.clip is None else found.clip[0],
        "clip_above": None if found.clip is None else found.clip[1],
        "horizon": found.horizon,
        "order": found.order,
    }
    return {name: value for name, value in named.items() if value is not None}
