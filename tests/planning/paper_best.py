"""The paper's side of a comparison, in its favour: its best σ_X in hindsight, runs started while anything is left."""

from __future__ import annotations

import math

import numpy as np

from dpselect import GaussianAboveThreshold, QueryFamily
from dpselect.planning.simulation import f1_scores


def paper_best(
    values: np.ndarray,
    *,
    threshold: float,
    population: int,
    sigmas: tuple[float, float],
    epsilon: float,
    passes: int = 300,
) -> float:
    """Mean F1 of the published settings on this very stream, the best σ_X of thirteen."""
    family = QueryFamily(lower=0, upper=1, sensitivity=1 / population)
    generator = np.random.default_rng(7)
    questions, lines = generator.standard_normal((2, len(values), passes))
    found = []
    for sigma in np.linspace(*sigmas, 13):
        watcher = GaussianAboveThreshold(
            family, threshold=threshold, sigma_threshold=sigma, sigma_query=math.sqrt(3) * sigma
        )
        costs = np.asarray(watcher.loss(below=np.arange(len(values)), above=1))
        found.append(_mean_f1(values - threshold, costs, sigma * lines, math.sqrt(3) * sigma * questions, epsilon))
    return max(found)


def _mean_f1(over: np.ndarray, costs: np.ndarray, lines: np.ndarray, noise: np.ndarray, epsilon: float) -> float:
    """A new noisy threshold after each ⊤, which costs by how many ⊥ came before it."""
    passes = lines.shape[1]
    left, below, line = np.full(passes, epsilon), np.zeros(passes, dtype=int), lines[0].copy()
    hits, claimed = np.zeros(passes), np.zeros(passes)
    for place, value in enumerate(over):
        above = (left > 1e-12) & (value + noise[place] >= line)
        hits += above * (value >= 0)
        claimed += above
        left -= np.where(above, costs[below], 0.0)
        below = np.where(above, 0, below + 1)
        if place + 1 < len(over):
            line = np.where(above, lines[place + 1], line)
    return float(f1_scores(hits, claimed=claimed, true=float((over >= 0).sum())).mean())
