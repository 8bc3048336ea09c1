"""How much δ several draws need at an ε, at least: from the exact probabilities of every outcome on two neighbours.

What costs and filters state is an upper bound; this is a lower bound on the truth, and shares no code with them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

#: Steps of the lattice in the largest loss of one draw.
_STEPS = 250


def least_delta(first: ArrayLike, second: ArrayLike, *, epsilon: float, times: int = 1) -> float:
    """δ at ``epsilon`` of ``times`` independent draws, from below.

    Parameters
    ----------
    first, second
        Positive probabilities of the same outcomes on two neighbours.
    epsilon
        Where the profile is evaluated.
    times
        How many draws are shown together.

    Notes
    -----
    Losses are rounded down to a lattice, so the δ that comes out is at most the true one, but for rounding errors of
    the Fourier transform (1e-12).

    Examples
    --------
    Randomised response at ε = 1, asked once and twice:

    >>> truth, other = np.array([np.e, 1.0]) / (np.e + 1.0), np.array([1.0, np.e]) / (np.e + 1.0)
    >>> round(least_delta(truth, other, epsilon=0.5), 3), least_delta(truth, other, epsilon=1.0) < 1e-12
    (0.288, True)
    >>> round(least_delta(truth, other, epsilon=1.0, times=2), 3)
    0.338
    """
    chances, others = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    losses = np.log(chances) - np.log(others)
    largest = float(np.abs(losses).max())
    if largest == 0.0:
        return 0.0
    step = largest / _STEPS
    places = np.floor(losses / step).astype(np.int64)
    lowest = int(places.min())
    law = np.bincount(places - lowest, weights=chances)
    size = times * (len(law) - 1) + 1
    together = np.fft.irfft(np.fft.rfft(law, size) ** times, size) if times > 1 else law
    totals = step * (np.arange(size) + times * lowest)
    return float(np.sum(np.maximum(together, 0.0) * np.maximum(0.0, -np.expm1(epsilon - totals))))
