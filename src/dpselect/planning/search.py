"""A search for good settings in a cube: spread first, then ever closer around the best.

The objective is a mean over simulated passes on common random numbers, so two neighbouring points differ by what they
do and a few dozen passes are enough to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.stats import qmc

from dpselect.checks import FloatArray

#: Scores of points, (points,) from (points, dimensions) in the unit cube.
Objective: TypeAlias = Callable[[FloatArray], FloatArray]

#: How many points are spread over the cube at first, by its dimensions.
_FIRST = {2: 64, 3: 128, 4: 128, 5: 128}
#: Widths of the rounds around the best so far, in parts of the cube.
_WIDTHS = (0.12, 0.09, 0.07, 0.05, 0.035, 0.025)
_PARENTS = 10
_KEPT = 8


def search(
    objective: Objective,
    *,
    dimensions: int,
    generator: np.random.Generator,
    starts: FloatArray | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> FloatArray:
    """The best few points found, best first: (up to 8, dimensions).

    Parameters
    ----------
    objective
        What is to be large.
    dimensions : int
        Of the cube.
    generator
        Where new points come from.
    starts : ndarray, optional
        Points of a kindred search; it then begins around them and looks at fewer points.
    on_progress
        Called with the share done.

    Examples
    --------
    >>> best = search(lambda u: -np.square(u - 0.3).sum(axis=1), dimensions=2, generator=np.random.default_rng(1))
    >>> bool(np.abs(best[0] - 0.3).max() < 0.02)
    True
    """
    widths: tuple[float, ...] = _WIDTHS
    if starts is None:
        points = qmc.Sobol(dimensions, rng=generator).random(_FIRST[dimensions])
    else:
        points, widths = starts, _WIDTHS[1::3]
    scores = objective(points)
    for done, width in enumerate(widths):
        on_progress((done + 1) / (len(widths) + 1))
        parents = np.repeat(points[np.argsort(-scores, kind="stable")[:_PARENTS]], 1 + dimensions, axis=0)
        moves = width * generator.standard_normal(parents.shape)
        # Some coordinates stay put: a good point often needs one of them changed, not all.
        moves *= generator.random(moves.shape) < 0.6
        # Every other child steps along the difference of two good points: that follows valleys that lie askew.
        first, second = parents[generator.integers(len(parents), size=(2, len(parents)))]
        moves[::2] = 0.8 * (first - second)[::2] + 0.3 * moves[::2]
        children = np.clip(parents + moves, 0.0, 1.0)
        points = np.concatenate([points, children])
        scores = np.concatenate([scores, objective(children)])
    on_progress(1.0)
    return np.asarray(points[np.argsort(-scores, kind="stable")[:_KEPT]])
